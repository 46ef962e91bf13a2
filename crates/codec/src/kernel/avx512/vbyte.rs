//! `VByte`: all values that end within the next 64 bytes at a time.
//!
//! As in Plaisance, Kurz, Lemire, "Vectorized `VByte` Decoding", the continuation bits of the next bytes are
//! gathered into a mask of the ends of the values. With masks of 64 bits and permutations of 64 bytes no
//! table of shuffles is needed: the starts of the values are compressed from the mask, four bytes are
//! fetched from each start, and the bytes after the last byte of the value are cleared. The portable loop
//! reads values of five bytes and rejects invalid values.

use super::memory::{
    COUNTING_BYTES, ConstantBytes, LANES, first_lanes, load, load_bytes, store, store_all, store_bytes,
};
use super::sums::PrefixSums;
use crate::error::{DecodeError, Result};
use crate::kernel::scalar;
use core::arch::x86_64::*;

/// Number of bytes that are examined at once.
const WINDOW_BYTES: usize = 64;

/// Number of values that are encoded to a buffer on the stack before they are appended.
const STAGED_VALUES: usize = 128;

/// Number of values that are encoded at once.
const VALUES_AT_ONCE: usize = 8;

/// Implements [`crate::Kernel::vbyte_encode`]: the groups of seven bits of a value are moved to eight bytes,
/// and the bytes of eight values are compressed.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512vbmi,avx512vbmi2,bmi2,popcnt")]
pub(crate) fn vbyte_encode(values: &[u32], out: &mut Vec<u8>) {
    let groups = _mm512_set1_epi64(0x312a_231c_150e_0700);
    for values in values.chunks(STAGED_VALUES) {
        let mut staged = [0; 5 * STAGED_VALUES + WINDOW_BYTES];
        let mut len = 0;
        for values in values.chunks(VALUES_AT_ONCE) {
            // An ordinary load, as in `load_unmasked`.
            let vector = match values.first_chunk::<VALUES_AT_ONCE>() {
                // SAFETY: There are 8 values.
                Some(values) => unsafe { _mm256_loadu_si256(values.as_ptr().cast()) },
                None => _mm512_castsi512_si256(load(values)),
            };
            let vector = _mm512_cvtepu32_epi64(vector);
            let bytes = _mm512_multishift_epi64_epi8(groups, vector);
            let bytes = _mm512_and_si512(bytes, _mm512_set1_epi8(0x7f));
            let zeros = _mm512_lzcnt_epi64(_mm512_or_si512(bytes, _mm512_set1_epi64(1)));
            let unused = _mm512_and_si512(zeros, _mm512_set1_epi64(56));
            let used = _mm512_srlv_epi64(_mm512_set1_epi64(-1), unused);
            let more = _mm512_and_si512(_mm512_srli_epi64::<8>(used), _mm512_set1_epi8(0x80_u8 as i8));
            let stored = _bzhi_u64(_mm512_movepi8_mask(used), 8 * values.len() as u32);
            let bytes = _mm512_maskz_compress_epi8(stored, _mm512_or_si512(bytes, more));
            store_bytes(&mut staged[len..len + WINDOW_BYTES], bytes);
            len += stored.count_ones() as usize;
        }
        out.extend_from_slice(&staged[..len]);
    }
}

