//! Test vectors of other implementations, if they are beside the checkout.
//!
//! Each file is `{"vectors": [{"name", "n", "input", "hex"}, ..]}`. `VByte` and `StreamVByte` must agree in
//! both directions, bit packing must decode. Of the PFor blocks the plain, bitmap and constant ones must
//! decode; the sparse form is specific to tierdex.

mod samples;

use serde_json::Value;
use std::path::Path;
use tierdex_codec::{BLOCK, Codec};

struct Vector {
    name: String,
    input: Vec<u32>,
    bytes: Vec<u8>,
}

/// The vectors of a file; prints a message and returns `None` if there is no file.
fn load(file: &str) -> Option<Vec<Vector>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors");
    let Ok(text) = std::fs::read(folder.join(file)) else {
        println!("skipped: no shared vectors ({file})");
        return None;
    };
    let file: Value = serde_json::from_slice(&text).expect("the file is JSON");
    Some(file["vectors"].as_array().expect("a list of vectors").iter().map(vector).collect())
}

fn vector(json: &Value) -> Vector {
    let numbers = json["input"].as_array().expect("a list of values").iter();
    let hex = json["hex"].as_str().expect("bytes in hex");
    let byte = |k| u8::from_str_radix(&hex[k..k + 2], 16).expect("two hex digits");
    Vector {
        name: json["name"].as_str().unwrap_or_default().to_owned(),
        input: numbers
            .map(|number| u32::try_from(number.as_u64().expect("a value")).expect("32 bits"))
            .collect(),
        bytes: (0..hex.len()).step_by(2).map(byte).collect(),
    }
}

/// Encodes a list block by block; the first follows `last`.
fn encode_list(codec: Codec, values: &[u32], mut last: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for block in values.chunks(BLOCK) {
        codec.encode(block, last, &mut bytes);
        last = block[block.len() - 1];
    }
    bytes
}

/// Decodes `n` values block by block, the first after `last`; returns them and the bytes left.
fn decode_list(codec: Codec, mut bytes: &[u8], n: usize, mut last: u32) -> (Vec<u32>, &[u8]) {
    let mut values = Vec::new();
    while values.len() < n {
        let (block, used) = samples::decode(codec, bytes, last, BLOCK.min(n - values.len()));
        last = block[block.len() - 1];
        values.extend(block);
        bytes = &bytes[used..];
    }
    (values, bytes)
}

/// Encodes and decodes the lists of at most `n_max` values, with 0 before the first; there must be at least
/// one list.
fn check_both_ways(file: &str, codec: Codec, n_max: usize) {
    let Some(vectors) = load(file) else { return };
    let vectors: Vec<_> = vectors.into_iter().filter(|vector| vector.input.len() <= n_max).collect();
    println!("{file}: {} lists", vectors.len());
    assert!(!vectors.is_empty());
    for Vector { name, input, bytes } in vectors {
        assert_eq!(encode_list(codec, &input, 0), bytes, "{file}, {name}");
        assert_eq!(decode_list(codec, &bytes, input.len(), 0), (input, &[][..]), "{file}, {name}");
    }
}

/// The length of the varint before the blocks of a bit-packed list: 7 bits per byte, then 8 in the fifth.
fn first_value_len(value: u32) -> usize {
    1 + [7, 14, 21, 28].map(|bits| usize::from(value >> bits != 0)).iter().sum::<usize>()
}

/// Decodes each block that has one of the shared forms; every shared form must occur. `takes` is whether a
/// block of a number of values has the layout that the codec expects.
fn check_blocks(file: &str, codec: Codec, takes: fn(usize) -> bool) {
    let Some(vectors) = load(file) else { return };
    let mut forms = [0; 4];
    for Vector { name, input, bytes } in vectors {
        let Some(first) = bytes.first().filter(|first| *first >> 6 != 1 && takes(input.len())) else {
            continue;
        };
        let (back, used) = samples::decode(codec, &bytes, samples::START, input.len());
        assert_eq!((back, used), (input, bytes.len()), "{file}, {name}");
        forms[usize::from(first >> 6)] += 1;
    }
    println!("{file}: {} plain, {} bitmap, {} constant", forms[0], forms[2], forms[3]);
    assert!(forms[0] > 0 && forms[2] > 0 && forms[3] > 0, "{file}: {forms:?}");
}

#[test]
fn vbyte() {
    check_both_ways("vbyte.json", Codec::VByte, usize::MAX);
}

#[test]
fn vbyte_delta() {
    check_both_ways("vbyte_delta.json", Codec::VByteDelta, usize::MAX);
}

// The lists in these files have all control bytes first, so only lists of one block are valid blocks.

#[test]
fn streamvbyte() {
    check_both_ways("streamvbyte_1234.json", Codec::StreamVByte, BLOCK);
}

#[test]
fn streamvbyte_delta() {
    check_both_ways("streamvbyte_1234_delta.json", Codec::StreamVByteDelta, BLOCK);
}

#[test]
fn bit_packed_lists_after_their_first_value() {
    let (file, codec) = ("bitnd1pack256v32.json", Codec::Bp256Delta);
    let Some(vectors) = load(file) else { return };
    let mut checked = 0;
    for Vector { name, input, bytes } in vectors {
        let Some((first, rest)) = input.split_first() else { continue };
        let blocks = &bytes[first_value_len(*first)..];
        // Lengths only: the unused bits of the last byte are undefined there and zero here.
        assert_eq!(encode_list(codec, rest, *first).len(), blocks.len(), "{file}, {name}");
        assert_eq!(
            decode_list(codec, blocks, rest.len(), *first),
            (rest.to_vec(), &[][..]),
            "{file}, {name}"
        );
        checked += 1;
    }
    assert!(checked > 0);
}

// In the files of the next four tests, blocks of 256 values are horizontal too.

#[test]
fn horizontal_pfor_blocks() {
    check_blocks("p4enc32.json", Codec::Pfor, |n| n <= BLOCK);
}

#[test]
fn horizontal_pfor_delta_blocks() {
    check_blocks("p4d1enc32_start_minus1.json", Codec::PforDelta, |n| n <= BLOCK);
}

#[test]
fn pfor_blocks_shorter_than_256() {
    check_blocks("p4enc32.json", Codec::Pfor256, |n| n < BLOCK);
}

#[test]
fn pfor_delta_blocks_shorter_than_256() {
    check_blocks("p4d1enc32_start_minus1.json", Codec::Pfor256Delta, |n| n < BLOCK);
}

#[test]
fn pfor_blocks_of_256() {
    check_blocks("p4enc256v32.json", Codec::Pfor256, |n| n == BLOCK);
}
