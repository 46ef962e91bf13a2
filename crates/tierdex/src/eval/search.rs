//! One evaluation: what it looks for in a segment, and where the hits go.

use super::scratch::Scratch;
use crate::error::Result;
use crate::rank::TopK;
use crate::segment::read::BlockSource;
use std::cell::Cell;
use std::ops::Range;

/// The documents that an evaluation looks at, numbered in the index. Another evaluation may take the last of
/// them ([`BlockSource::checkpoint`]).
pub struct DocumentRange {
    first: u32,
    end: Cell<u32>,
}

impl DocumentRange {
    /// These documents.
    pub fn new(documents: Range<u32>) -> DocumentRange {
        DocumentRange { first: documents.start, end: Cell::new(documents.end) }
    }

    /// The documents of a segment that are among them, numbered in the segment.
    pub fn of_segment(&self, base: u32, documents: u32) -> Range<u32> {
        self.first.saturating_sub(base)..self.end.get().saturating_sub(base).min(documents)
    }
}

/// The evaluation of a query in a segment.
pub struct Search<'s> {
    /// Number in the index of the segment's first document.
    pub(super) base: u32,
    /// Documents in the segment.
    pub(super) documents: u32,
    /// The documents to look at: the first, and the one after the last. There is at least one.
    pub(super) first: u32,
    pub(super) end: u32,
    part: &'s DocumentRange,
    /// Nothing is pruned: every match is scored.
    pub exhaustive: bool,
    /// Every match is counted.
    pub count: bool,
    pub(super) scratch: &'s mut Scratch,
    pub(super) top: &'s mut TopK,
    source: &'s dyn BlockSource,
}

impl<'s> Search<'s> {
    /// Offers the best documents of a part to `top`, of those in a segment that begins at `base`. Some of
    /// the part are in the segment.
    pub fn new(
        (base, documents): (u32, u32),
        part: &'s DocumentRange,
        source: &'s dyn BlockSource,
        (scratch, top): (&'s mut Scratch, &'s mut TopK),
    ) -> Search<'s> {
        let Range { start: first, end } = part.of_segment(base, documents);
        Search { base, documents, first, end, part, exhaustive: false, count: false, scratch, top, source }
    }

    /// See [`BlockSource::checkpoint`]. Documents of the segment before `next` have been looked at, and none
    /// from there on. A strategy that does not go in document order passes [`Search::end`]: then only
    /// documents of later segments can be given away.
    #[inline]
    pub(super) fn checkpoint(&mut self, next: u32) -> Result<()> {
        let rest = self.base + next..self.part.end.get();
        let end = self.source.checkpoint(rest)?;
        if end < self.part.end.get() {
            self.part.end.set(end);
            self.end = self.end.min(end - self.base);
        }
        self.top.adopt_threshold();
        Ok(())
    }

    /// A count of the whole segment, such as the document frequency of a term: reported by the part that has
    /// the segment's first document, so that parts add up.
    pub(super) fn count_once(&self, count: u64) -> u64 {
        if self.first == 0 { count } else { 0 }
    }

    /// The part of a range, its first and its last document, that is looked at.
    pub(super) fn clip(&self, (first, last): (u32, u32)) -> (u32, u32) {
        (first.max(self.first), last.min(self.end - 1))
    }

    /// Whether all documents of a range are looked at.
    pub(super) fn contains(&self, (first, last): (u32, u32)) -> bool {
        first >= self.first && last < self.end
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
