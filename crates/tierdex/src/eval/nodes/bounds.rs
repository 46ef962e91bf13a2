//! Upper bounds of the shares of the postings of a block.
//!
//! The *share* of a posting is its BM25 score divided by the weight of the term: `f / (f + k)`, for frequency
//! `f`, and `k = k1 * (1 - b + b * length / average)` of its document. A segment stores the largest share of
//! each block, its *max share*, for the default parameters and its own average length. It bounds the shares
//! for any other parameters and average too.

use crate::limits::{DEFAULT_B, DEFAULT_K1};
use crate::{eval::tuning::LOOSE_BOUNDS_MIN, rank::LengthNorms};

/// Stored shares are numbers of units of 1/65535, rounded up.
const SHARE_UNITS: f32 = 65535.0;

/// Relative reduction of the coefficients of [`ShareBounds`], so that rounding never makes a bound too small.
const COEFFICIENT_MARGIN: f64 = 1e-6;

/// Turns the largest share that is stored for a block into an upper bound of its shares in ranking.
///
/// `k` is linear in the length: `c + d * l` for the stored shares, and `c' + d' * l` in ranking, which is
/// `slope * k + (c' - slope * c)` with `slope = d' / d`. Let `r` be `(1 - s) / s` for a stored share `s`, so
/// that no posting of the block has a `k` less than `f * r`. Then `k' / f` is at least the larger of
///
/// - `slope * r + (c' - slope * c) / f`, which is smallest for the largest `f` if the difference is
///   positive, and for `f = 1` otherwise;
/// - `c' / f`.
///
/// If the difference is negative, the first increases with `f` and the second decreases. If `c / r` is at
/// least 1, they meet at `f = c / r`, where both are `c' / c * r`; otherwise the minimum is the first at `f
/// = 1`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShareBounds {
    /// The smaller of `slope` and `c' / c`.
    min_slope: f32,
    slope: f32,
    /// `c' - slope * c` if negative, else 0.
    offset: f32,
    /// `c' - slope * c` if positive, else 0.
    positive_offset: f32,
    /// Whether the bounds are close to the largest shares: `c' - slope * c` is less than
    /// [`LOOSE_BOUNDS_MIN`].
    pub is_tight: bool,
}

impl ShareBounds {
    /// For a segment with this average length, and the length normalization by which documents are ranked.
    pub fn new(average: f64, lengths: &LengthNorms) -> ShareBounds {
        let (constant, factor) = lengths.constant_and_factor();
        let stored = DEFAULT_K1 * (1.0 - DEFAULT_B);
        let slope = factor / (DEFAULT_K1 * DEFAULT_B / average);
        let min_slope = slope.min(constant / stored);
        let offset = constant - slope * stored;
        ShareBounds {
            min_slope: (min_slope * (1.0 - COEFFICIENT_MARGIN)) as f32,
            slope: (slope * (1.0 - COEFFICIENT_MARGIN)) as f32,
            offset: offset.min(0.0) as f32,
            positive_offset: offset.max(0.0) as f32,
            is_tight: offset.abs() < LOOSE_BOUNDS_MIN,
        }
    }

    /// Upper bound of the shares of a block whose largest share is stored as `units`.
    #[inline]
    pub fn share(&self, units: u16) -> f32 {
        let units = f32::from(units.max(1));
        let r = (SHARE_UNITS - units) / units;
        1.0 / (1.0 + (self.min_slope * r).max(self.slope * r + self.offset))
    }

    /// Lower bound of the largest share of a block whose largest share is stored as `units`, for byte norms:
    /// `k' / f` is at most `slope * r`, plus the difference if it is positive.
    pub fn guaranteed_share(&self, units: u16) -> f32 {
        // Stored shares are rounded up: 1 may be any smaller share.
        if units <= 1 {
            return 0.0;
        }
        let units = f32::from(units - 1);
        (1.0 - 1e-5) / (1.0 + self.slope * ((SHARE_UNITS - units) / units) + self.positive_offset)
    }

