//! Scores of postings: the scorer that a search selects, and its scores for one term.
//!
//! The score of a posting is the weight of its term times its *share*: with BM25 `f / (f + k)`, where `f` is
//! the frequency and `k` depends on the document length ([`LengthNorms`]); with [`Scorer::Dot`] the
//! frequency.

use super::bm25::{Bm25, LengthNorms};
use crate::{segment::read::Norms, transform::impact::Impact};
use std::sync::Arc;
use tierdex_codec::{BLOCK, Saturation};

/// How the score of a document is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scorer {
    /// BM25 with these parameters.
    Bm25(Bm25),
    /// The inner product of query and document: the sum of boost times frequency, without inverse document
    /// frequency and document length. For learned sparse models, and for quantized impacts, which are indexed
    /// as frequencies.
    Dot,
}

impl Default for Scorer {
    fn default() -> Scorer {
        Scorer::Bm25(Bm25::default())
    }
}

impl From<Bm25> for Scorer {
    fn from(bm25: Bm25) -> Scorer {
        Scorer::Bm25(bm25)
    }
}

/// Largest sum of the scaled weights of a query. Sums of scores are less than twice this value, so they fit
/// in `u32`.
const WEIGHT_MAX: f64 = (1u32 << 30) as f64;

/// Bits of the fraction of an `f64`; exponent and sign are above them.
const FRACTION_BITS: u32 = f64::MANTISSA_DIGITS - 1;

/// The factor by which the weights of a query are multiplied to get integer scores.
///
/// Scores are integers, so sums do not depend on the order of the terms or on the division of documents into
/// segments. The factor is the power of two for which the sum of all weights, each times its largest share,
/// is in (2^29, 2^30]. The score of a term has the 24-bit precision of an `f32` and is rounded to 2^-30 of
/// the highest possible score. A term with a smaller relative weight has the smallest score, 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreScale {
    factor: f64,
}

impl ScoreScale {
    /// The scale of a query whose weights, each times its largest share, have this sum.
    pub fn of(weights: f64) -> ScoreScale {
        if weights <= 0.0 {
            return ScoreScale { factor: 1.0 };
        }
        // For weights of at most 2^-994 the quotient is infinite.
        let quotient = (WEIGHT_MAX / weights).min(f64::MAX);
        // The largest power of two up to the quotient: its exponent without its fraction.
        let factor = f64::from_bits(quotient.to_bits() >> FRACTION_BITS << FRACTION_BITS);
        // The quotient may have been rounded up to a power of two.
        ScoreScale { factor: if factor * weights > WEIGHT_MAX { factor / 2.0 } else { factor } }
    }

    /// The exponent of the factor, which is a power of two: a score of `units` is shown as
    /// `units * 2^-exponent`.
    pub fn exponent(self) -> i32 {
        (self.factor.to_bits() >> FRACTION_BITS) as i32 - (f64::MAX_EXP - 1)
    }

    /// The constant score of a clause with this weight: 0 only for weight 0.
    pub fn constant(self, weight: f64) -> u32 {
        if weight > 0.0 { ((weight * self.factor).round() as u32).max(1) } else { 0 }
    }

    /// The score without the scale, as users see it.
    pub fn shown(self, score: u32) -> f32 {
        (f64::from(score) / self.factor) as f32
    }
}

/// Computes the scores of the postings of one term or phrase: `max(1, round_score(weight * share))` with the
/// scaled weight, in `f32`.
pub struct TermScorer {
    weight: f32,
    share: Share,
}

/// How the share of a posting is computed.
enum Share {
    /// BM25: `f / (f + k)`, with the `k` of the document length.
    Saturating(Arc<LengthNorms>),
    /// Inner product: the frequency, or this one if the frequency is larger.
    Frequency(u32),
}

impl TermScorer {
    /// A BM25 scorer for a term. The weight is the product of inverse document frequency, `k1 + 1` and boost.
    pub fn new(lengths: Arc<LengthNorms>, weight: f64, scale: ScoreScale) -> TermScorer {
        TermScorer { weight: (weight * scale.factor) as f32, share: Share::Saturating(lengths) }
    }

