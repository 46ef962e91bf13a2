//! The state of an engine that callers and its threads share.

use super::{
    current::Current, hot_pages::HotPages, memory_report::MemoryReport, pool::MemoryPool,
    queue::RequestQueue, readers::ReadMethod, settings::EngineSettings, snapshot::Snapshot,
};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tierdex_cache::PageCache;
use tierdex_io::PAGE;

/// Shared state of an engine.
pub(super) struct EngineShared {
    pub(super) cache: Arc<PageCache>,
    pub(super) pool: Arc<MemoryPool>,
    pub(super) queue: Arc<RequestQueue>,
    pub(super) current: Current<Snapshot>,
    /// Requests that were not accepted.
    pub(super) rejected: AtomicU64,
    /// Hits that a request may ask for, if memory is bounded.
    pub(super) hits_max: Option<usize>,
    pub(super) settings: EngineSettings,
    pub(super) report: MemoryReport,
    pub(super) read_method: ReadMethod,
    pub(super) hot_pages: Option<HotPages>,
}

impl EngineShared {
    /// Frames of the cache, at least.
    pub(super) fn frames_min(&self) -> usize {
        match self.cache.cells().region().is_elastic() {
            true => (self.pool.sizes().cache.minimum / PAGE) as usize,
            false => self.cache.frames(),
        }
    }
}
