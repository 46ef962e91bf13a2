//! The memory budget: the size of each part of an engine, computed before any of it is allocated.

use super::memory_report::{MemoryReport, MemoryUse};
use super::part_sizes::{
    PREVIEW_BYTES, PROGRAM_BYTES, READ_CELL_BYTES, READ_ENGINE_THREAD_BYTES, READ_STATE_BYTES,
    SEARCH_THREAD_BYTES, evaluation_bytes, ids_bytes, lists_bytes, output_bytes, result_bytes,
    skips_bytes_min,
};
use super::resident_sizes::ResidentSizes;
use super::settings::EngineSettings;
use crate::index::Index;
use tierdex_cache::READ_PAGES_MAX;
use tierdex_io::{PAGE, ReadEngine};

/// Memory of queued requests: 1/`QUEUE_DIVISOR` of the budget within these bounds. Each priority has half.
const QUEUE_BYTES_MIN: u64 = 64 << 10;
const QUEUE_BYTES_MAX: u64 = 16 << 20;
const QUEUE_DIVISOR: u64 = 512;

/// Bytes for queued requests.
pub(super) fn queue_bytes(dram: Option<u64>) -> u64 {
    dram.map_or(QUEUE_BYTES_MAX, |dram| (dram / QUEUE_DIVISOR).clamp(QUEUE_BYTES_MIN, QUEUE_BYTES_MAX))
}

/// Bytes for the plans and lists of the running queries of a thread, without the unallocated rest of the
/// budget.
pub(super) fn thread_lists_bytes(index: &Index, settings: &EngineSettings) -> u64 {
    // Skip data of segments that are opened later may stay on disk.
    let grows = settings.growth > 0;
    let is_resident = settings.meta_tier.keeps_skips() && !grows;
    let skips = if is_resident { 0 } else { skips_bytes_min(index, grows) };
    lists_bytes(index, settings.dram, settings.threads.max(1) as u64, skips)
}

impl EngineSettings {
    /// The memory of an engine with these settings, by part.
    pub fn memory_report(&self, index: &Index) -> MemoryReport {
        let rows = |dram| rows(index, &EngineSettings { dram, ..self.clone() });
        MemoryReport::new(self.dram, rows)
    }
}

fn rows(index: &Index, settings: &EngineSettings) -> Vec<MemoryUse> {
    let sizes = ResidentSizes::of(index);
    let mut rows = vec![MemoryUse::new("program", PROGRAM_BYTES, None)];
    rows.extend(sizes.rows(&settings.metadata_location()));
    let mut add = |what, bytes, region| rows.push(MemoryUse::new(what, bytes, region));
    let cache = settings.cache_bytes(index);
    add("cache", cache, (!settings.cache_in_budget).then(|| settings.region.to_string()));
    add("cache metadata", settings.page_metadata() * (cache / PAGE), None);
    add("queued queries", queue_bytes(settings.dram), None);
    if settings.growth > 0 {
        add("metadata of later segments", settings.growth, None);
    }
    // Later commits may have more documents.
    let documents = if settings.growth > 0 { u64::MAX } else { index.documents() };
    let (threads, hits) = (settings.threads.max(1) as u64, (settings.hits_max as u64).min(documents));
    let in_flight = settings.in_flight() as u64;
    let evaluation = evaluation_bytes(hits as usize);
    // One more evaluation, reserved for interactive requests.
    add("search threads", threads * (SEARCH_THREAD_BYTES + in_flight * evaluation) + evaluation, None);
    add("plans and lists of running queries", threads * thread_lists_bytes(index, settings), None);
    let results = settings.threads as u64 * (1 + 2 * in_flight);
    let result = ids_bytes(hits).saturating_add(result_bytes(hits));
    add("results", output_bytes(hits).saturating_add(results.saturating_mul(result)), None);
    if settings.previews && index.schema().stored {
        add("previews of hits", PREVIEW_BYTES, None);
    }
    add("index of external ids", sizes.id_index, None);
    let reads = settings.reads();
    let read = READ_STATE_BYTES + READ_CELL_BYTES * READ_PAGES_MAX as u64;
    let engine_threads = ReadEngine::threads(reads, index.disk()) as u64;
    let reader = READ_ENGINE_THREAD_BYTES * engine_threads + read * reads.depth as u64;
    add("readers and reads in flight", settings.threads as u64 * reader, None);
    rows
}
