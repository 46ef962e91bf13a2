//! Gaps, and prefix sums of 16 values in a register.

use super::memory::{LANES, Vector, add, broadcast, first_lanes, hide_from_optimizer, load, opaque_mask};
use core::{arch::x86_64::*, mem::MaybeUninit};

/// Implements [`crate::Kernel::compute_gaps`].
#[target_feature(enable = "avx512f,bmi2")]
pub(crate) fn compute_gaps(values: &[u32], prev: u32, step: u32, gaps: &mut [MaybeUninit<u32>]) {
    let step = _mm512_set1_epi32(step as i32);
    let mut before = _mm512_set1_epi32(prev as i32);
    // The predecessor of a value is the last of the previous vector, or in the same vector.
    let mut differences = |values: __m512i| {
        let predecessors = _mm512_alignr_epi32::<15>(values, before);
        before = values;
        _mm512_sub_epi32(_mm512_sub_epi32(values, predecessors), step)
    };
    let (values, rest) = values.as_chunks::<LANES>();
    let (gaps, rest_of_gaps) = gaps.as_chunks_mut::<LANES>();
    // Whole vectors are stored without a mask: later loads cannot be forwarded from a masked store.
    for (values, gaps) in values.iter().zip(gaps) {
        let differences = differences(load(values));
        // SAFETY: The array has 16 values.
        unsafe { _mm512_storeu_si512(gaps.as_mut_ptr().cast(), differences) };
    }
    let (valid, differences) = (first_lanes(rest_of_gaps.len()), differences(load(rest)));
    // SAFETY: The mask selects values within the slice; others are not accessed.
    unsafe { _mm512_mask_storeu_epi32(rest_of_gaps.as_mut_ptr().cast(), valid, differences) };
}

prefix_sums!("avx512f,avx512bw,avx512dq");

/// Permutations and masks that each prefix sum of a vector needs, held in registers.
#[derive(Clone, Copy)]
pub(super) struct PrefixSumConstants {
    pair: __m512i,
    quad_ends: __m512i,
    odd_quads: u64,
    half_end: __m512i,
    upper_half: u64,
    last: __m512i,
}

impl PrefixSumConstants {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn new() -> PrefixSumConstants {
        PrefixSumConstants {
            pair: hide_from_optimizer(_mm512_set1_epi64(1 << 32 | 1)),
            quad_ends: hide_from_optimizer(_mm512_setr_epi32(
                0, 0, 0, 0, 3, 3, 3, 3, 0, 0, 0, 0, 11, 11, 11, 11,
            )),
            odd_quads: opaque_mask(0xf0f0),
            half_end: hide_from_optimizer(_mm512_set1_epi32(7)),
            upper_half: opaque_mask(0xff00),
            last: hide_from_optimizer(_mm512_set1_epi32(15)),
        }
    }

    /// The prefix sums of the 16 values of a vector, in four steps: of pairs, of quads, of halves, of all.
    ///
    /// Shuffles and shifts limit the throughput: they have execution ports in common, of which there are few.
    /// Each step has one shuffle, except the first: a product by 2^32 + 1 adds the first value of each pair
    /// to the second.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq")]
    pub(super) fn inclusive(&self, values: __m512i) -> __m512i {
        let pairs = _mm512_mullo_epi64(values, self.pair);
        // The second pair of each quad gets the sum of the first.
        let first = _mm512_maskz_shuffle_epi32::<0b01_01_00_00>(0xcccc, pairs);
        let quads = _mm512_add_epi32(pairs, first);
        let ends = _mm512_maskz_permutexvar_epi32(self.odd_quads as u16, self.quad_ends, quads);
        let halves = _mm512_add_epi32(quads, ends);
        let end = _mm512_maskz_permutexvar_epi32(self.upper_half as u16, self.half_end, halves);
        _mm512_add_epi32(halves, end)
    }

    /// The last value of a vector, in every lane.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn last(&self, values: __m512i) -> __m512i {
        _mm512_permutexvar_epi32(self.last, values)
    }
}
