//! `VByte` by masks: Plaisance, Kurz, Lemire, "Vectorized `VByte` Decoding".
//!
//! The continuation bits of the next 64 bytes are gathered into a mask. Its low 12 bits select one of these
//! steps by a table of 4,096 entries, which also holds the shuffle that moves each value to its lane:
//!
//! 1. The low 16 bits are clear: 16 values of one byte.
//! 2. The next 6 values have at most 2 bytes each: one of 64 shuffles to 16-bit lanes.
//! 3. The next 4 have at most 3: one of 81 shuffles to 32-bit lanes.
//! 4. The next 2 have at most 5: extracted from the bytes by `pext`.
//!
//! 12 bits that match none of these steps are not valid values. The paper's table has a step of no bytes for
//! them, which loops forever on damaged input. Here they end the vector loop, and the portable loop either
//! reads a value or returns the error. The portable loop also reads the values at the ends of input and
//! output.

use super::memory::{LANES, Vector, load_all, load_half, store_half};
use super::streamvbyte::{control_bytes, store_bytes};
use crate::{error::Result, kernel::scalar, kernel::scalar::bitmap::load_word};
use core::arch::x86_64::*;

/// Number of values that are encoded to a buffer on the stack before they are appended.
const STAGED_VALUES: usize = 128;

/// Implements [`crate::Kernel::vbyte_encode`]: the groups of seven bits of eight values are moved to bytes,
/// and the bytes of the values to the front, as in `StreamVByte`. Eight values of which one has five bytes
/// are encoded by the portable loop.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(crate) fn vbyte_encode(values: &[u32], out: &mut Vec<u8>) {
    for values in values.chunks(STAGED_VALUES) {
        // Four values are stored as 16 bytes; the next four values overwrite those of them that are unused.
        let mut staged = [0; 5 * STAGED_VALUES + 16];
        let mut len = 0;
        let (groups, rest) = values.as_chunks::<LANES>();
        for values in groups {
            let vector = load_all(values);
            let long = _mm256_set1_epi32(0xf000_0000_u32 as i32);
            if _mm256_testz_si256(vector, long) == 0 {
                len += scalar::vbyte::encode_values(values, &mut staged[len..]);
                continue;
            }
            let bytes = split_to_seven_bits(vector);
            let [first, second] = control_bytes(bytes);
            let bytes = _mm256_or_si256(bytes, mark_continuations(bytes));
            len += store_bytes(&mut staged[len..], _mm256_castsi256_si128(bytes), first);
            len += store_bytes(&mut staged[len..], _mm256_extracti128_si256::<1>(bytes), second);
        }
        len += scalar::vbyte::encode_values(rest, &mut staged[len..]);
        out.extend_from_slice(&staged[..len]);
    }
}

/// Moves each of the four groups of seven bits of a value below 2^28 to a byte.
#[inline]
#[target_feature(enable = "avx2")]
fn split_to_seven_bits(values: Vector) -> Vector {
    let group = |values, mask| _mm256_and_si256(values, _mm256_set1_epi32(mask));
    let low = _mm256_or_si256(group(values, 0x7f), group(_mm256_slli_epi32::<1>(values), 0x7f00));
    let high = _mm256_or_si256(
        group(_mm256_slli_epi32::<2>(values), 0x7f_0000),
        group(_mm256_slli_epi32::<3>(values), 0x7f00_0000),
    );
    _mm256_or_si256(low, high)
}

/// The continuation bits of the bytes of each value: set if a later byte of the value is not zero.
#[inline]
#[target_feature(enable = "avx2")]
fn mark_continuations(bytes: Vector) -> Vector {
    let next = _mm256_srli_epi32::<8>(bytes);
    let later = _mm256_or_si256(next, _mm256_srli_epi32::<8>(next));
    let later = _mm256_or_si256(later, _mm256_srli_epi32::<24>(bytes));
    let none = _mm256_cmpeq_epi8(later, _mm256_setzero_si256());
    _mm256_andnot_si256(none, _mm256_set1_epi8(0x80_u8 as i8))
}

/// Number of bytes whose continuation bits are gathered at once.
const WINDOW_BYTES: usize = 64;

/// Maximum bytes that a step reads.
const STEP_BYTES: usize = 16;

/// Maximum values that a step writes.
const STEP_VALUES: usize = 16;

