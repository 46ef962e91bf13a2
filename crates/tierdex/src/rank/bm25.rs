//! BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009, section 3.4) in Lucene's form,
//! with the factor `k1 + 1`:
//!
//! `idf * f * (k1 + 1) / (f + k1 * (1 - b + b * length / average))`, with
//! `idf = ln(1 + (N - n + 0.5) / (n + 0.5))`.

use crate::error::{Error, Result};
use crate::limits::{DEFAULT_B, DEFAULT_K1};
use crate::segment::read::Norms;
use crate::transform::{impact::Impact, norm};
use std::sync::Arc;
use tierdex_codec::{CodeTable, Saturation};

/// The parameters of BM25.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bm25 {
    /// Saturation of the term frequency, 0 to 1000; 1.2 by default. 0 scores presence only.
    pub k1: f64,
    /// Normalization by the length of the document, 0 (none) to 1 (full); 0.75 by default.
    pub b: f64,
}

impl Default for Bm25 {
    fn default() -> Bm25 {
        Bm25 { k1: DEFAULT_K1, b: DEFAULT_B }
    }
}

impl Bm25 {
    /// Parameters within their ranges.
    ///
    /// # Errors
    /// [`Error::Usage`] when one is outside.
    pub fn new(k1: f64, b: f64) -> Result<Bm25> {
        if !(0.0..=1000.0).contains(&k1) {
            return Err(Error::Usage(format!("k1 is {k1}; it must lie between 0 and 1000")));
        }
        if !(0.0..=1.0).contains(&b) {
            return Err(Error::Usage(format!("b is {b}; it must lie between 0 and 1")));
        }
        Ok(Bm25 { k1, b })
    }
}

/// Statistics of a field over all segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CollectionStats {
    /// Documents that have the field.
    pub documents: u64,
    /// Average length of the field in them, in tokens.
    pub average_length: f64,
}

/// Inverse document frequency of a term that `containing` of `documents` documents contain.
pub fn idf(documents: u64, containing: u64) -> f64 {
    let (all, with) = (documents as f64, containing as f64);
    (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
}

/// Length normalization of a field: `k = k1 * (1 - b + b * length / average)`, as a function of the length.
pub struct LengthNorms {
    /// `k` of each norm code.
    by_code: CodeTable,
    /// Coefficients of `k` for exact lengths: the constant, and the factor of the length.
    by_length: (f32, f32),
    /// The same in `f64`.
    constant_and_factor: (f64, f64),
}

impl LengthNorms {
    /// Computes `k` for the parameters `bm25`.
    pub fn new(bm25: Bm25, collection: CollectionStats) -> LengthNorms {
        let (constant, factor) = (bm25.k1 * (1.0 - bm25.b), bm25.k1 * bm25.b / collection.average_length);
        let by_code =
            std::array::from_fn(|code| (constant + factor * f64::from(norm::length(code as u8))) as f32);
        LengthNorms {
            by_code: CodeTable::new(by_code),
            by_length: (constant as f32, factor as f32),
            constant_and_factor: (constant, factor),
        }
    }

    /// Coefficients of `k`: the constant, and the factor of the length.
    pub fn constant_and_factor(&self) -> (f64, f64) {
        self.constant_and_factor
    }
}

/// Largest scaled sum of weights. Sums of scores stay below twice this value, so they fit in `u32`.
const WEIGHT_MAX: f64 = (1u32 << 30) as f64;

/// Exponent of the largest finite power of two.
const EXPONENT_MAX: f64 = (f64::MAX_EXP - 1) as f64;

/// Scales weights to integer scores, with the same factor for all terms of a query.
///
/// Scores are integers, so sums do not depend on the order of the terms or on the division of documents into
/// segments. The factor is the power of two for which the sum of all weights is in (2^29, 2^30]. The score
/// of a term has the 24-bit precision of an `f32` and is rounded to 2^-30 of the highest possible score. A
/// term with a smaller relative weight has the smallest score, 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreScale {
    factor: f64,
}

impl ScoreScale {
    /// The scale of a query with this sum of weights.
    pub fn of(weights: f64) -> ScoreScale {
        if weights <= 0.0 {
            return ScoreScale { factor: 1.0 };
        }
        // For weights below 2^-993 the factor is the largest possible.
        let exponent = (WEIGHT_MAX / weights).log2().floor().min(EXPONENT_MAX);
        let factor = exponent.exp2();
        // The logarithm may have been rounded up to an integer.
        ScoreScale { factor: if factor * weights > WEIGHT_MAX { factor / 2.0 } else { factor } }
    }

    /// The constant score of a clause with this weight: 0 only for weight 0.
    pub fn constant(self, weight: f64) -> u32 {
        if weight > 0.0 { ((weight * self.factor).round() as u32).max(1) } else { 0 }
    }

    /// The unscaled score, as shown to users.
    pub fn shown(self, score: u32) -> f32 {
        (f64::from(score) / self.factor) as f32
    }
}

/// Scores the postings of one term or phrase: `max(1, round(weight * (f / (f + k))))` with the scaled
/// weight, computed in `f32` in this order.
pub struct TermScorer {
    weight: f32,
    lengths: Arc<LengthNorms>,
}

