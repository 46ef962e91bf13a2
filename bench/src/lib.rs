//! Benchmark experiments, one per module. Each generates its data, runs all contenders in one run, and
//! writes the results as a table, a report, rows of JSON and a plot.
//!
//! | experiment | module |
//! |---|---|
//! | postings caches: query throughput by mode and memory | [`cache`] |
//! | integer codecs: size and speed | [`codecs`] |
//! | a synthetic index of any size, without text | [`generate`] |
//! | five algorithms that intersect posting lists on disk | [`intersect`] |
//! | latency of single requests, alone and beside a batch | [`latency`] |
//! | hit rates of eviction policies | [`policies`] |
//! | experiments for a driver, one JSON object each | [`request`] |
//! | an index behind a line protocol, for an external harness | [`serve`] |
//!
//! Shared parts: [`Machine`] describes the host, [`Table`] formats results, `plot` draws them, [`Random`] is
//! a seeded generator, [`counters`] counts events of the processor and `callgrind` simulates them, [`cgroup`]
//! limits the memory of a process, `throttle` limits its read rate, and `seek_disk` emulates a disk that
//! seeks. Only ratios within one run are compared; no test depends on a measured time.
//!
//! This crate defines the flags of its experiments and nothing else of the command line.

#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, clippy::print_stdout)]

pub mod cache;
pub mod cell;
pub mod cgroup;
pub mod codecs;
mod command_line;
pub mod counters;
pub mod driver;
mod error;
pub mod generate;
mod held_index;
pub mod intersect;
pub mod intersection;
pub mod latency;
mod machine;
mod median;
mod output_dir;
mod plot;
pub mod policies;
mod postings;
mod query_lines;
mod random;
pub mod request;
pub mod seek_disk;
pub mod serve;
pub mod slow_tier;
mod status;
mod table;
mod temporary_dir;
mod throttle;
mod value_names;

pub use command_line::parse_flags;
pub use error::{Error, Result};
pub(crate) use held_index::HeldIndex;
pub use held_index::HeldIndexFlags;
pub use machine::Machine;
pub use postings::{ListPostings, read_postings};
pub use random::Random;
pub use table::Table;
