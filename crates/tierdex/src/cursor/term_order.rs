//! Opens all posting lists of a field in the order of terms, with few reads: a read fetches the skip records
//! of as many terms as its buffer can hold.

use super::postings::PostingsCursor;
use crate::error::Result;
use crate::segment::read::{BlockSource, FILES, FieldReader, ReadAheadBuffer, SkipRecord, TermInfo};

/// Opens the posting lists of a field in the order of terms, with read-ahead of skip records and positions.
pub struct ListsInTermOrder<'s> {
    source: &'s dyn BlockSource,
    records: ReadAheadBuffer,
    positions: ReadAheadBuffer,
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
        }
    }

    /// The skip record of the next term, or of the current one again.
    pub fn record<'a>(&mut self, field: &'a FieldReader, term: &TermInfo) -> Result<SkipRecord<'a>> {
        field.record_in_term_order(term, self.source, &mut self.records)
    }

    /// A cursor over the list of the next term, or of the current one again.
    pub fn cursor<'a>(&mut self, field: &'a FieldReader, term: TermInfo) -> Result<PostingsCursor<'a>>
    where
        's: 'a,
    {
        let record = self.record(field, &term)?;
        let positions = match (&record, field.positions_file()) {
            (SkipRecord::Inline(list), Some(file)) => list.positions.clone().map(|range| (file, range)),
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
