//! A page cache: pages of index files in memory cells. A thread that misses a page reads it itself.
//!
//! *Input*: memory divided into cells of 4 KiB, and a read queue for each thread. *Output*: pages with a
//! verified checksum, pinned in the cache.
//!
//! | task | API |
//! |---|---|
//! | a cache in a memory region | [`PageCache`], [`PolicyKind`] |
//! | to pin pages, and to read those that are missing | [`PageReader`], [`Pin`] |
//! | what reads of a device cost, and which are joined | [`ReadCosts`], [`PlannedReads`] |
//! | counters | [`CacheStats`] |
//! | the misses that caches of other sizes would have | [`GhostCaches`] |
//! | to compare eviction policies | [`Policy`], [`Lru`] |
//!
//! This crate does not interpret the content of pages. It makes no system call except to wait.

#![forbid(unsafe_code)]

mod ghost;
mod hash;
mod page_cache;
mod page_reader;
mod page_table;
mod policy;
mod read_costs;
mod stats;
mod sync;

pub use ghost::{GhostCaches, GhostCounts, GhostMisses};
pub use page_cache::{PageCache, Pin};
pub use page_reader::PageReader;
pub use policy::{HEAT_CLASSES, Lru, Policy, PolicyKind};
pub use read_costs::{PlannedReads, READ_PAGES_MAX, ReadCosts, SEEKING_READ_PAGES_MAX};
pub use stats::CacheStats;
