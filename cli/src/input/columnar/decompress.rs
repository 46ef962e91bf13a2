//! Decompresses Parquet pages to their declared length. Nothing longer is ever written.

use flate2::bufread::MultiGzDecoder;
use lz4_flex::{block, frame::FrameDecoder};
use parquet::basic::Compression;
use std::io::Read;

/// Decompresses `packed`, which must yield `length` bytes.
pub(super) fn decompress_page(codec: Compression, packed: &[u8], length: usize) -> Result<Vec<u8>, String> {
    let damaged = || format!("the {} data of a page is damaged", codec_name(codec));
    let unpacked = match codec {
        Compression::SNAPPY => decompress_snappy(packed, length),
        Compression::GZIP(_) => read_exactly(MultiGzDecoder::new(packed), length),
        Compression::ZSTD(_) => {
            zstd::bulk::decompress(packed, length).ok().filter(|unpacked| unpacked.len() == length)
        }
        Compression::LZ4_RAW => decompress_lz4_block(packed, length),
        Compression::LZ4 => decompress_hadoop_lz4(packed, length)
            .or_else(|| read_exactly(FrameDecoder::new(packed), length))
            .or_else(|| decompress_lz4_block(packed, length)),
        Compression::UNCOMPRESSED => {
            return Err("a page that is not compressed has another length".to_string());
        }
        Compression::LZO | Compression::BROTLI(_) => {
            return Err(format!(
                "{} compression is not supported; write the file with zstd",
                codec_name(codec)
            ));
        }
    };
    unpacked.ok_or_else(damaged)
}

fn codec_name(codec: Compression) -> String {
    let name = codec.to_string();
    name.split('(').next().unwrap_or_default().to_ascii_lowercase()
}

fn decompress_snappy(packed: &[u8], length: usize) -> Option<Vec<u8>> {
    if snap::raw::decompress_len(packed).ok()? != length {
        return None;
    }
    let mut unpacked = vec![0; length];
    let written = snap::raw::Decoder::new().decompress(packed, &mut unpacked).ok()?;
    (written == length).then_some(unpacked)
}

fn decompress_lz4_block(packed: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut unpacked = vec![0; length];
    let written = block::decompress_into(packed, &mut unpacked).ok()?;
    (written == length).then_some(unpacked)
}

/// Blocks of Hadoop, each with its length and compressed length as big-endian integers.
fn decompress_hadoop_lz4(packed: &[u8], length: usize) -> Option<Vec<u8>> {
    let (mut rest, mut unpacked) = (packed, vec![0; length]);
    let mut at = 0;
    while !rest.is_empty() {
        let (sizes, after) = rest.split_first_chunk::<8>()?;
        let [a, b, c, d, e, f, g, h] = *sizes;
        let block_length = u32::from_be_bytes([a, b, c, d]) as usize;
        let (block, after) = after.split_at_checked(u32::from_be_bytes([e, f, g, h]) as usize)?;
        let into = unpacked.get_mut(at..)?.get_mut(..block_length)?;
        if block::decompress_into(block, into).ok()? != block_length {
            return None;
        }
        at += block_length;
        rest = after;
    }
    (at == length).then_some(unpacked)
}

/// The bytes of a stream, if they are exactly `length`.
fn read_exactly(stream: impl Read, length: usize) -> Option<Vec<u8>> {
    let mut unpacked = Vec::with_capacity(length);
    stream.take(length as u64 + 1).read_to_end(&mut unpacked).ok()?;
    (unpacked.len() == length).then_some(unpacked)
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{gzip_member, zstd_frame};
    use super::*;
    use parquet::basic::{GzipLevel, ZstdLevel};

    #[test]
    fn pages_have_their_declared_length() {
        let text = b"some words of a page, and some words".repeat(20);
        let block = block::compress(&text);
        let sizes = [(text.len() as u32).to_be_bytes(), (block.len() as u32).to_be_bytes()].concat();
        let mut snappy = vec![0; snap::raw::max_compress_len(text.len())];
        let end = snap::raw::Encoder::new().compress(&text, &mut snappy).unwrap();
        snappy.truncate(end);
        for (codec, packed) in [
            (Compression::SNAPPY, snappy),
            (Compression::GZIP(GzipLevel::default()), gzip_member(&text)),
            (Compression::ZSTD(ZstdLevel::default()), zstd_frame(&text)),
            (Compression::LZ4_RAW, block.clone()),
            (Compression::LZ4, [&sizes[..], &block].concat()),
            (Compression::LZ4, block),
        ] {
            assert_eq!(decompress_page(codec, &packed, text.len()).unwrap(), text, "{codec}");
            for length in [0, 1, text.len() - 1, text.len() + 1] {
                let error = decompress_page(codec, &packed, length).unwrap_err();
                assert!(error.ends_with("data of a page is damaged"), "{error}");
            }
            assert!(decompress_page(codec, &packed[..packed.len() / 2], text.len()).is_err());
        }
        let error = decompress_page(Compression::LZO, b"", 1).unwrap_err();
        assert_eq!(error, "lzo compression is not supported; write the file with zstd");
    }
}
