//! Checks what an Arrow message says of its body, before a decoder allocates it.

use crate::size::show_bytes;
use arrow_ipc::{CompressionType, Endianness, RecordBatch, convert::fb_to_schema};
use arrow_schema::Schema;
use std::io::{self, Read};

/// Length of the prefix of a compressed buffer: its uncompressed length.
const PREFIX_BYTES: usize = 8;

/// Maximum ratio of the length of LZ4 data to their compressed length.
const LZ4_RATIO_MAX: u64 = 255;

/// The columns of a stream or file.
pub(super) fn read_schema(schema: arrow_ipc::Schema<'_>) -> Result<Schema, String> {
    if schema.endianness() != Endianness::Little {
        return Err("its numbers are big-endian, which is not supported".to_string());
    }
    Ok(fb_to_schema(schema))
}

/// Checks a record batch, or the values of a dictionary: positions of buffers, numbers of rows, and the
/// memory of compressed buffers. Returns the uncompressed length of the body.
pub(super) fn check_batch(batch: RecordBatch<'_>, body: &[u8], bytes_max: u64) -> Result<u64, String> {
    let negative = || "its metadata has a negative length".to_string();
    let rows = u64::try_from(batch.length()).map_err(|_| negative())?;
    for node in batch.nodes().into_iter().flatten() {
        if node.length() < 0 || node.null_count() < 0 {
            return Err(negative());
        }
    }
    let codec = batch.compression().map(|compression| compression.codec());
    let mut total = 0u64;
    for buffer in batch.buffers().into_iter().flatten() {
        let bounds = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let bytes = bounds.and_then(|(offset, length)| body.get(offset..)?.get(..length));
        let bytes = bytes.ok_or("its metadata names bytes beyond its body")?;
        let length = match codec {
            Some(codec) if !bytes.is_empty() => unpacked_length(bytes, codec, bytes_max)?,
            _ => bytes.len() as u64,
        };
        total = total.saturating_add(length);
        if total > bytes_max {
            return Err(format!(
                "its columns need {}, {} at most; a larger --memory allows more, or write smaller record batches",
                show_bytes(total),
                show_bytes(bytes_max)
            ));
        }
    }
    // Each row has a bit at least.
    if rows > total.saturating_mul(8) {
        return Err(format!("it has {rows} rows and {total} bytes"));
    }
    Ok(total)
}

/// The declared length of a compressed buffer.
fn unpacked_length(bytes: &[u8], codec: CompressionType, bytes_max: u64) -> Result<u64, String> {
    let (prefix, packed) = bytes.split_first_chunk::<PREFIX_BYTES>().ok_or("a compressed buffer is cut")?;
    let length = match i64::from_le_bytes(*prefix) {
        // Not compressed.
        -1 => return Ok(packed.len() as u64),
        length => u64::try_from(length).map_err(|_| "a compressed buffer has a negative length")?,
    };
    let packed_bytes = packed.len() as u64;
    // The decoder of LZ4 reads to the end of the data, whatever the declared length.
    let is_bounded = codec != CompressionType::LZ4_FRAME || packed_bytes * LZ4_RATIO_MAX <= bytes_max;
    if length <= bytes_max && !is_bounded && has_more_bytes(packed, length) {
        return Err("a compressed buffer is longer than it says".to_string());
    }
    Ok(length)
}

/// Whether LZ4 data yield more than `length` bytes.
fn has_more_bytes(packed: &[u8], length: u64) -> bool {
    let mut decoder = lz4_flex::frame::FrameDecoder::new(packed).take(length + 1);
    io::copy(&mut decoder, &mut io::sink()).is_ok_and(|bytes| bytes > length)
}

#[cfg(test)]
mod tests {
    use super::super::ipc_message::MessageStream;
    use super::*;
    use arrow_array::{ArrayRef, Int64Array, RecordBatch as Rows};
    use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
    use std::sync::Arc;

    /// The record batch of a stream: 1,000 equal integers.
    fn message_of(codec: Option<CompressionType>) -> super::super::ipc_message::IpcMessage {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![7; 1000]));
        let rows = Rows::try_from_iter([("a", column)]).unwrap();
        let options = IpcWriteOptions::default().try_with_compression(codec).unwrap();
        let mut writer = StreamWriter::try_new_with_options(Vec::new(), &rows.schema(), options).unwrap();
        writer.write(&rows).unwrap();
        let stream = std::io::Cursor::new(writer.into_inner().unwrap());
        let mut stream = MessageStream { reader: Box::new(stream), bytes_max: 1 << 20 };
        stream.next().unwrap().unwrap();
        stream.next().unwrap().unwrap()
    }

    #[test]
    fn buffers_are_within_the_body_and_the_memory() {
        for codec in [None, Some(CompressionType::ZSTD), Some(CompressionType::LZ4_FRAME)] {
            let message = message_of(codec);
            let root = message.message().unwrap();
            let batch = root.header_as_record_batch().unwrap();
            let check = |body: &[u8], bytes_max| check_batch(batch, body, bytes_max);
            assert_eq!(check(&message.body, 8000), Ok(8000), "{codec:?}");
            assert!(check(&message.body, 7999).unwrap_err().contains("a larger --memory"), "{codec:?}");
            let cut = check(&message.body[..8], 1 << 20).unwrap_err();
            assert!(cut.contains("bytes beyond its body"), "{cut}");
            if codec.is_none() {
                continue;
            }
            let prefix = 8000i64.to_le_bytes();
            let at = message.body.windows(8).position(|bytes| bytes == prefix).unwrap();
            for (length, words) in [(-2, "negative length"), (1 << 62, "a larger --memory"), (1, "1000 rows")]
            {
                let mut forged = message.body.to_vec();
                forged[at..at + 8].copy_from_slice(&i64::to_le_bytes(length));
                let error = check(&forged, 1 << 20).unwrap_err();
                assert!(error.contains(words), "{codec:?} {length}: {error}");
            }
            let mut forged = message.body.to_vec();
            forged[at..at + 8].copy_from_slice(&4000i64.to_le_bytes());
            let longer = check(&forged, 4000);
            let is_found = longer.is_err_and(|error| error.contains("longer than it says"));
            assert_eq!(is_found, codec == Some(CompressionType::LZ4_FRAME));
        }
    }
}
