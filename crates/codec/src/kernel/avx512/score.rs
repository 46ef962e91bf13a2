//! Scores of blocks: 16 at once, with the codes and what belongs to them gathered.

use super::super::scalar;
use super::memory::{LANES, first_lanes, load};
use super::search::write;
use crate::score::{Codes, Places, Saturation};
use core::arch::x86_64::*;

/// Keys of a vector.
const KEYS: usize = 8;

/// Fewer keys than these are selected one by one.
const FEW_KEYS: usize = 48;

/// Rounds of selection, each of which mostly leaves out about half of the keys.
const ROUNDS: usize = 48;

/// [`crate::Kernel::score`].
#[target_feature(enable = "avx512f,bmi2")]
pub(in crate::kernel) fn score(of: &Saturation, values: &[u32], frequencies: &[u32], scores: &mut [f32]) {
    let codes = of.codes.all();
    if i32::try_from(codes.len()).is_err() {
        // Places in a vector are signed.
        return scalar::score::score(of, values, frequencies, scores);
    }
    let largest =
        values.chunks(LANES).fold(_mm512_setzero_si512(), |max, values| _mm512_max_epu32(max, load(values)));
    assert!(
        values.is_empty() || (_mm512_reduce_max_epu32(largest) as usize) < codes.len(),
        "a value has no code"
    );
    let weight = _mm512_set1_ps(of.weight);
    for ((values, frequencies), scores) in
        values.chunks(LANES).zip(frequencies.chunks(LANES)).zip(scores.chunks_mut(LANES))
    {
        let lanes = first_lanes(values.len());
        let f = _mm512_cvtepu32_ps(load(frequencies));
        let k = saturation(of, load(values), lanes);
        let score = _mm512_mul_ps(weight, _mm512_div_ps(f, _mm512_add_ps(f, k)));
        // SAFETY: The mask names places of the slice only, and others are not accessed.
        unsafe { _mm512_mask_storeu_ps(scores.as_mut_ptr(), lanes, score) }
    }
}

/// `k` of 16 values, each of which has a code.
#[inline]
#[target_feature(enable = "avx512f")]
fn saturation(of: &Saturation, values: __m512i, lanes: __mmask16) -> __m512 {
    const { assert!(Codes::SLACK >= 3) }
    let zero = _mm512_setzero_si512();
    // SAFETY: The values have codes, and behind the last one there are as many bytes as are read with it.
    let codes =
        unsafe { _mm512_mask_i32gather_epi32::<1>(zero, lanes, values, of.codes.all().as_ptr().cast()) };
    let codes = _mm512_and_si512(codes, _mm512_set1_epi32(0xff));
    // SAFETY: No code is more than 255.
    unsafe { _mm512_i32gather_ps::<4>(codes, of.k.as_ptr().cast()) }
}

/// [`crate::Kernel::at_least`]: four vectors for each branch, since mostly there is nothing in them.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2,popcnt")]
pub(in crate::kernel) fn at_least(scores: &[f32], least: f32, places: &mut Places) {
    let (places, count) = places.parts();
    let least = _mm512_set1_ps(least);
    let mut found = 0;
    for (k, four) in scores.chunks(4 * LANES).enumerate() {
        let mut enough = [0; 4];
        for (enough, scores) in enough.iter_mut().zip(four.chunks(LANES)) {
            let lanes = first_lanes(scores.len());
            // SAFETY: The mask names scores of the slice only, and others are not accessed.
            let scores = unsafe { _mm512_maskz_loadu_ps(lanes, scores.as_ptr()) };
            *enough = _mm512_mask_cmp_ps_mask::<_CMP_GE_OQ>(lanes, scores, least);
        }
        if enough == [0; 4] {
            continue;
        }
        for (j, enough) in enough.into_iter().enumerate() {
            write(&mut places[found..], enough, (4 * k + j) * LANES);
            found += enough.count_ones() as usize;
        }
    }
    *count = found;
}

/// [`crate::Kernel::values_at_least`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2,popcnt")]
pub(in crate::kernel) fn values_at_least(values: &[u32], least: u32, places: &mut Places) {
    let (places, count) = places.parts();
    let mut found = 0;
    for (k, values) in values.chunks(LANES).enumerate() {
        let lanes = first_lanes(values.len());
        let enough = _mm512_mask_cmpge_epu32_mask(lanes, load(values), _mm512_set1_epi32(least as i32));
        if enough != 0 {
            write(&mut places[found..], enough, k * LANES);
            found += enough.count_ones() as usize;
        }
    }
    *count = found;
}

