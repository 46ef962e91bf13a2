//! Reads the positions of the documents of a block, in any order. Positions are encoded in pieces of 256
//! values; only the pieces that contain a document are decoded, one at a time, so memory does not depend on
//! the frequency of a term.
//!
//! A value is the gap to the previous position of the document, minus one. A piece is decoded to prefix sums
//! of the gaps: a position is the sum up to its value, minus the sum before the first value of its document,
//! minus one.

use super::blocks::{BLOCK_BYTES_MAX, Blocks};
use super::error::decode_error;
use crate::limits::{BLOCK, FIELD_TOKENS_MAX};
use crate::segment::read::{BlockSource, FieldReader};
use crate::{Error, Result};
use std::{borrow::Cow, ops::Range};
use tierdex_codec::{Codec, DecodeError, RUN_SLACK, is_increasing, prefetch};
use tierdex_io::PAGE;

/// Maximum bytes per read of positions that are not resident.
pub const POSITIONS_READ_BYTES: usize = 8 << 10;

/// Bytes of memory of the two arrays of a [`PositionsReader`].
pub const POSITIONS_BYTES: usize = size_of::<PositionSums>() + size_of::<PositionStarts>();

/// Maximum bytes of the read buffer of a [`PositionsReader`] that reads files: whole pages are read.
pub const POSITIONS_BUFFER_BYTES: usize = POSITIONS_READ_BYTES + 2 * PAGE as usize;

/// Maximum bytes of the positions of a block that are prefetched into the CPU cache.
const PREFETCH_BYTES: usize = 2048;

/// Prefix sums of a piece: the sum before it, the sum up to each of its values, and padding for SIMD loads.
pub type PositionSums = [u32; 1 + BLOCK + RUN_SLACK];

/// For each document of a block the number of position values before its own, then the number of all values.
pub type PositionStarts = [u32; BLOCK + 1];

/// The arrays of a reader, which another one can use after it.
pub(super) struct PositionArrays {
    starts: Box<PositionStarts>,
    sums: Box<PositionSums>,
}

impl Default for PositionArrays {
    fn default() -> PositionArrays {
        PositionArrays { starts: Box::new([0; _]), sums: Box::new([0; _]) }
    }
}

/// Reads the positions of one list, one block at a time.
pub struct PositionsReader<'a> {
    codec: Codec,
    encoded: EncodedPositions<'a>,
    /// The current block; `usize::MAX` before the first.
    block: usize,
    /// A block that was prefetched into the CPU cache, and its byte range.
    prefetched: (usize, Range<u64>),
    starts: Box<PositionStarts>,
    /// Number of postings of the block.
    len: usize,
    /// The piece after the one that was decoded or skipped last, and its offset in the file.
    next: (u32, u64),
    /// The decoded piece, whose sums are in `sums`; `u32::MAX` if there is none.
    piece: u32,
    sums: Box<PositionSums>,
}

/// The encoded positions of a block: their byte range in the file, and the bytes of it that were read.
struct EncodedPositions<'a> {
    field: &'a FieldReader,
    source: &'a dyn BlockSource,
    range: Range<u64>,
    bytes: Cow<'a, [u8]>,
    /// Offset of the bytes in the file.
    start: u64,
}

const NO_BLOCK: usize = usize::MAX;
const NO_PIECE: u32 = u32::MAX;

