//! BL, the baseline (section III-A): a thread a list reads it whole, from front to end in pieces of 1 MiB; then many threads
//! intersect in memory, by [`super::sl`].

use super::crew::Crew;
use super::fetch::Reader;
use super::list::{PagedList, by_length};
use super::page::PAGE_BYTES;
use super::partition;
use super::reads::{Found, Reads};
use super::sl;
use crate::error::{Error, Result};
use std::sync::Arc;
use tierdex_io::{CELL_BYTES_MAX, CellMut, Cells, Region, RegionKind, Target};

/// Pages that are read together.
const PIECE: usize = CELL_BYTES_MAX / PAGE_BYTES;

/// Memory for whole lists, kept from one intersection to the next.
#[derive(Default)]
pub struct Bl {
    cells: Option<Arc<Cells>>,
}

impl Bl {
    /// Without memory: the first intersections make it.
    pub fn new() -> Bl {
        Bl::default()
    }

    /// The ids that stand in all lists.
    ///
    /// # Errors
    /// When a page cannot be read or is damaged, and when there is no memory for the lists.
    pub fn intersect(&mut self, crew: &Crew, lists: &[PagedList]) -> Result<Found> {
        let lists = by_length(lists);
        if lists.is_empty() || lists.iter().any(|list| list.len() == 0) {
            return Ok(Found::nothing(&lists));
        }
        let cells = self.cells(lists.iter().map(pieces).sum())?;
        let mut next = 0;
        let mut tasks = Vec::new();
        for list in &lists {
            let numbers = next..next + pieces(list);
            next = numbers.end;
            let own: Option<Vec<CellMut>> = numbers.map(|number| cells.write(number)).collect();
            let own = own.ok_or_else(|| Error::Failed("memory for lists is in use".to_owned()))?;
            let list = list.clone();
            tasks.push(move |reader: &mut Reader| read(reader, &list, own));
        }
        let (mut whole, mut reads) = (Vec::new(), Reads::default());
        for (list, its) in crew.run(tasks)? {
            whole.push(list);
            reads += its;
        }
        let mut found =
            partition::run(crew, &whole, |reader, lists, range| sl::task(reader, lists, range, false))?;
        found.reads = reads;
        Ok(found.of(&lists))
    }

    /// At least so many cells.
    fn cells(&mut self, count: usize) -> Result<Arc<Cells>> {
        if self.cells.as_ref().is_none_or(|cells| cells.len() < count) {
            self.cells = None;
            let region = Region::new(&RegionKind::Dram, (count * CELL_BYTES_MAX) as u64)?;
            self.cells = Some(Cells::new(region, CELL_BYTES_MAX)?);
        }
        self.cells.clone().ok_or_else(|| Error::Failed("no memory for lists".to_owned()))
    }
}

fn pieces(list: &PagedList) -> usize {
    list.pages().div_ceil(PIECE)
}

/// Reads a list into cells. Of a piece whose pages are all in memory nothing is read, else the part from the first to the
/// last that is not.
fn read(reader: &mut Reader, list: &PagedList, cells: Vec<CellMut>) -> Result<PagedList> {
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
        reader.engine.submit(list.file(), list.offset(first), Target::new(cell, range), piece as u64);
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
