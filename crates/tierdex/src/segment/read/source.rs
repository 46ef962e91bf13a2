//! Where the bytes of lists come from, if they are not in memory.

use crate::error::Result;
use std::ops::Range;
use std::sync::Arc;
use tierdex_io::{PAGE, SealedFile};

/// Gives bytes of files. Evaluation reads in no other way; a source may suspend it until they are there.
pub trait BlockSource {
    /// Starts to read bytes that will be asked for. False if as much is prefetched as may be: the caller
    /// should read some of it first.
    fn prefetch(&self, _file: &Arc<SealedFile>, _range: Range<u64>) -> bool {
        false
    }

    /// Whether [`BlockSource::prefetch`] does anything.
    fn prefetches(&self) -> bool {
        false
    }

    /// Replaces `out` by these bytes, checked. It is empty after an error.
    ///
    /// # Errors
    /// As [`SealedFile::read`].
    fn read(&self, file: &Arc<SealedFile>, range: Range<u64>, out: &mut Vec<u8>) -> Result<()>;

    /// Called after each small amount of work, such as a block or a window of documents. A source may let
    /// others work first. `rest` are the documents, numbered in the index, that the evaluation has not
    /// looked at yet: a source may give the last of them to another evaluation, and returns their new end.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted) when the evaluation is to stop: it was cancelled,
    /// or its deadline has passed.
    #[inline]
    fn checkpoint(&self, rest: Range<u32>) -> Result<u32> {
        Ok(rest.end)
    }

    /// Bytes of each part of a list that are read together at most where blocks are read in order: whole
    /// pages. 0 if no more than a block pays.
    fn read_ahead(&self) -> usize {
        0
    }
}

/// A block, wherever in a page it begins.
pub const BUFFER_MIN: usize = 2 * PAGE as usize;

/// The largest segment of a cache. What is read ahead is seldom so much.
pub const BUFFER_MAX: usize = 1 << 20;

/// Reads files where they are, through the system's page cache.
pub struct Files {
    read_ahead: usize,
}

impl Files {
    /// Reads at most `read_ahead` bytes of each part of a list together: from [`BUFFER_MIN`] to
    /// [`BUFFER_MAX`].
    pub const fn new(read_ahead: usize) -> Files {
        Files { read_ahead }
    }
}

/// Files, read far ahead.
pub static FILES: Files = Files::new(BUFFER_MAX);

impl BlockSource for Files {
    fn read(&self, file: &Arc<SealedFile>, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let len = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        Ok(file.read_into(range.start, len, out)?)
    }

    fn read_ahead(&self) -> usize {
        self.read_ahead
    }
}
