//! Prefix sums of 256 narrow gaps, 16 at a time: two in each lane of 32 bits.
//!
//! Most instructions of a prefix sum move values between lanes. If the sum of eight gaps has at most 16 bits,
//! one row of the vertical layout goes to the low halves of the lanes and the next to the high halves, one
//! prefix sum is computed for both, and each half is added to the sum of the values before it.

use super::exceptions::{HighPartBuffer, HighPartCursor};
use super::memory::{LANES, Vector, add, broadcast, or, store_all};
use super::{bits, sums::PrefixSumConstants};
use crate::kernel::size::{self, HighPartSize, SIZE_BYTES, SIZE_NONE};
use crate::{bitpack::Layout, block::BLOCK, kernel::table::Packed};
use core::arch::x86_64::*;

/// Maximum width in bits of a gap less 1, low and high part together: so the sum of eight gaps is at most
/// 2^15.
const WIDTH_MAX: usize = 12;

/// Implements [`crate::Kernel::unpack`].
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(crate) fn unpack(packed: &Packed, out: &mut [u32]) {
    let (size, high_width) =
        (size::size_of_high_parts(&packed.patch), packed.patch.as_ref().map_or(0, |patch| patch.width));
    let narrow = packed.width + high_width <= WIDTH_MAX as u32 && matches!(size, SIZE_NONE | SIZE_BYTES);
    match (packed.layout, packed.after, <&mut [u32; BLOCK]>::try_from(&mut *out)) {
        (Layout::Vertical, Some(prev), Ok(block)) if narrow => {
            let mut highs = HighPartBuffer::new();
            if let Some(patch) = &packed.patch {
                highs.prepare::<SIZE_BYTES>(patch);
            }
            let unpack = UNPACK_FUNCTIONS[usize::from(packed.patch.is_some())][packed.width as usize];
            // SAFETY: The CPU has the instructions of this function, and those of the table need no more. The
            // caller has checked that there are 32 * width bytes, and the buffer was filled for this size.
            unsafe { unpack(packed, &highs, prev, block) }
        }
        _ => bits::unpack(packed, out),
    }
}

/// A function that unpacks 256 prefix sums from `32 * W` bytes. It is unsafe because it does not check that
/// there are as many bytes.
type UnpackFunction = unsafe fn(&Packed, &HighPartBuffer, u32, &mut [u32; BLOCK]);

/// The functions for blocks without and with exceptions, one for each width.
static UNPACK_FUNCTIONS: [[UnpackFunction; WIDTH_MAX + 1]; 2] = [
    by_width!(@ unpack_sums, (SIZE_NONE), 0 1 2 3 4 5 6 7 8 9 10 11 12),
    by_width!(@ unpack_sums, (SIZE_BYTES), 0 1 2 3 4 5 6 7 8 9 10 11 12),
];

/// Unpacks 256 prefix sums, two rows of eight lanes at a time.
///
/// # Safety
/// There must be `32 * W` bytes, and the buffer must have been filled for high parts of this size.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn unpack_sums<const W: usize, const SIZE: HighPartSize>(
    packed: &Packed,
    highs: &HighPartBuffer,
    prev: u32,
    out: &mut [u32; BLOCK],
) {
    let word = |k: usize| {
        let word = packed.bytes.as_ptr().wrapping_add(32 * k);
        // SAFETY: There are W words of 32 bytes, and `k` is less than W.
        unsafe { _mm256_loadu_si256(word.cast()) }
    };
    // A word with its bit `from` at bit `to`.
    let shifted = |word: Vector, from: usize, to: usize| {
        let right = _mm256_srlv_epi32(word, _mm256_set1_epi32(from.saturating_sub(to) as i32));
        _mm256_sllv_epi32(right, _mm256_set1_epi32(to.saturating_sub(from) as i32))
    };
    // The values of a row from bit `to` of each lane on; the other bits are masked off.
    let row = |k: usize, to: usize| {
        let (first, shift) = (k * W / 32, k * W % 32);
        if W == 0 {
            _mm256_setzero_si256()
        } else if shift + W <= 32 {
            shifted(word(first), shift, to)
        } else {
            or(shifted(word(first), shift, to), shifted(word(first + 1), 0, to + 32 - shift))
        }
    };
    let (mask, low_half) = (_mm256_set1_epi16((1 << W) - 1), broadcast(0xffff));
    // The numbers of gaps up to each lane, in both halves: the packed gaps are less 1.
    let counts = _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8);
    let counts = or(counts, _mm256_slli_epi32::<16>(counts));
    let mut highs = HighPartCursor::new(packed.patch, highs);
    let steps = PrefixSumConstants::new();
    let mut before = RunningSum(broadcast(prev as i32));
    unrolled!(16, pair, {
        let halves = _mm256_blend_epi16::<0b1010_1010>(row(2 * pair, 0), row(2 * pair + 1, 16));
        let mut values = _mm256_and_si256(halves, mask);
        if SIZE != SIZE_NONE {
            // SAFETY: Called once for each group, in order, and the buffer was filled for bytes.
            let low = unsafe { highs.next_bytes(2 * pair) };
            // SAFETY: As above.
            let high = unsafe { highs.next_bytes(2 * pair + 1) };
            let bytes = _mm_unpacklo_epi8(_mm_cvtsi64_si128(low as i64), _mm_cvtsi64_si128(high as i64));
            let words = _mm256_cvtepu8_epi16(bytes);
            values = or(values, _mm256_sll_epi16(words, _mm_cvtsi32_si128(W as i32)));
        }
        let sums = add(steps.inclusive(values), counts);
        let last = steps.last(sums);
        let (last_low, last_high) = (_mm256_and_si256(last, low_half), _mm256_srli_epi32::<16>(last));
        let out = &mut out.as_chunks_mut::<LANES>().0[2 * pair..2 * pair + 2];
        store_all(&mut out[0], add(before.0, _mm256_and_si256(sums, low_half)));
        store_all(&mut out[1], add(add(before.0, last_low), _mm256_srli_epi32::<16>(sums)));
        before.add(add(last_low, last_high));
    });
}

/// The sum of all gaps so far, the same in every lane.
struct RunningSum(Vector);

impl RunningSum {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn add(&mut self, gaps: Vector) {
        self.0 = add(self.0, gaps);
    }
}
