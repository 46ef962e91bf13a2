//! A cache of pages of files in memory cells, which threads fill by their own reads.
//!
//! *Input*: memory cut into cells of a page, and a read queue for each thread. *Output*: pages that are
//! checked and pinned.
//!
//! | task | API |
//! |---|---|
//! | a cache in a memory region | [`PageCache`], [`PolicyKind`] |
//! | to pin pages, and to read those that are missing | [`PageReader`], [`Pin`] |
//! | to choose which reads are joined | [`measure_gap`] |
//! | counters | [`CacheStats`] |
//! | to compare eviction policies | [`Policy`], [`Lru`] |
//!
//! This crate knows pages of files; it does not know what a posting is. It makes no system call except to
//! wait.

#![forbid(unsafe_code)]

mod hash;
mod page_cache;
mod page_reader;
mod policy;
mod read_gap;
mod stats;
mod sync;

pub use page_cache::{PageCache, Pin};
pub use page_reader::{PageReader, READ_PAGES_MAX};
pub use policy::{Lru, Policy, PolicyKind};
pub use read_gap::measure_gap;
pub use stats::CacheStats;