    /// A scorer of boost times frequency for a term whose largest frequency is `frequency_max`. Larger
    /// frequencies of damaged postings are scored as `frequency_max`, so that no score exceeds its upper
    /// bound.
    pub fn dot(frequency_max: u32, boost: f64, scale: ScoreScale) -> TermScorer {
        let frequency_max = frequency_max.clamp(1, i32::MAX as u32);
        TermScorer { weight: (boost * scale.factor) as f32, share: Share::Frequency(frequency_max) }
    }

    /// Sets another weight of the term.
    pub fn set_weight(&mut self, weight: f64, scale: ScoreScale) {
        self.weight = (weight * scale.factor) as f32;
    }

    /// Length normalization of BM25; `None` for [`Scorer::Dot`].
    pub fn lengths(&self) -> Option<&LengthNorms> {
        match &self.share {
            Share::Saturating(lengths) => Some(lengths),
            Share::Frequency(_) => None,
        }
    }

    /// Upper bound of all shares.
    pub fn share_max(&self) -> f32 {
        match &self.share {
            Share::Saturating(_) => 1.0,
            Share::Frequency(max) => *max as f32,
        }
    }

    /// Upper bound of the scores of postings whose share is at most `share`.
    #[inline]
    pub fn max_score(&self, share: f32) -> u32 {
        // The margin of 2e-6 is more than sixteen times each of the rounding errors of score and bound.
        (self.weight * (share * (1.0 + 2e-6))) as u32 + 1
    }

    /// Lower bound of the scores of postings whose share is at least `share`.
    pub fn min_score(&self, share: f32) -> u32 {
        ((self.weight * (share * (1.0 - 2e-6))) as u32).saturating_sub(1)
    }

    /// The one of two impacts with the larger upper bound of its share.
    #[inline]
    pub fn better(&self, best: Impact, other: Impact) -> Impact {
        let is_larger = match &self.share {
            Share::Saturating(lengths) => {
                let k_of_other = lengths.min_k(other.norm) * best.frequency as f32;
                k_of_other < lengths.min_k(best.norm) * other.frequency as f32
            }
            Share::Frequency(_) => best.frequency < other.frequency,
        };
        if is_larger { other } else { best }
    }

    /// Upper bound of the scores of postings that the impact dominates.
    pub fn max_score_of(&self, impact: Impact) -> u32 {
        let f = impact.frequency as f32;
        self.max_score(match &self.share {
            Share::Saturating(lengths) => f / (f + lengths.min_k(impact.norm)),
            Share::Frequency(max) => f.min(*max as f32),
        })
    }

    /// Lower bound of the share of every posting that scores `score`, and of every share whose
    /// [`TermScorer::max_score`] is `score`.
    pub fn min_share(&self, score: u32) -> f32 {
        // Less a margin of 4e-6, and less one for the rounding of the score.
        (score as f32 - 1.0) / self.weight * (1.0 - 4e-6)
    }

    /// The smallest frequency with which a posting of a block with these impacts can score `min_score`;
    /// `None` if none can.
    pub fn min_frequency(&self, impacts: &[Impact], min_score: u32) -> Option<u32> {
        let share = self.min_share(min_score);
        let Share::Saturating(lengths) = &self.share else {
            let last = impacts.last()?.frequency;
            return (share <= last as f32).then(|| (share as u32).clamp(1, last));
        };
        let mut before = 0;
        for impact in impacts {
            let k = lengths.min_k(impact.norm);
            let f = impact.frequency as f32;
            if f >= share * (f + k) {
                // Postings with a frequency above that of the previous impact, up to that of this one, have
                // at least this `k`.
                let needed = (k * share / (1.0 - share) * (1.0 - 1e-4)).floor();
                return Some((needed as u32).clamp(before + 1, impact.frequency));
            }
            before = impact.frequency;
        }
        None
    }

