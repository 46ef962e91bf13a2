//! Bytes that no encoder wrote: errors or values, never a panic and never a byte beyond the slice.

mod samples;

use samples::{Random, as_input};
use tierdex_codec::{BLOCK, Codec, DecodeError};

/// Decodes any bytes, and checks that value and length results are consistent.
fn decode_any(codec: Codec, bytes: &[u8], n: usize) {
    let mut out = [0; BLOCK];
    let len = codec.encoded_len(bytes, n);
    if let Ok(used) = codec.decode(bytes, 0, &mut out[..n]) {
        assert!(used <= bytes.len());
        assert_eq!(len, Ok(used), "{}, {n} values of {bytes:02x?}", codec.name());
    }
    assert!(len.is_ok_and(|len| len <= bytes.len()) || len.is_err());
}

/// Mostly lengths at the ends of the range, where the layouts change.
fn any_count(random: &mut Random) -> usize {
    match random.below(4) {
        0 => BLOCK,
        1 => 1 + random.below(9) as usize,
        _ => 1 + random.below(BLOCK as u64) as usize,
    }
}

#[test]
fn random_bytes() {
    let mut random = Random(10);
    let mut bytes = Vec::new();
    for _ in 0..200_000 {
        bytes.clear();
        let reach = if random.below(8) == 0 { 1400 } else { 60 };
        bytes.extend((0..random.below(reach)).map(|_| random.next() as u8));
        let n = any_count(&mut random);
        for &codec in Codec::ALL {
            decode_any(codec, &bytes, n);
        }
    }
}

#[test]
fn random_bytes_after_likely_headers() {
    let mut random = Random(11);
    for _ in 0..200_000 {
        let n = any_count(&mut random);
        let count = random.below(12) as u8;
        let header = (random.below(4) << 6 | random.below(34)) as u8;
        let mut bytes = vec![header, count, count + random.below(6) as u8];
        bytes.extend((0..random.below(1100)).map(|_| random.next() as u8 & random.next() as u8));
        decode_any(Codec::Pfor256, &bytes, n);
        decode_any(Codec::Pfor256Delta, &bytes, n);
    }
}

#[test]
fn random_bytes_after_likely_headers_of_other_codecs() {
    let mut random = Random(13);
    for _ in 0..200_000 {
        let n = any_count(&mut random);
        // A form, then the length of a bitmap, a width or control bytes.
        let mut bytes = vec![random.below(14) as u8];
        bytes.extend(((random.below(40) << random.below(6)) as u16).to_le_bytes());
        bytes.extend((0..random.below(1100)).map(|_| random.next() as u8 & random.next() as u8));
        decode_any(Codec::Auto, &bytes, n);
        for codec in [Codec::StreamVByte, Codec::Bp256Delta, Codec::Bitmap] {
            decode_any(codec, &bytes[1..], n);
        }
    }
}

#[test]
fn bitmaps_of_the_right_number_of_bits_decode() {
    let mut random = Random(14);
    let (mut bytes, mut decoded) = (Vec::new(), 0);
    for _ in 0..20_000 {
        bytes.clear();
        bytes.extend((0..1 + random.below(80)).map(|_| random.next() as u8 & random.next() as u8));
        let n: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
        bytes.splice(..0, (bytes.len() as u16).to_le_bytes());
        decode_any(Codec::Bitmap, &bytes, (n as usize).clamp(1, BLOCK));
        decode_any(Codec::Bitmap, &bytes, (n as usize + 1).min(BLOCK));
        let mut out = vec![0; (n as usize).clamp(1, BLOCK)];
        decoded += usize::from(Codec::Bitmap.decode(&bytes, u32::MAX, &mut out).is_ok());
    }
    assert!(decoded > 10_000, "{decoded}");
}

#[test]
fn blocks_with_a_few_bytes_changed() {
    let mut random = Random(12);
    for &codec in Codec::ALL {
        for gaps in samples::blocks() {
            let good = samples::encode(codec, &as_input(codec, &gaps));
            for _ in 0..60 {
                let mut bytes = good.clone();
                for _ in 0..=random.below(3) {
                    // Half of the changes are in the header bytes.
                    let reach = if random.below(2) == 0 { bytes.len().min(4) } else { bytes.len() };
                    bytes[random.below(reach as u64) as usize] = random.next() as u8;
                }
                decode_any(codec, &bytes, gaps.len());
            }
        }
    }
}

#[test]
fn every_truncation_is_an_error() {
    for &codec in Codec::ALL {
        for gaps in samples::blocks() {
            let good = samples::encode(codec, &as_input(codec, &gaps));
            let mut out = vec![0; gaps.len()];
            for len in 0..good.len() {
                let short = &good[..len];
                assert_eq!(codec.decode(short, 0, &mut out), Err(DecodeError::Truncated), "{}", codec.name());
                assert_eq!(codec.encoded_len(short, gaps.len()), Err(DecodeError::Truncated));
            }
        }
    }
}

#[test]
fn blocks_decoded_with_another_count_do_not_panic() {
    for &codec in Codec::ALL {
        for gaps in samples::blocks() {
            let bytes = samples::encode(codec, &as_input(codec, &gaps));
            for n in [1, gaps.len() - 1, gaps.len() + 1, BLOCK] {
                decode_any(codec, &bytes, n.min(BLOCK));
            }
        }
    }
}
