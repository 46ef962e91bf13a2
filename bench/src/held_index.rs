//! Flags of an index that is held in memory as a whole.

use crate::Result;
use clap::Args;
use tierdex::index::Index;
use tierdex::io::{ReadDelay, RegionKind};

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

    /// Loads the index into the region.
    ///
    /// # Errors
    /// If the region cannot be allocated, or the index is damaged.
    pub fn load(&self, index: &Index) -> Result<()> {
        Ok(index.keep_in(&self.region(), self.slow_tier)?)
    }
}
