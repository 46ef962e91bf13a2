//! Opens all posting lists of a field in the order of terms, with few reads: a read fetches the skip records
//! of as many terms as its buffer can hold.

use super::postings::{CursorArrays, PostingsCursor};
use crate::error::Result;
use crate::segment::read::{BlockSource, FILES, FieldReader, ReadAheadBuffer, SkipRecord, TermInfo};

/// Opens the posting lists of a field in the order of terms, with read-ahead of skip records and positions.
pub struct ListsInTermOrder<'s> {
    source: &'s dyn BlockSource,
    records: ReadAheadBuffer,
    positions: ReadAheadBuffer,
    /// Arrays of an earlier cursor.
    arrays: Option<CursorArrays>,
}

impl Default for ListsInTermOrder<'_> {
    /// Reads the files, through the page cache of the operating system.
    fn default() -> Self {
        ListsInTermOrder::new(&FILES)
    }
}

impl<'s> ListsInTermOrder<'s> {
    /// Reads by `source`.
    pub fn new(source: &'s dyn BlockSource) -> ListsInTermOrder<'s> {
        ListsInTermOrder {
            source,
            records: ReadAheadBuffer::default(),
            positions: ReadAheadBuffer::default(),
            arrays: None,
        }
    }

    /// The skip record of the next term, or of the current one again.
    pub fn record<'a>(&mut self, field: &'a FieldReader, term: &TermInfo) -> Result<SkipRecord<'a>> {
        field.record_in_term_order(term, self.source, &mut self.records)
    }

    /// Calls `body` with a cursor over the list of the next term, or of the current one again.
    pub fn with_cursor<R>(
        &mut self,
        field: &FieldReader,
        term: TermInfo,
        body: impl FnOnce(&mut PostingsCursor<'_>) -> Result<R>,
    ) -> Result<R> {
        let record = field.borrow_record_in_term_order(&term, self.source, &mut self.records)?;
        let positions = match (&record, field.positions_file()) {
            (SkipRecord::Inline(list), Some(file)) => list.positions.clone().map(|range| (file, range)),
            _ => None,
        };
        let positions = match positions {
            Some((file, range)) => Some((self.positions.range(self.source, file, &range)?, range.start)),
            None => None,
        };
        let arrays = self.arrays.take().unwrap_or_default();
        let mut cursor = PostingsCursor::with_arrays(field, record, self.source, positions, arrays);
        let result = body(&mut cursor);
        self.arrays = Some(cursor.into_arrays());
        result
    }
}
