//! Choices that depend on the index and the machine: memory tier of the metadata, cache size, threads.

use super::meta_tier::{MetaTier, MetadataLocation};
use super::options::{EngineOptions, GROWTH_BYTES_MIN, THREADS_AUTO};
use super::resident_sizes::ResidentSizes;
use super::settings::{CACHE_BYTES_MIN, EngineSettings};
use crate::index::Index;
use std::{num::NonZero, thread::available_parallelism};
use tierdex_io::{PAGE, RegionKind, Size, available_memory};

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

/// Default cache size beside an index that is held in memory, at least: for external ids, and for segments of
/// later commits that are not held. At most it is as large as all ids, or `CACHE_BYTES_MAX`.
const HELD_CACHE_BYTES_MIN: u64 = 1 << 20;

impl EngineOptions {
    /// Chooses tier, cache size and threads:
    ///
    /// 1. Dictionaries, skip data and norms are in DRAM if they fit into the budget and leave as much of it
    ///    for the cache as they take, beside the minimums of all other parts; without a budget, if they fit
    ///    into a quarter of the available memory. Else dictionaries alone are in DRAM if they leave three
    ///    times their size, or fit into that quarter; else they are on disk. [`EngineOptions::meta_tier`]
    ///    overrides this.
    /// 2. The cache is in DRAM. With a budget it takes the rest of the budget; without one 64 MiB, or a
    ///    tenth of all documents and frequencies if that is more, but at most all of these and at most a
    ///    quarter of the available memory. [`EngineOptions::cache`] overrides this; such a cache does not
    ///    count towards the budget. Beside an index that is held in memory it has
    ///    1 MiB, or as much as all ids, but at most 64 MiB.
    /// 3. There is a thread for each processor, unless [`EngineOptions::threads`] is set.
    pub fn resolve(&self, index: &Index) -> EngineSettings {
        let quarter = available_memory().unwrap_or(u64::MAX) / AVAILABLE_DIVISOR;
        let mut settings = self.with_dram_tier(index);
        settings.meta_tier = self.meta_tier.clone().unwrap_or_else(|| self.tier(index, &settings, quarter));
        if self.cache.is_none() {
            settings.cache_size = Size::Bytes(default_cache_bytes(index, &settings, quarter));
            settings.cache_in_budget = true;
        }
        settings
    }

    /// The settings with all metadata in DRAM, and without a cache unless one is given.
    fn with_dram_tier(&self, index: &Index) -> EngineSettings {
        let (region, cache_size) = self.cache.clone().unwrap_or((RegionKind::Dram, Size::Bytes(0)));
        let threads = match self.threads {
            THREADS_AUTO => available_parallelism().map_or(1, NonZero::get),
            threads => threads,
        };
        EngineSettings {
            region,
            cache_size,
            cache_in_budget: false,
            policy: self.policy,
            read_method: self.read_method,
            read_depth: self.read_depth,
            on_demand: self.on_demand,
            read_costs: self.read_costs,
            threads,
            hits_max: self.hits_max,
            previews: self.previews,
            meta_tier: MetaTier::Dram,
            dram: self.dram,
            hot_pages: self.hot_pages.clone(),
            other_memory: self.other_memory.clone(),
            growth: self.growth.unwrap_or_else(|| self.default_growth(index)),
        }
    }

    /// Bytes for commits to an index, if there is a budget.
    pub(super) fn default_growth(&self, index: &Index) -> u64 {
        let cache_region = self.cache.as_ref().map(|(region, _)| region);
        let location = MetadataLocation::of(MetaTier::Disk, cache_region);
        self.dram.map_or(0, |_| GROWTH_BYTES_MIN + ResidentSizes::of(index).in_dram(&location))
    }

    /// The fastest tier whose metadata fits.
    fn tier(&self, index: &Index, settings: &EngineSettings, quarter: u64) -> MetaTier {
        let sizes = ResidentSizes::of(index);
        let tiers =
            [(MetaTier::Dram, sizes.terms + sizes.skips + sizes.norms), (MetaTier::Terms, sizes.terms)];
        let fits = |(tier, bytes): &(MetaTier, u64)| {
            if self.dram.is_none() {
                return *bytes <= quarter;
            }
            let report = EngineSettings { meta_tier: tier.clone(), ..settings.clone() }.memory_report(index);
            let left = self.dram.and_then(|dram| dram.checked_sub(report.needed()));
            let factor = if *tier == MetaTier::Terms { TERMS_CACHE_FACTOR } else { 1 };
            let cache = if self.cache.is_some() { 0 } else { CACHE_BYTES_MIN.max(factor * *bytes) };
            left.is_some_and(|left| left >= cache)
        };
        tiers.into_iter().find(fits).map_or(MetaTier::Disk, |(tier, _)| tier)
    }
}

/// Bytes of all external ids.
fn ids_bytes(index: &Index) -> u64 {
    let payloads = index.segments().iter().map(|segment| segment.ids().file().payload());
    payloads.map(|payload| payload.end - payload.start).sum()
}

fn default_cache_bytes(index: &Index, settings: &EngineSettings, quarter: u64) -> u64 {
    let postings = match settings.meta_tier {
        MetaTier::Index(_) => ids_bytes(index).clamp(HELD_CACHE_BYTES_MIN, CACHE_BYTES_MAX),
        _ => index.postings_bytes(),
    };
    let wanted = match settings.dram {
        None => postings.min(CACHE_BYTES_MAX.max(postings / CACHE_DIVISOR)),
        Some(_) => postings,
    };
    let available = match settings.dram {
        Some(_) => settings.cache_bytes_left(index),
        None => quarter / PAGE * PAGE,
    };
    wanted.next_multiple_of(PAGE).min(available).max(CACHE_BYTES_MIN)
}
