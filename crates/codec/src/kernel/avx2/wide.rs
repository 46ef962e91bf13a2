//! Blocks of 64-bit values: comparison and decoding of their offsets, a row of eight at a time.
//!
//! The steps are those of the AVX-512 kernel. Offsets of up to 32 bits are compared in the high bits of their
//! lanes, above bits of other offsets; wider offsets in two halves. Comparisons give lanes of ones or zeros;
//! those of four rows are packed into 32 bits. `a <= b` without sign is `min(a, b) = a`.
//!
//! The horizontal layout is unpacked to memory first, and its offsets are compared as those of 64 bits.

use super::memory::{LANES, load_all};
use super::narrow::unpack;
use crate::block::BLOCK;
use crate::kernel::scalar::wide::add_offsets;
use crate::kernel::table::{OffsetRange, PackedOffsets};
use core::arch::x86_64::*;

/// Implements [`crate::Kernel::offsets_within`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
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
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(crate) fn decode_offsets(offsets: &PackedOffsets, smallest: u64, out: &mut [u64]) {
    let Ok(block) = <&mut [u64; BLOCK]>::try_from(&mut *out) else {
        let [low, high] = unpack_planes(offsets);
        return add_offsets(&low, &high, smallest, out);
    };
    let decode = match offsets.high.width as usize {
        0 => DECODE_NARROW[offsets.low.width as usize],
        width => DECODE_WIDE[width],
    };
    // SAFETY: As in `offsets_within`.
    unsafe { decode(offsets.low.bytes, offsets.high.bytes, smallest, block) }
}

/// The low and the high halves of the offsets, then zeros.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn unpack_planes(offsets: &PackedOffsets) -> [[u32; BLOCK]; 2] {
    let mut halves = [[0; BLOCK]; 2];
    unpack(&offsets.low, &mut halves[0][..offsets.len]);
    if offsets.high.width > 0 {
        unpack(&offsets.high, &mut halves[1][..offsets.len]);
    }
    halves
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
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn compare_narrow<const W: usize>(low: &[u8], _: &[u8], range: OffsetRange) -> [u64; 4] {
    let below = 32 - W;
    let first = _mm256_set1_epi32((range.first << below) as i32);
    let span = _mm256_set1_epi32((range.span << below | ((1 << below) - 1)) as i32);
    let row = |k: usize| {
        // SAFETY: There are `32 * W` bytes, and `k` is below 32.
        let offsets = unsafe { row::<W>(low, k) };
        at_most(_mm256_sub_epi32(offsets, first), span)
    };
    let mut bits = [0; 4];
    unrolled!(8, k, {
        let rows = [row(4 * k), row(4 * k + 1), row(4 * k + 2), row(4 * k + 3)];
        bits[k / 2] |= u64::from(collect(rows)) << (32 * (k % 2));
    });
    bits
}

/// Compares 256 offsets of `32 + W` bits.
///
/// # Safety
/// The low plane must have `32 * 32` bytes, the high plane `32 * W`.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn compare_wide<const W: usize>(low: &[u8], high: &[u8], range: OffsetRange) -> [u64; 4] {
    let halves = SplitRange::new(range);
    let row = |k: usize| {
        // SAFETY: There are `32 * 32` bytes, and `k` is below 32.
        let low = unsafe { row::<32>(low, k) };
        // SAFETY: There are `32 * W` bytes, and `k` is below 32.
        let high = unsafe { row::<W>(high, k) };
        halves.within(low, to_low_bits::<W>(high))
    };
    let mut bits = [0; 4];
    unrolled!(8, k, {
        let rows = [row(4 * k), row(4 * k + 1), row(4 * k + 2), row(4 * k + 3)];
        bits[k / 2] |= u64::from(collect(rows)) << (32 * (k % 2));
    });
    bits
}

/// Compares fewer than 256 offsets.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn compare_horizontal(offsets: &PackedOffsets, range: OffsetRange) -> [u64; 4] {
    let halves = SplitRange::new(range);
    let planes = unpack_planes(offsets);
    let [low, high] = [&planes[0], &planes[1]].map(|plane| plane.as_chunks::<LANES>().0);
    let row = |k: usize| halves.within(load_all(&low[k]), load_all(&high[k]));
    let mut bits = [0; 4];
    for k in 0..offsets.len.div_ceil(4 * LANES) {
        let rows = [row(4 * k), row(4 * k + 1), row(4 * k + 2), row(4 * k + 3)];
        bits[k / 2] |= u64::from(collect(rows)) << (32 * (k % 2));
    }
    bits
}

/// Decodes 256 values whose offsets have `W` bits.
///
/// # Safety
/// The low plane must have `32 * W` bytes.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn decode_narrow<const W: usize>(low: &[u8], _: &[u8], smallest: u64, out: &mut [u64; BLOCK]) {
    let smallest = _mm256_set1_epi64x(smallest as i64);
    unrolled!(32, k, {
        // SAFETY: There are `32 * W` bytes, and `k` is below 32.
        let offsets = to_low_bits::<W>(unsafe { row::<W>(low, k) });
        for (half, offsets) in widen(offsets).into_iter().enumerate() {
            store_values(&mut out.as_chunks_mut().0[2 * k + half], _mm256_add_epi64(offsets, smallest));
        }
    });
}

