//! BM25 scores, eight at a time, and filters over scores. `k` is looked up for each code by itself.

use super::compress::{compress, expand, lane_mask, set_bits};
use super::memory::{LANES, broadcast, first_lanes, load, load_all, store, store_all};
use super::search::lane_bits;
use crate::block::{Selection, Survivors};
use crate::kernel::scalar;
use crate::saturation::{CodeTable, Saturation};
use core::arch::x86_64::*;

/// Implements [`crate::Kernel::score`].
#[target_feature(enable = "avx2")]
pub(crate) fn score(of: &Saturation, values: &[u32], frequencies: &[u32], scores: &mut [u32]) {
    let (values, rest) = values.as_chunks::<LANES>();
    let (frequencies, rest_of_frequencies) = frequencies.as_chunks::<LANES>();
    let (scores, rest_of_scores) = scores.as_chunks_mut::<LANES>();
    let weight = of.weight_in_bounds();
    for ((values, frequencies), scores) in values.iter().zip(frequencies).zip(scores) {
        let k = values.map(|value| of.k.get(of.codes[value as usize]));
        store_all(scores, compute_scores(weight, load_all(frequencies), &k));
    }
    scalar::score::score(of, rest, rest_of_frequencies, rest_of_scores);
}

/// Implements [`crate::Kernel::score_bitmap`]: a byte of bits at a time. Its frequencies are spread to the
/// lanes of its set bits.
#[target_feature(enable = "avx2,popcnt")]
pub(crate) fn score_bitmap(
    of: &Saturation,
    bits: &[u8],
    first: u32,
    mut frequencies: &[u32],
    sums: &mut [u32],
) {
    let weight = of.weight_in_bounds();
    let whole = sums.len() / LANES;
    let (codes, _) = of.codes[first as usize..].as_chunks::<LANES>();
    for ((byte, codes), sums) in bits.iter().zip(codes).zip(sums.as_chunks_mut::<LANES>().0) {
        let n = byte.count_ones() as usize;
        if n == 0 {
            continue;
        }
        let Some((_, rest)) = frequencies.split_at_checked(n) else { return };
        let score = compute_scores(weight, expand(*byte, load(frequencies)), &numbers_of_codes(of.k, codes));
        frequencies = rest;
        store_all(sums, _mm256_add_epi32(load_all(sums), _mm256_and_si256(score, lane_mask(*byte))));
    }
    let (bits, sums) = (bits.get(whole..).unwrap_or(&[]), &mut sums[whole * LANES..]);
    scalar::bitmap::score_bitmap(of, bits, first + (whole * LANES) as u32, frequencies, sums);
}

fn numbers_of_codes(table: &CodeTable, codes: &[u8; LANES]) -> [f32; LANES] {
    codes.map(|code| table.get(code))
}

/// Computes eight scores from frequencies and `k`, for a weight below 2^31.
#[inline]
#[target_feature(enable = "avx2")]
fn compute_scores(weight: f32, frequencies: __m256i, k: &[f32; LANES]) -> __m256i {
    // Both halves of a number are exact, and so is the upper half times 2^16: only the sum is rounded.
    let upper = _mm256_cvtepi32_ps(_mm256_srli_epi32::<16>(frequencies));
    let lower = _mm256_cvtepi32_ps(_mm256_and_si256(frequencies, _mm256_set1_epi32(0xffff)));
    let f = _mm256_add_ps(_mm256_mul_ps(upper, _mm256_set1_ps(65536.0)), lower);
    let share = _mm256_div_ps(f, _mm256_add_ps(f, load_floats(k)));
    // Rounds ties to even. NaN becomes the smallest signed integer, and then 1.
    let score = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_set1_ps(weight), share));
    _mm256_max_epi32(score, _mm256_set1_epi32(1))
}

/// Implements [`crate::Kernel::values_at_least`]: one branch per four vectors, since most contain no match.
#[target_feature(enable = "avx2,bmi1")]
pub(crate) fn values_at_least(values: &[u32], threshold: u32, positions: &mut Selection) {
    let (positions, count) = positions.parts();
    let thresholds = broadcast(threshold as i32);
    let mut found = 0;
    let (chunks, rest) = values.as_chunks::<{ 4 * LANES }>();
    for (k, values) in chunks.iter().enumerate() {
        let four = values.as_chunks::<LANES>().0.iter().enumerate();
        let mut passing = four
            .fold(0, |word, (j, values)| word | mask_at_least(load_all(values), thresholds) << (j * LANES));
        while passing != 0 {
            positions[found] = (4 * k * LANES) as u8 + passing.trailing_zeros() as u8;
            found += 1;
            passing &= passing - 1;
        }
    }
    for (position, value) in (4 * chunks.len() * LANES..).zip(rest) {
        positions[found] = position as u8;
        found += usize::from(*value >= threshold);
    }
    *count = found;
}

