//! Scores of blocks: 16 at once.

use super::super::scalar;
use super::memory::{LANES, first_lanes, load, load_bytes, store};
use super::search::write_all;
use crate::BLOCK;
use crate::score::{ByCode, Places, Saturation, Swept};
use core::arch::x86_64::*;
use core::hint::black_box;

/// Keys of a vector.
const KEYS: usize = 8;

/// Fewer keys than these are selected one by one.
const FEW_KEYS: usize = 48;

/// Rounds of selection, each of which mostly leaves out about half of the keys.
const ROUNDS: usize = 48;

/// Values that have a bit each in a word.
const WORD: usize = 64;

/// Values whose codes are looked up together.
const CODES: usize = 64;

/// [`crate::Kernel::score`].
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi2")]
pub(in crate::kernel) fn score(of: &Saturation, values: &[u32], frequencies: &[u32], scores: &mut [u32]) {
    let largest =
        values.chunks(LANES).fold(_mm512_setzero_si512(), |max, values| _mm512_max_epu32(max, load(values)));
    assert!(
        values.is_empty() || (_mm512_reduce_max_epu32(largest) as usize) < of.codes.len(),
        "a value has no code"
    );
    let weight = _mm512_set1_ps(of.weight_in_bounds());
    // All codes are copied before the first are loaded as a vector: a load of bytes that have just been
    // stored one by one has to wait until all of them are in the cache.
    let mut codes = [0; BLOCK];
    for (code, value) in codes.iter_mut().zip(values) {
        // SAFETY: The largest value has a code.
        *code = *unsafe { of.codes.get_unchecked(*value as usize) };
    }
    for ((codes, frequencies), scores) in
        codes.chunks(CODES).zip(frequencies.chunks(CODES)).zip(scores.chunks_mut(CODES))
    {
        // Loaded anew for each 64: the compiler would copy all of it to the stack first, for as many as four
        // times.
        let k = of_codes(black_box(of.k), load_bytes(codes));
        for ((k, frequencies), scores) in
            k.into_iter().zip(frequencies.chunks(LANES)).zip(scores.chunks_mut(LANES))
        {
            store(scores, scores_of(weight, load(frequencies), k));
        }
    }
}

/// Scores of 16 frequencies with their `k` and a weight below 2^31.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn scores_of(weight: __m512, frequencies: __m512i, k: __m512) -> __m512i {
    let f = _mm512_cvtepu32_ps(frequencies);
    let share = _mm512_div_ps(f, _mm512_add_ps(f, k));
    // Rounds ties to even. NaN becomes the smallest signed integer, and then 1.
    _mm512_max_epi32(_mm512_cvtps_epi32(_mm512_mul_ps(weight, share)), _mm512_set1_epi32(1))
}

/// The numbers of 64 codes: their bytes are looked up one plane after the other, since gathering 64 words
/// takes several times as long.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(super) fn of_codes(table: &ByCode, codes: __m512i) -> [__m512; 4] {
    // Bytes are put together to words within 128 bits: each fourth of a vector gets every fourth four codes.
    let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    let codes = _mm512_permutexvar_epi32(order, codes);
    let upper = _mm512_movepi8_mask(codes);
    let [a, b, c, d] = &table.planes;
    let (a, b) = (of_plane(a, codes, upper), of_plane(b, codes, upper));
    let (c, d) = (of_plane(c, codes, upper), of_plane(d, codes, upper));
    let (low, high) = (_mm512_unpacklo_epi8(a, b), _mm512_unpacklo_epi8(c, d));
    let (low_of_upper, high_of_upper) = (_mm512_unpackhi_epi8(a, b), _mm512_unpackhi_epi8(c, d));
    [
        _mm512_castsi512_ps(_mm512_unpacklo_epi16(low, high)),
        _mm512_castsi512_ps(_mm512_unpackhi_epi16(low, high)),
        _mm512_castsi512_ps(_mm512_unpacklo_epi16(low_of_upper, high_of_upper)),
        _mm512_castsi512_ps(_mm512_unpackhi_epi16(low_of_upper, high_of_upper)),
    ]
}

/// A byte of the number of each code; `upper` are the codes from 128 on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn of_plane(plane: &[u8; 256], codes: __m512i, upper: __mmask64) -> __m512i {
    let [a, b, c, d] = plane.as_chunks::<64>().0 else { unreachable!("four times 64 bytes") };
    // SAFETY: There are 64 bytes.
    let load = |bytes: &[u8; 64]| unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
    let low = _mm512_permutex2var_epi8(load(a), codes, load(b));
    let high = _mm512_permutex2var_epi8(load(c), codes, load(d));
    _mm512_mask_blend_epi8(upper, low, high)
}

