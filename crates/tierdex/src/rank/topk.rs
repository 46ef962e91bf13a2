//! Top-k selection: a buffer of candidates, which is reduced to the best k when it is full.
//!
//! A candidate is a 64-bit key: the score in the high half, the complement of the document in the low half.
//! So a larger key is a better hit.

use std::sync::atomic::{AtomicU32, Ordering as AtomicOrdering};
use std::{cmp::Ordering, sync::Arc};
use tierdex_codec::{BLOCK, Selection, largest, values_at_least};

/// A document and its score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Score; larger is better.
    pub score: u32,
    /// The document. Of two hits with equal scores, the one with the smaller document is better.
    pub document: u32,
}

impl Hit {
    /// The order of hits in a result: better hits first.
    pub fn order(&self, other: &Hit) -> Ordering {
        other.key().cmp(&self.key())
    }

    #[inline]
    fn key(self) -> u64 {
        u64::from(self.score) << 32 | u64::from(!self.document)
    }

    fn of_key(key: u64) -> Hit {
        Hit { score: (key >> 32) as u32, document: !(key as u32) }
    }
}

/// Largest k for which the threshold is raised with each new candidate. For a larger k it is raised once per
/// `k / 2` candidates.
const RAISED_EACH_TIME_K_MAX: usize = 64;

/// Number of candidates whose memory is retained between queries.
const RETAINED_CANDIDATES: usize = 1 << 14;

/// Selects the best `k` of the hits that are offered, in any order. If `k` is 0, no hit may be offered.
pub struct TopK {
    k: usize,
    /// Keys of the candidates.
    keys: Vec<u64>,
    /// The key that a new candidate must exceed; 0 if any hit is a candidate.
    threshold: u64,
    /// Whether the buffer was reduced to the best `k`, so that the threshold is the k-th best key.
    was_reduced: bool,
    /// The smallest score of a new candidate.
    min_score: u32,
    /// Scratch buffers.
    selection: Selection,
    scratch: Vec<u64>,
    /// The threshold shared with other evaluations of the query.
    shared: Option<Arc<SharedThreshold>>,
}

/// A lower bound of the `k`-th best score of a query, which its evaluations over disjoint ranges of documents
/// share: the highest of their `k`-th best scores.
#[derive(Default)]
pub struct SharedThreshold {
    score: AtomicU32,
    /// The highest score that was a guess: [`SharedThreshold::are_hits_complete`] compares the hits with it.
    guess: AtomicU32,
    may_guess: bool,
}

impl SharedThreshold {
    /// A threshold of `initial`, which at least `k` documents reach, unless a part of it, `guess`, is one:
    /// then they very likely reach it. The evaluations may guess too.
    pub fn new(initial: u32, guess: u32) -> SharedThreshold {
        let (score, guess) = (AtomicU32::new(initial), AtomicU32::new(guess));
        SharedThreshold { score, guess, may_guess: true }
    }

    /// Lower bound of the score of each hit.
    pub fn get(&self) -> u32 {
        self.score.load(AtomicOrdering::Relaxed)
    }

    /// Whether the best `k` of all documents are among these hits, the best first, of evaluations that began
    /// with this threshold. False if the initial threshold, or a guess, was too high.
    pub fn are_hits_complete(&self, hits: &[Hit], k: usize) -> bool {
        match k.checked_sub(1).map(|last| hits.get(last)) {
            None => true,
            Some(None) => self.get() == 0,
            Some(Some(last)) => last.score >= self.guess.load(AtomicOrdering::Relaxed),
        }
    }
}

impl Default for TopK {
    fn default() -> TopK {
        TopK {
            k: 0,
            keys: Vec::new(),
            threshold: 0,
            was_reduced: false,
            min_score: 0,
            selection: Selection::new(),
            scratch: Vec::new(),
            shared: None,
        }
    }
}

impl TopK {
    /// Selects the best `k` of at most `documents` documents.
    pub fn new(k: usize, documents: u64) -> TopK {
        let mut top = TopK::default();
        top.restart(k, documents);
        top
    }

    /// Maximum bytes of memory for the selection of the best `k`, with the hits that are returned.
    pub fn bytes_max(k: usize) -> u64 {
        // The candidates, a scratch buffer of the same size, and the hits.
        let keys = (candidates_max(k) as u64).saturating_mul(2).saturating_add(k as u64);
        keys.saturating_mul(size_of::<u64>() as u64)
    }

    /// Removes all hits, and selects the best `k` of at most `documents` documents from now on.
    pub fn restart(&mut self, k: usize, documents: u64) {
        self.k = k.min(usize::try_from(documents).unwrap_or(usize::MAX));
        self.keys.clear();
        (self.threshold, self.min_score, self.was_reduced, self.shared) = (0, 0, false, None);
    }

