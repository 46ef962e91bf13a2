//! State shared by all measurements of a run, and placeholders for memory regions.

use super::super::data::DataSets;
use crate::cache::Launch;
use tierdex::index::Stop;

/// State shared by all measurements of a run.
pub(in super::super) struct Context<'a> {
    pub(in super::super) data: &'a DataSets,
    pub(in super::super) launch: &'a Launch,
    pub(in super::super) stop: &'a Stop,
    /// Memory region of caches.
    pub(in super::super) region: String,
    /// Memory region of the second tier, if there is one.
    pub(in super::super) tier: Option<String>,
    /// Whether cells run in control groups, with the page cache dropped before each.
    pub(in super::super) groups: bool,
}

/// Placeholder for the region of the second memory tier, which the flags name.
pub(super) const TIER: &str = "tier";
/// DRAM, read in the same mode as the second tier. Measured only beside one.
pub(super) const DRAM_LIKE_TIER: &str = "dram-like-tier";
