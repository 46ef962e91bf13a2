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

/// Keeps the best `k` of the hits offered in rising order of documents.
pub struct TopK {
    k: usize,
    hits: Vec<Hit>,
    /// Scores that are not greater cannot enter any more.
    threshold: f32,
}

impl TopK {
    /// For the best `k` of at most `documents`.
    pub fn new(k: usize, documents: u64) -> TopK {
        let k = k.min(usize::try_from(documents).unwrap_or(usize::MAX));
        let room = k.saturating_mul(2).min(usize::try_from(documents).unwrap_or(usize::MAX)).min(1 << 16);
        TopK { k, hits: Vec::with_capacity(room), threshold: f32::NEG_INFINITY }
    }

    /// Offers a document.
    #[inline]
    pub fn offer(&mut self, document: u32, score: f32) {
        if score > self.threshold && self.k > 0 {
            self.hits.push(Hit { score, document });
            if self.hits.len() >= self.k.saturating_mul(2) {
                self.cut();
            }
        }
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
        self.threshold = self.hits[k - 1].score;
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
