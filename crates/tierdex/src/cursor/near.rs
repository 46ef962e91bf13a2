//! Lists that a cache has brought near, whole or some blocks of them.

use crate::error::{Error, Result};
use crate::segment::read::{FieldReader, Part, Record, TermInfo};
use std::ops::Range;
use tierdex_cache::{List, Reader};

/// A list that a cache has brought near.
pub enum NearList {
    /// All of it (thesis, section 7.2.3).
    Whole {
        /// Its record first, if that is not resident anyway; then its documents and its frequencies, if they do not
        /// stand in the record.
        list: List,
        /// Whether it begins with the record.
        record: bool,
    },
    /// Some blocks; others are read from their files.
    Blocks {
        /// The record, if that is not resident anyway.
        record: Option<List>,
        /// Blocks in order.
        blocks: Vec<NearBlocks>,
    },
}

/// Neighbouring blocks of a list.
pub struct NearBlocks {
    /// Which.
    pub blocks: Range<usize>,
    /// Where they begin in `docs` and in `freqs`.
    pub starts: [u64; 2],
    /// Their documents and their frequencies, as soon as they are there.
    pub list: Option<List>,
}

impl NearList {
    /// How many blocks of it are named; none of a list that is near whole.
    pub fn named(&self) -> Option<usize> {
        match self {
            NearList::Whole { .. } => None,
            NearList::Blocks { blocks, .. } => Some(blocks.iter().map(|near| near.blocks.len()).sum()),
        }
    }

    /// Bytes that it takes beside the cache.
    pub fn memory(&self) -> usize {
        match self {
            NearList::Whole { .. } => 0,
            NearList::Blocks { blocks, .. } => blocks.capacity() * size_of::<NearBlocks>(),
        }
    }

    /// The record of the term, if it is here.
    fn record(&self) -> Result<Option<Vec<u8>>> {
        let list = match self {
            NearList::Whole { list, record: true } => list,
            NearList::Blocks { record: Some(list), .. } => list,
            NearList::Whole { .. } | NearList::Blocks { .. } => return Ok(None),
        };
        let mut reader = list.reader(0);
        let (len, mut bytes) = (reader.len(), Vec::new());
        reader.read(0..len, &mut bytes)?;
        Ok(Some(bytes))
    }
}

/// The record of a term, from where it is.
pub fn record<'a>(field: &'a FieldReader, term: &TermInfo, near: Option<&NearList>) -> Result<Record<'a>> {
    match near.map(NearList::record).transpose()?.flatten() {
        Some(bytes) => field.parse_record(term, bytes),
        None => field.record(term),
    }
}

/// Documents or frequencies of a list that is near.
pub(super) struct NearPart<'a> {
    part: usize,
    of: Of<'a>,
}

enum Of<'a> {
    /// A whole part that begins at this offset in its file.
    Whole(Reader<'a>, u64),
    /// Some blocks, and which of them was read last.
    Blocks(&'a [NearBlocks], Option<(usize, Reader<'a>)>),
}

impl<'a> NearPart<'a> {
    /// `start` is the offset at which the list begins in the file of the part.
    pub(super) fn new(near: &'a NearList, part: Part, start: u64) -> NearPart<'a> {
        let part = part as usize;
        let of = match near {
            NearList::Whole { list, record } => Of::Whole(list.reader(part + usize::from(*record)), start),
            NearList::Blocks { blocks, .. } => Of::Blocks(blocks, None),
        };
        NearPart { part, of }
    }

    /// The bytes of a block that stand at `range` in `file`; none if they are not here. `scratch` is used for those that do not
    /// stand together.
    #[inline]
    pub(super) fn block<'r>(
        &'r mut self,
        block: usize,
        range: &Range<u64>,
        file: &str,
        scratch: &'r mut Vec<u8>,
    ) -> Result<Option<&'r [u8]>> {
        let outside = |error: tierdex_io::Error| match error.kind() {
            tierdex_io::ErrorKind::Denied => {
                Error::corrupt(file, range.start, "a block lies outside its list")
            }
            _ => Error::Storage(error),
        };
        let within = |start: u64| {
            let bytes = range.start.checked_sub(start).zip(range.end.checked_sub(start));
            let (from, to) =
                bytes.ok_or_else(|| Error::corrupt(file, range.start, "a block before its list"))?;
            Ok::<_, Error>(from..to)
        };
        match &mut self.of {
            Of::Whole(reader, start) => {
                let bytes = within(*start)?;
                reader.get(bytes, scratch).map(Some).map_err(outside)
            }
            Of::Blocks(near, last) => {
                let at = near.partition_point(|near| near.blocks.end <= block);
                let here = near.get(at).filter(|near| near.blocks.start <= block);
                let Some(NearBlocks { starts, list: Some(list), .. }) = here else { return Ok(None) };
                if last.as_ref().is_none_or(|(last, _)| *last != at) {
                    *last = Some((at, list.reader(self.part)));
                }
                let Some((_, reader)) = last else { return Ok(None) };
                let bytes = within(starts[self.part])?;
                reader.get(bytes, scratch).map(Some).map_err(outside)
            }
        }
    }
}
