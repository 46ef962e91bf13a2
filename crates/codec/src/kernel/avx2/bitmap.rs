//! Bitmaps: decoding and marks.

use super::super::scalar;
use super::compress::lane_mask;
use super::memory::{LANES, load_all, load_bytes, store_all};
use super::search::equal_lanes;
use core::arch::x86_64::*;

/// [`crate::Kernel::count_ones`].
#[target_feature(enable = "popcnt")]
pub(in crate::kernel) fn count_ones(bytes: &[u8]) -> usize {
    scalar::bitmap::count_ones(bytes)
}

/// [`crate::Kernel::bitmap_read`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(in crate::kernel) fn bitmap_read(bits: &[u8], prev: u32, out: &mut [u32]) {
    scalar::bitmap::bitmap_read(bits, prev, out);
}

/// [`crate::Kernel::collect_bits`]: 32 marks at a time.
#[target_feature(enable = "avx2")]
pub(in crate::kernel) fn collect_bits(marks: &mut [u8], bits: &mut [u8]) {
    let (chunks, rest) = marks.as_chunks_mut::<32>();
    let (words, rest_of_bits) = bits.as_chunks_mut::<4>();
    for (marks, word) in chunks.iter_mut().zip(words) {
        // Moves the lowest bit of each byte to its highest; the other bits do not matter.
        let marked = _mm256_movemask_epi8(_mm256_slli_epi16::<7>(load_bytes(marks)));
        *word = (u32::from_le_bytes(*word) | marked as u32).to_le_bytes();
        *marks = [0; 32];
    }
    scalar::bitmap::collect_bits(rest, rest_of_bits);
}

/// [`crate::Kernel::mark_positive`]: eight sums at a time.
#[target_feature(enable = "avx2")]
pub(in crate::kernel) fn mark_positive(sums: &[u32], bits: &mut [u8]) {
    let (chunks, rest) = sums.as_chunks::<LANES>();
    let (bytes, rest_of_bits) = bits.split_at_mut(chunks.len());
    for (sums, byte) in chunks.iter().zip(bytes) {
        *byte |= !equal_lanes(load_all(sums), _mm256_setzero_si256()) as u8;
    }
    scalar::bitmap::mark_positive(rest, rest_of_bits);
}

/// [`crate::Kernel::keep_marked`]: eight sums at a time.
#[target_feature(enable = "avx2")]
pub(in crate::kernel) fn keep_marked(sums: &mut [u32], bits: &[u8]) {
    let (chunks, rest) = sums.as_chunks_mut::<LANES>();
    let (bytes, rest_of_bits) = bits.split_at(chunks.len());
    for (sums, byte) in chunks.iter_mut().zip(bytes) {
        store_all(sums, _mm256_and_si256(load_all(sums), lane_mask(*byte)));
    }
    scalar::bitmap::keep_marked(rest, rest_of_bits);
}