    /// Score of a posting with frequency `f`, which is not an integer for a phrase with slop.
    #[inline]
    pub fn score_of(&self, norms: &Norms, document: u32, f: f32) -> u32 {
        let lengths = match &self.share {
            Share::Saturating(lengths) => lengths,
            Share::Frequency(max) => return round_score(self.weight * f.min(*max as f32)),
        };
        let k = match norms {
            _ if lengths.is_constant() => lengths.by_code.get(0),
            Norms::Byte(codes) => lengths.by_code.get(codes[document as usize]),
            Norms::Exact(of) => lengths.exact_k(of.get(document)),
        };
        round_score(self.weight * (f / (f + k)))
    }

    /// The parameters of the scoring kernels of BM25, for documents with these norm codes.
    pub fn saturation<'a>(&'a self, codes: &'a [u8]) -> Option<Saturation<'a>> {
        self.lengths().map(|lengths| Saturation { weight: self.weight, k: &lengths.by_code, codes })
    }

    /// Scores of a block of postings. No norm is read if scores do not depend on lengths (b = 0).
    pub fn score_all(&self, norms: &Norms, documents: &[u32], frequencies: &[u32], scores: &mut [u32]) {
        match (&self.share, norms) {
            (Share::Saturating(lengths), _) if lengths.is_constant() => {
                let saturation = Saturation { weight: self.weight, k: &lengths.by_code, codes: &[0; BLOCK] };
                saturation.score(&BLOCK_POSITIONS[..documents.len()], frequencies, scores);
            }
            (Share::Saturating(lengths), Norms::Byte(codes)) => {
                let saturation = Saturation { weight: self.weight, k: &lengths.by_code, codes };
                saturation.score(documents, frequencies, scores);
            }
            (Share::Saturating(lengths), Norms::Exact(of)) => {
                for ((score, document), frequency) in scores.iter_mut().zip(documents).zip(frequencies) {
                    let f = *frequency as f32;
                    *score = round_score(self.weight * (f / (f + lengths.exact_k(of.get(*document)))));
                }
            }
            (Share::Frequency(max), _) => {
                for (score, frequency) in scores.iter_mut().zip(frequencies) {
                    // The conversion from `i32` is one vector instruction.
                    *score = round_score(self.weight * ((*frequency).min(*max) as i32 as f32));
                }
            }
        }
    }
}

/// The numbers 0 to 255, which replace the documents of a block if all have the same norm code.
static BLOCK_POSITIONS: [u32; BLOCK] = {
    let (mut positions, mut number) = ([0; BLOCK], 0);
    while number < BLOCK {
        positions[number] = number as u32;
        number += 1;
    }
    positions
};

