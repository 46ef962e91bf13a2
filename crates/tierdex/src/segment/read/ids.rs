//! External ids.

use super::read_tail;
use crate::bytes::{View, u64_at};
use crate::error::{Error, Result};
use crate::limits::{ID_BYTES_MAX, IDS_GROUP};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use tierdex_io::{ReadFile, SealedFile};

/// Finds the external id of a document. The places of the groups, an eighth of a byte a document, stay in
/// memory once they are needed.
pub struct IdsReader {
    file: SealedFile,
    documents: u32,
    groups_at: u64,
    places: OnceLock<Vec<u8>>,
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
        Ok(IdsReader { file, documents, groups_at, places: OnceLock::new() })
    }

    /// Calls `body` with the file and the bytes of it that [`IdsReader::get`] reads for these documents,
    /// which rise.
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

    /// Calls `body` with the place in `documents` and the external id of each of them; a group is read once
    /// for neighbours, so rising documents are cheapest.
    pub fn get(&self, documents: &[u32], mut body: impl FnMut(usize, &str)) -> Result<()> {
        let (mut bytes, mut place) = (Vec::new(), 0);
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
                body(place, view.string(ID_BYTES_MAX)?);
                (next, place) = (document + 1, place + 1);
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

    /// Bytes of the places, once they are in memory.
    pub fn memory(&self) -> u64 {
        8 * u64::from(self.documents.div_ceil(IDS_GROUP))
    }

    pub(super) fn file(&self) -> &SealedFile {
        &self.file
    }

    fn documents_of(&self, group: u32) -> u32 {
        self.documents.saturating_sub(group.saturating_mul(IDS_GROUP)).min(IDS_GROUP)
    }

    /// Reads a group, and says where it begins.
    fn read_group(&self, group: u32, bytes: &mut Vec<u8>) -> Result<u64> {
        let (start, end) = self.group_range(group)?;
        if end < start || end - start > (ID_BYTES_MAX as u64 + 10) * u64::from(self.documents_of(group)) {
            return Err(self.corrupt("impossible group of ids"));
        }
        self.file.read_into(start, (end - start) as usize, bytes)?;
        Ok(start)
    }

    fn group_range(&self, group: u32) -> Result<(u64, u64)> {
        let places = self.places()?;
        let start = u64_at(places, group as usize).ok_or_else(|| self.corrupt("document has no id"))?;
        Ok((start, u64_at(places, group as usize + 1).unwrap_or(self.groups_at)))
    }

    fn places(&self) -> Result<&[u8]> {
        if let Some(places) = self.places.get() {
            return Ok(places);
        }
        let places = self.file.read(self.groups_at, self.memory() as usize)?;
        Ok(self.places.get_or_init(|| places))
    }

    fn corrupt(&self, what: &str) -> Error {
        Error::corrupt(self.file.name(), self.groups_at, what)
    }
}
