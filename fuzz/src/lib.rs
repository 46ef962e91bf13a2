//! The bodies of the fuzz targets for codecs.
//!
//! Each body interprets its input bytes as a codec and a block or values, and checks that all kernels agree.
//! Nothing here depends on the fuzzer, so that an ordinary test can run the same bodies.

#[path = "../../crates/codec/tests/agree/mod.rs"]
mod agree;

use tierdex_codec::{BLOCK, Codec};

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
