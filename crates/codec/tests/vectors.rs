//! Blocks that other implementations wrote, if they lie beside the checkout.
//!
//! Each file is `{"vectors": [{"name", "n", "input", "hex"}, ..]}`. `VByte` must agree in both directions. Of the
//! PFor blocks the plain, bitmap and constant ones must be read; lists of exceptions are coded differently here.

mod samples;

use serde_json::Value;
use std::path::Path;
use tierdex_codec::{BLOCK, Codec};

struct Vector {
    name: String,
    input: Vec<u32>,
    bytes: Vec<u8>,
}

/// The vectors of a file, or None (and a word about it) if there are none.
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

/// Encodes a list block by block; the first follows 0.
fn encode_list(codec: Codec, values: &[u32]) -> Vec<u8> {
    let (mut bytes, mut last) = (Vec::new(), 0);
    for block in values.chunks(BLOCK) {
        codec.encode(block, last, &mut bytes);
        last = block[block.len() - 1];
    }
    bytes
}

/// Decodes `n` values block by block; returns them and the bytes left.
fn decode_list(codec: Codec, mut bytes: &[u8], n: usize) -> (Vec<u32>, &[u8]) {
    let (mut values, mut last) = (Vec::new(), 0);
    while values.len() < n {
        let (block, used) = samples::decode(codec, bytes, last, BLOCK.min(n - values.len()));
        last = block[block.len() - 1];
        values.extend(block);
        bytes = &bytes[used..];
    }
    (values, bytes)
}

fn check_both_ways(file: &str, codec: Codec) {
    let Some(vectors) = load(file) else { return };
    assert!(!vectors.is_empty());
    for Vector { name, input, bytes } in vectors {
        assert_eq!(encode_list(codec, &input), bytes, "{file}, {name}");
        assert_eq!(decode_list(codec, &bytes, input.len()), (input, &[][..]), "{file}, {name}");
    }
}

/// Reads each block that has one of the shared forms, of each of which there must be some.
/// `takes` says whether a block of so many values has the layout that the codec expects.
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
    check_both_ways("vbyte.json", Codec::VByte);
}

#[test]
fn vbyte_delta() {
    check_both_ways("vbyte_delta.json", Codec::VByteDelta);
}

// In the next two files blocks of 256 are horizontal as well; ours are vertical.

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
