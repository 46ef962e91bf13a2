//! The trait through which evaluation reads bytes that are not resident: of posting lists, skip records and
//! dictionary pages.

use crate::Result;
use std::{ops::Range, sync::Arc};
use tierdex_cache::ReadCosts;
use tierdex_io::{PAGE, SealedFile};

/// Reads bytes of the files of an index. Evaluation reads only through this trait; an implementation may
/// suspend the evaluation until the bytes are available.
pub trait BlockSource {
    /// Starts to read bytes that the caller will request by [`BlockSource::read`]. Returns false if the
    /// source prefetches no more, so that only the first of these bytes are prefetched, or none: the caller
    /// should first request what it prefetched.
    fn prefetch(&self, _file: &Arc<SealedFile>, _range: Range<u64>) -> bool {
        false
    }

    /// Whether [`BlockSource::prefetch`] reads anything.
    fn prefetches(&self) -> bool {
        false
    }

    /// What reads cost; `None` if the source does not read from a device.
    fn read_costs(&self) -> Option<ReadCosts> {
        None
    }

    /// Replaces the contents of `out` with these bytes, verified by checksums. After an error `out` is empty.
    ///
    /// # Errors
    /// As [`SealedFile::read`].
    fn read(&self, file: &Arc<SealedFile>, range: Range<u64>, out: &mut Vec<u8>) -> Result<()>;

    /// Reads pages of a file, whose numbers increase, and calls `body` with some of them at a time, in their
    /// order, and the index in `pages` of the first of these, until `body` returns false. All pages must be
    /// in the payload of the file and have [`PAGE`] bytes. `body` may read from the source.
    ///
    /// # Errors
    /// As [`BlockSource::read`], and those of `body`.
    fn for_each_page(&self, file: &Arc<SealedFile>, pages: &[u32], body: &mut PagesBody<'_>) -> Result<()> {
        let mut bytes = Vec::new();
        for (index, page) in pages.iter().enumerate() {
            self.read(file, page_range(*page), &mut bytes)?;
            if !body(index, &[&bytes])? {
                break;
            }
        }
        Ok(())
    }

    /// Whether [`BlockSource::lend`] may return bytes.
    fn lends(&self) -> bool {
        false
    }

    /// A range of a file, if the source has it in memory: blocks are then decoded or used in place, and
    /// [`BlockSource::read`] is not called for them. The bytes must have been verified by checksums.
    ///
    /// # Errors
    /// As [`SealedFile::read`].
    fn lend(&self, _file: &SealedFile, _range: &Range<u64>) -> Result<Option<&[u8]>> {
        Ok(None)
    }

    /// Called after each small unit of work, such as a block or a window of documents, so that the source may
    /// run other evaluations. `rest` is the range of documents of the index that the evaluation has not
    /// visited yet. The source may assign its last documents to another evaluation; it returns the new end of
    /// `rest`.
    ///
    /// # Errors
    /// [`Error::Interrupted`](crate::Error::Interrupted) when the evaluation is to stop: it was cancelled,
    /// or its deadline has passed.
    #[inline]
    fn checkpoint(&self, rest: Range<u32>) -> Result<u32> {
        Ok(rest.end)
    }

    /// Whether a list whose blocks are read in order should buffer the rest of the last page of a block, for
    /// the blocks that follow. Else it buffers one block.
    fn copies_pages(&self) -> bool {
        true
    }

    /// Bytes to read at a time, in whole pages, for each part of a list whose blocks are read in order; 0 to
    /// read one block at a time.
    fn read_ahead(&self) -> usize {
        0
    }
}

/// Called with the index of the first of some pages, and the bytes of each; returns whether to go on.
pub type PagesBody<'b> = dyn FnMut(usize, &[&[u8]]) -> Result<bool> + 'b;

/// The range of a page of a file.
pub(crate) fn page_range(page: u32) -> Range<u64> {
    let start = u64::from(page) * PAGE;
    start..start + PAGE
}

/// Bytes of the smallest read buffer: two pages, as a block may cross a page boundary.
pub const BUFFER_BYTES_MIN: usize = 2 * PAGE as usize;

/// Bytes of the largest read buffer, equal to the largest cell of the page cache.
pub const BUFFER_BYTES_MAX: usize = 1 << 20;

/// Reads files through the page cache of the operating system.
pub struct Files {
    read_ahead: usize,
}

impl Files {
    /// A source with [`BlockSource::read_ahead`] of this number of bytes, [`BUFFER_BYTES_MIN`] to
    /// [`BUFFER_BYTES_MAX`].
    pub const fn new(read_ahead: usize) -> Files {
        Files { read_ahead }
    }
}

/// Reads files with the largest read-ahead.
pub static FILES: Files = Files::new(BUFFER_BYTES_MAX);

impl BlockSource for Files {
    fn read(&self, file: &Arc<SealedFile>, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let len = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        Ok(file.read_into(range.start, len, out)?)
    }

    fn read_ahead(&self) -> usize {
        self.read_ahead
    }
}
