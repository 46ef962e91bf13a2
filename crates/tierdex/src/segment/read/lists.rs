//! Skip records: the metadata of a posting list, read before any of its blocks.

use super::super::layout::{OFFSET_MAX, blocks};
use super::terms::TermInfo;
use crate::bytes::{View, u16_at, u32_at, u64_at};
use crate::error::{Error, Result};
use crate::limits::{BLOCK, SUPERBLOCK};
use crate::transform::impact::{self, Impact};
use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};

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
    pub documents: u32,
    /// Encoded documents, then encoded frequencies.
    pub postings: Cow<'a, [u8]>,
    /// Byte range in `positions`, if the field has positions.
    pub positions: Option<Range<u64>>,
    /// Offset in `skips` of the encoded documents, for error messages.
    pub offset: u64,
}

/// Skip data of a list of at least one block: arrays with one entry per block or per superblock of 32
/// blocks.
pub struct BlockList<'a> {
    file: &'a str,
    offset: u64,
    bytes: Cow<'a, [u8]>,
    documents: u32,
    blocks: usize,
    /// Byte range of the list in `postings`.
    postings: Range<u64>,
    positions_start: u64,
    arrays: ArrayRanges,
}

/// Byte range of each array in the record.
struct ArrayRanges {
    superblock_offsets: [Range<usize>; 3],
    superblock_impacts_at: Range<usize>,
    superblock_impact_lens: Range<usize>,
    superblock_max_shares: Range<usize>,
    last: Range<usize>,
    block_max_shares: Range<usize>,
    lens: [Range<usize>; 3],
    impact_lens: Range<usize>,
    impacts: Range<usize>,
}

/// A part of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListPart {
    /// Documents, in `postings`.
    Docs = 0,
    /// Frequencies, in `postings`.
    Freqs = 1,
    /// Positions, in `positions`.
    Positions = 2,
}

impl<'a> SkipRecord<'a> {
    /// Parses the skip record `bytes` of `term` in `file`.
    /// The impacts at the end of the record may be missing.
    pub fn parse(
        file: &'a str,
        term: &TermInfo,
        bytes: Cow<'a, [u8]>,
        positions: bool,
    ) -> Result<SkipRecord<'a>> {
        if term.blocks.is_none() {
            let mut view = View::new(file, term.skips.start, &bytes);
            let positions_range = if positions {
                let start = view.varint()?;
                let end = start.checked_add(view.varint()?).filter(|end| *end <= OFFSET_MAX);
                Some(start..end.ok_or_else(|| view.corrupt("offset of positions overflows"))?)
            } else {
                None
            };
            let offset = view.offset();
            let start = bytes.len() - view.remaining();
            let postings = match bytes {
                Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[start..]),
                Cow::Owned(mut bytes) => Cow::Owned(bytes.split_off(start)),
            };
            return Ok(SkipRecord::Inline(InlineList {
                documents: term.documents,
                postings,
                positions: positions_range,
                offset,
            }));
        }
        BlockList::parse(file, term, bytes, positions).map(|list| SkipRecord::Blocks(Box::new(list)))
    }
}

impl<'a> BlockList<'a> {
    /// Bytes of the record of a list of `documents` postings without its impacts.
    pub fn bytes_without_impacts(documents: u32, positions: bool) -> u64 {
        let blocks = blocks(documents) as u64;
        let supers = blocks.div_ceil(SUPERBLOCK as u64);
        let (of_superblock, of_block) = if positions { (32, 15) } else { (24, 11) };
        (if positions { 8 } else { 0 }) + of_superblock * supers + of_block * blocks
    }

    /// Whether the record was read with its impacts.
    pub fn has_impacts(&self) -> bool {
        !self.arrays.impacts.is_empty()
    }

