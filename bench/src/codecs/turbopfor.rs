//! TurboPFor's blocks of up to 256 values (`p4enc32`, `p4enc256v32`), with type 01: exceptions by variable
//! byte, written from their description. The upper two bits of the first byte are the type, the others the
//! width b of the low parts, which are packed [vertically](super::bit_packing) in a block of 256.
//!
//! | type | after the first byte |
//! |---|---|
//! | 00 plain | low parts |
//! | 10 bitmap | width of the exceptions, bitmap, packed high parts of the exceptions, low parts |
//! | 01 variable byte | number of exceptions, low parts, high parts as TurboVByte, positions |
//! | 11 constant | the value in ceil(b / 8) bytes |
//!
//! The encoder writes the type and width with the fewest bytes. There is only a scalar kernel: it shows the
//! size of the format, not the speed of TurboPFor's own code.

use crate::codecs::bit_packing::{VERTICAL_VALUES, low_mask, pack, packed_bytes, unpack};
use crate::codecs::turbovbyte::{decode_list, encode_list, gaps_less_one, sum_differences};
use crate::codecs::{contender::Contender, list_group::ValueKind};

/// TurboPFor: over differences less one for document ids, and over values for frequencies.
pub(super) struct TurboPfor {
    pub(super) delta: bool,
}

const TYPE_BITMAP: u8 = 0x80;
const TYPE_VARIABLE_BYTE: u8 = 0x40;
const TYPE_CONSTANT: u8 = 0xC0;

/// Type of a block, with the width in bits of the low parts where it has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockType {
    Plain(u32),
    Bitmap(u32),
    VariableByte(u32),
    Constant,
}

impl Contender for TurboPfor {
    type Word = u8;

    fn codec(&self) -> String {
        if self.delta { "turbopfor256-delta" } else { "turbopfor256" }.to_string()
    }

    fn takes(&self, kind: ValueKind) -> bool {
        self.delta == (kind == ValueKind::Ids)
    }

    fn block(&self) -> usize {
        VERTICAL_VALUES
    }

    fn encode(&self, values: &[u32], prev: u32, out: &mut Vec<u8>) {
        if self.delta { encode_block(&gaps_less_one(values, prev), out) } else { encode_block(values, out) }
    }

    #[inline]
    fn decode(&self, bytes: &[u8], prev: u32, out: &mut [u32]) -> Option<usize> {
        decode_block(bytes, self.delta.then_some(prev), out)
    }
}

fn bit_width(value: u32) -> u32 {
    u32::BITS - value.leading_zeros()
}

/// The type and width with the fewest bytes; if several have as few, the one with the largest width.
fn smallest_type(values: &[u32]) -> BlockType {
    let mut counts = [0usize; 33];
    values.iter().for_each(|value| counts[bit_width(*value) as usize] += 1);
    let widest = (0..=32).rev().find(|width| counts[*width as usize] > 0).unwrap_or(0);
    if widest > 0 && values.iter().all(|value| *value == values[0]) {
        return BlockType::Constant;
    }
    let n = values.len();
    let (mut best, mut bytes) = (BlockType::Plain(widest), packed_bytes(n, widest));
    for low in (0..widest).rev() {
        let over = || (low + 1..=widest).map(|width| (width - low, counts[width as usize]));
        let exceptions: usize = over().map(|(_, count)| count).sum();
        let bitmap = packed_bytes(n, low) + 1 + n.div_ceil(8) + packed_bytes(exceptions, widest - low);
        let variable = over().map(|(bits, count)| count * variable_bytes(bits)).sum::<usize>();
        let variable = if variable + 32 > 4 * exceptions { 1 + 4 * exceptions } else { variable };
        let variable = packed_bytes(n, low) + 1 + exceptions + variable;
        if bitmap < bytes {
            (best, bytes) = (BlockType::Bitmap(low), bitmap);
        }
        if variable < bytes && exceptions < 256 {
            (best, bytes) = (BlockType::VariableByte(low), variable);
        }
    }
    best
}

/// Most bytes of a value of `bits` bits in TurboVByte.
fn variable_bytes(bits: u32) -> usize {
    match bits {
        0..=7 => 1,
        8..=14 => 2,
        15..=21 => 3,
        22..=24 => 4,
        _ => 5,
    }
}

