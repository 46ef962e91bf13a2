//! Prefix sums of eight values in a register.

use super::memory::{Vector, add, broadcast, hide_from_optimizer};
use core::arch::x86_64::*;

prefix_sums!("avx2");

/// Permutations that each prefix sum of a vector needs, held in registers.
#[derive(Clone, Copy)]
pub(super) struct PrefixSumConstants {
    first_pair: __m256i,
    first_half: __m256i,
    last: __m256i,
}

impl PrefixSumConstants {
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn new() -> PrefixSumConstants {
        PrefixSumConstants {
            first_pair: hide_from_optimizer(_mm256_setr_epi64x(
                -1,
                0x0706_0504_0706_0504,
                -1,
                0x0706_0504_0706_0504,
            )),
            first_half: hide_from_optimizer(_mm256_set1_epi32(3)),
            last: hide_from_optimizer(_mm256_set1_epi32(7)),
        }
    }

    /// The prefix sums of the eight values of a vector, in three steps: of pairs, of quads, of all.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn inclusive(&self, values: __m256i) -> __m256i {
        let pairs = _mm256_add_epi32(values, _mm256_slli_epi64::<32>(values));
        // The second pair of each half gets the sum of the first.
        let quads = _mm256_add_epi32(pairs, _mm256_shuffle_epi8(pairs, self.first_pair));
        let ends = _mm256_permutevar8x32_epi32(quads, self.first_half);
        let second_half = _mm256_setr_epi32(0, 0, 0, 0, -1, -1, -1, -1);
        _mm256_add_epi32(quads, _mm256_and_si256(ends, second_half))
    }

    /// The last value of a vector, in every lane.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn last(&self, values: __m256i) -> __m256i {
        _mm256_permutevar8x32_epi32(values, self.last)
    }
}
