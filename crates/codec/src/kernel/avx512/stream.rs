//! Unpacking of the horizontal layout: one stream of bits.

use super::memory::{LANES, load_bytes};
use crate::kernel::x86::UnpackShuffle;
use core::arch::x86_64::*;

/// A bit stream of values of one width. 16 values always take whole bytes.
pub(super) struct BitStream<'a> {
    bytes: &'a [u8],
    /// Number of bytes of 16 values.
    stride: usize,
    /// For each lane the four bytes from the first byte of its value on.
    shuffle: __m512i,
    /// For each lane, in the first byte that `shuffle` moves to it, the bit at which the value starts.
    shifts: __m512i,
    mask: __m512i,
}

impl<'a> BitStream<'a> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
    pub(super) fn new(bytes: &'a [u8], width: u32) -> BitStream<'a> {
        let row = &SHUFFLES[width as usize];
        // SAFETY: There are 64 bytes.
        let shuffle = unsafe { _mm512_loadu_si512(row.bytes.as_ptr().cast()) };
        // SAFETY: There are 16 shifts.
        let shifts = unsafe { _mm512_loadu_si512(row.shifts.as_ptr().cast()) };
        let mask = _mm512_set1_epi32(((1u64 << width) - 1) as u32 as i32);
        BitStream { bytes, stride: 2 * width as usize, shuffle, shifts, mask }
    }

    /// The values from index `16 * group` on; lanes after the last value are unspecified.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
    pub(super) fn values(&self, group: usize) -> __m512i {
        let bytes = load_bytes(&self.bytes[group * self.stride..]);
        let low = _mm512_permutexvar_epi8(self.shuffle, bytes);
        let next = _mm512_add_epi8(self.shuffle, _mm512_set1_epi8(4));
        let high = _mm512_permutexvar_epi8(next, bytes);
        _mm512_and_si512(_mm512_shrdv_epi32(low, high, self.shifts), self.mask)
    }
}

/// The shuffles for each width. All 16 lanes are shuffled from the same bytes.
static SHUFFLES: [UnpackShuffle<64, LANES>; 33] = UnpackShuffle::of_widths(LANES);
