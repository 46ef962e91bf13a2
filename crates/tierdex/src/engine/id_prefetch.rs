//! Prefetches the external ids of hits into the page cache, many pages at a time, while other queries run.
//!
//! *Input*: hits whose ids will be read soon. *Output*: none; the pages that contain the ids are loaded into
//! the page cache.

use crate::index::{Index, SearchHit, Searcher};
use std::sync::{Arc, Mutex, PoisonError};
use tierdex_io::{
    CellMut, Cells, EngineKind, EngineOptions, PAGE, ReadEngine, ReadFile, ReadTarget, Region, RegionKind,
};

/// Bytes of a read, at most: the ids of a group of documents span one page or two.
const READ_BYTES: usize = 2 * PAGE as usize;

/// Reads id pages asynchronously and discards the data.
pub(super) struct IdPrefetcher(Mutex<IdReads>);

struct IdReads {
    engine: ReadEngine,
    free: Vec<CellMut>,
}

impl IdPrefetcher {
    /// Bytes of memory for `depth` in-flight reads.
    pub(super) fn memory(depth: usize) -> u64 {
        (depth * READ_BYTES) as u64
    }

    /// `None` without io_uring, or if another read engine was selected: ids are then read on demand.
    pub(super) fn new(index: &Index, options: &EngineOptions) -> Option<IdPrefetcher> {
        if !matches!(options.kind, EngineKind::Auto | EngineKind::Uring) {
            return None;
        }
        let options = EngineOptions { kind: EngineKind::Uring, direct: false, ..*options };
        let region = Region::new(&RegionKind::Dram, IdPrefetcher::memory(options.depth)).ok()?;
        let cells = Cells::new(region, READ_BYTES).ok()?;
        let engine = ReadEngine::new(options, index.disk(), std::slice::from_ref(&cells)).ok()?;
        let free = (0..cells.len()).map(|cell| cells.write(cell)).collect::<Option<_>>()?;
        Some(IdPrefetcher(Mutex::new(IdReads { engine, free })))
    }

    /// Starts to read the pages with the ids of `hits`. Damage is reported when the ids themselves are read.
    pub(super) fn prefetch(&self, searcher: &Searcher, hits: &[SearchHit]) {
        let mut reads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = searcher.by_segment(hits, |segment, _, documents| {
            segment
                .ids()
                .ranges(documents, |file, range| reads.begin(file, range.start / PAGE * PAGE, range.end))
        });
        reads.engine.flush();
    }
}

impl IdReads {
    /// Starts to read the pages from offset `from` to `to`, and waits while too many reads are in flight.
    fn begin(&mut self, file: &Arc<dyn ReadFile>, from: u64, to: u64) {
        let cell = loop {
            match self.free.pop() {
                Some(cell) => break cell,
                // A failed read is reported when the ids themselves are read.
                None => self.free.extend(self.engine.next(true).map(|ended| ended.target.into_cell())),
            }
        };
        let len = to.min(file.len()).saturating_sub(from).min(READ_BYTES as u64) as usize;
        self.engine.submit(file, from, ReadTarget::new(cell, 0..len), 0);
    }
}
