//! Streaming decompression of a block of stored documents, in constant memory.
//!
//! A block may contain documents of hundreds of MB. It is read and decompressed only up to the last value
//! that the caller asks for.

use super::source::BlockSource;
use crate::{Error, Result, limits::DOCUMENT_BYTES_MAX};
use std::{ops::Range, sync::Arc};
use tierdex_io::SealedFile;
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

/// Bytes that are read, and bytes that are decompressed, at a time.
const PIECE_BYTES: usize = 64 << 10;

/// Largest window of a zstd frame that is decompressed, as a power of two: the compression level of the
/// writer has windows of at most 512 KiB.
const WINDOW_LOG_MAX: u32 = 19;

/// Bytes of memory for decompression beside the returned strings: the window, the internal buffers of zstd,
/// and two pieces.
pub const UNPACK_BYTES: u64 = (1 << WINDOW_LOG_MAX) + (512 << 10) + 2 * PIECE_BYTES as u64;

/// Creates a decoder, which can be reused for other blocks.
pub(super) fn new_decoder() -> std::io::Result<Decoder<'static>> {
    let mut decoder = Decoder::new()?;
    decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX))?;
    Ok(decoder)
}

/// Reads the strings of a compressed block in order.
pub(super) struct Unpacker<'a> {
    file: &'a Arc<SealedFile>,
    source: &'a dyn BlockSource,
    decoder: &'a mut Decoder<'static>,
    /// Offset of the block in the file, for error messages, and its unread byte range.
    offset: u64,
    rest: Range<u64>,
    /// Bytes decompressed so far.
    unpacked: u64,
    /// Compressed bytes that were read, and the offset of those that were not decompressed yet.
    packed: Vec<u8>,
    packed_at: usize,
    /// Decompressed bytes, and the offset of those that were not consumed yet.
    raw: Vec<u8>,
    raw_at: usize,
}

impl<'a> Unpacker<'a> {
    /// `block` is the byte range of the block in the file, which is read from `source`.
    pub(super) fn new(
        file: &'a Arc<SealedFile>,
        source: &'a dyn BlockSource,
        block: Range<u64>,
        decoder: &'a mut Decoder<'static>,
    ) -> Result<Unpacker<'a>> {
        let unpacker = Unpacker {
            file,
            source,
            decoder,
            offset: block.start,
            rest: block,
            unpacked: 0,
            packed: Vec::new(),
            packed_at: 0,
            raw: Vec::with_capacity(PIECE_BYTES),
            raw_at: 0,
        };
        unpacker.decoder.reinit().map_err(|error| unpacker.corrupt(format!("cannot unpack: {error}")))?;
        Ok(unpacker)
    }

    /// The next string, which is stored as its length and its bytes, truncated to at most `bytes_max` bytes
    /// at a character boundary.
    pub(super) fn string(&mut self, bytes_max: usize) -> Result<String> {
        let len = self.varint()?;
        self.text(len, bytes_max)
    }

    /// The next value of a member, truncated as by [`Unpacker::string`], and whether another value of the
    /// member follows, which is stored as the lowest bit of the length.
    pub(super) fn value(&mut self, bytes_max: usize) -> Result<(String, bool)> {
        let head = self.varint()?;
        Ok((self.text(head >> 1, bytes_max)?, head & 1 == 1))
    }

    fn text(&mut self, len: u64, bytes_max: usize) -> Result<String> {
        if len > DOCUMENT_BYTES_MAX as u64 {
            return Err(self.corrupt("string is impossibly long"));
        }
        // The length is not trusted: the buffer grows with what was read, up to it.
        let kept_max = bytes_max.min(len as usize);
        let mut kept = Vec::with_capacity(kept_max.min(PIECE_BYTES));
        let mut missing = len as usize;
        while missing > 0 {
            self.require_byte()?;
            let piece = &self.raw[self.raw_at..];
            let piece = &piece[..piece.len().min(missing)];
            let added = piece.len().min(kept_max - kept.len());
            if kept.capacity() < kept.len() + added {
                kept.reserve_exact(kept.len().max(added).min(kept_max - kept.len()));
            }
            kept.extend_from_slice(&piece[..added]);
            self.raw_at += piece.len();
            missing -= piece.len();
        }
        self.decode_text(kept, len as usize)
    }

    /// The first bytes of a string of `len` bytes as text, without a truncated character at the end.
    fn decode_text(&self, mut kept: Vec<u8>, len: usize) -> Result<String> {
        if let Err(error) = std::str::from_utf8(&kept) {
            if error.error_len().is_some() || kept.len() == len {
                return Err(self.corrupt("string is no valid UTF-8"));
            }
            kept.truncate(error.valid_up_to());
        }
        String::from_utf8(kept).map_err(|_| self.corrupt("string is no valid UTF-8"))
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            self.require_byte()?;
            let byte = self.raw[self.raw_at];
            self.raw_at += 1;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.corrupt("number is too long"))
    }

    /// Checks that the block ends here, after `raw_len` decompressed bytes.
    pub(super) fn finish(&mut self, raw_len: u64) -> Result<()> {
        if self.has_byte()? {
            return Err(self.corrupt("bytes follow the documents of a block"));
        }
        if self.unpacked != raw_len || self.packed_at < self.packed.len() || !self.rest.is_empty() {
            return Err(self.corrupt("block unpacks to another length"));
        }
        Ok(())
    }

    /// Decompresses until an unconsumed byte is available; an error at the end of the block.
    fn require_byte(&mut self) -> Result<()> {
        if self.has_byte()? { Ok(()) } else { Err(self.corrupt("block ends early")) }
    }

    /// Decompresses until an unconsumed byte is available; false at the end of the block.
    fn has_byte(&mut self) -> Result<bool> {
        while self.raw_at == self.raw.len() {
            if self.packed_at == self.packed.len() && !self.rest.is_empty() {
                let end = self.rest.end.min(self.rest.start + PIECE_BYTES as u64);
                self.source.read(self.file, self.rest.start..end, &mut self.packed)?;
                self.rest.start = end;
                self.packed_at = 0;
            }
            self.raw.clear();
            self.raw_at = 0;
            let mut input = InBuffer::around(&self.packed[self.packed_at..]);
            let mut output = OutBuffer::around(&mut self.raw);
            let done = self.decoder.run(&mut input, &mut output);
            let (read, written) = (input.pos(), output.pos());
            let hint = done.map_err(|error| self.corrupt(format!("cannot unpack: {error}")))?;
            self.packed_at += read;
            self.unpacked += written as u64;
            let stuck = read == 0 && self.packed_at == self.packed.len() && self.rest.is_empty();
            if written == 0 && (hint == 0 || stuck) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn corrupt(&self, what: impl Into<String>) -> Error {
        Error::corrupt(self.file.name(), self.offset, what)
    }
}
