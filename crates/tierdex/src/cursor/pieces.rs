//! The positions of a block, decoded for one document at a time: a block of very frequent terms takes few bytes and
//! would fill much memory.

use super::blocks::decode_error;
use crate::error::{Error, Result};
use crate::limits::BLOCK;
use tierdex_codec::Codec;

/// Encoded numbers in pieces of 256, the last one shorter. Reading moves forward.
pub(super) struct Pieces {
    bytes: Vec<u8>,
    /// Offset of the bytes in their file.
    offset: u64,
    /// Number of the piece that begins at `at`.
    piece: usize,
    at: usize,
}

impl Pieces {
    pub(super) fn new(bytes: Vec<u8>, offset: u64) -> Pieces {
        Pieces { bytes, offset, piece: 0, at: 0 }
    }

    /// Decodes numbers `start .. start + count` of the `total` that there are, and adds up their gaps: positions.
    /// `start` is not less than in the call before.
    pub(super) fn read(
        &mut self,
        (file, codec): (&str, Codec),
        (start, count, total): (u64, usize, u64),
        out: &mut Vec<u32>,
    ) -> Result<()> {
        out.clear();
        let first = (start / BLOCK as u64) as usize;
        while self.piece < first {
            let len = codec.encoded_len(&self.bytes[self.at..], BLOCK);
            self.at += len.map_err(|e| decode_error(file, self.offset + self.at as u64, codec, e))?;
            self.piece += 1;
        }
        let (mut at, mut piece) = (self.at, first);
        let mut skipped = (start % BLOCK as u64) as usize;
        let mut numbers = [0; BLOCK];
        let mut next = 0u64;
        while out.len() < count {
            let len = (total - piece as u64 * BLOCK as u64).min(BLOCK as u64) as usize;
            let used = codec.decode(&self.bytes[at..], 0, &mut numbers[..len]);
            at += used.map_err(|e| decode_error(file, self.offset + at as u64, codec, e))?;
            for gap in numbers[skipped..len].iter().take(count - out.len()) {
                let position = u32::try_from(next + u64::from(*gap));
                out.push(position.map_err(|_| self.corrupt(file, at, "positions do not rise"))?);
                next += u64::from(*gap) + 1;
            }
            piece += 1;
            skipped = 0;
        }
        if start + count as u64 == total && at != self.bytes.len() {
            return Err(self.corrupt(file, at, "bytes follow the positions of a block"));
        }
        Ok(())
    }

    fn corrupt(&self, file: &str, at: usize, what: &str) -> Error {
        Error::corrupt(file, self.offset + at as u64, what)
    }
}
