//! Gaps, and prefix sums of eight values in a register.

use super::super::scalar;
use core::arch::x86_64::*;
use core::mem::MaybeUninit;

/// [`crate::Kernel::gaps`].
#[target_feature(enable = "avx2")]
pub(in crate::kernel) fn gaps(values: &[u32], prev: u32, step: u32, gaps: &mut [MaybeUninit<u32>]) {
    scalar::sums::gaps(values, prev, step, gaps);
}

/// The sum of all values so far, in every lane.
#[derive(Clone, Copy)]
pub(super) struct PrefixSums(__m256i);

impl PrefixSums {
    /// Starts at `prev`.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn after(prev: u32) -> PrefixSums {
        PrefixSums(_mm256_set1_epi32(prev as i32))
    }

    /// The prefix sums of the next eight values. The dependency chain between calls is a single addition:
    /// the total of the eight values is broadcast before it is added to the sum so far.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn next(&mut self, values: __m256i) -> __m256i {
        let pairs = _mm256_add_epi32(values, _mm256_slli_epi64::<32>(values));
        // The second pair of each half gets the sum of the first.
        let quads =
            _mm256_add_epi32(pairs, _mm256_slli_si256::<8>(_mm256_shuffle_epi32::<0b01_01_01_01>(pairs)));
        let ends = _mm256_shuffle_epi32::<0b11_11_11_11>(quads);
        let own = _mm256_add_epi32(quads, _mm256_permute2x128_si256::<0x08>(ends, ends));
        let sums = _mm256_add_epi32(own, self.0);
        self.0 = _mm256_add_epi32(self.0, _mm256_permutevar8x32_epi32(own, _mm256_set1_epi32(7)));
        sums
    }
}
