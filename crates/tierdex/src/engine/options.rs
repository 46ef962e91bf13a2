//! Read modes, and memory tiers of dictionaries, skip data and norms.

use super::budget::{ResidentSizes, evaluation};
use super::executor::{Executor, SEGMENTS_MIN};
use crate::error::{Error, Result};
use crate::index::Index;
use std::fmt;
use std::num::NonZero;
use std::str::FromStr;
use std::thread::available_parallelism;
use tierdex_cache::{Cache, Frames, Lookahead, PolicyKind};
use tierdex_io::{EngineOptions, PAGE, RegionKind, Size, available_memory};

/// How postings are read (thesis, chapter 7; the last is ours).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Queries read what they need through the system's page cache.
    Base,
    /// The same; a worker reads ahead into the page cache.
    BasePrefetch,
    /// Queries look into the cache, and read what is not there through the page cache; a worker then brings
    /// it into the cache for later ones.
    Hybrid,
    /// Workers fill the cache through the page cache ahead of the queries, which are answered from the cache
    /// only.
    HybridPrefetch,
    /// Queries read the pages that they need past the page cache, into a cache of pages; while one waits,
    /// its thread goes on with another.
    Direct,
}

impl Mode {
    /// All, in the order of the thesis.
    pub const ALL: [Mode; 5] =
        [Mode::Base, Mode::BasePrefetch, Mode::Hybrid, Mode::HybridPrefetch, Mode::Direct];

    /// Whether it has a postings cache.
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

/// Where terms, skip data and lengths live (thesis, figures 8.1 and 8.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetaTier {
    /// Terms and skip data stay in their files: a look-up reads a page, and a list is fetched together with
    /// its skip data. Lengths, which scoring looks at here and there, are in ordinary memory.
    Disk,
    /// Terms are in ordinary memory; skip data stays in its files.
    Terms,
    /// In ordinary memory.
    Dram,
    /// In such a region.
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

/// Options of an [`super::Executor`] or [`super::Engine`]: read mode, cache, threads and memory budget.
#[derive(Clone, Debug)]
pub struct ExecutorOptions {
    /// How postings are read.
    pub mode: Mode,
    /// The memory of the cache.
    pub region: RegionKind,
    /// How much of it; parts are those of all documents and frequencies of the index.
    pub size: Size,
    /// Whether the cache is a part of `dram`, and not beside it.
    pub within: bool,
    /// Bytes of a segment of the cache; in [`Mode::Direct`] they are pages.
    pub segment: usize,
    /// Eviction policy.
    pub policy: PolicyKind,
    /// How far ahead lists are fetched; [`Mode::BasePrefetch`] takes adaptive for [`PAGES_AHEAD`], and
    /// [`Mode::Direct`] fetches none ahead.
    pub lookahead: Lookahead,
    /// How files are read.
    pub engine: EngineOptions,
    /// Threads that read; in [`Mode::Direct`] those that answer do.
    pub workers: usize,
    /// Threads that answer; [`ExecutorOptions::complete`] chooses for [`THREADS_CHOSEN`].
    pub threads: usize,
    /// Maximum number of hits a query may request, for the memory budget report; enforced if `dram` is set.
    pub hits: usize,
    /// Whether titles and texts of hits are shown ([`Searcher::preview`]): for the report.
    ///
    /// [`Searcher::preview`]: crate::index::Searcher::preview
    pub previews: bool,
    /// Number of lookahead samples to keep, the most recent ones. One is taken whenever a query ends.
    pub samples: usize,
    /// Where terms, skip data and lengths live.
    pub meta: MetaTier,
    /// Memory budget in bytes for everything that is not in a region; `None`: unlimited.
    pub dram: Option<u64>,
    /// Bytes of these for what segments of later commits keep in memory
    /// ([`Engine::refresh`](super::Engine::refresh)), beyond what closed segments released.
    pub growth: u64,
}

/// As many threads as the machine has processors in [`Mode::Direct`], where each reads and answers; one in
/// the other modes, which have workers that read.
pub const THREADS_CHOSEN: usize = 0;

/// Queries that [`Mode::BasePrefetch`] reads ahead for (thesis, section 7.2.2).
pub const PAGES_AHEAD: u64 = 16;

impl Default for ExecutorOptions {
    /// `direct`, with a cache of ordinary memory that all postings fit in, if there is so much.
    fn default() -> ExecutorOptions {
        ExecutorOptions {
            mode: Mode::Direct,
            region: RegionKind::Dram,
            size: Size::BasisPoints(10_000),
            within: false,
            segment: 32 << 10,
            policy: PolicyKind::Lru,
            lookahead: Lookahead::Adaptive,
            engine: EngineOptions { kind: tierdex_io::EngineKind::Auto, depth: 32, direct: true },
            workers: 1,
            threads: 1,
            hits: 1024,
            previews: false,
            samples: 0,
            meta: MetaTier::Dram,
            dram: None,
            growth: 0,
        }
    }
}

/// The cache that is taken without being asked for has at most this part of the memory that is available.
const AVAILABLE_PART: u64 = 4;

/// With a budget and no explicit cache size, dictionaries alone are resident only if at least this many
/// times their size is left for the cache.
const LEFT_FOR_TERMS: u64 = 3;

/// Default cache size without a budget, at most: `CACHE_MAX` bytes, or 1/`CACHE_PART` of all documents and
/// frequencies of the index if that is more.
const CACHE_MAX: u64 = 64 << 20;
const CACHE_PART: u64 = 10;

/// Bytes that evaluations may take together beside their lists, if they are several on a thread: this part
/// of the budget, and no more than this on each thread.
const EVALUATIONS_PART: u64 = 16;
const EVALUATIONS_MAX: u64 = 5 << 19;

/// Evaluations of a thread at the same time, at most.
const IN_FLIGHT_MAX: u64 = 8;

impl ExecutorOptions {
    /// Bytes of a cell of the cache.
    pub(super) fn cell_bytes(&self) -> usize {
        if self.mode == Mode::Direct { PAGE as usize } else { self.segment }
    }

