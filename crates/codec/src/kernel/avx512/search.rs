//! What two sorted blocks share: 16 values are compared with 16 at once, whichever their order.

use super::memory::{LANES, first_lanes, load};
use crate::search::Shared;
use core::arch::x86_64::*;

/// More lanes than these that have a partner find it all at once.
const MANY: u32 = 3;

/// [`crate::Kernel::intersect`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt")]
pub(in crate::kernel) fn intersect(first: &[u32], second: &[u32], shared: &mut Shared) {
    let (places, count) = shared.parts();
    let (mut i, mut j, mut found) = (0, 0, 0);
    while i < first.len() && j < second.len() {
        let (a, b) = (up_to_lanes(&first[i..]), up_to_lanes(&second[j..]));
        let (last, other) = (a[a.len() - 1], b[b.len() - 1]);
        if other < a[0] {
            j += LANES;
            continue;
        }
        if last < b[0] {
            i += LANES;
            continue;
        }
        let (lanes, vector) = (first_lanes(a.len()), load(a));
        let in_first = lanes & any_equal(vector, b);
        if in_first != 0 {
            // If values do not rise, one may be found more than once: no more places than values.
            let room = found.min(crate::BLOCK);
            write(&mut places[0][room..], in_first, i);
            found = room + in_first.count_ones() as usize;
            if in_first.count_ones() > MANY {
                let in_second = first_lanes(b.len()) & any_equal(load(b), a);
                write(&mut places[1][room..], in_second, j);
                found = room + in_first.count_ones().min(in_second.count_ones()) as usize;
            } else {
                partners(vector, in_first, (b, j), &mut places[1][room..]);
            }
        }
        i += if last <= other { LANES } else { 0 };
        j += if other <= last { LANES } else { 0 };
    }
    *count = found.min(crate::BLOCK);
}

#[inline]
fn up_to_lanes(values: &[u32]) -> &[u32] {
    &values[..values.len().min(LANES)]
}

/// Which lanes have one of at most 16 values. Each is compared with all lanes at once; four chains of masks, so that none
/// waits for the one before.
#[inline]
#[target_feature(enable = "avx512f")]
fn any_equal(lanes: __m512i, values: &[u32]) -> u16 {
    let mut other = [u16::MAX; 4];
    if let Ok(values) = <&[u32; LANES]>::try_from(values) {
        for chunk in values.as_chunks::<4>().0 {
            for (other, value) in other.iter_mut().zip(chunk) {
                *other = _mm512_mask_cmpneq_epi32_mask(*other, lanes, _mm512_set1_epi32(*value as i32));
            }
        }
    } else {
        for value in values {
            other[0] = _mm512_mask_cmpneq_epi32_mask(other[0], lanes, _mm512_set1_epi32(*value as i32));
        }
    }
    !(other[0] & other[1] & other[2] & other[3])
}

/// Writes where in `second`, the first of which has place `place`, the values of some lanes stand.
#[inline]
#[target_feature(enable = "avx512f,bmi1,bmi2")]
fn partners(lanes: __m512i, mut which: u16, (second, place): (&[u32], usize), out: &mut [u8]) {
    let (second, there) = (load(second), first_lanes(second.len()));
    for out in out {
        if which == 0 {
            break;
        }
        let value = _mm512_maskz_compress_epi32(which, lanes);
        let equal =
            there & _mm512_cmpeq_epi32_mask(second, _mm512_broadcastd_epi32(_mm512_castsi512_si128(value)));
        *out = (place + (equal.trailing_zeros() as usize).min(LANES - 1)) as u8;
        which &= which - 1;
    }
}

/// Writes the places of the lanes, the first of which has place `first`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(super) fn write(out: &mut [u8], lanes: u16, first: usize) {
    let places = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let places = _mm512_add_epi32(places, _mm512_set1_epi32(first as i32));
    let bytes = _mm512_cvtepi32_epi8(_mm512_maskz_compress_epi32(lanes, places));
    let out: &mut [u8; 16] = out.first_chunk_mut().expect("room for a vector");
    // SAFETY: There is room for 16 bytes.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), bytes) }
}
