//! Skip records: the metadata of a posting list, which is read before any of its blocks.

use super::{block_list::BlockList, terms::TermInfo};
use crate::{Result, bytes::ByteReader, segment::layout::OFFSET_MAX};
use std::{borrow::Cow, ops::Range};

/// The skip record of a term.
pub enum SkipRecord<'a> {
    /// The record contains the whole list.
    Inline(InlineList<'a>),
    /// The list is stored in blocks.
    Blocks(Box<BlockList<'a>>),
}

/// A posting list shorter than one block.
pub struct InlineList<'a> {
    /// Number of postings.
    pub postings: u32,
    /// Encoded documents, then encoded frequencies.
    pub encoded: Cow<'a, [u8]>,
    /// Byte range in `positions`, if the field has positions.
    pub positions: Option<Range<u64>>,
    /// Offset in `skips` of [`InlineList::encoded`], for error messages.
    pub offset: u64,
}

/// How much of a skip record is read if it is not resident. An inline list is always read whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordPart {
    /// Max shares and last documents of superblocks. Before blocks are used, the entries of some superblocks
    /// are read by [`FieldReader::read_superblocks`].
    ///
    /// [`FieldReader::read_superblocks`]: super::FieldReader::read_superblocks
    Head,
    /// All but the impacts, which are more than half of a record. Most queries need only the max shares.
    WithoutImpacts,
    /// The whole record.
    Whole,
}

impl<'a> SkipRecord<'a> {
    /// Parses the bytes of the skip record of `term`, which may end before the impacts. `file` is the name
    /// of the file, for error messages.
    pub fn parse(
        file: &'a str,
        term: &TermInfo,
        bytes: Cow<'a, [u8]>,
        positions: bool,
    ) -> Result<SkipRecord<'a>> {
        if term.blocks.is_none() {
            let mut view = ByteReader::new(file, term.skips.start, &bytes);
            let positions_range = if positions {
                let start = view.varint()?;
                let end = start.checked_add(view.varint()?).filter(|end| *end <= OFFSET_MAX);
                Some(start..end.ok_or_else(|| view.corrupt("offset of positions overflows"))?)
            } else {
                None
            };
            let offset = view.offset();
            let start = bytes.len() - view.remaining();
            let encoded = match bytes {
                Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[start..]),
                Cow::Owned(mut bytes) => Cow::Owned(bytes.split_off(start)),
            };
            let (postings, positions) = (term.document_frequency, positions_range);
            return Ok(SkipRecord::Inline(InlineList { postings, encoded, positions, offset }));
        }
        BlockList::parse(file, term, bytes, positions).map(|list| SkipRecord::Blocks(Box::new(list)))
    }
}