decode_or_sum! {
    /// Implements [`crate::Kernel::vbyte_decode`].
    "avx2,bmi1,bmi2,lzcnt,popcnt",
    fn vbyte_decode(bytes) -> Result<usize>
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn decode_values<const SUM: bool>(bytes: &[u8], mut prev: u32, out: &mut [u32]) -> Result<usize> {
    let (mut used, mut done) = (0, 0);
    while done < out.len() {
        let (rest, out) = (&bytes[used..], &mut out[done..]);
        let (mut read, mut written) = match rest.first_chunk() {
            Some(window) => decode_window::<SUM>(window, prev, out),
            None => (0, 0),
        };
        if written == 0 {
            written = out.len().min(STEP_VALUES);
            read = scalar::vbyte::vbyte_decode(rest, SUM.then_some(prev), &mut out[..written])?;
        }
        prev = out[written - 1];
        (used, done) = (used + read, done + written);
    }
    Ok(used)
}

/// Decodes values as long as the bytes of a step are within the window and its values fit `out`. Returns the
/// number of bytes read and of values written. Both are 0 if no step matches the next value.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn decode_window<const SUM: bool>(window: &[u8; WINDOW_BYTES], prev: u32, out: &mut [u32]) -> (usize, usize) {
    let mut more = continuation_bits(window);
    let mut sums = _mm_set1_epi32(prev as i32);
    let (mut read, mut written) = (0, 0);
    // Writes four lanes: `$count` values, then zeros. A macro instead of a function, so that the sums stay
    // in their register.
    macro_rules! write {
        ($values:expr, $count:literal) => {{
            let mut values = $values;
            if SUM {
                let own = prefix_sums_of_four(values);
                values = _mm_add_epi32(own, sums);
                sums = _mm_add_epi32(sums, _mm_shuffle_epi32::<0b11_11_11_11>(own));
            }
            store_half(out[written..].first_chunk_mut().expect("space for a step"), values);
            written += $count;
        }};
    }
    while read <= WINDOW_BYTES - STEP_BYTES && out.len() - written >= STEP_VALUES {
        let bytes: &[u8; STEP_BYTES] = window[read..].first_chunk().expect("16 bytes");
        let vector = load_half(bytes);
        if more as u16 == 0 {
            write!(_mm_cvtepu8_epi32(vector), 4);
            write!(_mm_cvtepu8_epi32(_mm_srli_si128::<4>(vector)), 4);
            write!(_mm_cvtepu8_epi32(_mm_srli_si128::<8>(vector)), 4);
            write!(_mm_cvtepu8_epi32(_mm_srli_si128::<12>(vector)), 4);
            read += STEP_BYTES;
            more >>= STEP_BYTES;
            continue;
        }
        let step = &DECODE_STEPS[more as usize & 0xfff];
        if step.len == 0 {
            break;
        }
        if let Some(shuffle) = SHUFFLES.get(usize::from(step.shuffle)) {
            let positions = _mm_shuffle_epi8(vector, load_half(shuffle));
            if step.shuffle < SIX_VALUE_SHUFFLES {
                let values = join_six_values(positions);
                write!(_mm_and_si128(values, _mm_set1_epi32(0xffff)), 4);
                write!(_mm_srli_epi32::<16>(values), 2);
            } else {
                write!(join_four_values(positions), 4);
            }
        } else {
            let Some(pair) = extract_pair(usize::from(step.shuffle) - SHUFFLES.len(), bytes) else { break };
            write!(pair, 2);
        }
        read += usize::from(step.len);
        more >>= step.len;
    }
    (read, written)
}

/// The prefix sums of four values.
#[inline]
#[target_feature(enable = "avx2")]
fn prefix_sums_of_four(values: __m128i) -> __m128i {
    let pairs = _mm_add_epi32(values, _mm_slli_si128::<4>(values));
    _mm_add_epi32(pairs, _mm_slli_si128::<8>(pairs))
}

/// Joins the seven-bit groups of six values of up to two bytes. They are in the low halves of all lanes and
/// in the high halves of the first two.
#[inline]
#[target_feature(enable = "avx2")]
fn join_six_values(positions: __m128i) -> __m128i {
    let first = _mm_and_si128(positions, _mm_set1_epi32(0x007f_007f));
    let second = _mm_and_si128(positions, _mm_set1_epi32(0x7f00_7f00));
    _mm_or_si128(first, _mm_srli_epi32::<1>(second))
}

