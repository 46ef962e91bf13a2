//! Reads external ids.

use super::tail::read_tail;
use crate::bytes::{View, u64_at};
use crate::error::{Error, Result};
use crate::limits::{ID_BYTES_MAX, IDS_GROUP};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use tierdex_io::{ReadFile, SealedFile};

/// Looks up the external id of a document. The offsets of the groups, an eighth of a byte per document, are
/// loaded on first use and stay resident.
pub struct IdsReader {
    file: SealedFile,
    documents: u32,
    groups_at: u64,
    group_offsets: OnceLock<Vec<u8>>,
}

impl IdsReader {
    pub(super) fn open(file: SealedFile, documents: u32) -> Result<IdsReader> {
        let [count, groups_at] = read_tail::<2>(&file)?;
        let groups = u64::from(documents.div_ceil(IDS_GROUP));
        let payload = file.payload();
        let end = groups_at.checked_add(8 * groups + 16);
        if count != u64::from(documents) || groups_at < payload.start || end != Some(payload.end) {
            return Err(Error::corrupt(file.name(), payload.end, "the tail does not fit the file"));
        }
        Ok(IdsReader { file, documents, groups_at, group_offsets: OnceLock::new() })
    }

    /// Calls `body` with the byte ranges that [`IdsReader::get`] reads for these documents, in ascending
    /// order.
    pub fn ranges(
        &self,
        documents: &[u32],
        mut body: impl FnMut(&Arc<dyn ReadFile>, Range<u64>),
    ) -> Result<()> {
        let mut last = None;
        for group in documents.iter().map(|document| document / IDS_GROUP) {
            if last.replace(group) != Some(group) {
                let (start, end) = self.group_range(group)?;
                body(self.file.file(), start..end);
            }
        }
        Ok(())
    }

    /// Calls `body` with the index in `documents` and the external id of each document. Consecutive
    /// documents of a group are decoded from one read, so ascending order is cheapest.
    pub fn get(&self, documents: &[u32], mut body: impl FnMut(usize, &str)) -> Result<()> {
        let (mut bytes, mut index) = (Vec::new(), 0);
        for run in documents.chunk_by(|a, b| a / IDS_GROUP == b / IDS_GROUP) {
            let start = self.read_group(run[0] / IDS_GROUP, &mut bytes)?;
            let first = View::new(self.file.name(), start, &bytes);
            let (mut view, mut next) = (first.clone(), 0);
            for document in run.iter().map(|document| document % IDS_GROUP) {
                if document < next {
                    (view, next) = (first.clone(), 0);
                }
                for _ in next..document {
                    view.string(ID_BYTES_MAX)?;
                }
                body(index, view.string(ID_BYTES_MAX)?);
                (next, index) = (document + 1, index + 1);
            }
        }
        Ok(())
    }

    /// Calls `body` with the id of each document in order.
    pub fn for_each(&self, mut body: impl FnMut(&str) -> Result<()>) -> Result<()> {
        let mut bytes = Vec::new();
        for group in 0..self.documents.div_ceil(IDS_GROUP) {
            let start = self.read_group(group, &mut bytes)?;
            let mut view = View::new(self.file.name(), start, &bytes);
            for _ in 0..self.documents_of(group) {
                body(view.string(ID_BYTES_MAX)?)?;
            }
            view.finish()?;
        }
        Ok(())
    }

    /// Bytes of the group offsets, once they are resident.
    pub fn memory(&self) -> u64 {
        8 * u64::from(self.documents.div_ceil(IDS_GROUP))
    }

    pub(super) fn file(&self) -> &SealedFile {
        &self.file
    }

    fn documents_of(&self, group: u32) -> u32 {
        self.documents.saturating_sub(group.saturating_mul(IDS_GROUP)).min(IDS_GROUP)
    }

    /// Reads a group and returns its offset.
    fn read_group(&self, group: u32, bytes: &mut Vec<u8>) -> Result<u64> {
        let (start, end) = self.group_range(group)?;
        if end < start || end - start > (ID_BYTES_MAX as u64 + 10) * u64::from(self.documents_of(group)) {
            return Err(self.corrupt("impossible group of ids"));
        }
        self.file.read_into(start, (end - start) as usize, bytes)?;
        Ok(start)
    }

    fn group_range(&self, group: u32) -> Result<(u64, u64)> {
        let group_offsets = self.group_offsets()?;
        let start =
            u64_at(group_offsets, group as usize).ok_or_else(|| self.corrupt("document has no id"))?;
        Ok((start, u64_at(group_offsets, group as usize + 1).unwrap_or(self.groups_at)))
    }

    fn group_offsets(&self) -> Result<&[u8]> {
        if let Some(group_offsets) = self.group_offsets.get() {
            return Ok(group_offsets);
        }
        let group_offsets = self.file.read(self.groups_at, self.memory() as usize)?;
        Ok(self.group_offsets.get_or_init(|| group_offsets))
    }

    fn corrupt(&self, what: &str) -> Error {
        Error::corrupt(self.file.name(), self.groups_at, what)
    }
}