impl<'a> PositionsReader<'a> {
    /// A reader for a posting list of `field`; bytes that are not resident are read from `source`.
    pub fn new(field: &'a FieldReader, source: &'a dyn BlockSource) -> PositionsReader<'a> {
        PositionsReader::with_bytes(field, source, &[], 0, PositionArrays::default())
    }

    /// As [`PositionsReader::new`]; `bytes` at offset `start` of the file have been read already.
    pub(super) fn with_bytes(
        field: &'a FieldReader,
        source: &'a dyn BlockSource,
        bytes: &'a [u8],
        start: u64,
        arrays: PositionArrays,
    ) -> PositionsReader<'a> {
        let PositionArrays { mut starts, sums } = arrays;
        starts[0] = 0;
        PositionsReader {
            codec: field.field().freq_codec,
            encoded: EncodedPositions { field, source, range: 0..0, bytes: Cow::Borrowed(bytes), start },
            block: NO_BLOCK,
            prefetched: (NO_BLOCK, 0..0),
            starts,
            len: 0,
            next: (0, 0),
            piece: NO_PIECE,
            sums,
        }
    }

    pub(super) fn into_arrays(self) -> PositionArrays {
        PositionArrays { starts: self.starts, sums: self.sums }
    }

    /// Prefetches the first positions of the block with this byte range. False if the source prefetches no
    /// more.
    pub(super) fn prefetch(&self, range: Range<u64>) -> bool {
        let Some(file) = self.encoded.field.positions_file() else { return true };
        let beginning = range.start..range.end.min(range.start + POSITIONS_READ_BYTES as u64);
        file.resident().is_some() || self.encoded.source.prefetch(file, beginning)
    }

    /// The current block.
    pub fn block(&self) -> usize {
        self.block
    }

    /// Moves to a block of the list: decodes its frequencies, which locate the positions of each document.
    pub(super) fn move_to(&mut self, blocks: &mut Blocks<'_>, block: usize) -> Result<()> {
        if self.block == block {
            return Ok(());
        }
        (self.block, self.piece) = (NO_BLOCK, NO_PIECE);
        self.len = blocks.block_len(block);
        blocks.frequency_sums(self.encoded.field, block, &mut self.starts[1..=self.len])?;
        let range = if self.prefetched.0 == block {
            self.prefetched.1.clone()
        } else {
            blocks.positions_range(block)?
        };
        self.encoded.move_to(range)?;
        self.next = (0, self.encoded.range.start);
        self.block = block;
        Ok(())
    }

    /// Prefetches frequencies and the first positions of a block into the CPU cache, if they are resident.
    pub(super) fn prefetch_to_cpu(&mut self, blocks: &mut Blocks<'_>, block: usize) -> Result<()> {
        blocks.prefetch_frequencies_to_cpu(self.encoded.field, block)?;
        let range = blocks.positions_range(block)?;
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let file = self.encoded.field.positions_file();
        let bytes = file.and_then(|file| file.resident_range(range.start, len)).unwrap_or(&[]);
        prefetch(&bytes[..bytes.len().min(PREFETCH_BYTES)]);
        self.prefetched = (block, range);
        Ok(())
    }

    /// For each document of the block the number of values before its own, then the number of all values.
    pub fn starts(&self) -> &PositionStarts {
        &self.starts
    }

    /// The sum before the decoded piece, then the sum up to each of its values; later elements are undefined.
    pub fn sums(&self) -> &PositionSums {
        &self.sums
    }

    /// Reads the positions of the document with this number in the block, in increasing order.
    pub fn read(&mut self, document: u8, out: &mut Vec<u32>) -> Result<()> {
        out.clear();
        let (start, end) = (self.starts[usize::from(document)], self.starts[usize::from(document) + 1]);
        if end - start >= FIELD_TOKENS_MAX {
            return Err(self.encoded.corrupt(self.encoded.range.start, "an impossible frequency"));
        }
        let (mut at, mut before) = (start, 0);
        while at < end {
            let piece = at / BLOCK as u32;
            self.decode(piece)?;
            let from = at as usize % BLOCK;
            let len = (BLOCK - from).min((end - at) as usize);
            if at == start {
                before = self.sums[from].wrapping_add(1);
            }
            out.extend(self.sums[from + 1..][..len].iter().map(|sum| sum.wrapping_sub(before)));
            at += len as u32;
        }
        if is_increasing(out) && out.last().is_none_or(|last| *last < FIELD_TOKENS_MAX) {
            Ok(())
        } else {
            Err(self.encoded.corrupt(self.encoded.range.start, "positions do not rise, or are too large"))
        }
    }

    /// Decodes a piece of the block, unless it is decoded already. If the piece before was decoded last, the
    /// sums continue those of that piece; otherwise they start at 0.
    pub fn decode(&mut self, piece: u32) -> Result<()> {
        if self.piece == piece {
            return Ok(());
        }
        let is_next = self.piece != NO_PIECE && self.piece + 1 == piece;
        let before = if is_next { self.sums[self.piece_len(self.piece)] } else { 0 };
        self.piece = NO_PIECE;
        if self.next.0 > piece {
            self.next = (0, self.encoded.range.start);
        }
        while self.next.0 < piece {
            let at = self.next.1;
            let used = self.codec.encoded_len(self.encoded.bytes_from(at)?, BLOCK);
            self.next = (self.next.0 + 1, self.encoded.piece_end(at, used, self.codec)?);
        }
        let (at, len) = (self.next.1, self.piece_len(piece));
        self.sums[0] = before;
        let used = self.codec.decode_sums(self.encoded.bytes_from(at)?, before, &mut self.sums[1..=len]);
        let end = self.encoded.piece_end(at, used, self.codec)?;
        let is_last = self.starts[self.len] as usize == piece as usize * BLOCK + len;
        if is_last && end != self.encoded.range.end {
            return Err(self.encoded.corrupt(end, "bytes follow the positions of a block"));
        }
        (self.piece, self.next) = (piece, (piece + 1, end));
        Ok(())
    }

    /// Number of values of a piece: 256, or fewer for the last.
    fn piece_len(&self, piece: u32) -> usize {
        (self.starts[self.len] as usize).saturating_sub(piece as usize * BLOCK).min(BLOCK)
    }
}