impl TermScorer {
    /// A scorer for a term of weight `weight`: its inverse document frequency, times `k1 + 1`, times its
    /// boost.
    pub fn new(lengths: Arc<LengthNorms>, weight: f64, scale: ScoreScale) -> TermScorer {
        TermScorer { weight: (weight * scale.factor) as f32, lengths }
    }

    /// Replaces the weight.
    pub fn rescale(&mut self, weight: f64, scale: ScoreScale) {
        self.weight = (weight * scale.factor) as f32;
    }

    /// Upper bound of the scores of postings whose share `f / (f + k)` is at most `share`.
    #[inline]
    pub fn max_score(&self, share: f32) -> u32 {
        // A margin of 2e-6: each of the few rounding errors, of the score and of this bound, is less than a
        // sixteenth of it.
        (self.weight * (share * (1.0 + 2e-6))) as u32 + 1
    }

    /// Lower bound of the scores of postings whose share is at least `share`.
    pub fn min_score(&self, share: f32) -> u32 {
        ((self.weight * (share * (1.0 - 2e-6))) as u32).saturating_sub(1)
    }

    /// The one of two pairs with the larger share.
    #[inline]
    pub fn better(&self, best: Impact, other: Impact) -> Impact {
        let k_of_other = self.min_k(other.norm) * best.frequency as f32;
        if k_of_other < self.min_k(best.norm) * other.frequency as f32 { other } else { best }
    }

    /// Upper bound of the scores of postings that the pair dominates.
    pub fn max_score_of(&self, impact: Impact) -> u32 {
        let f = impact.frequency as f32;
        self.max_score(f / (f + self.min_k(impact.norm)))
    }

    /// Lower bound of the share of every posting that scores `score`, and of every share whose
    /// [`TermScorer::max_score`] is `score`.
    pub fn min_share(&self, score: u32) -> f32 {
        // Reduced by a margin of 4e-6 and by the rounding of the score.
        (score as f32 - 1.0) / self.weight * (1.0 - 4e-6)
    }

    /// Its length normalization.
    pub fn lengths(&self) -> &LengthNorms {
        &self.lengths
    }

    /// The smallest frequency with which a posting of a block with these impacts may score `min_score`;
    /// `None` if none can.
    pub fn min_frequency(&self, impacts: &[Impact], min_score: u32) -> Option<u32> {
        let share = self.min_share(min_score);
        let mut before = 0;
        for impact in impacts {
            let k = self.min_k(impact.norm);
            let f = impact.frequency as f32;
            if f >= share * (f + k) {
                // Postings with a frequency in (previous pair, this pair] have at least this `k`.
                let needed = (k * share / (1.0 - share) * (1.0 - 1e-4)).floor();
                return Some((needed as u32).clamp(before + 1, impact.frequency));
            }
            before = impact.frequency;
        }
        None
    }

    /// Lower bound of the `k` of documents with this norm code, whether ranking uses codes or exact lengths.
    fn min_k(&self, code: u8) -> f32 {
        self.exact_k(norm::floor(code)).min(self.lengths.by_code.get(code))
    }

    /// Score of a posting. The frequency of a phrase with slop is not an integer.
    #[inline]
    pub fn score_of(&self, norms: &Norms, document: u32, f: f32) -> u32 {
        let k = match norms {
            Norms::Byte(codes) => self.lengths.by_code.get(codes[document as usize]),
            Norms::Exact(lengths) => self.exact_k(lengths[document as usize]),
        };
        round(self.weight * (f / (f + k)))
    }

    /// The parameters of the scoring kernels, for documents with these norm codes.
    pub fn saturation<'a>(&'a self, codes: &'a [u8]) -> Saturation<'a> {
        Saturation { weight: self.weight, k: &self.lengths.by_code, codes }
    }

    /// Scores of a block of postings.
    pub fn score_all(&self, norms: &Norms, documents: &[u32], frequencies: &[u32], scores: &mut [u32]) {
        match norms {
            Norms::Byte(codes) => self.saturation(codes).score(documents, frequencies, scores),
            Norms::Exact(lengths) => {
                for ((score, document), frequency) in scores.iter_mut().zip(documents).zip(frequencies) {
                    let f = *frequency as f32;
                    *score = round(self.weight * (f / (f + self.exact_k(lengths[*document as usize]))));
                }
            }
        }
    }

    #[inline]
    fn exact_k(&self, length: u32) -> f32 {
        self.lengths.by_length.0 + self.lengths.by_length.1 * length as f32
    }
}

#[inline]
fn round(score: f32) -> u32 {
    (score.round_ties_even() as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_follow_the_formula() {
        let collection = CollectionStats { documents: 1000, average_length: 20.0 };
        let weight = 2.0 * 2.2 * idf(1000, 10);
        assert!((idf(1000, 10) - (1.0f64 + 990.5 / 10.5).ln()).abs() < 1e-12);
        let lengths = Arc::new(LengthNorms::new(Bm25::default(), collection));
        let scale = ScoreScale::of(weight);
        let scorer = TermScorer::new(lengths, weight, scale);
        let norms = Norms::Exact(vec![10, 20, 40]);
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
    fn parameters_out_of_range_are_rejected() {
        for (k1, b) in [(-0.1, 0.5), (f64::NAN, 0.5), (1.2, 1.1), (1.2, f64::INFINITY)] {
            assert!(Bm25::new(k1, b).is_err());
        }
        Bm25::new(0.0, 0.0).unwrap();
    }
}
