//! Counters and sizes of the cache of lists.

/// A snapshot of a [`ListCache`](super::ListCache). Sizes are in cells unless their name says bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ListCacheStats {
    /// Requested lists that were in the cache or loading; for [`super::ListCache::lookup`], ready ones only.
    /// [`super::Prefetcher::fetch_detached`] counts neither as a hit nor as a miss, as a lookup has counted
    /// before.
    pub hits: u64,
    /// Requested lists that were neither cached nor being read.
    pub misses: u64,
    /// Misses that were not cached, as too few cells were available.
    pub streamed: u64,
    /// Lists that were read into the cache completely.
    pub fetched: u64,
    /// Lists that were evicted.
    pub evictions: u64,
    /// Lists, and chunks of streams, that could not be read.
    pub failures: u64,
    /// How often a query waited for a list or a chunk.
    pub waits: u64,
    /// Completed reads.
    pub reads: u64,
    /// Bytes that were read.
    pub bytes_read: u64,
    /// Cells for lists.
    pub cells: u64,
    /// Cells that hold no list.
    pub cells_free: u64,
    /// Cells of lists that are ready and not pinned.
    pub cells_evictable: u64,
    /// Lists that are loading.
    pub loading: u64,
    /// Queries in the queue that have not ended.
    pub queries: u64,
    /// Queries behind the oldest that have not ended and whose lists were all found or queued for the worker.
    pub lookahead: u64,
    /// The maximum of `lookahead`.
    pub lookahead_max: u64,
    /// The rolling sum of the adaptive lookahead, in cells.
    pub rolling_sum: u64,
    /// Bytes of memory outside the region, all allocated at the start: links, entries, index, policy,
    /// states of cells.
    pub metadata_bytes: u64,
}

impl ListCacheStats {
    /// Cells that hold lists.
    pub fn cells_used(&self) -> u64 {
        self.cells - self.cells_free
    }
}
