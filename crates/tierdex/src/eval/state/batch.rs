//! Batches of candidates: documents that may be hits, each with an upper bound of its score.

use crate::eval::state::{DocRange, Refine, Refinement, positions_within};
use std::ops::Range;
use tierdex_codec::keep_at_least;

/// Candidates in ascending order of their documents. The score of each is an upper bound: the exact scores of
/// the clauses evaluated so far plus the max scores of the others. It is exact when every clause has been
/// evaluated.
#[derive(Default)]
pub struct CandidateBatch {
    pub(crate) documents: Vec<u32>,
    pub(crate) scores: Vec<u32>,
}

impl CandidateBatch {
    pub(crate) fn len(&self) -> usize {
        self.documents.len()
    }

    /// Number of documents for which memory is allocated.
    pub(crate) fn capacity(&self) -> usize {
        self.documents.capacity().max(self.scores.capacity())
    }

    /// Allocates memory for `len` documents in all.
    pub(crate) fn reserve(&mut self, len: usize) {
        for values in [&mut self.documents, &mut self.scores] {
            values.reserve_exact(len.saturating_sub(values.len()));
        }
    }

    pub(crate) fn clear(&mut self) {
        self.truncate(0);
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.documents.truncate(len);
        self.scores.truncate(len);
    }

    /// Appends documents with their scores.
    pub(crate) fn push_all(&mut self, documents: &[u32], scores: &[u32]) {
        self.documents.extend_from_slice(documents);
        self.scores.extend_from_slice(scores);
    }

    /// Appends documents that all have the same score.
    pub(crate) fn push_equal(&mut self, documents: &[u32], score: u32) {
        self.documents.extend_from_slice(documents);
        self.scores.resize(self.documents.len(), score);
    }

    /// Appends documents with score 0.
    pub(crate) fn extend_unscored(&mut self, documents: impl Iterator<Item = u32>) {
        self.documents.extend(documents);
        self.scores.resize(self.documents.len(), 0);
    }

    /// From the first to the last document; `None` if the batch is empty.
    pub(crate) fn range(&self) -> Option<DocRange> {
        let (first, last) = (*self.documents.first()?, *self.documents.last()?);
        Some(DocRange { first, last })
    }

    /// Replaces the contents with `documents`, each with score 0.
    pub(crate) fn copy_documents(&mut self, documents: &[u32]) {
        self.clear();
        self.push_equal(documents, 0);
    }

    /// The highest score at a range of positions.
    pub(crate) fn max_score_in(&self, positions: Range<usize>) -> u32 {
        self.scores[positions].iter().copied().max().unwrap_or(0)
    }

    /// Adds `by` to every score.
    pub(crate) fn raise_scores(&mut self, by: u32) {
        if by > 0 {
            self.scores.iter_mut().for_each(|score| *score += by);
        }
    }

    /// Replaces an upper bound that the scores include by another one.
    pub(crate) fn replace_bound(&mut self, included_bound: u32, bound: u32) {
        if bound != included_bound {
            let added = bound.wrapping_sub(included_bound);
            self.scores.iter_mut().for_each(|score| *score = score.wrapping_add(added));
        }
    }

    /// Subtracts `by` from the scores at a range of positions.
    pub(crate) fn lower_scores(&mut self, positions: Range<usize>, by: u32) {
        if by > 0 {
            self.scores[positions].iter_mut().for_each(|score| *score -= by);
        }
    }

    /// Drops the candidates outside a range of documents.
    pub(crate) fn clip_to(&mut self, range: DocRange) {
        let kept = positions_within(&self.documents, range);
        self.documents.copy_within(kept.clone(), 0);
        self.scores.copy_within(kept.clone(), 0);
        self.truncate(kept.len());
    }

    /// Of the candidates at `positions`, moves those whose scores are at least `min_score` to position `to`,
    /// at or before the range. Returns the end of the moved candidates.
    pub(crate) fn keep_at_least(&mut self, positions: Range<usize>, to: usize, min_score: u32) -> usize {
        let from = positions.start - to;
        if min_score == 0 {
            if from > 0 {
                self.documents.copy_within(positions.clone(), to);
                self.scores.copy_within(positions.clone(), to);
            }
            return to + positions.len();
        }
        let (documents, scores) =
            (&mut self.documents[to..positions.end], &mut self.scores[to..positions.end]);
        to + keep_at_least(documents, scores, from, min_score)
    }

    /// Drops candidates whose scores are below `min_score`.
    pub(crate) fn retain_at_least(&mut self, min_score: u32) {
        if min_score > 0 {
            let kept = self.keep_at_least(0..self.len(), 0, min_score);
            self.truncate(kept);
        }
    }

    /// Keeps the candidates for which `keeps` returns true, given the document and the score, which it may
    /// change.
    pub(crate) fn retain(&mut self, keeps: impl FnMut(u32, &mut u32) -> bool) {
        self.retain_from(0, keeps);
    }

    /// As [`CandidateBatch::retain`], of the candidates from position `from` on.
    pub(crate) fn retain_from(&mut self, from: usize, mut keeps: impl FnMut(u32, &mut u32) -> bool) {
        let mut kept = from;
        for at in from..self.len() {
            let (document, mut score) = (self.documents[at], self.scores[at]);
            let keeps = keeps(document, &mut score);
            (self.documents[kept], self.scores[kept]) = (document, score);
            kept += usize::from(keeps);
        }
        self.truncate(kept);
    }

