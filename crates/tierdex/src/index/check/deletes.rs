//! Compares the deletes of a segment with its posting lists and norms.

use crate::index::deleted::{scan_deleted, statistics_of_norms};
use crate::segment::deleted_statistics::{DeletedStatistics, DeletedStatisticsBuilder};
use crate::segment::read::Segment;
use crate::segment::{ManifestSegment, SegmentDeletes};
use crate::{Error, Result};

/// Checks the statistics of all deleted documents of a segment; that the files fit each other was checked
/// when they were opened.
pub(super) fn check_deletes(segment: &Segment, of: &ManifestSegment, deletes: &SegmentDeletes) -> Result<()> {
    let fields = segment.fields().len();
    let none = DeletedStatisticsBuilder::new(fields).finish()?;
    // A layer may have fewer fields than the segment.
    let layers = deletes.layers().iter().map(|layer| &**layer).chain([&none]);
    let found = DeletedStatistics::merge(&layers.collect::<Vec<_>>())?;
    let corrupt = |what: &str| {
        // The last layer is the last file of the segment.
        Err(Error::corrupt(of.file_names().last().unwrap_or_default(), 0, what))
    };
    if found.are_terms_known() {
        return match found == scan_deleted(segment, deletes.documents())? {
            true => Ok(()),
            false => corrupt("statistics of deleted documents that are not those of the posting lists"),
        };
    }
    // Tokens are approximate: only the numbers of documents are compared.
    let documents: Vec<u32> = deletes.documents().iter().collect();
    let expected = statistics_of_norms(segment, &documents)?;
    let differ = |field: &usize| found.field(*field).documents != expected.field(*field).documents;
    match (0..fields).find(differ) {
        None => Ok(()),
        Some(_) => corrupt("another number of deleted documents of a field than the norms say"),
    }
}
