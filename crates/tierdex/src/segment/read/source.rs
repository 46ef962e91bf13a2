//! The source of bytes that are not resident: posting lists, skip records and dictionary pages.

use crate::Result;
use std::{ops::Range, sync::Arc};
use tierdex_io::{PAGE, SealedFile};

/// Reads bytes of files. Evaluation reads only through this trait; an implementation may suspend the
/// evaluation until the bytes are available.
pub trait BlockSource {
    /// Starts to read bytes that will be requested. False if the prefetch limit is reached: the caller
    /// should consume prefetched bytes first.
    fn prefetch(&self, _file: &Arc<SealedFile>, _range: Range<u64>) -> bool {
        false
    }

    /// Whether [`BlockSource::prefetch`] does anything.
    fn prefetches(&self) -> bool {
        false
    }

    /// Replaces the contents of `out` with these bytes, verified. After an error `out` is empty.
    ///
    /// # Errors
    /// As [`SealedFile::read`].
    fn read(&self, file: &Arc<SealedFile>, range: Range<u64>, out: &mut Vec<u8>) -> Result<()>;

    /// Whether [`BlockSource::lend`] may return bytes.
    fn lends(&self) -> bool {
        false
    }

    /// These bytes of a file where they are in memory, if the source has them there: blocks are then decoded
    /// or used in place, and [`BlockSource::read`] is not called for them. They must be the bytes of the
    /// file, checked by its checksums.
    ///
    /// # Errors
    /// As [`SealedFile::read`].
    fn lend(&self, _file: &SealedFile, _range: &Range<u64>) -> Result<Option<&[u8]>> {
        Ok(None)
    }

    /// Called after each small unit of work, such as a block or a window of documents. The source may yield
    /// to other evaluations. `rest` are the documents, numbered in the index, that the evaluation has not
    /// visited yet: the source may hand their tail to another evaluation, and returns the new end.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted) when the evaluation is to stop: it was cancelled,
    /// or its deadline has passed.
    #[inline]
    fn checkpoint(&self, rest: Range<u32>) -> Result<u32> {
        Ok(rest.end)
    }

    /// Whether the rest of a page is copied with a block if the blocks of its list are read in order. Else a
    /// list buffers one block.
    fn copies_pages(&self) -> bool {
        true
    }

    /// Read-ahead in bytes, whole pages, for each part of a list whose blocks are read in order. 0 if
    /// reading more than one block does not pay.
    fn read_ahead(&self) -> usize {
        0
    }
}

/// Smallest read buffer: a block at any offset in a page.
pub const BUFFER_MIN: usize = 2 * PAGE as usize;

/// Largest read buffer, equal to the largest cell of a cache. Read-ahead is seldom that long.
pub const BUFFER_MAX: usize = 1 << 20;

/// Reads files directly, through the page cache of the operating system.
pub struct Files {
    read_ahead: usize,
}

impl Files {
    /// Reads ahead `read_ahead` bytes of each part of a list, [`BUFFER_MIN`] to [`BUFFER_MAX`].
    pub const fn new(read_ahead: usize) -> Files {
        Files { read_ahead }
    }
}

/// Direct reads with the largest read-ahead.
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
