//! Bytes read through the cache equal those in the files, with caches of any size and any faults; and in
//! the end nothing is pinned and no cell is lost.

mod edges;
mod faults;
mod fixture;
mod frames;
mod page_cache;
mod parts;
mod pending;
mod random_queries;