fn encode_block(values: &[u32], out: &mut Vec<u8>) {
    let plan = smallest_type(values);
    let low_parts = |low: u32, out: &mut Vec<u8>| {
        pack(values.iter().map(|value| value & low_mask(low)), low, true, out);
    };
    let exceptions = |low: u32| values.iter().enumerate().filter(move |(_, value)| bit_width(**value) > low);
    match plan {
        BlockType::Plain(low) => {
            out.push(low as u8);
            low_parts(low, out);
        }
        BlockType::Constant => {
            let bits = bit_width(values[0]);
            out.push(TYPE_CONSTANT | bits as u8);
            out.extend_from_slice(&values[0].to_le_bytes()[..bits.div_ceil(8) as usize]);
        }
        BlockType::Bitmap(low) => {
            let high: Vec<u32> = exceptions(low).map(|(_, value)| value >> low).collect();
            let bits = high.iter().map(|value| bit_width(*value)).max().unwrap_or(0);
            out.extend_from_slice(&[TYPE_BITMAP | low as u8, bits as u8]);
            let start = out.len();
            out.resize(start + values.len().div_ceil(8), 0);
            exceptions(low).for_each(|(at, _)| out[start + at / 8] |= 1 << (at % 8));
            pack(high.into_iter(), bits, false, out);
            low_parts(low, out);
        }
        BlockType::VariableByte(low) => {
            let high: Vec<u32> = exceptions(low).map(|(_, value)| value >> low).collect();
            out.extend_from_slice(&[TYPE_VARIABLE_BYTE | low as u8, high.len() as u8]);
            low_parts(low, out);
            encode_list(&high, &high, out);
            out.extend(exceptions(low).map(|(at, _)| at as u8));
        }
    }
}

/// Decodes a block; with `prev` also the sums of differences less one. Returns the bytes consumed, or `None`
/// if the bytes are not a block of `out.len()` values.
#[inline]
fn decode_block(bytes: &[u8], prev: Option<u32>, out: &mut [u32]) -> Option<usize> {
    if out.len() > VERTICAL_VALUES {
        return None;
    }
    let (&first, rest) = bytes.split_first()?;
    let low = u32::from(first & 0x3F);
    if low > 32 {
        return None;
    }
    let consumed = match first & 0xC0 {
        TYPE_CONSTANT => {
            let value = rest.get(..low.div_ceil(8) as usize)?;
            out.fill(value.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte)));
            value.len()
        }
        TYPE_BITMAP => decode_bitmap(rest, low, out)?,
        TYPE_VARIABLE_BYTE => decode_variable_byte(rest, low, out)?,
        _ => unpack(rest, low, true, out)?,
    };
    if let Some(prev) = prev {
        sum_differences(prev, out);
    }
    Some(1 + consumed)
}

#[inline]
fn decode_bitmap(bytes: &[u8], low: u32, out: &mut [u32]) -> Option<usize> {
    let (&bits, rest) = bytes.split_first()?;
    let bits = u32::from(bits);
    if low + bits > 32 {
        return None;
    }
    let bitmap = rest.get(..out.len().div_ceil(8))?;
    let mut high = [0; VERTICAL_VALUES];
    let exceptions = bitmap.iter().map(|byte| byte.count_ones() as usize).sum::<usize>();
    let mut at = bitmap.len();
    at += unpack(&rest[at..], bits, false, high.get_mut(..exceptions)?)?;
    at += unpack(&rest[at..], low, true, out)?;
    let mut high = high.iter();
    for (bits, values) in bitmap.chunks(8).zip(out.chunks_mut(64)) {
        let mut left = bits.iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
        while left != 0 {
            let value = values.get_mut(left.trailing_zeros() as usize)?;
            *value |= high.next()?.checked_shl(low).unwrap_or(0);
            left &= left - 1;
        }
    }
    Some(1 + at)
}

