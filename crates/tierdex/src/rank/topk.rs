//! The best k documents: a buffer of up to 2k candidates, cut back to the best k when it is full.

use std::cmp::Ordering;

/// A document and its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Score; larger is better.
    pub score: f32,
    /// Document; of equal scores the smaller document is better.
    pub document: u32,
}

impl Hit {
    /// Better hits come first.
    pub fn order(&self, other: &Hit) -> Ordering {
        other.score.total_cmp(&self.score).then(self.document.cmp(&other.document))
    }
}

/// Worse than every hit.
const ANY: Hit = Hit { score: f32::NEG_INFINITY, document: u32::MAX };

/// Keeps the best `k` of the hits offered, in whichever order.
pub struct TopK {
    k: usize,
    hits: Vec<Hit>,
    /// Hits that are not better cannot enter any more.
    threshold: Hit,
}

impl TopK {
    /// For the best `k` of at most `documents`.
    pub fn new(k: usize, documents: u64) -> TopK {
        let k = k.min(usize::try_from(documents).unwrap_or(usize::MAX));
        let room = k.saturating_mul(2).min(usize::try_from(documents).unwrap_or(usize::MAX)).min(1 << 16);
        TopK { k, hits: Vec::with_capacity(room), threshold: ANY }
    }

    /// Offers a document.
    #[inline]
    pub fn offer(&mut self, document: u32, score: f32) {
        let Hit { score: least, document: last } = self.threshold;
        if (score > least || score == least && document < last) && self.k > 0 {
            self.hits.push(Hit { score, document });
            if self.hits.len() >= self.k.saturating_mul(2) {
                self.cut();
            }
        }
    }

    /// The score below which no hit can enter any more.
    #[inline]
    pub fn least(&self) -> f32 {
        self.threshold.score
    }

    /// Raises [`TopK::least`] as far as the hits so far allow.
    pub fn tighten(&mut self) {
        // Not for every hit more: cutting takes as long as looking at them all.
        let enough = self.k + if self.threshold == ANY { 0 } else { self.k / 8 + 1 };
        if self.hits.len() >= enough && self.k > 0 {
            self.cut();
        }
    }

    /// How many hits are wanted.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The best hits, best first.
    pub fn finish(mut self) -> Vec<Hit> {
        if self.hits.len() > self.k {
            self.cut();
        }
        self.hits.sort_unstable_by(Hit::order);
        self.hits
    }

    #[cold]
    fn cut(&mut self) {
        let k = self.k;
        self.hits.select_nth_unstable_by(k - 1, Hit::order);
        self.hits.truncate(k);
        self.threshold = self.hits[k - 1];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keeps_the_best_in_order(scores in prop::collection::vec(0u8..20, 0..300), k in 0usize..40) {
            let mut top = TopK::new(k, scores.len() as u64);
            let mut all = Vec::new();
            for (document, &score) in scores.iter().enumerate() {
                let hit = Hit { score: f32::from(score), document: document as u32 };
                top.offer(hit.document, hit.score);
                all.push(hit);
            }
            all.sort_by(Hit::order);
            all.truncate(k);
            prop_assert_eq!(top.finish(), all);
        }
    }
}
