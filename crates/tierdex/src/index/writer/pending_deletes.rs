//! Deletes of a segment that no commit has yet, and which layers of statistics the next commit writes.

use crate::segment::deleted_statistics::DeletedStatistics;
use crate::segment::read::open_deleted_documents;
use crate::segment::{DeletedDocuments, ManifestSegment};
use crate::{Result, limits::DELETES_LAYERS_MAX};
use std::sync::Arc;
use tierdex_io::Disk;

/// Deletes of a segment that no commit has yet: two bits for each document of the segment.
pub(super) struct PendingDeletes {
    /// All deleted documents of the segment, with those of the last commit.
    documents: DeletedDocuments,
    /// Those that the last commit does not have.
    new: DeletedDocuments,
}

impl PendingDeletes {
    /// The deletes that a segment has, to add others.
    pub(super) fn open(disk: &dyn Disk, segment: &ManifestSegment) -> Result<PendingDeletes> {
        let none = DeletedDocuments::none(segment.documents);
        let documents = open_deleted_documents(disk, segment)?;
        Ok(PendingDeletes { documents: documents.unwrap_or_else(|| none.clone()), new: none })
    }

    /// Deletes documents of the segment. Returns the number of those that were not deleted before.
    pub(super) fn delete(&mut self, documents: &[u32]) -> u64 {
        let before = self.new.len();
        for document in documents {
            if !self.documents.contains(*document) {
                self.documents.insert(*document);
                self.new.insert(*document);
            }
        }
        u64::from(self.new.len() - before)
    }

    /// All deleted documents.
    pub(super) fn documents(&self) -> &DeletedDocuments {
        &self.documents
    }

    /// The documents that no commit has deleted yet.
    pub(super) fn new_documents(&self) -> &DeletedDocuments {
        &self.new
    }
}

/// The number of layers of the last commit that are kept, and the layer that replaces the others and has
/// these statistics of the new documents. It is less than half as large as the one before, unless there
/// would be too many layers: so a commit writes again only as much as it adds, on average, a few times.
pub(super) fn merge_layers(
    layers: &[Arc<DeletedStatistics>],
    statistics: DeletedStatistics,
) -> Result<(usize, DeletedStatistics)> {
    let (mut merged, mut kept) = (statistics, layers.len());
    while let Some(last) = kept.checked_sub(1).map(|last| &layers[last]) {
        let is_large = last.are_terms_known() == merged.are_terms_known()
            && 2 * merged.term_bytes() >= last.term_bytes();
        if !is_large && kept < DELETES_LAYERS_MAX {
            break;
        }
        merged = DeletedStatistics::merge(&[last, &merged])?;
        kept -= 1;
    }
    Ok((kept, merged))
}
