//! The four read modes of the APCache thesis (chapter 7), over the evaluation of tierdex: what the engine is
//! compared with.
//!
//! *Input*: an index on disk and a sequence of queries. *Output*: their results, in order.
//!
//! | mode | how postings are read |
//! |---|---|
//! | [`Mode::Base`] | through the page cache of the operating system |
//! | [`Mode::BasePrefetch`] | the same; a thread prefetches lists into the page cache (section 7.2.2) |
//! | [`Mode::Hybrid`] | from a cache of whole lists, which is filled after misses |
//! | [`Mode::HybridPrefetch`] | from that cache, filled ahead of the queries (sections 7.2.3, 7.2.4) |
//!
//! [`ListExecutor`] answers the queries, [`ListOptions`] are its options. `cache` is the cache of lists. A
//! *cell* is what the thesis calls a cache segment; a *segment* is a part of an index.

mod cache;
mod delivery;
mod executor;
mod list_prefetch;
mod mapped_files;
mod memory;
mod options;
mod whole_lists;

pub use cache::{
    FetchedList, ListCache, ListCacheStats, ListKey, ListReader, ListRequest, Lookahead, LookaheadSample,
    PARTS_MAX, PagePrefetcher, PageQuery, Prefetcher, QueuedQuery, RequestedRange,
};
pub use executor::{ListExecutor, TimedResult};
pub use mapped_files::MappedFiles;
pub use memory::memory_report;
pub use options::{FileReads, ListOptions, Mode};
