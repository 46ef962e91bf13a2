//! Lists that a cache has brought near, whole or some blocks of them.

use crate::error::{Error, Result};
use crate::segment::read::{FieldReader, Part, Record, TermInfo};
use std::ops::Range;
use tierdex_cache::{List, Reader};
use tierdex_io::PAGE;

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

/// Where a list is read from, and how much of it at a time.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    /// Where a cache has brought it near.
    pub near: Option<&'a NearList>,
    /// Bytes of each of its parts that are buffered, at most: from [`BUFFER_MIN`] to [`BUFFER_MAX`].
    pub buffer: usize,
}

/// A block, wherever in a page it begins.
pub const BUFFER_MIN: usize = 2 * PAGE as usize;

/// A segment of a cache, the largest. What is read ahead is seldom so much.
pub const BUFFER_MAX: usize = 1 << 20;

impl Default for Reading<'_> {
    /// From files.
    fn default() -> Self {
        Reading { near: None, buffer: BUFFER_MAX }
    }
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
    fn record(&self, buffer: usize) -> Result<Option<Vec<u8>>> {
        let list = match self {
            NearList::Whole { list, record: true } => list,
            NearList::Blocks { record: Some(list), .. } => list,
            NearList::Whole { .. } | NearList::Blocks { .. } => return Ok(None),
        };
        let mut reader = list.reader(0).within(buffer);
        let (len, mut bytes) = (reader.len(), Vec::new());
        reader.read(0..len, &mut bytes)?;
        Ok(Some(bytes))
    }
}

/// The record of a term, from where it is.
pub fn record<'a>(field: &'a FieldReader, term: &TermInfo, reading: Reading<'_>) -> Result<Record<'a>> {
    let Reading { near, buffer } = reading;
    match near.map(|near| near.record(buffer)).transpose()?.flatten() {
        Some(bytes) => field.parse_record(term, bytes),
        None => field.record(term),
    }
}

/// Documents or frequencies of a list that is near.
pub(super) struct NearPart<'a> {
    part: usize,
    buffer: usize,
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
    pub(super) fn new((near, buffer): (&'a NearList, usize), part: Part, start: u64) -> NearPart<'a> {
        let part = part as usize;
        let of = match near {
            NearList::Whole { list, record } => {
                Of::Whole(list.reader(part + usize::from(*record)).within(buffer), start)
            }
            NearList::Blocks { blocks, .. } => Of::Blocks(blocks, None),
        };
        NearPart { part, buffer, of }
    }

    /// Turns to a block; says whether it is here. What `scratch` has is lost then, and its memory where a list needs a buffer
    /// of its own: there is one of both at a time.
    #[inline]
    pub(super) fn turn_to(&mut self, block: usize, scratch: &mut Vec<u8>) -> bool {
        let Of::Blocks(near, last) = &mut self.of else { return true };
        let at = near.partition_point(|near| near.blocks.end <= block);
        let here = near.get(at).filter(|near| near.blocks.start <= block);
        let Some(NearBlocks { list: Some(list), .. }) = here else {
            *last = None;
            return false;
        };
        if last.as_ref().is_none_or(|(last, _)| *last != at) {
            if !list.is_pinned() {
                *scratch = Vec::new();
            }
            *last = Some((at, list.reader(self.part).within(self.buffer)));
        }
        true
    }

    /// The bytes at `range` in `file`, of the block that was turned to. `scratch` is used for those that do not stand together.
    #[inline]
    pub(super) fn block<'r>(
        &'r mut self,
        range: &Range<u64>,
        file: &str,
        scratch: &'r mut Vec<u8>,
    ) -> Result<&'r [u8]> {
        let (reader, start) = match &mut self.of {
            Of::Whole(reader, start) => (reader, *start),
            Of::Blocks(near, Some((at, reader))) => (reader, near[*at].starts[self.part]),
            Of::Blocks(_, None) => return Err(Error::corrupt(file, range.start, "a block is not near")),
        };
        let bytes = range.start.checked_sub(start).zip(range.end.checked_sub(start));
        let (from, to) = bytes.ok_or_else(|| Error::corrupt(file, range.start, "a block before its list"))?;
        reader.get(from..to, scratch).map_err(|error| match error.kind() {
            tierdex_io::ErrorKind::Denied => {
                Error::corrupt(file, range.start, "a block lies outside its list")
            }
            _ => Error::Storage(error),
        })
    }
}
