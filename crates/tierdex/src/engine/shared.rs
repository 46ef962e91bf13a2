//! The state of an engine that callers and search threads share.

use super::current::Current;
use super::memory_report::MemoryReport;
use super::queue::RequestQueue;
use super::readers::ReadEngineName;
use super::settings::EngineSettings;
use super::snapshot::{ResidentBudget, Snapshot};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use tierdex_cache::PageCache;

/// Shared state of an engine.
pub(super) struct EngineShared {
    pub(super) cache: Arc<PageCache>,
    pub(super) queue: Arc<RequestQueue>,
    pub(super) current: Current<Snapshot>,
    pub(super) resident: Arc<ResidentBudget>,
    pub(super) threads: usize,
    /// Running interactive evaluations.
    pub(super) interactive: AtomicUsize,
    /// Concurrent evaluations of a thread, at most.
    pub(super) in_flight: usize,
    /// Bytes for the plans and lists of all evaluations of a thread.
    pub(super) lists_bytes: u64,
    /// Hits that a request may ask for, if memory is bounded.
    pub(super) hits_max: Option<usize>,
    pub(super) settings: EngineSettings,
    pub(super) report: MemoryReport,
    pub(super) read_engine: ReadEngineName,
}
