//! A commit that an engine searches: its segments, and their resident metadata.
//!
//! The resident metadata of a segment (dictionary, skip data, norms, checksums) is counted once, however
//! many snapshots share the segment. It is released, and the segment's cache entries are dropped, with the
//! last of these snapshots.

use super::meta_tier::{MetaTier, MetadataLocation};
use super::part_sizes::{IDS_OUTPUT_BYTES, PREVIEW_BYTES};
use super::pool::{MemoryPool, PoolUse, Reservation};
use super::{resident_sizes::ResidentSizes, settings::EngineSettings};
use crate::index::{HitIds, Index, SearchHit, Searcher, StoredDocument};
use crate::schema::{ColumnValue, Schema};
use crate::segment::{SegmentDeletes, read::FILES, read::OpenSegment, read::Segment};
use crate::{Error, Result, cursor::verify_uncompressed};
use std::sync::{Arc, Weak};
use tierdex_cache::PageCache;
use tierdex_io::{Arena, Region, RegionKind, SealedFile};

/// One commit of an index, opened by an [`Engine`](super::Engine). It never changes. Its files stay open
/// for as long as a snapshot, a request or [`Hits`](super::Hits) refers to it.
pub struct Snapshot {
    searcher: Searcher,
    segments: Vec<Arc<ResidentSegment>>,
    deletes: Vec<Arc<ResidentDeletes>>,
    resident: ResidentMemory,
}

/// The deletes of a segment and their memory. A commit that does not change them shares it.
struct ResidentDeletes {
    deletes: Arc<SegmentDeletes>,
    _reserved: Reservation,
}

/// A segment and the memory of its resident metadata.
struct ResidentSegment {
    segment: Arc<Segment>,
    cache: Weak<PageCache>,
    _reserved: Reservation,
}

/// Where the resident metadata of segments is kept, and the memory that it is counted in.
#[derive(Clone)]
pub(super) struct ResidentMemory {
    /// Where metadata is kept if it fits.
    location: MetadataLocation,
    /// The region of norms and page checksums in the tiers `terms` and `disk`.
    cache_region: Option<RegionKind>,
    cache: Weak<PageCache>,
    pool: Arc<MemoryPool>,
}

impl ResidentMemory {
    pub(super) fn new(
        settings: &EngineSettings,
        cache: &Arc<PageCache>,
        pool: &Arc<MemoryPool>,
    ) -> ResidentMemory {
        ResidentMemory {
            location: settings.metadata_location(),
            cache_region: MetadataLocation::of(MetaTier::Disk, settings.cache_region()).region,
            cache: Arc::downgrade(cache),
            pool: pool.clone(),
        }
    }

    /// Counts the resident metadata of a segment; `None` if the pool has no memory for it.
    fn reserve(&self, segment: &OpenSegment, bytes: u64) -> Option<Arc<ResidentSegment>> {
        let reserved = self.pool.try_reserve(PoolUse::Metadata, bytes)?;
        let (segment, cache) = (segment.segment().clone(), self.cache.clone());
        Some(Arc::new(ResidentSegment { segment, cache, _reserved: reserved }))
    }

    /// Counts the deletes of an index, without those of an older commit, `open`, which it shares.
    fn deletes_of(&self, index: &Index, open: &[Arc<ResidentDeletes>]) -> Result<Vec<Arc<ResidentDeletes>>> {
        let count = |deletes: &Arc<SegmentDeletes>| {
            if let Some(shared) = open.iter().find(|open| Arc::ptr_eq(&open.deletes, deletes)) {
                return Ok(shared.clone());
            }
            let (bytes, deletes) = (deletes.memory() as u64, deletes.clone());
            let reserved = self.pool.try_reserve(PoolUse::Metadata, bytes).ok_or_else(|| {
                Error::TooLarge(format!(
                    "deleted documents of a segment and their statistics take {bytes} bytes, and the budget leaves \
                     less for new commits; start again, with a larger budget if need be"
                ))
            })?;
            Ok(Arc::new(ResidentDeletes { deletes, _reserved: reserved }))
        };
        index.segments().iter().filter_map(OpenSegment::deletes).map(count).collect()
    }
}