/// [`crate::Kernel::values_at_least`]: four vectors for each branch, since mostly there is nothing in them.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi2,popcnt")]
pub(in crate::kernel) fn values_at_least(values: &[u32], least: u32, places: &mut Places) {
    let (places, count) = places.parts();
    let least = _mm512_set1_epi32(least as i32);
    let mut found = 0;
    let (chunks, rest) = values.as_chunks::<WORD>();
    for (k, values) in chunks.iter().enumerate() {
        let enough = mask_at_least(values, least);
        if enough != 0 {
            write_all(&mut places[found..], enough, k * WORD);
            found += enough.count_ones() as usize;
        }
    }
    let enough = mask_at_least(rest, least);
    write_all(&mut places[found..], enough, chunks.len() * WORD);
    *count = found + enough.count_ones() as usize;
}

/// A bit for each of at most 64 values that is at least `least`.
#[inline]
#[target_feature(enable = "avx512f,bmi2")]
fn mask_at_least(values: &[u32], least: __m512i) -> u64 {
    values.chunks(LANES).enumerate().fold(0, |word, (k, values)| {
        let enough = _mm512_mask_cmpge_epu32_mask(first_lanes(values.len()), load(values), least);
        word | u64::from(enough) << (k * LANES)
    })
}

/// [`crate::Kernel::sweep`]: four vectors for each branch, since mostly there is nothing large in them.
#[target_feature(enable = "avx512f,bmi2,popcnt")]
pub(in crate::kernel) fn sweep(sums: &mut [u32], first: u32, least: u32, swept: &mut Swept) {
    let (values, large, count, positive) = swept.parts(sums.len());
    let least = _mm512_set1_epi32(least as i32);
    let (mut found, mut some, mut base) = (0, 0, first);
    let mut take = |sums: &[u32], [enough, there]: [u64; 2]| {
        some += there.count_ones() as usize;
        if enough != 0 {
            copy(sums, enough, base, &mut values[found..], &mut large[found..]);
            found += enough.count_ones() as usize;
        }
        base = base.wrapping_add(WORD as u32);
    };
    let (chunks, rest) = sums.as_chunks_mut::<WORD>();
    for sums in chunks {
        take(sums, masks_of_sums(sums, least));
        *sums = [0; WORD];
    }
    take(rest, masks_of_sums(rest, least));
    rest.fill(0);
    (*count, *positive) = (found, some);
}

/// A bit for each of at most 64 sums that is at least `least`, which is not 0, and a bit for each greater
/// than 0.
#[inline]
#[target_feature(enable = "avx512f,bmi2")]
fn masks_of_sums(sums: &[u32], least: __m512i) -> [u64; 2] {
    sums.chunks(LANES).enumerate().fold([0; 2], |[enough, there], (k, sums)| {
        // Lanes without a sum are 0, which is neither large enough nor positive.
        let vector = load(sums);
        let (large, positive) =
            (_mm512_cmpge_epu32_mask(vector, least), _mm512_test_epi32_mask(vector, vector));
        [enough | u64::from(large) << (k * LANES), there | u64::from(positive) << (k * LANES)]
    })
}

/// Copies those of at most 64 sums whose bits are set, and their values, the first of which is `first`.
#[inline]
#[target_feature(enable = "avx512f,bmi2,popcnt")]
fn copy(sums: &[u32], mut bits: u64, first: u32, values: &mut [u32], large: &mut [u32]) {
    let mut these = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    these = _mm512_add_epi32(these, _mm512_set1_epi32(first as i32));
    let mut found = 0;
    for sums in sums.chunks(LANES) {
        let lanes = bits as u16;
        store(&mut values[found..], _mm512_maskz_compress_epi32(lanes, these));
        store(&mut large[found..], _mm512_maskz_compress_epi32(lanes, load(sums)));
        found += lanes.count_ones() as usize;
        these = _mm512_add_epi32(these, _mm512_set1_epi32(LANES as i32));
        bits >>= LANES;
    }
}

/// [`crate::Kernel::keep_at_least`].
#[target_feature(enable = "avx512f,bmi2,popcnt")]
pub(in crate::kernel) fn keep_at_least(
    values: &mut [u32],
    scores: &mut [u32],
    from: usize,
    least: u32,
) -> usize {
    let least = _mm512_set1_epi32(least as i32);
    let n = values.len();
    let whole = n - (n - from) % LANES;
    let mut kept = 0;
    // What is written over has been read: `kept` is at most `place`.
    for place in (from..whole).step_by(LANES) {
        let vector = load(&scores[place..place + LANES]);
        let enough = _mm512_cmpge_epu32_mask(vector, least);
        let these = _mm512_maskz_compress_epi32(enough, load(&values[place..place + LANES]));
        store(&mut values[kept..kept + LANES], these);
        store(&mut scores[kept..kept + LANES], _mm512_maskz_compress_epi32(enough, vector));
        kept += enough.count_ones() as usize;
    }
    let vector = load(&scores[whole..]);
    let enough = _mm512_mask_cmpge_epu32_mask(first_lanes(n - whole), vector, least);
    let these = _mm512_maskz_compress_epi32(enough, load(&values[whole..]));
    store(&mut values[kept..], these);
    store(&mut scores[kept..], _mm512_maskz_compress_epi32(enough, vector));
    kept + enough.count_ones() as usize
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

/// Moves the keys of at least `pivot` to the front and returns their number. `scratch` has room for all keys
/// and a vector more.
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
