//! Options of an [`Executor`](super::Executor): read mode, cache, threads, memory tier of the metadata.

use crate::error::{Error, Result};
use crate::index::Index;
use std::fmt;
use std::num::NonZero;
use std::str::FromStr;
use std::thread::available_parallelism;
use tierdex_cache::{Cache, Frames, Lookahead, PolicyKind};
use tierdex_io::{EngineKind, EngineOptions, PAGE, RegionKind, Size};

/// How postings are read: four modes of the thesis (chapter 7), and [`Mode::Direct`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Queries read through the page cache of the operating system.
    Base,
    /// As [`Mode::Base`]; a reader thread prefetches posting lists into the page cache.
    BasePrefetch,
    /// Queries look up their lists in the postings cache. On a miss they read through the page cache, and a
    /// reader thread loads the list into the postings cache for later queries.
    Hybrid,
    /// Reader threads prefetch posting lists into the postings cache, through the page cache. Queries read
    /// from the postings cache only.
    HybridPrefetch,
    /// Queries read single pages with direct I/O into a cache of pages. While one waits for a page, its
    /// thread evaluates another.
    Direct,
}

impl Mode {
    /// All modes, in the order of the thesis.
    pub const ALL: [Mode; 5] =
        [Mode::Base, Mode::BasePrefetch, Mode::Hybrid, Mode::HybridPrefetch, Mode::Direct];

    /// Whether the mode has a cache of its own.
    pub fn has_cache(self) -> bool {
        !matches!(self, Mode::Base | Mode::BasePrefetch)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Base => "base",
            Mode::BasePrefetch => "base-prefetch",
            Mode::Hybrid => "hybrid",
            Mode::HybridPrefetch => "hybrid-prefetch",
            Mode::Direct => "direct",
        })
    }
}

impl FromStr for Mode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Mode> {
        let found = Mode::ALL.into_iter().find(|mode| mode.to_string() == text);
        found.ok_or_else(|| {
            let names = "base, base-prefetch, hybrid, hybrid-prefetch or direct";
            Error::Usage(format!("unknown mode `{text}`; expected {names}"))
        })
    }
}

/// Memory tier of dictionaries, skip data, norms and page checksums (thesis, figures 8.1 and 8.2). Norms and
/// checksums are accessed at random for each block, so they are never left on disk; nor are the page indexes
/// of dictionaries, which are with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetaTier {
    /// Dictionaries and skip data are on disk: a term lookup reads a page, and a list is fetched together
    /// with its skip data. Norms and checksums are in a region of the kind of the cache if the cache does not
    /// count towards the budget, else in DRAM.
    Disk,
    /// As [`MetaTier::Disk`], with dictionaries in DRAM.
    Terms,
    /// All of them are in DRAM.
    Dram,
    /// All of them are in a region of this kind.
    Region(RegionKind),
}

impl MetaTier {
    /// Whether skip data is resident.
    pub(super) fn keeps_skips(&self) -> bool {
        !matches!(self, MetaTier::Disk | MetaTier::Terms)
    }
}

impl fmt::Display for MetaTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MetaTier::Disk => f.write_str("disk"),
            MetaTier::Terms => f.write_str("terms"),
            MetaTier::Dram => f.write_str("dram"),
            MetaTier::Region(kind) => kind.fmt(f),
        }
    }
}

impl FromStr for MetaTier {
    type Err = Error;

    fn from_str(text: &str) -> Result<MetaTier> {
        match text {
            "disk" => Ok(MetaTier::Disk),
            "terms" => Ok(MetaTier::Terms),
            "dram" => Ok(MetaTier::Dram),
            other => other.parse().map(MetaTier::Region).map_err(|error: tierdex_io::Error| {
                Error::Usage(format!("{error}; or disk (nothing resident), or terms (dictionaries resident)"))
            }),
        }
    }
}

/// Where the metadata of segments is.
#[derive(Clone, Debug)]
pub(super) struct MetadataLocation {
    pub(super) tier: MetaTier,
    /// The region of norms and page checksums, and of dictionaries and skip data if `tier` is a region;
    /// `None`: DRAM.
    pub(super) region: Option<RegionKind>,
}

/// Options of an [`super::Executor`] or [`super::Engine`]: read mode, cache, threads and memory budget.
#[derive(Clone, Debug)]
pub struct ExecutorOptions {
    /// How postings are read.
    pub mode: Mode,
    /// Memory region of the cache.
    pub region: RegionKind,
    /// Size of the cache. A relative size is a part of all blocks of document numbers and frequencies.
    pub size: Size,
    /// Whether the cache counts towards `dram`.
    pub cache_in_budget: bool,
    /// Bytes of a cell of the postings cache (a cache segment in thesis 7.2). [`Mode::Direct`] ignores it:
    /// its cells are pages.
    pub list_cell_bytes: usize,
    /// Eviction policy.
    pub policy: PolicyKind,
    /// Number of queries ahead for which lists are prefetched. [`Mode::BasePrefetch`] replaces adaptive by
    /// [`QUERIES_AHEAD`]; [`Mode::Direct`] ignores it.
    pub lookahead: Lookahead,
    /// Interface and queue depth of reads. [`Mode::Base`] and [`Mode::BasePrefetch`] read mapped files if it
    /// is [`EngineKind::Mmap`], else by `pread`.
    pub engine: EngineOptions,
    /// Whether the system reads ahead in the files of [`Mode::Base`] and [`Mode::BasePrefetch`].
    pub kernel_readahead: bool,
    /// Pages between two requested pages that [`Mode::Direct`] reads with them, at most; measured if `None`.
    pub gap_pages: Option<u64>,
    /// Reader threads. [`Mode::Direct`] has none: its search threads read.
    pub reader_threads: usize,
    /// Search threads; [`THREADS_AUTO`] chooses by mode.
    pub threads: usize,
    /// Maximum number of hits of a query, for the memory report; enforced if `dram` is set.
    pub hits_max: usize,
    /// Whether titles and texts of hits will be read ([`Searcher::preview`]), for the memory report.
    ///
    /// [`Searcher::preview`]: crate::index::Searcher::preview
    pub previews: bool,
    /// Number of lookahead samples to keep, the most recent ones. One is taken whenever a query ends.
    pub lookahead_samples: usize,
    /// Memory tier of dictionaries, skip data and norms.
    pub meta_tier: MetaTier,
    /// Memory budget in bytes for everything that is not in a region; `None`: unlimited.
    pub dram: Option<u64>,
    /// Bytes of the budget for the resident metadata of segments of later commits
    /// ([`Engine::refresh`](super::Engine::refresh)), beyond what closed segments released.
    pub growth: u64,
}

