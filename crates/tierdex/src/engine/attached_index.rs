//! An index of an engine: its newest commit that was opened.

use super::{current::Current, snapshot::Snapshot};
use crate::Result;
use std::sync::{Arc, Weak};

/// An index that an engine searches ([`Engine::attach`](super::Engine::attach)). When the last clone is
/// dropped, the index is closed as soon as no request, result or snapshot refers to it.
#[derive(Clone)]
pub struct AttachedIndex(pub(super) Arc<Current<Snapshot>>);

impl AttachedIndex {
    pub(super) fn new(snapshot: Snapshot) -> AttachedIndex {
        AttachedIndex(Arc::new(Current::new(snapshot)))
    }

    /// The newest commit that was opened. Requests search it by
    /// [`SearchRequest::snapshot`](super::SearchRequest::snapshot).
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.0.get()
    }

    /// Opens the newest commit. Returns whether there is a new one.
    ///
    /// # Errors
    /// As [`Engine::refresh`](super::Engine::refresh).
    pub fn refresh(&self) -> Result<bool> {
        self.0.replace(Snapshot::newest)
    }

    /// Whether a commit is newer than that of [`AttachedIndex::snapshot`]. Lists the files of the directories
    /// and opens none.
    ///
    /// # Errors
    /// [`Error::Storage`](crate::Error::Storage) when a directory cannot be read.
    pub fn has_newer(&self) -> Result<bool> {
        self.snapshot().index().has_newer()
    }

    pub(super) fn downgrade(&self) -> Weak<Current<Snapshot>> {
        Arc::downgrade(&self.0)
    }
}
