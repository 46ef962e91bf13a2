//! Streaming decompression of a block of stored documents, in constant memory.
//!
//! A block may contain documents of hundreds of MB. For a title and the beginning of a text, only the bytes
//! up to their end are read and decompressed.

use crate::{Error, Result, limits::DOCUMENT_BYTES_MAX};
use std::ops::Range;
use tierdex_io::SealedFile;
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

/// Bytes read, and bytes decompressed, at a time.
const PIECE: usize = 64 << 10;

/// Largest window of a zstd frame, as a power of two: the level of the writer has windows of at most 512
/// KiB.
const WINDOW_LOG_MAX: u32 = 19;

/// Maximum memory of decompression beside the returned strings: the window, zstd's internal buffers, two
/// pieces.
pub const UNPACK_BYTES: u64 = (1 << WINDOW_LOG_MAX) + (512 << 10) + 2 * PIECE as u64;

/// A decoder that can be reused for other blocks.
pub(super) fn decoder() -> std::io::Result<Decoder<'static>> {
    let mut decoder = Decoder::new()?;
    decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX))?;
    Ok(decoder)
}

/// Reads the strings of a compressed block in order.
pub(super) struct Unpacker<'a> {
    file: &'a SealedFile,
    decoder: &'a mut Decoder<'static>,
    /// Offset of the block in the file, for error messages, and its unread byte range.
    offset: u64,
    rest: Range<u64>,
    /// Bytes decompressed so far.
    unpacked: u64,
    packed: Vec<u8>,
    packed_at: usize,
    raw: Vec<u8>,
    raw_at: usize,
}

impl<'a> Unpacker<'a> {
    /// `block` is the byte range of the block in the file.
    pub(super) fn new(
        file: &'a SealedFile,
        block: Range<u64>,
        decoder: &'a mut Decoder<'static>,
    ) -> Result<Unpacker<'a>> {
        let unpacker = Unpacker {
            file,
            decoder,
            offset: block.start,
            rest: block,
            unpacked: 0,
            packed: Vec::new(),
            packed_at: 0,
            raw: Vec::with_capacity(PIECE),
            raw_at: 0,
        };
        unpacker.decoder.reinit().map_err(|error| unpacker.corrupt(format!("cannot unpack: {error}")))?;
        Ok(unpacker)
    }

    /// The next string, truncated to at most `keep` bytes at a character boundary.
    pub(super) fn string(&mut self, keep: usize) -> Result<String> {
        let len = self.varint()?;
        if len > DOCUMENT_BYTES_MAX as u64 {
            return Err(self.corrupt("string is impossibly long"));
        }
        // The length is not trusted: allocate at most one piece.
        let (mut missing, mut kept) = (len as usize, Vec::with_capacity(keep.min(len as usize).min(PIECE)));
        while missing > 0 {
            self.fill()?;
            let piece = &self.raw[self.raw_at..];
            let piece = &piece[..piece.len().min(missing)];
            kept.extend_from_slice(&piece[..piece.len().min(keep - kept.len())]);
            self.raw_at += piece.len();
            missing -= piece.len();
        }
        self.text(kept, len as usize)
    }

    /// The bytes as text, without a truncated character at the end.
    fn text(&self, mut kept: Vec<u8>, len: usize) -> Result<String> {
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
            self.fill()?;
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
        if self.more()? {
            return Err(self.corrupt("bytes follow the documents of a block"));
        }
        if self.unpacked != raw_len || self.packed_at < self.packed.len() || !self.rest.is_empty() {
            return Err(self.corrupt("block unpacks to another length"));
        }
        Ok(())
    }

    /// Decompresses until an unconsumed byte is available; an error at the end of the block.
    fn fill(&mut self) -> Result<()> {
        if self.more()? { Ok(()) } else { Err(self.corrupt("block ends early")) }
    }

    /// Decompresses until an unconsumed byte is available; false at the end of the block.
    fn more(&mut self) -> Result<bool> {
        while self.raw_at == self.raw.len() {
            if self.packed_at == self.packed.len() && !self.rest.is_empty() {
                let len = (self.rest.end - self.rest.start).min(PIECE as u64);
                self.file.read_into(self.rest.start, len as usize, &mut self.packed)?;
                self.rest.start += len;
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
