//! What experiments measure. The driver (`bench/driver`) plans, repeats and judges them, and draws the
//! results; `tierdex-bench cell` runs one of them, described as JSON ([`request`]).
//!
//! | experiment | module |
//! |---|---|
//! | queries over an index: speed, latency and reads | [`cell`] |
//! | integer codecs: size and speed | [`codecs`] |
//! | a synthetic index of any size, without text | [`generate`] |
//! | five algorithms that intersect posting lists on disk | [`intersect`] |
//! | latency of single requests, alone and beside a batch | [`latency`] |
//! | hit rates of eviction policies | [`policies`] |
//! | an index behind a line protocol, for an external harness | [`serve`] |
//!
//! Shared parts: [`Random`] is a seeded generator, [`slow_tier`] emulates a slower memory, and [`seek_disk`]
//! a disk that seeks. Only ratios within one run are compared; no test depends on a measured time.
//!
//! This crate defines the flags of its commands and nothing else of the command line.

#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, clippy::print_stdout)]

pub mod cell;
pub mod codecs;
pub mod driver;
mod error;
pub mod generate;
mod held_index;
pub mod intersect;
pub mod intersection;
pub mod latency;
pub mod policies;
mod postings;
mod query_lines;
mod random;
pub mod request;
pub mod seek_disk;
pub mod serve;
pub mod slow_tier;

pub use error::{Error, Result};
pub use postings::{ListPostings, read_postings};
pub use random::Random;