    /// Keeps the candidates that score more than in `before`, which contains them all, without the upper
    /// bound that the scores there include.
    pub(crate) fn retain_above(&mut self, before: &CandidateBatch, included_bound: u32) {
        let mut from = 0;
        self.retain(|document, score| {
            while before.documents[from] < document {
                from += 1;
            }
            *score > before.scores[from] - included_bound
        });
    }

    /// Moves the candidates at these ascending offsets from position `from` to position `to`, at or before
    /// it. Returns the end of the moved candidates.
    pub(crate) fn keep_offsets(&mut self, from: usize, to: usize, offsets: &[u8]) -> usize {
        for (to, offset) in (to..).zip(offsets) {
            let at = from + usize::from(*offset);
            self.documents[to] = self.documents[at];
            self.scores[to] = self.scores[at];
        }
        to + offsets.len()
    }

    /// Of the candidates at `positions`, moves all except those at these ascending offsets to position `to`,
    /// at or before the range. Returns the end of the moved candidates.
    pub(crate) fn drop_offsets(&mut self, positions: Range<usize>, mut to: usize, offsets: &[u8]) -> usize {
        let Range { start, end } = positions;
        let mut from = start;
        for dropped in offsets.iter().map(|offset| start + usize::from(*offset)).chain([end]) {
            if to < from {
                self.documents.copy_within(from..dropped, to);
                self.scores.copy_within(from..dropped, to);
            }
            to += dropped - from;
            from = dropped + 1;
        }
        to
    }

    /// Applies a refinement, given the candidates that match the clause. The score of one that matches
    /// becomes `score(rest, s)`: `rest` is its score minus the included upper bound of the clause, `s` its
    /// score in `matches`.
    pub(crate) fn apply_refinement(
        &mut self,
        matches: &CandidateBatch,
        Refinement { how, included_bound, min_score }: Refinement,
        score: impl Fn(u32, u32) -> u32,
    ) {
        let keeps_others = matches!(how, Refine::Exclude | Refine::Optional);
        let (mut next, mut kept) = (0, 0);
        for at in 0..self.len() {
            let (document, rest) = (self.documents[at], self.scores[at] - included_bound);
            let is_in = matches.documents.get(next) == Some(&document);
            self.documents[kept] = document;
            self.scores[kept] = if is_in { score(rest, matches.scores[next]) } else { rest };
            next += usize::from(is_in);
            kept += usize::from(if is_in { how != Refine::Exclude } else { keeps_others });
        }
        self.truncate(kept);
        self.retain_at_least(min_score);
    }

    /// Fills the batch with the union of parts, each in ascending order, that end at these positions. The
    /// parts are merged in rounds, from one of the two batches to the other; they are in `spare` if
    /// [`CandidateBatch::merges_from_spare`], so that the last round ends here. The scores of a document in
    /// several parts are added.
    pub(crate) fn merge(&mut self, spare: &mut CandidateBatch, mut ends: Vec<usize>) {
        let mut from_spare = CandidateBatch::merges_from_spare(ends.len());
        while ends.len() > 1 {
            let (from, to) = if from_spare { (&*spare, &mut *self) } else { (&*self, &mut *spare) };
            to.clear();
            let mut start = 0;
            for pair in 0..ends.len().div_ceil(2) {
                let middle = ends[2 * pair];
                let end = ends.get(2 * pair + 1).copied().unwrap_or(middle);
                to.push_union(from, start..middle, middle..end);
                ends[pair] = to.len();
                start = end;
            }
            ends.truncate(ends.len().div_ceil(2));
            from_spare = !from_spare;
        }
    }

    /// Whether this number of parts is merged in an odd number of rounds.
    pub(crate) fn merges_from_spare(parts: usize) -> bool {
        parts.next_power_of_two().trailing_zeros() % 2 == 1
    }

    /// Appends the union of the candidates at two ranges of positions of `from`, each in ascending order. The
    /// scores of a document in both are added.
    fn push_union(&mut self, from: &CandidateBatch, first: Range<usize>, second: Range<usize>) {
        let mut to = self.len();
        let (mut i, mut j) = (first.start, second.start);
        self.documents.resize(to + first.len() + second.len(), 0);
        self.scores.resize(to + first.len() + second.len(), 0);
        while i < first.end && j < second.end {
            let (a, b) = (from.documents[i], from.documents[j]);
            let (of_a, of_b) = (from.scores[i], from.scores[j]);
            let score = if a <= b { of_a } else { of_b };
            self.documents[to] = a.min(b);
            self.scores[to] = if a == b { of_a + of_b } else { score };
            i += usize::from(a <= b);
            j += usize::from(b <= a);
            to += 1;
        }
        self.truncate(to);
        self.push_all(&from.documents[i..first.end], &from.scores[i..first.end]);
        self.push_all(&from.documents[j..second.end], &from.scores[j..second.end]);
    }

    /// Documents and scores of `size` candidates at a time.
    pub(crate) fn chunks(&self, size: usize) -> impl Iterator<Item = (&[u32], &[u32])> {
        self.documents.chunks(size).zip(self.scores.chunks(size))
    }
}
