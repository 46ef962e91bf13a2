//! TurboVByte, a variable-byte format of TurboPFor (`vbenc32`), written from its description. The first byte
//! of a value tells its length:
//!
//! | value v | bytes |
//! |---|---|
//! | below 156 | `v` |
//! | below 16540 | `156 + (v - 156) / 256`, then the low byte of `v - 156` |
//! | below 2113692 | `220 + (v - 16540) / 65536`, then two bytes of `v - 16540`, the low one first |
//! | below 2^24 | 252, then three bytes of v, the low one first |
//! | others | 253, then four bytes of v |
//!
//! A list that begins with 255 has four bytes for each value instead. TurboPFor writes such a list if it
//! saves less than 32 bytes otherwise. Over differences less one, 254 stands for a list of consecutive
//! values, and the values after 255 are values, not differences.

use crate::codecs::{contender::Contender, list_group::ValueKind};

/// Smallest value that takes two bytes, three bytes, four bytes.
const TWO_BYTES_MIN: u32 = 156;
const THREE_BYTES_MIN: u32 = TWO_BYTES_MIN + (1 << 14);
const FOUR_BYTES_MIN: u32 = THREE_BYTES_MIN + (1 << 21);
/// Values of the first byte of a value, or of a list: smallest one of three bytes, of four, of five, a list
/// of consecutive values, a list of uncompressed values.
const FIRST_BYTE_OF_THREE: u8 = 220;
const FIRST_BYTE_OF_FOUR: u8 = 252;
const FIRST_BYTE_OF_FIVE: u8 = 253;
const FIRST_BYTE_CONSECUTIVE: u8 = 254;
const FIRST_BYTE_RAW: u8 = 255;

/// A list that saves fewer bytes than this is written uncompressed.
const SAVED_BYTES_MIN: usize = 32;

/// TurboVByte: over differences less one for document ids, and over values for frequencies.
pub(super) struct TurboVbyte {
    pub(super) delta: bool,
}

impl Contender for TurboVbyte {
    type Word = u8;

    fn codec(&self) -> String {
        if self.delta { "turbovbyte-delta" } else { "turbovbyte" }.to_string()
    }

    fn takes(&self, kind: ValueKind) -> bool {
        self.delta == (kind == ValueKind::Ids)
    }

    fn encode(&self, values: &[u32], prev: u32, out: &mut Vec<u8>) {
        if !self.delta {
            encode_list(values, values, out);
            return;
        }
        let differences = gaps_less_one(values, prev);
        let saves = SAVED_BYTES_MIN < 4 * values.len();
        if saves && differences.iter().all(|difference| *difference == 0) {
            out.push(FIRST_BYTE_CONSECUTIVE);
            return;
        }
        encode_list(&differences, values, out);
    }

    #[inline]
    fn decode(&self, bytes: &[u8], prev: u32, out: &mut [u32]) -> Option<usize> {
        match bytes.first() {
            Some(&FIRST_BYTE_CONSECUTIVE) if self.delta && !out.is_empty() => {
                out.fill(0);
                sum_differences(prev, out);
                Some(1)
            }
            first => {
                let raw = first == Some(&FIRST_BYTE_RAW);
                let consumed = decode_list(bytes, out)?;
                if self.delta && !raw {
                    sum_differences(prev, out);
                }
                Some(consumed)
            }
        }
    }
}

/// For each value, its difference to the value before it, less one. `prev` is before the first value.
pub(super) fn gaps_less_one(values: &[u32], prev: u32) -> Vec<u32> {
    let before = std::iter::once(&prev).chain(values);
    values.iter().zip(before).map(|(value, before)| value.wrapping_sub(*before).wrapping_sub(1)).collect()
}

/// The inverse of [`gaps_less_one`], in place.
#[inline]
pub(super) fn sum_differences(mut prev: u32, values: &mut [u32]) {
    for value in values {
        prev = prev.wrapping_add(*value).wrapping_add(1);
        *value = prev;
    }
}

/// Appends a list. `raw` has the values that are written if the list would save too little.
pub(super) fn encode_list(values: &[u32], raw: &[u32], out: &mut Vec<u8>) {
    let start = out.len();
    values.iter().for_each(|value| push_value(*value, out));
    if !values.is_empty() && out.len() - start + SAVED_BYTES_MIN > 4 * values.len() {
        out.truncate(start);
        out.push(FIRST_BYTE_RAW);
        raw.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
    }
}

fn push_value(value: u32, out: &mut Vec<u8>) {
    match value {
        0..TWO_BYTES_MIN => out.push(value as u8),
        TWO_BYTES_MIN..THREE_BYTES_MIN => {
            let rest = value - TWO_BYTES_MIN;
            out.extend_from_slice(&[TWO_BYTES_MIN as u8 + (rest >> 8) as u8, rest as u8]);
        }
        THREE_BYTES_MIN..FOUR_BYTES_MIN => {
            let [low, middle, high, _] = (value - THREE_BYTES_MIN).to_le_bytes();
            out.extend_from_slice(&[FIRST_BYTE_OF_THREE + high, low, middle]);
        }
        _ => {
            let bytes = value.to_le_bytes();
            let (first, count) =
                if value < 1 << 24 { (FIRST_BYTE_OF_FOUR, 3) } else { (FIRST_BYTE_OF_FIVE, 4) };
            out.push(first);
            out.extend_from_slice(&bytes[..count]);
        }
    }
}

