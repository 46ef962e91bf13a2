//! Blocks of 64-bit values: encoded values decode to themselves, random access and comparisons agree with
//! decoding, and damaged blocks are read without a panic.

mod agree;
mod samples;

use agree::wide::{boundary_ranges, compare, decode, round_trip};
use proptest::prelude::*;
use samples::Random;
use tierdex_codec::{BLOCK, WideBlock};

/// A number of at most `width` bits.
fn of_width(random: &mut Random, width: u32) -> u64 {
    random.next() & u64::MAX.checked_shr(64 - width).unwrap_or(0)
}

/// `n` values whose offsets have up to `width` bits, and one of them exactly as many if `n` > 1.
fn values_of_width(random: &mut Random, n: usize, width: u32) -> Vec<u64> {
    let mut offsets: Vec<u64> = (0..n).map(|_| of_width(random, width)).collect();
    let (zero, widest) = (random.below(n as u64) as usize, random.below(n as u64) as usize);
    offsets[widest] |= if width > 0 { 1 << (width - 1) } else { 0 };
    offsets[zero] = 0;
    let most = offsets.iter().copied().max().expect("offsets");
    let smallest = match random.below(3) {
        0 => 0,
        1 => u64::MAX - most,
        _ => random.next() % (u64::MAX - most).max(1),
    };
    offsets.iter().map(|offset| smallest + offset).collect()
}

#[test]
fn every_width_and_length() {
    let mut random = Random(11);
    let mut widths = [0; 65];
    for width in 0..=64 {
        for n in 1..=BLOCK {
            let (block, _) = round_trip(&values_of_width(&mut random, n, width));
            widths[usize::from(block.width)] += 1;
        }
    }
    assert!(widths.iter().all(|count| *count > BLOCK / 2), "{widths:?}");
}

#[test]
fn ranges_near_the_values_of_every_width() {
    let mut random = Random(12);
    for width in 0..=64 {
        for n in [BLOCK, 1, 2, 8, 31, 33, 63, 64, 65, 100, 255, BLOCK] {
            let values = values_of_width(&mut random, n, width);
            let (block, bytes) = round_trip(&values);
            for (low, high) in boundary_ranges(block, &values) {
                compare(block, &bytes, &values, low, high);
            }
        }
    }
}

#[test]
fn extreme_values() {
    for values in [
        vec![0],
        vec![u64::MAX],
        vec![0, u64::MAX],
        vec![u64::MAX; BLOCK],
        (0..BLOCK as u64).map(|k| u64::MAX - k).collect(),
        (0..BLOCK as u64).map(|k| if k % 3 == 0 { 0 } else { u64::MAX - k }).collect(),
        (0..BLOCK as u64).map(|k| k << 32 | 0xffff_ffff).collect(),
        (0..BLOCK as u64).map(|k| (1 << 63) - 128 + k).collect(),
    ] {
        let (block, bytes) = round_trip(&values);
        for (low, high) in boundary_ranges(block, &values) {
            compare(block, &bytes, &values, low, high);
        }
    }
}

#[test]
fn any_bytes_are_values() {
    let mut random = Random(13);
    let mut wrapped = 0;
    for _ in 0..5_000 {
        let len = if random.below(2) == 0 { BLOCK } else { 1 + random.below(BLOCK as u64) as usize };
        let width = random.below(65) as u8;
        let smallest = match random.below(3) {
            0 => random.next(),
            1 => u64::MAX - of_width(&mut random, u32::from(width)),
            _ => 0,
        };
        let block = WideBlock { smallest, width, len };
        let bytes: Vec<u8> = (0..block.byte_len()).map(|_| random.next() as u8).collect();
        let values = decode(block, &bytes).expect("a block");
        wrapped += usize::from(values.iter().any(|value| *value < smallest));
        for (low, high) in boundary_ranges(block, &values).into_iter().step_by(7) {
            compare(block, &bytes, &values, low, high);
        }
        compare(block, &bytes, &values, random.next(), random.next());
    }
    assert!(wrapped > 500, "{wrapped} blocks had sums that wrapped");
}

#[test]
#[should_panic(expected = "1 to 256 values, not 0")]
fn no_values_are_not_a_block() {
    WideBlock::encode(&[], &mut Vec::new());
}

#[test]
#[should_panic(expected = "the block has 2 values, and none at 2")]
fn an_index_after_the_end_panics() {
    let mut bytes = Vec::new();
    let block = WideBlock::encode(&[1, 2], &mut bytes);
    block.view(&bytes).expect("a block").value(2);
}

#[test]
#[should_panic(expected = "differ")]
fn a_wrong_bit_is_noticed() {
    let mut bytes = Vec::new();
    let values: Vec<u64> = (0..BLOCK as u64).collect();
    let block = WideBlock::encode(&values, &mut bytes);
    bytes[17] ^= 4;
    assert_eq!(decode(block, &bytes), Ok(values), "differ");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

    #[test]
    fn random_values_come_back(
        shift in 0_u32..64,
        base in any::<u64>(),
        numbers in prop::collection::vec(any::<u64>(), 1..=BLOCK),
        ends in any::<[u64; 2]>(),
    ) {
        let values: Vec<u64> = numbers.iter().map(|number| base.wrapping_add(number >> shift)).collect();
        let (block, bytes) = round_trip(&values);
        let [low, high] = ends.map(|end| base.wrapping_add(end >> shift));
        compare(block, &bytes, &values, low.min(high), low.max(high));
        compare(block, &bytes, &values, low.max(high), low.min(high));
        compare(block, &bytes, &values, values[0], values[values.len() - 1]);
    }
}
