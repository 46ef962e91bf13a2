//! Set bits to values: 64 bits at a time.

use super::super::scalar;
use super::memory::{COUNTING, LANES, store};
use core::arch::x86_64::*;

/// [`crate::Kernel::ones`].
#[target_feature(enable = "popcnt")]
pub(in crate::kernel) fn ones(bytes: &[u8]) -> usize {
    scalar::bitmap::ones(bytes)
}

/// [`crate::Kernel::bitmap_read`].
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi2,popcnt")]
pub(in crate::kernel) fn bitmap_read(bits: &[u8], prev: u32, out: &mut [u32]) {
    let mut room = out;
    let mut base = prev.wrapping_add(1);
    let (words, rest) = bits.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    for word in words.iter().chain([&last]) {
        let word = u64::from_le_bytes(*word);
        let mut places = _mm512_maskz_compress_epi8(word, COUNTING.vector());
        let count = (word.count_ones() as usize).min(room.len());
        for first in (0..count).step_by(LANES) {
            let values = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(places));
            // What is beyond the last place is written over by the next word.
            store(&mut room[first..], _mm512_add_epi32(values, _mm512_set1_epi32(base as i32)));
            places = _mm512_alignr_epi64::<2>(places, places);
        }
        room = &mut room[count..];
        base = base.wrapping_add(64);
    }
}
