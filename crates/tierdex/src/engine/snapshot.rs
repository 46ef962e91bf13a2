//! A commit that an engine searches: its segments, and their resident metadata.
//!
//! The resident metadata of a segment (dictionary, skip data, norms, checksums) is counted once, however
//! many snapshots share the segment. It is released, and the segment's cache entries are dropped, with the
//! last of these snapshots. Segments that are loaded together share a region: its memory is released with
//! the last of them. Commits keep all segments or merge all, so these are closed together.

use super::meta_tier::{MetaTier, MetadataLocation};
use super::resident_sizes::ResidentSizes;
use super::settings::EngineSettings;
use crate::cursor::verify_uncompressed;
use crate::error::{Error, Result};
use crate::index::{HitIds, Index, SearchHit, Searcher};
use crate::schema::Schema;
use crate::segment::read::{FILES, Segment, StoredDocument};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tierdex_cache::PageCache;
use tierdex_io::{Arena, Region, RegionKind, SealedFile};

/// One commit of an index, opened by an [`Engine`](super::Engine). It never changes. Its files stay open
/// for as long as a snapshot, a request or [`Hits`](super::Hits) refers to it.
pub struct Snapshot {
    searcher: Searcher,
    segments: Vec<Arc<ResidentSegment>>,
    /// The cache of the engine.
    cache: Weak<PageCache>,
}

/// A segment and the bytes of its resident metadata.
struct ResidentSegment {
    segment: Arc<Segment>,
    bytes: u64,
    cache: Weak<PageCache>,
    budget: Arc<ResidentBudget>,
}

/// Memory budget of the resident metadata of segments.
pub(super) struct ResidentBudget {
    /// Where metadata is kept if it fits.
    location: MetadataLocation,
    /// The region of norms and page checksums in the tiers `terms` and `disk`.
    cache_region: Option<RegionKind>,
    /// Bytes allowed beyond those of the first snapshot; `None`: unlimited.
    growth: Option<u64>,
    bytes: Mutex<ResidentBytes>,
}

#[derive(Clone, Copy, Default)]
struct ResidentBytes {
    /// Bytes of the first snapshot.
    first: u64,
    used: u64,
}

impl ResidentBudget {
    pub(super) fn new(settings: &EngineSettings) -> ResidentBudget {
        ResidentBudget {
            location: settings.metadata_location(),
            cache_region: MetadataLocation::of(MetaTier::Disk, settings.cache_region()).region,
            growth: settings.dram.map(|_| settings.growth),
            bytes: Mutex::default(),
        }
    }

    /// Adds `bytes` if they fit; false if not.
    fn take(&self, bytes: u64) -> bool {
        let mut now = self.lock();
        let fits = self.growth.is_none_or(|growth| now.used + bytes <= now.first + growth);
        now.used += if fits { bytes } else { 0 };
        fits
    }

    fn lock(&self) -> MutexGuard<'_, ResidentBytes> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Snapshot {
    /// The commit that an engine starts with. Its metadata is loaded, or will be when a query needs it; the
    /// memory report of the engine includes it.
    pub(super) fn first(index: &Index, cache: &Arc<PageCache>, budget: &Arc<ResidentBudget>) -> Snapshot {
        let resident = |segment: &Arc<Segment>| {
            let bytes = ResidentSizes::of_segment(segment).in_dram(&budget.location);
            let mut now = budget.lock();
            (now.first, now.used) = (now.first + bytes, now.used + bytes);
            ResidentSegment::new(segment, bytes, (cache, budget))
        };
        let segments = index.segments().iter().map(resident).collect();
        Snapshot { searcher: index.searcher(), segments, cache: Arc::downgrade(cache) }
    }

    /// The newest commit; `None` if it is this one.
    pub(super) fn newest(
        &self,
        cache: &Arc<PageCache>,
        budget: &Arc<ResidentBudget>,
    ) -> Result<Option<Snapshot>> {
        let index = self.index().reopen()?;
        if index.is_same(self.index()) {
            return Ok(None);
        }
        let shared = |segment: &Arc<Segment>| {
            self.segments.iter().find(|own| Arc::ptr_eq(&own.segment, segment)).map(Arc::clone)
        };
        let resident = |segment| match shared(segment) {
            Some(resident) => Ok(resident),
            None => ResidentSegment::load(segment, (cache, budget)),
        };
        let segments = index.segments().iter().map(resident).collect::<Result<_>>()?;
        let searcher = self.searcher.for_commit(index);
        Ok(Some(Snapshot { searcher, segments, cache: Arc::downgrade(cache) }))
    }

    /// Whether it belongs to the engine with this cache.
    pub(super) fn is_of(&self, cache: &Arc<PageCache>) -> bool {
        std::ptr::eq(self.cache.as_ptr(), Arc::as_ptr(cache))
    }

    /// The index at this commit.
    pub fn index(&self) -> &Index {
        self.searcher.index()
    }

    /// The schema, by which queries are parsed.
    pub fn schema(&self) -> &Schema {
        self.index().schema()
    }

    /// The external ids of documents, in the order of `hits`; their memory is not in the memory report. Ids
    /// are read from disk, in order of documents.
    ///
    /// # Errors
    /// [`Error::Storage`] when the file cannot be read or is damaged; [`Error::Usage`] when a hit is of
    /// another commit that has more documents.
    pub fn ids(&self, hits: &[SearchHit]) -> Result<Vec<String>> {
        self.ids_after(hits, &HitIds::default())
    }

