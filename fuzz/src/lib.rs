//! The bodies of the fuzz targets: bytes to a codec and what is done with it.
//!
//! You have the bytes that a fuzzer made up; all kernels must agree on what they mean. Nothing here knows the
//! fuzzer, so that an ordinary test can run the same bodies.

#[path = "../../crates/codec/tests/agree/mod.rs"]
mod agree;

use tierdex_codec::{BLOCK, Codec};

/// Values that a script can name by one byte.
const EXTREMES: [u32; 8] =
    [0, 1, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, u32::MAX - 2, u32::MAX - 1, u32::MAX];

/// Decodes whatever the bytes are; whether they were a block.
///
/// ```text
/// [codec] [number of values less one] [prev u32] the block
/// ```
pub fn hostile(data: &[u8]) -> bool {
    let Some((head, block)) = data.split_first_chunk::<6>() else { return false };
    let [codec, count, prev @ ..] = *head;
    agree::hostile(codec_of(codec), block, u32::from_le_bytes(prev), usize::from(count) + 1).is_ok()
}

/// Encodes the values that a script describes, and decodes them; the number of values.
///
/// ```text
/// [codec] [prev u32] the script
/// ```
pub fn round_trip(data: &[u8]) -> usize {
    let Some((head, script)) = data.split_first_chunk::<5>() else { return 0 };
    let [codec, prev @ ..] = *head;
    let (prev, mut values) = (u32::from_le_bytes(prev), Vec::new());
    let mut script = Script { rest: script, last: prev };
    while values.len() < BLOCK && script.step(&mut values) {}
    values.truncate(BLOCK);
    agree::round_trip(codec_of(codec), &values, prev);
    values.len()
}

/// Any byte names a codec.
fn codec_of(byte: u8) -> Codec {
    Codec::ALL[usize::from(byte) % Codec::ALL.len()]
}

/// Values in few bytes. Each step has a byte, its kind in three bits and its number of values less one in five:
///
/// ```text
/// 0  one byte, repeated           4  four bytes, repeated
/// 1  one byte a value             5  rising by one byte a value, and 1
/// 2  two bytes a value            6  falling by one byte a value
/// 3  four bytes a value           7  extremes, one byte a value
/// ```
struct Script<'a> {
    rest: &'a [u8],
    last: u32,
}

impl Script<'_> {
    /// Appends the values of a step; false if there is none.
    fn step(&mut self, values: &mut Vec<u32>) -> bool {
        let Some((step, rest)) = self.rest.split_first() else { return false };
        self.rest = rest;
        let (kind, count) = (step >> 5, step % 32 + 1);
        let repeated = match kind {
            0 => self.take(1),
            4 => self.take(4),
            _ => 0,
        };
        for _ in 0..count {
            self.last = match kind {
                0 | 4 => repeated,
                1 => self.take(1),
                2 => self.take(2),
                3 => self.take(4),
                5 => self.last.wrapping_add(self.take(1)).wrapping_add(1),
                6 => self.last.wrapping_sub(self.take(1)),
                _ => EXTREMES[self.take(1) as usize % EXTREMES.len()],
            };
            values.push(self.last);
        }
        true
    }

    /// The next bytes as a number; those behind the end are zero.
    fn take(&mut self, len: usize) -> u32 {
        let (bytes, rest) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = rest;
        bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
    }
}
