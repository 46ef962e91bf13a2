//! Bit unpacking in both layouts.

use super::exceptions::{HighPartBuffer, HighPartCursor};
use super::memory::{LANES, Vector, add, broadcast, or, shift_left, store, store_all};
use super::{stream::BitStream, sums::PrefixSums};
use crate::kernel::size::{self, HighPartSize, SIZE_BYTES, SIZE_NONE, SIZE_WORDS};
use crate::{bitpack::Layout, block::BLOCK, kernel::table::Packed};
use core::arch::x86_64::*;

unpack_by_form!("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt");

/// Unpacks 256 values of the vertical layout, two rows of eight at a time.
///
/// # Safety
/// There must be `32 * W` bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
unsafe fn unpack_vertical<const W: usize, const SIZE: HighPartSize, const SUM: bool>(
    packed: &Packed,
    highs: &HighPartBuffer,
    out: &mut [u32; BLOCK],
) {
    // With the constant width, the shift of the exceptions is a constant too.
    let mut finish = FinishingSteps::new(&Packed { width: W as u32, ..*packed }, highs);
    let word = |k: usize| {
        let word = packed.bytes.as_ptr().wrapping_add(32 * k);
        // SAFETY: There are W words of 32 bytes, and `k` is less than W.
        unsafe { _mm256_loadu_si256(word.cast()) }
    };
    // The values of the row in the low bits; the high bits are those of the next row and are masked off.
    let row = |k: usize| {
        let (first, shift) = (k * W / 32, k * W % 32);
        if W == 0 {
            _mm256_setzero_si256()
        } else if shift + W <= 32 {
            _mm256_srlv_epi32(word(first), _mm256_set1_epi32(shift as i32))
        } else {
            _mm256_shrdv_epi32(word(first), word(first + 1), _mm256_set1_epi32(shift as i32))
        }
    };
    let mask = low_bits(W as u32);
    unrolled!(16, pair, {
        let rows = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(row(2 * pair)), row(2 * pair + 1));
        let values = finish.apply::<SIZE, SUM>(_mm512_and_si512(rows, mask), pair);
        store_all(&mut out.as_chunks_mut::<LANES>().0[pair], values);
    });
}

/// Unpacks values of the horizontal layout, 16 at a time; the last group may be shorter.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
fn unpack_horizontal<const SIZE: HighPartSize, const SUM: bool>(
    packed: &Packed,
    highs: &HighPartBuffer,
    out: &mut [u32],
) {
    let mut finish = FinishingSteps::new(packed, highs);
    let stream = BitStream::new(packed.bytes, packed.width);
    for (group, out) in out.chunks_mut(LANES).enumerate() {
        store(out, finish.apply::<SIZE, SUM>(stream.values(group), group));
    }
}
