//! BM25 scores, 16 at a time, filters over scores, and selection of the largest keys.

use super::memory::{LANES, broadcast, first_lanes, load, store};
use super::search::write_bit_positions;
use crate::block::{Selection, Survivors};
use crate::{kernel::scalar, saturation::CodeTable};
use core::arch::x86_64::*;
// The names by which the algorithms for any vector width call the instructions.
use core::arch::x86_64::{
    _mm512_cmpge_epu32_mask as at_least, _mm512_cmpge_epu64_mask as keys_at_least,
    _mm512_maskz_compress_epi32 as compress, _mm512_maskz_compress_epi64 as compress_keys,
    _mm512_min_epu64 as smaller_keys,
};

/// Number of values whose results, one bit each, fill a word.
const WORD_VALUES: usize = 64;

/// Computes 16 scores from frequencies and `k`, for a weight below 2^31.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn compute_scores(weight: __m512, frequencies: __m512i, k: __m512) -> __m512i {
    let f = _mm512_cvtepu32_ps(frequencies);
    let share = _mm512_div_ps(f, _mm512_add_ps(f, k));
    // Rounds ties to even. NaN becomes the smallest signed integer, and then 1.
    _mm512_max_epi32(_mm512_cvtps_epi32(_mm512_mul_ps(weight, share)), _mm512_set1_epi32(1))
}

/// Looks up the numbers of 64 codes: the first byte of all numbers, then the second byte, and so on.
/// Gathering 64 words would take several times as long.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(super) fn numbers_of_codes(table: &CodeTable, codes: __m512i) -> [__m512; 4] {
    // Bytes are interleaved to words within 128 bits: each quarter of a vector gets every fourth group of
    // four codes.
    let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    let codes = _mm512_permutexvar_epi32(order, codes);
    let upper = _mm512_movepi8_mask(codes);
    let [a, b, c, d] = &table.planes;
    let (a, b) = (look_up_plane(a, codes, upper), look_up_plane(b, codes, upper));
    let (c, d) = (look_up_plane(c, codes, upper), look_up_plane(d, codes, upper));
    let (low, high) = (_mm512_unpacklo_epi8(a, b), _mm512_unpacklo_epi8(c, d));
    let (low_of_upper, high_of_upper) = (_mm512_unpackhi_epi8(a, b), _mm512_unpackhi_epi8(c, d));
    [
        _mm512_castsi512_ps(_mm512_unpacklo_epi16(low, high)),
        _mm512_castsi512_ps(_mm512_unpackhi_epi16(low, high)),
        _mm512_castsi512_ps(_mm512_unpacklo_epi16(low_of_upper, high_of_upper)),
        _mm512_castsi512_ps(_mm512_unpackhi_epi16(low_of_upper, high_of_upper)),
    ]
}

/// Looks up one byte for each code. `plane` has this byte of the numbers of all codes; `upper` is a mask of
/// the codes from 128 on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn look_up_plane(plane: &[u8; 256], codes: __m512i, upper: __mmask64) -> __m512i {
    let [a, b, c, d] = plane.as_chunks::<64>().0 else { unreachable!("four times 64 bytes") };
    // SAFETY: There are 64 bytes.
    let load = |bytes: &[u8; 64]| unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
    let low = _mm512_permutex2var_epi8(load(a), codes, load(b));
    let high = _mm512_permutex2var_epi8(load(c), codes, load(d));
    _mm512_mask_blend_epi8(upper, low, high)
}

/// Implements [`crate::Kernel::values_at_least`]: one branch per four vectors, since most contain no match.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi2,popcnt")]
pub(crate) fn values_at_least(values: &[u32], threshold: u32, positions: &mut Selection) {
    let (positions, count) = positions.parts();
    let threshold = _mm512_set1_epi32(threshold as i32);
    let mut found = 0;
    let (chunks, rest) = values.as_chunks::<WORD_VALUES>();
    for (k, values) in chunks.iter().enumerate() {
        let passing = mask_at_least(values, threshold);
        if passing != 0 {
            write_bit_positions(&mut positions[found..], passing, k * WORD_VALUES);
            found += passing.count_ones() as usize;
        }
    }
    let passing = mask_at_least(rest, threshold);
    write_bit_positions(&mut positions[found..], passing, chunks.len() * WORD_VALUES);
    *count = found + passing.count_ones() as usize;
}

