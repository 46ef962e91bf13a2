//! Defaults that depend on the index and the machine: memory tier of the metadata, cache size, threads.

use super::budget::MemoryReport;
use super::options::{CELLS_MIN, ExecutorOptions, MetaTier};
use super::resident_sizes::ResidentSizes;
use crate::index::Index;
use tierdex_io::{RegionKind, Size, available_memory};

/// Without a budget, resident metadata and the default cache each take at most 1/`AVAILABLE_DIVISOR` of the
/// available memory.
const AVAILABLE_DIVISOR: u64 = 4;

/// With a budget and no explicit cache size, dictionaries alone are resident only if at least this many
/// times their size is left for the cache.
const TERMS_CACHE_FACTOR: u64 = 3;

/// Default cache size without a budget, at most: `CACHE_BYTES_MAX`, or 1/`CACHE_DIVISOR` of all documents
/// and frequencies of the index if that is more.
const CACHE_BYTES_MAX: u64 = 64 << 20;
const CACHE_DIVISOR: u64 = 10;

impl ExecutorOptions {
    /// Chooses tier, cache size and threads:
    ///
    /// 1. Dictionaries, skip data and norms are in DRAM if they fit into the budget and leave as much of it
    ///    for the cache as they take; without a budget, if they fit into a quarter of the available memory.
    ///    Else dictionaries alone are in DRAM if they leave three times their size, or fit into that
    ///    quarter; else they are on disk. `meta_tier` overrides this.
    /// 2. The cache is in DRAM. With a budget it takes the rest of the budget; without one 64 MiB, or a
    ///    tenth of all documents and frequencies if that is more, but at most all of these and at most a
    ///    quarter of the available memory. `cache` overrides this; such a cache does not count towards the
    ///    budget.
    /// 3. [`THREADS_AUTO`](super::THREADS_AUTO) is replaced by a number of threads.
    ///
    /// All other options are those of `self`.
    pub fn complete(
        self,
        index: &Index,
        cache: Option<(RegionKind, Size)>,
        meta_tier: Option<MetaTier>,
    ) -> ExecutorOptions {
        let quarter = available_memory().unwrap_or(u64::MAX) / AVAILABLE_DIVISOR;
        let has_explicit_cache = cache.is_some();
        let (region, size) = cache.unwrap_or((RegionKind::Dram, Size::Bytes(0)));
        let mut options = ExecutorOptions { region, size, meta_tier: MetaTier::Dram, ..self.with_threads() };
        let cache_bytes_min = CELLS_MIN * options.cell_bytes() as u64;
        let left = |options: &ExecutorOptions| {
            let needed = MemoryReport::of(index, options).needed();
            options.dram.map_or(Some(quarter), |dram| dram.checked_sub(needed))
        };
        let sizes = ResidentSizes::of(index);
        let tiers =
            [(MetaTier::Dram, sizes.terms + sizes.skips + sizes.norms), (MetaTier::Terms, sizes.terms)];
        let fits = |(tier, bytes): &(MetaTier, u64)| {
            let options = ExecutorOptions { meta_tier: tier.clone(), ..options.clone() };
            match options.dram {
                None => *bytes <= quarter,
                Some(_) if has_explicit_cache => left(&options).is_some(),
                Some(_) => {
                    let factor = if *tier == MetaTier::Terms { TERMS_CACHE_FACTOR } else { 1 };
                    left(&options).is_some_and(|left| left >= cache_bytes_min.max(factor * *bytes))
                }
            }
        };
        let chosen = || tiers.into_iter().find(fits).map_or(MetaTier::Disk, |(tier, _)| tier);
        options.meta_tier = meta_tier.unwrap_or_else(chosen);
        if !has_explicit_cache && options.mode.has_cache() {
            let postings = index.postings_bytes();
            let wanted = match options.dram {
                None => postings.min(CACHE_BYTES_MAX.max(postings / CACHE_DIVISOR)),
                Some(_) => postings,
            };
            let (cell, metadata) = (options.cell_bytes() as u64, options.cell_metadata());
            let available = left(&options).unwrap_or(0) / (cell + metadata) * cell;
            let bytes = wanted.next_multiple_of(cell).min(available).max(cache_bytes_min);
            (options.size, options.cache_in_budget) = (Size::Bytes(bytes), true);
        }
        options
    }
}
