//! The best k documents: a buffer of candidates, cut back to the best k when it is full.
//!
//! A candidate is one number of 64 bits, the larger the better: its score above the complement of its
//! document.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering as AtomicOrdering};
use tierdex_codec::{BLOCK, Places, largest, values_at_least};

/// A document and its score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Score; larger is better.
    pub score: u32,
    /// Document; of equal scores the smaller document is better.
    pub document: u32,
}

impl Hit {
    /// Better hits come first.
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

/// Hits that are cut back for each that is one too many.
const FEW: usize = 64;

/// Candidates for which there is room from one query to the next.
const KEPT: usize = 1 << 14;

/// Keeps the best `k` of the hits offered, in whichever order.
pub struct TopK {
    k: usize,
    /// Candidates at which the buffer is cut back.
    full: usize,
    keys: Vec<u64>,
    /// Candidates that are not better cannot enter any more; 0 is worse than all.
    threshold: u64,
    /// Whether the threshold is that of hits, and not only the initial one.
    has_been_full: bool,
    /// The score of the threshold.
    least: u32,
    places: Places,
    scratch: Vec<u64>,
    /// The threshold of all evaluations of the query.
    shared: Option<Arc<SharedThreshold>>,
}

/// The highest score of the `k`-th best hit of several evaluations, which look at different documents.
#[derive(Default)]
pub struct SharedThreshold(AtomicU32);

impl SharedThreshold {
    /// As many hits as are wanted are known to score `initial` or more.
    pub fn new(initial: u32) -> SharedThreshold {
        SharedThreshold(AtomicU32::new(initial))
    }

    /// The score that each hit has at least.
    pub fn get(&self) -> u32 {
        self.0.load(AtomicOrdering::Relaxed)
    }
}

impl Default for TopK {
    fn default() -> TopK {
        TopK {
            k: 0,
            full: 1,
            keys: Vec::new(),
            threshold: 0,
            has_been_full: false,
            least: 0,
            places: Places::new(),
            scratch: Vec::new(),
            shared: None,
        }
    }
}

impl TopK {
    /// For the best `k` of at most `documents`.
    pub fn new(k: usize, documents: u64) -> TopK {
        let mut top = TopK::default();
        top.restart(k, documents);
        top
    }

    /// Forgets all hits, and takes the best `k` of at most `documents` from now on.
    pub fn restart(&mut self, k: usize, documents: u64) {
        self.k = k.min(usize::try_from(documents).unwrap_or(usize::MAX));
        self.full = self.k.saturating_mul(2).max(self.k.saturating_add(BLOCK));
        self.keys.clear();
        (self.threshold, self.least, self.has_been_full, self.shared) = (0, 0, false, None);
    }

    /// Shares the threshold with other evaluations from now on.
    pub fn share_threshold(&mut self, shared: Arc<SharedThreshold>) {
        self.shared = Some(shared);
        self.adopt_threshold();
    }

    /// Raises the threshold to the shared one. Documents of an equal score still enter: the smaller document
    /// is the better.
    #[inline]
    pub fn adopt_threshold(&mut self) {
        if let Some(shared) = &self.shared {
            let score = shared.get();
            if score > self.least {
                self.set_initial_threshold(score);
            }
        }
    }

    /// Takes no hits that score less than `score`: as many as are wanted are known to score that.
    pub fn set_initial_threshold(&mut self, score: u32) {
        self.least = score;
        self.threshold = (u64::from(score) << 32).saturating_sub(1);
    }

    /// Offers a document.
    #[inline]
    pub fn offer(&mut self, document: u32, score: u32) {
        let key = Hit { score, document }.key();
        if key > self.threshold && self.k > 0 {
            self.keys.push(key);
            if self.keys.len() >= self.full {
                self.cut();
            }
        }
    }

    /// Offers up to 256 documents, numbered from `base` on.
    pub fn offer_all(&mut self, base: u32, documents: &[u32], scores: &[u32]) {
        if self.k == 0 {
            return;
        }
        values_at_least(scores, self.least, &mut self.places);
        for place in self.places.get().iter().map(|place| usize::from(*place)) {
            let key = Hit { score: scores[place], document: base + documents[place] }.key();
            if key > self.threshold {
                self.keys.push(key);
            }
        }
        if self.keys.len() >= self.full {
            self.cut();
        }
    }