#[inline]
fn round_score(score: f32) -> u32 {
    (score.round_ties_even() as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::{CollectionStats, idf};
    use crate::transform::norm;

    #[test]
    fn scores_follow_the_formula() {
        let collection = CollectionStats { documents: 1000, average_length: 20.0 };
        let weight = 2.0 * 2.2 * idf(1000, 10);
        assert!((idf(1000, 10) - (1.0f64 + 990.5 / 10.5).ln()).abs() < 1e-12);
        let lengths = Arc::new(LengthNorms::new(Bm25::default(), collection));
        let scale = ScoreScale::of(weight);
        let scorer = TermScorer::new(lengths, weight, scale);
        let norms = Norms::Exact([10, 20, 40].as_slice().into());
        for (document, length) in [(0, 10.0), (1, 20.0), (2, 40.0)] {
            for f in [1.0, 3.0, 100.0] {
                let expected = weight * f / (f + 1.2 * (0.25 + 0.75 * length / 20.0));
                let found = f64::from(scale.shown(scorer.score_of(&norms, document, f as f32)));
                assert!((found / expected - 1.0).abs() < 1e-6);
            }
        }
        let codes = Norms::Byte(vec![norm::encode(10), norm::encode(20)].into());
        assert_eq!(scorer.score_of(&codes, 1, 3.0), scorer.score_of(&norms, 1, 3.0));
    }

    #[test]
    fn without_length_normalization_scores_are_the_same_without_norms() {
        let collection = CollectionStats { documents: 1000, average_length: 20.3 };
        for k1 in [0.0, 0.9, 1.2, 1000.0] {
            let lengths = |b| Arc::new(LengthNorms::new(Bm25 { k1, b }, collection));
            let scorer = TermScorer::new(lengths(0.0), 3.7, ScoreScale::of(3.7));
            assert!(scorer.lengths().is_some_and(LengthNorms::is_constant));
            assert_eq!(lengths(0.5).is_constant(), k1 == 0.0);
            let documents: Vec<u32> = (0..BLOCK as u32).map(|number| 3 * number).collect();
            let frequencies: Vec<u32> =
                documents.iter().map(|document| 1 + document * document % 97).collect();
            let codes: Vec<u8> = (0..3 * BLOCK).map(|document| (document * 7) as u8).collect();
            let mut looked_up = vec![0; BLOCK];
            scorer.saturation(&codes).unwrap().score(&documents, &frequencies, &mut looked_up);
            // No norms at all: a look-up would be an error.
            for norms in [Norms::Byte(Vec::new().into()), Norms::Exact([].as_slice().into())] {
                for len in [0, 1, 17, BLOCK] {
                    let mut scores = vec![0; len];
                    scorer.score_all(&norms, &documents[..len], &frequencies[..len], &mut scores);
                    assert_eq!(scores, looked_up[..len]);
                }
                let one_by_one = documents.iter().zip(&frequencies);
                let one_by_one =
                    one_by_one.map(|(document, f)| scorer.score_of(&norms, *document, *f as f32));
                assert_eq!(one_by_one.collect::<Vec<_>>(), looked_up);
            }
        }
    }

    #[test]
    fn scaled_weights_are_at_most_2_to_the_30() {
        for weights in [1e-30, 1e-9, 0.3, 1.0, 1.5, 2.0, 1e9, 4e12, f64::from(1u32 << 30), 3.3e300] {
            let scaled = weights * ScoreScale::of(weights).factor;
            assert!(scaled <= WEIGHT_MAX && scaled > WEIGHT_MAX / 2.0, "{weights}: {scaled}");
        }
        // The factor is the largest possible.
        for weights in [1e-300, f64::MIN_POSITIVE, 5e-324] {
            let scaled = weights * ScoreScale::of(weights).factor;
            assert!(scaled <= WEIGHT_MAX && scaled > 0.0, "{weights}: {scaled}");
            assert_eq!(ScoreScale::of(weights).constant(weights), (scaled.round() as u32).max(1));
        }
        let scale = ScoreScale::of(3.0);
        assert_eq!((scale.shown(scale.constant(1.0)), scale.shown(scale.constant(2.5))), (1.0, 2.5));
        assert_eq!((scale.constant(1e-20), scale.constant(0.0), ScoreScale::of(0.0).shown(0)), (1, 0, 0.0));
    }

    #[test]
    fn dot_scores_are_boost_times_frequency() {
        let scale = ScoreScale::of(2.5 * 300.0);
        let scorer = TermScorer::dot(300, 2.5, scale);
        let norms = Norms::Exact([1, 1000].as_slice().into());
        let mut scores = [0; 2];
        scorer.score_all(&norms, &[0, 1], &[7, 300], &mut scores);
        assert_eq!(scores.map(|score| scale.shown(score)), [17.5, 750.0]);
        assert_eq!(scorer.score_of(&norms, 0, 7.0), scores[0]);
        // A damaged frequency does not exceed the bounds.
        scorer.score_all(&norms, &[0, 1], &[301, u32::MAX], &mut scores);
        assert_eq!(scores.map(|score| scale.shown(score)), [750.0; 2]);
        let impacts = [Impact { frequency: 7, norm: 1 }, Impact { frequency: 200, norm: 9 }];
        for frequency in [1, 6, 7, 8, 150, 200] {
            let score = scorer.score_of(&norms, 0, frequency as f32);
            assert!(scorer.min_frequency(&impacts, score).is_some_and(|min| min <= frequency));
            assert!(
                scorer.max_score(frequency as f32) >= score && scorer.min_score(frequency as f32) <= score
            );
        }
        assert_eq!(scorer.min_frequency(&impacts, scorer.max_score(201.0)), None);
        assert_eq!(scorer.better(impacts[0], impacts[1]), impacts[1]);
    }
}
