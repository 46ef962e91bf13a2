//! Counts, for each bit width, the values that are wider.

use super::memory::{LANES, load};
use crate::{bitpack::width_of_all, kernel::table::WidthCounts, pfor::cost};
use core::arch::x86_64::*;

/// Number of values whose widths, one byte each, fill a vector: a quarter of a block.
const QUARTER_VALUES: usize = 64;

/// Implements [`crate::Kernel::count_wider`]: stores the bit width of each value in a byte, 64 to a vector,
/// and compares the vectors with each width that is less than the largest.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512vl,bmi2,lzcnt,popcnt")]
pub(crate) fn count_wider(values: &[u32]) -> WidthCounts {
    let mut widths = [_mm512_setzero_si512(); 4];
    for (quarter, values) in widths.iter_mut().zip(values.chunks(QUARTER_VALUES)) {
        *quarter = widths_as_bytes(values);
    }
    let groups = widest_of_groups(widths);
    let mut counts = WidthCounts { values: [0; _], groups: [0; _], widest: width_of_all(values) };
    for width in 0..counts.widest as usize {
        let limit = _mm512_set1_epi8(width as i8);
        let count = |widths: __m512i| _mm512_cmpgt_epu8_mask(widths, limit).count_ones() as u16;
        counts.values[width] = widths.map(count).iter().sum();
        counts.groups[width] = count(groups);
    }
    counts
}

/// The largest width of each group of eight values.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn widest_of_groups(widths: [__m512i; 4]) -> __m512i {
    let [a, b, c, d] = widths.map(|widths| {
        let pairs = _mm512_max_epu8(widths, _mm512_srli_epi64::<8>(widths));
        let quads = _mm512_max_epu8(pairs, _mm512_srli_epi64::<16>(pairs));
        _mm512_cvtepi64_epi8(_mm512_max_epu8(quads, _mm512_srli_epi64::<32>(quads)))
    });
    let (low, high) = (_mm_unpacklo_epi64(a, b), _mm_unpacklo_epi64(c, d));
    _mm512_inserti32x4::<1>(_mm512_zextsi128_si512(low), high)
}

/// The bit widths of 64 values as bytes, 0 where there is no value.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,bmi2")]
fn widths_as_bytes(values: &[u32]) -> __m512i {
    let part = |k: usize| {
        let values = load(values.get(LANES * k..).unwrap_or(&[]));
        let widths = _mm512_sub_epi32(_mm512_set1_epi32(32), _mm512_lzcnt_epi32(values));
        _mm512_cvtepi32_epi8(widths)
    };
    let low = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(part(0)), part(1));
    _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(low, part(2)), part(3))
}

/// Implements [`crate::Kernel::shortest_patched_block`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2")]
pub(crate) fn shortest_patched_block(n: usize, counts: &WidthCounts) -> (u32, usize) {
    cost::shortest_patched_block(n, counts)
}
