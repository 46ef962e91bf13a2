//! Worked examples of the formats: values and their bytes in hex.

mod samples;

use tierdex_codec::{Codec, WideBlock};

/// Checks that `values` are encoded to `bytes`, which are in hex, and decoded again. Spaces and bars in
/// `bytes` are ignored.
#[track_caller]
fn check_example(codec: Codec, prev: u32, values: &[u32], bytes: &str) {
    let expect = from_hex(bytes);
    let mut written = Vec::new();
    codec.encode(values, prev, &mut written);
    assert_eq!(written, expect, "{} of {values:?}: {written:02x?}", codec.name());
    assert_eq!(samples::decode(codec, &expect, prev, values.len()), (values.to_vec(), expect.len()));
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

#[test]
fn raw_examples() {
    check_example(Codec::Raw, 0, &[1, 0x0102_0304], "01 00 00 00 | 04 03 02 01");
}

#[test]
fn vbyte_examples() {
    let check = |values, bytes| check_example(Codec::VByte, 0, values, bytes);
    check(&[127], "7f");
    check(&[128], "80 01");
    check(&[16383], "ff 7f");
    check(&[16384], "80 80 01");
    check(&[u32::MAX], "ff ff ff ff 0f");
    check(&[10, 33, 500, 10, 10, 80000, 3, 300], "0a 21 f4 03 0a 0a 80 f1 04 03 ac 02");
}

#[test]
fn vbyte_delta_examples() {
    check_example(Codec::VByteDelta, 0, &[10, 43, 543, 80543], "0a 21 f4 03 80 f1 04");
    check_example(Codec::VByteDelta, u32::MAX, &[0, 1, 200], "01 01 c7 01");
}

#[test]
fn pfor_plain_examples() {
    let check = |values, bytes| check_example(Codec::Pfor256, 0, values, bytes);
    check(&[0], "00");
    check(&[0; 4], "00");
    check(&[0; 128], "00");
    check(&[0; 256], "00");
    check(&[0, 1, 2, 3, 4, 5, 6, 7, 8], "04 | 10 32 54 76 08");
    check(&[1, 2, 3, 4], "03 | d1 08");
}

#[test]
fn pfor_plain_vertical_example() {
    // Byte k of the word of a lane in row r is value 4 r + k of that lane; a lane has every eighth value.
    let value_at = |byte: u8| byte / 32 * 32 + byte % 4 * 8 + byte % 32 / 4;
    let bytes: Vec<u8> = (0..=255).map(value_at).collect();
    assert_eq!(bytes[..8], [0x00, 0x08, 0x10, 0x18, 0x01, 0x09, 0x11, 0x19]);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let values: Vec<u32> = (0..256).collect();
    check_example(Codec::Pfor256, 0, &values, &format!("08 | {hex}"));
}

#[test]
fn pfor_constant_examples() {
    let check = |values, bytes| check_example(Codec::Pfor256, 0, values, bytes);
    check(&[1], "c1 | 01");
    check(&[1; 8], "c1 | 01");
    check(&[u32::MAX], "e0 | ff ff ff ff");
    check(&[u32::MAX; 128], "e0 | ff ff ff ff");
    check(&[1000; 128], "ca | e8 03");
    check(&[70000; 256], "d1 | 70 11 01");
}

#[test]
fn pfor_bitmap_example() {
    // The exceptions are 64 and 16512 above 10 low bits.
    let bytes = "8a 0f | 0c | 40 00 40 20 | 01 08 34 20 c1";
    check_example(Codec::Pfor256, 0, &[1, 258, 66051, 16_909_060], bytes);
}

#[test]
fn pfor_sparse_example() {
    let mut values = [1; 64];
    values[5] = 9;
    check_example(Codec::Pfor256, 0, &values, "41 03 | 01 20 | 04 | ff ff ff ff ff ff ff ff");
}

#[test]
fn pfor_horizontal_examples() {
    let hex: String = (0..=255).map(|byte: u8| format!("{byte:02x}")).collect();
    let values: Vec<u32> = (0..256).collect();
    check_example(Codec::Pfor, 0, &values, &format!("08 | {hex}"));
    let every_16th: Vec<u32> = (1..=256).map(|k| 16 * k - 1).collect();
    check_example(Codec::PforDelta, u32::MAX, &every_16th, "c4 | 0f");
    check_example(Codec::PforDelta, u32::MAX, &[3, 9, 27, 81, 243, 729], "09 | 03 0a 44 a8 11 aa 3c");
}

#[test]
fn streamvbyte_examples() {
    let check = |values, bytes| check_example(Codec::StreamVByte, 0, values, bytes);
    check(&[0], "00 | 00");
    check(&[1, 2, 3, 4], "00 | 01 02 03 04");
    check(&[1, 0x0102, 0x01_0203, 0x0102_0304], "e4 | 01 02 01 03 02 01 04 03 02 01");
    check(&[1024, 12, 10, 1 << 30, 3], "c1 00 | 00 04 0c 0a 00 00 00 40 03");
    check(&[u32::MAX; 3], "3f | ff ff ff ff ff ff ff ff ff ff ff ff");
}

#[test]
fn streamvbyte_delta_examples() {
    let values = &[1, 201, 70201, 20_070_201];
    check_example(Codec::StreamVByteDelta, 0, values, "e0 | 01 c8 70 11 01 00 2d 31 01");
    check_example(Codec::StreamVByteDelta, u32::MAX, &[0, 201, 70201], "20 | 01 c9 70 11 01");
}

#[test]
fn bp256_delta_examples() {
    let check = |prev, values, bytes| check_example(Codec::Bp256Delta, prev, values, bytes);
    check(u32::MAX, &[0, 1, 2], "00");
    check(u32::MAX, &[3, 9, 27, 81, 243, 729], "09 | 03 0a 44 a8 11 aa 3c");
    check(4, &[u32::MAX], "20 | fa ff ff ff");
    let full: Vec<u32> = (1..=256).map(|k| 2 * k).collect();
    check(0, &full, &format!("01 | {}", "ff".repeat(32)));
}

#[test]
fn bitmap_examples() {
    let check = |prev, values, bytes| check_example(Codec::Bitmap, prev, values, bytes);
    check(u32::MAX, &[0, 1, 2, 5], "01 00 | 27");
    check(u32::MAX, &[1, 9, 12], "02 00 | 02 12");
    check(99, &[100, 108], "02 00 | 10 10");
    check(u32::MAX, &[3, 70000], "00 00 | 03 00 00 00 70 11 01 00");
}

#[test]
fn auto_examples() {
    let check = |prev, values, bytes| check_example(Codec::Auto, prev, values, bytes);
    check(u32::MAX, &[0, 1, 2, 3], "00");
    check(u32::MAX, &[3, 9, 27, 81, 243, 729], "09 | 03 0a 44 a8 11 aa 3c");
    let runs: Vec<u32> = (0..=6).chain(11..=15).chain(19..=22).collect();
    check(u32::MAX, &runs, "3f 03 | 7f f8 78");
    let later: Vec<u32> = runs.iter().map(|id| id + 10).collect();
    check(9, &later, "3f 04 | fc e1 e3 01");
    check(u32::MAX, &(1..=256).map(|k| 16 * k - 1).collect::<Vec<_>>(), "c4 | 0f");
}

#[test]
fn wide_examples() {
    let page = include_str!("../../../docs/format/codecs.md");
    for (values, smallest, width, bytes) in [
        (&[1000, 1003, 1001][..], 1000, 2, "1c"),
        (&[7, 7, 7], 7, 0, ""),
        (&[5, 4_294_967_302, 8_589_934_597], 5, 34, "00 00 00 00 01 00 00 00 00 00 00 00 24"),
        (&[0, u64::MAX], 0, 64, "00 00 00 00 ff ff ff ff 00 00 00 00 ff ff ff ff"),
    ] {
        let (mut written, mut back) = (Vec::new(), vec![0; values.len()]);
        let block = WideBlock::encode(values, &mut written);
        assert_eq!(block, WideBlock { smallest, width, len: values.len() });
        assert_eq!(written, from_hex(bytes), "{values:?}: {written:02x?}");
        block.view(&written).expect("a block").decode(&mut back);
        assert_eq!(back, values);
        let all: Vec<String> = values.iter().map(u64::to_string).collect();
        let line = format!("{:<26} {smallest}  {width}  {bytes}", all.join(" "));
        assert!(page.lines().any(|found| found == line.trim_end()), "docs/format/codecs.md has no `{line}`");
    }
}

#[test]
fn pfor_delta_examples() {
    let check = |values, bytes| check_example(Codec::Pfor256Delta, u32::MAX, values, bytes);
    check(&[3, 9, 27, 81, 243, 729], "09 | 03 0a 44 a8 11 aa 3c");
    check(&[0, 1, 2, 3], "00");
    check(&(0..256).map(|k| 16 * k + 15).collect::<Vec<_>>(), "c4 | 0f");
}