/// [`crate::Kernel::positive`].
#[target_feature(enable = "avx512f,bmi2,popcnt")]
pub(in crate::kernel) fn positive(scores: &[f32]) -> usize {
    scalar::score::positive(scores)
}

/// [`crate::Kernel::largest`]: quickselect.
#[target_feature(enable = "avx512f,popcnt")]
pub(in crate::kernel) fn largest(keys: &mut [u64], k: usize, scratch: &mut Vec<u64>) -> u64 {
    select(keys, k, scratch);
    smallest(&keys[..k])
}

/// The smallest of the keys, the largest number if there are none.
#[target_feature(enable = "avx512f")]
fn smallest(keys: &[u64]) -> u64 {
    let (chunks, rest) = keys.as_chunks::<KEYS>();
    let mut smallest = _mm512_set1_epi64(-1);
    for chunk in chunks {
        // SAFETY: There are eight keys.
        smallest = _mm512_min_epu64(smallest, unsafe { _mm512_loadu_si512(chunk.as_ptr().cast()) });
    }
    rest.iter().copied().fold(_mm512_reduce_min_epu64(smallest), u64::min)
}

/// Moves the largest `k` keys to the front.
#[target_feature(enable = "avx512f,popcnt")]
fn select(keys: &mut [u64], k: usize, scratch: &mut Vec<u64>) {
    let (mut rest, mut wanted) = (keys, k);
    if rest.len() > FEW_KEYS && scratch.len() < rest.len() + KEYS {
        scratch.resize(rest.len() + KEYS, 0);
    }
    // Keys of which the samples are the extremes are left to an algorithm that knows them all.
    let mut rounds = 0;
    while rest.len() > FEW_KEYS && rounds < ROUNDS {
        rounds += 1;
        if wanted == 0 || wanted == rest.len() {
            return;
        }
        let upper = partition(rest, pivot(rest), scratch);
        if upper == rest.len() {
            // The pivot was the smallest; there may be nothing but its equals.
            break;
        }
        if upper >= wanted {
            rest = &mut rest[..upper];
        } else {
            (rest, wanted) = (&mut rest[upper..], wanted - upper);
        }
    }
    scalar::score::select(rest, wanted);
}

/// The median of nine keys.
fn pivot(keys: &[u64]) -> u64 {
    let step = keys.len() / 9;
    let mut sample: [u64; 9] = std::array::from_fn(|i| keys[i * step + step / 2]);
    sample.sort_unstable();
    sample[4]
}

/// Moves the keys of at least `pivot` to the front and returns their number. `scratch` has room for all keys and a
/// vector more.
#[target_feature(enable = "avx512f,popcnt")]
fn partition(keys: &mut [u64], pivot: u64, scratch: &mut [u64]) -> usize {
    let pivots = _mm512_set1_epi64(pivot as i64);
    let (mut upper, mut lower) = (0, 0);
    let whole = keys.len() - keys.len() % KEYS;
    for at in (0..whole).step_by(KEYS) {
        // SAFETY: There are eight keys from here on.
        let these = unsafe { _mm512_loadu_si512(keys[at..at + KEYS].as_ptr().cast()) };
        let above = _mm512_cmpge_epu64_mask(these, pivots);
        // The keys up to `at + KEYS` have been read, and `upper` is at most `at`.
        store_keys(&mut keys[upper..], _mm512_maskz_compress_epi64(above, these));
        store_keys(&mut scratch[lower..], _mm512_maskz_compress_epi64(!above, these));
        upper += above.count_ones() as usize;
        lower += KEYS - above.count_ones() as usize;
    }
    for at in whole..keys.len() {
        let key = keys[at];
        if key >= pivot {
            keys[upper] = key;
            upper += 1;
        } else {
            scratch[lower] = key;
            lower += 1;
        }
    }
    keys[upper..].copy_from_slice(&scratch[..lower]);
    upper
}

/// Stores a vector of keys.
///
/// # Panics
/// If there is no room.
#[inline]
#[target_feature(enable = "avx512f")]
fn store_keys(out: &mut [u64], keys: __m512i) {
    let out: &mut [u64; KEYS] = out.first_chunk_mut().expect("room for a vector");
    // SAFETY: There is room for eight keys.
    unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), keys) }
}
