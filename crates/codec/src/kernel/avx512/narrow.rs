//! Prefix sums of 256 narrow gaps, 32 at a time: two in each lane of 32 bits.
//!
//! Most instructions of a prefix sum move values between lanes, and few of them can be executed at the same
//! time. If the sum of 16 gaps has at most 16 bits, two vectors of 16 gaps fit into one:
//!
//! 1. Rotations move the rows of the vertical layout to the low and to the high halves of the lanes.
//! 2. The high parts of the exceptions are multiplied to their place above the low parts.
//! 3. One prefix sum is computed for both halves.
//! 4. Each half is added to the sum of the values before it.

use super::memory::{
    ConstantBytes, LANES, Vector, add, broadcast, hide_from_optimizer, opaque_mask, store_all,
};
use super::{bits, exceptions::HighByteCursor, sums::PrefixSumConstants};
use crate::kernel::size::{HighPartSize, SIZE_BYTES, SIZE_NONE};
use crate::{bitpack::Layout, block::BLOCK, kernel::table::Packed};
use core::arch::x86_64::*;

/// Maximum width in bits of a gap less 1, low and high part together: so the sum of 16 gaps is at most 2^15.
const WIDTH_MAX: usize = 11;

/// Maximum width in bits of a high part.
const HIGH_WIDTH_MAX: u32 = 8;

/// Implements [`crate::Kernel::unpack`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
pub(crate) fn unpack(packed: &Packed, out: &mut [u32]) {
    let high_width = packed.patch.as_ref().map_or(0, |patch| patch.width);
    let narrow = packed.width + high_width <= WIDTH_MAX as u32 && high_width <= HIGH_WIDTH_MAX;
    match (packed.layout, packed.after, <&mut [u32; BLOCK]>::try_from(&mut *out)) {
        (Layout::Vertical, Some(prev), Ok(block)) if narrow => {
            let unpack = UNPACK_FUNCTIONS[usize::from(packed.patch.is_some())][packed.width as usize];
            // SAFETY: The CPU has the instructions of this function, and those of the table need no more. The
            // caller has checked that there are 32 * width bytes.
            unsafe { unpack(packed, prev, block) }
        }
        _ => bits::unpack(packed, out),
    }
}

/// A function that unpacks 256 prefix sums from `32 * W` bytes. It is unsafe because it does not check that
/// there are as many bytes.
type UnpackFunction = unsafe fn(&Packed, u32, &mut [u32; BLOCK]);

/// The functions for blocks without and with exceptions, one for each width.
static UNPACK_FUNCTIONS: [[UnpackFunction; WIDTH_MAX + 1]; 2] = [
    by_width!(@ unpack_sums, (SIZE_NONE), 0 1 2 3 4 5 6 7 8 9 10 11),
    by_width!(@ unpack_sums, (SIZE_BYTES), 0 1 2 3 4 5 6 7 8 9 10 11),
];

