//! Metrics of a running engine: counters only, so that they can be read often.

use super::request_counters::RequestMetrics;
use super::{memory_report::MemoryUse, pool::PoolUse, priority::Priority, shared::EngineShared};
use std::sync::atomic::Ordering;
use tierdex_io::PAGE;

/// What an engine does now, and what it has done since its start
/// ([`Engine::metrics`](super::Engine::metrics)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineMetrics {
    /// Bytes of the page cache.
    pub cache_bytes: u64,
    /// The fewest bytes that the page cache had. It gives memory to requests and evaluations if there is a
    /// memory budget.
    pub cache_bytes_min: u64,
    /// Bytes that are reserved of the memory budget, by kind of use.
    pub reserved: Vec<MemoryUse>,
    /// The most bytes that were reserved, by kind of use.
    pub reserved_max: Vec<MemoryUse>,
    /// Interactive requests.
    pub interactive: RequestMetrics,
    /// Requests of batches.
    pub batch: RequestMetrics,
    /// Requests that were not accepted: the engine was overloaded, they need too much memory, or they are
    /// invalid.
    pub rejected: u64,
    /// Requested pages that were cached or already being read.
    pub cache_hits: u64,
    /// Requested pages that were neither cached nor being read.
    pub cache_misses: u64,
    /// Pages that were evicted from the cache.
    pub evictions: u64,
    /// Reads into the cache.
    pub reads: u64,
    /// Bytes of these reads.
    pub bytes_read: u64,
    /// Number of times that a search thread waited for a read.
    pub waits: u64,
    /// Pages that were read because the file of
    /// [`EngineOptions::hot_pages`](super::EngineOptions::hot_pages) names them.
    pub pages_warmed: u64,
    /// Whether more pages may be read because that file names them.
    pub is_warming: bool,
}

impl EngineShared {
    pub(super) fn metrics(&self) -> EngineMetrics {
        let (pool, cache) = (self.pool.bytes(), self.cache.counts());
        let hot = self.hot_pages.as_ref();
        let fixed = cache.frames * PAGE;
        let is_elastic = self.cache.cells().region().is_elastic();
        let of_cache = |elastic: u64| if is_elastic { elastic } else { fixed };
        let rows = |bytes: &[u64]| {
            let rows = PoolUse::ALL.into_iter().zip(bytes);
            rows.map(|(kind, bytes)| MemoryUse::new(kind.name(), *bytes, None)).collect()
        };
        let requests = |priority: Priority| {
            let (queued, oldest_wait) = self.queue.length(priority);
            self.queue.counters(priority).metrics(queued, oldest_wait)
        };
        EngineMetrics {
            cache_bytes: of_cache(pool.cache),
            cache_bytes_min: of_cache(pool.smallest_cache),
            reserved: rows(&pool.reserved),
            reserved_max: rows(&pool.largest),
            interactive: requests(Priority::Interactive),
            batch: requests(Priority::Batch),
            rejected: self.rejected.load(Ordering::Relaxed),
            cache_hits: cache.hits,
            cache_misses: cache.misses,
            evictions: cache.evictions,
            reads: cache.reads,
            bytes_read: cache.bytes_read,
            waits: cache.waits,
            pages_warmed: hot.map_or(0, |hot| hot.pages_warmed.load(Ordering::Relaxed)),
            is_warming: hot.is_some_and(|hot| hot.warmed.get().is_none()),
        }
    }
}