    /// Shares the threshold with other evaluations of the query from now on.
    pub fn share_threshold(&mut self, shared: Arc<SharedThreshold>) {
        self.shared = Some(shared);
        self.adopt_threshold();
    }

    /// Raises the threshold to the shared one. Documents with an equal score are still candidates, because of
    /// two hits with equal scores the smaller document is better.
    #[inline]
    pub fn adopt_threshold(&mut self) {
        if let Some(shared) = &self.shared {
            let score = shared.get();
            if score > self.min_score {
                self.set_initial_threshold(score);
            }
        }
    }

    /// From now on rejects hits that score less than `score`, which at least `k` documents are known to
    /// reach.
    pub fn set_initial_threshold(&mut self, score: u32) {
        self.min_score = score;
        self.threshold = (u64::from(score) << 32).saturating_sub(1);
    }

    /// Whether [`TopK::guess_threshold`] has an effect.
    pub fn may_guess(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| shared.may_guess)
    }

    /// From now on rejects hits that score less than `score`, which `k` documents very likely reach. The
    /// shared threshold tells in the end whether they did.
    pub fn guess_threshold(&mut self, score: u32) {
        if let Some(shared) = self.shared.as_ref().filter(|shared| shared.may_guess) {
            shared.guess.fetch_max(score, AtomicOrdering::Relaxed);
            self.set_initial_threshold(score);
        }
    }

    /// Offers up to 256 documents with their scores. The documents increase; `base` is added to each. Raises
    /// [`TopK::threshold`] to the `k`-th best score so far.
    pub fn offer_all(&mut self, base: u32, documents: &[u32], scores: &[u32]) {
        self.offer_if(base, documents, scores, |_| true);
    }

    /// As [`TopK::offer_all`], except documents for which `may_be_hit` is false. It is called only with those
    /// that score enough.
    #[inline]
    pub fn offer_if(
        &mut self,
        base: u32,
        documents: &[u32],
        scores: &[u32],
        may_be_hit: impl Fn(u32) -> bool,
    ) {
        let Some(first) = documents.first() else { return };
        debug_assert!(documents.is_sorted());
        // Often many scores are equal to the threshold, and none of these documents is small enough.
        let ties_enter = self.may_enter(self.min_score, base + first);
        let Some(min_score) = self.min_score.checked_add(u32::from(!ties_enter)) else { return };
        values_at_least(scores, min_score, &mut self.selection);
        self.reserve(self.selection.positions().len());
        for position in self.selection.positions().iter().map(|position| usize::from(*position)) {
            let key = Hit { score: scores[position], document: base + documents[position] }.key();
            if key > self.threshold && may_be_hit(documents[position]) {
                self.keys.push(key);
            }
        }
        self.raise_threshold();
    }

    /// The smallest score of a new candidate; 0 if any score is enough.
    #[inline]
    pub fn threshold(&self) -> u32 {
        self.min_score
    }

    /// Whether a document with the number `document` or a greater one, and a score of at most `score`, can
    /// be a new candidate.
    #[inline]
    pub fn may_enter(&self, score: u32, document: u32) -> bool {
        Hit { score, document }.key() > self.threshold
    }

    /// Selects the best `k` candidates, if there are enough new ones.
    fn raise_threshold(&mut self) {
        // Selection is linear in the number of candidates: for a large k, run it only once per k / 2 new
        // hits.
        let more = if self.k > RAISED_EACH_TIME_K_MAX { self.k / 2 } else { 0 };
        let len_min = self.k + if self.was_reduced { more + 1 } else { 0 };
        if self.keys.len() >= len_min {
            self.select_best();
        }
    }

    /// Number of hits to select.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Removes and returns the best hits, best first.
    pub fn take(&mut self) -> Vec<Hit> {
        if self.keys.len() > self.k {
            self.select_best();
        }
        self.keys.sort_unstable_by(|a, b| b.cmp(a));
        let hits = self.keys.iter().map(|key| Hit::of_key(*key)).collect();
        self.keys.clear();
        // Do not retain the memory of a large k.
        self.keys.shrink_to(RETAINED_CANDIDATES);
        self.scratch.truncate(RETAINED_CANDIDATES);
        self.scratch.shrink_to(RETAINED_CANDIDATES);
        hits
    }

    /// Allocates memory for `more` candidates, not more than [`TopK::bytes_max`] counts.
    #[inline]
    fn reserve(&mut self, more: usize) {
        let len = self.keys.len() + more;
        if len > self.keys.capacity() {
            let capacity = (2 * len).min(candidates_max(self.k));
            self.keys.reserve_exact(capacity - self.keys.len());
        }
    }

    #[cold]
    fn select_best(&mut self) {
        self.was_reduced = true;
        let worst = largest(&mut self.keys, self.k, &mut self.scratch);
        self.threshold = self.threshold.max(worst);
        self.min_score = Hit::of_key(self.threshold).score;
        if let Some(shared) = &self.shared {
            shared.score.fetch_max(self.min_score, AtomicOrdering::Relaxed);
        }
        self.keys.truncate(self.k);
    }
}

