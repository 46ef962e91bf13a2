//! Blocks of 64-bit values: comparison and decoding of their offsets, two rows of eight at a time.
//!
//! A row of offsets is unpacked to the *high* bits of its lanes: with bits of other offsets below them, that
//! is a single shift of one or two words. Offsets of up to 32 bits are compared there. Let `s` = 32 - W be
//! the number of bits below the offset `v`, and `g` these bits. The first of these conditions, mod 2^32, is
//! equivalent to the second, mod 2^W, and so to the last, as the range ends below 2^W:
//!
//! ```text
//! (v 2^s + g) - first 2^s <= span 2^s + 2^s - 1
//! v - first <= span
//! first <= v <= first + span
//! ```
//!
//! Wider offsets are compared in two halves: the difference to `first` with a borrow, then the high halves,
//! and where these are equal the low halves.

use super::stream::BitStream;
use crate::block::BLOCK;
use crate::kernel::table::{OffsetRange, PackedOffsets};
use core::arch::x86_64::*;

/// Number of 32-bit lanes.
const LANES: usize = 16;

/// Implements [`crate::Kernel::offsets_within`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
pub(crate) fn offsets_within(offsets: &PackedOffsets, range: OffsetRange) -> [u64; 4] {
    if offsets.len != BLOCK {
        return compare_horizontal(offsets, range);
    }
    let compare = match offsets.high.width as usize {
        0 => COMPARE_NARROW[offsets.low.width as usize],
        width => COMPARE_WIDE[width],
    };
    // SAFETY: The CPU has the instructions of this function, and those of the tables need no more. The caller
    // has checked that both planes have 32 * width bytes, and that the low one has width 32 if there is
    // another.
    unsafe { compare(offsets.low.bytes, offsets.high.bytes, range) }
}

/// Implements [`crate::Kernel::decode_offsets`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
pub(crate) fn decode_offsets(offsets: &PackedOffsets, smallest: u64, out: &mut [u64]) {
    let Ok(block) = <&mut [u64; BLOCK]>::try_from(&mut *out) else {
        return decode_horizontal(offsets, smallest, out);
    };
    let decode = match offsets.high.width as usize {
        0 => DECODE_NARROW[offsets.low.width as usize],
        width => DECODE_WIDE[width],
    };
    // SAFETY: As in `offsets_within`.
    unsafe { decode(offsets.low.bytes, offsets.high.bytes, smallest, block) }
}

/// Compares 256 offsets with a range. It is unsafe because it does not check the number of bytes of the
/// planes.
type CompareFunction = unsafe fn(&[u8], &[u8], OffsetRange) -> [u64; 4];

static COMPARE_NARROW: [CompareFunction; 33] = by_width!(compare_narrow);
static COMPARE_WIDE: [CompareFunction; 33] = by_width!(compare_wide);

/// Decodes 256 values. It is unsafe because it does not check the number of bytes of the planes.
type DecodeFunction = unsafe fn(&[u8], &[u8], u64, &mut [u64; BLOCK]);

static DECODE_NARROW: [DecodeFunction; 33] = by_width!(decode_narrow);
static DECODE_WIDE: [DecodeFunction; 33] = by_width!(decode_wide);

/// Compares 256 offsets of `W` bits.
///
/// # Safety
/// The low plane must have `32 * W` bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
unsafe fn compare_narrow<const W: usize>(low: &[u8], _: &[u8], range: OffsetRange) -> [u64; 4] {
    let below = 32 - W;
    let first = _mm512_set1_epi32((range.first << below) as i32);
    let span = _mm512_set1_epi32((range.span << below | ((1 << below) - 1)) as i32);
    let mut bits = [0; 4];
    unrolled!(16, pair, {
        // SAFETY: There are `32 * W` bytes, and `pair` is below 16.
        let offsets = unsafe { row_pair::<W>(low, pair) };
        let within = _mm512_cmple_epu32_mask(_mm512_sub_epi32(offsets, first), span);
        bits[pair / 4] |= u64::from(within) << (16 * (pair % 4));
    });
    bits
}

