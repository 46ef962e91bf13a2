//! Public options of an engine.

use super::options::{ExecutorOptions, MetaTier, Mode, THREADS_AUTO};
use super::resident_sizes::ResidentSizes;
use crate::index::Index;
use crate::limits::DOCUMENTS_MAX;
use tierdex_io::{RegionKind, Size};

/// Default of [`EngineOptions::hits_max`].
const HITS_MAX_DEFAULT: usize = 1000;

/// Default of [`EngineOptions::growth`]: these bytes, and those of the index with dictionaries and skip data
/// on disk.
const GROWTH_BYTES_MIN: u64 = 1 << 20;

/// Larger values of options are reduced to these: no machine has more.
const GROWTH_BYTES_MAX: u64 = 1 << 50;
const THREADS_MAX: usize = 4096;

/// Memory, cache and threads of an [`Engine`](super::Engine).
///
/// ```
/// use tierdex::EngineOptions;
///
/// let options = EngineOptions::new().dram(50_000_000).threads(2);
/// ```
#[derive(Clone, Debug)]
pub struct EngineOptions {
    dram: Option<u64>,
    cache: Option<(RegionKind, u64)>,
    threads: usize,
    hits_max: usize,
    growth: Option<u64>,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            dram: None,
            cache: None,
            threads: THREADS_AUTO,
            hits_max: HITS_MAX_DEFAULT,
            growth: None,
        }
    }
}

impl EngineOptions {
    /// No memory budget, a cache of 64 MiB or a tenth of the postings, a thread for each processor.
    pub fn new() -> EngineOptions {
        EngineOptions::default()
    }

    /// Sets the memory budget of the process in bytes: dictionaries, skip data, cache, evaluations. The
    /// cache takes what the rest leaves. Without a budget the cache has 64 MiB, or a tenth of the postings
    /// if that is more, but at most a quarter of the available memory.
    #[must_use]
    pub fn dram(mut self, bytes: u64) -> EngineOptions {
        self.dram = Some(bytes);
        self
    }

    /// Sets the memory region of the cache and its size in bytes. A region that is given in this way is not
    /// part of the memory budget.
    #[must_use]
    pub fn cache(mut self, region: RegionKind, bytes: u64) -> EngineOptions {
        self.cache = Some((region, bytes));
        self
    }

    /// Sets the number of threads that evaluate requests; 0, the default, is one for each processor.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> EngineOptions {
        self.threads = threads.min(THREADS_MAX);
        self
    }

    /// Sets the number of hits that a request may ask for; 1,000 by default. Memory is reserved for them,
    /// and with a budget a request for more is rejected.
    #[must_use]
    pub fn hits_max(mut self, hits: usize) -> EngineOptions {
        self.hits_max = hits.min(DOCUMENTS_MAX as usize);
        self
    }

    /// Reserves bytes of the budget for the dictionaries, skip data and norms of segments that later commits
    /// add ([`Engine::refresh`](super::Engine::refresh)). By default 1 MiB and the bytes that the index needs
    /// if dictionaries and skip data are on disk: enough for a commit that merges all segments. Metadata of
    /// new segments that exceeds the reserve stays on disk.
    #[must_use]
    pub fn growth(mut self, bytes: u64) -> EngineOptions {
        self.growth = Some(bytes.min(GROWTH_BYTES_MAX));
        self
    }

    /// The options of an executor, with a memory tier and a cache size chosen for this index.
    pub(super) fn resolve(&self, index: &Index) -> ExecutorOptions {
        let cache = self.cache.clone().map(|(region, bytes)| (region, Size::Bytes(bytes)));
        let options = ExecutorOptions {
            mode: Mode::Direct,
            threads: self.threads,
            hits_max: self.hits_max,
            previews: true,
            dram: self.dram,
            growth: 0,
            ..ExecutorOptions::default()
        };
        let growth = || {
            let (region, cache_in_budget) = match &cache {
                Some((region, _)) => (region.clone(), false),
                None => (RegionKind::Dram, true),
            };
            let least =
                ExecutorOptions { region, cache_in_budget, meta_tier: MetaTier::Disk, ..options.clone() };
            GROWTH_BYTES_MIN + ResidentSizes::of(index).in_dram(&least.metadata_location())
        };
        let growth = self.growth.or(self.dram.map(|_| growth())).unwrap_or(0);
        ExecutorOptions { growth, ..options }.complete(index, cache, None)
    }
}
