//! BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009, section 3.4), as Lucene writes it
//! but with the factor `k1 + 1`:
//!
//! `idf * f * (k1 + 1) / (f + k1 * (1 - b + b * length / average))`, `idf = ln(1 + (N - n + 0.5) / (n + 0.5))`.

use crate::error::{Error, Result};
use crate::limits::{DEFAULT_B, DEFAULT_K1};
use crate::segment::read::Norms;
use crate::transform::{impact::Impact, norm};

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
    /// Documents in the index.
    pub documents: u64,
    /// Average length of the field in tokens.
    pub average_length: f64,
}

/// Weight of a term that stands in `containing` of `documents` documents.
pub fn idf(documents: u64, containing: u64) -> f64 {
    let (all, with) = (documents as f64, containing as f64);
    (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
}

/// Scores the postings of one term or phrase. Scores are `f32`: `weight * (f / (f + k))`, in this order.
pub struct TermScorer {
    weight: f32,
    /// `k1 * (1 - b + b * length / average)` for each code.
    by_code: Box<[f32; 256]>,
    /// The same for exact lengths: constant, and factor of the length.
    by_length: (f32, f32),
}

impl TermScorer {
    /// A scorer for a term of inverse document frequency `idf`, which counts `boost` times.
    pub fn new(bm25: Bm25, collection: Collection, idf: f64, boost: f64) -> TermScorer {
        let (constant, factor) = (bm25.k1 * (1.0 - bm25.b), bm25.k1 * bm25.b / collection.average_length);
        let by_code =
            std::array::from_fn(|code| (constant + factor * f64::from(norm::length(code as u8))) as f32);
        TermScorer {
            weight: (idf * (bm25.k1 + 1.0) * boost) as f32,
            by_code: Box::new(by_code),
            by_length: (constant as f32, factor as f32),
        }
    }

    /// Whether bounds hold: not for boosts near 0, whose scores round to 0 or to numbers of few digits.
    pub fn has_bounds(&self) -> bool {
        self.weight >= 1e-30
    }

    /// What no posting scores more than whose share of `k1 + 1` is at most `units` of 65535.
    #[inline]
    pub fn bound(&self, units: u16) -> f32 {
        // Two parts in a million more than the product: each of the few roundings of a score is less than a
        // sixteenth of that.
        self.weight * (f32::from(units) / 65535.0) * (1.0 + 2e-6)
    }

    /// What no posting scores more than that one of `front` is as good as.
    pub fn bound_of(&self, front: &[Impact]) -> f32 {
        let share = |impact: &Impact| {
            let f = impact.frequency as f32;
            // A code stands for lengths from its floor on, and ranking may know the exact one.
            let k = self.by_length.0 + self.by_length.1 * norm::floor(impact.norm) as f32;
            f / (f + k.min(self.by_code[usize::from(impact.norm)]))
        };
        self.weight * front.iter().map(share).fold(0.0, f32::max) * (1.0 + 2e-6)
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
            Norms::Byte(codes) => self.by_code[usize::from(codes[document as usize])],
            Norms::Exact(lengths) => self.by_length.0 + self.by_length.1 * lengths[document as usize] as f32,
        };
        self.weight * (f / (f + k))
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
        let scorer = TermScorer::new(Bm25::default(), collection, idf, 2.0);
        let norms = Norms::Exact(vec![10, 20, 40]);
        for (document, length) in [(0, 10.0), (1, 20.0), (2, 40.0)] {
            for f in [1.0, 3.0, 100.0] {
                let expected = 2.0 * idf * f * 2.2 / (f + 1.2 * (0.25 + 0.75 * length / 20.0));
                let found = f64::from(scorer.score(&norms, document, f as u32));
                assert!((found / expected - 1.0).abs() < 1e-6);
            }
        }
        let codes = Norms::Byte(vec![norm::encode(10), norm::encode(20)]);
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