/// Maximum number of candidates: the number at which the best `k` are selected, and one more block.
fn candidates_max(k: usize) -> usize {
    k.saturating_add(k / 2 + BLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_compare_like_hits() {
        let hits = [0, 1, 7, u32::MAX]
            .iter()
            .flat_map(|score| [7, 8].map(|document| Hit { score: *score, document }));
        let hits: Vec<Hit> = hits.collect();
        for a in &hits {
            assert_eq!(Hit::of_key(a.key()), *a);
            for b in &hits {
                assert_eq!(a.order(b), b.score.cmp(&a.score).then(a.document.cmp(&b.document)));
            }
        }
    }

    proptest! {
        #[test]
        fn the_best_hits_are_returned_in_order(scores in prop::collection::vec(0u8..20, 0..900), k in 1usize..400, blocks: bool) {
            let mut top = TopK::new(k, scores.len() as u64);
            let mut all = Vec::new();
            for (document, &score) in scores.iter().enumerate() {
                all.push(Hit { score: u32::from(score), document: document as u32 });
            }
            for hits in all.chunks(100) {
                let documents: Vec<u32> = hits.iter().map(|hit| hit.document - 7u32.min(hit.document)).collect();
                let base = hits[0].document - documents[0];
                if blocks && hits[0].document >= 7 {
                    let scores: Vec<u32> = hits.iter().map(|hit| hit.score).collect();
                    top.offer_all(base, &documents, &scores);
                } else {
                    hits.iter().for_each(|hit| top.offer_all(0, &[hit.document], &[hit.score]));
                }
            }
            all.sort_by(Hit::order);
            all.truncate(k);
            prop_assert_eq!(top.take(), all);
        }

        #[test]
        fn an_initial_threshold_loses_no_hit(
            scores in prop::collection::vec(0u8..20, 1..900), k in 1usize..400, less in 0u32..3, forward: bool,
        ) {
            let document = |number| if forward { number } else { 3000 - number };
            let mut all: Vec<Hit> = (0..)
                .zip(&scores)
                .map(|(number, &score)| Hit { score: u32::from(score), document: document(number) })
                .collect();
            let mut top = TopK::new(k, 3000);
            let mut best = all.clone();
            best.sort_by(Hit::order);
            best.truncate(k);
            if best.len() == k {
                top.set_initial_threshold(best[k - 1].score.saturating_sub(less));
            }
            for hits in all.chunks_mut(100) {
                hits.sort_by_key(|hit| hit.document);
                prop_assert!(hits.iter().all(|hit| !best.contains(hit) || top.may_enter(hit.score, hit.document)));
                let (documents, scores): (Vec<u32>, Vec<u32>) =
                    hits.iter().map(|hit| (hit.document, hit.score)).unzip();
                top.offer_all(0, &documents, &scores);
            }
            prop_assert_eq!(top.take(), best);
        }

        #[test]
        fn may_enter_agrees_with_offer(
            offers in prop::collection::vec((0u8..30, 0u8..3), 0..900),
            k in 1usize..300,
            forward: bool,
        ) {
            let mut top = TopK::new(k, 2000);
            let mut few = TopK::new(k, 2000);
            let mut all: Vec<Hit> = Vec::new();
            for (number, (score, step)) in offers.iter().enumerate() {
                let document = 3 * number as u32 + u32::from(*step);
                let document = if forward { document } else { 3000 - document };
                let hit = Hit { score: u32::from(*score), document };
                let may_enter = top.may_enter(hit.score, document);
                // `may_enter` is monotone in score and document.
                prop_assert!(!may_enter || top.may_enter(hit.score + 1, document));
                prop_assert!(!may_enter || document == 0 || top.may_enter(hit.score, document - 1));
                prop_assert!(!may_enter || hit.score >= top.threshold());
                prop_assert!(top.may_enter(top.threshold() + 1, u32::MAX - 1));
                let better = all.iter().filter(|other| other.order(&hit).is_lt()).count();
                prop_assert!(may_enter || better >= k, "{:?} is one of the best {}", hit, k);
                let before = top.keys.len();
                top.offer_all(0, &[document], &[hit.score]);
                let was_taken = top.keys.len() != before || top.keys.contains(&hit.key());
                prop_assert_eq!(was_taken, may_enter, "{:?}", hit);
                if may_enter {
                    // Relative to a base.
                    let base = document.min(7);
                    few.offer_all(base, &[document - base], &[hit.score]);
                }
                all.push(hit);
            }
            all.sort_by(Hit::order);
            all.truncate(k);
            for mut top in [top, few] {
                let mut found = top.take();
                found.truncate(k);
                prop_assert_eq!(&found, &all);
            }
        }
    }
}
