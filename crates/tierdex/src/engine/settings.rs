//! The settings of an engine: [`EngineOptions`](super::EngineOptions) with a value for each choice that
//! depends on the index and the machine.

use super::meta_tier::{MetaTier, MetadataLocation};
use super::part_sizes::HOT_PAGE_BYTES;
use crate::index::Index;
use std::{fmt, path::PathBuf};
use tierdex_cache::{PageCache, PolicyKind, ReadCosts};
use tierdex_io::{PAGE, ReadKind, ReadOptions, RegionKind, Size};

/// Bytes of a cache, at least.
pub(super) const CACHE_BYTES_MIN: u64 = 2 * PAGE;

/// Concurrent evaluations of a thread, at most.
const IN_FLIGHT_MAX: usize = 8;

/// Reads in flight of a caller that evaluates its own request, at most. Requests alone, 5% and 20% of the
/// postings cached: with 32 as fast, for twice the memory; with 8 at 0.90 to 0.98 of the speed with 32.
const CALLER_READ_DEPTH: usize = 16;

/// Reads of hot pages in flight: few, as queries read at the same time.
const HOT_READ_DEPTH: usize = 4;

/// Concrete values of all options.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// Memory region of the cache.
    pub region: RegionKind,
    /// Size of the cache. A relative size is a part of all blocks of document numbers and frequencies.
    pub cache_size: Size,
    /// Whether the cache counts towards `dram`.
    pub cache_in_budget: bool,
    /// Eviction policy.
    pub policy: PolicyKind,
    /// Interface of reads.
    pub read_method: ReadKind,
    /// Reads in flight, of all threads together.
    pub read_depth: usize,
    /// Whether nothing is loaded before a query needs it, and reads go through the page cache of the system.
    pub on_demand: bool,
    /// What reads of the device cost; measured if `None`.
    pub read_costs: Option<ReadCosts>,
    /// Search threads.
    pub threads: usize,
    /// Maximum number of hits of a query, for the memory report; enforced if `dram` is set.
    pub hits_max: usize,
    /// Whether titles and texts of hits will be read, for the memory report.
    pub previews: bool,
    /// Memory tier of dictionaries, skip data and norms.
    pub meta_tier: MetaTier,
    /// Memory budget in bytes for everything that is not in a region; `None`: unlimited.
    pub dram: Option<u64>,
    /// Bytes of the budget for the resident metadata of segments of later commits, beyond what closed
    /// segments released.
    pub growth: u64,
    /// The file of hot pages.
    pub hot_pages: Option<PathBuf>,
    /// Memory of the rest of the program, by part.
    pub other_memory: Vec<(&'static str, u64)>,
}

impl EngineSettings {
    /// Size of the cache in bytes. A relative size is at least [`CACHE_BYTES_MIN`].
    pub(super) fn cache_bytes(&self, index: &Index) -> u64 {
        let bytes = self.cache_size.of(index.postings_bytes());
        match self.cache_size {
            Size::BasisPoints(_) => bytes.max(CACHE_BYTES_MIN),
            Size::Bytes(_) => bytes,
        }
    }

    /// Bytes of DRAM outside the region for each page of the cache, at most.
    pub(super) fn page_metadata(&self) -> u64 {
        let hot_page = if self.hot_pages.is_some() { HOT_PAGE_BYTES } else { 0 };
        PageCache::metadata_bytes_max(self.policy) as u64 + hot_page
    }

    /// Location of dictionaries, skip data and norms.
    pub fn metadata_location(&self) -> MetadataLocation {
        MetadataLocation::of(self.meta_tier.clone(), self.cache_region())
    }

    /// The region of the cache, if it is not in the budget of DRAM.
    pub(super) fn cache_region(&self) -> Option<&RegionKind> {
        (!self.cache_in_budget).then_some(&self.region)
    }

    /// Interface and depth of the reads of a search thread.
    pub(super) fn reads(&self) -> ReadOptions {
        let depth = self.read_depth.div_ceil(self.threads.max(1));
        ReadOptions { kind: self.read_method, depth, direct: !self.on_demand }
    }

    /// Interface and depth of the reads of a caller that evaluates its own request.
    pub(super) fn caller_reads(&self) -> ReadOptions {
        let reads = self.reads();
        ReadOptions { depth: reads.depth.min(CALLER_READ_DEPTH), ..reads }
    }

    /// Interface and depth of the reads of hot pages.
    pub(super) fn hot_reads(&self) -> ReadOptions {
        ReadOptions { depth: HOT_READ_DEPTH, ..self.reads() }
    }

    /// Concurrent evaluations of a thread, at most.
    pub(super) fn in_flight(&self) -> usize {
        if self.on_demand { 1 } else { IN_FLIGHT_MAX }
    }
}

impl fmt::Display for EngineSettings {
    /// Memory tiers and cache.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, ", self.metadata_location())?;
        write!(f, "cache {}:{}, policy {}", self.region, self.cache_size, self.policy)
    }
}