    fn parse(file: &'a str, term: &TermInfo, bytes: Cow<'a, [u8]>, positions: bool) -> Result<BlockList<'a>> {
        let blocks = blocks(term.documents);
        let supers = blocks.div_ceil(SUPERBLOCK);
        let mut view = View::new(file, term.skips.start, &bytes);
        let postings = term.blocks.clone().ok_or_else(|| view.corrupt("the record of a short list"))?;
        let positions_start = if positions { view.u64()? } else { 0 };
        let total = bytes.len();
        let mut array = |count: usize, width: usize| -> Result<Range<usize>> {
            let start = total - view.remaining();
            view.array(count, width)?;
            Ok(start..total - view.remaining())
        };
        let with_positions = |count| if positions { count } else { 0 };
        let superblock_offsets = [array(supers, 8)?, array(supers, 8)?, array(with_positions(supers), 8)?];
        let superblock_impacts_at = array(supers, 4)?;
        let superblock_impact_lens = array(supers, 2)?;
        let superblock_max_shares = array(supers, 2)?;
        let last = array(blocks, 4)?;
        let block_max_shares = array(blocks, 2)?;
        let lens = [array(blocks, 2)?, array(blocks, 2)?, array(with_positions(blocks), 4)?];
        let impact_lens = array(blocks, 1)?;
        let impacts = total - view.remaining()..total;
        let arrays = ArrayRanges {
            superblock_offsets,
            superblock_impacts_at,
            superblock_impact_lens,
            superblock_max_shares,
            last,
            block_max_shares,
            lens,
            impact_lens,
            impacts,
        };
        let (offset, documents) = (term.skips.start, term.documents);
        Ok(BlockList { file, offset, bytes, documents, blocks, postings, positions_start, arrays })
    }

    /// Number of postings.
    pub fn documents(&self) -> u32 {
        self.documents
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// Number of superblocks.
    pub fn superblocks(&self) -> usize {
        self.blocks.div_ceil(SUPERBLOCK)
    }

    /// Number of postings in a block.
    pub fn block_len(&self, block: usize) -> usize {
        (self.documents as usize - block * BLOCK).min(BLOCK)
    }

    /// Last document of a block.
    #[inline]
    pub fn last(&self, block: usize) -> u32 {
        u32_at(&self.bytes[self.arrays.last.clone()], block).expect("block is in the list")
    }

    /// Last document before a block; `u32::MAX` before the first block.
    #[inline]
    pub fn before(&self, block: usize) -> u32 {
        if block == 0 { u32::MAX } else { self.last(block - 1) }
    }

    /// The first block from `from` on whose last document is at least `document`, by galloping search.
    pub fn find_block(&self, from: usize, document: u32) -> usize {
        let last = &self.bytes[self.arrays.last.clone()];
        let at = |i: usize| u32_at(last, i).expect("block is in the list");
        let mut step = 1;
        let mut low = from;
        while low < self.blocks && at(low) < document {
            let next = low + step;
            if next >= self.blocks || at(next) >= document {
                let (mut a, mut b) = (low + 1, next.min(self.blocks));
                while a < b {
                    let middle = (a + b) / 2;
                    if at(middle) < document { a = middle + 1 } else { b = middle }
                }
                return a;
            }
            low = next;
            step *= 2;
        }
        low
    }

    /// Block max share: the largest share in the block with the default parameters, in units of 1/65535
    /// ([`share_units`](super::super::layout::share_units)).
    pub fn block_max_share(&self, block: usize) -> u16 {
        u16_at(&self.bytes[self.arrays.block_max_shares.clone()], block).expect("block is in the list")
    }

    /// The largest block max share in a range of blocks.
    pub fn max_share(&self, blocks: RangeInclusive<usize>) -> u16 {
        let (shares, _) = self.bytes[self.arrays.block_max_shares.clone()].as_chunks();
        shares[blocks].iter().map(|share| u16::from_le_bytes(*share)).max().unwrap_or(0)
    }

    /// The blocks of a superblock with their block max shares.
    pub fn block_max_shares(&self, superblock: usize) -> impl Iterator<Item = (usize, u16)> {
        let first = superblock * SUPERBLOCK;
        let (shares, _) = self.bytes[self.arrays.block_max_shares.clone()].as_chunks();
        let shares = &shares[first..self.blocks.min(first + SUPERBLOCK)];
        (first..).zip(shares.iter().map(|share| u16::from_le_bytes(*share)))
    }

    /// Superblock max share: the largest share in the superblock, in the same units.
    pub fn superblock_max_share(&self, superblock: usize) -> u16 {
        u16_at(&self.bytes[self.arrays.superblock_max_shares.clone()], superblock)
            .expect("superblock is in the list")
    }

    /// Byte range of a part of a block in its file.
    pub fn range(&self, part: ListPart, block: usize) -> Result<Range<u64>> {
        self.range_of((part, self.is_interleaved(block / SUPERBLOCK)), block)
    }

    /// As [`BlockList::range`] of a block in a superblock that is `interleaved` or not.
    pub fn range_of(&self, (part, interleaved): (ListPart, bool), block: usize) -> Result<Range<u64>> {
        let superblock = block / SUPERBLOCK;
        let first = superblock * SUPERBLOCK;
        let mut before = self.total_len(part, first..block);
        if part != ListPart::Positions && interleaved {
            before += match part {
                ListPart::Docs => self.total_len(ListPart::Freqs, first..block),
                _ => self.total_len(ListPart::Docs, first + 1..block + 1),
            };
        }
        let start = self.start(part).checked_add(self.offset(part, superblock));
        let start = start.and_then(|start| start.checked_add(before));
        let end = start.and_then(|start| start.checked_add(self.len(part, block)));
        match (start, end) {
            (Some(start), Some(end)) if end <= OFFSET_MAX => Ok(start..end),
            _ => Err(self.corrupt(format!("offset of block {block} overflows"))),
        }
    }

    /// Byte range of a part of a block that is not the first of its superblock, from the range of the block
    /// before.
    pub fn range_after(
        &self,
        (part, interleaved): (ListPart, bool),
        block: usize,
        before: &Range<u64>,
    ) -> Range<u64> {
        let between = match part {
            ListPart::Docs if interleaved => self.len(ListPart::Freqs, block - 1),
            ListPart::Freqs if interleaved => self.len(ListPart::Docs, block),
            _ => 0,
        };
        let start = before.end.saturating_add(between);
        start..start.saturating_add(self.len(part, block))
    }

    /// Whether the frequencies of each block of a superblock follow its documents. Otherwise all its
    /// documents precede all its frequencies.
    pub fn is_interleaved(&self, superblock: usize) -> bool {
        let first = self.len(ListPart::Docs, superblock * SUPERBLOCK);
        self.offset(ListPart::Docs, superblock).checked_add(first)
            == Some(self.offset(ListPart::Freqs, superblock))
    }

    /// Offset of the list in a file.
    fn start(&self, part: ListPart) -> u64 {
        if part == ListPart::Positions { self.positions_start } else { self.postings.start }
    }

    /// Offset of a superblock in a file, relative to the list.
    fn offset(&self, part: ListPart, superblock: usize) -> u64 {
        let offsets = &self.bytes[self.arrays.superblock_offsets[part as usize].clone()];
        u64_at(offsets, superblock).expect("superblock is in the list")
    }

    /// Byte range of the whole list in `postings`.
    pub fn whole(&self) -> Range<u64> {
        self.postings.clone()
    }

    /// Decodes the impacts of a block.
    pub fn impacts(&self, block: usize, out: &mut Vec<Impact>) -> Result<()> {
        impact::read(self.encoded_impacts(block)?, out)
    }

    /// The encoded impacts of a block.
    pub fn encoded_impacts(&self, block: usize) -> Result<View<'_>> {
        let lens = &self.bytes[self.arrays.impact_lens.clone()];
        let superblock = block / SUPERBLOCK;
        let head = self.superblock_impacts_range(superblock)?;
        let skipped: usize = lens[superblock * SUPERBLOCK..block].iter().map(|&len| usize::from(len)).sum();
        let start = head.end + skipped;
        self.view(start..start + usize::from(lens[block]))
    }

    /// The encoded impacts of a superblock.
    pub fn superblock_impacts(&self, superblock: usize) -> Result<View<'_>> {
        self.view(self.superblock_impacts_range(superblock)?)
    }

    /// Bytes of the impacts array, and the sum of the lengths of its entries.
    pub(crate) fn impact_bytes(&self) -> Result<(usize, usize)> {
        let blocks: usize =
            self.bytes[self.arrays.impact_lens.clone()].iter().map(|&len| usize::from(len)).sum();
        let supers = (0..self.superblocks()).map(|s| Ok(self.superblock_impacts_range(s)?.len()));
        Ok((self.arrays.impacts.len(), blocks + supers.sum::<Result<usize>>()?))
    }

    /// Bytes of a part of a block.
    #[inline]
    pub fn len(&self, part: ListPart, block: usize) -> u64 {
        let lens = &self.bytes[self.arrays.lens[part as usize].clone()];
        match part {
            ListPart::Positions => u32_at(lens, block).map(u64::from),
            _ => u16_at(lens, block).map(u64::from),
        }
        .expect("block is in the list")
    }

    /// Total bytes of a part of adjacent blocks.
    fn total_len(&self, part: ListPart, blocks: Range<usize>) -> u64 {
        let lens = &self.bytes[self.arrays.lens[part as usize].clone()];
        match part {
            ListPart::Positions => {
                lens.as_chunks().0[blocks].iter().map(|len| u64::from(u32::from_le_bytes(*len))).sum()
            }
            // At most 32 lengths of 16 bits: the sum fits in 32 bits.
            _ => {
                let lens = lens.as_chunks().0[blocks].iter().map(|len| u32::from(u16::from_le_bytes(*len)));
                u64::from(lens.sum::<u32>())
            }
        }
    }

    /// A corruption error that names this record.
    pub fn corrupt(&self, what: impl Into<String>) -> Error {
        Error::corrupt(self.file, self.offset, what)
    }

    fn superblock_impacts_range(&self, superblock: usize) -> Result<Range<usize>> {
        let at = u32_at(&self.bytes[self.arrays.superblock_impacts_at.clone()], superblock);
        let len = u16_at(&self.bytes[self.arrays.superblock_impact_lens.clone()], superblock);
        let (at, len) = (at.expect("superblock is in the list"), len.expect("superblock is in the list"));
        let start = self.arrays.impacts.start + at as usize;
        let range = start..start + usize::from(len);
        if range.end > self.bytes.len() {
            return Err(self.corrupt("impacts lie outside the record"));
        }
        Ok(range)
    }

    fn view(&self, range: Range<usize>) -> Result<View<'_>> {
        let bytes = self.bytes.get(range.clone());
        let bytes = bytes.ok_or_else(|| self.corrupt("impacts lie outside the record"))?;
        Ok(View::new(self.file, self.offset + range.start as u64, bytes))
    }
}
