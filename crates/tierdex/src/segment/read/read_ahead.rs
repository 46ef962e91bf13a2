//! Reads a file in order through a buffer, with large reads.

use super::source::BlockSource;
use crate::Result;
use std::{ops::Range, sync::Arc};
use tierdex_io::SealedFile;

/// A read buffer of one file, for callers that read its ranges in order.
#[derive(Default)]
pub struct ReadAheadBuffer {
    /// Offset in the file of the buffered bytes.
    start: u64,
    bytes: Vec<u8>,
}

/// Bytes of a read that fills the buffer.
pub const READ_AHEAD_BYTES: u64 = 256 << 10;

impl ReadAheadBuffer {
    /// The bytes of a range of the file. On a miss, reads up to [`READ_AHEAD_BYTES`] from the start of the
    /// range, if the source reads ahead; else only the range.
    pub fn range(
        &mut self,
        source: &dyn BlockSource,
        file: &Arc<SealedFile>,
        range: &Range<u64>,
    ) -> Result<&[u8]> {
        let len = range.end.saturating_sub(range.start);
        let read_to = self.start + self.bytes.len() as u64;
        if range.start < self.start || range.end > read_to {
            let len_min = if source.read_ahead() > 0 { READ_AHEAD_BYTES } else { 0 };
            let len = len.max(len_min.min(file.payload().end.saturating_sub(range.start)));
            self.start = range.start;
            source.read(file, range.start..range.start.saturating_add(len), &mut self.bytes)?;
        }
        let from = (range.start - self.start) as usize;
        Ok(&self.bytes[from..from + len as usize])
    }
}
