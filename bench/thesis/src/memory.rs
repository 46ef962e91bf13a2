//! The memory budget of a [`ListExecutor`](super::ListExecutor): the size of each of its parts, computed
//! before any of it is allocated.

use crate::cache::{ListCache, LookaheadSample, READ_BYTES_MAX};
use crate::delivery::RESULTS_AHEAD_PER_THREAD;
use crate::options::{ListOptions, Mode};
use tierdex::internal::engine::part_sizes::{
    PROGRAM_BYTES, READ_CELL_BYTES, READ_STATE_BYTES, READ_THREAD_BYTES, RETAINED_BYTES, SEARCH_THREAD_BYTES,
    STACK_BYTES, hits_bytes, ordinary_lists_bytes, ordinary_plan_bytes, output_bytes, result_bytes,
};
use tierdex::{Index, MemoryReport, MemoryUse, internal::engine::ResidentSizes};
use tierdex_io::ReadQueue;

/// A list of a planned query: the byte ranges that are read of it.
pub(crate) const LIST_REQUEST_BYTES: usize = 256;

/// Terms of a query that is always accepted, which the engine has memory for too.
const ALWAYS_ACCEPTED_TERMS: usize = 32;

/// Memory of the plans and posting lists of running queries: 1/`LISTS_DIVISOR` of the budget, at most
/// `LISTS_BYTES_MAX` a thread unless an ordinary query needs more, plus the unallocated rest of the budget. A
/// query that needs more is rejected.
const LISTS_DIVISOR: u64 = 16;
const LISTS_BYTES_MAX: u64 = 256 << 20;

/// The reader thread of the cache of lists: its stack and its queues.
const READER_THREAD_BYTES: u64 = 256 << 10;

/// Memory of planned queries: 1/`PLANS_DIVISOR` of the budget, at most `PLANS_BYTES_MAX`, but at least
/// `PLANS_BYTES_MIN` and enough for two queries that are always accepted; `PLANS_BYTES_UNLIMITED` without a
/// budget. Half of it is reserved for the last query planned; with a budget, a query that needs more than
/// that half is rejected.
const PLANS_BYTES_MIN: u64 = 128 << 10;
const PLANS_BYTES_MAX: u64 = 64 << 20;
const PLANS_DIVISOR: u64 = 16;
const PLANS_BYTES_UNLIMITED: u64 = 16 << 20;

/// Bytes that the queue of planned queries may take.
pub(crate) fn plans_bytes(index: &Index, dram: Option<u64>) -> u64 {
    let share = dram.map_or(PLANS_BYTES_UNLIMITED, |dram| (dram / PLANS_DIVISOR).min(PLANS_BYTES_MAX));
    share.max(PLANS_BYTES_MIN).max(2 * plan_bytes_min(index))
}

/// Bytes of the plan of a query that is always accepted, and of its lists.
fn plan_bytes_min(index: &Index) -> u64 {
    ordinary_plan_bytes(index) + (ALWAYS_ACCEPTED_TERMS * LIST_REQUEST_BYTES * index.segments().len()) as u64
}

/// Bytes for the plan and the lists of the running query of a thread, without the unallocated rest of the
/// budget.
pub(crate) fn thread_lists_bytes(index: &Index, options: &ListOptions) -> u64 {
    let least = plan_bytes_min(index) + ordinary_lists_bytes(index, options.meta_tier.keeps_skips());
    let share = options.dram.map_or(0, |dram| dram / LISTS_DIVISOR / options.threads.max(1) as u64);
    share.min(LISTS_BYTES_MAX).max(least)
}

/// The memory of an executor with `options`, by part.
pub fn memory_report(index: &Index, options: &ListOptions) -> MemoryReport {
    MemoryReport::new(options.dram, |dram| memory_rows(index, &ListOptions { dram, ..options.clone() }))
}

fn memory_rows(index: &Index, options: &ListOptions) -> Vec<MemoryUse> {
    let sizes = ResidentSizes::of(index);
    let mut rows = vec![MemoryUse::new("program", PROGRAM_BYTES, None)];
    rows.extend(sizes.rows(&options.metadata_location()));
    let mut add = |what, bytes, region| rows.push(MemoryUse::new(what, bytes, region));
    if options.reads_mapped() {
        // A bit for each checksum of four bytes.
        add("verified pages", sizes.checksums / 32, None);
    }
    if options.mode.has_cache() {
        let cache = options.cache_bytes(index);
        add("cache", cache, Some(options.region.to_string()));
        let cells = cache / options.list_cell_bytes as u64;
        add("cache metadata", ListCache::metadata_bytes_max() as u64 * cells, None);
    }
    add("queued queries", plans_bytes(index, options.dram), None);
    let threads = options.threads.max(1) as u64;
    let hits = (options.hits_max as u64).min(index.documents());
    let thread = SEARCH_THREAD_BYTES + STACK_BYTES + RETAINED_BYTES as u64;
    add("search threads", threads.saturating_mul(hits_bytes(hits).saturating_add(thread)), None);
    add("plans and lists of running queries", threads * thread_lists_bytes(index, options), None);
    let results = threads * (1 + RESULTS_AHEAD_PER_THREAD as u64);
    add("results", output_bytes(hits).saturating_add(results.saturating_mul(result_bytes(hits))), None);
    if options.lookahead_samples > 0 && options.mode != Mode::Base {
        // Twice, because reading the samples copies them.
        let samples = 2 * size_of::<LookaheadSample>() * options.lookahead_samples;
        add("lookahead samples", samples as u64, None);
    }
    add("indexes of ids and stored documents", sizes.document_index, None);
    if options.mode != Mode::Base {
        add("readers and reads in flight", readers_bytes(index, options), None);
    }
    rows
}

fn readers_bytes(index: &Index, options: &ListOptions) -> u64 {
    let reads = options.reads();
    let threads = if options.mode.has_cache() { ReadQueue::threads(reads, index.disk()) } else { 0 };
    let cells = READ_BYTES_MAX / options.list_cell_bytes as u64;
    let read = READ_STATE_BYTES + READ_CELL_BYTES * cells;
    READER_THREAD_BYTES + READ_THREAD_BYTES * threads as u64 + read * reads.depth as u64
}
