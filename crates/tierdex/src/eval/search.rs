//! One evaluation: what it looks for in a segment, and where the hits go.

use super::scratch::Scratch;
use crate::error::Result;
use crate::rank::TopK;
use crate::segment::read::BlockSource;

/// The evaluation of a query in a segment.
pub struct Search<'s> {
    /// Number in the index of the segment's first document.
    pub(super) base: u32,
    /// Documents in the segment.
    pub(super) documents: u32,
    /// Nothing is pruned: every match is scored.
    pub exhaustive: bool,
    /// Every match is counted.
    pub count: bool,
    pub(super) scratch: &'s mut Scratch,
    pub(super) top: &'s mut TopK,
    source: &'s dyn BlockSource,
}

impl<'s> Search<'s> {
    /// Offers the best documents of a segment that begins at `base` to `top`.
    pub fn new(
        (base, documents): (u32, u32),
        source: &'s dyn BlockSource,
        (scratch, top): (&'s mut Scratch, &'s mut TopK),
    ) -> Search<'s> {
        Search { base, documents, exhaustive: false, count: false, scratch, top, source }
    }

    /// See [`BlockSource::checkpoint`].
    #[inline]
    pub(super) fn checkpoint(&self) -> Result<()> {
        self.source.checkpoint()
    }

    /// Memory for lists and candidates.
    pub fn scratch(&mut self) -> &mut Scratch {
        self.scratch
    }

    /// Candidates with a lower score cannot be hits.
    #[inline]
    pub(super) fn min_score(&self) -> u32 {
        if self.exhaustive { 0 } else { self.top.threshold() }
    }

    /// Whether documents from `first` on that score at most `score` may be hits.
    #[inline]
    pub(super) fn may_enter(&self, score: u32, first: u32) -> bool {
        self.exhaustive || self.top.may_enter(score, self.base + first)
    }
}
