//! The forms of an `auto` block: each is written, and none of the others would be shorter.

mod samples;

use samples::{Random, START, as_input, mixed};
use tierdex_codec::{BLOCK, Codec};

/// In the order that decides between equals.
const FORMS: [Codec; 5] =
    [Codec::Raw, Codec::Bp256Delta, Codec::StreamVByteDelta, Codec::Bitmap, Codec::Pfor256Delta];

/// The form that `auto` must take, after comparing its block with those of all forms.
#[track_caller]
fn check(ids: &[u32]) -> Codec {
    let block = samples::encode(Codec::Auto, ids);
    let blocks = FORMS.map(|form| samples::encode(form, ids));
    let shortest = blocks.iter().map(Vec::len).min().expect("there are forms");
    let first = blocks.iter().position(|block| block.len() == shortest).expect("one is the shortest");
    assert_eq!((block[0], &block[1..]), (FORMS[first].id(), &blocks[first][..]));
    assert_eq!(samples::decode(Codec::Auto, &block, START, ids.len()).0, ids);
    FORMS[first]
}

#[test]
fn the_shortest_form_is_written_and_each_is_some_time() {
    let mut random = Random(20);
    let mut taken = Vec::new();
    for width in 0..=32 {
        for n in [1, 2, 3, 5, 8, 31, 64, 129, 255, BLOCK] {
            for (one_in, wide) in [(0, 0), (2, 9), (3, 32), (20, 17), (60, 32)] {
                let gaps = mixed(&mut random, n, width, one_in, wide);
                taken.push(check(&as_input(Codec::Auto, &gaps)));
            }
        }
    }
    // Each document with the same probability: up to about one in three a bit each is hard to beat.
    for one_in in 1..=8 {
        for n in [9, 100, BLOCK] {
            let ids: Vec<u32> = (0..).filter(|_| random.below(one_in) == 0).take(n).collect();
            taken.push(check(&ids));
        }
    }
    for form in FORMS {
        let count = taken.iter().filter(|codec| **codec == form).count();
        println!("{}: {count}", form.name());
        assert!(count > 0, "no {} block", form.name());
    }
}

#[test]
fn other_first_bytes_are_invalid() {
    for id in (0..=u8::MAX).filter(|id| !FORMS.iter().any(|form| form.id() == *id)) {
        let (bytes, mut out) = ([id; 2000], [0; 8]);
        assert!(Codec::Auto.decode(&bytes, 0, &mut out).is_err(), "{id}");
        assert!(Codec::Auto.encoded_len(&bytes, 8).is_err(), "{id}");
    }
}