impl Snapshot {
    /// The commit that an engine starts with. Its metadata is loaded, or will be when a query needs it; the
    /// memory report of the engine includes it.
    ///
    /// # Errors
    /// [`Error::Failed`] when the memory pool has less memory than the report says.
    pub(super) fn first(
        index: &Index,
        settings: &EngineSettings,
        resident: &ResidentMemory,
    ) -> Result<Snapshot> {
        let reserve = |segment: &OpenSegment| {
            let bytes = ResidentSizes::of_segment(segment).in_dram(&resident.location);
            let less =
                || Error::Failed("the memory pool is smaller than the metadata of the index".to_string());
            resident.reserve(segment, bytes).ok_or_else(less)
        };
        let segments = index.segments().iter().map(reserve).collect::<Result<_>>()?;
        let deletes = resident.deletes_of(index, &[])?;
        let searcher = index.searcher_within(settings.threads, settings.kept_prefixes_bytes(index) as usize);
        Ok(Snapshot { searcher, segments, deletes, resident: resident.clone() })
    }

    /// The commit of another index, whose metadata is loaded as that of later segments.
    pub(super) fn of_other(&self, index: &Index, is_whole: bool) -> Result<Snapshot> {
        let mut resident = self.resident.clone();
        if !is_whole {
            resident.location =
                MetadataLocation { tier: MetaTier::Disk, region: resident.cache_region.clone() };
        }
        let load = |segment| ResidentSegment::load(segment, &resident);
        let segments = index.segments().iter().map(load).collect::<Result<_>>()?;
        let deletes = resident.deletes_of(index, &[])?;
        let searcher = self.searcher.for_other(index.clone());
        Ok(Snapshot { searcher, segments, deletes, resident })
    }

    /// The newest commit; `None` if it is this one.
    pub(super) fn newest(&self) -> Result<Option<Snapshot>> {
        let index = self.index().reopen()?;
        if index.is_same(self.index()) {
            return Ok(None);
        }
        let shared = |segment: &OpenSegment| {
            self.segments.iter().find(|own| Arc::ptr_eq(&own.segment, segment.segment())).map(Arc::clone)
        };
        let resident = |segment| match shared(segment) {
            Some(resident) => Ok(resident),
            None => ResidentSegment::load(segment, &self.resident),
        };
        let segments = index.segments().iter().map(resident).collect::<Result<_>>()?;
        let deletes = self.resident.deletes_of(&index, &self.deletes)?;
        let searcher = self.searcher.for_commit(index);
        Ok(Some(Snapshot { searcher, segments, deletes, resident: self.resident.clone() }))
    }

    /// Whether it belongs to the engine with this cache.
    pub(super) fn is_of(&self, cache: &Arc<PageCache>) -> bool {
        std::ptr::eq(self.resident.cache.as_ptr(), Arc::as_ptr(cache))
    }

    /// The index at this commit.
    pub fn index(&self) -> &Index {
        self.searcher.index()
    }

    /// The schema, by which queries are parsed.
    pub fn schema(&self) -> &Schema {
        self.index().schema()
    }

    /// The external ids of documents, in the order of `hits`; they belong to the caller. Ids are read from
    /// disk, in order of documents.
    ///
    /// # Errors
    /// [`Error::Storage`] when the file cannot be read or is damaged; [`Error::Usage`] when a hit is of
    /// another commit that has more documents.
    pub fn ids(&self, hits: &[SearchHit]) -> Result<Vec<String>> {
        self.ids_after(hits, &HitIds::default())
    }

