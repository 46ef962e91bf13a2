//! Loops over bitmaps: decoding, look-up of values, and bits that mark sums.

use super::compress::{compress, lane_mask, set_bits};
use super::memory::{LANES, Vector, broadcast, first_lanes, load, load_all, load_bytes, store, store_all};
use super::search::{equal_lanes, lowest_bytes, store_8_bytes};
use crate::block::{BLOCK, Intersection};
use crate::{kernel::scalar, kernel::scalar::bitmap::load_word};
use core::{arch::x86_64::*, mem::MaybeUninit};

/// Minimum number of values that are looked up by vectors. Fewer are looked up by the portable loop.
const LOOKUP_VALUES_MIN: usize = 32;

/// Bits of a word of a bitmap.
const WORD_BITS: u32 = 32;

/// Maximum number of words of a bitmap.
const WORDS_MAX: usize = BLOCK;

/// Implements [`crate::Kernel::find_in_bitmap`]: the words of eight values are gathered, and the numbers of
/// set bits before these words.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(crate) fn find_in_bitmap(bits: &[u8], first: u32, values: &[u32], shared: &mut Intersection) {
    if bits.len() > 4 * WORDS_MAX || values.len() < LOOKUP_VALUES_MIN {
        return scalar::bitmap::find_in_bitmap(bits, first, values, shared);
    }
    let mut words = [MaybeUninit::uninit(); WORDS_MAX + 1];
    let mut before = [MaybeUninit::uninit(); WORDS_MAX + 1];
    let (mut end, mut sum) = (0, 0);
    let (whole, rest) = bits.as_chunks::<4>();
    // The word after the last is for all values after the last bit.
    let last = [load_word(rest) as u32, 0];
    let whole = whole.iter().map(|word| u32::from_le_bytes(*word));
    for ((word, to), before) in whole.chain(last).zip(&mut words).zip(&mut before) {
        to.write(word);
        before.write(sum);
        sum += word.count_ones();
        end += 1;
    }
    let (positions, count) = shared.parts();
    let (zero, one, past) = (_mm256_setzero_si256(), broadcast(1), broadcast(((end - 1) * WORD_BITS) as i32));
    let mut found = 0;
    for (k, values) in values.chunks(LANES).enumerate() {
        let position = _mm256_sub_epi32(load(values), broadcast(first as i32));
        let position = _mm256_min_epu32(position, past);
        // Often all values of a vector are outside the bitmap, as the values are increasing.
        if equal_lanes(position, past) == 0xff {
            continue;
        }
        let (at, bit) = (_mm256_srli_epi32::<5>(position), _mm256_and_si256(position, broadcast(31)));
        // SAFETY: There are `end` words, and the position is at most the first bit of the last.
        let word = unsafe { _mm256_i32gather_epi32::<4>(words.as_ptr().cast(), at) };
        // SAFETY: As above.
        let before = unsafe { _mm256_i32gather_epi32::<4>(before.as_ptr().cast(), at) };
        let bit = _mm256_sllv_epi32(one, bit);
        let present = !equal_lanes(_mm256_and_si256(word, bit), zero) as u8 & first_lanes(values.len());
        let below = _mm256_and_si256(word, _mm256_sub_epi32(bit, one));
        let ranks = lowest_bytes(_mm256_add_epi32(before, count_ones_in_lanes(below)));
        let set = set_bits(present);
        let in_values = _mm_add_epi8(set, _mm_set1_epi8((k * LANES) as i8));
        store_8_bytes(positions[0][found..].first_chunk_mut().expect("space for a vector"), in_values);
        let in_bits = _mm_shuffle_epi8(ranks, set);
        store_8_bytes(positions[1][found..].first_chunk_mut().expect("space for a vector"), in_bits);
        found += present.count_ones() as usize;
    }
    *count = found;
}