impl<'a> EncodedPositions<'a> {
    /// Moves to the block with this byte range.
    fn move_to(&mut self, range: Range<u64>) -> Result<()> {
        let Some(file) = self.field.positions_file() else {
            return Err(Error::Usage(format!("field `{}` keeps no positions", self.field.field().name)));
        };
        self.range = range;
        let len = usize::try_from(self.range.end - self.range.start).unwrap_or(usize::MAX);
        if let Some(bytes) = file.resident_range(self.range.start, len) {
            (self.bytes, self.start) = (Cow::Borrowed(bytes), self.range.start);
        }
        Ok(())
    }

    /// Bytes from offset `at` of the file on: at least one piece, or up to the end of the block.
    fn bytes_from(&mut self, at: u64) -> Result<&[u8]> {
        let end = self.range.end.min(at + BLOCK_BYTES_MAX as u64);
        if at < self.start || end > self.start + self.bytes.len() as u64 {
            let Some(file) = self.field.positions_file() else { return Ok(&[]) };
            if let Cow::Borrowed(_) = self.bytes {
                self.bytes = Cow::Owned(Vec::new());
            }
            // If the read fails, `bytes` is empty, and this offset belongs to no bytes.
            self.start = at;
            self.source.read(
                file,
                at..self.range.end.min(at + POSITIONS_READ_BYTES as u64),
                self.bytes.to_mut(),
            )?;
        }
        let to = self.bytes.len().min((self.range.end - self.start) as usize);
        Ok(&self.bytes[(at - self.start) as usize..to])
    }

    /// Offset of the end of a piece that starts at `at` and `used` this number of bytes, if it was decoded.
    fn piece_end(&self, at: u64, used: std::result::Result<usize, DecodeError>, codec: Codec) -> Result<u64> {
        match used {
            Ok(used) => Ok(at + used as u64),
            Err(error) => Err(decode_error(self.file_name(), at, codec, error)),
        }
    }

    fn file_name(&self) -> &str {
        self.field.positions_file().map_or("", |file| file.name())
    }

    fn corrupt(&self, at: u64, what: &str) -> Error {
        Error::corrupt(self.file_name(), at, what)
    }
}