    /// Bytes of memory beside the region for each cell of the cache, at most.
    pub(super) fn cell_metadata(&self) -> u64 {
        let bytes = match self.mode {
            Mode::Direct => Frames::metadata_bytes_max(self.policy),
            _ => Cache::metadata_bytes_max(self.policy),
        };
        bytes as u64
    }

    /// Reads of each thread that are on their way, at most, in [`Mode::Direct`]; of each worker in other
    /// modes.
    pub(super) fn depth(&self) -> usize {
        match self.mode {
            Mode::Direct => self.engine.depth.div_ceil(self.threads.max(1)),
            _ => self.engine.depth,
        }
    }

    /// Evaluations of a thread at the same time, at most.
    pub(super) fn in_flight(&self) -> usize {
        match self.mode {
            Mode::Direct => {
                let part =
                    self.dram.map_or(u64::MAX, |dram| dram / EVALUATIONS_PART / self.threads.max(1) as u64);
                (part.min(EVALUATIONS_MAX) / evaluation(self.hits)).clamp(1, IN_FLIGHT_MAX) as usize
            }
            _ => 1,
        }
    }

    /// Chooses the number of threads, where it is [`THREADS_CHOSEN`].
    pub(super) fn with_threads(self) -> ExecutorOptions {
        let threads = match (self.threads, self.mode) {
            (THREADS_CHOSEN, Mode::Direct) => available_parallelism().map_or(1, NonZero::get),
            (THREADS_CHOSEN, _) => 1,
            (threads, _) => threads,
        };
        ExecutorOptions { threads, ..self }
    }

    /// Chooses what was left open, from the index and the machine:
    ///
    /// 1. Terms, skip data and lengths are in ordinary memory if they fit into the budget and leave as much
    ///    of it for the cache as they take, or, where there is no budget, into a quarter of what is
    ///    available. Else terms alone are, if they leave three times as much, or fit into that quarter; else
    ///    nothing is. `meta` says otherwise.
    /// 2. The cache is of ordinary memory. With a budget it takes what all else leaves of it; without one 64
    ///    MiB, or a tenth of all documents and frequencies if that is more, but no more than these and than
    ///    a quarter of what is available. `cache` says otherwise; then it is beside the budget.
    /// 3. Threads, where they are [`THREADS_CHOSEN`].
    ///
    /// `self` says all else.
    pub fn complete(
        self,
        index: &Index,
        cache: Option<(RegionKind, Size)>,
        meta: Option<MetaTier>,
    ) -> ExecutorOptions {
        let quarter = available_memory().unwrap_or(u64::MAX) / AVAILABLE_PART;
        let asked = cache.is_some();
        let (region, size) = cache.unwrap_or((RegionKind::Dram, Size::Bytes(0)));
        let mut options = ExecutorOptions { region, size, meta: MetaTier::Dram, ..self.with_threads() };
        let smallest = SEGMENTS_MIN * options.cell_bytes() as u64;
        let left = |options: &ExecutorOptions| {
            let needed = Executor::memory_report(index, options).needed();
            options.dram.map_or(Some(quarter), |dram| dram.checked_sub(needed))
        };
        let sizes = ResidentSizes::of(index);
        let tiers = [(MetaTier::Dram, sizes.all()), (MetaTier::Terms, sizes.terms)];
        let fits = |(tier, bytes): &(MetaTier, u64)| {
            let options = ExecutorOptions { meta: tier.clone(), ..options.clone() };
            match options.dram {
                None => *bytes <= quarter,
                Some(_) if asked => left(&options).is_some(),
                Some(_) => {
                    let part = if *tier == MetaTier::Terms { LEFT_FOR_TERMS } else { 1 };
                    left(&options).is_some_and(|left| left >= smallest.max(part * *bytes))
                }
            }
        };
        let chosen = || tiers.into_iter().find(fits).map_or(MetaTier::Disk, |(tier, _)| tier);
        options.meta = meta.unwrap_or_else(chosen);
        if !asked && options.mode.has_cache() {
            let postings = index.postings_bytes();
            let most = match options.dram {
                None => postings.min(CACHE_MAX.max(postings / CACHE_PART)),
                // Of its metadata too.
                Some(_) => postings,
            };
            let (segment, metadata) = (options.cell_bytes() as u64, options.cell_metadata());
            let room = left(&options).unwrap_or(0) / (segment + metadata) * segment;
            let bytes = most.next_multiple_of(segment).min(room).max(smallest);
            (options.size, options.within) = (Size::Bytes(bytes), true);
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for mode in Mode::ALL {
            assert_eq!(mode.to_string().parse::<Mode>().unwrap(), mode);
        }
        for tier in ["disk", "terms", "dram", "hugetlb", "numa:1", "file:/dev/shm/x"] {
            assert_eq!(tier.parse::<MetaTier>().unwrap().to_string(), tier);
        }
        assert!("".parse::<Mode>().is_err() && "ssd".parse::<MetaTier>().is_err());
    }
}