/// Decodes 256 values whose offsets have `32 + W` bits.
///
/// # Safety
/// The low plane must have `32 * 32` bytes, the high plane `32 * W`.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn decode_wide<const W: usize>(low: &[u8], high: &[u8], smallest: u64, out: &mut [u64; BLOCK]) {
    let smallest = _mm256_set1_epi64x(smallest as i64);
    unrolled!(32, k, {
        // SAFETY: There are `32 * 32` bytes, and `k` is below 32.
        let low = widen(unsafe { row::<32>(low, k) });
        // SAFETY: There are `32 * W` bytes, and `k` is below 32.
        let high = widen(to_low_bits::<W>(unsafe { row::<W>(high, k) }));
        for (half, (low, high)) in low.into_iter().zip(high).enumerate() {
            let offsets = _mm256_or_si256(low, _mm256_slli_epi64::<32>(high));
            store_values(&mut out.as_chunks_mut().0[2 * k + half], _mm256_add_epi64(offsets, smallest));
        }
    });
}

/// A range of offsets, in halves of 32 bits.
struct SplitRange {
    first_low: __m256i,
    /// The high half of the first offset, and 1.
    first_high_after: __m256i,
    span: [__m256i; 2],
}

impl SplitRange {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(range: OffsetRange) -> SplitRange {
        let halves = |number: u64| [number, number >> 32].map(|half| _mm256_set1_epi32(half as i32));
        let [first_low, first_high] = halves(range.first);
        let first_high_after = _mm256_add_epi32(first_high, _mm256_set1_epi32(1));
        SplitRange { first_low, first_high_after, span: halves(range.span) }
    }

    /// Ones in the lanes of the offsets, given by their low and high halves, that are in the range.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn within(&self, low: __m256i, high: __m256i) -> __m256i {
        // The high difference is less 1 for a borrow; ones are -1.
        let no_borrow = at_most(self.first_low, low);
        let low = _mm256_sub_epi32(low, self.first_low);
        let high = _mm256_sub_epi32(_mm256_sub_epi32(high, self.first_high_after), no_borrow);
        let low_after =
            _mm256_andnot_si256(at_most(low, self.span[0]), _mm256_cmpeq_epi32(high, self.span[1]));
        _mm256_andnot_si256(low_after, at_most(high, self.span[1]))
    }
}

/// Ones in the lanes where `a <= b` without sign.
#[inline]
#[target_feature(enable = "avx2")]
fn at_most(a: __m256i, b: __m256i) -> __m256i {
    _mm256_cmpeq_epi32(_mm256_min_epu32(a, b), a)
}

/// A bit of each lane of four rows: bit `8 k + l` of lane `l` of row `k`. A lane is all ones or zero.
#[inline]
#[target_feature(enable = "avx2")]
fn collect(rows: [__m256i; 4]) -> u32 {
    // Each step packs the halves of registers separately. The bytes are of lanes 0 to 3 of all rows, then of
    // lanes 4 to 7.
    let pairs = [_mm256_packs_epi32(rows[0], rows[1]), _mm256_packs_epi32(rows[2], rows[3])];
    let bytes = _mm256_packs_epi16(pairs[0], pairs[1]);
    let ordered = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    _mm256_movemask_epi8(ordered) as u32
}

/// Row `k` of the vertical layout, in the high bits of the lanes. The bits below are unspecified.
///
/// # Safety
/// There must be `32 * W` bytes, and `k` must be below 32.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn row<const W: usize>(bytes: &[u8], k: usize) -> __m256i {
    let word = |k: usize| {
        let word = bytes.as_ptr().wrapping_add(32 * k);
        // SAFETY: There are W words of 32 bytes, and `k` is less than W.
        unsafe { _mm256_loadu_si256(word.cast()) }
    };
    let (first, end) = (k * W / 32, k * W % 32 + W);
    if W == 0 {
        return _mm256_setzero_si256();
    }
    if end <= 32 {
        return _mm256_sllv_epi32(word(first), _mm256_set1_epi32(32 - end as i32));
    }
    let low = _mm256_srlv_epi32(word(first), _mm256_set1_epi32(end as i32 - 32));
    _mm256_or_si256(low, _mm256_sllv_epi32(word(first + 1), _mm256_set1_epi32(64 - end as i32)))
}

/// Moves the high `W` bits of each lane to the low ones, and clears the others.
#[inline]
#[target_feature(enable = "avx2")]
fn to_low_bits<const W: usize>(lanes: __m256i) -> __m256i {
    _mm256_srlv_epi32(lanes, _mm256_set1_epi32(32 - W as i32))
}

/// The first and the last four lanes, as lanes of 64 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn widen(lanes: __m256i) -> [__m256i; 2] {
    [_mm256_castsi256_si128(lanes), _mm256_extracti128_si256::<1>(lanes)]
        .map(|half| _mm256_cvtepu32_epi64(half))
}

/// Stores four values.
#[inline]
#[target_feature(enable = "avx2")]
fn store_values(out: &mut [u64; LANES / 2], values: __m256i) {
    // SAFETY: The array has four values.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), values) }
}
