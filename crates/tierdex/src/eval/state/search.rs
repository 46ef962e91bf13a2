//! One evaluation in a segment: the range of documents that it searches, its collector and scratch buffers.

use crate::Result;
use crate::eval::state::{Collector, DocRange, Scratch};
use crate::eval::{EvaluationOptions, SegmentView};
use crate::segment::{DeletedDocuments, read::BlockSource};
use std::{cell::Cell, ops::Range};

/// The range of documents, numbered in the index, that an evaluation searches. An evaluation on another
/// thread may take over its tail, which shortens it ([`BlockSource::checkpoint`]).
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

/// An evaluation in a segment: what a strategy needs beside its clauses.
pub struct Search<'s> {
    /// Number in the index of the first document of the segment.
    pub(crate) base: u32,
    /// Number of documents in the segment.
    pub(crate) documents: u32,
    /// The documents to search, `first..end`, not empty.
    pub(crate) first: u32,
    pub(crate) end: u32,
    part: &'s DocumentRange,
    /// The deleted documents of the segment.
    deleted: Option<&'s DeletedDocuments>,
    /// What the caller requested.
    pub(crate) options: EvaluationOptions,
    /// Whether every match is visited to be counted ([`Strategy`](crate::eval::Strategy)).
    pub(crate) counts_matches: bool,
    /// Whether all matches are scored in windows ([`Strategy`](crate::eval::Strategy)).
    pub(crate) sums_windows: bool,
    pub(crate) scratch: &'s mut Scratch,
    pub(crate) collector: Collector<'s>,
    source: &'s dyn BlockSource,
}

impl<'s> Search<'s> {
    /// An evaluation that offers documents of `part` in a segment, whose first document is number `base` in
    /// the index, to the collector. The part overlaps the segment.
    pub fn new(
        view: SegmentView<'s>,
        base: u32,
        part: &'s DocumentRange,
        options: &EvaluationOptions,
        source: &'s dyn BlockSource,
        scratch: &'s mut Scratch,
        collector: Collector<'s>,
    ) -> Search<'s> {
        let documents = view.segment.documents();
        let Range { start: first, end } = part.of_segment(base, documents);
        Search {
            base,
            documents,
            first,
            end,
            part,
            deleted: view.segment.deleted(),
            options: *options,
            counts_matches: false,
            sums_windows: false,
            scratch,
            collector,
            source,
        }
    }

    /// A point at which the source may suspend or stop the evaluation, and another thread may take over the
    /// documents from `next` on, none of which has been visited ([`BlockSource::checkpoint`]). A strategy
    /// that does not evaluate in document order passes [`Search::end`]: then only later segments can be taken
    /// over.
    #[inline]
    pub(crate) fn checkpoint(&mut self, next: u32) -> Result<()> {
        let rest = self.base + next..self.part.end.get();
        let end = self.source.checkpoint(rest)?;
        if end < self.part.end.get() {
            self.part.end.set(end);
            self.end = self.end.min(end - self.base);
        }
        self.collector.adopt_threshold();
        Ok(())
    }

    /// `count` if the searched range contains the first document of the segment, else 0. So a count for the
    /// whole segment, such as a document frequency, is added once if several evaluations divide the segment.
    pub(crate) fn count_once(&self, count: u64) -> u64 {
        if self.first == 0 { count } else { 0 }
    }

    /// The documents to search.
    pub(crate) fn range(&self) -> DocRange {
        DocRange { first: self.first, last: self.end - 1 }
    }

    /// The intersection of a range with the documents to search.
    pub(crate) fn clip_range(&self, range: DocRange) -> DocRange {
        DocRange { first: range.first.max(self.first), last: range.last.min(self.end - 1) }
    }

    /// Whether all documents of a range are searched.
    pub(crate) fn covers_range(&self, range: DocRange) -> bool {
        range.first >= self.first && range.last < self.end
    }

    /// Whether all documents of the segment are searched.
    pub(crate) fn covers_segment(&self) -> bool {
        self.first == 0 && self.end == self.documents
    }

    /// The threshold: candidates with a lower score cannot be hits.
    #[inline]
    pub(crate) fn min_score(&self) -> u32 {
        if self.options.exhaustive { 0 } else { self.collector.threshold() }
    }

    /// The smallest score with which documents from `first` on may be hits: of equal scores, that of the
    /// first document wins.
    pub(crate) fn min_score_from(&self, first: u32) -> u32 {
        let min_score = self.min_score();
        min_score + u32::from(min_score > 0 && !self.may_enter(min_score, first))
    }

    /// Whether documents from `first` on with scores up to `score` may be hits.
    #[inline]
    pub(crate) fn may_enter(&self, score: u32, first: u32) -> bool {
        if self.options.exhaustive {
            self.collector.ranks()
        } else {
            self.collector.may_enter(score, self.base + first)
        }
    }

    /// Offers documents in ascending order with their exact scores. Deleted documents are dropped.
    #[inline]
    pub(crate) fn offer_all(&mut self, documents: &[u32], scores: &[u32]) {
        self.collector.offer_all(self.base, documents, scores, self.deleted);
    }

    /// The deleted documents of the segment.
    #[inline]
    pub(crate) fn deleted(&self) -> Option<&'s DeletedDocuments> {
        self.deleted
    }

    /// Number of matches that are not deleted.
    #[inline]
    pub(crate) fn count_live(&self, matches: &[u32]) -> u64 {
        self.deleted.map_or(matches.len(), |deleted| deleted.count_live(matches)) as u64
    }

    /// Number of deleted documents among those that were searched.
    pub(crate) fn deleted_documents(&self) -> u64 {
        let count = |deleted: &DeletedDocuments| match self.covers_segment() {
            true => deleted.len(),
            false => deleted.count_within(self.first..self.end),
        };
        self.deleted.map_or(0, count).into()
    }
}
