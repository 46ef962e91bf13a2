//! Positions of single documents of a block: only the pieces of 256 numbers that hold them are decoded.

use super::blocks::{Blocks, decode_error};
use crate::error::{Error, Result};
use crate::limits::BLOCK;
use crate::segment::read::FieldReader;
use std::borrow::Cow;
use tierdex_codec::Codec;
use tierdex_io::SealedFile;

/// Reads the positions of one list, a block at a time, documents of it in any order.
pub struct PositionsReader<'a> {
    field: &'a FieldReader,
    codec: Codec,
    /// The block whose encoded positions are here.
    block: usize,
    bytes: Cow<'a, [u8]>,
    /// Offset of the bytes in their file.
    offset: u64,
    /// Numbers of the block before each of its documents, and all.
    starts: Box<[u64; BLOCK + 1]>,
    len: usize,
    /// Offset in `bytes` of each piece, as far as they are known.
    pieces: Vec<usize>,
    /// The piece that is decoded.
    piece: usize,
    numbers: Vec<u32>,
}

const NONE: usize = usize::MAX;

impl<'a> PositionsReader<'a> {
    /// For the list of a field that keeps positions.
    pub fn new(field: &'a FieldReader) -> PositionsReader<'a> {
        PositionsReader {
            field,
            codec: field.field().freq_codec,
            block: NONE,
            bytes: Cow::Borrowed(&[]),
            offset: 0,
            starts: Box::new([0; BLOCK + 1]),
            len: 0,
            pieces: Vec::new(),
            piece: NONE,
            numbers: Vec::new(),
        }
    }

    /// Moves to a block, whose documents have these frequencies.
    pub(super) fn move_to(&mut self, blocks: &Blocks<'_>, block: usize, frequencies: &[u32]) -> Result<()> {
        if self.block == block {
            return Ok(());
        }
        self.block = NONE;
        let Some(file) = self.field.positions() else {
            return Err(Error::Usage(format!("field `{}` keeps no positions", self.field.field().name)));
        };
        let range = blocks.positions_range(block)?;
        let len = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        self.bytes = match file.kept_range(range.start, len) {
            Some(bytes) => Cow::Borrowed(bytes),
            None => Cow::Owned(file.read(range.start, len)?),
        };
        self.offset = range.start;
        let mut sum = 0;
        for (start, frequency) in self.starts.iter_mut().zip(frequencies) {
            *start = sum;
            sum += u64::from(*frequency);
        }
        self.len = frequencies.len();
        self.starts[self.len] = sum;
        self.pieces.clear();
        self.pieces.push(0);
        (self.piece, self.block) = (NONE, block);
        Ok(())
    }

    /// The positions of a document of the block, ascending.
    pub(super) fn read(&mut self, document: usize, out: &mut Vec<u32>) -> Result<()> {
        out.clear();
        let (start, end) = (self.starts[document], self.starts[document + 1]);
        let (mut at, mut next) = (start, 0u64);
        while at < end {
            self.decode((at / BLOCK as u64) as usize)?;
            let from = (at % BLOCK as u64) as usize;
            let gaps = &self.numbers[from..self.numbers.len().min(from + (end - at) as usize)];
            for gap in gaps {
                let position = next + u64::from(*gap);
                out.push(position as u32);
                next = position + 1;
            }
            if next > 1 << 32 {
                return Err(self.corrupt(0, "positions do not rise"));
            }
            at += gaps.len() as u64;
        }
        Ok(())
    }

    /// Decodes a piece, unless it is there.
    fn decode(&mut self, piece: usize) -> Result<()> {
        if self.piece == piece {
            return Ok(());
        }
        self.piece = NONE;
        while self.pieces.len() <= piece {
            let at = *self.pieces.last().expect("the first is known");
            let len =
                self.codec.encoded_len(&self.bytes[at..], BLOCK).map_err(|error| self.failed(error, at))?;
            self.pieces.push(at + len);
        }
        let (at, total) = (self.pieces[piece], self.starts[self.len]);
        let before = (piece * BLOCK) as u64;
        let len = (total - before).min(BLOCK as u64) as usize;
        self.numbers.resize(len, 0);
        let used = self.codec.decode(&self.bytes[at..], 0, &mut self.numbers);
        let used = used.map_err(|error| self.failed(error, at))?;
        if before + len as u64 == total && at + used != self.bytes.len() {
            return Err(self.corrupt(at + used, "bytes follow the positions of a block"));
        }
        self.piece = piece;
        Ok(())
    }

    fn failed(&self, error: tierdex_codec::DecodeError, at: usize) -> Error {
        decode_error(self.file(), self.offset + at as u64, self.codec, error)
    }

    fn file(&self) -> &str {
        self.field.positions().map_or("", SealedFile::name)
    }

    fn corrupt(&self, at: usize, what: &str) -> Error {
        Error::corrupt(self.file(), self.offset + at as u64, what)
    }
}
