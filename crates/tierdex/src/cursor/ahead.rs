//! Cursors over all lists of a field, one after the other, with few reads: lists below a block are many and
//! short.

use super::postings::PostingsCursor;
use crate::error::Result;
use crate::segment::read::{FieldReader, ReadAhead, Record, TermInfo};

/// Opens the lists of a field in the order of their terms.
#[derive(Default)]
pub struct ListsAhead {
    records: ReadAhead,
    positions: ReadAhead,
}

impl ListsAhead {
    /// The skip record of the next term, or of the same again.
    pub fn record<'a>(&mut self, field: &'a FieldReader, term: &TermInfo) -> Result<Record<'a>> {
        field.next_record(term, &mut self.records)
    }

    /// A cursor over the list of the next term, or of the same again.
    pub fn cursor<'a>(&mut self, field: &'a FieldReader, term: TermInfo) -> Result<PostingsCursor<'a>> {
        let record = self.record(field, &term)?;
        let positions = match (&record, field.positions()) {
            (Record::Inline(list), Some(file)) => list.positions.clone().map(|range| (file, range)),
            _ => None,
        };
        let cursor = PostingsCursor::with_record(field, term, record)?;
        match positions {
            Some((file, range)) => {
                let bytes = self.positions.range(file, &range)?.to_vec();
                Ok(cursor.with_positions(bytes, range.start))
            }
            None => Ok(cursor),
        }
    }
}
