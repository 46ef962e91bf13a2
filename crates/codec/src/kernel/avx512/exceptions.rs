//! Taking the high parts of exceptions off and reading them.

use super::bits::Stream;
use super::memory::{LANES, first_lanes, load, store_all};
use crate::kernel::Exceptions;
use core::arch::x86_64::*;

/// [`crate::Kernel::highs`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
pub(in crate::kernel) fn highs(bytes: &[u8], width: u32, shift: u32, found: &mut Exceptions) -> bool {
    let stream = Stream::new(bytes, width);
    let shift = _mm512_set1_epi32(shift as i32);
    let mut zeros = 0;
    let groups = found.count.div_ceil(LANES);
    for (group, out) in found.highs.as_chunks_mut::<LANES>().0[..groups].iter_mut().enumerate() {
        let highs = stream.values(group);
        let wanted = first_lanes(found.count - LANES * group);
        zeros |= _mm512_mask_testn_epi32_mask(wanted, highs, highs);
        store_all(out, _mm512_sllv_epi32(highs, shift));
    }
    zeros == 0
}

/// [`crate::Kernel::exceptions`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2,popcnt")]
pub(in crate::kernel) fn exceptions(values: &[u32], width: u32, found: &mut Exceptions) {
    let shift = _mm512_set1_epi32(width as i32);
    found.bitmap = [0; _];
    found.count = 0;
    for (values, bitmap) in values.chunks(LANES).zip(found.bitmap.as_chunks_mut::<2>().0) {
        let highs = _mm512_srlv_epi32(load(values), shift);
        let places = _mm512_test_epi32_mask(highs, highs);
        *bitmap = places.to_le_bytes();
        let room = found.highs.as_mut_ptr().wrapping_add(found.count);
        // SAFETY: The caller has checked that there are at most 256 values, so that at most 240 are found before
        // the last 16, and there are 272 places.
        unsafe { _mm512_storeu_si512(room.cast(), _mm512_maskz_compress_epi32(places, highs)) };
        found.count += places.count_ones() as usize;
    }
}
