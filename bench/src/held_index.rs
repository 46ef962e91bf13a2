//! Flags of an index that is held in memory as a whole.

use crate::{Result, slow_tier::ReadDelay, slow_tier::SlowTier};
use clap::Args;
use tierdex::internal::engine::{MetaTier, MetadataLocation, load_metadata};
use tierdex::{
    Index, Query, SearchOptions, explain::SearchResult, internal::index::Searcher, io::RegionKind,
};

/// Memory region of an index that is held in memory as a whole, and emulation of a slower tier.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct HeldIndexFlags {
    /// Memory region of an index that is held in memory as a whole: dram, hugetlb, numa:NODE, dax:PATH or
    /// file:PATH
    #[arg(long, value_name = "REGION")]
    pub keep_in: Option<RegionKind>,
    /// Emulate a slower memory tier for the index that is held in memory: lines of 256 bytes arrive NS
    /// nanoseconds later (four are in flight if they are read in order), and all reads together have at most
    /// GBPS GB/s
    #[arg(long, value_name = "NS[,GBPS]")]
    pub slow_tier: Option<ReadDelay>,
}

impl HeldIndexFlags {
    /// Whether a flag is given.
    pub fn is_given(&self) -> bool {
        self.keep_in.is_some() || self.slow_tier.is_some()
    }

    /// The region; DRAM by default.
    pub fn region(&self) -> RegionKind {
        self.keep_in.clone().unwrap_or(RegionKind::Dram)
    }
}

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
