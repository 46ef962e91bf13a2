//! Evaluation with the documents divided into ranges as by the threads of an engine, on one thread: for
//! tests.

use super::searcher::{PartialResult, SearchOptions, SearchResult, Searcher};
use crate::segment::read::{BlockSource, FILES};
use crate::{Result, query::Query};
use std::{cell::RefCell, ops::Range, sync::Arc};
use tierdex_io::SealedFile;

struct DividingSource<F> {
    cut: RefCell<F>,
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
    /// As [`Searcher::search`]. At each checkpoint `cut` is called with the range of documents that are
    /// left, and may return a document in it: the range from there on is left to another evaluation.
    #[doc(hidden)]
    pub fn search_divided(
        &self,
        query: &Query,
        options: &SearchOptions,
        cut: impl FnMut(Range<u32>) -> Option<u32>,
    ) -> Result<SearchResult> {
        let source = DividingSource { cut: RefCell::new(cut), parts: RefCell::default() };
        let plan = self.plan(query, options, &FILES)?;
        let evaluate = |threshold| {
            let (mut found, mut buffers) = (None, self.take_buffers());
            source.parts.borrow_mut().push(self.documents());
            while let Some(part) = { source.parts.borrow_mut().pop() } {
                let more = self.search_part(&plan, &source, options, part, &threshold, &mut buffers)?;
                match &mut found {
                    Some(found) => PartialResult::merge(found, more, options.k),
                    none => *none = Some(more),
                }
            }
            Ok::<_, crate::Error>((found, threshold))
        };
        let (mut found, threshold) =
            evaluate(self.shared_threshold(&plan, &FILES, options, &mut self.take_buffers())?)?;
        if found
            .as_ref()
            .is_some_and(|found| found.threshold_was_too_high(options.k, &self.documents(), &threshold))
        {
            found = evaluate(Arc::default())?.0;
        }
        let nothing = || PartialResult { hits: Vec::new(), total: 0, complete: true };
        Ok(found.unwrap_or_else(nothing).finish(options, plan.query.scale))
    }
}
