//! Deletes of a segment that no commit has yet, and which layers of statistics the next commit writes.

use crate::segment::deleted_statistics::DeletedStatistics;
use crate::segment::read::open_deletes;
use crate::segment::{DeletedDocuments, ManifestSegment};
use crate::{Result, limits::DELETES_LAYERS_MAX};
use std::sync::Arc;
use tierdex_io::Disk;

/// Deletes of a segment that no commit has yet.
pub(super) struct PendingDeletes {
    /// All deleted documents of the segment, with those of the last commit.
    documents: DeletedDocuments,
    /// The layers of the last commit.
    layers: Vec<Arc<DeletedStatistics>>,
    /// The documents that are not in these, ascending.
    new: Vec<u32>,
}

impl PendingDeletes {
    /// The deletes that a segment has, to add others.
    pub(super) fn open(disk: &dyn Disk, segment: &ManifestSegment) -> Result<PendingDeletes> {
        let (documents, layers) = match open_deletes(disk, segment)? {
            Some(deletes) => (deletes.documents().clone(), deletes.layers().to_vec()),
            None => (DeletedDocuments::none(segment.documents), Vec::new()),
        };
        Ok(PendingDeletes { documents, layers, new: Vec::new() })
    }

    /// Deletes documents of the segment. Returns the number of those that were not deleted before.
    pub(super) fn delete(&mut self, mut documents: Vec<u32>) -> u64 {
        documents.retain(|document| !self.documents.contains(*document));
        documents.sort_unstable();
        documents.dedup();
        documents.iter().for_each(|document| self.documents.insert(*document));
        self.new.extend_from_slice(&documents);
        self.new.sort_unstable();
        documents.len() as u64
    }

    /// All deleted documents.
    pub(super) fn documents(&self) -> &DeletedDocuments {
        &self.documents
    }

    /// The documents that no commit has deleted yet, ascending.
    pub(super) fn new_documents(&self) -> &[u32] {
        &self.new
    }

    /// The number of layers of the last commit that are kept, and the layer that replaces the others and has
    /// these statistics of the new documents. It is less than half as large as the one before, unless there
    /// would be too many layers: so a commit writes again only as much as it adds, on average, a few times.
    pub(super) fn merge_layers(&self, statistics: DeletedStatistics) -> Result<(usize, DeletedStatistics)> {
        let (mut merged, mut kept) = (statistics, self.layers.len());
        while let Some(last) = kept.checked_sub(1).map(|last| &self.layers[last]) {
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
}
