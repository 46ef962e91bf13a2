//! The cache of posting lists: reads byte ranges of lists into memory, and checks them, before their query
//! is evaluated.
//!
//! *Input*: memory cut into cells, a read queue, and requests that name the byte ranges of lists. *Output*:
//! these bytes in memory, checked and pinned. Source: the APCache thesis, chapter 7; a cell is its cache
//! segment (thesis, section 7.2).
//!
//! | task | API |
//! |---|---|
//! | a cache in a memory region | [`ListCache`] |
//! | the thread that fills it | [`Prefetcher`], [`Lookahead`] |
//! | to name a list | [`ListRequest`], [`RequestedRange`], [`ListKey`] |
//! | to prefetch the lists of waiting queries | [`Prefetcher::push`], [`QueuedQuery::wait`] |
//! | to look a list up, and fetch it later | [`ListCache::lookup`], [`Prefetcher::fetch_detached`] |
//! | to read a list | [`FetchedList`], [`ListReader`] |
//! | to prefetch into the system's page cache instead | [`PagePrefetcher`], [`PageQuery`] |
//! | counters | [`ListCacheStats`], [`LookaheadSample`] |
//!
//! It knows byte ranges, budgets and requests; it does not know what a posting is. It makes no system call
//! except to start threads and to wait.

mod bounce_buffer;
mod cell_links;
mod cell_walk;
mod entry_table;
mod error;
mod key;
mod list;
mod list_cache;
mod list_reader;
mod lookahead;
mod page_prefetcher;
mod queue;
mod request;
mod state;
mod stats;
mod worker;

pub use key::ListKey;
pub use list::FetchedList;
pub use list_cache::ListCache;
pub use list_reader::ListReader;
pub use lookahead::{Lookahead, LookaheadSample};
pub use page_prefetcher::{PagePrefetcher, PageQuery};
pub use request::{ListRequest, PARTS_MAX, RequestedRange};
pub use stats::ListCacheStats;
pub use worker::{Prefetcher, QueuedQuery, READ_BYTES_MAX};