    /// As [`Snapshot::ids`]; some were read before.
    pub(super) fn ids_after(&self, hits: &[SearchHit], read: &HitIds) -> Result<Vec<String>> {
        let mut ids = Vec::with_capacity(hits.len());
        self.searcher.for_each_id(hits, read, |_, id| {
            ids.push(id.to_string());
            Ok::<(), Error>(())
        })?;
        Ok(ids)
    }

    /// Title and text of a document ([`SearchHit::document`]); `None` if the schema does not keep them.
    ///
    /// # Errors
    /// As [`Snapshot::ids`].
    pub fn stored(&self, document: u32) -> Result<Option<StoredDocument>> {
        self.searcher.stored(document)
    }

    /// Evaluates queries on the calling thread, and reads ids, titles and texts.
    #[doc(hidden)]
    pub fn searcher(&self) -> &Searcher {
        &self.searcher
    }
}

impl ResidentSegment {
    fn new(
        segment: &Arc<Segment>,
        bytes: u64,
        (cache, budget): (&Arc<PageCache>, &Arc<ResidentBudget>),
    ) -> Arc<ResidentSegment> {
        let (segment, cache, budget) = (segment.clone(), Arc::downgrade(cache), budget.clone());
        Arc::new(ResidentSegment { segment, bytes, cache, budget })
    }

    /// Loads the metadata of a new segment into the preferred memory tier if it fits into the budget, else
    /// into a tier that takes less DRAM. If its region cannot be allocated, metadata is in DRAM as far as it
    /// fits.
    fn load(
        segment: &Arc<Segment>,
        (cache, budget): (&Arc<PageCache>, &Arc<ResidentBudget>),
    ) -> Result<Arc<ResidentSegment>> {
        let sizes = ResidentSizes::of_segment(segment);
        let preferred = &budget.location;
        // First without lists if the whole index is held, then without skip data, then without dictionaries.
        let with_tier = |tier| MetadataLocation { tier, region: budget.cache_region.clone() };
        let in_dram = |tier| MetadataLocation { tier, region: None };
        let all = [
            preferred.clone(),
            in_dram(MetaTier::Dram),
            with_tier(MetaTier::Terms),
            with_tier(MetaTier::Disk),
        ];
        let all = all.into_iter().filter(|location| sizes.in_dram(location) <= sizes.in_dram(preferred));
        let if_no_region = [in_dram(MetaTier::Dram), in_dram(MetaTier::Terms), in_dram(MetaTier::Disk)];
        let segments = std::slice::from_ref(segment);
        let mut no_region = None;
        let all = all.map(|location| (location, false));
        for (location, needs_failure) in all.chain(if_no_region.map(|location| (location, true))) {
            let bytes = sizes.in_dram(&location);
            if needs_failure && no_region.is_none() || !budget.take(bytes) {
                continue;
            }
            let resident = ResidentSegment::new(segment, bytes, (cache, budget));
            match arena(segments, &location) {
                Ok(arena) => load_into(segments, &location, arena)?,
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
             segments; make it larger",
            segment.documents()
        )))
    }
}

impl Drop for ResidentSegment {
    fn drop(&mut self) {
        self.budget.lock().used -= self.bytes;
        if let Some(cache) = self.cache.upgrade() {
            let files: Vec<u64> = self.segment.files().map(SealedFile::number).collect();
            cache.forget(&files);
        }
    }
}

/// Loads the metadata of segments into its location.
///
/// # Errors
/// [`Error::Storage`] when its region cannot be allocated, or files cannot be read or are damaged.
pub fn load_metadata(segments: &[Arc<Segment>], location: &MetadataLocation) -> Result<()> {
    load_into(segments, location, arena(segments, location)?)
}

/// Allocates the region of the metadata of segments; `None` if it is in DRAM. A whole index is in a region of
/// its own in DRAM too, so that small segments share huge pages.
fn arena(segments: &[Arc<Segment>], location: &MetadataLocation) -> Result<Option<Arena>> {
    let bytes = |of: &dyn Fn(ResidentSizes) -> u64| {
        segments.iter().map(|segment| of(ResidentSizes::of_segment(segment))).sum::<u64>().max(1)
    };
    let (kind, bytes) = match (&location.tier, &location.region) {
        (MetaTier::Index(kind), _) => (kind, bytes(&|sizes| sizes.in_one_region(location))),
        (_, Some(kind)) => (kind, bytes(&|sizes| sizes.in_region(location))),
        (_, None) => return Ok(None),
    };
    Ok(Some(Arena::new(Region::new(kind, bytes)?)))
}

fn load_into(segments: &[Arc<Segment>], location: &MetadataLocation, mut arena: Option<Arena>) -> Result<()> {
    for segment in segments {
        // First, because it loads the page checksums with which the other files are checked.
        segment.prepare(arena.as_mut())?;
        if let (MetaTier::Index(_), Some(arena)) = (&location.tier, &mut arena) {
            segment.keep_in_memory(arena)?;
            segment.fields().iter().try_for_each(|field| verify_uncompressed(field, &FILES))?;
            continue;
        }
        // Dictionaries and skip data are in the region only if it is the tier.
        let mut lists = arena.as_mut().filter(|_| location.is_whole_region());
        if location.tier != MetaTier::Disk {
            segment.keep_terms(lists.as_deref_mut())?;
        }
        if location.tier.keeps_skips() {
            segment.keep_skips(lists)?;
        }
    }
    Ok(())
}