/// In [`Mode::Direct`] a search thread for each processor; in the other modes, which have reader threads,
/// one.
pub const THREADS_AUTO: usize = 0;

/// Queries that [`Mode::BasePrefetch`] prefetches for (thesis, section 7.2.2).
pub const QUERIES_AHEAD: u64 = 16;

/// Cells of a cache, at least.
pub(super) const CELLS_MIN: u64 = 2;

impl Default for ExecutorOptions {
    /// [`Mode::Direct`], and a cache in DRAM as large as all blocks of document numbers and frequencies.
    fn default() -> ExecutorOptions {
        ExecutorOptions {
            mode: Mode::Direct,
            region: RegionKind::Dram,
            size: Size::BasisPoints(10_000),
            cache_in_budget: false,
            list_cell_bytes: 32 << 10,
            policy: PolicyKind::S3Fifo,
            lookahead: Lookahead::Adaptive,
            engine: EngineOptions { kind: EngineKind::Auto, depth: 32, direct: true },
            kernel_readahead: true,
            gap_pages: None,
            reader_threads: 1,
            threads: 1,
            hits_max: 1024,
            previews: false,
            lookahead_samples: 0,
            meta_tier: MetaTier::Dram,
            dram: None,
            growth: 0,
        }
    }
}

impl ExecutorOptions {
    /// Size of the cache in bytes; 0 in a mode without one. A relative size is at least [`CELLS_MIN`] cells.
    pub(super) fn cache_bytes(&self, index: &Index) -> u64 {
        let bytes = self.size.of(index.postings_bytes());
        match self.size {
            _ if !self.mode.has_cache() => 0,
            Size::BasisPoints(_) => bytes.max(CELLS_MIN * self.cell_bytes() as u64),
            Size::Bytes(_) => bytes,
        }
    }

    /// The kind of region that holds norms and page checksums; `None`: DRAM.
    pub fn metadata_region(&self) -> Option<RegionKind> {
        let cache_is_outside_dram =
            self.mode.has_cache() && !self.cache_in_budget && self.region != RegionKind::Dram;
        match &self.meta_tier {
            MetaTier::Disk | MetaTier::Terms => cache_is_outside_dram.then(|| self.region.clone()),
            MetaTier::Dram => None,
            MetaTier::Region(kind) => Some(kind.clone()),
        }
    }

    /// Whether queries read mapped files.
    pub(super) fn reads_mapped(&self) -> bool {
        !self.mode.has_cache() && self.engine.kind == EngineKind::Mmap
    }

    pub(super) fn metadata_location(&self) -> MetadataLocation {
        MetadataLocation { tier: self.meta_tier.clone(), region: self.metadata_region() }
    }

    /// Bytes of a cell of the cache.
    pub(super) fn cell_bytes(&self) -> usize {
        if self.mode == Mode::Direct { PAGE as usize } else { self.list_cell_bytes }
    }

    /// Bytes of DRAM outside the region for each cell of the cache, at most.
    pub(super) fn cell_metadata(&self) -> u64 {
        let bytes = match self.mode {
            Mode::Direct => Frames::metadata_bytes_max(self.policy),
            _ => Cache::metadata_bytes_max(self.policy),
        };
        bytes as u64
    }

    /// In-flight reads of each search thread, at most, in [`Mode::Direct`]; of each reader thread in other
    /// modes.
    pub(super) fn depth(&self) -> usize {
        match self.mode {
            Mode::Direct => self.engine.depth.div_ceil(self.threads.max(1)),
            _ => self.engine.depth,
        }
    }

    /// Replaces [`THREADS_AUTO`] by a number of threads.
    pub(super) fn with_threads(self) -> ExecutorOptions {
        let threads = match (self.threads, self.mode) {
            (THREADS_AUTO, Mode::Direct) => available_parallelism().map_or(1, NonZero::get),
            (THREADS_AUTO, _) => 1,
            (threads, _) => threads,
        };
        ExecutorOptions { threads, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_to_their_values() {
        for mode in Mode::ALL {
            assert_eq!(mode.to_string().parse::<Mode>().unwrap(), mode);
        }
        for tier in ["disk", "terms", "dram", "hugetlb", "numa:1", "file:/dev/shm/x"] {
            assert_eq!(tier.parse::<MetaTier>().unwrap().to_string(), tier);
        }
        assert!("".parse::<Mode>().is_err() && "ssd".parse::<MetaTier>().is_err());
    }
}
