//! Cursors over all lists of a field, one after the other, with few reads: lists below a block are many and
//! short.

use super::postings::PostingsCursor;
use crate::error::Result;
use crate::segment::read::{BlockSource, FILES, FieldReader, ReadAhead, Record, TermInfo};

/// Opens the lists of a field in the order of their terms.
pub struct ListsAhead<'s> {
    source: &'s dyn BlockSource,
    records: ReadAhead,
    positions: ReadAhead,
}

impl Default for ListsAhead<'_> {
    /// Reads files where they are.
    fn default() -> Self {
        ListsAhead::new(&FILES)
    }
}

impl<'s> ListsAhead<'s> {
    /// Reads from `source`.
    pub fn new(source: &'s dyn BlockSource) -> ListsAhead<'s> {
        ListsAhead { source, records: ReadAhead::default(), positions: ReadAhead::default() }
    }

    /// The skip record of the next term, or of the same again.
    pub fn record<'a>(&mut self, field: &'a FieldReader, term: &TermInfo) -> Result<Record<'a>> {
        field.next_record(term, (self.source, &mut self.records))
    }

    /// A cursor over the list of the next term, or of the same again.
    pub fn cursor<'a>(&mut self, field: &'a FieldReader, term: TermInfo) -> Result<PostingsCursor<'a>>
    where
        's: 'a,
    {
        let record = self.record(field, &term)?;
        let positions = match (&record, field.positions()) {
            (Record::Inline(list), Some(file)) => list.positions.clone().map(|range| (file, range)),
            _ => None,
        };
        let cursor = PostingsCursor::with_record(field, record, self.source)?;
        match positions {
            Some((file, range)) => {
                let bytes = self.positions.range(self.source, file, &range)?.to_vec();
                Ok(cursor.with_positions(bytes, range.start))
            }
            None => Ok(cursor),
        }
    }
}
