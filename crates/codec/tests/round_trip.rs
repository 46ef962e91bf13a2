//! Encoded values decode to themselves, and the functions that tell lengths are exact.

mod agree;
mod samples;

use agree::round_trip;
use proptest::prelude::*;
use samples::{Random, VALUE_BEFORE_LIST, decode_list, encode_list, random_values, values_of_gaps};
use tierdex_codec::{BLOCK, Codec, Kernel};

#[test]
fn every_width_and_length_of_every_codec() {
    let mut random = Random(2);
    for &codec in Codec::ALL {
        for width in 0..=32 {
            for n in 0..=BLOCK {
                let gaps = random_values(&mut random, n, width, 0, 0);
                round_trip(codec, &values_of_gaps(codec, &gaps), u32::MAX);
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
                    let gaps = random_values(&mut random, n, width, one_in, wide);
                    round_trip(codec, &values_of_gaps(codec, &gaps), u32::MAX);
                }
            }
        }
    }
}

#[test]
fn samples_of_every_kind() {
    for &codec in Codec::ALL {
        for gaps in samples::sample_blocks() {
            round_trip(codec, &values_of_gaps(codec, &gaps), u32::MAX);
        }
    }
}

#[test]
fn lists_of_blocks_follow_each_other() {
    let mut random = Random(4);
    let gaps = random_values(&mut random, 5 * BLOCK + 77, 9, 8, 14);
    for &codec in Codec::ALL {
        let ids = values_of_gaps(codec, &gaps);
        let bytes = encode_list(Kernel::active(), codec, &ids, VALUE_BEFORE_LIST);
        let decoded = decode_list(codec, &bytes, ids.len(), VALUE_BEFORE_LIST);
        assert_eq!(decoded, (ids, &[][..]), "{}", codec.name());
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
        round_trip(codec, &[u32::MAX], u32::MAX);
        round_trip(codec, &[0, u32::MAX], u32::MAX);
        round_trip(codec, &[u32::MAX], u32::MAX - 1);
    }
}

/// A block of random values of at most a random width, so that blocks of small values are not rare.
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
            round_trip(codec, &values, prev);
        }
    }

    #[test]
    fn increasing_values_come_back(gaps in any_block()) {
        for &codec in Codec::ALL {
            round_trip(codec, &values_of_gaps(codec, &gaps), u32::MAX);
        }
    }
}