#[inline]
fn decode_variable_byte(bytes: &[u8], low: u32, out: &mut [u32]) -> Option<usize> {
    let (&exceptions, rest) = bytes.split_first()?;
    let mut high = [0; VERTICAL_VALUES];
    let high = high.get_mut(..usize::from(exceptions))?;
    let mut at = unpack(rest, low, true, out)?;
    at += decode_list(&rest[at..], high)?;
    let positions = rest.get(at..at + high.len())?;
    for (position, high) in positions.iter().zip(high) {
        *out.get_mut(usize::from(*position))? |= high.checked_shl(low).unwrap_or(0);
    }
    Some(1 + at + positions.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    fn encoded(values: &[u32]) -> Vec<u8> {
        let mut out = Vec::new();
        encode_block(values, &mut out);
        out
    }

    fn decoded(bytes: &[u8], count: usize) -> Option<(usize, Vec<u32>)> {
        let mut out = vec![7; count];
        decode_block(bytes, None, &mut out).map(|consumed| (consumed, out))
    }

    #[test]
    fn blocks_of_turbopfor_are_read() {
        let mut exception = (0..64).map(|n| n % 4).collect::<Vec<u32>>();
        exception[40] = 1_000_000;
        let mut four_exceptions = vec![0; 256];
        four_exceptions[..2].copy_from_slice(&[100_000, 100_001]);
        four_exceptions[254..].copy_from_slice(&[100_254, 100_255]);
        let repeated = [vec![0x42, 1], vec![0xE4; 16], vec![0xFF, 0x90, 0xD0, 3, 0, 0x28]].concat();
        let blocks: [(&[u32], &[u8]); 8] = [
            (&[0; 256], &[0x00]),
            (&[1; 8], &[0xC1, 0x01]),
            (&[u32::MAX], &[0xE0, 0xFF, 0xFF, 0xFF, 0xFF]),
            (&[0, 1, 2, 3, 4, 5, 6, 7, 8], &[0x04, 0x10, 0x32, 0x54, 0x76, 0x08]),
            (&[1, 2, 3, 4], &[0x03, 0xD1, 0x08]),
            (
                &[1, 258, 66051, 16_909_060],
                &[0x8A, 0x0F, 0x0C, 0x40, 0x00, 0x40, 0x20, 0x01, 0x08, 0x34, 0x20, 0xC1],
            ),
            (&exception, &repeated),
            (
                &four_exceptions,
                &[
                    0x40, 0x04, 0xFF, 0xA0, 0x86, 1, 0, 0xA1, 0x86, 1, 0, 0x9E, 0x87, 1, 0, 0x9F, 0x87, 1, 0,
                    0, 1, 0xFE, 0xFF,
                ],
            ),
        ];
        for (values, bytes) in blocks {
            assert_eq!(decoded(bytes, values.len()), Some((bytes.len(), values.to_vec())));
            // Our encoder needs no more bytes.
            assert!(encoded(values).len() <= bytes.len(), "{values:?}");
        }
    }

    /// Values of `low` bits, of which every `every`-th has `high` bits.
    fn values(random: &mut Random, count: usize, (low, high, every): (u32, u32, usize)) -> Vec<u32> {
        let value = |at: usize| {
            let bits = if (at + 1).is_multiple_of(every) { high } else { low };
            ((random.bits() >> 32) << bits >> 32) as u32
        };
        (0..count).map(value).collect()
    }

    #[test]
    fn all_types_and_lengths_round_trip_and_cut_blocks_are_rejected() {
        let mut random = Random::new(5);
        let mut types = [0; 4];
        for count in (1..40).chain([127, 128, 129, 255, 256]) {
            for shape in [
                (0, 0, 1),
                (3, 3, 1),
                (2, 9, 5),
                (4, 20, 40),
                (1, 32, 30),
                (7, 14, 3),
                (32, 32, 1),
                (5, 30, 7),
            ] {
                let values = values(&mut random, count, shape);
                let bytes = encoded(&values);
                types[usize::from(bytes[0] >> 6)] += 1;
                assert_eq!(decoded(&bytes, count), Some((bytes.len(), values)), "{count} {shape:?}");
                for len in 0..bytes.len() {
                    assert_eq!(decoded(&bytes[..len], count), None);
                }
            }
        }
        assert!(types.iter().all(|blocks| *blocks > 0), "{types:?}");
    }

    #[test]
    fn lists_of_many_blocks_round_trip() {
        let mut random = Random::new(6);
        let frequencies = values(&mut random, 700, (4, 20, 40));
        let ids: Vec<u32> = (1..=700).map(|n| n * 1000 + random.below(900)).collect();
        for codec in [true, false].map(|delta| TurboPfor { delta }) {
            let list = if codec.delta { &ids } else { &frequencies };
            let (mut bytes, mut prev) = (Vec::new(), u32::MAX);
            for block in list.chunks(codec.block()) {
                codec.encode(block, prev, &mut bytes);
                prev = block[block.len() - 1];
            }
            let (mut at, mut prev, mut back) = (0, u32::MAX, vec![0; 700]);
            for block in back.chunks_mut(codec.block()) {
                at += codec.decode(&bytes[at..], prev, block).unwrap();
                prev = block[block.len() - 1];
            }
            assert_eq!((at, &back), (bytes.len(), list));
        }
    }

    #[test]
    fn wild_bytes_are_decoded_or_rejected_without_a_panic() {
        let mut random = Random::new(7);
        for _ in 0..5000 {
            let mut wild: Vec<u8> = (0..random.below(300)).map(|_| random.bits() as u8).collect();
            // Small counts and widths reach the later parts more often.
            wild.iter_mut().take(2).for_each(|byte| *byte &= 0xCF);
            for count in [1, 9, 100, 256] {
                let _ = decoded(&wild, count);
            }
        }
        assert_eq!(decoded(&[0; 9], 257), None);
    }
}
