//! BL, the baseline (section III-A): one thread per list reads the whole list sequentially in pieces of 1
//! MiB; then all threads intersect in memory by [`super::sl`].

use crate::intersection::page_reader::{ListPageReader, PIECE_PAGES, read_whole_list};
use crate::intersection::reads::{IntersectionResult, ReadStats};
use crate::intersection::{list::PagedList, list::by_length, partition, reader_threads::ReaderThreads, sl};
use std::sync::Arc;
use tierdex::{Error, Result, io::CELL_BYTES_MAX, io::CellMut, io::Cells, io::Region, io::RegionKind};

/// Memory for whole lists, allocated by the first intersection and reused by later ones.
#[derive(Default)]
pub struct Bl {
    cells: Option<Arc<Cells>>,
}

impl Bl {
    /// The ids that are in all lists.
    ///
    /// # Errors
    /// When a page cannot be read or is damaged, or when the memory for the lists cannot be allocated.
    pub fn intersect(&mut self, readers: &ReaderThreads, lists: &[PagedList]) -> Result<IntersectionResult> {
        let lists = by_length(lists);
        if lists.is_empty() || lists.iter().any(|list| list.len() == 0) {
            return Ok(IntersectionResult::default().with_skipped(&lists));
        }
        let cells = self.cells(lists.iter().map(piece_count).sum())?;
        let mut next = 0;
        let mut tasks = Vec::new();
        for list in &lists {
            let numbers = next..next + piece_count(list);
            next = numbers.end;
            let own: Option<Vec<CellMut>> = numbers.map(|number| cells.write(number)).collect();
            let own = own.ok_or_else(|| Error::Failed("memory for lists is in use".to_owned()))?;
            let list = list.clone();
            tasks.push(move |reader: &mut ListPageReader| read_whole_list(reader, &list, own));
        }
        let (mut whole, mut reads) = (Vec::new(), ReadStats::default());
        for (list, its) in readers.run(tasks)? {
            whole.push(list);
            reads += its;
        }
        let mut found = partition::run_partitioned(readers, &whole, sl::find_common::<false>)?;
        found.reads = reads;
        Ok(found.with_skipped(&lists))
    }

    /// At least `count` cells.
    fn cells(&mut self, count: usize) -> Result<Arc<Cells>> {
        if self.cells.as_ref().is_none_or(|cells| cells.len() < count) {
            self.cells = None;
            let region = Region::new(&RegionKind::Dram, (count * CELL_BYTES_MAX) as u64)?;
            self.cells = Some(Cells::new(region, CELL_BYTES_MAX)?);
        }
        self.cells.clone().ok_or_else(|| Error::Failed("no memory for lists".to_owned()))
    }
}

fn piece_count(list: &PagedList) -> usize {
    list.pages().div_ceil(PIECE_PAGES)
}
