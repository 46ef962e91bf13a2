//! Experiments, one a folder: each makes its data, runs its contenders side by side in one run, and writes what it
//! found as a table, a report, rows of JSON and a plot.
//!
//! | you want | take |
//! |---|---|
//! | postings caches: speed by mode and memory | [`cache`] |
//! | codecs of integers, their sizes and speeds | [`codecs`] |
//! | an index of any size without text | [`generate`] |
//! | lists that stay on disk intersected, by five algorithms | [`intersect`] |
//! | latency of single requests beside a batch | [`latency`] |
//! | an index behind a line protocol, for a harness of your own | [`serve`] |
//!
//! What experiments share stands beside them: a [`Machine`] says where figures were taken, a [`Table`] shows them, a
//! [`Random`] makes data that comes back with its seed, a [`group`] limits the memory of a process, and a
//! throttle its reads. Figures are ratios within one run; no test looks at them.
//!
//! This crate must not know how the command line of the caller looks beyond the flags of its experiments.

#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, clippy::print_stdout)]

pub mod cache;
pub mod codecs;
mod error;
mod folder;
pub mod generate;
pub mod group;
pub mod intersect;
pub mod intersection;
pub mod latency;
mod machine;
mod random;
pub mod serve;
mod table;
mod throttle;

pub use error::{Error, Result};
pub use machine::Machine;
pub use random::Random;
pub use table::Table;