/// Unpacks 256 prefix sums, four rows of eight lanes at a time.
///
/// # Safety
/// There must be `32 * W` bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
unsafe fn unpack_sums<const W: usize, const SIZE: HighPartSize>(
    packed: &Packed,
    prev: u32,
    out: &mut [u32; BLOCK],
) {
    let word = |k: usize| packed.bytes.as_ptr().wrapping_add(32 * k);
    let twice = |k: usize| {
        // SAFETY: There are W words of 32 bytes, and `k` is less than W.
        let word = unsafe { _mm256_loadu_si256(word(k).cast()) };
        _mm512_broadcast_i64x4(word)
    };
    // SAFETY: As above, and `k + 1` is less than W.
    let both = |k: usize| unsafe { _mm512_loadu_si512(word(k).cast()) };
    // The values of rows `k` and `k + 1` from bit `to` of each lane on.
    let rows = |k: usize, to: usize| {
        let (first, second) = (k * W / 32, (k + 1) * W / 32);
        let (shift, next) = (k * W % 32, (k + 1) * W % 32);
        let (low, high) = if W == 0 {
            return _mm512_setzero_si512();
        } else if shift + W > 32 {
            (both(first), twice(second))
        } else if next + W > 32 {
            (twice(first), both(first))
        } else if first == second {
            (twice(first), twice(first))
        } else {
            (both(first), both(first))
        };
        let count = |shift: usize| _mm256_set1_epi32(((shift + to) % 32) as i32);
        let counts = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(count(shift)), count(next));
        _mm512_shrdv_epi32(low, high, counts)
    };
    let (low_half, mask) = (broadcast(0xffff), _mm512_set1_epi16((1 << W) - 1));
    let factor = hide_from_optimizer(_mm512_set1_epi16(1 << W));
    // The last value of a vector, that of the low halves and that of the high halves, in all lanes.
    let (last_low, last_high) = (hide_from_optimizer(broadcast(30)), hide_from_optimizer(broadcast(31)));
    let last =
        |of: Vector, sums: Vector| _mm512_maskz_permutexvar_epi16(opaque_mask(0x5555_5555) as u32, of, sums);
    // The numbers of gaps up to each lane, in both halves: the packed gaps are less 1.
    let counts = _mm512_setr_epi32(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
    let counts = hide_from_optimizer(_mm512_or_si512(counts, _mm512_slli_epi32::<16>(counts)));
    let none = _mm512_setzero_si512();
    let mut highs = HighByteCursor::new(packed.patch);
    // All before the first is needed, so that their latencies overlap.
    let quarters = if SIZE == SIZE_NONE {
        [none; 4]
    } else {
        [highs.next(0), highs.next(1), highs.next(2), highs.next(3)]
    };
    let steps = PrefixSumConstants::new();
    let mut before = RunningSum(broadcast(prev as i32));
    unrolled!(8, k, {
        let halves = blend_bits(low_half, rows(4 * k, 0), rows(4 * k + 2, 16));
        let exceptions = if SIZE == SIZE_NONE {
            none
        } else {
            let first = hide_from_optimizer(HALF_PERMUTATIONS[k % 2].vector());
            let words =
                _mm512_maskz_permutexvar_epi8(opaque_mask(0x5555_5555_5555_5555), first, quarters[k / 2]);
            _mm512_mullo_epi16(words, factor)
        };
        let sums = add(steps.inclusive(and_or(halves, mask, exceptions)), counts);
        let out = &mut out.as_chunks_mut::<LANES>().0[2 * k..2 * k + 2];
        store_all(&mut out[0], add(before.0, _mm512_and_si512(sums, low_half)));
        before.add(last(last_low, sums));
        store_all(&mut out[1], add(before.0, _mm512_srli_epi32::<16>(sums)));
        before.add(last(last_high, sums));
    });
}

/// The sum of all gaps so far, the same in every lane.
struct RunningSum(Vector);

impl RunningSum {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn add(&mut self, gaps: Vector) {
        self.0 = add(self.0, gaps);
    }
}

/// Takes the bits of `a` where those of `mask` are set, otherwise those of `b`.
#[inline]
#[target_feature(enable = "avx512f")]
fn blend_bits(mask: Vector, a: Vector, b: Vector) -> Vector {
    _mm512_ternarylogic_epi32::<0xca>(mask, a, b)
}

/// `a & b | c`.
#[inline]
#[target_feature(enable = "avx512f")]
fn and_or(a: Vector, b: Vector, c: Vector) -> Vector {
    _mm512_ternarylogic_epi32::<0xea>(a, b, c)
}

/// Permutations that move 32 of 64 bytes to the lowest bytes of the 16-bit halves of the lanes, for the first
/// and for the last 32 bytes.
static HALF_PERMUTATIONS: [ConstantBytes; 2] = {
    let mut bytes = [const { ConstantBytes::counting(4) }; 2];
    let mut k = 0;
    while k < 2 * 64 {
        bytes[k / 64].0[k % 64] += (k / 64 * 2 * LANES + k % 4 / 2 * LANES) as u8;
        k += 1;
    }
    bytes
};
