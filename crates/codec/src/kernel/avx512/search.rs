//! What two sorted blocks share: 16 values are compared with 16 at once, whichever their order.

use super::super::scalar;
use super::memory::{LANES, load};
use crate::search::Shared;
use core::arch::x86_64::*;

/// [`crate::Kernel::intersect`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt")]
pub(in crate::kernel) fn intersect(first: &[u32], second: &[u32], shared: &mut Shared) {
    let (mut i, mut j, mut found) = (0, 0, 0);
    let (places, count) = shared.parts();
    while let (Some(a), Some(b)) = (first.get(i..i + LANES), second.get(j..j + LANES)) {
        let (in_first, in_second) = matches(load(a), load(b));
        if in_first != 0 {
            // If values do not rise, one may be found more than once: no more places than values.
            let room = found.min(crate::BLOCK);
            write(&mut places[0][room..], in_first, i);
            write(&mut places[1][room..], in_second, j);
            found = room + in_first.count_ones().min(in_second.count_ones()) as usize;
        }
        let (last, other) = (a[LANES - 1], b[LANES - 1]);
        i += if last <= other { LANES } else { 0 };
        j += if other <= last { LANES } else { 0 };
    }
    *count = found.min(crate::BLOCK);
    if *count < crate::BLOCK {
        scalar::search::merge((first, i), (second, j), shared);
    }
}

/// Which lanes of either have a value of the other.
#[inline]
#[target_feature(enable = "avx512f")]
fn matches(first: __m512i, second: __m512i) -> (u16, u16) {
    let (mut in_first, mut in_second) = (0, 0);
    let mut turned = second;
    for turn in 0..LANES as u32 {
        let equal = _mm512_cmpeq_epi32_mask(first, turned);
        in_first |= equal;
        in_second |= equal.rotate_left(turn);
        turned = _mm512_alignr_epi32::<1>(turned, turned);
    }
    (in_first, in_second)
}

/// Writes the places of the lanes, the first of which has place `first`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn write(out: &mut [u8], lanes: u16, first: usize) {
    let places = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let places = _mm512_add_epi32(places, _mm512_set1_epi32(first as i32));
    let bytes = _mm512_cvtepi32_epi8(_mm512_maskz_compress_epi32(lanes, places));
    let out: &mut [u8; 16] = out.first_chunk_mut().expect("room for a vector");
    // SAFETY: There is room for 16 bytes.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), bytes) }
}
