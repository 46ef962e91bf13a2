//! Writes external ids: groups of 64 length-prefixed ids, then the offsets of the groups.

use super::super::layout::{FileKind, FileMeta, push_tail};
use super::file::{create, seal};
use crate::bytes::push_bytes;
use crate::error::Result;
use crate::limits::IDS_GROUP;
use tierdex_io::{Disk, SealedWriter};

/// Writes ids in document order.
pub struct IdsWriter {
    file: SealedWriter,
    groups: Vec<u8>,
    documents: u64,
    entry: Vec<u8>,
}

impl IdsWriter {
    /// Creates the file.
    pub fn create(disk: &dyn Disk, segment: u64) -> Result<IdsWriter> {
        let file = create(disk, segment, 0, FileKind::Ids)?;
        Ok(IdsWriter { file, groups: Vec::new(), documents: 0, entry: Vec::new() })
    }

    /// Appends the next document's id.
    pub fn add(&mut self, id: &[u8]) -> Result<()> {
        if self.documents.is_multiple_of(u64::from(IDS_GROUP)) {
            push_tail(&mut self.groups, &[self.file.position()]);
        }
        self.documents += 1;
        self.entry.clear();
        push_bytes(&mut self.entry, id);
        Ok(self.file.write(&self.entry)?)
    }

    /// Writes the offsets of the groups and seals the file.
    pub fn finish(mut self) -> Result<FileMeta> {
        let at = self.file.position();
        self.file.write(&self.groups)?;
        self.entry.clear();
        push_tail(&mut self.entry, &[self.documents, at]);
        self.file.write(&self.entry)?;
        seal(self.file, 0, FileKind::Ids)
    }
}
