//! The forms of an `auto` block: a bitmap where ids are dense, otherwise `pfor256-delta`.

mod samples;

use samples::{Random, VALUE_BEFORE_LIST, random_values, values_of_gaps};
use tierdex_codec::{BLOCK, Codec};

/// The first byte of a block that is a bitmap.
const BITMAP_TAG: u8 = 0x3f;

/// Encodes `ids` and checks that the block has the form that the format defines. Returns whether it is a
/// bitmap.
#[track_caller]
fn is_bitmap(ids: &[u32]) -> bool {
    let block = samples::encode(Codec::Auto, ids);
    let other = samples::encode(Codec::Pfor256Delta, ids);
    assert_eq!(samples::decode(Codec::Auto, &block, VALUE_BEFORE_LIST, ids.len()).0, ids);
    let view = Codec::Auto.bitmap(&block, VALUE_BEFORE_LIST, ids.len()).unwrap();
    let bits = ids.last().expect("some").wrapping_sub(VALUE_BEFORE_LIST) as usize
        + VALUE_BEFORE_LIST.wrapping_add(1) as usize % 8;
    let len = 2 + bits.div_ceil(8);
    let most = (other.len() + other.len() / 4).max(ids.len().div_ceil(6)).min(2 + 255);
    if len > most || other.len() <= 2 {
        assert_eq!(block, other);
        assert!(view.is_none());
        return false;
    }
    let view = view.expect("a bitmap");
    assert_eq!((&block[..2], view.bits()), (&[BITMAP_TAG, (len - 2) as u8][..], &block[2..]));
    assert_eq!(view.last(), ids[ids.len() - 1]);
    true
}

#[test]
fn dense_blocks_are_bitmaps() {
    let mut random = Random(20);
    for width in 3..=32 {
        for n in [5, 8, 31, 64, 129, 255, BLOCK] {
            for (one_in, wide) in [(0, 0), (2, 9), (3, 32), (20, 17), (60, 32)] {
                let gaps = random_values(&mut random, n, width, one_in, wide);
                let ids = values_of_gaps(Codec::Auto, &gaps);
                if ids.is_sorted() {
                    is_bitmap(&ids);
                }
            }
        }
    }
    // Each document is in the list with probability 1 / `one_in`.
    for one_in in 1..=20 {
        let ids: Vec<u32> = (0..).filter(|_| random.below(one_in) == 0).take(BLOCK).collect();
        match one_in {
            // Consecutive ids need no bits in the other form.
            1 => assert!(!is_bitmap(&ids)),
            2..=4 => assert!(is_bitmap(&ids), "1 in {one_in}"),
            5..=7 => _ = is_bitmap(&ids),
            _ => assert!(!is_bitmap(&ids), "1 in {one_in}"),
        }
    }
}

#[test]
fn ids_that_are_not_increasing_are_no_bitmap() {
    for ids in [vec![5, 4, 9, 12, 13], vec![9; 8], vec![7, 6, 5, 4, 3, 2, 1, 0]] {
        let block = samples::encode(Codec::Auto, &ids);
        assert_ne!(block[0], BITMAP_TAG);
        assert_eq!(samples::decode(Codec::Auto, &block, VALUE_BEFORE_LIST, ids.len()).0, ids);
    }
}

#[test]
fn damaged_bitmaps_are_invalid() {
    let ids: Vec<u32> = (0..100).filter(|id| id % 3 != 1).collect();
    let block = samples::encode(Codec::Auto, &ids);
    let mut out = vec![0; ids.len()];
    assert!(Codec::Auto.decode(&block, VALUE_BEFORE_LIST, &mut out).is_ok());
    for cut in 0..block.len() {
        assert!(Codec::Auto.decode(&block[..cut], VALUE_BEFORE_LIST, &mut out).is_err(), "{cut}");
        assert!(Codec::Auto.encoded_len(&block[..cut], out.len()).is_err(), "{cut}");
    }
    for bit in 0..8 * block.len() {
        let mut damaged = block.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        if damaged[0] == BITMAP_TAG {
            assert!(Codec::Auto.decode(&damaged, VALUE_BEFORE_LIST, &mut out).is_err(), "bit {bit}");
            assert!(Codec::Auto.bitmap(&damaged, VALUE_BEFORE_LIST, out.len()).is_err(), "bit {bit}");
        }
    }
}
