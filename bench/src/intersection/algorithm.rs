//! The algorithms by name.

use crate::intersection::partition::run_partitioned;
use crate::intersection::{Bl, Direct, IntersectionResult, PagedList, ReaderThreads, sl, zz};
use tierdex::Result;

/// An intersection algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// Baseline: reads all lists completely.
    Bl,
    /// Short-long: looks up the ids of the shortest list in the others.
    Sl,
    /// Zig-zag: seeks the successor of an eliminator in each list in turn.
    Zz,
    /// Short-long with Bloom filters.
    Bf,
    /// One thread with many reads in flight.
    Direct,
}

impl Algorithm {
    /// All algorithms, those of the paper first.
    pub const ALL: [Algorithm; 5] =
        [Algorithm::Bl, Algorithm::Sl, Algorithm::Zz, Algorithm::Bf, Algorithm::Direct];

    /// The name in flags and reports.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Bl => "bl",
            Algorithm::Sl => "sl",
            Algorithm::Zz => "zz",
            Algorithm::Bf => "bf",
            Algorithm::Direct => "direct",
        }
    }
}

/// Threads, read queues and memory of all algorithms, which intersections reuse.
pub struct Intersector {
    /// Threads of all algorithms but `direct`.
    pub readers: ReaderThreads,
    /// Memory for whole lists.
    pub bl: Bl,
    /// Reads in flight and buffers of `direct`.
    pub direct: Direct,
}

impl Intersector {
    /// The ids that are in all lists.
    ///
    /// # Errors
    /// When a page cannot be read or is damaged. The error does not affect later calls.
    pub fn intersect(&mut self, algorithm: Algorithm, lists: &[PagedList]) -> Result<IntersectionResult> {
        let readers = &self.readers;
        match algorithm {
            Algorithm::Bl => self.bl.intersect(readers, lists),
            Algorithm::Sl => run_partitioned(readers, lists, sl::find_common::<false>),
            Algorithm::Zz => run_partitioned(readers, lists, zz::find_common),
            Algorithm::Bf => run_partitioned(readers, lists, sl::find_common::<true>),
            Algorithm::Direct => self.direct.intersect(lists),
        }
    }
}
