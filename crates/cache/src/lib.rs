//! Which bytes are near: the postings cache.
//!
//! *You have* memory in cells, engines that read, and queries that name the byte ranges of their lists. *You get* these
//! bytes in the memory, checked, before the query's turn comes. Source: the APCache thesis, chapter 7.
//!
//! | you want | take |
//! |---|---|
//! | a cache in some memory | [`Cache`], [`PolicyKind`] |
//! | threads that fill it | [`Prefetcher`], [`Lookahead`] |
//! | a list | [`Job`], [`Part`], [`Key`] |
//! | the lists of the queries that wait, fetched ahead | [`Prefetcher::push`], [`Query::wait`] |
//! | a list now | [`Prefetcher::fetch`] |
//! | several at once, and to see which are there | [`Prefetcher::begin_all`], [`Begun::is_here`], [`Query::is_here`] |
//! | not to wait | [`Begun::is_ready`], [`Query::is_ready`] |
//! | a list behind the queries | [`Prefetcher::request`], [`Cache::lookup`] |
//! | its bytes | [`List`], [`Pinned`], [`Stream`], [`Reader`] |
//! | no cache, but pages read ahead into the system's | [`PagePrefetcher`], [`PageQuery`] |
//! | single pages instead of lists, read by each thread for itself | [`Frames`], [`PageReader`], [`Pin`] |
//! | what it did | [`Stats`], [`Sample`] |
//! | which policy would have done better | [`trace`] |
//!
//! This room knows ranges, budgets and jobs; it does not know what a posting is. It makes no system call but to start
//! threads and to wait.

#![forbid(unsafe_code)]

mod cache;
mod chains;
mod frames;
mod job;
mod list;
mod lookahead;
mod page_cache;
mod policy;
mod queue;
mod reader;
mod segments;
mod state;
mod stats;
mod stream;
mod sync;
pub mod trace;
mod walk;
mod worker;

pub use cache::Cache;
pub use chains::Key;
pub use frames::{Frames, Pin};
pub use job::{Job, PARTS_MAX, Part};
pub use list::{Begun, List, Pinned, Reader, Stream};
pub use lookahead::{Lookahead, Sample};
pub use page_cache::{PagePrefetcher, PageQuery};
pub use policy::{Lru, Policy, PolicyKind, S3Fifo, Sieve, Window};
pub use reader::{PageReader, READ_PAGES_MAX};
pub use stats::Stats;
pub use worker::{Prefetcher, Query, READ_BYTES_MAX};
