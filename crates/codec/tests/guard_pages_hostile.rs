//! Truncated, damaged and random bytes that end at a guard page: no fault, no panic, and every kernel
//! returns the result of the scalar one.

mod pages;
mod samples;

use pages::{Pages, Side};
use samples::{Random, VALUE_BEFORE_LIST, random_bytes, values_of_gaps};
use tierdex_codec::{BLOCK, Codec, DecodeError, Kernel};

/// Number of random blocks of a test.
const RANDOM_BLOCKS: usize = 100_000;

/// Maximum length of random bytes: longer than any block.
const LEN_MAX: usize = 2048;

/// Guarded pages for the bytes and for the values of a decoder.
struct DecoderPages {
    bytes: Pages,
    values: Pages,
    kernels: Vec<Kernel>,
}

impl DecoderPages {
    fn new() -> DecoderPages {
        let values = Pages::new(size_of::<u32>() * BLOCK);
        DecoderPages { bytes: Pages::new(LEN_MAX), values, kernels: Kernel::available() }
    }

    /// Decodes with all kernels, which must agree with the scalar one. Returns its result.
    fn decode(&mut self, codec: Codec, side: Side, bytes: &[u8], n: usize) -> Result<usize, DecodeError> {
        let copy = self.bytes.bytes(side, bytes.len());
        copy.copy_from_slice(bytes);
        let mut expect = [0; BLOCK];
        let decoded = codec.decode_with(Kernel::SCALAR, copy, VALUE_BEFORE_LIST, &mut expect[..n]);
        for kernel in &self.kernels {
            let out = self.values.values(side, n);
            let other = codec.decode_with(*kernel, copy, VALUE_BEFORE_LIST, out);
            let same = other == decoded && (decoded.is_err() || *out == expect[..n]);
            assert!(
                same,
                "{kernel:?}, {}, {side:?}, {n} values of {copy:02x?}: {other:?}, not {decoded:?}",
                codec.name()
            );
        }
        let len = codec.encoded_len(copy, n);
        match decoded {
            Err(DecodeError::Invalid) => {}
            _ => assert_eq!(len, decoded, "{}, {n} values of {copy:02x?}", codec.name()),
        }
        assert!(len.is_err() || len.is_ok_and(|len| len <= bytes.len()), "{}: {len:?}", codec.name());
        decoded
    }
}

/// A random number of values of a block: a quarter have 256, a quarter fewer than ten.
fn random_count(random: &mut Random) -> usize {
    match random.below(4) {
        0 => BLOCK,
        1 => 1 + random.below(9) as usize,
        _ => 1 + random.below(BLOCK as u64) as usize,
    }
}

#[test]
fn every_prefix_of_a_block_is_truncated() {
    let mut pages = DecoderPages::new();
    for &codec in Codec::ALL {
        for gaps in samples::sample_blocks() {
            let block = samples::encode(codec, &values_of_gaps(codec, &gaps));
            for len in 0..block.len() {
                let short = pages.decode(codec, Side::End, &block[..len], gaps.len());
                assert_eq!(short, Err(DecodeError::Truncated), "{}, {len} of {block:02x?}", codec.name());
            }
        }
    }
}

#[test]
fn blocks_are_decoded_with_another_count() {
    let mut pages = DecoderPages::new();
    for &codec in Codec::ALL {
        for gaps in samples::sample_blocks() {
            let block = samples::encode(codec, &values_of_gaps(codec, &gaps));
            for n in [1, 7, gaps.len() - 1, gaps.len() + 1, gaps.len() + 16, BLOCK] {
                for side in Side::ALL {
                    _ = pages.decode(codec, side, &block, n.min(BLOCK));
                }
            }
        }
    }
}

