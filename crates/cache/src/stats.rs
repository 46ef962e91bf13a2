//! Counters and sizes of the cache of pages.

/// A snapshot of a [`PageCache`](crate::PageCache).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStats {
    /// Requested pages that were in the cache or loading.
    pub hits: u64,
    /// Requested pages that were not.
    pub misses: u64,
    /// Misses for which all frames of the shard were pinned.
    pub no_frame: u64,
    /// Pages that were read into the cache.
    pub fetched: u64,
    /// Pages that were evicted.
    pub evictions: u64,
    /// Pages that could not be read.
    pub failures: u64,
    /// How often a thread waited for a page.
    pub waits: u64,
    /// Completed reads.
    pub reads: u64,
    /// Reads among them that went through the system's page cache although direct reads were asked for.
    pub reads_fell_back: u64,
    /// Bytes that were read.
    pub bytes_read: u64,
    /// Frames of the cache that are used now, of a page each.
    pub frames: u64,
    /// Frames that hold no page.
    pub frames_free: u64,
    /// Frames of pages that are ready and not pinned.
    pub frames_evictable: u64,
    /// Pages that are loading.
    pub loading: u64,
    /// Bytes of memory outside the region, all allocated at the start: page table, policy, states of frames.
    pub metadata_bytes: u64,
}

impl CacheStats {
    /// Frames that hold pages.
    pub fn frames_used(&self) -> u64 {
        self.frames - self.frames_free
    }

    /// Hits as a fraction of requested pages.
    pub fn hit_rate(&self) -> f64 {
        self.hits as f64 / (self.hits + self.misses).max(1) as f64
    }
}