/// The number of set bits of each 32-bit lane.
#[inline]
#[target_feature(enable = "avx2")]
fn count_ones_in_lanes(words: Vector) -> Vector {
    let of_nibbles =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    let half = _mm256_set1_epi8(15);
    let low = _mm256_shuffle_epi8(of_nibbles, _mm256_and_si256(words, half));
    let upper = _mm256_and_si256(_mm256_srli_epi16::<4>(words), half);
    let of_bytes = _mm256_add_epi8(low, _mm256_shuffle_epi8(of_nibbles, upper));
    _mm256_madd_epi16(_mm256_maddubs_epi16(of_bytes, _mm256_set1_epi8(1)), _mm256_set1_epi16(1))
}

/// Implements [`crate::Kernel::collect_bits`]: 32 marks at a time.
#[target_feature(enable = "avx2")]
pub(crate) fn collect_bits(marks: &mut [u8], bits: &mut [u8]) {
    let (chunks, rest) = marks.as_chunks_mut::<32>();
    let (words, rest_of_bits) = bits.as_chunks_mut::<4>();
    for (marks, word) in chunks.iter_mut().zip(words) {
        // Moves the lowest bit of each byte to its highest; the other bits do not matter.
        let marked = _mm256_movemask_epi8(_mm256_slli_epi16::<7>(load_bytes(marks)));
        *word = (u32::from_le_bytes(*word) | marked as u32).to_le_bytes();
        *marks = [0; 32];
    }
    scalar::bitmap::collect_bits(rest, rest_of_bits);
}

/// Implements [`crate::Kernel::mark_positive`]: eight sums at a time.
#[target_feature(enable = "avx2")]
pub(crate) fn mark_positive(sums: &[u32], bits: &mut [u8]) {
    let (chunks, rest) = sums.as_chunks::<LANES>();
    let (bytes, rest_of_bits) = bits.split_at_mut(chunks.len());
    for (sums, byte) in chunks.iter().zip(bytes) {
        *byte |= !equal_lanes(load_all(sums), _mm256_setzero_si256()) as u8;
    }
    scalar::bitmap::mark_positive(rest, rest_of_bits);
}

/// Implements [`crate::Kernel::keep_marked`]: eight sums at a time.
#[target_feature(enable = "avx2")]
pub(crate) fn keep_marked(sums: &mut [u32], bits: &[u8]) {
    let (chunks, rest) = sums.as_chunks_mut::<LANES>();
    let (bytes, rest_of_bits) = bits.split_at(chunks.len());
    for (sums, byte) in chunks.iter_mut().zip(bytes) {
        store_all(sums, _mm256_and_si256(load_all(sums), lane_mask(*byte)));
    }
    scalar::bitmap::keep_marked(rest, rest_of_bits);
}

/// Implements [`crate::Kernel::copy_marked`]: the words of eight values are gathered.
#[target_feature(enable = "avx2,popcnt")]
pub(crate) fn copy_marked(values: &[u32], bits: &[u8], out: &mut [u32]) -> usize {
    let words = broadcast((bits.len() / 4) as i32);
    let (zero, one) = (_mm256_setzero_si256(), broadcast(1));
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut copied = 0;
    for values in chunks {
        let vector = load_all(values);
        let at = _mm256_srli_epi32::<5>(vector);
        // A position is at most 2^27: positive as a signed number.
        let within = _mm256_cmpgt_epi32(words, at);
        // SAFETY: The mask selects words within `bits`.
        let gathered = unsafe { _mm256_mask_i32gather_epi32::<4>(zero, bits.as_ptr().cast(), at, within) };
        let bit = _mm256_sllv_epi32(one, _mm256_and_si256(vector, broadcast(31)));
        let set = !equal_lanes(_mm256_and_si256(gathered, bit), zero) as u8;
        // Lanes after the values are overwritten by the next ones.
        store(&mut out[copied..], compress(set, vector));
        copied += set.count_ones() as usize;
    }
    copied + scalar::bitmap::copy_marked(rest, bits, &mut out[copied..])
}
