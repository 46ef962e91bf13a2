//! Test vectors of other implementations, if they are beside the checkout.
//!
//! Each file is `{"vectors": [{"name", "n", "input", "hex"}, ..]}`. `VByte` and `StreamVByte` must agree in
//! both directions, bit packing must decode. Of the PFor blocks the plain, bitmap and constant ones must
//! decode; the sparse form is specific to tierdex.

mod samples;

use samples::{decode_list, encode_list};
use serde_json::Value;
use std::path::Path;
use tierdex_codec::{BLOCK, Codec, Kernel};

/// A list of values and its encoding by another implementation.
struct TestVector {
    name: String,
    input: Vec<u32>,
    bytes: Vec<u8>,
}

/// Reads the vectors of a file. Prints a message and returns `None` if there is no file.
fn load_vectors(file: &str) -> Option<Vec<TestVector>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors");
    let Ok(text) = std::fs::read(folder.join(file)) else {
        println!("skipped: no shared vectors ({file})");
        return None;
    };
    let file: Value = serde_json::from_slice(&text).expect("the file is JSON");
    Some(file["vectors"].as_array().expect("a list of vectors").iter().map(parse_vector).collect())
}

fn parse_vector(json: &Value) -> TestVector {
    let numbers = json["input"].as_array().expect("a list of values").iter();
    let hex = json["hex"].as_str().expect("bytes in hex");
    let byte = |k| u8::from_str_radix(&hex[k..k + 2], 16).expect("two hex digits");
    TestVector {
        name: json["name"].as_str().unwrap_or_default().to_owned(),
        input: numbers
            .map(|number| u32::try_from(number.as_u64().expect("a value")).expect("32 bits"))
            .collect(),
        bytes: (0..hex.len()).step_by(2).map(byte).collect(),
    }
}

/// Encodes and decodes the lists of at most `n_max` values, with 0 before the first; there must be at least
/// one list.
fn check_both_ways(file: &str, codec: Codec, n_max: usize) {
    let Some(vectors) = load_vectors(file) else { return };
    let vectors: Vec<_> = vectors.into_iter().filter(|vector| vector.input.len() <= n_max).collect();
    println!("{file}: {} lists", vectors.len());
    assert!(!vectors.is_empty());
    for TestVector { name, input, bytes } in vectors {
        assert_eq!(encode_list(Kernel::active(), codec, &input, 0), bytes, "{file}, {name}");
        assert_eq!(decode_list(codec, &bytes, input.len(), 0), (input, &[][..]), "{file}, {name}");
    }
}

/// The length of the varint before the blocks of a bit-packed list: 7 bits per byte, then 8 in the fifth.
fn first_value_len(value: u32) -> usize {
    1 + [7, 14, 21, 28].map(|bits| usize::from(value >> bits != 0)).iter().sum::<usize>()
}

/// Decodes each block whose form both implementations have; each such form must occur. `takes` tells
/// whether a block of this number of values has the layout of the codec.
fn check_blocks(file: &str, codec: Codec, takes: fn(usize) -> bool) {
    let Some(vectors) = load_vectors(file) else { return };
    let mut forms = [0; 4];
    for TestVector { name, input, bytes } in vectors {
        let Some(first) = bytes.first().filter(|first| *first >> 6 != 1 && takes(input.len())) else {
            continue;
        };
        let (back, used) = samples::decode(codec, &bytes, samples::VALUE_BEFORE_LIST, input.len());
        assert_eq!((back, used), (input, bytes.len()), "{file}, {name}");
        forms[usize::from(first >> 6)] += 1;
    }
    println!("{file}: {} plain, {} bitmap, {} constant", forms[0], forms[2], forms[3]);
    assert!(forms[0] > 0 && forms[2] > 0 && forms[3] > 0, "{file}: {forms:?}");
}

#[test]
fn lists_of_byte_codecs_are_encoded_and_decoded() {
    check_both_ways("vbyte.json", Codec::VByte, usize::MAX);
    check_both_ways("vbyte_delta.json", Codec::VByteDelta, usize::MAX);
    // A list in a StreamVByte file has all control bytes first, so it is a valid block if it has one block.
    check_both_ways("streamvbyte_1234.json", Codec::StreamVByte, BLOCK);
    check_both_ways("streamvbyte_1234_delta.json", Codec::StreamVByteDelta, BLOCK);
}

#[test]
fn bit_packed_lists_after_their_first_value() {
    let (file, codec) = ("bitnd1pack256v32.json", Codec::Bp256Delta);
    let Some(vectors) = load_vectors(file) else { return };
    let mut checked = 0;
    for TestVector { name, input, bytes } in vectors {
        let Some((first, rest)) = input.split_first() else { continue };
        let blocks = &bytes[first_value_len(*first)..];
        // Lengths only: the unused bits of the last byte are undefined there and zero here.
        assert_eq!(encode_list(Kernel::active(), codec, rest, *first).len(), blocks.len(), "{file}, {name}");
        let decoded = decode_list(codec, blocks, rest.len(), *first);
        assert_eq!(decoded, (rest.to_vec(), &[][..]), "{file}, {name}");
        checked += 1;
    }
    assert!(checked > 0);
}

#[test]
fn pfor_blocks_are_decoded() {
    // In the files of the first four, blocks of 256 values are horizontal too.
    check_blocks("p4enc32.json", Codec::Pfor, |n| n <= BLOCK);
    check_blocks("p4d1enc32_start_minus1.json", Codec::PforDelta, |n| n <= BLOCK);
    check_blocks("p4enc32.json", Codec::Pfor256, |n| n < BLOCK);
    check_blocks("p4d1enc32_start_minus1.json", Codec::Pfor256Delta, |n| n < BLOCK);
    check_blocks("p4enc256v32.json", Codec::Pfor256, |n| n == BLOCK);
}
