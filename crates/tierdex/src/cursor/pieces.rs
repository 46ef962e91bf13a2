//! The positions of a block, decoded for one document at a time: a block of very frequent terms takes few bytes and
//! would fill much memory.

use super::blocks::decode_error;
use crate::error::{Error, Result};
use crate::limits::BLOCK;
use std::ops::Range;
use tierdex_codec::Codec;

/// Encoded numbers in pieces of 256, the last one shorter. Reading moves forward.
pub(super) struct Pieces {
    bytes: Vec<u8>,
    /// Offset of the bytes in their file.
    offset: u64,
    /// The piece at hand: its number, its place in `bytes`, and its numbers once they are decoded.
    piece: u64,
    at: Range<usize>,
    numbers: Vec<u32>,
}

impl Pieces {
    pub(super) fn new(bytes: Vec<u8>, offset: u64) -> Pieces {
        Pieces { bytes, offset, piece: 0, at: 0..0, numbers: Vec::new() }
    }

    /// Decodes numbers `start .. start + count` of the `total` that there are, and adds up their gaps: positions.
    /// `start` is not less than in the call before.
    pub(super) fn read(
        &mut self,
        of: (&str, Codec),
        (start, count, total): (u64, usize, u64),
        out: &mut Vec<u32>,
    ) -> Result<()> {
        out.clear();
        let mut place = start;
        let mut next = 0u64;
        while out.len() < count {
            self.move_to(of, place / BLOCK as u64, total)?;
            let wanted = count - out.len();
            let from = (place % BLOCK as u64) as usize;
            for gap in self.numbers[from..].iter().take(wanted) {
                let position = u32::try_from(next + u64::from(*gap));
                out.push(position.map_err(|_| self.corrupt(of.0, self.at.start, "positions do not rise"))?);
                next += u64::from(*gap) + 1;
            }
            place = start + out.len() as u64;
        }
        if place == total && self.at.end != self.bytes.len() {
            return Err(self.corrupt(of.0, self.at.end, "bytes follow the positions of a block"));
        }
        Ok(())
    }

    /// Decodes the piece of that number, unless it is at hand; pieces before it are passed over.
    fn move_to(&mut self, (file, codec): (&str, Codec), piece: u64, total: u64) -> Result<()> {
        if self.piece == piece && !self.numbers.is_empty() {
            return Ok(());
        }
        let failed = |error, at: usize| decode_error(file, self.offset + at as u64, codec, error);
        let mut at = self.at.end;
        let passed = if self.numbers.is_empty() { self.piece } else { self.piece + 1 };
        for _ in passed..piece {
            at += codec.encoded_len(&self.bytes[at..], BLOCK).map_err(|error| failed(error, at))?;
        }
        let len = (total - piece * BLOCK as u64).min(BLOCK as u64) as usize;
        self.numbers.resize(len, 0);
        let decoded =
            codec.decode(&self.bytes[at..], 0, &mut self.numbers).map_err(|error| failed(error, at));
        let used = decoded.inspect_err(|_| self.numbers.clear())?;
        (self.piece, self.at) = (piece, at..at + used);
        Ok(())
    }

    fn corrupt(&self, file: &str, at: usize, what: &str) -> Error {
        Error::corrupt(file, self.offset + at as u64, what)
    }
}
