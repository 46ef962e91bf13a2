//! `StreamVByte`: eight values, two control bytes, at a time.

use super::memory::{LANES, Vector, load_all, load_half, store_all};
use super::sums::PrefixSums;
use crate::kernel::scalar;
use core::arch::x86_64::*;

/// Implements [`crate::Kernel::streamvbyte_encode`].
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(crate) fn streamvbyte_encode(values: &[u32], controls: &mut [u8], data: &mut [u8]) -> usize {
    let (groups, rest) = values.as_chunks::<LANES>();
    let (pairs, rest_of_controls) = controls.split_at_mut(2 * groups.len());
    let mut len = 0;
    for (values, controls) in groups.iter().zip(pairs.as_chunks_mut::<2>().0) {
        let values = load_all(values);
        *controls = control_bytes(values);
        // Each value before has at most four bytes, so there are 16 for these four.
        len += store_bytes(&mut data[len..], _mm256_castsi256_si128(values), controls[0]);
        len += store_bytes(&mut data[len..], _mm256_extracti128_si256::<1>(values), controls[1]);
    }
    len + scalar::streamvbyte::streamvbyte_encode(rest, rest_of_controls, &mut data[len..])
}

/// The two control bytes of eight values. The code of a value is the position of its highest nonzero byte.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn control_bytes(values: Vector) -> [u8; 2] {
    let zeros = _mm256_cmpeq_epi8(values, _mm256_setzero_si256());
    let pairs = (!_mm256_movemask_epi8(zeros)).to_le_bytes().map(|pair| CODES_OF_MASK[usize::from(pair)]);
    [pairs[0] | pairs[1] << 4, pairs[2] | pairs[3] << 4]
}

/// Stores the bytes of four values that the control byte tells, and returns their number. All 16 bytes may be
/// overwritten.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store_bytes(out: &mut [u8], values: __m128i, control: u8) -> usize {
    let out: &mut [u8; 16] = out.first_chunk_mut().expect("space for a vector");
    let bytes = _mm_shuffle_epi8(values, load_half(&STORED_SOURCES[usize::from(control)]));
    // SAFETY: The array has 16 bytes.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), bytes) };
    usize::from(DATA_LENS[usize::from(control)])
}

/// The length codes of two values, for each mask of those of their eight bytes that are not zero.
static CODES_OF_MASK: [u8; 256] = {
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

/// For each control byte, the index of the value byte that is stored at each position.
static STORED_SOURCES: [[u8; 16]; 256] = {
    let mut sources = [[0; 16]; 256];
    let mut k = 0;
    while k < 256 * 16 {
        let (control, byte) = (k / 16, k % 16);
        let stored = SHUFFLES.0[control][byte];
        if stored < 0x80 {
            sources[control][stored as usize] = byte as u8;
        }
        k += 1;
    }
    sources
};

decode_or_sum! {
    /// Implements [`crate::Kernel::streamvbyte_decode`].
    "avx2,bmi1,bmi2,lzcnt,popcnt",
    fn streamvbyte_decode(controls, data) -> ()
}

/// Shuffles four values out of 16 bytes at a time. The last data bytes are copied, so that 32 can be
/// loaded; values after the last full group of eight are read one by one.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn decode_values<const SUM: bool>(controls: &[u8], data: &[u8], mut prev: u32, out: &mut [u32]) {
    let mut sums = PrefixSums::after(prev);
    let (pairs, _) = controls.as_chunks::<2>();
    let (groups, _) = out.as_chunks_mut::<LANES>();
    let (mut done, mut used) = decode_groups::<SUM>(pairs, data, &mut sums, groups);
    if done < groups.len() {
        let mut last = [0; 2 * LOADED_BYTES];
        let rest = &data[used..];
        let len = rest.len().min(LOADED_BYTES);
        last[..len].copy_from_slice(&rest[..len]);
        let (more, bytes) = decode_groups::<SUM>(&pairs[done..], &last, &mut sums, &mut groups[done..]);
        (done, used) = (done + more, used + bytes);
    }
    done *= LANES;
    if SUM && done > 0 {
        prev = out[done - 1];
    }
    scalar::streamvbyte::streamvbyte_decode(
        &controls[done / 4..],
        &data[used..],
        SUM.then_some(prev),
        &mut out[done..],
    );
}

/// Bytes that are loaded to decode eight values.
const LOADED_BYTES: usize = 4 * LANES;

/// Decodes groups of eight values as long as there are [`LOADED_BYTES`] bytes of data. Returns the number of
/// groups and of bytes.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn decode_groups<const SUM: bool>(
    controls: &[[u8; 2]],
    data: &[u8],
    sums: &mut PrefixSums,
    out: &mut [[u32; LANES]],
) -> (usize, usize) {
    let (mut done, mut used) = (0, 0);
    for (pair, out) in controls.iter().zip(out) {
        let Some(next) = data[used..].first_chunk::<LOADED_BYTES>() else { break };
        let [first, second] = pair.map(usize::from);
        let (first_len, second_len) = (usize::from(DATA_LENS[first]), usize::from(DATA_LENS[second]));
        let low = next.first_chunk().expect("16 of 32 bytes");
        let high = next.as_ptr().wrapping_add(first_len);
        // SAFETY: Four values have at most 16 bytes, so there are 16 after them.
        let high = unsafe { _mm_loadu_si128(high.cast()) };
        let bytes = _mm256_set_m128i(high, load_half(low));
        let shuffle = _mm256_set_m128i(load_half(&SHUFFLES.0[second]), load_half(&SHUFFLES.0[first]));
        let mut values = _mm256_shuffle_epi8(bytes, shuffle);
        if SUM {
            values = sums.next(values);
        }
        store_all(out, values);
        used += first_len + second_len;
        done += 1;
    }
    (done, used)
}

/// For each control byte, the index of the stored byte that each byte of the four values has; 0x80 for a zero
/// byte. Aligned, so that no load crosses a cache line.
#[repr(align(64))]
struct ShuffleTable([[u8; 16]; 256]);

/// For each control byte, the number of stored bytes of its four values.
static DATA_LENS: [u8; 256] = QUAD_TABLES.1;

static SHUFFLES: ShuffleTable = ShuffleTable(QUAD_TABLES.0);

const QUAD_TABLES: ([[u8; 16]; 256], [u8; 256]) = {
    let (mut shuffles, mut lens) = ([[0x80; 16]; 256], [0; 256]);
    let mut k = 0;
    while k < 256 * 4 {
        let (control, value) = (k / 4, k % 4);
        let mut byte = 0;
        while byte <= control >> (2 * value) & 3 {
            shuffles[control][4 * value + byte] = lens[control];
            lens[control] += 1;
            byte += 1;
        }
        k += 1;
    }
    (shuffles, lens)
};
