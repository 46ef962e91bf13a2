//! `max_len` is exact: for every number of values some block has that length, and none is longer.

mod agree;
mod samples;

use samples::{Random, Seed, VALUE_BEFORE_LIST, random_values, values_of_gaps};
use tierdex_codec::{BLOCK, Codec, Kernel};

/// Number of random blocks.
const RANDOM_BLOCKS: u64 = 100_000;

/// Values that no form compresses: wide, and not all equal. For delta codecs they are the gaps.
fn worst_cases(n: usize) -> [Vec<u32>; 3] {
    let falling = (0..n as u32).map(|k| u32::MAX - k);
    let alternating = (0..n).map(|k| [u32::MAX, 1 << 31][k % 2]);
    let random = &mut Random(n as u64);
    let wide = (0..n).map(|_| random.value(32) | 1 << 31);
    [falling.collect(), alternating.collect(), wide.collect()]
}

fn encoded_length(kernel: Kernel, codec: Codec, values: &[u32], prev: u32) -> usize {
    let mut bytes = Vec::new();
    codec.encode_with(kernel, values, prev, &mut bytes);
    bytes.len()
}

#[test]
fn max_len_is_reached_at_every_length() {
    for kernel in Kernel::available() {
        for &codec in Codec::ALL {
            for n in 0..=BLOCK {
                let len = |gaps: Vec<u32>| {
                    encoded_length(kernel, codec, &values_of_gaps(codec, &gaps), VALUE_BEFORE_LIST)
                };
                let longest = worst_cases(n).map(len).into_iter().max();
                assert_eq!(longest, Some(codec.max_len(n)), "{kernel:?}, {}, {n} values", codec.name());
            }
        }
    }
}

#[test]
fn max_len_is_never_exceeded() {
    for seed in 0..RANDOM_BLOCKS {
        let _seed = Seed(seed);
        let random = &mut Random(seed);
        let (n, width) = (random.below(BLOCK as u64 + 1) as usize, random.below(33) as u32);
        let (one_in, wide) = (random.below(20), 32 - random.below(4) as u32);
        let values = random_values(random, n, width, one_in, wide);
        for &codec in Codec::ALL {
            let bytes = agree::encode(codec, &values, random.next() as u32);
            assert!(bytes.len() <= codec.max_len(n), "{}: {}", codec.name(), bytes.len());
            let bytes = agree::encode(codec, &values_of_gaps(codec, &values), VALUE_BEFORE_LIST);
            assert!(bytes.len() <= codec.max_len(n), "{}: {}", codec.name(), bytes.len());
        }
    }
}
