//! The vectorized decoder of Masked VByte, with 128-bit vectors and 170 byte shuffles. Source: Plaisance,
//! Kurz, Lemire: Vectorized VByte Decoding, section 4.
//!
//! 1. Continuation bits are gathered 48 bytes at a time, and those of the next 48 bytes in advance.
//! 2. While twelve bits are left, they select a [step](super::vbyte_masks). Twelve clear bits are twelve
//!    values of one byte.
//! 3. Differences are summed in the vector before it is stored.
//! 4. Near the end of the bytes the bits are gathered for each step. The decoder ends before a step that
//!    could read or write past a slice, and at damaged bytes.

use crate::codecs::vbyte_masks::{DECODE_STEPS, FOUR_VALUES, SHUFFLE_MASKS, STEP_BITS, TWO_VALUES};
use pulp::{cast, x86::V2};
use std::arch::x86_64::__m128i;

/// Number of bytes whose continuation bits are loaded together.
const GATHERED_BYTES: usize = 48;
/// Most values that a step stores.
const STEP_VALUES_MAX: usize = 12;

/// Decodes values while both slices are long enough for a step. Returns the bytes consumed and the
/// number of values.
#[inline]
pub(super) fn decode(simd: V2, bytes: &[u8], prev: u32, out: &mut [u32]) -> (usize, usize) {
    simd.vectorize(
        #[inline(always)]
        || SseDecoder { simd, bytes, at: 0, prev: cast([prev; 4]) }.decode_all(out),
    )
}

struct SseDecoder<'a> {
    simd: V2,
    bytes: &'a [u8],
    /// Offset of the next value in `bytes`.
    at: usize,
    /// The last decoded value, in each lane.
    prev: __m128i,
}

