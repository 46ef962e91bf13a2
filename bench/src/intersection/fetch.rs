//! What a thread of a [`super::Crew`] reads by: one page after another, each waited for, or a list whole.

use super::list::PagedList;
use super::page::PAGE_BYTES;
use super::reads::Reads;
use std::sync::Arc;
use tierdex::error::{Error, Result};
use tierdex::io::{
    CELL_BYTES_MAX, CellMut, Cells, Disk, EngineOptions, ReadEngine, ReadTarget, Region, RegionKind,
};

/// Pages of a list that are read together when it is read whole.
pub(super) const PIECE: usize = CELL_BYTES_MAX / PAGE_BYTES;

/// An engine, a page of memory, and the sum of what was read.
pub(super) struct Reader {
    pub(super) engine: ReadEngine,
    pub(super) reads: Reads,
    cells: Arc<Cells>,
}

impl Reader {
    pub(super) fn new(disk: &dyn Disk, options: EngineOptions) -> Result<Reader> {
        let cells = Cells::new(Region::new(&RegionKind::Dram, PAGE_BYTES as u64)?, PAGE_BYTES)?;
        let engine = ReadEngine::new(options, disk, std::slice::from_ref(&cells))?;
        Ok(Reader { engine, reads: Reads::default(), cells })
    }

    /// Replaces `ids` by those of a page, from memory or from the disk.
    pub(super) fn page(&mut self, list: &PagedList, page: usize, ids: &mut Vec<u32>) -> Result<()> {
        ids.resize(list.ids_of(page).1, 0);
        if let Some(bytes) = list.near(page) {
            self.reads.near += u64::from(!list.is_whole());
            return list.decode(page, bytes, ids);
        }
        let cell = self.cells.write(0).expect("a reader has its page to itself");
        self.engine.submit(list.file(), list.offset(page), ReadTarget::from(cell), 0);
        let done = self.engine.next(true).expect("a read was asked for");
        self.reads.read(PAGE_BYTES);
        let bytes = &done.target.bytes()[..done.result?];
        list.check(page, bytes)?;
        list.decode(page, bytes, ids)
    }

    /// Waits until nothing is in flight any more, and forgets it: after an error.
    pub(super) fn settle(&mut self) {
        while self.engine.next(true).is_some() {}
    }
}

/// Reads a list into cells, a piece into each. Of a piece whose pages are all in memory nothing is read, else the part from the first to the
/// last that is not.
pub(super) fn whole(reader: &mut Reader, list: &PagedList, cells: Vec<CellMut>) -> Result<PagedList> {
    let mut done: Vec<Option<CellMut>> = cells.iter().map(|_| None).collect();
    for (piece, mut cell) in cells.into_iter().enumerate() {
        let pages = piece * PIECE..list.pages().min((piece + 1) * PIECE);
        let mut missing = pages.clone().filter(|page| list.near(*page).is_none());
        let ends = missing.next().map(|first| (first, missing.next_back().unwrap_or(first)));
        for page in
            pages.clone().filter(|page| ends.is_none_or(|(first, last)| *page < first || *page > last))
        {
            let at = (page - pages.start) * PAGE_BYTES;
            if let Some(bytes) = list.near(page) {
                cell[at..at + PAGE_BYTES].copy_from_slice(bytes);
                reader.reads.near += 1;
            }
        }
        let Some((first, last)) = ends else {
            done[piece] = Some(cell);
            continue;
        };
        if reader.engine.is_full() {
            end(reader, list, &mut done)?;
        }
        let range = (first - pages.start) * PAGE_BYTES..(last + 1 - pages.start) * PAGE_BYTES;
        reader.reads.read(range.len());
        reader.engine.submit(list.file(), list.offset(first), ReadTarget::new(cell, range), piece as u64);
        reader.engine.flush();
    }
    while reader.engine.pending() > 0 {
        end(reader, list, &mut done)?;
    }
    let cells: Option<Vec<CellMut>> = done.into_iter().collect();
    let cells = cells.ok_or_else(|| Error::Failed("a piece of a list is missing".to_owned()))?;
    Ok(list.in_cells(cells))
}

/// Waits for a piece, and checks it.
fn end(reader: &mut Reader, list: &PagedList, done: &mut [Option<CellMut>]) -> Result<()> {
    let Some(ended) = reader.engine.next(true) else { return Ok(()) };
    let piece = ended.tag as usize;
    let page = piece * PIECE + ended.target.range().start / PAGE_BYTES;
    list.check(page, &ended.target.bytes()[..ended.result?])?;
    done[piece] = Some(ended.target.into_cell());
    Ok(())
}
