//! Statistics of the page cache.

use crate::sync::AtomicU64;

/// Counters of a [`PageCache`](crate::PageCache) since its start, and the current use of its frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStats {
    /// Lookups of pages that were in the cache or loading.
    pub hits: u64,
    /// Lookups of other pages.
    pub misses: u64,
    /// Misses that got no frame, as all frames of a part of the cache were pinned.
    pub no_frame: u64,
    /// Pages that were read into the cache.
    pub fetched: u64,
    /// Pages that were evicted.
    pub evictions: u64,
    /// Pages that could not be read.
    pub failures: u64,
    /// Number of times that a thread waited for a page.
    pub waits: u64,
    /// Completed reads.
    pub reads: u64,
    /// Completed reads that went through the system's page cache although direct I/O was requested.
    pub reads_fell_back: u64,
    /// Bytes that were read.
    pub bytes_read: u64,
    /// Current number of frames; each holds one page.
    pub frames: u64,
    /// Frames that hold no page.
    pub frames_free: u64,
    /// Frames of pages that could be evicted now: neither loading nor pinned.
    pub frames_evictable: u64,
    /// Pages that are loading.
    pub loading: u64,
    /// Bytes of memory beside the frames, allocated at the start: page table, eviction policy, frame states.
    pub metadata_bytes: u64,
}

impl CacheStats {
    /// Frames that hold pages.
    pub fn frames_used(&self) -> u64 {
        self.frames - self.frames_free
    }

    /// Hits as a fraction of all lookups.
    pub fn hit_rate(&self) -> f64 {
        self.hits as f64 / (self.hits + self.misses).max(1) as f64
    }
}

/// Counters of a cache since its creation.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    /// Pages that were read although nobody has requested them.
    pub(crate) unrequested: AtomicU64,
    /// Lookups for which all frames of the shard were pinned.
    pub(crate) no_frame: AtomicU64,
    pub(crate) evictions: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) waits: AtomicU64,
    pub(crate) reads: AtomicU64,
    pub(crate) reads_fell_back: AtomicU64,
    pub(crate) bytes_read: AtomicU64,
}
