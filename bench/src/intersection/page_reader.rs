//! Reads of one thread of [`super::ReaderThreads`]: single pages, synchronously, or a whole list.

use crate::intersection::{list::PagedList, page::PAGE_BYTES, reads::ReadStats};
use std::sync::Arc;
use tierdex::io::{
    CELL_BYTES_MAX, CellMut, Cells, Disk, ReadOptions, ReadQueue, ReadTarget, Region, RegionKind,
};
use tierdex::{Error, Result};

/// Number of pages of a piece: one read of 1 MiB, when a whole list is read.
pub(super) const PIECE_PAGES: usize = CELL_BYTES_MAX / PAGE_BYTES;

/// Reads pages of lists through a read queue, into memory for one page, and counts the reads.
pub(super) struct ListPageReader {
    pub(super) read_queue: ReadQueue,
    pub(super) reads: ReadStats,
    cells: Arc<Cells>,
}

impl ListPageReader {
    pub(super) fn new(disk: &dyn Disk, options: ReadOptions) -> Result<ListPageReader> {
        let cells = Cells::new(Region::new(&RegionKind::Dram, PAGE_BYTES as u64)?, PAGE_BYTES)?;
        let read_queue = ReadQueue::new(options, disk, std::slice::from_ref(&cells))?;
        Ok(ListPageReader { read_queue, reads: ReadStats::default(), cells })
    }

    /// Replaces `ids` by those of a page, from memory or from disk.
    pub(super) fn read_page(&mut self, list: &PagedList, page: usize, ids: &mut Vec<u32>) -> Result<()> {
        ids.resize(list.ids_of(page).count, 0);
        if let Some(bytes) = list.resident_page(page) {
            self.reads.resident += u64::from(!list.is_whole());
            return list.decode(page, bytes, ids);
        }
        let cell = self.cells.write(0).expect("a reader owns its page");
        self.read_queue.submit(list.file(), list.offset(page), ReadTarget::from(cell), 0);
        let done = self.read_queue.next(true).expect("a read is in flight");
        self.reads.count_read(PAGE_BYTES);
        let bytes = &done.target.bytes()[..done.result?];
        list.check(page, bytes)?;
        list.decode(page, bytes, ids)
    }

    /// Waits for all reads in flight and discards their results. Called after an error.
    pub(super) fn drain_reads(&mut self) {
        while self.read_queue.next(true).is_some() {}
    }
}

/// Reads a whole list into cells, one piece per cell. Of each piece the range from the first to the last
/// page that is not in memory is read.
pub(super) fn read_whole_list(
    reader: &mut ListPageReader,
    list: &PagedList,
    cells: Vec<CellMut>,
) -> Result<PagedList> {
    let mut done: Vec<Option<CellMut>> = cells.iter().map(|_| None).collect();
    for (piece, mut cell) in cells.into_iter().enumerate() {
        let pages = piece * PIECE_PAGES..list.pages().min((piece + 1) * PIECE_PAGES);
        let mut missing = pages.clone().filter(|page| list.resident_page(*page).is_none());
        let ends = missing.next().map(|first| (first, missing.next_back().unwrap_or(first)));
        for page in
            pages.clone().filter(|page| ends.is_none_or(|(first, last)| *page < first || *page > last))
        {
            let at = (page - pages.start) * PAGE_BYTES;
            if let Some(bytes) = list.resident_page(page) {
                cell[at..at + PAGE_BYTES].copy_from_slice(bytes);
                reader.reads.resident += 1;
            }
        }
        let Some((first, last)) = ends else {
            done[piece] = Some(cell);
            continue;
        };
        if reader.read_queue.is_full() {
            finish_piece(reader, list, &mut done)?;
        }
        let range = (first - pages.start) * PAGE_BYTES..(last + 1 - pages.start) * PAGE_BYTES;
        reader.reads.count_read(range.len());
        reader.read_queue.submit(list.file(), list.offset(first), ReadTarget::new(cell, range), piece as u64);
        reader.read_queue.flush();
    }
    while reader.read_queue.pending() > 0 {
        finish_piece(reader, list, &mut done)?;
    }
    let cells: Option<Vec<CellMut>> = done.into_iter().collect();
    let cells = cells.ok_or_else(|| Error::Failed("a piece of a list is missing".to_owned()))?;
    Ok(list.in_cells(cells))
}

/// Waits for the read of a piece, verifies its checksums, and stores its cell in `done`.
fn finish_piece(reader: &mut ListPageReader, list: &PagedList, done: &mut [Option<CellMut>]) -> Result<()> {
    let Some(ended) = reader.read_queue.next(true) else { return Ok(()) };
    let piece = ended.tag as usize;
    let page = piece * PIECE_PAGES + ended.target.range().start / PAGE_BYTES;
    list.check(page, &ended.target.bytes()[..ended.result?])?;
    done[piece] = Some(ended.target.into_cell());
    Ok(())
}
