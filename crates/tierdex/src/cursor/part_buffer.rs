//! The read buffers of a posting list whose bytes are not used where they are.

use crate::Result;
use crate::segment::read::{BlockList, BlockLocation, BlockSource, ListPart};
use std::{ops::Range, sync::Arc};
use tierdex_io::{PAGE, SealedFile};

/// Maximum number of blocks per read, so that a long list is never buffered whole.
pub(super) const BLOCKS_READ_MAX: usize = 128;

/// Read buffer for one part of the blocks of a list.
pub(super) struct PartBuffer {
    part: ListPart,
    /// Number of blocks that the next read covers: doubled with each sequential read.
    blocks_ahead: usize,
    /// Number of blocks that a read covers if it does not follow the last one.
    min_blocks_ahead: usize,
    /// The block after those of the last read.
    next: usize,
    /// Offset of the buffered bytes in the file.
    start: u64,
    bytes: Vec<u8>,
}

impl PartBuffer {
    pub(super) fn new(part: ListPart, blocks_ahead: usize) -> PartBuffer {
        PartBuffer {
            part,
            blocks_ahead,
            min_blocks_ahead: blocks_ahead,
            next: 0,
            start: 0,
            bytes: Vec::new(),
        }
    }

    pub(super) fn get(&self, range: &Range<u64>) -> Option<&[u8]> {
        bytes_of_range(&self.bytes, self.start, range)
    }

    /// Reads a byte range of `block` into the buffer, and the blocks that follow if the source reads ahead.
    pub(super) fn fill(
        &mut self,
        list: &BlockList,
        file: &Arc<SealedFile>,
        source: &dyn BlockSource,
        block: usize,
        mut range: Range<u64>,
    ) -> Result<()> {
        let (start, read_ahead) = (range.start, source.read_ahead() as u64);
        if read_ahead > 0 {
            let is_sequential = block == self.next && block > 0;
            self.blocks_ahead = if is_sequential {
                (2 * self.blocks_ahead).min(BLOCKS_READ_MAX)
            } else {
                self.blocks_ahead.min(self.min_blocks_ahead)
            };
            let mut end = (block + self.blocks_ahead).min(list.blocks());
            let end_max = start / PAGE * PAGE + read_ahead;
            loop {
                let read_to = self.read_end(list, end - 1)?;
                if end == block + 1 || read_to <= end_max {
                    range.end = read_to.max(range.end);
                    break;
                }
                end = block + (end - block) / 2;
            }
            self.next = end;
        }
        // The source reads whole pages. The buffer also takes the rest of the last page if the source reads
        // ahead, or if this read starts in the bytes of the read before or at most a page after them.
        let end = self.start + self.bytes.len() as u64;
        if read_ahead > 0 || source.copies_pages() && (self.start..end + PAGE).contains(&start) {
            range.end = range.end.next_multiple_of(PAGE).min(list.postings_range().end.max(range.end));
        }
        self.bytes.clear();
        source.read(file, range, &mut self.bytes)?;
        self.start = start;
        Ok(())
    }

    /// End of the bytes that are read for a block: of its frequencies if they follow its documents.
    fn read_end(&self, list: &BlockList, block: usize) -> Result<u64> {
        let mut location = BlockLocation::default();
        list.locate(&mut location, block)?;
        let with_frequencies = location.is_interleaved || self.part == ListPart::Freqs;
        Ok(if with_frequencies { location.freqs.end } else { location.docs.end })
    }
}

/// The bytes of a range of a file, taken from `bytes`, which begin at offset `start` of the file; `None` if
/// the range is not within them.
pub(super) fn bytes_of_range<'a>(bytes: &'a [u8], start: u64, range: &Range<u64>) -> Option<&'a [u8]> {
    let from = usize::try_from(range.start.checked_sub(start)?).ok()?;
    let to = usize::try_from(range.end.checked_sub(start)?).ok()?;
    bytes.get(from..to)
}
