//! Whole posting lists of an index in memory.

use tierdex::internal::segment::read::{FieldReader, TermInfo};
use tierdex::{Result, internal::cursor::NO_DOCUMENT, internal::cursor::PostingsCursor};

/// A posting list: documents in increasing order, and the frequency of the term in each.
#[derive(Default)]
pub struct ListPostings {
    /// Document numbers within the segment.
    pub documents: Vec<u32>,
    /// As many frequencies.
    pub frequencies: Vec<u32>,
}

/// Reads and decodes the posting list of a term in a segment.
///
/// # Errors
/// If the list cannot be read or is damaged.
pub fn read_postings(field: &FieldReader, term: TermInfo) -> Result<ListPostings> {
    let mut list = ListPostings::default();
    let mut cursor = PostingsCursor::open(field, term)?;
    while cursor.advance(0)? != NO_DOCUMENT {
        let (documents, frequencies) = cursor.rest_of_block()?;
        let count = documents.len();
        list.documents.extend_from_slice(documents);
        list.frequencies.extend_from_slice(frequencies);
        cursor.skip(count)?;
    }
    Ok(list)
}