    /// As [`Snapshot::ids`]; some were read before.
    pub(super) fn ids_after(&self, hits: &[SearchHit], read: &HitIds) -> Result<Vec<String>> {
        let _reserved = self.reserve_output(IDS_OUTPUT_BYTES);
        let mut ids = Vec::with_capacity(hits.len());
        self.searcher.for_each_id(hits, read, |_, id| {
            ids.push(id.to_string());
            Ok::<(), Error>(())
        })?;
        Ok(ids)
    }

    /// The stored values of a document ([`SearchHit::document`]); `None` if the schema does not keep them.
    ///
    /// # Errors
    /// As [`Snapshot::ids`].
    pub fn stored(&self, document: u32) -> Result<Option<StoredDocument>> {
        let _reserved = self.reserve_output(PREVIEW_BYTES);
        self.searcher.stored(document)
    }

    /// As [`Snapshot::stored`], but reads about `bytes` bytes of the document, from its beginning
    /// ([`StoredDocument::is_cut`]).
    ///
    /// # Errors
    /// As [`Snapshot::ids`].
    pub fn stored_within(&self, document: u32, bytes: usize) -> Result<Option<StoredDocument>> {
        let _reserved = self.reserve_output(PREVIEW_BYTES);
        self.searcher.stored_within(document, bytes)
    }

    /// The values of a document in a column, ascending; none if it has none.
    ///
    /// ```
    /// # use tierdex::schema::{Column, ColumnType, ColumnValue, Schema};
    /// # use tierdex::{Document, Engine, EngineOptions, IndexWriter, Merge, WriterOptions};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let dir = dir.path().join("index");
    /// let schema = Schema::default().with_columns(vec![Column::new("year", ColumnType::I64)]);
    /// # let mut writer = IndexWriter::create(&dir, schema, WriterOptions::default())?;
    /// writer.add_all([Document::new("b1").with_column("year", ColumnValue::I64(1987))], 1)?;
    /// writer.commit(Merge::Keep)?;
    /// let engine = Engine::open(&dir, &EngineOptions::new())?;
    /// assert_eq!(engine.snapshot().values(0, "year")?, [ColumnValue::I64(1987)]);
    /// # Ok::<(), tierdex::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Snapshot::ids`], and [`Error::Usage`] if the schema has no such column.
    pub fn values(&self, document: u32, column: &str) -> Result<Vec<ColumnValue>> {
        let column = self.schema().column_named(column)?;
        let _reserved = self.reserve_output(self.searcher.values_memory(document, column)?);
        self.searcher.values(document, column, &FILES)
    }

    /// The document with an external id, [`SearchHit::document`]; of several the last one. If the index is
    /// not updatable, all ids are read.
    ///
    /// # Errors
    /// [`Error::Storage`] when files cannot be read or are damaged.
    pub fn find_id(&self, id: &str) -> Result<Option<u32>> {
        self.searcher.find_id(id)
    }

    /// Reserves the memory in which ids and texts of hits are read and written by [`Snapshot::searcher`],
    /// until the value is dropped; [`Snapshot::ids`] and [`Snapshot::stored`] would wait for it. Waits while
    /// other callers read.
    pub fn reserve_all_output(&self) -> impl Sized + use<> {
        self.reserve_output(u64::MAX)
    }

    fn reserve_output(&self, bytes: u64) -> Option<Reservation> {
        let (pool, kind) = (&self.resident.pool, PoolUse::Output);
        pool.sizes().total?;
        // Options may say that no texts will be read; then they are not counted.
        pool.reserve(kind, bytes.min(pool.sizes().of(kind).maximum), |_| false)
    }

    /// Evaluates queries on the calling thread, and reads ids, titles and texts.
    #[doc(hidden)]
    pub fn searcher(&self) -> &Searcher {
        &self.searcher
    }
}

