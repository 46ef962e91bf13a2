//! An index that is held in memory as a whole.

use crate::{Result, slow_tier::ReadDelay, slow_tier::SlowTier};
use tierdex::internal::engine::{MetaTier, MetadataLocation, load_metadata};
use tierdex::{
    Index, Query, SearchOptions, explain::SearchResult, internal::index::Searcher, io::RegionKind,
};

/// An index that is loaded into memory as a whole: at the speed of that memory, or as in a slower tier.
pub(crate) enum HeldIndex {
    Memory(Searcher),
    Slow(Box<SlowTier>),
}

impl HeldIndex {
    /// Loads an index into a memory region, which emulates a slower tier if there is a delay.
    ///
    /// # Errors
    /// If the region cannot be allocated, or the index is damaged.
    pub(crate) fn load(index: &Index, region: &RegionKind, delay: Option<ReadDelay>) -> Result<HeldIndex> {
        if let Some(delay) = delay {
            return Ok(HeldIndex::Slow(Box::new(SlowTier::load(index, region, delay)?)));
        }
        load_metadata(index.segments(), &MetadataLocation::of(MetaTier::Index(region.clone()), None))?;
        Ok(HeldIndex::Memory(index.searcher()))
    }

    /// Evaluates a query on the calling thread.
    ///
    /// # Errors
    /// As [`Searcher::search`].
    pub(crate) fn search(&self, query: &Query, options: &SearchOptions) -> tierdex::Result<SearchResult> {
        match self {
            HeldIndex::Memory(searcher) => searcher.search(query, options),
            HeldIndex::Slow(tier) => tier.search(query, options),
        }
    }
}