/// Implements [`crate::Kernel::drain_at_least`]: one branch per four vectors, since most contain no sum that
/// reaches the threshold.
#[target_feature(enable = "avx2,bmi1,popcnt")]
pub(crate) fn drain_at_least(sums: &mut [u32], first: u32, threshold: u32, survivors: &mut Survivors) {
    let (values, large, count, positive) = survivors.parts(sums.len());
    let (thresholds, zero) = (broadcast(threshold as i32), _mm256_setzero_si256());
    let (mut found, mut zeros, len) = (0, zero, sums.len());
    let (chunks, rest) = sums.as_chunks_mut::<{ 4 * LANES }>();
    let whole = chunks.len() * 4 * LANES;
    let mut base = first;
    for sums in chunks {
        let (mut passing, vectors) = (zero, sums.as_chunks::<LANES>().0);
        for vector in vectors.iter().map(|sums| load_all(sums)) {
            // A comparison gives -1 or 0.
            zeros = _mm256_sub_epi32(zeros, _mm256_cmpeq_epi32(vector, zero));
            passing = _mm256_or_si256(passing, lanes_at_least(vector, thresholds));
        }
        if _mm256_testz_si256(passing, passing) == 0 {
            for (k, vector) in vectors.iter().map(|sums| load_all(sums)).enumerate() {
                let passing = at_least(vector, thresholds);
                let lanes = _mm256_cvtepu8_epi32(set_bits(passing));
                // There is slack for a vector after all sums.
                let out = large[found..].first_chunk_mut().expect("space for a vector");
                store_all(out, _mm256_permutevar8x32_epi32(vector, lanes));
                let out = values[found..].first_chunk_mut().expect("space for a vector");
                let base = base.wrapping_add((k * LANES) as u32);
                store_all(out, _mm256_add_epi32(lanes, broadcast(base as i32)));
                found += passing.count_ones() as usize;
            }
        }
        *sums = [0; _];
        base = base.wrapping_add(4 * LANES as u32);
    }
    let mut lanes = [0; LANES];
    store_all(&mut lanes, zeros);
    let mut nonzero = len - lanes.iter().sum::<u32>() as usize;
    for (position, sum) in (whole..).zip(rest) {
        (values[found], large[found]) = (first.wrapping_add(position as u32), *sum);
        found += usize::from(*sum >= threshold);
        nonzero -= usize::from(*sum == 0);
        *sum = 0;
    }
    (*count, *positive) = (found, nonzero);
}

keep_at_least!("avx2,popcnt");

/// All ones in the lanes that are at least those of `threshold`. AVX2 has no unsigned comparison, but an
/// unsigned maximum.
#[inline]
#[target_feature(enable = "avx2")]
fn lanes_at_least(values: __m256i, threshold: __m256i) -> __m256i {
    _mm256_cmpeq_epi32(_mm256_max_epu32(values, threshold), values)
}

/// A mask of the lanes that are at least those of `threshold`.
#[inline]
#[target_feature(enable = "avx2")]
fn mask_at_least(values: __m256i, threshold: __m256i) -> u32 {
    lane_bits(lanes_at_least(values, threshold))
}

#[inline]
#[target_feature(enable = "avx2")]
fn at_least(values: __m256i, threshold: __m256i) -> u8 {
    mask_at_least(values, threshold) as u8
}

select_keys!("avx2,popcnt");

/// Number of 64-bit keys of a vector.
const KEY_LANES: usize = 4;

#[inline]
#[target_feature(enable = "avx2")]
fn load_keys(keys: &[u64; KEY_LANES]) -> __m256i {
    // SAFETY: There are four keys.
    unsafe { _mm256_loadu_si256(keys.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_keys(out: &mut [u64; KEY_LANES], keys: __m256i) {
    // SAFETY: The array has four keys.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), keys) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn broadcast_keys(key: u64) -> __m256i {
    _mm256_set1_epi64x(key as i64)
}

#[inline]
#[target_feature(enable = "avx2")]
fn smaller_keys(keys: __m256i, others: __m256i) -> __m256i {
    _mm256_blendv_epi8(keys, others, less_keys(others, keys))
}

#[inline]
#[target_feature(enable = "avx2")]
fn keys_at_least(keys: __m256i, pivots: __m256i) -> u8 {
    !_mm256_movemask_pd(_mm256_castsi256_pd(less_keys(keys, pivots))) as u8 & 0xf
}

/// All ones where a key is less than the other. AVX2 compares signed numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn less_keys(keys: __m256i, others: __m256i) -> __m256i {
    let flip = |keys| _mm256_xor_si256(keys, _mm256_set1_epi64x(i64::MIN));
    _mm256_cmpgt_epi64(flip(others), flip(keys))
}

/// Moves the keys that the mask selects to the front. A key is a pair of 32-bit lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn compress_keys(mask: u8, keys: __m256i) -> __m256i {
    /// For each mask the 32-bit lanes of the keys of its set bits, padded with zeros.
    static LANES_OF_KEYS: [[u32; LANES]; 16] = {
        let mut lanes = [[0; LANES]; 16];
        let mut mask = 0;
        while mask < 16 {
            let (mut key, mut found) = (0, 0);
            while key < KEY_LANES {
                if mask >> key & 1 == 1 {
                    lanes[mask][found] = 2 * key as u32;
                    lanes[mask][found + 1] = 2 * key as u32 + 1;
                    found += 2;
                }
                key += 1;
            }
            mask += 1;
        }
        lanes
    };
    _mm256_permutevar8x32_epi32(keys, load_all(&LANES_OF_KEYS[usize::from(mask) % 16]))
}

/// Loads eight floating-point numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn load_floats(numbers: &[f32; LANES]) -> __m256 {
    // SAFETY: There are eight numbers.
    unsafe { _mm256_loadu_ps(numbers.as_ptr()) }
}
