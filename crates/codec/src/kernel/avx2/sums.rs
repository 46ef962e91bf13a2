//! Gaps, and prefix sums of eight values in a register.

use super::super::scalar;
use super::memory::{Vector, add, broadcast, opaque};
use core::arch::x86_64::*;
use core::mem::MaybeUninit;

/// [`crate::Kernel::gaps`].
#[target_feature(enable = "avx2")]
pub(in crate::kernel) fn gaps(values: &[u32], prev: u32, step: u32, gaps: &mut [MaybeUninit<u32>]) {
    scalar::sums::gaps(values, prev, step, gaps);
}

prefix_sums!("avx2");

/// Prefix sums within the register, in three steps: pairs, quads, all.
#[inline]
#[target_feature(enable = "avx2")]
fn inclusive(values: __m256i) -> __m256i {
    let pairs = _mm256_add_epi32(values, _mm256_slli_epi64::<32>(values));
    // The second pair of each half gets the sum of the first.
    let first = opaque(_mm256_setr_epi64x(-1, 0x0706_0504_0706_0504, -1, 0x0706_0504_0706_0504));
    let quads = _mm256_add_epi32(pairs, _mm256_shuffle_epi8(pairs, first));
    let ends = _mm256_permutevar8x32_epi32(quads, opaque(_mm256_set1_epi32(3)));
    let second_half = _mm256_setr_epi32(0, 0, 0, 0, -1, -1, -1, -1);
    _mm256_add_epi32(quads, _mm256_and_si256(ends, second_half))
}

/// The last value in every lane.
#[inline]
#[target_feature(enable = "avx2")]
fn last(values: __m256i) -> __m256i {
    _mm256_permutevar8x32_epi32(values, opaque(_mm256_set1_epi32(7)))
}
