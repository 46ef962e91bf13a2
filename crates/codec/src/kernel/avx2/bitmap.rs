//! Set bits to values.

use super::super::scalar;
use super::memory::load_bytes;
use core::arch::x86_64::*;

/// [`crate::Kernel::ones`].
#[target_feature(enable = "popcnt")]
pub(in crate::kernel) fn ones(bytes: &[u8]) -> usize {
    scalar::bitmap::ones(bytes)
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
        // The lowest bit of each byte becomes its highest, whatever is shifted into the others.
        let marked = _mm256_movemask_epi8(_mm256_slli_epi16::<7>(load_bytes(marks)));
        *word = (u32::from_le_bytes(*word) | marked as u32).to_le_bytes();
        *marks = [0; 32];
    }
    scalar::bitmap::collect_bits(rest, rest_of_bits);
}
