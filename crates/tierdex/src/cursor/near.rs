//! Lists that a cache has brought near.

use crate::error::{Error, Result};
use crate::segment::read::{FieldReader, Part, Record, TermInfo};
use tierdex_cache::{List, Reader};

/// A list that a cache has brought near: its record first, if that is not resident anyway, then its documents and its
/// frequencies, if they do not stand in the record (thesis, section 7.2.3).
pub struct NearList {
    list: List,
    record: bool,
}

impl NearList {
    /// `record` says whether the list begins with the term's record.
    pub fn new(list: List, record: bool) -> NearList {
        NearList { list, record }
    }

    /// Reads documents or frequencies.
    pub(super) fn reader(&self, part: Part) -> Reader<'_> {
        self.list.reader(part as usize + usize::from(self.record))
    }

    /// The record of `term`, if it is here.
    fn record(&self) -> Result<Option<Vec<u8>>> {
        if !self.record {
            return Ok(None);
        }
        let mut reader = self.list.reader(0);
        let (len, mut bytes) = (reader.len(), Vec::new());
        reader.read(0..len, &mut bytes)?;
        Ok(Some(bytes))
    }
}

/// The record of a term, from where it is.
pub(super) fn record<'a>(
    field: &'a FieldReader,
    term: &TermInfo,
    near: Option<&NearList>,
) -> Result<Record<'a>> {
    match near.map(NearList::record).transpose()?.flatten() {
        Some(bytes) => field.parse_record(term, bytes),
        None => field.record(term),
    }
}

/// What a list that is near says of a block outside of it.
pub(super) fn outside(file: &str, at: u64, error: tierdex_io::Error) -> Error {
    match error.kind() {
        tierdex_io::ErrorKind::Denied => Error::corrupt(file, at, "a block lies outside its list"),
        _ => Error::Storage(error),
    }
}
