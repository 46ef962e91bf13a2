//! The memory budget: the resident parts of an engine, and the sizes of its memory pool, computed before any
//! of it is allocated.

use super::memory_report::{MemoryReport, MemoryUse};
use super::part_sizes::{
    HOT_PAGE_BYTES, HOT_THREAD_BYTES, PREVIEW_BYTES, PROGRAM_BYTES, READ_CELL_BYTES, READ_STATE_BYTES,
    READ_THREAD_BYTES, RETAINED_BYTES, SEARCH_THREAD_BYTES, STACK_BYTES, hits_bytes, ordinary_lists_bytes,
    ordinary_plan_bytes, output_bytes, result_with_ids_bytes,
};
use super::pool::{PoolLimits, PoolSizes, PoolUse};
use super::resident_sizes::ResidentSizes;
use super::settings::{CACHE_BYTES_MIN, EngineSettings};
use crate::index::{Index, KEPT_PREFIXES_BYTES};
use crate::schema::Stored;
use tierdex_cache::{PageCache, READ_PAGES_MAX};
use tierdex_io::{PAGE, ReadOptions, ReadQueue};

/// Requests of each priority have 1/`REQUESTS_DIVISOR` of the pool, so that with 32 MiB a query of 1,024
/// terms is accepted, and at least the largest result and `REQUESTS_BYTES_MIN`. Without a budget they have
/// `REQUESTS_BYTES_UNLIMITED`.
const REQUESTS_DIVISOR: u64 = 44;
const REQUESTS_BYTES_MIN: u64 = 64 << 10;
const REQUESTS_BYTES_UNLIMITED: u64 = 16 << 20;

/// The cache has at least 5/7 of the pool. Less, and queries of more terms are answered, but each such query
/// evicts pages that others need. With 45 MiB and 4.4 million documents, 1,024 terms of medium length still
/// fit.
const CACHE_SEVENTHS_MIN: u64 = 5;

/// Prefixes of recent queries are kept in 1/`PREFIXES_DIVISOR` of the budget, and at most in
/// `KEPT_PREFIXES_BYTES`; in nothing if that is too little for the sets of `PREFIXES_MIN` prefixes.
const PREFIXES_DIVISOR: u64 = 64;
const PREFIXES_MIN: u64 = 16;

impl EngineSettings {
    /// The memory of an engine with these settings, by part.
    pub fn memory_report(&self, index: &Index) -> MemoryReport {
        let parts = |dram| {
            let settings = EngineSettings { dram, ..self.clone() };
            let sizes = settings.pool_sizes(index);
            let mut rows = settings.resident_rows(index);
            let minimum = |kind: PoolUse| sizes.of(kind).minimum;
            let later = minimum(PoolUse::Metadata) - settings.metadata_bytes(index);
            for kind in PoolUse::ALL {
                let bytes = if kind == PoolUse::Metadata { later } else { minimum(kind) };
                rows.push(MemoryUse::new(kind.name(), bytes, None));
            }
            let reserved: u64 = sizes.limits.iter().map(|limits| limits.minimum).sum();
            let cache = match sizes.total {
                Some(total) if settings.cache_in_budget => {
                    total.saturating_sub(reserved).clamp(sizes.cache.minimum, sizes.cache.maximum)
                }
                _ => settings.cache_bytes(index),
            };
            let region = (!settings.cache_in_budget).then(|| settings.region.to_string());
            rows.push(MemoryUse::new("cache", cache, region));
            rows
        };
        let cache = self.pool_sizes(index).cache;
        MemoryReport::new(self.dram, parts).with_cache(cache.minimum, cache.maximum)
    }

    /// The sizes of the memory pool.
    pub(super) fn pool_sizes(&self, index: &Index) -> PoolSizes {
        let (metadata, hits) = (self.metadata_bytes(index), self.hits_max(index));
        let resident: u64 = self.resident_rows(index).iter().filter_map(MemoryUse::dram_bytes).sum();
        let left = self.dram.unwrap_or(0).saturating_sub(resident);
        let requests = (REQUESTS_BYTES_MIN + result_with_ids_bytes(hits)).max(left / REQUESTS_DIVISOR);
        let previews =
            if self.previews && index.schema().stored != Stored::Nothing { PREVIEW_BYTES } else { 0 };
        // Beside its output, the result belongs to the caller.
        let output = output_bytes(hits).saturating_add(result_with_ids_bytes(hits));
        let skips = self.meta_tier.keeps_skips() && self.growth == 0;
        let ordinary = ordinary_plan_bytes(index) + ordinary_lists_bytes(index, skips) + hits_bytes(hits);
        let mut limits = [PoolLimits::default(); PoolUse::ALL.len()];
        limits[PoolUse::Interactive as usize] = PoolLimits::fixed(requests);
        limits[PoolUse::Batches as usize] = PoolLimits::fixed(requests);
        limits[PoolUse::Output as usize] = PoolLimits::fixed(output.saturating_add(previews));
        limits[PoolUse::Metadata as usize] = PoolLimits::fixed(metadata + self.growth);
        limits[PoolUse::Evaluations as usize].minimum = ordinary;
        if self.dram.is_none() {
            limits.iter_mut().for_each(|limits| limits.maximum = u64::MAX);
            limits[PoolUse::Interactive as usize].maximum = requests.max(REQUESTS_BYTES_UNLIMITED);
            limits[PoolUse::Batches as usize].maximum = requests.max(REQUESTS_BYTES_UNLIMITED);
            return PoolSizes { total: None, limits, cache: PoolLimits::default() };
        }
        let minimums = limits.iter().map(|limits| limits.minimum).fold(0, u64::saturating_add);
        let cache = self.pool_cache(index, left, minimums - metadata);
        let others = minimums - ordinary + cache.minimum;
        limits[PoolUse::Evaluations as usize].maximum =
            (left + metadata).saturating_sub(others).max(ordinary);
        PoolSizes { total: Some(left + metadata), limits, cache }
    }

