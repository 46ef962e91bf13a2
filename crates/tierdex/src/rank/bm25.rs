//! BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009, section 3.4) in Lucene's form,
//! with the factor `k1 + 1`:
//!
//! `idf * f * (k1 + 1) / (f + k1 * (1 - b + b * length / average))`, with
//! `idf = ln(1 + (N - n + 0.5) / (n + 0.5))`.

use crate::limits::{DEFAULT_B, DEFAULT_K1};
use crate::{Error, Result, transform::norm};
use tierdex_codec::CodeTable;

/// The parameters of BM25.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bm25 {
    /// Saturation of the term frequency, 0 to 1000; 1.2 by default. With 0 the score does not depend on the
    /// frequency.
    pub k1: f64,
    /// Normalization by the document length, 0 (none) to 1 (full); 0.75 by default.
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
    /// Number of documents that have the field.
    pub documents: u64,
    /// Average length of the field in these documents, in tokens.
    pub average_length: f64,
}

/// Inverse document frequency of a term that `containing` of `documents` documents contain.
pub fn idf(documents: u64, containing: u64) -> f64 {
    let (all, with) = (documents as f64, containing as f64);
    (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
}

/// Length normalization of a field: `k = k1 * (1 - b + b * length / average)` as a function of the length,
/// for a score of `weight * f / (f + k)`.
pub struct LengthNorms {
    /// `k` of each norm code.
    pub(super) by_code: CodeTable,
    /// Coefficients of `k` for exact lengths: the constant, and the factor of the length.
    by_length: (f32, f32),
    /// The same coefficients in `f64`.
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

    /// Whether `k` does not depend on the length, so that it is the same for all codes.
    pub(super) fn is_constant(&self) -> bool {
        self.constant_and_factor.1 == 0.0
    }

    /// `k` of a document of exactly this length.
    #[inline]
    pub(super) fn exact_k(&self, length: u32) -> f32 {
        self.by_length.0 + self.by_length.1 * length as f32
    }

    /// Lower bound of the `k` of documents with this norm code, whether scores are computed from codes or
    /// from exact lengths.
    pub(super) fn min_k(&self, code: u8) -> f32 {
        self.exact_k(norm::floor(code)).min(self.by_code.get(code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_out_of_range_are_rejected() {
        for (k1, b) in [(-0.1, 0.5), (f64::NAN, 0.5), (1.2, 1.1), (1.2, f64::INFINITY)] {
            assert!(Bm25::new(k1, b).is_err());
        }
        Bm25::new(0.0, 0.0).unwrap();
    }
}