/// Joins the seven-bit groups of four values of up to three bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn join_four_values(positions: __m128i) -> __m128i {
    let first = _mm_and_si128(positions, _mm_set1_epi32(0x7f));
    let second = _mm_and_si128(positions, _mm_set1_epi32(0x7f00));
    let third = _mm_and_si128(positions, _mm_set1_epi32(0x7f_0000));
    _mm_or_si128(_mm_or_si128(first, _mm_srli_epi32::<1>(second)), _mm_srli_epi32::<2>(third))
}

/// Decodes two values of up to five bytes. `lens` is `5 * (first - 1) + second - 1` for their lengths `first`
/// and `second`. `None` if a value has more than 32 bits.
#[inline]
#[target_feature(enable = "avx2,bmi2")]
fn extract_pair(lens: usize, bytes: &[u8; STEP_BYTES]) -> Option<__m128i> {
    let (first, second) = (lens / 5 + 1, lens % 5 + 1);
    let value = |start: usize, len: usize| {
        let word = load_word(&bytes[start..]) & ((1 << (8 * len)) - 1);
        _pext_u64(word, 0x7f_7f7f_7f7f)
    };
    let (a, b) = (value(0, first), value(first, second));
    ((a | b) >> 32 == 0).then(|| _mm_setr_epi32(a as i32, b as i32, 0, 0))
}

/// A mask of the continuation bits of 64 bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn continuation_bits(window: &[u8; WINDOW_BYTES]) -> u64 {
    let [low, high] = [0, 32].map(|start| {
        let half = window[start..start + 32].first_chunk().expect("32 bytes");
        u64::from(_mm256_movemask_epi8(super::memory::load_bytes(half)) as u32)
    });
    low | high << 32
}

/// How the next values are decoded: an entry of the table of steps.
struct VByteStep {
    /// The index of the shuffle. Indexes after the last shuffle tell the lengths of two values.
    shuffle: u8,
    /// Number of bytes of the values; 0 if no step matches.
    len: u8,
}

/// Number of shuffles of six values.
const SIX_VALUE_SHUFFLES: u8 = 64;

/// The shuffles of six values, then those of four. Six values go to the 16-bit lanes 0, 2, 4, 6, 1, 3.
static SHUFFLES: [[u8; 16]; 64 + 81] = {
    let mut shuffles = [[0x80; 16]; 64 + 81];
    let mut number = 0;
    while number < shuffles.len() {
        let six = number < 64;
        let (count, base, mut digits) = if six { (6, 2, number) } else { (4, 3, number - 64) };
        // The first value's length is the most significant digit.
        let mut lens = [0; 6];
        let mut value = count;
        while value > 0 {
            value -= 1;
            lens[value] = digits % base + 1;
            digits /= base;
        }
        let mut source = 0;
        while value < count {
            let lane = if value < 4 { 4 * value } else { 4 * (value - 4) + 2 };
            let mut byte = 0;
            while byte < lens[value] {
                shuffles[number][lane + byte] = source;
                source += 1;
                byte += 1;
            }
            value += 1;
        }
        number += 1;
    }
    shuffles
};

static DECODE_STEPS: [VByteStep; 4096] = {
    let mut steps = [const { VByteStep { shuffle: 0, len: 0 } }; 4096];
    let mut mask = 0;
    while mask < steps.len() {
        steps[mask] = choose_step(mask);
        mask += 1;
    }
    steps
};

/// The first of the steps 2 to 4 that matches a mask of continuation bits.
const fn choose_step(mask: usize) -> VByteStep {
    let (sixes, fours, pairs) =
        (lengths_as_digits(mask, 6, 2), lengths_as_digits(mask, 4, 3), lengths_as_digits(mask, 2, 5));
    if let Some((number, len)) = sixes {
        VByteStep { shuffle: number, len }
    } else if let Some((number, len)) = fours {
        VByteStep { shuffle: SIX_VALUE_SHUFFLES + number, len }
    } else if let Some((number, len)) = pairs {
        VByteStep { shuffle: SHUFFLES.len() as u8 + number, len }
    } else {
        VByteStep { shuffle: 0, len: 0 }
    }
}

/// The lengths less 1 of the first `count` values as the digits of a number, and the sum of the lengths;
/// `None` if a value has more than `longest` bytes.
const fn lengths_as_digits(mask: usize, count: usize, longest: usize) -> Option<(u8, u8)> {
    let (mut number, mut len, mut value) = (0, 0, 0);
    while value < count {
        let own = (mask >> len).trailing_ones() as usize + 1;
        if own > longest {
            return None;
        }
        number = number * longest + own - 1;
        len += own;
        value += 1;
    }
    Some((number as u8, len as u8))
}
