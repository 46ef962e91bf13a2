//! The algorithms by name.

use crate::intersection::{Bl, Direct, IntersectionResult, PagedList, ReaderThreads, bf, sl, zz};
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
        match algorithm {
            Algorithm::Bl => self.bl.intersect(&self.readers, lists),
            Algorithm::Sl => sl::intersect(&self.readers, lists),
            Algorithm::Zz => zz::intersect(&self.readers, lists),
            Algorithm::Bf => bf::intersect(&self.readers, lists),
            Algorithm::Direct => self.direct.intersect(lists),
        }
    }
}
