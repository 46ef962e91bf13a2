//! The bodies of the fuzz targets for codecs.
//!
//! Each body interprets its input bytes as a codec and a block or values, and checks that all kernels agree.
//! Nothing here depends on the fuzzer, so that an ordinary test can run the same bodies.

#[path = "../../crates/codec/tests/agree/mod.rs"]
mod agree;

use std::cmp::Ordering;
use tierdex_codec::{BLOCK, Codec, DecodeError, WideBlock};

/// Values that one byte of a script can select: arithmetic wraps or changes its sign at them.
const EXTREME_VALUES: [u32; 8] =
    [0, 1, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, u32::MAX - 2, u32::MAX - 1, u32::MAX];

/// Decodes any bytes by all kernels. Returns whether they were a valid block.
///
/// ```text
/// [codec] [number of values less 1] [prev u32] the block
/// ```
pub fn check_hostile_bytes(data: &[u8]) -> bool {
    let Some((head, block)) = data.split_first_chunk::<6>() else { return false };
    let [codec, count, prev @ ..] = *head;
    agree::decode_hostile(choose_codec(codec), block, u32::from_le_bytes(prev), usize::from(count) + 1)
        .is_ok()
}

/// Reads any bytes as a block of 64-bit values by all kernels, and compares its values with a range. Returns
/// whether they were a block; bytes after a block are an error, and then cut off.
///
/// ```text
/// [width mod 80] [number of values mod 260 u16] [smallest u64] [low u64] [high u64] the block
/// ```
pub fn check_wide_bytes(data: &[u8]) -> bool {
    let Some((&[width, len @ ..], rest)) = data.split_first_chunk::<3>() else { return false };
    let Some((numbers, bytes)) = rest.split_first_chunk::<24>() else { return false };
    let number =
        |k: usize| numbers[8 * k..8 * k + 8].iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
    let (smallest, low, high) = (number(0), number(1), number(2));
    let block = WideBlock { smallest, width: width % 80, len: usize::from(u16::from_le_bytes(len) % 260) };
    let valid = block.width <= 64 && (1..=BLOCK).contains(&block.len);
    let expect = match bytes.len().cmp(&block.byte_len()) {
        Ordering::Less if valid => Some(DecodeError::Truncated),
        Ordering::Equal if valid => None,
        _ => Some(DecodeError::Invalid),
    };
    assert_eq!(block.view(bytes).err(), expect, "{block:?}, {} bytes", bytes.len());
    let bytes = &bytes[..bytes.len().min(block.byte_len())];
    let Ok(values) = agree::wide::decode(block, bytes) else { return false };
    let near = smallest.wrapping_add(low);
    for (low, high) in [(low, high), (smallest, near), (near, high), (near, near)] {
        agree::wide::compare(block, bytes, &values, low, high);
    }
    agree::wide::compare(block, bytes, &values, values[0], values[values.len() - 1]);
    true
}

/// Encodes and decodes by all kernels the values that a script describes. Returns their number.
///
/// ```text
/// [codec] [prev u32] the script
/// ```
pub fn check_round_trip(data: &[u8]) -> usize {
    let Some((head, script)) = data.split_first_chunk::<5>() else { return 0 };
    let [codec, prev @ ..] = *head;
    let (prev, mut values) = (u32::from_le_bytes(prev), Vec::new());
    let mut script = ValueScript { rest: script, last: prev };
    while values.len() < BLOCK && script.run_step(&mut values) {}
    values.truncate(BLOCK);
    agree::round_trip(choose_codec(codec), &values, prev);
    values.len()
}

/// The codec that a byte selects.
fn choose_codec(byte: u8) -> Codec {
    Codec::ALL[usize::from(byte) % Codec::ALL.len()]
}

/// A compact description of values. A step starts with a byte: its kind in the high three bits and its
/// number of values less 1 in the low five.
///
/// ```text
/// 0  one byte, repeated           4  four bytes, repeated
/// 1  one byte a value             5  rising by one byte a value, and 1
/// 2  two bytes a value            6  falling by one byte a value
/// 3  four bytes a value           7  extremes, one byte a value
/// ```
struct ValueScript<'a> {
    rest: &'a [u8],
    last: u32,
}

impl ValueScript<'_> {
    /// Appends the values of a step; `false` at the end of the script.
    fn run_step(&mut self, values: &mut Vec<u32>) -> bool {
        let Some((step, rest)) = self.rest.split_first() else { return false };
        self.rest = rest;
        let (kind, count) = (step >> 5, step % 32 + 1);
        let repeated = match kind {
            0 => self.take_number(1),
            4 => self.take_number(4),
            _ => 0,
        };
        for _ in 0..count {
            self.last = match kind {
                0 | 4 => repeated,
                1 => self.take_number(1),
                2 => self.take_number(2),
                3 => self.take_number(4),
                5 => self.last.wrapping_add(self.take_number(1)).wrapping_add(1),
                6 => self.last.wrapping_sub(self.take_number(1)),
                _ => EXTREME_VALUES[self.take_number(1) as usize % EXTREME_VALUES.len()],
            };
            values.push(self.last);
        }
        true
    }

    /// The next bytes as a number; bytes after the end are zero.
    fn take_number(&mut self, len: usize) -> u32 {
        let (bytes, rest) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = rest;
        bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
    }
}
