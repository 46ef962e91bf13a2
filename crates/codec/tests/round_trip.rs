//! Encoded values decode to themselves, and all length functions are exact.

mod samples;

use proptest::prelude::*;
use samples::{Random, as_input, mixed};
use tierdex_codec::{BLOCK, Codec};

/// Encodes and decodes `values`, and compares the values and all three lengths.
#[track_caller]
fn check(codec: Codec, values: &[u32], prev: u32) {
    let (n, name) = (values.len(), codec.name());
    let mut bytes = vec![0xee];
    codec.encode(values, prev, &mut bytes);
    let written = bytes.len() - 1;
    assert_eq!(bytes[0], 0xee, "{name} appends");
    assert!(written <= codec.max_len(n), "{name}: {written} bytes for {n} values");

    // Bytes after the block must not matter.
    bytes.extend([0xff; 9]);
    for block in [&bytes[1..], &bytes[1..=written]] {
        assert_eq!(codec.encoded_len(block, n), Ok(written), "{name}, {n} values");
        assert_eq!(samples::decode(codec, block, prev, n), (values.to_vec(), written), "{name}, {n} values");
    }
}

#[test]
fn every_width_and_length_of_every_codec() {
    let mut random = Random(2);
    for &codec in Codec::ALL {
        for width in 0..=32 {
            for n in 0..=BLOCK {
                let gaps = mixed(&mut random, n, width, 0, 0);
                check(codec, &as_input(codec, &gaps), u32::MAX);
            }
        }
    }
}

#[test]
fn every_pair_of_widths_with_exceptions() {
    let mut random = Random(3);
    for &codec in Codec::ALL {
        for width in 0..32 {
            for wide in width + 1..=32 {
                for (n, one_in) in [(BLOCK, 4), (BLOCK, 40), (100, 10), (17, 5)] {
                    let gaps = mixed(&mut random, n, width, one_in, wide);
                    check(codec, &as_input(codec, &gaps), u32::MAX);
                }
            }
        }
    }
}

#[test]
fn samples_of_every_kind() {
    for &codec in Codec::ALL {
        for gaps in samples::blocks() {
            check(codec, &as_input(codec, &gaps), u32::MAX);
        }
    }
}

#[test]
fn lists_of_blocks_follow_each_other() {
    let mut random = Random(4);
    let gaps = mixed(&mut random, 5 * BLOCK + 77, 9, 8, 14);
    for &codec in Codec::ALL {
        let (ids, mut bytes, mut last) = (as_input(codec, &gaps), Vec::new(), u32::MAX);
        for block in ids.chunks(BLOCK) {
            codec.encode(block, last, &mut bytes);
            last = block[block.len() - 1];
        }
        let (mut rest, mut last) = (&bytes[..], u32::MAX);
        for block in ids.chunks(BLOCK) {
            let (back, used) = samples::decode(codec, rest, last, block.len());
            assert_eq!(back, block, "{}", codec.name());
            (rest, last) = (&rest[used..], block[block.len() - 1]);
        }
        assert!(rest.is_empty(), "{}", codec.name());
    }
}

#[test]
fn the_longest_blocks_reach_max_len() {
    for n in 1..=BLOCK {
        // All of full width, and not all equal, since that would be a constant block.
        let widest: Vec<u32> = (1..=n as u32).map(|k| u32::MAX - k).collect();
        for &codec in Codec::ALL {
            let block = samples::encode(codec, &as_input(codec, &widest));
            assert_eq!(block.len(), codec.max_len(n), "{}, {n}", codec.name());
        }
    }
}

#[test]
fn no_values_take_no_bytes() {
    for &codec in Codec::ALL {
        assert_eq!(samples::encode(codec, &[]), []);
        assert_eq!(codec.max_len(0), 0);
        assert_eq!(codec.decode(&[], 0, &mut []), Ok(0));
        assert_eq!(codec.encoded_len(&[], 0), Ok(0));
    }
}

#[test]
fn the_last_document_id_can_follow_any_other() {
    for &codec in Codec::ALL.iter().filter(|codec| codec.is_delta()) {
        check(codec, &[u32::MAX], u32::MAX);
        check(codec, &[0, u32::MAX], u32::MAX);
        check(codec, &[u32::MAX], u32::MAX - 1);
    }
}

/// A block of values of at most a random width, so that small values are not rare.
fn any_block() -> impl Strategy<Value = Vec<u32>> {
    (0..=32u32).prop_flat_map(|width| {
        let value = any::<u32>().prop_map(move |value| value.checked_shr(32 - width).unwrap_or(0));
        let wide = prop_oneof![9 => value, 1 => any::<u32>()];
        prop::collection::vec(wide, 0..=BLOCK)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn any_values_come_back(values in any_block(), prev in any::<u32>()) {
        for &codec in Codec::ALL {
            check(codec, &values, prev);
        }
    }

    #[test]
    fn increasing_values_come_back(gaps in any_block()) {
        for &codec in Codec::ALL {
            check(codec, &as_input(codec, &gaps), u32::MAX);
        }
    }
}