impl ResidentSegment {
    /// Loads the metadata of a new segment into the preferred memory tier if it fits into the budget, else
    /// into a tier that takes less DRAM. If its region cannot be allocated, metadata is in DRAM as far as it
    /// fits.
    fn load(segment: &OpenSegment, memory: &ResidentMemory) -> Result<Arc<ResidentSegment>> {
        let sizes = ResidentSizes::of_segment(segment);
        let preferred = &memory.location;
        // First without lists if the whole index is held, then without skip data, then without dictionaries.
        let with_tier = |tier| MetadataLocation { tier, region: memory.cache_region.clone() };
        let in_dram = |tier| MetadataLocation { tier, region: None };
        let all = [
            preferred.clone(),
            in_dram(MetaTier::Dram),
            with_tier(MetaTier::Terms),
            with_tier(MetaTier::Disk),
        ];
        let all = all.into_iter().filter(|location| sizes.in_dram(location) <= sizes.in_dram(preferred));
        let if_no_region = [in_dram(MetaTier::Dram), in_dram(MetaTier::Terms), in_dram(MetaTier::Disk)];
        let mut no_region = None;
        let all = all.map(|location| (location, false));
        for (location, needs_failure) in all.chain(if_no_region.map(|location| (location, true))) {
            if needs_failure && no_region.is_none() {
                continue;
            }
            let Some(resident) = memory.reserve(segment, sizes.in_dram(&location)) else { continue };
            match arena(segment, &location) {
                Ok(arena) => load_into(segment, &location, arena)?,
                Err(error) => {
                    no_region = Some(error);
                    continue;
                }
            }
            return Ok(resident);
        }
        if let Some(error) = no_region {
            return Err(error);
        }
        let least = sizes.in_dram(&with_tier(MetaTier::Disk));
        Err(Error::TooLarge(format!(
            "a new segment of {} documents keeps at least {least} bytes in memory, and the budget leaves less for new \
             segments; start again, with a larger budget if need be",
            segment.documents()
        )))
    }
}

impl Drop for ResidentSegment {
    fn drop(&mut self) {
        if let Some(cache) = self.cache.upgrade() {
            let files: Vec<u64> = self.segment.files().map(SealedFile::number).collect();
            cache.evict_files(&files);
        }
    }
}

/// Loads the metadata of segments into its location.
///
/// # Errors
/// [`Error::Storage`] when its region cannot be allocated, or files cannot be read or are damaged.
pub fn load_metadata(segments: &[OpenSegment], location: &MetadataLocation) -> Result<()> {
    segments.iter().try_for_each(|segment| load_into(segment, location, arena(segment, location)?))
}

/// Allocates the region of the metadata of a segment; `None` if it is in DRAM. An index that is held as a
/// whole is in regions of its own in DRAM too, so that it is on huge pages.
fn arena(segment: &Segment, location: &MetadataLocation) -> Result<Option<Arena>> {
    let sizes = ResidentSizes::of_segment(segment);
    let (kind, bytes) = match (&location.tier, &location.region) {
        (MetaTier::Index(kind), _) => (kind, sizes.in_one_region(location)),
        (_, Some(kind)) => (kind, sizes.in_region(location)),
        (_, None) => return Ok(None),
    };
    Ok(Some(Arena::new(Region::new(kind, bytes.max(1))?)))
}

fn load_into(segment: &Segment, location: &MetadataLocation, mut arena: Option<Arena>) -> Result<()> {
    // First, because it loads the page checksums with which the other files are checked.
    segment.load_checksums_and_norms(arena.as_mut())?;
    if let (MetaTier::Index(_), Some(arena)) = (&location.tier, &mut arena) {
        segment.load_all(arena)?;
        return segment.fields().iter().try_for_each(|field| verify_uncompressed(field, &FILES));
    }
    // Dictionaries and skip data are in the region only if it is the tier.
    let mut lists = arena.as_mut().filter(|_| location.is_whole_region());
    if location.tier != MetaTier::Disk {
        segment.load_terms(lists.as_deref_mut())?;
    }
    if location.tier.keeps_skips() {
        segment.load_skips(lists)?;
    }
    Ok(())
}
