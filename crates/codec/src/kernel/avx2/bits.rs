//! Bit packing and unpacking in both layouts.

use super::exceptions::{HighPartBuffer, HighPartCursor};
use super::memory::{LANES, Vector, add, broadcast, load_all, or, shift_left, store_all};
use super::stream::{STREAM_WIDTH_MAX, pack_stream, unpack_stream};
use super::sums::PrefixSums;
use crate::kernel::size::{self, HighPartSize, SIZE_BYTES, SIZE_NONE, SIZE_WORDS};
use crate::{bitpack::Layout, block::BLOCK, kernel::scalar, kernel::table::Packed};
use core::{arch::x86_64::*, mem::MaybeUninit};

/// Implements [`crate::Kernel::pack`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(crate) fn pack(values: &[u32], width: u32, layout: Layout, packed: &mut [MaybeUninit<u8>]) {
    match layout {
        // SAFETY: The CPU has the instructions of this function, and those of the table need no more.
        Layout::Vertical if values.len() == BLOCK => unsafe { PACK_VERTICAL[width as usize](values, packed) },
        _ if width <= STREAM_WIDTH_MAX => pack_stream(values, width, packed),
        _ => scalar::bits::pack_horizontal(values, width, packed),
    }
}

/// A function that packs 256 values at one width.
type PackFunction = unsafe fn(&[u32], &mut [MaybeUninit<u8>]);

static PACK_VERTICAL: [PackFunction; 33] = by_width!(pack_vertical);

#[target_feature(enable = "avx2")]
fn pack_vertical<const W: usize>(values: &[u32], packed: &mut [MaybeUninit<u8>]) {
    scalar::bits::pack_column::<W, LANES>(values, packed);
}

unpack_by_form!("avx2,bmi1,bmi2,lzcnt,popcnt");

/// Unpacks values of the horizontal layout, then adds exceptions and computes prefix sums.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn unpack_horizontal<const SIZE: HighPartSize, const SUM: bool>(
    packed: &Packed,
    highs: &HighPartBuffer,
    out: &mut [u32],
) {
    unpack_stream(packed.bytes, packed.width, out);
    finish_values::<SIZE, SUM>(FinishingSteps::new(packed, highs), out);
}

/// Unpacks 256 values of the vertical layout, a row of eight at a time.
///
/// # Safety
/// There must be `32 * W` bytes.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
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
            return _mm256_setzero_si256();
        }
        let low = _mm256_srlv_epi32(word(first), _mm256_set1_epi32(shift as i32));
        if shift + W <= 32 {
            return low;
        }
        _mm256_or_si256(low, _mm256_sllv_epi32(word(first + 1), _mm256_set1_epi32(32 - shift as i32)))
    };
    let mask = low_bits(W as u32);
    unrolled!(32, k, {
        let values = finish.apply::<SIZE, SUM>(_mm256_and_si256(row(k), mask), k);
        store_all(&mut out.as_chunks_mut::<LANES>().0[k], values);
    });
}

/// Adds exceptions to unpacked values, and replaces them by their prefix sums.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn finish_values<const SIZE: HighPartSize, const SUM: bool>(mut finish: FinishingSteps, out: &mut [u32]) {
    if SIZE == SIZE_NONE && !SUM {
        return;
    }
    let (groups, rest) = out.as_chunks_mut::<LANES>();
    for (group, out) in groups.iter_mut().enumerate() {
        store_all(out, finish.apply::<SIZE, SUM>(load_all(out), group));
    }
    if !rest.is_empty() {
        let mut last = [0; LANES];
        last[..rest.len()].copy_from_slice(rest);
        let values = finish.apply::<SIZE, SUM>(load_all(&last), groups.len());
        store_all(&mut last, values);
        rest.copy_from_slice(&last[..rest.len()]);
    }
}
