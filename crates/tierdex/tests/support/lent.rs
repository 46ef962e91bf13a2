//! A source that lends posting lists from its own memory, although the files of the index are not resident.

use std::{cell::Cell, collections::HashMap, ops::Range, sync::Arc};
use tierdex::internal::segment::read::{BlockSource, FILES};
use tierdex::{
    Index, Query, Result, SearchOptions, explain::SearchResult, internal::cursor::verify_uncompressed,
    internal::index::Searcher, io::SealedFile,
};

/// The posting lists of an index, in memory.
pub struct LentLists {
    searcher: Searcher,
    /// The payload of each file, by the number of the file.
    payloads: HashMap<u64, Vec<u8>>,
    lent: Cell<u64>,
}

impl LentLists {
    /// Reads the lists of an index. Those that are not compressed are verified, as they are used in place.
    pub fn load(index: &Index) -> Result<LentLists> {
        let fields = || index.segments().iter().flat_map(|segment| segment.fields());
        let read = |file: &SealedFile| {
            let payload = file.payload();
            Ok((file.number(), file.read(payload.start, (payload.end - payload.start) as usize)?))
        };
        let payloads = fields().map(|field| read(field.postings_file())).collect::<Result<_>>()?;
        let lists = LentLists { searcher: index.searcher(), payloads, lent: Cell::new(0) };
        fields().try_for_each(|field| verify_uncompressed(field, &lists))?;
        Ok(lists)
    }

    /// Evaluates a query.
    pub fn search(&self, query: &Query, options: &SearchOptions) -> Result<SearchResult> {
        let plan = self.searcher.plan(query, options, self)?;
        self.searcher.answer(&plan, options, self)
    }

    /// How often bytes were lent so far.
    pub fn lent(&self) -> u64 {
        self.lent.get()
    }
}

impl BlockSource for LentLists {
    fn read(&self, file: &Arc<SealedFile>, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        FILES.read(file, range, out)
    }

    fn lends(&self) -> bool {
        true
    }

    fn lend(&self, file: &SealedFile, range: &Range<u64>) -> Result<Option<&[u8]>> {
        let offset = |at: u64| usize::try_from(at.checked_sub(file.payload().start)?).ok();
        let payload = self.payloads.get(&file.number());
        let bytes = payload.and_then(|payload| payload.get(offset(range.start)?..offset(range.end)?));
        self.lent.set(self.lent.get() + u64::from(bytes.is_some()));
        Ok(bytes)
    }
}