/// Decodes a list of `out.len()` values and returns the bytes consumed. `None` if the bytes end early or are
/// no list.
#[inline]
pub(super) fn decode_list(bytes: &[u8], out: &mut [u32]) -> Option<usize> {
    if let Some((&FIRST_BYTE_RAW, rest)) = bytes.split_first().filter(|_| !out.is_empty()) {
        let raw = rest.get(..4 * out.len())?.as_chunks::<4>().0;
        out.iter_mut().zip(raw).for_each(|(value, bytes)| *value = u32::from_le_bytes(*bytes));
        return Some(1 + 4 * out.len());
    }
    let mut at = 0;
    for value in out {
        let first = *bytes.get(at)?;
        let byte = |n: usize| bytes.get(at + n).map(|byte| u32::from(*byte));
        let (found, length) = match first {
            0..156 => (u32::from(first), 1),
            156..FIRST_BYTE_OF_THREE => {
                (TWO_BYTES_MIN + (u32::from(first - TWO_BYTES_MIN as u8) << 8 | byte(1)?), 2)
            }
            FIRST_BYTE_OF_THREE..FIRST_BYTE_OF_FOUR => (
                THREE_BYTES_MIN + (u32::from(first - FIRST_BYTE_OF_THREE) << 16 | byte(2)? << 8 | byte(1)?),
                3,
            ),
            FIRST_BYTE_OF_FOUR => (byte(3)? << 16 | byte(2)? << 8 | byte(1)?, 4),
            FIRST_BYTE_OF_FIVE => (byte(4)? << 24 | byte(3)? << 16 | byte(2)? << 8 | byte(1)?, 5),
            FIRST_BYTE_CONSECUTIVE | FIRST_BYTE_RAW => return None,
        };
        *value = found;
        at += length;
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    fn encoded(codec: &TurboVbyte, values: &[u32], prev: u32) -> Vec<u8> {
        let mut out = Vec::new();
        codec.encode(values, prev, &mut out);
        out
    }

    #[test]
    fn bytes_are_those_of_turbopfor() {
        let plain = TurboVbyte { delta: false };
        let raw = [0xFF, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0];
        assert_eq!(encoded(&plain, &[1, 2, 3, 4], 0), raw);
        assert_eq!(encoded(&plain, &[7; 16], 0), [7; 16]);
        let steps: Vec<u32> = (0..31).map(|n| 37 * n).collect();
        let bytes = encoded(&plain, &steps, 0);
        assert_eq!(bytes[..8], [0x00, 0x25, 0x4A, 0x6F, 0x94, 0x9C, 0x1D, 0x9C]);
        let consecutive: Vec<u32> = (8..17).collect();
        assert_eq!(encoded(&TurboVbyte { delta: true }, &consecutive, 7), [0xFE]);
        let raw = [0xFF, 8, 0, 0, 0, 9, 0, 0, 0];
        assert_eq!(encoded(&TurboVbyte { delta: true }, &[8, 9], 7), raw);
    }

    #[test]
    fn values_around_each_length_round_trip() {
        let edges = [0, TWO_BYTES_MIN, THREE_BYTES_MIN, FOUR_BYTES_MIN, 1 << 24, 1 << 31];
        let mut values: Vec<u32> =
            edges.iter().flat_map(|edge| [edge.wrapping_sub(1), *edge, edge + 1]).collect();
        // Enough short values that the list is not written raw.
        values.extend([3; 64]);
        let plain = TurboVbyte { delta: false };
        let bytes = encoded(&plain, &values, 0);
        assert_ne!(bytes[0], FIRST_BYTE_RAW);
        let mut back = vec![0; values.len()];
        assert_eq!((plain.decode(&bytes, 0, &mut back), back), (Some(bytes.len()), values));
    }

    #[test]
    fn random_lists_round_trip_and_cut_ones_are_rejected() {
        let mut random = Random::new(3);
        for delta in [false, true] {
            let codec = TurboVbyte { delta };
            for (count, bits) in (0..70).flat_map(|count| [1, 8, 15, 22, 25, 32].map(|bits| (count, bits))) {
                let values: Vec<u32> = (0..count).map(|_| (random.bits() >> (64 - bits)) as u32).collect();
                let bytes = encoded(&codec, &values, 9);
                let mut back = vec![0; values.len()];
                assert_eq!(codec.decode(&bytes, 9, &mut back), Some(bytes.len()));
                assert_eq!(back, values);
                for len in 0..bytes.len() {
                    assert_eq!(codec.decode(&bytes[..len], 9, &mut back), None);
                }
            }
            let consecutive: Vec<u32> = (10..60).collect();
            let mut back = vec![0; 50];
            assert!(codec.decode(&encoded(&codec, &consecutive, 9), 9, &mut back).is_some());
            assert_eq!(back, consecutive);
            for _ in 0..500 {
                let wild: Vec<u8> = (0..random.below(60)).map(|_| random.bits() as u8 | 0x80).collect();
                // Any result is fine, as long as it is one.
                let _ = codec.decode(&wild, 0, &mut [0; 20]);
            }
        }
    }
}
