//! Blocks of values that the tests share. The generator has fixed seeds, so that failures are reproducible.

#![allow(dead_code, reason = "each test binary uses its own part")]

use tierdex_codec::{BLOCK, Codec, Kernel};

/// The value before the first value of a list, which means -1.
pub const VALUE_BEFORE_LIST: u32 = u32::MAX;

/// The random number generator `SplitMix64`. Its state is the seed at first.
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

/// `n` random values of at most `width` bits, of which about one in `one_in` (none for 0) has up to `wide`
/// bits.
pub fn random_values(random: &mut Random, n: usize, width: u32, one_in: u64, wide: u32) -> Vec<u32> {
    (0..n)
        .map(|_| {
            let exception = one_in > 0 && random.below(one_in) == 0;
            random.value(if exception { wide } else { width })
        })
        .collect()
}

/// Blocks of many sizes and of each kind: values of one width, few and many wider ones, equal values.
pub fn sample_blocks() -> Vec<Vec<u32>> {
    let mut random = Random(1);
    let mut blocks = Vec::new();
    for n in [1, 2, 3, 7, 8, 9, 31, 32, 33, 63, 64, 65, 100, 128, 200, 255, BLOCK] {
        for width in [0, 1, 2, 5, 8, 13, 17, 24, 31, 32] {
            for one_in in [0, 3, 10, 60] {
                blocks.push(random_values(&mut random, n, width, one_in, 32));
            }
            blocks.push(vec![random.value(width); n]);
        }
    }
    blocks
}

/// The encoded block, with [`VALUE_BEFORE_LIST`] before it.
pub fn encode(codec: Codec, values: &[u32]) -> Vec<u8> {
    encode_list(Kernel::active(), codec, values, VALUE_BEFORE_LIST)
}

/// The encoded blocks of a list of any length; `last` is the value before the first one.
pub fn encode_list(kernel: Kernel, codec: Codec, values: &[u32], mut last: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for block in values.chunks(BLOCK) {
        codec.encode_with(kernel, block, last, &mut bytes);
        last = block[block.len() - 1];
    }
    bytes
}

/// Decodes a list of `n` values block by block; `last` is the value before the first one. Returns the values
/// and the bytes after the blocks.
pub fn decode_list(codec: Codec, mut bytes: &[u8], n: usize, mut last: u32) -> (Vec<u32>, &[u8]) {
    let mut values = Vec::new();
    while values.len() < n {
        let (block, used) = decode(codec, bytes, last, BLOCK.min(n - values.len()));
        last = block[block.len() - 1];
        values.extend(block);
        bytes = &bytes[used..];
    }
    (values, bytes)
}

/// Fewer than `limit` random bytes: with few set bits, with many, or with any.
pub fn random_bytes(random: &mut Random, limit: u64) -> Vec<u8> {
    let kind = random.below(3);
    let byte = |random: &mut Random| match kind {
        0 => random.next() as u8 & random.next() as u8,
        1 => random.next() as u8 | random.next() as u8,
        _ => random.next() as u8,
    };
    (0..random.below(limit)).map(|_| byte(random)).collect()
}

/// The values whose gaps less 1 these are, if the codec has a delta step; otherwise the gaps themselves.
pub fn values_of_gaps(codec: Codec, gaps: &[u32]) -> Vec<u32> {
    let mut last = VALUE_BEFORE_LIST;
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
