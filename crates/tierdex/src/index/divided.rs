//! Evaluates a query on ranges of the documents, as the threads of an engine do, but on one thread: for
//! tests.

use super::search_result::{PartialResult, SearchOptions, SearchResult};
use super::searcher::{PlannedQuery, Searcher};
use crate::segment::read::{BlockSource, FILES};
use crate::{Result, query::Query};
use std::{cell::RefCell, ops::Range, sync::Arc};
use tierdex_io::SealedFile;

/// Reads files, and takes documents away from the evaluation at its checkpoints.
struct DividingSource<F> {
    /// Called with the live documents; returns where to divide them, if at all.
    cut: RefCell<F>,
    /// Ranges of documents that are still to be evaluated.
    parts: RefCell<Vec<Range<u32>>>,
}

impl<F: FnMut(Range<u32>) -> Option<u32>> BlockSource for DividingSource<F> {
    fn read(&self, file: &Arc<SealedFile>, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        FILES.read(file, range, out)
    }

    fn read_ahead(&self) -> usize {
        FILES.read_ahead()
    }

    fn checkpoint(&self, rest: Range<u32>) -> Result<u32> {
        let within = |at: &u32| *at > rest.start && *at < rest.end;
        match (self.cut.borrow_mut())(rest.clone()).filter(within) {
            Some(at) => {
                self.parts.borrow_mut().push(at..rest.end);
                Ok(at)
            }
            None => Ok(rest.end),
        }
    }
}

impl Searcher {
    /// As [`Searcher::search`]. At each checkpoint `cut` is called with the range of documents that the
    /// current evaluation has not visited, and may return a document in it: the documents from there on are
    /// evaluated later, as a range of their own.
    #[doc(hidden)]
    pub fn search_divided(
        &self,
        query: &Query,
        options: &SearchOptions,
        cut: impl FnMut(Range<u32>) -> Option<u32>,
    ) -> Result<SearchResult> {
        let source = DividingSource { cut: RefCell::new(cut), parts: RefCell::default() };
        let plan = self.plan(query, options, &FILES)?;
        let planned = PlannedQuery { plan: &plan, options, source: &source };
        let evaluate = |threshold| {
            let (mut found, mut buffers) = (None, self.take_buffers());
            source.parts.borrow_mut().push(self.documents());
            while let Some(part) = { source.parts.borrow_mut().pop() } {
                let more = self.search_range(planned, part, &threshold, &mut buffers)?;
                match &mut found {
                    Some(found) => PartialResult::merge(found, more, options.k),
                    none => *none = Some(more),
                }
            }
            Ok::<_, crate::Error>((found, threshold))
        };
        let unshared = PlannedQuery { source: &FILES, ..planned };
        let (mut found, threshold) =
            evaluate(self.shared_threshold(unshared, self.take_buffers().scratch())?)?;
        if found
            .as_ref()
            .is_some_and(|found| found.was_initial_threshold_too_high(options.k, self.index(), &threshold))
        {
            found = evaluate(Arc::default())?.0;
        }
        let nothing = || PartialResult { hits: Vec::new(), total: 0, complete: true };
        Ok(found.unwrap_or_else(nothing).into_result(options, plan.query.scale))
    }
}
