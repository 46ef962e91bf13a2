//! All kernels write the same bytes and decode the same values, for blocks of every kind and for invalid
//! bytes.
//!
//! The default number of blocks is modest. To run ten million of each kind:
//!
//! ```text
//! TIERDEX_TEST_BLOCKS=10000000 cargo test --release -p tierdex-codec --test kernels_agree
//! ```

mod agree;
mod samples;

use samples::{Random, Seed, random_bytes, random_values, values_of_gaps};
use std::{env, process::Command};
use tierdex_codec::{BLOCK, Codec, Kernel};

/// Number of blocks of a test, unless `TIERDEX_TEST_BLOCKS` sets another one.
const BLOCK_COUNT: u64 = 100_000;

/// Values at which arithmetic wraps or changes its sign.
const EXTREME_VALUES: [u32; 8] = [0, 1, 2, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, u32::MAX - 1, u32::MAX];

fn block_count() -> u64 {
    match env::var("TIERDEX_TEST_BLOCKS") {
        Ok(text) => text.parse().expect("TIERDEX_TEST_BLOCKS is a number"),
        Err(_) => BLOCK_COUNT,
    }
}

/// The random block of a seed, and the value before it. Half of the blocks of delta codecs are increasing.
fn random_block(codec: Codec, seed: u64) -> (Vec<u32>, u32) {
    let mut random = Random(seed);
    let n = random_count(&mut random);
    let values = values_of_some_kinds(&mut random, n);
    if random.below(2) == 0 {
        return (values_of_gaps(codec, &values), samples::VALUE_BEFORE_LIST);
    }
    let prev = match random.below(4) {
        0 => samples::VALUE_BEFORE_LIST,
        1 => one_of(&mut random, &EXTREME_VALUES),
        2 => values.first().map_or(0, |first| first.wrapping_sub(random.below(3) as u32)),
        _ => random.next() as u32,
    };
    (values, prev)
}

/// Values of one random kind, or of two kinds one after the other.
fn values_of_some_kinds(random: &mut Random, n: usize) -> Vec<u32> {
    if random.below(4) > 0 {
        return values_of_one_kind(random, n);
    }
    let first = random.below(n as u64 + 1) as usize;
    let mut values = values_of_one_kind(random, first);
    values.extend(values_of_one_kind(random, n - first));
    values
}

fn values_of_one_kind(random: &mut Random, n: usize) -> Vec<u32> {
    let width = random.below(33) as u32;
    let wide = width + random.below(33 - u64::from(width)) as u32;
    let first = random.value(wide);
    match random.below(9) {
        0 => random_values(random, n, width, 0, 0),
        1 => random_values(random, n, width, 50, wide),
        2 => random_values(random, n, width, 4, wide),
        3 => vec![first; n],
        4 => runs_of_equal_values(random, n, width),
        5 => random_values(random, n, 1, 6, 3),
        6 => (0..n).map(|_| one_of(random, &EXTREME_VALUES)).collect(),
        7 => (0..n as u32).map(|k| first.wrapping_sub(k * (1 + width))).collect(),
        _ => (0..n as u32).map(|k| first.wrapping_add(k << (width % 25))).collect(),
    }
}

/// Runs of up to 40 equal values.
fn runs_of_equal_values(random: &mut Random, n: usize, width: u32) -> Vec<u32> {
    let mut values = Vec::new();
    while values.len() < n {
        let len = 1 + random.below(40) as usize;
        values.resize(n.min(values.len() + len), random.value(width));
    }
    values
}

fn one_of<T: Copy>(random: &mut Random, all: &[T]) -> T {
    all[random.below(all.len() as u64) as usize]
}

/// A random number of values of a block: a quarter have 256, a quarter fewer than 20.
fn random_count(random: &mut Random) -> usize {
    match random.below(4) {
        0 => BLOCK,
        1 => random.below(20) as usize,
        _ => random.below(BLOCK as u64 + 1) as usize,
    }
}

/// A valid block with some bytes changed, removed or appended.
fn damaged_block(codec: Codec, random: &mut Random, seed: u64) -> (Vec<u8>, usize) {
    let (values, prev) = random_block(codec, seed);
    let mut bytes = Vec::new();
    codec.encode_with(Kernel::SCALAR, &values, prev, &mut bytes);
    bytes.resize(bytes.len() + random.below(40) as usize, random.next() as u8);
    for _ in 0..random.below(4).min(bytes.len() as u64) {
        let reach = if random.below(2) == 0 { bytes.len().min(4) } else { bytes.len() };
        let position = random.below(reach as u64) as usize;
        bytes[position] = if random.below(4) == 0 { bytes[position] ^ 0x80 } else { random.next() as u8 };
    }
    bytes.truncate(bytes.len() - random.below(4).min(bytes.len() as u64) as usize);
    (bytes, values.len())
}

/// Random bytes, often with a header that is valid for some codec.
fn bytes_with_likely_header(random: &mut Random) -> Vec<u8> {
    let reach = if random.below(4) == 0 { 1400 } else { 100 };
    let mut bytes = random_bytes(random, reach);
    let head = [(random.below(4) << 6 | random.below(34)) as u8, random.below(14) as u8];
    if let Some(first) = bytes.first_mut().filter(|_| random.below(3) > 0) {
        *first = one_of(random, &head);
    }
    bytes
}

#[test]
fn kernels_agree_on_blocks_of_every_kind() {
    for seed in 0..block_count() {
        let _seed = Seed(seed);
        for &codec in Codec::ALL {
            let (values, prev) = random_block(codec, seed);
            agree::round_trip(codec, &values, prev);
        }
    }
}

#[test]
fn kernels_agree_on_damaged_blocks() {
    for seed in 0..block_count() {
        let _seed = Seed(seed);
        let random = &mut Random(!seed);
        for &codec in Codec::ALL {
            let (bytes, n) = damaged_block(codec, random, seed);
            _ = agree::decode_hostile(codec, &bytes, random.next() as u32, n);
        }
    }
}

#[test]
fn kernels_agree_on_any_bytes() {
    for seed in 0..block_count() {
        let _seed = Seed(seed);
        let mut random = Random(!seed);
        let (bytes, n) = (bytes_with_likely_header(&mut random), random_count(&mut random));
        for &codec in Codec::ALL {
            _ = agree::decode_hostile(codec, &bytes, random.next() as u32, n);
        }
    }
}

/// `encoded_len` uses the kernel of the process, so each kernel runs in a child process.
#[test]
fn kernels_agree_on_the_lengths_of_blocks() {
    let tests = env::current_exe().expect("the test is a program");
    for kernel in Kernel::available() {
        let mut command = Command::new(&tests);
        command.args(["--exact", "kernels_agree_on_damaged_blocks", "kernels_agree_on_blocks_of_every_kind"]);
        command.env("TIERDEX_KERNEL", kernel.name()).env("TIERDEX_TEST_BLOCKS", "2000");
        let output = command.output().expect("the test starts");
        assert!(output.status.success(), "{kernel:?}: {}", String::from_utf8_lossy(&output.stdout));
    }
}
