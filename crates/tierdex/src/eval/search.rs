//! The state of one evaluation in a segment: the range of documents, the top-k selection and the scratch
//! buffers.

use super::scratch::Scratch;
use super::tuning::Tuning;
use crate::error::Result;
use crate::rank::TopK;
use crate::segment::read::BlockSource;
use std::cell::Cell;
use std::ops::Range;

/// The range of documents of an evaluation, numbered in the index. Another evaluation may take over its tail
/// ([`BlockSource::checkpoint`]).
pub struct DocumentRange {
    first: u32,
    end: Cell<u32>,
}

impl DocumentRange {
    /// Creates a range.
    pub fn new(documents: Range<u32>) -> DocumentRange {
        DocumentRange { first: documents.start, end: Cell::new(documents.end) }
    }

    /// The part of the range in a segment, numbered in the segment.
    pub fn of_segment(&self, base: u32, documents: u32) -> Range<u32> {
        self.first.saturating_sub(base)..self.end.get().saturating_sub(base).min(documents)
    }
}

/// The evaluation of a query in a segment.
pub struct Search<'s> {
    /// Number in the index of the first document of the segment.
    pub(super) base: u32,
    /// Number of documents in the segment.
    pub(super) documents: u32,
    /// The documents to search, `first..end`, not empty.
    pub(super) first: u32,
    pub(super) end: u32,
    part: &'s DocumentRange,
    /// Nothing is pruned: every match is scored.
    pub exhaustive: bool,
    /// Every match is counted.
    pub count: bool,
    /// Sizes of long lists.
    pub tuning: Tuning,
    pub(super) scratch: &'s mut Scratch,
    pub(super) top: &'s mut TopK,
    source: &'s dyn BlockSource,
}

impl<'s> Search<'s> {
    /// An evaluation that offers documents of `part` in the segment with first document `base` to `top`. The
    /// part overlaps the segment.
    pub fn new(
        (base, documents): (u32, u32),
        part: &'s DocumentRange,
        source: &'s dyn BlockSource,
        (scratch, top): (&'s mut Scratch, &'s mut TopK),
    ) -> Search<'s> {
        let Range { start: first, end } = part.of_segment(base, documents);
        let tuning = Tuning::default();
        Search {
            base,
            documents,
            first,
            end,
            part,
            exhaustive: false,
            count: false,
            tuning,
            scratch,
            top,
            source,
        }
    }

    /// See [`BlockSource::checkpoint`]. Documents of the segment before `next` have been visited, and none
    /// from there on. A strategy that does not evaluate in document order passes [`Search::end`]: then only
    /// documents of later segments can be taken over.
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

    /// A count for the whole segment, such as a document frequency: returned in the part that contains the
    /// first document of the segment, 0 in others, so that the sum over the parts is correct.
    pub(super) fn count_once(&self, count: u64) -> u64 {
        if self.first == 0 { count } else { 0 }
    }

    /// The intersection of a range, given by its first and last document, with the documents to search.
    pub(super) fn clip(&self, (first, last): (u32, u32)) -> (u32, u32) {
        (first.max(self.first), last.min(self.end - 1))
    }

    /// Whether all documents of a range are searched.
    pub(super) fn contains(&self, (first, last): (u32, u32)) -> bool {
        first >= self.first && last < self.end
    }

    /// The scratch buffers.
    pub fn scratch(&mut self) -> &mut Scratch {
        self.scratch
    }

    /// The threshold: candidates with a lower score cannot be hits.
    #[inline]
    pub(super) fn min_score(&self) -> u32 {
        if self.exhaustive { 0 } else { self.top.threshold() }
    }

    /// Whether documents from `first` on with scores up to `score` may be hits.
    #[inline]
    pub(super) fn may_enter(&self, score: u32, first: u32) -> bool {
        self.exhaustive || self.top.may_enter(score, self.base + first)
    }
}
