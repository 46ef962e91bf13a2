//! Gaps, and prefix sums of 16 values in a register.

use super::super::scalar;
use core::arch::x86_64::*;
use core::mem::MaybeUninit;

/// [`crate::Kernel::gaps`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(in crate::kernel) fn gaps(values: &[u32], prev: u32, step: u32, gaps: &mut [MaybeUninit<u32>]) {
    scalar::sums::gaps(values, prev, step, gaps);
}

/// The sums so far, in every lane.
#[derive(Clone, Copy)]
pub(super) struct Sums(__m512i);

impl Sums {
    /// Nothing summed yet, after `prev`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn after(prev: u32) -> Sums {
        Sums(_mm512_set1_epi32(prev as i32))
    }

    /// The sums up to each of the next 16 values. From one call to the next a single addition is waited for: the
    /// total of 16 values is spread over the lanes before the sums so far are added to it.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn next(&mut self, values: __m512i) -> __m512i {
        let own = inclusive(values);
        let sums = _mm512_add_epi32(own, self.0);
        self.0 = _mm512_add_epi32(self.0, _mm512_permutexvar_epi32(_mm512_set1_epi32(15), own));
        sums
    }
}

/// Sums within the register, in four steps: pairs, quads, halves, all.
#[inline]
#[target_feature(enable = "avx512f")]
fn inclusive(values: __m512i) -> __m512i {
    let pairs = _mm512_add_epi32(values, _mm512_slli_epi64::<32>(values));
    // The second pair of each quad gets the sum of the first.
    let first = _mm512_maskz_shuffle_epi32::<0b01_01_00_00>(0xcccc, pairs);
    let quads = _mm512_add_epi32(pairs, first);
    let ends = _mm512_setr_epi32(0, 0, 0, 0, 3, 3, 3, 3, 0, 0, 0, 0, 11, 11, 11, 11);
    let halves = _mm512_add_epi32(quads, _mm512_maskz_permutexvar_epi32(0xf0f0, ends, quads));
    let end = _mm512_set1_epi32(7);
    _mm512_add_epi32(halves, _mm512_maskz_permutexvar_epi32(0xff00, end, halves))
}