decode_or_sum! {
    /// Implements [`crate::Kernel::vbyte_decode`].
    "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt",
    fn vbyte_decode(bytes) -> Result<usize>
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vbmi2,bmi1,bmi2,lzcnt,popcnt")]
fn decode_values<const SUM: bool>(bytes: &[u8], mut prev: u32, out: &mut [u32]) -> Result<usize> {
    let (mut used, mut done) = (0, 0);
    let mut sums = PrefixSums::after(prev);
    while done < out.len() {
        let (rest, out) = (&bytes[used..], &mut out[done..]);
        let window = load_bytes(rest);
        let more = _mm512_movepi8_mask(window);
        let ends = _bzhi_u64(!more, rest.len().min(WINDOW_BYTES) as u32);
        let count = (ends.count_ones() as usize).min(out.len());
        if more == 0 && count == WINDOW_BYTES {
            let mut bytes = window;
            for out in out[..WINDOW_BYTES].as_chunks_mut::<LANES>().0 {
                let mut values = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(bytes));
                bytes = _mm512_alignr_epi64::<2>(bytes, bytes);
                if SUM {
                    values = sums.next(values);
                }
                store_all(out, values);
            }
            (used, done) = (used + WINDOW_BYTES, done + WINDOW_BYTES);
            prev = out[WINDOW_BYTES - 1];
            continue;
        }
        // Four continuation bits in a row: a value of at least five bytes.
        let long = more & more >> 1 & more >> 2 & more >> 3;
        if long != 0 || count == 0 {
            let few = out.len().min(LANES);
            let few = &mut out[..few];
            used += scalar::vbyte::vbyte_decode(rest, SUM.then_some(prev), few)?;
            done += few.len();
            prev = few[few.len() - 1];
            sums = PrefixSums::after(prev);
            continue;
        }
        let starts = (ends << 1 | 1) & u64::MAX >> ends.leading_zeros();
        let starts = _mm512_maskz_compress_epi8(starts, COUNTING_BYTES.vector());
        for (group, out) in out[..count].chunks_mut(LANES).enumerate() {
            // Lanes after the last value are zero, and add nothing to the sums.
            let valid = first_lanes(out.len());
            let mut values = _mm512_maskz_mov_epi32(valid, gather_values(window, starts, group));
            if SUM {
                values = sums.next(values);
            }
            store(out, values);
        }
        // The end of the last value read.
        let end = _pdep_u64(1 << (count - 1), ends).trailing_zeros();
        used += end as usize + 1;
        done += count;
        prev = out[count - 1];
    }
    Ok(used)
}

/// Decodes 16 values of at most four bytes, which start at the bytes of `window` that `starts` tells from
/// index `16 * group` on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn gather_values(window: __m512i, starts: __m512i, group: usize) -> __m512i {
    let lanes = _mm512_add_epi8(EACH_FOUR_TIMES.vector(), _mm512_set1_epi8((LANES * group) as i8));
    let positions = _mm512_permutexvar_epi8(lanes, starts);
    let positions = _mm512_add_epi8(positions, _mm512_set1_epi32(0x0302_0100));
    let word = _mm512_permutexvar_epi8(positions, window);
    // The lowest byte without a continuation bit ends the value: keep the bytes up to it.
    let ends = _mm512_andnot_si512(word, _mm512_set1_epi32(0x8080_8080_u32 as i32));
    let below = _mm512_add_epi32(ends, _mm512_set1_epi32(-1));
    let kept = _mm512_ternarylogic_epi32::<0b0010_1000>(ends, below, word);
    let groups = _mm512_and_si512(kept, _mm512_set1_epi32(0x7f7f_7f7f));
    // Combine groups of 7 bits to pairs of 14 bits, and pairs to 28 bits.
    let pairs = _mm512_maddubs_epi16(_mm512_set1_epi16(0x8001_u16 as i16), groups);
    _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x4000_0001))
}

/// Implements [`crate::Kernel::vbyte_skip`].
#[target_feature(enable = "avx512f,avx512bw,bmi2,popcnt")]
pub(crate) fn vbyte_skip(bytes: &[u8], n: usize) -> Result<usize> {
    let (mut used, mut left) = (0, n);
    while left > 0 {
        let rest = &bytes[used..];
        if rest.is_empty() {
            return Err(DecodeError::Truncated);
        }
        let examined = rest.len().min(WINDOW_BYTES);
        let ends = _bzhi_u64(!_mm512_movepi8_mask(load_bytes(rest)), examined as u32);
        let count = ends.count_ones() as usize;
        if count >= left {
            return Ok(used + _pdep_u64(1 << (left - 1), ends).trailing_zeros() as usize + 1);
        }
        (used, left) = (used + examined, left - count);
    }
    Ok(used)
}

/// The bytes 0, 0, 0, 0, 1, 1, 1, 1, and so on.
static EACH_FOUR_TIMES: ConstantBytes = ConstantBytes::counting(4);
