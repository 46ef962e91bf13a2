//! Statistics of deleted documents by a scan of all posting lists of a segment: slow, but without the text of
//! the documents. Verification compares with it what writers computed from stored text.

use super::segment_terms::SegmentTerms;
use crate::segment::deleted_statistics::{DeletedStatistics, DeletedStatisticsBuilder, TermDeletes};
use crate::segment::{DeletedDocuments, read::Segment};
use crate::{Result, cursor::NO_DOCUMENT};

/// The statistics of deleted documents of a segment.
pub(crate) fn scan_deleted(segment: &Segment, deleted: &DeletedDocuments) -> Result<DeletedStatistics> {
    let mut builder = DeletedStatisticsBuilder::new(segment.fields().len());
    for number in 0..segment.fields().len() {
        let mut lengths = vec![0_u64; segment.documents() as usize];
        let mut terms = SegmentTerms::open(std::iter::once(segment), number)?;
        while let Some(term) = SegmentTerms::smallest(&terms) {
            let [input] = terms.as_mut_slice() else { break };
            let Some(info) = input.take(&term)? else { break };
            let mut of_term = TermDeletes::default();
            let mut cursor = input.lists.cursor(input.field, info)?;
            while cursor.advance(0)? != NO_DOCUMENT {
                let (documents, frequencies) = cursor.rest_of_block()?;
                let count = documents.len();
                for (document, frequency) in documents.iter().zip(frequencies) {
                    if deleted.contains(*document) {
                        of_term.add(TermDeletes { documents: 1, occurrences: u64::from(*frequency) });
                        lengths[*document as usize] += u64::from(*frequency);
                    }
                }
                cursor.skip(count)?;
            }
            if of_term.documents > 0 {
                builder.add_term(number, &term, of_term);
            }
        }
        lengths.iter().filter(|tokens| **tokens > 0).for_each(|tokens| builder.add_document(number, *tokens));
    }
    builder.finish()
}
