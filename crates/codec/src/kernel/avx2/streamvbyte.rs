//! `StreamVByte`: eight values, two control bytes, at a time.

use super::super::scalar;
use super::memory::{LANES, Vector, load_all, load_half, store_all};
use super::sums::PrefixSums;
use core::arch::x86_64::*;

/// [`crate::Kernel::streamvbyte_encode`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(in crate::kernel) fn streamvbyte_encode(values: &[u32], controls: &mut [u8], data: &mut [u8]) -> usize {
    let (groups, rest) = values.as_chunks::<LANES>();
    let (pairs, rest_of_controls) = controls.split_at_mut(2 * groups.len());
    let mut len = 0;
    for (values, controls) in groups.iter().zip(pairs.as_chunks_mut::<2>().0) {
        let values = load_all(values);
        *controls = longest_bytes(values);
        // Each value before has at most four bytes, so there are 16 for these four.
        len += store_bytes(&mut data[len..], _mm256_castsi256_si128(values), controls[0]);
        len += store_bytes(&mut data[len..], _mm256_extracti128_si256::<1>(values), controls[1]);
    }
    len + scalar::streamvbyte::streamvbyte_encode(rest, rest_of_controls, &mut data[len..])
}

/// For each four of eight values a control byte: the position of the highest byte of each that is not zero.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn longest_bytes(values: Vector) -> [u8; 2] {
    let zeros = _mm256_cmpeq_epi8(values, _mm256_setzero_si256());
    let pairs = (!_mm256_movemask_epi8(zeros)).to_le_bytes().map(|pair| CODES[usize::from(pair)]);
    [pairs[0] | pairs[1] << 4, pairs[2] | pairs[3] << 4]
}

/// Stores as many bytes of each of four values as the control byte says, and returns their number. The bytes
/// up to the 16th are overwritten.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store_bytes(out: &mut [u8], values: __m128i, control: u8) -> usize {
    let out: &mut [u8; 16] = out.first_chunk_mut().expect("space for a vector");
    let bytes = _mm_shuffle_epi8(values, load_half(&STORED[usize::from(control)]));
    // SAFETY: The array has 16 bytes.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), bytes) };
    usize::from(QUADS[usize::from(control)].len)
}

/// For a mask of the bytes of two values that are not zero, their codes.
static CODES: [u8; 256] = {
    let mut codes = [0; 256];
    let mut mask = 1;
    while mask < 256 {
        codes[mask] = highest_bit(mask % 16) | highest_bit(mask / 16) << 2;
        mask += 1;
    }
    codes
};

const fn highest_bit(mask: usize) -> u8 {
    if mask == 0 { 0 } else { mask.ilog2() as u8 }
}

/// For each control byte, the source of each stored byte.
static STORED: [[u8; 16]; 256] = {
    let mut sources = [[0; 16]; 256];
    let mut k = 0;
    while k < 256 * 16 {
        let (control, byte) = (k / 16, k % 16);
        let stored = QUADS[control].shuffle[byte];
        if stored < 0x80 {
            sources[control][stored as usize] = byte as u8;
        }
        k += 1;
    }
    sources
};

/// [`crate::Kernel::streamvbyte_data_len`].
#[target_feature(enable = "popcnt")]
pub(in crate::kernel) fn streamvbyte_data_len(controls: &[u8], n: usize) -> usize {
    scalar::streamvbyte::streamvbyte_data_len(controls, n)
}

decode_or_sum! {
    /// [`crate::Kernel::streamvbyte_decode`].
    "avx2,bmi1,bmi2,lzcnt,popcnt",
    fn streamvbyte_decode(controls, data) -> ()
}

/// Shuffles four values out of 16 bytes at a time. The last values, which may have fewer bytes after them,
/// are read one by one.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn decode<const SUM: bool>(controls: &[u8], mut data: &[u8], mut prev: u32, out: &mut [u32]) {
    let mut sums = PrefixSums::after(prev);
    let mut done = 0;
    for (pair, out) in controls.as_chunks::<2>().0.iter().zip(out.as_chunks_mut::<LANES>().0) {
        let [first, second] = pair.map(|control| &QUADS[usize::from(control)]);
        let next = usize::from(first.len);
        let (Some(low), Some(high)) = (data.first_chunk(), data.get(next..next + 16)) else { break };
        let high = high.first_chunk().expect("16 bytes");
        let bytes = _mm256_set_m128i(load_half(high), load_half(low));
        let shuffle = _mm256_set_m128i(load_half(&second.shuffle), load_half(&first.shuffle));
        let mut values = _mm256_shuffle_epi8(bytes, shuffle);
        if SUM {
            values = sums.next(values);
        }
        store_all(out, values);
        data = &data[next + usize::from(second.len)..];
        done += LANES;
    }
    if SUM && done > 0 {
        prev = out[done - 1];
    }
    scalar::streamvbyte::streamvbyte_decode(
        &controls[done / 4..],
        data,
        SUM.then_some(prev),
        &mut out[done..],
    );
}

/// The decoding of one control byte.
struct Quad {
    /// The source of each of 16 bytes, 0x80 for a zero byte.
    shuffle: [u8; 16],
    /// Bytes of the four values.
    len: u8,
}

static QUADS: [Quad; 256] = {
    let mut quads = [const { Quad { shuffle: [0x80; 16], len: 0 } }; 256];
    let mut k = 0;
    while k < 256 * 4 {
        let (control, value) = (k / 4, k % 4);
        let quad = &mut quads[control];
        let mut byte = 0;
        while byte <= control >> (2 * value) & 3 {
            quad.shuffle[4 * value + byte] = quad.len;
            quad.len += 1;
            byte += 1;
        }
        k += 1;
    }
    quads
};
