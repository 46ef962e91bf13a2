//! Compress and expand, which are instructions of AVX-512, by tables of permutations. Compress moves the
//! lanes that a mask selects to the front; expand moves the first lanes to those that a mask selects.

use super::memory::{LANES, Vector};
use core::arch::x86_64::*;

/// For each 8-bit mask the positions of its set bits, padded with zeros.
static SET_BITS: [[u8; LANES]; 256] = {
    let mut positions = [[0; LANES]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut bit, mut found) = (0, 0);
        while bit < LANES {
            if mask >> bit & 1 == 1 {
                positions[mask][found] = bit as u8;
                found += 1;
            }
            bit += 1;
        }
        mask += 1;
    }
    positions
};

/// The positions of the set bits of a mask as bytes, padded with zeros.
#[inline]
pub(super) fn set_bits(mask: u8) -> __m128i {
    // SAFETY: Every x86-64 CPU has SSE2.
    unsafe { _mm_cvtsi64_si128(i64::from_le_bytes(SET_BITS[usize::from(mask)])) }
}

/// Moves the lanes that the mask selects to the front. The lanes after them are unspecified.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn compress(mask: u8, values: Vector) -> Vector {
    _mm256_permutevar8x32_epi32(values, _mm256_cvtepu8_epi32(set_bits(mask)))
}

/// For each 8-bit mask and each of its bits: the number of set bits before it, or 0x80 if it is clear.
static RANKS_OF_MASK: [[u8; LANES]; 256] = {
    let mut ranks = [[0; LANES]; 256];
    let mut k = 0;
    while k < 256 * LANES {
        let (mask, lane) = (k / LANES, k % LANES);
        let rank = (mask & ((1 << lane) - 1)).count_ones() as u8;
        ranks[mask][lane] = if mask >> lane & 1 == 1 { rank } else { 0x80 };
        k += 1;
    }
    ranks
};

/// Moves the first lanes to those that the mask selects; the others are zero.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn expand(mask: u8, values: Vector) -> Vector {
    let spread = _mm256_permutevar8x32_epi32(values, _mm256_cvtepu8_epi32(lane_ranks(mask)));
    _mm256_and_si256(spread, lane_mask(mask))
}

#[inline]
fn lane_ranks(mask: u8) -> __m128i {
    // SAFETY: Every x86-64 CPU has SSE2.
    unsafe { _mm_cvtsi64_si128(i64::from_le_bytes(RANKS_OF_MASK[usize::from(mask)])) }
}

/// All ones in the lanes that the mask selects.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn lane_mask(mask: u8) -> Vector {
    let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(mask.into()), bits), bits)
}

/// For each 8-bit mask the word in which byte `i` is 0xff if bit `i` is set, otherwise 0.
static BYTE_MASKS: [u64; 256] = {
    let mut words = [0; 256];
    let mut k = 0;
    while k < 256 * LANES {
        let (mask, bit) = (k / LANES, k % LANES);
        words[mask] |= ((mask as u64 >> bit & 1) * 0xff) << (8 * bit);
        k += 1;
    }
    words
};

/// The word in which byte `i` is 0xff if bit `i` of the mask is set, otherwise 0.
#[inline]
pub(super) fn byte_mask(mask: u8) -> u64 {
    BYTE_MASKS[usize::from(mask)]
}
