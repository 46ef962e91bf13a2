//! A block source that counts the reads of each file.

use super::source::{BlockSource, PagesBody};
use crate::Result;
use std::{cell::RefCell, collections::BTreeMap, ops::Range, sync::Arc};
use tierdex_cache::ReadCosts;
use tierdex_io::{PAGE, SealedFile};

/// Passes all reads to another source and counts them, for the evaluation of a query on one thread.
pub struct CountedSource<'s> {
    source: &'s dyn BlockSource,
    /// By the number of the file: reads, and their bytes in whole pages.
    counts: RefCell<BTreeMap<u64, (u64, u64)>>,
}

impl<'s> CountedSource<'s> {
    /// Counts the reads from `source`.
    pub fn new(source: &'s dyn BlockSource) -> CountedSource<'s> {
        CountedSource { source, counts: RefCell::default() }
    }

    /// The number of reads of a file so far, and their bytes in whole pages.
    pub fn reads_of(&self, file: &SealedFile) -> (u64, u64) {
        self.counts.borrow().get(&file.number()).copied().unwrap_or_default()
    }

    fn count(&self, file: &SealedFile, reads: u64, pages: u64) {
        let mut counts = self.counts.borrow_mut();
        let (all_reads, bytes) = counts.entry(file.number()).or_default();
        *all_reads += reads;
        *bytes += pages * PAGE;
    }
}

impl BlockSource for CountedSource<'_> {
    fn prefetch(&self, file: &Arc<SealedFile>, range: Range<u64>) -> bool {
        self.source.prefetch(file, range)
    }

    fn prefetches(&self) -> bool {
        self.source.prefetches()
    }

    fn read_costs(&self) -> Option<ReadCosts> {
        self.source.read_costs()
    }

    fn read(&self, file: &Arc<SealedFile>, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        self.count(file, 1, range.end.div_ceil(PAGE).saturating_sub(range.start / PAGE));
        self.source.read(file, range, out)
    }

    fn for_each_page(&self, file: &Arc<SealedFile>, pages: &[u32], body: &mut PagesBody<'_>) -> Result<()> {
        self.count(file, pages.len() as u64, pages.len() as u64);
        self.source.for_each_page(file, pages, body)
    }

    /// Passes no documents on to other evaluations, whose reads are not counted here.
    fn checkpoint(&self, rest: Range<u32>) -> Result<u32> {
        self.source.checkpoint(0..0)?;
        Ok(rest.end)
    }

    fn copies_pages(&self) -> bool {
        self.source.copies_pages()
    }

    fn read_ahead(&self) -> usize {
        self.source.read_ahead()
    }
}
