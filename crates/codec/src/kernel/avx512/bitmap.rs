//! Loops over bitmaps, 64 bits at a time: decoding, look-up of values, scores, and bits that mark sums.

use super::memory::{COUNTING_BYTES, LANES, first_lanes, load, load_bytes, store};
use super::score::{compute_scores, numbers_of_codes};
use super::search::write_lane_positions;
use crate::block::{BLOCK, Intersection};
use crate::{kernel::scalar, kernel::scalar::bitmap::load_word, saturation::Saturation};
use core::{arch::x86_64::*, hint::black_box};

/// Minimum number of values that are looked up by vectors. Fewer are looked up by the portable loop.
const LOOKUP_VALUES_MIN: usize = 12;

/// Maximum bytes of a bitmap that is searched by vectors.
const BITMAP_BYTES_MAX: usize = 4 * BLOCK;

/// Implements [`crate::Kernel::read_bitmap`].
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi2,popcnt")]
pub(crate) fn read_bitmap(bits: &[u8], prev: u32, out: &mut [u32]) {
    let mut rest_of_out = out;
    let mut base = prev.wrapping_add(1);
    let (words, rest) = bits.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    for word in words.iter().chain([&last]) {
        let word = u64::from_le_bytes(*word);
        let mut positions = _mm512_maskz_compress_epi8(word, COUNTING_BYTES.vector());
        let count = (word.count_ones() as usize).min(rest_of_out.len());
        for first in (0..count).step_by(LANES) {
            let values = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(positions));
            // Lanes after the last position are overwritten by the next word.
            store(&mut rest_of_out[first..], _mm512_add_epi32(values, _mm512_set1_epi32(base as i32)));
            positions = _mm512_alignr_epi64::<2>(positions, positions);
        }
        rest_of_out = &mut rest_of_out[count..];
        base = base.wrapping_add(64);
    }
}

/// Implements [`crate::Kernel::collect_bits`]: 64 marks at a time.
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
pub(crate) fn collect_bits(marks: &mut [u8], bits: &mut [u8]) {
    let (chunks, rest) = marks.as_chunks_mut::<64>();
    let (words, rest_of_bits) = bits.as_chunks_mut::<8>();
    for (marks, word) in chunks.iter_mut().zip(words) {
        let vector = load_bytes(marks);
        *word = (u64::from_le_bytes(*word) | _mm512_test_epi8_mask(vector, vector)).to_le_bytes();
        *marks = [0; 64];
    }
    scalar::bitmap::collect_bits(rest, rest_of_bits);
}

/// Implements [`crate::Kernel::find_in_bitmap`]: the bits of 16 values are gathered.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512cd,avx512vbmi2,bmi2,popcnt")]
pub(crate) fn find_in_bitmap(bits: &[u8], first: u32, values: &[u32], shared: &mut Intersection) {
    if bits.len() > BITMAP_BYTES_MAX || values.len() < LOOKUP_VALUES_MIN {
        return scalar::bitmap::find_in_bitmap(bits, first, values, shared);
    }
    // Whole words, and the number of set bits before each.
    let (mut words, mut before) = ([0u64; BITMAP_BYTES_MAX / 8], [0; BITMAP_BYTES_MAX / 8]);
    let mut sum = 0;
    for ((bytes, to), before) in bits.chunks(8).zip(&mut words).zip(&mut before) {
        *to = load_word(bytes);
        *before = sum;
        sum += to.count_ones();
    }
    let (positions, count) = shared.parts();
    let end = _mm512_set1_epi32(8 * bits.len() as i32);
    let mut found = 0;
    for (k, values) in values.chunks(LANES).enumerate() {
        let position = _mm512_sub_epi32(load(values), _mm512_set1_epi32(first as i32));
        let within = _mm512_mask_cmplt_epu32_mask(first_lanes(values.len()), position, end);
        let half_word = _mm512_srli_epi32::<5>(position);
        let zero = _mm512_setzero_si512();
        let from = words.as_ptr().cast();
        // SAFETY: The mask selects positions below the number of bits, so their half words are in `words`.
        let gathered = unsafe { _mm512_mask_i32gather_epi32::<4>(zero, within, half_word, from) };
        let bit = _mm512_sllv_epi32(_mm512_set1_epi32(1), _mm512_and_si512(position, _mm512_set1_epi32(31)));
        let mut present = _mm512_mask_test_epi32_mask(within, gathered, bit);
        if present == 0 {
            continue;
        }
        write_lane_positions(&mut positions[0][found..], present, k * LANES);
        while present != 0 {
            let position = values[present.trailing_zeros() as usize].wrapping_sub(first) as usize;
            let word = position / 64 % (BITMAP_BYTES_MAX / 8);
            let rank = before[word] + (words[word] & ((1 << (position % 64)) - 1)).count_ones();
            positions[1][found] = rank as u8;
            found += 1;
            present &= present - 1;
        }
    }
    *count = found;
}

