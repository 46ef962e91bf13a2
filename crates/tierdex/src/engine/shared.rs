//! The state of an engine that callers and its threads share.

use super::{
    attached_index::AttachedIndex, current::Current, hot_pages::HotPages, memory_report::MemoryReport,
    pool::MemoryPool, queue::RequestQueue, readers::ReadMethod, settings::EngineSettings, snapshot::Snapshot,
};
use crate::{Result, index::Index};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tierdex_cache::PageCache;
use tierdex_io::PAGE;

/// Shared state of an engine.
pub(super) struct EngineShared {
    pub(super) cache: Arc<PageCache>,
    pub(super) pool: Arc<MemoryPool>,
    pub(super) queue: Arc<RequestQueue>,
    /// The index that the engine was started with.
    pub(super) current: AttachedIndex,
    /// The other indexes.
    pub(super) attached: Mutex<Vec<Weak<Current<Snapshot>>>>,
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
    /// Attaches another index. If it `is_whole`, its metadata is where that of the first index is, as far as
    /// it fits; else dictionaries and skip data are on disk.
    pub(super) fn attach(&self, index: &Index, is_whole: bool) -> Result<AttachedIndex> {
        let attached = AttachedIndex::new(self.current.snapshot().of_other(index, is_whole)?);
        let mut all = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|other| other.strong_count() > 0);
        all.push(attached.downgrade());
        Ok(attached)
    }

    /// The newest opened commits of all indexes.
    pub(super) fn snapshots(&self) -> Vec<Arc<Snapshot>> {
        let attached = self.attached.lock().unwrap_or_else(PoisonError::into_inner);
        let others = attached.iter().filter_map(Weak::upgrade).map(|current| current.get());
        std::iter::once(self.current.snapshot()).chain(others).collect()
    }

    /// Frames of the cache, at least.
    pub(super) fn frames_min(&self) -> usize {
        match self.cache.cells().region().is_elastic() {
            true => (self.pool.sizes().cache.minimum / PAGE) as usize,
            false => self.cache.frames(),
        }
    }
}
