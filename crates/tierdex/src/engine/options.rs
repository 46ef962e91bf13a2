//! Options of an engine, as its user sets them.

use super::meta_tier::MetaTier;
use crate::limits::DOCUMENTS_MAX;
use std::path::PathBuf;
use tierdex_cache::{PolicyKind, ReadCosts};
use tierdex_io::{ReadKind, RegionKind, Size};

/// Default of [`EngineOptions::hits_max`].
const HITS_MAX_DEFAULT: usize = 1000;

/// Default of [`EngineOptions::threads`]: one for each processor.
pub(super) const THREADS_AUTO: usize = 0;

/// Reads in flight.
const READ_DEPTH_DEFAULT: usize = 32;

/// Default of [`EngineOptions::growth`]: these bytes, and those of the index with dictionaries and skip data
/// on disk.
pub(super) const GROWTH_BYTES_MIN: u64 = 1 << 20;

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
    pub(super) dram: Option<u64>,
    pub(super) cache: Option<(RegionKind, Size)>,
    pub(super) threads: usize,
    pub(super) hits_max: usize,
    pub(super) growth: Option<u64>,
    pub(super) policy: PolicyKind,
    pub(super) read_method: ReadKind,
    pub(super) read_depth: usize,
    pub(super) on_demand: bool,
    pub(super) read_costs: Option<ReadCosts>,
    pub(super) meta_tier: Option<MetaTier>,
    pub(super) previews: bool,
    pub(super) hot_pages: Option<PathBuf>,
    pub(super) other_memory: Vec<(&'static str, u64)>,
}

impl Default for EngineOptions {
    fn default() -> EngineOptions {
        EngineOptions {
            dram: None,
            cache: None,
            threads: THREADS_AUTO,
            hits_max: HITS_MAX_DEFAULT,
            growth: None,
            policy: PolicyKind::S3Fifo,
            read_method: ReadKind::Auto,
            read_depth: READ_DEPTH_DEFAULT,
            on_demand: false,
            read_costs: None,
            meta_tier: None,
            previews: true,
            hot_pages: None,
            other_memory: Vec::new(),
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
        self.cache = Some((region, Size::Bytes(bytes)));
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

    /// Holds the index in a memory region: dictionaries, skip data, posting lists, positions and norms.
    /// Queries then use lists where they are; only ids and stored text of hits are read from disk. In DRAM
    /// the index counts towards the budget. Of later commits, what exceeds [`EngineOptions::growth`] is read
    /// from disk through a small cache.
    ///
    /// ```
    /// use tierdex::{EngineOptions, RegionKind};
    ///
    /// let options = EngineOptions::new().keep_in(RegionKind::Hugetlb);
    /// ```
    #[must_use]
    pub fn keep_in(mut self, region: RegionKind) -> EngineOptions {
        self.meta_tier = Some(MetaTier::Index(region));
        self
    }

    /// Sets the memory region of the cache, and its size, which may be a part of all blocks of document
    /// numbers and frequencies of the first commit.
    #[must_use]
    pub fn cache_size(mut self, region: RegionKind, size: Size) -> EngineOptions {
        self.cache = Some((region, size));
        self
    }

    /// Sets the eviction policy of the cache.
    #[doc(hidden)]
    #[must_use]
    pub fn policy(mut self, policy: PolicyKind) -> EngineOptions {
        self.policy = policy;
        self
    }

    /// Sets the method of reads, and the number of reads in flight of all search threads together. A caller
    /// that evaluates its own request ([`Engine::search`](super::Engine::search)) has up to 16 more.
    #[must_use]
    pub fn reads(mut self, method: ReadKind, depth: usize) -> EngineOptions {
        (self.read_method, self.read_depth) = (method, depth);
        self
    }

    /// For a process that answers one query: loads nothing before a query needs it, and reads through the
    /// page cache of the system, which keeps the pages for the next process. Without a budget only.
    #[must_use]
    pub fn on_demand(mut self) -> EngineOptions {
        self.on_demand = true;
        self.read_costs(ReadCosts::of_gap(0)).meta_tier(MetaTier::Disk)
    }

    /// Sets what reads of the device cost, by which the engine decides which pages it reads together;
    /// measured by default.
    ///
    /// ```
    /// use tierdex::EngineOptions;
    ///
    /// // Nanoseconds of a read of 1, 4, 16 and 64 pages of 4 KiB.
    /// let options = EngineOptions::new().read_costs("20000,21000,39000,131000".parse()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn read_costs(mut self, costs: ReadCosts) -> EngineOptions {
        self.read_costs = Some(costs);
        self
    }

    /// Sets the memory tier of dictionaries, skip data and norms; by default it is chosen for the index.
    #[doc(hidden)]
    #[must_use]
    pub fn meta_tier(mut self, tier: MetaTier) -> EngineOptions {
        self.meta_tier = Some(tier);
        self
    }

    /// Sets a file in which the engine keeps which pages are in its cache, so that the cache is warm soon
    /// after a restart. It is written each minute and when the engine is closed, under another name first.
    /// After a start its pages are read in the background into free memory of the cache, the hottest first,
    /// while no interactive request is evaluated. A file that is missing, damaged, or of another index
    /// changes nothing. Its name has ASCII letters, digits and `.`, `_`, `-`. Any other file of this name is
    /// replaced. Starting fails if the file cannot be written.
    ///
    /// ```
    /// use tierdex::{Engine, EngineOptions, Query, SearchRequest};
    /// # use tierdex::{IndexWriter, Merge, Schema, WriterOptions};
    /// # let temporary = tempfile::tempdir().unwrap();
    /// # let (dir, hot) = (temporary.path().join("index"), temporary.path().join("index.hot"));
    /// # let mut writer = IndexWriter::create(&dir, Schema::default(), WriterOptions::default())?;
    /// # writer.add("1", [("title", "Disks"), ("text", "A solid state disk.")])?;
    /// # writer.commit(Merge::Keep)?;
    ///
    /// let options = EngineOptions::new().dram(30_000_000).hot_pages(&hot);
    /// let engine = Engine::open(&dir, &options)?;
    /// engine.search(SearchRequest::new(Query::parse("disk", engine.snapshot().schema())?))?;
    /// drop(engine);
    /// assert!(hot.exists());
    /// # Ok::<(), tierdex::Error>(())
    /// ```
    #[must_use]
    pub fn hot_pages(mut self, file: impl Into<PathBuf>) -> EngineOptions {
        self.hot_pages = Some(file.into());
        self
    }

    /// Adds memory that another part of the program takes of the budget, such as connections of a server: a
    /// line of the memory report.
    ///
    /// ```
    /// use tierdex::EngineOptions;
    ///
    /// let options = EngineOptions::new().dram(50_000_000).other_memory("connections", 4 << 20);
    /// ```
    #[must_use]
    pub fn other_memory(mut self, what: &'static str, bytes: u64) -> EngineOptions {
        self.other_memory.push((what, bytes));
        self
    }

    /// Sets whether titles and texts of hits will be read, for the memory report; true by default.
    #[must_use]
    pub fn previews(mut self, previews: bool) -> EngineOptions {
        self.previews = previews;
        self
    }
}