/// Compares 256 offsets of `32 + W` bits.
///
/// # Safety
/// The low plane must have `32 * 32` bytes, the high plane `32 * W`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
unsafe fn compare_wide<const W: usize>(low: &[u8], high: &[u8], range: OffsetRange) -> [u64; 4] {
    let halves = RangeHalves::new(range);
    let mut bits = [0; 4];
    unrolled!(16, pair, {
        // SAFETY: There are `32 * 32` bytes, and `pair` is below 16.
        let low = unsafe { row_pair::<32>(low, pair) };
        // SAFETY: There are `32 * W` bytes, and `pair` is below 16.
        let high = unsafe { row_pair::<W>(high, pair) };
        bits[pair / 4] |= u64::from(halves.within(low, to_low_bits::<W>(high))) << (16 * (pair % 4));
    });
    bits
}

/// Compares fewer than 256 offsets.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
fn compare_horizontal(offsets: &PackedOffsets, range: OffsetRange) -> [u64; 4] {
    let halves = RangeHalves::new(range);
    let [low, high] = [&offsets.low, &offsets.high].map(|plane| BitStream::new(plane.bytes, plane.width));
    let mut bits = [0; 4];
    for group in 0..offsets.len.div_ceil(LANES) {
        let within = halves.within(low.values(group), high.values(group));
        bits[group / 4] |= u64::from(within) << (16 * (group % 4));
    }
    bits
}

/// Decodes 256 values whose offsets have `W` bits.
///
/// # Safety
/// The low plane must have `32 * W` bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
unsafe fn decode_narrow<const W: usize>(low: &[u8], _: &[u8], smallest: u64, out: &mut [u64; BLOCK]) {
    let smallest = _mm512_set1_epi64(smallest as i64);
    unrolled!(16, pair, {
        // SAFETY: There are `32 * W` bytes, and `pair` is below 16.
        let offsets = to_low_bits::<W>(unsafe { row_pair::<W>(low, pair) });
        for (half, offsets) in widen(offsets).into_iter().enumerate() {
            store_all(&mut out.as_chunks_mut().0[2 * pair + half], _mm512_add_epi64(offsets, smallest));
        }
    });
}

/// Decodes 256 values whose offsets have `32 + W` bits.
///
/// # Safety
/// The low plane must have `32 * 32` bytes, the high plane `32 * W`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
unsafe fn decode_wide<const W: usize>(low: &[u8], high: &[u8], smallest: u64, out: &mut [u64; BLOCK]) {
    let smallest = _mm512_set1_epi64(smallest as i64);
    unrolled!(16, pair, {
        // SAFETY: There are `32 * 32` bytes, and `pair` is below 16.
        let low = unsafe { row_pair::<32>(low, pair) };
        // SAFETY: There are `32 * W` bytes, and `pair` is below 16.
        let high = unsafe { row_pair::<W>(high, pair) };
        for (half, offsets) in join_halves(low, to_low_bits::<W>(high)).into_iter().enumerate() {
            store_all(&mut out.as_chunks_mut().0[2 * pair + half], _mm512_add_epi64(offsets, smallest));
        }
    });
}

/// Decodes fewer than 256 values.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
fn decode_horizontal(offsets: &PackedOffsets, smallest: u64, out: &mut [u64]) {
    let smallest = _mm512_set1_epi64(smallest as i64);
    let [low, high] = [&offsets.low, &offsets.high].map(|plane| BitStream::new(plane.bytes, plane.width));
    for (group, out) in out.chunks_mut(LANES).enumerate() {
        let offsets = join_halves(low.values(group), high.values(group));
        for (out, offsets) in out.chunks_mut(LANES / 2).zip(offsets) {
            store(out, _mm512_add_epi64(offsets, smallest));
        }
    }
}

/// A range of offsets, in halves of 32 bits.
struct RangeHalves {
    first: [__m512i; 2],
    span: [__m512i; 2],
}

