//! External ids.

use super::read_tail;
use crate::bytes::View;
use crate::error::{Error, Result};
use crate::limits::{ID_BYTES_MAX, IDS_GROUP};
use tierdex_io::SealedFile;

/// Finds the external id of a document. Nothing but the two numbers of the tail is resident.
pub struct IdsReader {
    file: SealedFile,
    documents: u32,
    groups_at: u64,
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
        Ok(IdsReader { file, documents, groups_at })
    }

    /// External id of a document.
    pub fn get(&self, document: u32) -> Result<String> {
        let ids = self.group(document / IDS_GROUP)?;
        let place = (document % IDS_GROUP) as usize;
        ids.into_iter().nth(place).ok_or_else(|| self.corrupt("document has no id"))
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
        let last = group + 1 == self.documents.div_ceil(IDS_GROUP);
        let at = self.groups_at + 8 * u64::from(group);
        let bytes = self.file.read(at, if last { 8 } else { 16 })?;
        let mut view = View::new(self.file.name(), at, &bytes);
        let start = view.u64()?;
        Ok((start, if last { self.groups_at } else { view.u64()? }))
    }

    fn corrupt(&self, what: &str) -> Error {
        Error::corrupt(self.file.name(), self.groups_at, what)
    }
}