/// Implements [`crate::Kernel::score_bitmap`]: 64 bits at a time. Their frequencies are spread to the lanes
/// of the set bits.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt")]
pub(crate) fn score_bitmap(
    of: &Saturation,
    bits: &[u8],
    first: u32,
    mut frequencies: &[u32],
    sums: &mut [u32],
) {
    let weight = _mm512_set1_ps(of.weight_in_bounds());
    let codes = of.codes[first as usize..].chunks(64);
    for ((bytes, codes), sums) in bits.chunks(8).zip(codes).zip(sums.chunks_mut(64)) {
        let mut word = load_word(bytes);
        // `black_box` repeats the loads for each word: otherwise the compiler copies the whole table to the
        // stack before the loop, which does not pay for a few words.
        let k = numbers_of_codes(black_box(of.k), load_bytes(codes));
        for (k, sums) in k.into_iter().zip(sums.chunks_mut(LANES)) {
            let lanes = word as u16 & first_lanes(sums.len());
            word >>= LANES;
            let n = lanes.count_ones() as usize;
            let Some((own, rest)) = frequencies.split_at_checked(n) else { return };
            frequencies = rest;
            let score = compute_scores(weight, _mm512_maskz_expand_epi32(lanes, load(own)), k);
            // SAFETY: The mask selects lanes within the slice; other lanes are not accessed.
            let sum = unsafe { _mm512_maskz_loadu_epi32(lanes, sums.as_ptr().cast()) };
            let sum = _mm512_add_epi32(sum, score);
            // SAFETY: As above.
            unsafe { _mm512_mask_storeu_epi32(sums.as_mut_ptr().cast(), lanes, sum) }
        }
    }
}

/// Implements [`crate::Kernel::mark_positive`]: 64 sums at a time.
#[target_feature(enable = "avx512f,bmi2")]
pub(crate) fn mark_positive(sums: &[u32], bits: &mut [u8]) {
    let (chunks, rest) = sums.as_chunks::<64>();
    let (words, rest_of_bits) = bits.split_at_mut(8 * chunks.len());
    for (sums, word) in chunks.iter().zip(words.as_chunks_mut::<8>().0) {
        *word = (u64::from_le_bytes(*word) | mask_positive(sums)).to_le_bytes();
    }
    for (byte, marks) in rest_of_bits.iter_mut().zip(mask_positive(rest).to_le_bytes()) {
        *byte |= marks;
    }
}

/// A bit for each of at most 64 sums that is greater than 0.
#[inline]
#[target_feature(enable = "avx512f,bmi2")]
fn mask_positive(sums: &[u32]) -> u64 {
    sums.chunks(LANES).enumerate().fold(0, |word, (k, sums)| {
        let vector = load(sums);
        word | u64::from(_mm512_test_epi32_mask(vector, vector)) << (k * LANES)
    })
}

/// Implements [`crate::Kernel::keep_marked`]: 64 sums at a time.
#[target_feature(enable = "avx512f,bmi2")]
pub(crate) fn keep_marked(sums: &mut [u32], bits: &[u8]) {
    let (chunks, rest) = sums.as_chunks_mut::<64>();
    let (words, rest_of_bits) = bits.split_at(8 * chunks.len());
    for (sums, word) in chunks.iter_mut().zip(words.as_chunks::<8>().0) {
        keep_bits(sums, u64::from_le_bytes(*word));
    }
    keep_bits(rest, load_word(rest_of_bits));
}

/// Sets each of at most 64 sums to 0 whose bit in `bits` is clear.
#[inline]
#[target_feature(enable = "avx512f,bmi2")]
fn keep_bits(sums: &mut [u32], mut bits: u64) {
    for sums in sums.chunks_mut(LANES) {
        store(sums, _mm512_maskz_mov_epi32(bits as u16, load(sums)));
        bits >>= LANES;
    }
}

/// Implements [`crate::Kernel::copy_marked`]: the 32-bit words of 16 values are gathered.
#[target_feature(enable = "avx512f,avx512bw,bmi2,popcnt")]
pub(crate) fn copy_marked(values: &[u32], bits: &[u8], out: &mut [u32]) -> usize {
    let (zero, words_len) = (_mm512_setzero_si512(), _mm512_set1_epi32((bits.len() / 4) as i32));
    let mut copied = 0;
    for values in values.chunks(LANES) {
        let vector = load(values);
        let at = _mm512_srli_epi32::<5>(vector);
        let within = _mm512_mask_cmplt_epu32_mask(first_lanes(values.len()), at, words_len);
        // SAFETY: The mask selects words within `bits`.
        let words = unsafe { _mm512_mask_i32gather_epi32::<4>(zero, within, at, bits.as_ptr().cast()) };
        let bit = _mm512_sllv_epi32(_mm512_set1_epi32(1), _mm512_and_si512(vector, _mm512_set1_epi32(31)));
        let set = _mm512_mask_test_epi32_mask(within, words, bit);
        // Lanes after the values are overwritten by the next ones.
        store(&mut out[copied..], _mm512_maskz_compress_epi32(set, vector));
        copied += set.count_ones() as usize;
    }
    copied
}