impl RangeHalves {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(range: OffsetRange) -> RangeHalves {
        let halves = |number: u64| [number, number >> 32].map(|half| _mm512_set1_epi32(half as i32));
        RangeHalves { first: halves(range.first), span: halves(range.span) }
    }

    /// The mask of the offsets, given by their low and high halves, that are in the range.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn within(&self, low: __m512i, high: __m512i) -> __mmask16 {
        let borrow = _mm512_cmplt_epu32_mask(low, self.first[0]);
        let low = _mm512_sub_epi32(low, self.first[0]);
        let high = _mm512_sub_epi32(high, self.first[1]);
        let high = _mm512_mask_sub_epi32(high, borrow, high, _mm512_set1_epi32(1));
        let low_within = _mm512_cmple_epu32_mask(low, self.span[0]);
        _mm512_cmplt_epu32_mask(high, self.span[1])
            | _mm512_mask_cmpeq_epu32_mask(low_within, high, self.span[1])
    }
}

/// The rows `2 * pair` and `2 * pair + 1` of the vertical layout, in the high bits of the lanes. The bits
/// below are unspecified.
///
/// # Safety
/// There must be `32 * W` bytes, and `pair` must be below 16.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
unsafe fn row_pair<const W: usize>(bytes: &[u8], pair: usize) -> __m512i {
    let word = |k: usize| {
        let word = bytes.as_ptr().wrapping_add(32 * k);
        // SAFETY: There are W words of 32 bytes, and `k` is less than W.
        unsafe { _mm256_loadu_si256(word.cast()) }
    };
    let row = |k: usize| {
        let (first, end) = (k * W / 32, k * W % 32 + W);
        if W == 0 {
            _mm256_setzero_si256()
        } else if end <= 32 {
            _mm256_sllv_epi32(word(first), _mm256_set1_epi32(32 - end as i32))
        } else {
            _mm256_shldv_epi32(word(first + 1), word(first), _mm256_set1_epi32(64 - end as i32))
        }
    };
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(row(2 * pair)), row(2 * pair + 1))
}

/// Moves the high `W` bits of each lane to the low ones, and clears the others.
#[inline]
#[target_feature(enable = "avx512f")]
fn to_low_bits<const W: usize>(lanes: __m512i) -> __m512i {
    _mm512_srlv_epi32(lanes, _mm512_set1_epi32(32 - W as i32))
}

/// The first and the last eight lanes, as lanes of 64 bits.
#[inline]
#[target_feature(enable = "avx512f")]
fn widen(lanes: __m512i) -> [__m512i; 2] {
    [_mm512_castsi512_si256(lanes), _mm512_extracti64x4_epi64::<1>(lanes)]
        .map(|half| _mm512_cvtepu32_epi64(half))
}

/// Numbers of 64 bits of their low and their high halves.
#[inline]
#[target_feature(enable = "avx512f")]
fn join_halves(low: __m512i, high: __m512i) -> [__m512i; 2] {
    let ([first_low, last_low], [first_high, last_high]) = (widen(low), widen(high));
    [
        _mm512_or_si512(first_low, _mm512_slli_epi64::<32>(first_high)),
        _mm512_or_si512(last_low, _mm512_slli_epi64::<32>(last_high)),
    ]
}

/// Stores eight values.
#[inline]
#[target_feature(enable = "avx512f")]
fn store_all(out: &mut [u64; LANES / 2], values: __m512i) {
    // SAFETY: The array has eight values.
    unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), values) }
}

/// Stores the first of eight values, as many as `out` has.
#[inline]
#[target_feature(enable = "avx512f,bmi2")]
fn store(out: &mut [u64], values: __m512i) {
    let valid = _bzhi_u32(u32::MAX, out.len().min(LANES / 2) as u32) as __mmask8;
    // SAFETY: The mask selects values within the slice; others are not accessed.
    unsafe { _mm512_mask_storeu_epi64(out.as_mut_ptr().cast(), valid, values) }
}
