//! The receiver of matches: what an evaluation does with the documents that it finds.

use crate::{limits::BLOCK, rank::TopK, segment::DeletedDocuments};

/// Receives the matches of an evaluation.
///
/// Matches arrive in blocks of ascending documents, each exactly once; a query that is evaluated again starts
/// over with an empty collector. A collector by a sort key, of facets or of a set of matches takes every
/// match: it implements `offer_all`, has no threshold, and lets any score enter. Strategies that only count
/// do not offer documents: `choose_strategy` must not choose them for it. Only a collector by score lets
/// strategies prune: through `threshold` and `may_enter`, by which they skip, `adopt_threshold`, which shares
/// the threshold of other threads, and `set_initial_threshold`.
pub enum Collector<'s> {
    /// Keeps the best documents by score.
    Best(&'s mut TopK),
    /// Takes no hits: matches are only counted.
    Count,
}

impl<'s> Collector<'s> {
    /// A collector of the `k` best documents in `top`; it only counts if `k` is 0.
    pub fn of(k: usize, top: &'s mut TopK) -> Collector<'s> {
        if k == 0 { Collector::Count } else { Collector::Best(top) }
    }

    /// Whether hits are requested.
    #[inline]
    pub(crate) fn ranks(&self) -> bool {
        matches!(self, Collector::Best(_))
    }

    /// Number of hits requested.
    pub(crate) fn k(&self) -> usize {
        if let Collector::Best(top) = self { top.k() } else { 0 }
    }

    /// The smallest score with which a document may still become a hit; 0 as long as any may.
    #[inline]
    pub(crate) fn threshold(&self) -> u32 {
        if let Collector::Best(top) = self { top.threshold() } else { 0 }
    }

    /// Whether a document with the number `document` or a greater one, that scores at most `score`, can be a
    /// hit.
    #[inline]
    pub(crate) fn may_enter(&self, score: u32, document: u32) -> bool {
        matches!(self, Collector::Best(top) if top.may_enter(score, document))
    }

    /// Offers documents of a segment in increasing order, with their scores, except those that are `deleted`;
    /// `base` is the number of its first document in the index. Raises the threshold.
    #[inline]
    pub(crate) fn offer_all(
        &mut self,
        base: u32,
        documents: &[u32],
        scores: &[u32],
        deleted: Option<&DeletedDocuments>,
    ) {
        if let Collector::Best(top) = self {
            for (documents, scores) in documents.chunks(BLOCK).zip(scores.chunks(BLOCK)) {
                match deleted {
                    None => top.offer_all(base, documents, scores),
                    Some(deleted) => {
                        top.offer_if(base, documents, scores, |document| !deleted.contains(document));
                    }
                }
            }
        }
    }

    /// Raises the threshold to that of evaluations of the same query on other threads.
    #[inline]
    pub(crate) fn adopt_threshold(&mut self) {
        if let Collector::Best(top) = self {
            top.adopt_threshold();
        }
    }

    /// Whether [`Collector::set_initial_threshold`] may guess.
    pub(crate) fn may_guess(&self) -> bool {
        matches!(self, Collector::Best(top) if top.may_guess())
    }

    /// Sets a threshold that at least `k` documents are known to reach, or, as a guess, very likely reach.
    pub(crate) fn set_initial_threshold(&mut self, score: u32, is_guess: bool) {
        match self {
            Collector::Best(top) if is_guess => top.guess_threshold(score),
            Collector::Best(top) => top.set_initial_threshold(score),
            Collector::Count => {}
        }
    }
}
