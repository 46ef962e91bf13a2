//! BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009, section 3.4), as Lucene writes
//! it but with the factor `k1 + 1`:
//!
//! `idf * f * (k1 + 1) / (f + k1 * (1 - b + b * length / average))`, `idf = ln(1 + (N - n + 0.5) / (n +
//! 0.5))`.

use crate::error::{Error, Result};
use crate::limits::{DEFAULT_B, DEFAULT_K1};
use crate::segment::read::Norms;
use crate::transform::{impact::Impact, norm};
use std::sync::Arc;
use tierdex_codec::{ByCode, Saturation};

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

/// What ranking must know of all segments together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Collection {
    /// Documents that have the field.
    pub documents: u64,
    /// Average length of the field in them, in tokens.
    pub average_length: f64,
}

/// Weight of a term that stands in `containing` of `documents` documents.
pub fn idf(documents: u64, containing: u64) -> f64 {
    let (all, with) = (documents as f64, containing as f64);
    (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
}

/// What the length of a document does to its scores: `k = k1 * (1 - b + b * length / average)`.
pub struct Lengths {
    /// `k` of each code.
    by_code: ByCode,
    /// For exact lengths: the constant, and the factor of the length.
    by_length: (f32, f32),
    /// The same, before they are rounded.
    constant_and_factor: (f64, f64),
}

impl Lengths {
    /// For ranking by `bm25`.
    pub fn new(bm25: Bm25, collection: Collection) -> Lengths {
        let (constant, factor) = (bm25.k1 * (1.0 - bm25.b), bm25.k1 * bm25.b / collection.average_length);
        let by_code =
            std::array::from_fn(|code| (constant + factor * f64::from(norm::length(code as u8))) as f32);
        Lengths {
            by_code: ByCode::new(by_code),
            by_length: (constant as f32, factor as f32),
            constant_and_factor: (constant, factor),
        }
    }

    /// `k` is the first, and the second for each token.
    pub fn constant_and_factor(&self) -> (f64, f64) {
        self.constant_and_factor
    }
}

/// A weight beyond which scores would not fit: sums of scores stay below twice as much.
const WEIGHT_MAX: f64 = (1u32 << 30) as f64;

/// The largest power of two that is a finite number.
const EXPONENT_MAX: f64 = (f64::MAX_EXP - 1) as f64;

/// Turns weights into integers: the same factor for all terms of a query.
///
/// Scores are integers so that sums do not depend on the order of the terms, or on how documents are divided
/// into segments. The factor is the power of two with which the sum of all weights is at most 2^30 and more
/// than half of that. The score of a term has the 24 digits of an `f32`, and is rounded
/// to 2^-30 of the highest possible score; a term that weighs less than that beside the others scores the
/// least possible, 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    factor: f64,
}

impl Scale {
    /// For a query whose weights have this sum.
    pub fn of(weights: f64) -> Scale {
        if weights <= 0.0 {
            return Scale { factor: 1.0 };
        }
        // Weights of less than 2^-993 are raised as far as a factor can.
        let exponent = (WEIGHT_MAX / weights).log2().floor().min(EXPONENT_MAX);
        let factor = exponent.exp2();
        // The logarithm may have been rounded up to a whole number.
        Scale { factor: if factor * weights > WEIGHT_MAX { factor / 2.0 } else { factor } }
    }

    /// The score of a match that weighs so much whatever it holds: 0 only for 0.
    pub fn constant(self, weight: f64) -> u32 {
        if weight > 0.0 { ((weight * self.factor).round() as u32).max(1) } else { 0 }
    }

    /// The score as it is shown.
    pub fn shown(self, score: u32) -> f32 {
        (f64::from(score) / self.factor) as f32
    }
}

/// Scores the postings of one term or phrase: `max(1, round(weight * (f / (f + k))))`, where the weight is
/// scaled, and what is rounded is an `f32`, computed in this order.
pub struct TermScorer {
    weight: f32,
    lengths: Arc<Lengths>,
}

impl TermScorer {
    /// A scorer for a term that weighs `weight`: its inverse document frequency, times `k1 + 1` and its
    /// boost.
    pub fn new(lengths: Arc<Lengths>, weight: f64, scale: Scale) -> TermScorer {
        TermScorer { weight: (weight * scale.factor) as f32, lengths }
    }

    /// Gives it another weight.
    pub fn rescale(&mut self, weight: f64, scale: Scale) {
        self.weight = (weight * scale.factor) as f32;
    }

    /// What no posting scores more than whose share `f / (f + k)` is at most `share`.
    #[inline]
    pub fn max_score(&self, share: f32) -> u32 {
        // Two parts in a million more than the share: each of the few roundings of a score, and of this, is
        // less than a sixteenth of that.
        (self.weight * (share * (1.0 + 2e-6))) as u32 + 1
    }

