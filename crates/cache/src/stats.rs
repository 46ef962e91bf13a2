//! The accounts of a cache.

/// What a cache did and has, at one time. Sizes are in segments of `segment_bytes` bytes unless they say bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Lists that were asked for and stood in the cache, or on their way into it; those that were looked up, in it only.
    /// What [`crate::Prefetcher::request`] asks for is no hit and no miss: it was looked up before.
    pub hits: u64,
    /// Lists that were asked for and did not.
    pub misses: u64,
    /// Of the misses, lists that were not to be cached, for want of room beside what was in use.
    pub streamed: u64,
    /// Lists that were read into the cache, to their end.
    pub fetched: u64,
    /// Lists that were evicted.
    pub evictions: u64,
    /// Lists and pieces of streams that could not be had.
    pub failures: u64,
    /// How often a query waited for a list or a piece.
    pub waits: u64,
    /// Reads that have ended.
    pub reads: u64,
    /// Those of them that went through the system's page cache, though past it was asked.
    pub reads_fell_back: u64,
    /// The bytes that they gave.
    pub bytes_read: u64,
    /// Bytes of a segment.
    pub segment_bytes: u64,
    /// Segments in which lists can stand.
    pub segments: u64,
    /// Those in which none stands.
    pub segments_free: u64,
    /// Those whose lists could be evicted.
    pub segments_evictable: u64,
    /// Segments beside these, through which lists are streamed that do not fit.
    pub window_segments: u64,
    /// Lists that are on their way.
    pub loading: u64,
    /// Queries in the queue that have not ended.
    pub queries: u64,
    /// Queries beyond the oldest that have not ended and whose lists were all found or ordered.
    pub lookahead: u64,
    /// The most that ever was.
    pub lookahead_max: u64,
    /// The rolling sum of segments fetched ahead.
    pub rolling_sum: u64,
    /// Bytes of memory beside the region, all of them allocated at the start: links, chains, index, policy, states of cells.
    pub metadata_bytes: u64,
}

impl Stats {
    /// Segments in which lists stand.
    pub fn segments_used(&self) -> u64 {
        self.segments - self.segments_free
    }

    /// Hits as a part of all lists that were asked for.
    pub fn hit_rate(&self) -> f64 {
        self.hits as f64 / (self.hits + self.misses).max(1) as f64
    }
}
