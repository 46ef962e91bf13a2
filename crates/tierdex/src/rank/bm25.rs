//! BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009, section 3.4), as Lucene writes it
//! but with the factor `k1 + 1`:
//!
//! `idf * f * (k1 + 1) / (f + k1 * (1 - b + b * length / average))`, `idf = ln(1 + (N - n + 0.5) / (n + 0.5))`.

use crate::error::{Error, Result};
use crate::limits::{DEFAULT_B, DEFAULT_K1};
use crate::segment::read::Norms;
use crate::transform::{impact::Impact, norm};
use std::sync::Arc;
use tierdex_codec::{ByCode, Saturation};

/// The parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bm25 {
    /// How slowly further occurrences lose weight, 0 and up.
    pub k1: f64,
    /// How much the length of a document matters, 0 to 1.
    pub b: f64,
}

impl Default for Bm25 {
    fn default() -> Bm25 {
        Bm25 { k1: DEFAULT_K1, b: DEFAULT_B }
    }
}

impl Bm25 {
    /// Parameters, if they make sense.
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
    bm25: Bm25,
    /// `k` of each code.
    by_code: ByCode,
    /// For exact lengths: the constant, and the factor of the length.
    by_length: (f32, f32),
}

impl Lengths {
    /// For ranking by `bm25`.
    pub fn new(bm25: Bm25, collection: Collection) -> Lengths {
        let (constant, factor) = (bm25.k1 * (1.0 - bm25.b), bm25.k1 * bm25.b / collection.average_length);
        let by_code =
            std::array::from_fn(|code| (constant + factor * f64::from(norm::length(code as u8))) as f32);
        Lengths { bm25, by_code: ByCode::new(by_code), by_length: (constant as f32, factor as f32) }
    }
}

/// Scores the postings of one term or phrase. Scores are `f32`: `weight * (f / (f + k))`, in this order.
pub struct TermScorer {
    weight: f32,
    /// What no posting scores more than for each unit of its bound.
    unit: f32,
    lengths: Arc<Lengths>,
}

impl TermScorer {
    /// A scorer for a term of inverse document frequency `idf`, which counts `boost` times.
    pub fn new(lengths: Arc<Lengths>, idf: f64, boost: f64) -> TermScorer {
        let weight = (idf * (lengths.bm25.k1 + 1.0) * boost) as f32;
        // Two parts in a million more than the share: each of the few roundings of a score, and of this, is less than a
        // sixteenth of that.
        TermScorer { weight, unit: weight / 65535.0 * (1.0 + 2e-6), lengths }
    }

    /// What no score reaches: how much the term weighs, times `k1 + 1` and its boost.
    pub fn weight(&self) -> f32 {
        self.weight
    }

    /// Whether bounds hold and scores are greater than 0: not for boosts near 0, whose scores round to 0 or to numbers
    /// of few digits.
    pub fn has_bounds(&self) -> bool {
        self.weight >= 1e-20
    }

    /// What no posting scores more than whose share of `k1 + 1` is at most `units` of 65535.
    #[inline]
    pub fn bound(&self, units: u16) -> f32 {
        self.unit * f32::from(units)
    }

    /// What no posting scores more than that one of `front` is as good as.
    pub fn bound_of(&self, front: &[Impact]) -> f32 {
        let share = |impact: &Impact| {
            let f = impact.frequency as f32;
            f / (f + self.least_k(impact.norm))
        };
        self.weight * front.iter().map(share).fold(0.0, f32::max) * (1.0 + 2e-6)
    }

    /// The smallest frequency with which a posting that some of `front` is as good as may score `least`, which is greater
    /// than 0; `None` if none may.
    pub fn least_frequency(&self, front: &[Impact], least: f32) -> Option<u32> {
        // A share of the weight; a few parts in a million less than what is needed.
        let share = least / self.weight * (1.0 - 4e-6);
        let mut before = 0;
        for impact in front {
            let k = self.least_k(impact.norm);
            let f = impact.frequency as f32;
            if f / (f + k) >= share {
                // Postings up to this frequency, and more frequent than the pair before, have a `k` of at least this.
                let needed = (k * share / (1.0 - share) * (1.0 - 1e-4)).floor();
                return Some((needed as u32).clamp(before + 1, impact.frequency));
            }
            before = impact.frequency;
        }
        None
    }

    /// The smallest `k` of documents with that code: it stands for lengths from its floor on, and ranking may know the
    /// exact one.
    fn least_k(&self, code: u8) -> f32 {
        self.exact_k(norm::floor(code)).min(self.lengths.by_code.get(code))
    }

    /// Score of a posting.
    #[inline]
    pub fn score(&self, norms: &Norms, document: u32, frequency: u32) -> f32 {
        self.score_of(norms, document, frequency as f32)
    }

    /// The same for a frequency that is no whole number, as that of a phrase with slop.
    #[inline]
    pub fn score_of(&self, norms: &Norms, document: u32, f: f32) -> f32 {
        let k = match norms {
            Norms::Byte(codes) => self.lengths.by_code.get(codes[document as usize]),
            Norms::Exact(lengths) => self.exact_k(lengths[document as usize]),
        };
        self.weight * (f / (f + k))
    }

    /// What scores depend on beside frequencies, for documents with these codes.
    pub fn saturation<'a>(&'a self, codes: &'a [u8]) -> Saturation<'a> {
        Saturation { weight: self.weight, k: &self.lengths.by_code, codes }
    }

    /// Scores of a block of postings.
    pub fn score_all(&self, norms: &Norms, documents: &[u32], frequencies: &[u32], scores: &mut [f32]) {
        match norms {
            Norms::Byte(codes) => self.saturation(codes).score(documents, frequencies, scores),
            Norms::Exact(lengths) => {
                for ((score, document), frequency) in scores.iter_mut().zip(documents).zip(frequencies) {
                    let f = *frequency as f32;
                    *score = self.weight * (f / (f + self.exact_k(lengths[*document as usize])));
                }
            }
        }
    }

    #[inline]
    fn exact_k(&self, length: u32) -> f32 {
        self.lengths.by_length.0 + self.lengths.by_length.1 * length as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_follow_the_formula() {
        let collection = Collection { documents: 1000, average_length: 20.0 };
        let idf = idf(1000, 10);
        assert!((idf - (1.0f64 + 990.5 / 10.5).ln()).abs() < 1e-12);
        let lengths = Arc::new(Lengths::new(Bm25::default(), collection));
        let scorer = TermScorer::new(lengths, idf, 2.0);
        let norms = Norms::Exact(vec![10, 20, 40]);
        for (document, length) in [(0, 10.0), (1, 20.0), (2, 40.0)] {
            for f in [1.0, 3.0, 100.0] {
                let expected = 2.0 * idf * f * 2.2 / (f + 1.2 * (0.25 + 0.75 * length / 20.0));
                let found = f64::from(scorer.score(&norms, document, f as u32));
                assert!((found / expected - 1.0).abs() < 1e-6);
            }
        }
        let codes = Norms::Byte(vec![norm::encode(10), norm::encode(20)].into());
        assert_eq!(scorer.score(&codes, 1, 3), scorer.score(&norms, 1, 3));
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        for (k1, b) in [(-0.1, 0.5), (f64::NAN, 0.5), (1.2, 1.1), (1.2, f64::INFINITY)] {
            assert!(Bm25::new(k1, b).is_err());
        }
        Bm25::new(0.0, 0.0).unwrap();
    }
}
