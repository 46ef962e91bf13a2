//! Tests of `VByte` decoders that look up a dozen continuation bits at once.
//!
//! If no value ends within these bits, such a decoder may make no progress and never end. Values that cross
//! the end of its window, and the last values of a block, have code paths of their own.

mod agree;

use tierdex_codec::{BLOCK, Codec, DecodeError};

const VBYTE_CODECS: [Codec; 2] = [Codec::VByte, Codec::VByteDelta];

/// The tested values are at all offsets up to this one, so at any offset in the windows of 16, 32 and 64
/// bytes that vector loops load.
const OFFSET_MAX: usize = 64;

/// Number of valid values after the tested bytes.
const VALUES_AFTER: usize = 100;

/// Appends a value as the format defines it.
fn append_value(mut value: u32, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// The values of a delta codec with these gaps from 0 on; the gaps themselves for another codec.
fn values_of_gaps_from_0(codec: Codec, gaps: &[u32]) -> Vec<u32> {
    let mut last = 0u32;
    let sum = |gap: &u32| {
        last = last.wrapping_add(*gap);
        last
    };
    if codec.is_delta() { gaps.iter().map(sum).collect() } else { gaps.to_vec() }
}

/// Checks that every kernel decodes `gaps` from the front of `bytes`.
#[track_caller]
fn check_values(bytes: &[u8], gaps: &[u32], used: usize) {
    for codec in VBYTE_CODECS {
        let decoded = agree::decode(codec, bytes, 0, gaps.len());
        let expect = Ok((values_of_gaps_from_0(codec, gaps), used));
        assert_eq!(decoded, expect, "{}, {} values of {bytes:02x?}", codec.name(), gaps.len());
    }
}

/// Checks that every kernel rejects `n` values of `bytes`.
#[track_caller]
fn check_error(bytes: &[u8], n: usize, error: DecodeError) {
    for codec in VBYTE_CODECS {
        let decoded = agree::decode(codec, bytes, 0, n);
        assert_eq!(decoded, Err(error), "{}, {n} values of {bytes:02x?}", codec.name());
    }
}

#[test]
fn runs_of_continuation_bytes_are_invalid() {
    for good in 0..=OFFSET_MAX {
        for run in 5..=64 {
            for byte in [0x80, 0xff] {
                let mut bytes = vec![1; good];
                bytes.resize(good + run, byte);
                check_error(&bytes, good + 1, DecodeError::Invalid);
                check_error(&bytes, BLOCK, DecodeError::Invalid);
                bytes.resize(good + run + VALUES_AFTER, 1);
                check_error(&bytes, good + 1, DecodeError::Invalid);
                check_error(&bytes, BLOCK, DecodeError::Invalid);
                check_values(&bytes, &vec![1; good], good);
            }
        }
    }
}

#[test]
fn runs_after_longer_values_are_invalid() {
    for len in 2..=5 {
        for good in 0..=OFFSET_MAX / len {
            for run in 5..=64 {
                let value = 1 << (7 * (len - 1));
                let mut bytes = Vec::new();
                (0..good).for_each(|_| append_value(value, &mut bytes));
                let used = bytes.len();
                bytes.resize(used + run, 0x80);
                bytes.resize(used + run + VALUES_AFTER, 1);
                check_error(&bytes, good + 1, DecodeError::Invalid);
                check_error(&bytes, BLOCK, DecodeError::Invalid);
                check_values(&bytes, &vec![value; good], used);
            }
        }
    }
}

#[test]
fn a_value_without_a_last_byte_is_truncated() {
    for good in 0..=OFFSET_MAX {
        for run in 0..=4 {
            for byte in [0x80, 0xff] {
                let mut bytes = vec![1; good];
                bytes.resize(good + run, byte);
                check_error(&bytes, good + 1, DecodeError::Truncated);
                check_error(&bytes, BLOCK, DecodeError::Truncated);
            }
        }
    }
}

#[test]
fn fifth_bytes_beyond_32_bits_are_invalid() {
    for good in 0..=OFFSET_MAX {
        for last in 0..=u8::MAX {
            let mut bytes = vec![1; good];
            bytes.extend([0x80, 0x80, 0x80, 0x80, last]);
            let mut gaps = vec![1; good];
            gaps.push(u32::from(last) << 28);
            for after in [0, VALUES_AFTER] {
                bytes.resize(good + 5 + after, 1);
                match last {
                    0..=0x0f => check_values(&bytes, &gaps, good + 5),
                    _ => check_error(&bytes, good + 1, DecodeError::Invalid),
                }
            }
        }
    }
}

#[test]
fn longer_encodings_of_small_values_are_accepted() {
    for good in 0..=OFFSET_MAX {
        for len in 2..=5 {
            let mut bytes = vec![1; good];
            bytes.push(0x85);
            bytes.resize(good + len - 1, 0x80);
            bytes.push(0);
            bytes.resize(good + len + VALUES_AFTER, 1);
            let gaps = [&vec![1; good][..], &[5]].concat();
            check_values(&bytes, &gaps, good + len);
        }
    }
}

#[test]
fn every_mask_of_twelve_bytes_decodes_as_by_the_scalar_kernel() {
    for offset in [0, 1, 4, 7, 15, 16, 20, 31, 40, 52, 63] {
        for mask in 0..1u32 << 12 {
            let window = |k: u32| (k as u8 + 1) | ((mask >> k & 1) as u8) << 7;
            let mut bytes = vec![1; offset];
            bytes.extend((0..16).map(window));
            bytes.resize(offset + 16 + VALUES_AFTER, 3);
            let good = mask & mask >> 1 & mask >> 2 & mask >> 3 == 0;
            for n in [1, 2, 4, 6, 8, 16, 60] {
                for codec in VBYTE_CODECS {
                    let decoded = agree::decode_hostile(codec, &bytes, 9, offset + n);
                    assert!(decoded.is_ok() || !good, "{mask:03x} at {offset}: {decoded:?}");
                }
            }
        }
    }
}

/// Every combination of lengths, 1 to 5 bytes, of six consecutive values.
fn combinations_of_lengths() -> impl Iterator<Item = [usize; 6]> {
    (0..5usize.pow(6)).map(|mix| [1, 5, 25, 125, 625, 3125].map(|power| mix / power % 5 + 1))
}

/// The smallest value of `len` bytes, the largest, or one between.
fn value_of_length(len: usize, kind: usize) -> u32 {
    let (smallest, largest) = (1 << (7 * (len - 1)) & !1, u32::MAX >> 32usize.saturating_sub(7 * len));
    [smallest, largest, smallest + (largest - smallest) / 3][kind % 3]
}

#[test]
fn every_combination_of_lengths_is_decoded_at_every_offset() {
    for (k, mix) in combinations_of_lengths().enumerate() {
        let mut window = Vec::new();
        let values: Vec<u32> = mix.iter().enumerate().map(|(i, len)| value_of_length(*len, k + i)).collect();
        values.iter().for_each(|value| append_value(*value, &mut window));
        for offset in 0..=OFFSET_MAX {
            let gaps = [&vec![1; offset][..], &values].concat();
            let mut bytes = [&vec![1; offset][..], &window].concat();
            let used = bytes.len();
            check_values(&bytes, &gaps, used);
            bytes.resize(used + VALUES_AFTER, 0x81);
            check_values(&bytes, &gaps, used);
        }
    }
}

#[test]
fn every_count_is_exact() {
    for (k, mix) in combinations_of_lengths().enumerate().step_by(61) {
        let gaps: Vec<u32> = (0..BLOCK + 64).map(|i| value_of_length(mix[i % 6], k + i / 6)).collect();
        let (mut bytes, mut ends) = (Vec::new(), vec![0]);
        for gap in &gaps {
            append_value(*gap, &mut bytes);
            ends.push(bytes.len());
        }
        for n in 0..=BLOCK {
            check_values(&bytes, &gaps[..n], ends[n]);
            check_values(&bytes[..ends[n]], &gaps[..n], ends[n]);
        }
    }
}
