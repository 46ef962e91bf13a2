//! One page after another, each waited for: what a thread of a [`super::Crew`] reads by.

use super::list::PagedList;
use super::page::PAGE_BYTES;
use super::reads::Reads;
use crate::error::Result;
use std::sync::Arc;
use tierdex_io::{Cells, Disk, Engine, EngineOptions, Region, RegionKind, Target};

/// An engine, a page of memory, and the sum of what was read.
pub(super) struct Reader {
    pub(super) engine: Engine,
    pub(super) reads: Reads,
    cells: Arc<Cells>,
}

impl Reader {
    pub(super) fn new(disk: &dyn Disk, options: EngineOptions) -> Result<Reader> {
        let cells = Cells::new(Region::new(&RegionKind::Dram, PAGE_BYTES as u64)?, PAGE_BYTES)?;
        let engine = Engine::new(options, disk, std::slice::from_ref(&cells))?;
        Ok(Reader { engine, reads: Reads::default(), cells })
    }

    /// Replaces `ids` by those of a page, from memory or from the disk.
    pub(super) fn page(&mut self, list: &PagedList, page: usize, ids: &mut Vec<u32>) -> Result<()> {
        ids.resize(list.ids_of(page).1, 0);
        if let Some(bytes) = list.near(page) {
            self.reads.near += 1;
            return list.decode(page, bytes, ids);
        }
        let cell = self.cells.write(0).expect("a reader has its page to itself");
        self.engine.submit(list.file(), list.offset(page), Target::from(cell), 0);
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