/// A bit for each of at most 64 values that is at least `threshold`.
#[inline]
#[target_feature(enable = "avx512f,bmi2")]
fn mask_at_least(values: &[u32], threshold: __m512i) -> u64 {
    values.chunks(LANES).enumerate().fold(0, |word, (k, values)| {
        let passing = _mm512_mask_cmpge_epu32_mask(first_lanes(values.len()), load(values), threshold);
        word | u64::from(passing) << (k * LANES)
    })
}

/// Implements [`crate::Kernel::drain_at_least`]: one branch per four vectors, since most contain no sum that
/// reaches the threshold.
#[target_feature(enable = "avx512f,bmi2,popcnt")]
pub(crate) fn drain_at_least(sums: &mut [u32], first: u32, threshold: u32, survivors: &mut Survivors) {
    let (values, large, count, positive) = survivors.parts(sums.len());
    let threshold = _mm512_set1_epi32(threshold as i32);
    let (mut found, mut nonzero_count, mut base) = (0, 0, first);
    let mut take = |sums: &[u32], [passing, nonzero]: [u64; 2]| {
        nonzero_count += nonzero.count_ones() as usize;
        if passing != 0 {
            copy_survivors(sums, passing, base, &mut values[found..], &mut large[found..]);
            found += passing.count_ones() as usize;
        }
        base = base.wrapping_add(WORD_VALUES as u32);
    };
    let (chunks, rest) = sums.as_chunks_mut::<WORD_VALUES>();
    for sums in chunks {
        take(sums, masks_of_sums(sums, threshold));
        *sums = [0; WORD_VALUES];
    }
    take(rest, masks_of_sums(rest, threshold));
    rest.fill(0);
    (*count, *positive) = (found, nonzero_count);
}

/// Two masks of at most 64 sums: those that are at least `threshold`, which is not 0, and those greater than
/// 0.
#[inline]
#[target_feature(enable = "avx512f,bmi2")]
fn masks_of_sums(sums: &[u32], threshold: __m512i) -> [u64; 2] {
    sums.chunks(LANES).enumerate().fold([0; 2], |[passing, nonzero], (k, sums)| {
        // Lanes without a sum are 0, which is neither at least the threshold nor positive.
        let vector = load(sums);
        let (large, positive) =
            (_mm512_cmpge_epu32_mask(vector, threshold), _mm512_test_epi32_mask(vector, vector));
        [passing | u64::from(large) << (k * LANES), nonzero | u64::from(positive) << (k * LANES)]
    })
}

/// Appends to `large` each of at most 64 sums whose bit is set, and to `values` the value that belongs to
/// this sum. The first sum belongs to value `first`.
#[inline]
#[target_feature(enable = "avx512f,bmi2,popcnt")]
fn copy_survivors(sums: &[u32], mut bits: u64, first: u32, values: &mut [u32], large: &mut [u32]) {
    let mut lane_values = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    lane_values = _mm512_add_epi32(lane_values, _mm512_set1_epi32(first as i32));
    let mut found = 0;
    for sums in sums.chunks(LANES) {
        let lanes = bits as u16;
        store(&mut values[found..], _mm512_maskz_compress_epi32(lanes, lane_values));
        store(&mut large[found..], _mm512_maskz_compress_epi32(lanes, load(sums)));
        found += lanes.count_ones() as usize;
        lane_values = _mm512_add_epi32(lane_values, _mm512_set1_epi32(LANES as i32));
        bits >>= LANES;
    }
}

keep_at_least!("avx512f,bmi2,popcnt");

select_keys!("avx512f,popcnt");

/// Number of 64-bit keys of a vector.
const KEY_LANES: usize = 8;

#[inline]
#[target_feature(enable = "avx512f")]
fn load_keys(keys: &[u64; KEY_LANES]) -> __m512i {
    // SAFETY: There are eight keys.
    unsafe { _mm512_loadu_si512(keys.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_keys(out: &mut [u64; KEY_LANES], keys: __m512i) {
    // SAFETY: The array has eight keys.
    unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), keys) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn broadcast_keys(key: u64) -> __m512i {
    _mm512_set1_epi64(key as i64)
}
