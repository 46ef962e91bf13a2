//! Several indexes that share one engine: its cache, threads, queue and memory budget. Requests name the
//! index that they search by a snapshot of it.
//!
//! The engine is sized for the largest index. The metadata of the others is counted as that of later segments
//! ([`EngineOptions::growth`](super::EngineOptions::growth)), like that of commits to come.

use super::meta_tier::{MetaTier, MetadataLocation};
use super::options::{EngineOptions, GROWTH_BYTES_MIN};
use super::{attached_index::AttachedIndex, handle::Engine, resident_sizes::ResidentSizes};
use crate::{Result, index::Index};

/// Metadata of attached indexes is in DRAM as a whole if it takes at most this part of the budget.
const ATTACHED_DIVISOR: u64 = 8;

impl Engine {
    /// Attaches another index, which shares the cache, the threads and the budget of this engine. What of it
    /// must be in memory takes of [`EngineOptions::growth`](super::EngineOptions::growth); with a budget its
    /// dictionaries and skip data are read through the cache.
    ///
    /// ```
    /// use tierdex::{Engine, EngineOptions, Index, Query, SearchRequest};
    /// # use tierdex::{IndexWriter, Merge, Schema, WriterOptions};
    /// # let temporary = tempfile::tempdir().unwrap();
    /// # let (mail, files) = (temporary.path().join("mail"), temporary.path().join("files"));
    /// # for dir in [&mail, &files] {
    /// #     let mut writer = IndexWriter::create(dir, Schema::default(), WriterOptions::default())?;
    /// #     writer.add("1", [("text", "A solid state disk.")])?;
    /// #     writer.commit(Merge::Keep)?;
    /// # }
    ///
    /// let engine = Engine::open(&mail, &EngineOptions::new())?;
    /// let files = engine.attach(&Index::open(&files)?)?;
    /// let query = Query::parse("disk", files.snapshot().schema())?;
    /// let hits = engine.search(SearchRequest::new(query).snapshot(files.snapshot()))?;
    /// assert_eq!(hits.ids()?, ["1"]);
    /// # Ok::<(), tierdex::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Engine::refresh`].
    pub fn attach(&self, index: &Index) -> Result<AttachedIndex> {
        let is_whole = self.settings().dram.is_none();
        self.shared().attach(index, is_whole)
    }

    /// Starts an engine for several indexes, which share its cache, threads and budget: there is memory for
    /// the metadata of all, and [`EngineOptions::growth`](super::EngineOptions::growth) is at least its
    /// default. Returns the indexes in their order.
    ///
    /// # Errors
    /// As [`Engine::new`], and [`Error::Usage`](crate::Error::Usage) if there is no index.
    pub fn for_indexes(indexes: &[&Index], options: &EngineOptions) -> Result<(Engine, Vec<AttachedIndex>)> {
        let largest = (0..indexes.len()).max_by_key(|number| indexes[*number].postings_bytes());
        let Some(largest) = largest else {
            return Err(crate::Error::Usage("there is no index".to_string()));
        };
        let mut others = indexes.to_vec();
        let first = others.remove(largest);
        let memory = AttachedMemory::of(&others, options);
        let own = options.growth.unwrap_or(0).max(options.default_growth(first));
        let growth = own.saturating_add(memory.bytes(&others));
        let with_growth = options.dram.map(|_| options.clone().growth(growth));
        let options = with_growth.as_ref().unwrap_or(options);
        let (engine, mut attached) = Engine::start(first, &others, memory.is_whole, options)?;
        attached.insert(largest, engine.index());
        Ok((engine, attached))
    }

    /// The index that the engine was started with.
    pub fn index(&self) -> AttachedIndex {
        self.shared().current.clone()
    }
}

/// The memory for the metadata of the other indexes, and for commits to them.
struct AttachedMemory {
    /// Bytes if dictionaries and skip data are on disk, and if they are in DRAM.
    least: u64,
    whole: u64,
    /// Whether dictionaries, skip data and norms are in DRAM, as far as those of the first index are.
    is_whole: bool,
}

impl AttachedMemory {
    fn of(others: &[&Index], options: &EngineOptions) -> AttachedMemory {
        let cache_region = options.cache.as_ref().map(|(region, _)| region);
        let bytes = |tier: MetaTier| -> u64 {
            let location = MetadataLocation::of(tier, cache_region);
            others.iter().map(|index| ResidentSizes::of(index).in_dram(&location)).sum()
        };
        let (whole, least) = (bytes(MetaTier::Dram), bytes(MetaTier::Disk));
        let is_whole = options.dram.is_none_or(|dram| whole <= dram / ATTACHED_DIVISOR);
        AttachedMemory { least, whole, is_whole }
    }

    fn bytes(&self, others: &[&Index]) -> u64 {
        let opened = if self.is_whole { self.whole } else { self.least };
        opened + self.least + GROWTH_BYTES_MIN * others.len() as u64
    }
}