#[test]
fn blocks_with_a_few_bytes_changed_are_decoded_alike() {
    let (mut pages, mut random, mut good) = (DecoderPages::new(), Random(30), 0);
    let blocks = samples::sample_blocks();
    for _ in 0..RANDOM_BLOCKS {
        let gaps = &blocks[random.below(blocks.len() as u64) as usize];
        let codec = Codec::ALL[random.below(Codec::ALL.len() as u64) as usize];
        let mut block = samples::encode(codec, &values_of_gaps(codec, gaps));
        for _ in 0..=random.below(3) {
            // Half of the changes are in the header bytes.
            let reach = if random.below(2) == 0 { block.len().min(4) } else { block.len() };
            block[random.below(reach as u64) as usize] = random.next() as u8;
        }
        good += usize::from(pages.decode(codec, Side::End, &block, gaps.len()).is_ok());
    }
    assert!((1..RANDOM_BLOCKS).contains(&good), "{good} of {RANDOM_BLOCKS} decoded");
}

#[test]
fn random_bytes_are_decoded_alike() {
    let (mut pages, mut random, mut good) = (DecoderPages::new(), Random(31), 0);
    for _ in 0..RANDOM_BLOCKS {
        let reach = if random.below(4) == 0 { LEN_MAX } else { 80 };
        let mut bytes = random_bytes(&mut random, reach as u64);
        if let Some(first) = bytes.first_mut().filter(|_| random.below(2) == 0) {
            *first = (random.below(4) << 6 | random.below(34)) as u8;
        }
        let n = random_count(&mut random);
        for &codec in Codec::ALL {
            good += usize::from(pages.decode(codec, Side::End, &bytes, n).is_ok());
        }
    }
    assert!((1..RANDOM_BLOCKS * Codec::ALL.len()).contains(&good), "{good} decoded");
}

#[test]
fn random_bytes_after_likely_pfor_headers_are_decoded_alike() {
    let (mut pages, mut random) = (DecoderPages::new(), Random(11));
    for _ in 0..RANDOM_BLOCKS {
        let n = random_count(&mut random);
        let count = random.below(12) as u8;
        let header = (random.below(4) << 6 | random.below(34)) as u8;
        let mut bytes = vec![header, count, count + random.below(6) as u8];
        bytes.extend((0..random.below(1100)).map(|_| random.next() as u8 & random.next() as u8));
        _ = pages.decode(Codec::Pfor256, Side::End, &bytes, n);
        _ = pages.decode(Codec::Pfor256Delta, Side::End, &bytes, n);
    }
}

#[test]
fn random_bytes_after_likely_headers_are_decoded_alike() {
    let (mut pages, mut random) = (DecoderPages::new(), Random(13));
    for _ in 0..RANDOM_BLOCKS {
        let n = random_count(&mut random);
        // A form, then the length of a bitmap, a width or control bytes.
        let mut bytes = vec![random.below(14) as u8];
        bytes.extend(((random.below(40) << random.below(6)) as u16).to_le_bytes());
        bytes.extend((0..random.below(1100)).map(|_| random.next() as u8 & random.next() as u8));
        _ = pages.decode(Codec::Auto, Side::End, &bytes, n);
        for codec in [Codec::StreamVByte, Codec::Bp256Delta, Codec::Bitmap] {
            _ = pages.decode(codec, Side::End, &bytes[1..], n);
        }
    }
}

#[test]
fn random_bitmaps_with_the_right_number_of_bits_are_decoded() {
    let (mut pages, mut random) = (DecoderPages::new(), Random(14));
    let (mut bytes, mut decoded) = (Vec::new(), 0);
    for _ in 0..20_000 {
        bytes.clear();
        bytes.extend((0..1 + random.below(80)).map(|_| random.next() as u8 & random.next() as u8));
        let n: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
        bytes.splice(..0, (bytes.len() as u16).to_le_bytes());
        _ = pages.decode(Codec::Bitmap, Side::End, &bytes, (n as usize).clamp(1, BLOCK));
        _ = pages.decode(Codec::Bitmap, Side::End, &bytes, (n as usize + 1).min(BLOCK));
        let mut out = vec![0; (n as usize).clamp(1, BLOCK)];
        decoded += usize::from(Codec::Bitmap.decode(&bytes, u32::MAX, &mut out).is_ok());
    }
    assert!(decoded > 10_000, "{decoded}");
}