    /// The cache, if it is a part of the pool: at least its share, but no more than the minimums of the other
    /// kinds leave, and at most its size.
    fn pool_cache(&self, index: &Index, left: u64, minimums: u64) -> PoolLimits {
        if !self.cache_in_budget {
            return PoolLimits::default();
        }
        let maximum = self.cache_bytes(index);
        let share = left / 7 * CACHE_SEVENTHS_MIN;
        let minimum = share.min(left.saturating_sub(minimums)).max(CACHE_BYTES_MIN).min(maximum);
        PoolLimits { minimum: minimum / PAGE * PAGE, maximum }
    }

    /// Bytes of the largest cache, if it is a part of the pool and these settings have none: what the
    /// resident parts leave, as far as its own metadata fits beside all minimums.
    pub(super) fn cache_bytes_left(&self, index: &Index) -> u64 {
        let sizes = self.pool_sizes(index);
        let Some(total) = sizes.total else { return u64::MAX };
        let minimums =
            sizes.limits.iter().map(|limits| limits.minimum).fold(CACHE_BYTES_MIN, u64::saturating_add);
        let all = total.saturating_sub(self.metadata_bytes(index)) / (PAGE + self.page_metadata());
        let beside_minimums = total.saturating_sub(minimums) / self.page_metadata();
        all.min(beside_minimums) * PAGE
    }

    /// Bytes of the prefixes of recent queries that are kept.
    pub(super) fn kept_prefixes_bytes(&self, index: &Index) -> u64 {
        let sets_min = PREFIXES_MIN * (PAGE + index.documents() / 8);
        match self.dram {
            _ if self.on_demand => 0,
            None => KEPT_PREFIXES_BYTES.max(sets_min),
            Some(dram) => Some(KEPT_PREFIXES_BYTES.min(dram / PREFIXES_DIVISOR))
                .filter(|bytes| *bytes >= sets_min)
                .unwrap_or(0),
        }
    }

    /// Bytes of DRAM for the metadata of the first commit.
    fn metadata_bytes(&self, index: &Index) -> u64 {
        ResidentSizes::of(index).in_dram(&self.metadata_location())
    }

    /// Hits of a request, at most. Later commits may have more documents.
    fn hits_max(&self, index: &Index) -> u64 {
        let documents = if self.growth > 0 { u64::MAX } else { index.documents() };
        (self.hits_max as u64).min(documents)
    }

    /// What is allocated for as long as the engine runs.
    fn resident_rows(&self, index: &Index) -> Vec<MemoryUse> {
        let sizes = ResidentSizes::of(index);
        let mut rows = vec![MemoryUse::new("program", PROGRAM_BYTES, None)];
        rows.extend(self.other_memory.iter().map(|(what, bytes)| MemoryUse::new(what, *bytes, None)));
        rows.extend(sizes.rows(&self.metadata_location()));
        let mut add = |what, bytes| rows.push(MemoryUse::new(what, bytes, None));
        add("indexes of ids and stored documents", sizes.document_index);
        if sizes.deletes > 0 {
            add("deleted documents and their statistics", sizes.deletes);
        }
        let pages = self.cache_bytes(index) / PAGE;
        add("cache metadata", PageCache::metadata_bytes_max(self.policy) as u64 * pages);
        add("prefixes of recent queries", self.kept_prefixes_bytes(index));
        let threads = self.threads.max(1) as u64;
        let stacks = STACK_BYTES * (self.in_flight() as u64 + 1);
        let thread = SEARCH_THREAD_BYTES + RETAINED_BYTES as u64 + stacks;
        // A caller that evaluates its own request has one stack.
        add("search threads", threads * thread + STACK_BYTES);
        let reader = |reads: ReadOptions| {
            let read = READ_STATE_BYTES + READ_CELL_BYTES * READ_PAGES_MAX as u64;
            let read_threads = ReadQueue::threads(reads, index.disk()) as u64;
            (READ_THREAD_BYTES * read_threads).saturating_add(read.saturating_mul(reads.depth as u64))
        };
        let readers = threads.saturating_mul(reader(self.reads()));
        add("readers and reads in flight", readers.saturating_add(reader(self.caller_reads())));
        if self.hot_pages.is_some() {
            add("hot pages", HOT_PAGE_BYTES * pages + HOT_THREAD_BYTES + reader(self.hot_reads()));
        }
        rows
    }
}