    /// The score below which no hit can enter any more: 0 as long as any can.
    #[inline]
    pub fn threshold(&self) -> u32 {
        self.least
    }

    /// Whether a document from `document` on that scores at most `score` can enter.
    #[inline]
    pub fn may_enter(&self, score: u32, document: u32) -> bool {
        Hit { score, document }.key() > self.threshold
    }

    /// Raises [`TopK::threshold`] as far as the hits so far allow.
    pub fn raise_threshold(&mut self) {
        // Not for every hit more if they are many: cutting takes as long as looking at them all.
        let more = if self.k > FEW { self.k / 2 } else { 0 };
        let enough = self.k + if self.has_been_full { more + 1 } else { 0 };
        if self.keys.len() >= enough && self.k > 0 {
            self.cut();
        }
    }

    /// How many hits are wanted.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Number of hits that [`TopK::take`] would give.
    pub fn len(&self) -> usize {
        self.keys.len().min(self.k)
    }

    /// Whether there is no hit.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The best hits, best first. None are left.
    pub fn take(&mut self) -> Vec<Hit> {
        if self.keys.len() > self.k {
            self.cut();
        }
        self.keys.sort_unstable_by(|a, b| b.cmp(a));
        let hits = self.keys.iter().map(|key| Hit::of_key(*key)).collect();
        self.keys.clear();
        // Room for very many hits is not kept for queries that want few.
        self.keys.shrink_to(KEPT);
        self.scratch.truncate(KEPT);
        self.scratch.shrink_to(KEPT);
        hits
    }

    #[cold]
    fn cut(&mut self) {
        self.has_been_full = true;
        if self.k > 0 {
            let worst = largest(&mut self.keys, self.k, &mut self.scratch);
            self.threshold = self.threshold.max(worst);
            self.least = Hit::of_key(self.threshold).score;
            if let Some(shared) = &self.shared {
                shared.0.fetch_max(self.least, AtomicOrdering::Relaxed);
            }
        }
        self.keys.truncate(self.k);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_are_in_the_order_of_hits() {
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
        fn keeps_the_best_in_order(scores in prop::collection::vec(0u8..20, 0..900), k in 0usize..400, blocks: bool) {
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
                    hits.iter().for_each(|hit| top.offer(hit.document, hit.score));
                }
            }
            all.sort_by(Hit::order);
            all.truncate(k);
            prop_assert_eq!(top.take(), all);
        }

        #[test]
        fn expects_no_more_than_there_is(
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
                top.raise_threshold();
            }
            prop_assert_eq!(top.take(), best);
        }

        #[test]
        fn what_may_enter_is_what_is_taken(
            offers in prop::collection::vec((0u8..30, 0u8..3), 0..900),
            k in 0usize..300,
            raises in 1usize..40,
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
                // Better ones may enter too, and worse ones may not if this one may not.
                prop_assert!(!may_enter || top.may_enter(hit.score + 1, document));
                prop_assert!(!may_enter || document == 0 || top.may_enter(hit.score, document - 1));
                prop_assert!(!may_enter || hit.score >= top.threshold());
                prop_assert!(top.may_enter(top.threshold() + 1, u32::MAX - 1));
                if k > 0 {
                    let better = all.iter().filter(|other| other.order(&hit).is_lt()).count();
                    prop_assert!(may_enter || better >= k, "{:?} is one of the best {}", hit, k);
                    let before = top.keys.len();
                    top.offer(document, hit.score);
                    let was_taken = top.keys.len() != before || top.keys.contains(&hit.key());
                    prop_assert_eq!(was_taken, may_enter, "{:?}", hit);
                    if may_enter {
                        // Numbered from some base on.
                        let base = document.min(7);
                        few.offer_all(base, &[document - base], &[hit.score]);
                    }
                }
                all.push(hit);
                if number % raises == 0 {
                    top.raise_threshold();
                }
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