    /// Lower bound of the stored units of any block that contains a posting with at least this `share`.
    pub fn min_units(&self, share: f32) -> u16 {
        // Without a threshold, or if every match reaches it, no block can be skipped.
        if share <= 0.0 {
            return 0;
        }
        // One unit and a rounding margin below the units whose bound equals `share`.
        let most = 1.0 / share - 1.0;
        let r = (most / self.min_slope).min((most - self.offset) / self.slope);
        (SHARE_UNITS / (1.0 + r) * (1.0 - 1e-5) - 1.0) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::{Bm25, CollectionStats, ScoreScale, TermScorer};
    use crate::segment::{layout::encode_max_share, read::Norms, write::default_share};
    use crate::{schema::NormKind, transform::impact::Impact, transform::norm};
    use proptest::prelude::*;
    use std::sync::Arc;

    /// Random BM25 parameters, average length in the collection, and weight of the term.
    fn any_ranking() -> impl Strategy<Value = (Bm25, f64, f64)> {
        let k1 = prop_oneof![Just(0.0), Just(1.2), Just(100.0), Just(1000.0), 0.0..3.0];
        let b = prop_oneof![Just(0.0), Just(0.75), Just(1.0), 0.0..1.0];
        let average = prop_oneof![1.0..3.0, 10.0..1e3, 1.0..1e8];
        let weight = prop_oneof![Just(1.0), 1e-12..1e12];
        (k1, b, average, weight).prop_map(|(k1, b, average, weight)| (Bm25 { k1, b }, average, weight))
    }

    fn length_norms(bm25: Bm25, average_length: f64) -> LengthNorms {
        LengthNorms::new(bm25, CollectionStats { documents: 9, average_length })
    }

    /// A random frequency, and the length of its document.
    fn any_posting() -> impl Strategy<Value = (u32, u32)> {
        let frequency = prop_oneof![4 => 1u32..5, 1 => 1u32..300, 1 => 1u32..1 << 24];
        let length = prop_oneof![0u32..40, 0u32..1000, 0u32..1 << 25];
        (frequency, length).prop_map(|(frequency, length)| (frequency, length.max(frequency)))
    }

    proptest! {
        /// Bounds are safe: no posting scores more than the bound of its block, and `min_units` excludes no
        /// block that contains a posting with the score.
        #[test]
        fn no_posting_of_a_block_scores_more_than_its_bound(
            postings in prop::collection::vec(any_posting(), 1..20),
            (bm25, average, weight) in any_ranking(),
            factor in prop_oneof![Just(1.0f64), 0.9..1.1, 1e-6..1e6],
        ) {
            let average_of_segment = (average * factor).max(1.0);
            let lengths = Arc::new(length_norms(bm25, average));
            let bounds = ShareBounds::new(average_of_segment, &lengths);
            let scorer = TermScorer::new(lengths, weight, ScoreScale::of(3.0 * weight));
            for kind in [NormKind::Byte, NormKind::Exact] {
                let share = |(frequency, length)| {
                    default_share(kind, Impact { frequency, norm: norm::encode(length) }, average_of_segment)
                };
                let units = encode_max_share(postings.iter().copied().map(share).fold(0.0, f64::max));
                let bound = scorer.max_score(bounds.share(units));
                let mut best = 0;
                for (frequency, length) in &postings {
                    let norms = match kind {
                        NormKind::Byte => Norms::Byte(vec![norm::encode(*length)].into()),
                        NormKind::Exact => Norms::Exact([*length].as_slice().into()),
                    };
                    let score = scorer.score_of(&norms, 0, *frequency as f32);
                    prop_assert!(score <= bound, "{} of {} {:?}", score, bound, (frequency, length, kind));
                    prop_assert!(units >= bounds.min_units(scorer.min_share(score)));
                    best = best.max(score);
                    let impact = Impact { frequency: *frequency, norm: norm::encode(*length) };
                    prop_assert!(score <= scorer.max_score_of(impact));
                }
                if kind == NormKind::Byte {
                    let guaranteed_share = scorer.min_score(bounds.guaranteed_share(units));
                    prop_assert!(guaranteed_share <= best, "{} is more than {}", guaranteed_share, best);
                }
            }
        }

        #[test]
        fn min_units_excludes_no_block_that_reaches_the_score(
            (bm25, average, weight) in any_ranking(), factor in 1e-6f64..1e6, units: u16, less: u32,
            others in prop_oneof![Just(3.0f64), 1.0..1e12],
        ) {
            let lengths = Arc::new(length_norms(bm25, average));
            let bounds = ShareBounds::new((average * factor).max(1.0), &lengths);
            let scorer = TermScorer::new(lengths, weight, ScoreScale::of(others * weight));
            let bound = scorer.max_score(bounds.share(units));
            for min_score in [0, 1, bound, bound - 1, bound.saturating_sub(less % 1000), less.min(bound)] {
                prop_assert!(units.max(1) >= bounds.min_units(scorer.min_share(min_score)));
            }
            prop_assert!(bounds.share(units) <= bounds.share(units.saturating_add(1)));
            prop_assert!((0.0..=1.0).contains(&bounds.share(units)));
        }
    }

    #[test]
    fn bounds_for_the_default_ranking_are_the_stored_shares() {
        for average in [1.0, 17.5, 3e6] {
            let bounds = ShareBounds::new(average, &length_norms(Bm25::default(), average));
            assert!(bounds.is_tight);
            // A share that is stored as 1 may be any smaller one.
            assert_eq!([0, 1, 2].map(|units| bounds.guaranteed_share(units) > 0.0), [false, false, true]);
            for units in [1, 2, 700, 32_000, 65_534, 65_535] {
                let stored = f32::from(units) / SHARE_UNITS;
                assert!((bounds.share(units) / stored - 1.0).abs() < 2e-6);
                assert!((units.saturating_sub(3)..=units).contains(&bounds.min_units(stored)));
            }
        }
    }
}
