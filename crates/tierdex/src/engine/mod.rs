//! A long-lived search engine: a page cache, search threads and a memory budget, shared by all callers.
//!
//! *Input*: requests, each with a query and a commit ([`Snapshot`]). *Output*: tickets, which receive
//! results in the order in which they complete.
//!
//! 1. [`Engine::submit`] puts a request into one of two queues (`queue`). Interactive requests are taken
//!    first.
//! 2. A search thread takes requests, plans them and runs several evaluations concurrently, as coroutines
//!    (`worker`). An evaluation that needs a page which is not cached is suspended while the page is read
//!    (`paged`); one whose time slice ends yields to the others. A caller that waits for one request
//!    evaluates it itself while a search thread sleeps ([`Engine::search`]).
//! 3. The result goes to the ticket (`ticket`). A request that is cancelled, or whose deadline passes, ends
//!    when it next waits for a page, or after a few blocks or windows of documents.
//! 4. [`Engine::refresh`] opens the newest commit. Segments of both commits are shared and stay cached; the
//!    resident metadata of new segments counts towards the memory budget (`snapshot`).
//! 5. With [`EngineOptions::hot_pages`] a thread reads the pages that were hot before a restart, and writes
//!    which are hot now (`hot_pages`).
//!
//! No deadlock: an evaluation waits only for reads, which end, and for memory reserved by evaluations that
//! do not wait for memory (`pool`): each reserves all that it needs before it starts, and memory that only a
//! caller can release, of requests and results, has limits of its own. A thread that sleeps because it has no
//! evaluation, or because all wait for memory, has no read in flight. A caller that has evaluated its request
//! completes its reads, or a thread that sleeps is woken to do so.
//! Callbacks must not block.

mod active;
mod attach;
mod attached_index;
mod budget;
mod caller_reader;
mod choose;
mod current;
mod handle;
mod hot_pages;
mod inspect;
mod latency;
mod memory_report;
mod merge;
mod meta_tier;
mod metrics;
mod options;
mod paged;
pub mod part_sizes;
mod pool;
mod preview;
mod priority;
mod queue;
mod queued_request;
mod read_ahead;
mod readers;
mod request;
mod request_counters;
mod resident_sizes;
mod settings;
mod shared;
mod snapshot;
mod sync;
mod ticket;
mod worker;

pub use attached_index::AttachedIndex;
pub use handle::Engine;
pub use inspect::Highlighter;
pub use latency::Latencies;
pub use memory_report::{MemoryReport, MemoryUse};
pub use merge::{MergedHit, MergedHits, ShardHits, merge_hits};
pub use meta_tier::{MetaTier, MetadataLocation};
pub use metrics::EngineMetrics;
pub use options::EngineOptions;
pub use preview::{Preview, PreviewOptions};
pub use priority::Priority;
pub use request::{Hits, RequestCost, SearchRequest, TotalHits};
pub use request_counters::RequestMetrics;
pub use resident_sizes::ResidentSizes;
pub use settings::EngineSettings;
pub use snapshot::{Snapshot, load_metadata};
pub use ticket::{CancelHandle, Ticket};
