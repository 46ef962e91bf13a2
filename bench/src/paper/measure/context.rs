//! State shared by all measurements of a run, and the placeholder for a memory region.

use crate::{cell::Launch, paper::data::DataSets};
use tierdex::StopSignal;

/// State shared by all measurements of a run.
pub(in super::super) struct Context<'a> {
    pub(in super::super) data: &'a DataSets,
    pub(in super::super) launch: &'a Launch,
    pub(in super::super) stop: &'a StopSignal,
    /// Memory region of caches.
    pub(in super::super) region: String,
    /// Memory region of the second tier, if there is one.
    pub(in super::super) tier: Option<String>,
    /// Delay of reads of an index that is held in the second tier, if the tier is emulated.
    pub(in super::super) slow_tier: Option<String>,
    /// Whether cells run in control groups, with the page cache dropped before each.
    pub(in super::super) groups: bool,
}

/// Value of a setting that stands for the memory region of the second tier, which the flags of a run name.
pub(super) const TIER_PLACEHOLDER: &str = "tier";