    /// What every posting scores at least whose share is at least `share`.
    pub fn min_score(&self, share: f32) -> u32 {
        ((self.weight * (share * (1.0 - 2e-6))) as u32).saturating_sub(1)
    }

    /// The pair with the larger share.
    #[inline]
    pub fn better(&self, best: Impact, other: Impact) -> Impact {
        let k_of_other = self.min_k(other.norm) * best.frequency as f32;
        if k_of_other < self.min_k(best.norm) * other.frequency as f32 { other } else { best }
    }

    /// Upper bound of the scores of postings that the pair is as good as.
    pub fn max_score_of(&self, impact: Impact) -> u32 {
        let f = impact.frequency as f32;
        self.max_score(f / (f + self.min_k(impact.norm)))
    }

    /// A share that every posting has which scores `score`, and every share of which that is
    /// [`TermScorer::max_score`].
    pub fn min_share(&self, score: u32) -> f32 {
        // A few parts in a million, and a rounding of the score, less than what is needed.
        (score as f32 - 1.0) / self.weight * (1.0 - 4e-6)
    }

    /// What lengths do to its scores.
    pub fn lengths(&self) -> &Lengths {
        &self.lengths
    }

    /// The smallest frequency with which a posting that some of the competitive pairs are as good as may
    /// score `need`; `None` if none may.
    pub fn min_frequency(&self, impacts: &[Impact], need: u32) -> Option<u32> {
        let share = self.min_share(need);
        let mut before = 0;
        for impact in impacts {
            let k = self.min_k(impact.norm);
            let f = impact.frequency as f32;
            if f >= share * (f + k) {
                // Postings up to this frequency, and more frequent than the pair before, have a `k` of at
                // least this.
                let needed = (k * share / (1.0 - share) * (1.0 - 1e-4)).floor();
                return Some((needed as u32).clamp(before + 1, impact.frequency));
            }
            before = impact.frequency;
        }
        None
    }

    /// The smallest `k` of documents with that length code: their lengths are at least its floor, and ranking
    /// may know the exact one.
    fn min_k(&self, code: u8) -> f32 {
        self.exact_k(norm::floor(code)).min(self.lengths.by_code.get(code))
    }

    /// Score of a posting. The frequency of a phrase with slop is no whole number.
    #[inline]
    pub fn score_of(&self, norms: &Norms, document: u32, f: f32) -> u32 {
        let k = match norms {
            Norms::Byte(codes) => self.lengths.by_code.get(codes[document as usize]),
            Norms::Exact(lengths) => self.exact_k(lengths[document as usize]),
        };
        round(self.weight * (f / (f + k)))
    }

    /// What scores depend on beside frequencies, for documents with these codes.
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
        let collection = Collection { documents: 1000, average_length: 20.0 };
        let weight = 2.0 * 2.2 * idf(1000, 10);
        assert!((idf(1000, 10) - (1.0f64 + 990.5 / 10.5).ln()).abs() < 1e-12);
        let lengths = Arc::new(Lengths::new(Bm25::default(), collection));
        let scale = Scale::of(weight);
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
    fn weights_are_scaled_to_less_than_2_to_the_30() {
        for weights in [1e-30, 1e-9, 0.3, 1.0, 1.5, 2.0, 1e9, 4e12, f64::from(1u32 << 30), 3.3e300] {
            let scaled = weights * Scale::of(weights).factor;
            assert!(scaled <= WEIGHT_MAX && scaled > WEIGHT_MAX / 2.0, "{weights}: {scaled}");
        }
        // There is no larger factor.
        for weights in [1e-300, f64::MIN_POSITIVE, 5e-324] {
            let scaled = weights * Scale::of(weights).factor;
            assert!(scaled <= WEIGHT_MAX && scaled > 0.0, "{weights}: {scaled}");
            assert_eq!(Scale::of(weights).constant(weights), (scaled.round() as u32).max(1));
        }
        let scale = Scale::of(3.0);
        assert_eq!((scale.shown(scale.constant(1.0)), scale.shown(scale.constant(2.5))), (1.0, 2.5));
        assert_eq!((scale.constant(1e-20), scale.constant(0.0), Scale::of(0.0).shown(0)), (1, 0, 0.0));
    }

    #[test]
    fn parameters_out_of_range_are_rejected() {
        for (k1, b) in [(-0.1, 0.5), (f64::NAN, 0.5), (1.2, 1.1), (1.2, f64::INFINITY)] {
            assert!(Bm25::new(k1, b).is_err());
        }
        Bm25::new(0.0, 0.0).unwrap();
    }
}
