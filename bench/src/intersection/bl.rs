//! BL, the baseline (section III-A): a thread a list reads it whole, from front to end in pieces of 1 MiB; then many threads
//! intersect in memory, by [`super::sl`].

use super::crew::Crew;
use super::fetch::{PIECE, Reader, whole};
use super::list::{PagedList, by_length};
use super::partition;
use super::reads::{Found, Reads};
use super::sl;
use std::sync::Arc;
use tierdex::error::{Error, Result};
use tierdex::io::{CELL_BYTES_MAX, CellMut, Cells, Region, RegionKind};

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
            tasks.push(move |reader: &mut Reader| whole(reader, &list, own));
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
