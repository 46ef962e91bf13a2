//! External ids.

use super::read_tail;
use crate::bytes::{View, u64_at};
use crate::error::{Error, Result};
use crate::limits::{ID_BYTES_MAX, IDS_GROUP};
use std::sync::OnceLock;
use tierdex_io::{Advice, SealedFile};

/// Finds the external id of a document. The places of the groups, an eighth of a byte a document, stay in memory
/// once they are needed.
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

    /// Has the system begin to read what [`IdsReader::get`] will, all at once: `documents` rise. That it does not does no harm.
    pub fn expect(&self, documents: &[u32]) -> Result<()> {
        let Some(file) = self.file.file().posix().filter(|_| self.file.kept().is_none()) else {
            return Ok(());
        };
        let mut last = None;
        for group in documents.iter().map(|document| document / IDS_GROUP) {
            if last.replace(group) != Some(group) {
                let (start, end) = self.group_range(group)?;
                let _ = file.advise(start..end, Advice::WillNeed);
            }
        }
        Ok(())
    }

    /// Calls `body` with the place in `documents` and the external id of each of them; a group is read once for
    /// neighbours, so rising documents are cheapest.
    pub fn get(&self, documents: &[u32], mut body: impl FnMut(usize, &str)) -> Result<()> {
        let mut group = (u32::MAX, Vec::new());
        for (place, &document) in documents.iter().enumerate() {
            let number = document / IDS_GROUP;
            if group.0 != number {
                group = (number, self.group(number)?);
            }
            let id = group.1.get((document % IDS_GROUP) as usize);
            body(place, id.ok_or_else(|| self.corrupt("document has no id"))?);
        }
        Ok(())
    }

    /// Calls `body` with the id of each document in order.
    pub fn for_each(&self, mut body: impl FnMut(&str) -> Result<()>) -> Result<()> {
        for group in 0..self.documents.div_ceil(IDS_GROUP) {
            for id in self.group(group)? {
                body(&id)?;
            }
        }
        Ok(())
    }

    pub(super) fn file(&self) -> &SealedFile {
        &self.file
    }

    fn group(&self, group: u32) -> Result<Vec<String>> {
        let documents = self.documents.saturating_sub(group * IDS_GROUP).min(IDS_GROUP);
        let (start, end) = self.group_range(group)?;
        if end < start || end - start > (ID_BYTES_MAX as u64 + 10) * u64::from(documents) {
            return Err(self.corrupt("impossible group of ids"));
        }
        let bytes = self.file.read(start, (end - start) as usize)?;
        let mut view = View::new(self.file.name(), start, &bytes);
        let ids = (0..documents).map(|_| view.string(ID_BYTES_MAX).map(str::to_string));
        let ids = ids.collect::<Result<Vec<_>>>()?;
        view.finish()?;
        Ok(ids)
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
        let places = self.file.read(self.groups_at, 8 * self.documents.div_ceil(IDS_GROUP) as usize)?;
        Ok(self.places.get_or_init(|| places))
    }

    fn corrupt(&self, what: &str) -> Error {
        Error::corrupt(self.file.name(), self.groups_at, what)
    }
}
