//! A segment of a commit: its files, which do not change and are shared between commits, and its deletes,
//! which each commit may extend.

use super::{Segment, TermInfo};
use crate::segment::{DeletedDocuments, FieldStats, SegmentDeletes};
use std::{ops::Deref, sync::Arc};

/// An open segment at a commit. Clones share its files and memory.
#[derive(Clone)]
pub struct OpenSegment {
    segment: Arc<Segment>,
    deletes: Option<Arc<SegmentDeletes>>,
}

impl OpenSegment {
    /// A segment, and its deletes if documents are deleted.
    pub fn new(segment: Arc<Segment>, deletes: Option<Arc<SegmentDeletes>>) -> OpenSegment {
        OpenSegment { segment, deletes }
    }

    /// The files, without deletes.
    pub fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// The deletes; `None` if no document is deleted.
    pub fn deletes(&self) -> Option<&Arc<SegmentDeletes>> {
        self.deletes.as_ref()
    }

    /// The deleted documents; `None` if there are none.
    #[inline]
    pub fn deleted(&self) -> Option<&DeletedDocuments> {
        self.deletes.as_ref().map(|deletes| deletes.documents())
    }

    /// Whether a document of the segment is not deleted.
    #[inline]
    pub fn is_live(&self, document: u32) -> bool {
        !self.deleted().is_some_and(|deleted| deleted.contains(document))
    }

    /// Number of documents that are not deleted.
    pub fn live_documents(&self) -> u32 {
        self.segment.documents() - self.deleted().map_or(0, DeletedDocuments::len)
    }

    /// Whether document frequencies are those of the documents that are not deleted.
    pub fn are_frequencies_exact(&self) -> bool {
        self.deletes.as_ref().is_none_or(|deletes| deletes.are_terms_known())
    }

    /// Statistics of a field in the documents that are not deleted.
    pub fn live_stats(&self, field: usize) -> FieldStats {
        let all = self.segment.meta().stats(field);
        self.deletes.as_ref().map_or(all, |deletes| deletes.live_stats(field, all))
    }

    /// Adds the deleted documents to the dictionary entry of a term; `None` if all its documents are deleted.
    pub fn with_deletes(&self, field: usize, term: &[u8], info: TermInfo) -> Option<TermInfo> {
        match &self.deletes {
            None => Some(info),
            Some(deletes) => info.with_deletes(deletes.find(field, term).documents),
        }
    }

    /// Upper bound of the number of postings of a term that belong to deleted documents.
    pub fn deleted_postings_max(&self, info: &TermInfo) -> u32 {
        match self.are_frequencies_exact() {
            true => info.deleted,
            false => self.deleted().map_or(0, DeletedDocuments::len).min(info.document_frequency),
        }
    }
}

impl Deref for OpenSegment {
    type Target = Segment;

    fn deref(&self) -> &Segment {
        &self.segment
    }
}
