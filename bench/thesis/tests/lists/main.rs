//! Bytes read through the cache equal those in the files, with caches of any size and any faults; and in
//! the end nothing is pinned and no cell is lost.

mod edges;
mod faults;
#[path = "../../../../crates/cache/tests/pages/files.rs"]
mod files;
mod fixture;
mod page_prefetcher;
mod parts;
mod random_queries;
