//! Sequential reads through a buffer.

use super::source::BlockSource;
use crate::Result;
use std::{ops::Range, sync::Arc};
use tierdex_io::SealedFile;

/// A read buffer over one file, for sequential callers.
#[derive(Default)]
pub struct ReadAheadBuffer {
    start: u64,
    bytes: Vec<u8>,
}

/// Bytes of a read.
pub const READ_AHEAD: u64 = 256 << 10;

impl ReadAheadBuffer {
    /// The bytes of a range of the file. On a miss, reads up to [`READ_AHEAD`] bytes from its start if the
    /// source reads ahead.
    pub fn range(
        &mut self,
        source: &dyn BlockSource,
        file: &Arc<SealedFile>,
        range: &Range<u64>,
    ) -> Result<&[u8]> {
        let len = range.end.saturating_sub(range.start);
        let read_to = self.start + self.bytes.len() as u64;
        if range.start < self.start || range.end > read_to {
            let ahead = if source.read_ahead() > 0 { READ_AHEAD } else { 0 };
            let len = len.max(ahead.min(file.payload().end.saturating_sub(range.start)));
            self.start = range.start;
            source.read(file, range.start..range.start.saturating_add(len), &mut self.bytes)?;
        }
        let from = (range.start - self.start) as usize;
        Ok(&self.bytes[from..from + len as usize])
    }
}
