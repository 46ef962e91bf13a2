//! Blocks of values that the tests share. The generator has fixed seeds, so that failures are reproducible.

#![allow(dead_code, reason = "each test binary uses its own part")]

use tierdex_codec::{BLOCK, Codec};

/// The value before each sample: the start of a list.
pub const START: u32 = u32::MAX;

/// The `SplitMix64` generator.
pub struct Random(pub u64);

impl Random {
    /// 64 random bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `limit`, which is not zero.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// A value of at most `width` bits.
    pub fn value(&mut self, width: u32) -> u32 {
        (self.next() & ((1 << width) - 1)) as u32
    }
}

/// Prints the seed of a case if the case panics.
pub struct Seed(pub u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}", self.0);
        }
    }
}

/// `n` values of at most `width` bits, about one in `one_in` of them (none for 0) of up to `wide` bits.
pub fn mixed(random: &mut Random, n: usize, width: u32, one_in: u64, wide: u32) -> Vec<u32> {
    (0..n)
        .map(|_| {
            let exception = one_in > 0 && random.below(one_in) == 0;
            random.value(if exception { wide } else { width })
        })
        .collect()
}

/// Blocks of all sizes and of each kind: uniform, rare wide values, many wide values, constant, extreme.
pub fn blocks() -> Vec<Vec<u32>> {
    let mut random = Random(1);
    let mut blocks = Vec::new();
    for n in [1, 2, 3, 7, 8, 9, 31, 32, 33, 63, 64, 65, 100, 128, 200, 255, BLOCK] {
        for width in [0, 1, 2, 5, 8, 13, 17, 24, 31, 32] {
            for one_in in [0, 3, 10, 60] {
                blocks.push(mixed(&mut random, n, width, one_in, 32));
            }
            blocks.push(vec![random.value(width); n]);
        }
    }
    blocks
}

/// The encoded block, with [`START`] before it.
pub fn encode(codec: Codec, values: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec.encode(values, START, &mut bytes);
    bytes
}

/// The input of a delta codec with these gaps; the gaps themselves for another codec.
pub fn as_input(codec: Codec, gaps: &[u32]) -> Vec<u32> {
    let mut last = START;
    let sum = |gap: &u32| {
        last = last.wrapping_add(*gap).wrapping_add(1);
        last
    };
    if codec.is_delta() { gaps.iter().map(sum).collect() } else { gaps.to_vec() }
}

/// Decodes `n` values of a valid block; returns them and the bytes consumed.
#[track_caller]
pub fn decode(codec: Codec, bytes: &[u8], prev: u32, n: usize) -> (Vec<u32>, usize) {
    let mut out = vec![0x5555_5555; n];
    let used = codec.decode(bytes, prev, &mut out).expect("a block of the encoder decodes");
    (out, used)
}
