//! Counts, for each bit width, the values that are wider.

use super::memory::{LANES, Vector, load};
use crate::{bitpack::width_of_all, block::BLOCK, kernel::table::WidthCounts};
use core::arch::x86_64::*;

/// Number of values whose widths, one byte each, fill a vector.
const PART_VALUES: usize = 4 * LANES;

/// Implements [`crate::Kernel::count_wider`]: stores the bit width of each value in a byte, 32 to a vector,
/// and compares the vectors with each width that is less than the largest.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(crate) fn count_wider(values: &[u32]) -> WidthCounts {
    let zero = _mm256_setzero_si256();
    let mut widths = [zero; BLOCK / PART_VALUES];
    for (widths, values) in widths.iter_mut().zip(values.chunks(PART_VALUES)) {
        *widths = widths_as_bytes(values);
    }
    let groups = widest_of_groups(&widths);
    let mut counts = WidthCounts { values: [0; _], groups: [0; _], widest: width_of_all(values) };
    for width in 0..counts.widest as usize {
        let limit = _mm256_set1_epi8(width as i8);
        // A comparison gives -1 or 0.
        let wider =
            widths.iter().fold(zero, |sum, widths| _mm256_sub_epi8(sum, _mm256_cmpgt_epi8(*widths, limit)));
        let sums = _mm256_sad_epu8(wider, zero);
        let sums = _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
        counts.values[width] = (_mm_cvtsi128_si64(sums) + _mm_extract_epi64::<1>(sums)) as u16;
        let wider = _mm256_movemask_epi8(_mm256_cmpgt_epi8(groups, limit)) as u32;
        counts.groups[width] = wider.count_ones() as u16;
    }
    counts
}

/// The bit widths of 32 values as bytes, 0 where there is no value. The first half of the vector has the
/// first four values of each group of eight, the second half has the others.
#[inline]
#[target_feature(enable = "avx2")]
fn widths_as_bytes(values: &[u32]) -> Vector {
    // The exponent of a value as a float. Without the bit after the highest one rounding cannot carry to the
    // next exponent. Values from 2^31 on are negative, which sets the next bit.
    let exponents = |k: usize| {
        let values = load(values.get(LANES * k..).unwrap_or(&[]));
        let values = _mm256_andnot_si256(_mm256_srli_epi32::<1>(values), values);
        _mm256_srli_epi32::<23>(_mm256_castps_si256(_mm256_cvtepi32_ps(values)))
    };
    // The exponent of 1/2.
    let half = _mm256_set1_epi16(126);
    let widths = |a, b| _mm256_subs_epu16(_mm256_packus_epi32(exponents(a), exponents(b)), half);
    _mm256_min_epu8(_mm256_packus_epi16(widths(0, 1), widths(2, 3)), _mm256_set1_epi8(32))
}

/// The largest width of each group of eight values; the order of the groups is unspecified.
#[inline]
#[target_feature(enable = "avx2")]
fn widest_of_groups(widths: &[Vector; BLOCK / PART_VALUES]) -> Vector {
    // In the lowest byte of each lane.
    let widest = |k: usize| {
        let [first, second] = [&widths[k], &widths[k + 1]];
        let low = _mm256_permute2x128_si256::<0x20>(*first, *second);
        let fours = _mm256_max_epu8(low, _mm256_permute2x128_si256::<0x31>(*first, *second));
        let twos = _mm256_max_epu8(fours, _mm256_srli_epi32::<16>(fours));
        _mm256_and_si256(_mm256_max_epu8(twos, _mm256_srli_epi32::<8>(twos)), _mm256_set1_epi32(0xff))
    };
    let pair = |a, b| _mm256_packus_epi32(widest(a), widest(b));
    _mm256_packus_epi16(pair(0, 2), pair(4, 6))
}
