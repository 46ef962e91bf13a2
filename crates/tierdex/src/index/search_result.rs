//! Options and results of a search.

use super::reader::Index;
use crate::{
    eval::{EvaluationOptions, Tuning},
    rank::{Hit, ScoreScale, Scorer, SharedThreshold},
};

/// Options of a search: number of hits, ranking, and counting of matches.
#[derive(Clone, Copy, Debug)]
pub struct SearchOptions {
    /// Number of hits to return, at most; 0 only counts.
    pub k: usize,
    /// How the score of a document is computed.
    pub scorer: Scorer,
    /// Whether every matching document is scored, rather than only those that can be hits. The result is the
    /// same.
    pub exhaustive: bool,
    /// Whether every matching document is counted. If not, documents that cannot be hits are skipped.
    pub count: bool,
    /// Whether the engine reads the external ids of the hits.
    pub ids: bool,
    /// Sizes that decide how lists are evaluated. Tests make them small.
    #[doc(hidden)]
    pub tuning: Tuning,
}

impl Default for SearchOptions {
    fn default() -> SearchOptions {
        SearchOptions {
            k: 10,
            scorer: Scorer::default(),
            exhaustive: false,
            count: false,
            ids: false,
            tuning: Tuning::default(),
        }
    }
}

impl SearchOptions {
    /// The options that an evaluation depends on.
    #[doc(hidden)]
    pub fn evaluation_options(&self) -> EvaluationOptions {
        let SearchOptions { k, count, exhaustive, tuning, .. } = *self;
        EvaluationOptions { k, count, exhaustive, tuning }
    }

    /// Whether the number of matches of a search that returned `hits` hits is exact: all matches were
    /// counted, or all are hits.
    pub fn is_exact(&self, hits: usize) -> bool {
        self.count || self.k == 0 || hits < self.k
    }
}

/// The result of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchResult {
    /// Number of matching documents if they were counted, else a lower bound of it.
    pub total: u64,
    /// The `k` best matches, best first; of equal scores, the smaller document first.
    pub hits: Vec<SearchHit>,
    /// External ids that were read with the hits.
    pub ids: HitIds,
}

/// The external ids of some of a sequence of documents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HitIds {
    pub(super) text: String,
    /// Each document, and the offset of its id in `text`.
    pub(super) starts: Vec<(u32, u32)>,
    /// Bytes of each id; [`HitIds::UNREAD`] if it was not read.
    pub(super) lengths: Vec<u16>,
}

impl HitIds {
    pub(super) const UNREAD: u16 = u16::MAX;

    /// The id of a document, if it is at this index in the sequence and was read. A caller may have reordered
    /// its hits.
    pub fn get(&self, index: usize, document: u32) -> Option<&str> {
        let (_, start) = *self.starts.get(index).filter(|(other, _)| *other == document)?;
        let bytes = *self.lengths.get(index).filter(|bytes| **bytes != HitIds::UNREAD)?;
        Some(&self.text[start as usize..][..bytes.into()])
    }
}

/// A matching document and its score.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SearchHit {
    /// Number of the document in its commit, from 0, in the order in which documents were added.
    pub document: u32,
    /// The score, with the boosts of the query.
    pub score: f32,
}

/// The result of an evaluation of a query on a range of documents.
#[derive(Clone)]
pub(crate) struct PartialResult {
    /// The best matches in the range, best first.
    pub(crate) hits: Vec<Hit>,
    /// Number of matches, modulo 2^64: only the sum over all ranges is the number of matches of the query.
    pub(crate) total: u64,
    /// Whether the evaluation visited the whole range, and was not interrupted.
    pub(crate) complete: bool,
}

impl PartialResult {
    /// Adds the result of another range of documents; the best `k` hits are kept.
    pub(crate) fn merge(&mut self, other: PartialResult, k: usize) {
        self.hits.extend(other.hits);
        self.hits.sort_unstable_by(Hit::order);
        self.hits.truncate(k);
        self.complete &= other.complete;
        // The totals of some ranges alone mean nothing.
        self.total = if self.complete { self.total.wrapping_add(other.total) } else { 0 };
    }

    /// Whether there are fewer than `k` hits although the initial threshold guarantees `k`, which shows that
    /// the skip records are wrong, or a guess of the threshold failed. The query must be evaluated again
    /// without an initial threshold.
    pub(crate) fn was_initial_threshold_too_high(
        &self,
        k: usize,
        index: &Index,
        threshold: &SharedThreshold,
    ) -> bool {
        self.complete
            && !threshold
                .are_hits_complete(&self.hits, usize::try_from(index.documents()).map_or(k, |all| k.min(all)))
    }

    /// The result of the query, if this is the result on all documents.
    pub(crate) fn into_result(self, options: &SearchOptions, scale: ScoreScale) -> SearchResult {
        // Without counting, the evaluated matches are a lower bound, and so is the number of hits.
        let is_counted = options.count && self.complete;
        let total = if is_counted { self.total } else { self.total.max(self.hits.len() as u64) };
        let shown = |hit: &Hit| SearchHit { document: hit.document, score: scale.shown(hit.score) };
        SearchResult { total, hits: self.hits.iter().map(shown).collect(), ids: HitIds::default() }
    }
}