impl SseDecoder<'_> {
    #[inline(always)]
    fn decode_all(mut self, out: &mut [u32]) -> (usize, usize) {
        let mut values = 0;
        if let Some(first) = self.continuation_bits(0) {
            let (mut bits, mut count, mut end) = (first, GATHERED_BYTES, GATHERED_BYTES);
            // The bits of the bytes after `end` are ready before they are needed.
            let mut next = self.continuation_bits(end);
            while count >= STEP_BITS as usize || next.is_some() {
                if count < STEP_BITS as usize {
                    bits |= next.unwrap_or_default() << count;
                    (count, end) = (count + GATHERED_BYTES, end + GATHERED_BYTES);
                    next = self.continuation_bits(end);
                }
                let Some((consumed, stored)) = self.decode_step(bits, &mut out[values..]) else {
                    return (self.at, values);
                };
                (bits, count) = (bits >> consumed, count - consumed);
                values += stored;
            }
        }
        while let Some(block) = self.bytes[self.at..].first_chunk::<16>() {
            let bits = self.simd.sse2._mm_movemask_epi8(cast(*block)) as u64;
            let Some((_, stored)) = self.decode_step(bits, &mut out[values..]) else { break };
            values += stored;
        }
        (self.at, values)
    }

    /// The continuation bits of 48 bytes; `None` if there are fewer.
    #[inline(always)]
    fn continuation_bits(&self, at: usize) -> Option<u64> {
        let block = self.bytes.get(at..)?.first_chunk::<GATHERED_BYTES>()?;
        let (parts, _) = block.as_chunks::<16>();
        let bits = |part: usize| self.simd.sse2._mm_movemask_epi8(cast(parts[part])) as u32 as u64;
        Some(bits(0) | bits(1) << 16 | bits(2) << 32)
    }

    /// Decodes the next values. Returns the bytes consumed and the values stored; `None` if a slice is
    /// too short, or the bytes are damaged.
    #[inline(always)]
    fn decode_step(&mut self, bits: u64, out: &mut [u32]) -> Option<(usize, usize)> {
        let out = out.first_chunk_mut::<STEP_VALUES_MAX>()?;
        let input: __m128i = cast(*self.bytes.get(self.at..)?.first_chunk::<16>()?);
        let bits = bits as usize & (DECODE_STEPS.len() - 1);
        let V2 { sse2, ssse3, sse4_1, .. } = self.simd;
        if bits == 0 {
            let parts = [input, sse2._mm_srli_si128::<4>(input), sse2._mm_srli_si128::<8>(input)];
            for (part, out) in parts.into_iter().zip(out.as_chunks_mut::<4>().0) {
                *out = self.sum_four(sse4_1._mm_cvtepi8_epi32(part));
            }
            self.at += 12;
            return Some((12, 12));
        }
        let step = DECODE_STEPS[bits];
        if step.bytes == 0 {
            return None;
        }
        let shuffled = ssse3._mm_shuffle_epi8(input, cast(SHUFFLE_MASKS[usize::from(step.shuffle)]));
        let masked = |mask: u32| sse2._mm_and_si128(shuffled, cast([mask; 4]));
        let stored = if step.shuffle < FOUR_VALUES {
            let (low, high) = (masked(0x007F_007F), masked(0x7F00_7F00));
            let six = sse2._mm_or_si128(low, sse2._mm_srli_epi16::<1>(high));
            let four = self.sum_four(sse4_1._mm_cvtepi16_epi32(six));
            out[..4].copy_from_slice(&four);
            let two = self.sum_two(sse4_1._mm_cvtepi16_epi32(sse2._mm_srli_si128::<8>(six)));
            out[4..6].copy_from_slice(&two);
            6
        } else if step.shuffle < TWO_VALUES {
            let middle = sse2._mm_srli_epi32::<1>(masked(0x7F00));
            let high = sse2._mm_srli_epi32::<2>(masked(0x7F_0000));
            let four = sse2._mm_or_si128(sse2._mm_or_si128(masked(0x7F), middle), high);
            let four = self.sum_four(four);
            out[..4].copy_from_slice(&four);
            4
        } else {
            let groups = masked(0x7F7F_7F7F);
            let first = sse2._mm_srli_epi64::<56>(groups);
            // Shifts of 7, 6, 5 and 4 bits move each group to its offset in the value.
            let factors: __m128i = cast([128u16, 64, 32, 16, 128, 64, 32, 16]);
            let moved = sse2._mm_mullo_epi16(groups, factors);
            let joined = sse2._mm_or_si128(moved, sse2._mm_slli_epi64::<8>(moved));
            let joined = sse2._mm_or_si128(joined, first);
            let even: __m128i = cast([0u8, 2, 4, 6, 8, 10, 12, 14, 128, 128, 128, 128, 128, 128, 128, 128]);
            let two = self.sum_two(ssse3._mm_shuffle_epi8(joined, even));
            out[..2].copy_from_slice(&two);
            2
        };
        let consumed = usize::from(step.bytes);
        self.at += consumed;
        Some((consumed, stored))
    }

    /// Sums of four differences.
    #[inline(always)]
    fn sum_four(&mut self, differences: __m128i) -> [u32; 4] {
        let sse2 = self.simd.sse2;
        let pairs = sse2._mm_add_epi32(differences, sse2._mm_slli_si128::<4>(differences));
        let sums = sse2._mm_add_epi32(pairs, sse2._mm_slli_si128::<8>(pairs));
        let values = sse2._mm_add_epi32(sums, self.prev);
        self.prev = sse2._mm_shuffle_epi32::<0b11_11_11_11>(values);
        cast(values)
    }

    /// Sums of the first two differences.
    #[inline(always)]
    fn sum_two(&mut self, differences: __m128i) -> [u32; 2] {
        let sse2 = self.simd.sse2;
        let sums = sse2._mm_add_epi32(differences, sse2._mm_slli_si128::<4>(differences));
        let values = sse2._mm_add_epi32(sums, self.prev);
        self.prev = sse2._mm_shuffle_epi32::<0b01_01_01_01>(values);
        let [first, second, ..]: [u32; 4] = cast(values);
        [first, second]
    }
}
