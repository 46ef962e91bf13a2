//! Skip records: what a planner knows of a list before it reads a block.

use super::super::layout::{OFFSET_MAX, blocks};
use super::terms::TermInfo;
use crate::bytes::{View, u16_at, u32_at, u64_at};
use crate::error::{Error, Result};
use crate::limits::{BLOCK, SUPERBLOCK};
use crate::transform::impact::{self, Impact};
use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};

/// The record of a term.
pub enum Record<'a> {
    /// The list stands whole in the record.
    Inline(InlineList<'a>),
    /// The list stands in blocks.
    Blocks(Box<BlockList<'a>>),
}

/// A list shorter than one block.
pub struct InlineList<'a> {
    /// Postings.
    pub documents: u32,
    /// Encoded documents, then encoded frequencies.
    pub postings: Cow<'a, [u8]>,
    /// Bytes in `positions`, when the field keeps them.
    pub positions: Option<Range<u64>>,
    /// Offset in `skips` of the encoded documents, for messages.
    pub offset: u64,
}

/// A list of at least one block: arrays with one entry a block, and one a superblock of 32 blocks.
pub struct BlockList<'a> {
    file: &'a str,
    offset: u64,
    bytes: Cow<'a, [u8]>,
    documents: u32,
    blocks: usize,
    /// Where it stands in `docs` and in `freqs`.
    wholes: [Range<u64>; 2],
    positions_start: u64,
    arrays: Arrays,
}

/// Where each array stands in the record.
struct Arrays {
    super_distances: [Range<usize>; 3],
    super_impacts_at: Range<usize>,
    super_front_lens: Range<usize>,
    super_bounds: Range<usize>,
    last: Range<usize>,
    bounds: Range<usize>,
    lens: [Range<usize>; 3],
    front_lens: Range<usize>,
    impacts: Range<usize>,
}

/// One of the three files that hold blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// `docs`
    Docs = 0,
    /// `freqs`
    Freqs = 1,
    /// `positions`
    Positions = 2,
}

impl<'a> Record<'a> {
    /// Reads the record `bytes` of a term, which stands in `file` where the term says.
    pub fn parse(
        file: &'a str,
        term: &TermInfo,
        bytes: Cow<'a, [u8]>,
        positions: bool,
    ) -> Result<Record<'a>> {
        if term.blocks.is_none() {
            let mut view = View::new(file, term.skips.start, &bytes);
            let places = if positions {
                let start = view.varint()?;
                let end = start.checked_add(view.varint()?).filter(|end| *end <= OFFSET_MAX);
                Some(start..end.ok_or_else(|| view.corrupt("place of positions overflows"))?)
            } else {
                None
            };
            let offset = view.offset();
            let start = bytes.len() - view.remaining();
            let postings = match bytes {
                Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[start..]),
                Cow::Owned(mut bytes) => Cow::Owned(bytes.split_off(start)),
            };
            return Ok(Record::Inline(InlineList {
                documents: term.documents,
                postings,
                positions: places,
                offset,
            }));
        }
        BlockList::parse(file, term, bytes, positions).map(|list| Record::Blocks(Box::new(list)))
    }
}

impl<'a> BlockList<'a> {
    fn parse(file: &'a str, term: &TermInfo, bytes: Cow<'a, [u8]>, positions: bool) -> Result<BlockList<'a>> {
        let blocks = blocks(term.documents);
        let supers = blocks.div_ceil(SUPERBLOCK);
        let mut view = View::new(file, term.skips.start, &bytes);
        let wholes = term.blocks.clone().ok_or_else(|| view.corrupt("the record of a short list"))?;
        let positions_start = if positions { view.u64()? } else { 0 };
        let total = bytes.len();
        let mut array = |count: usize, width: usize| -> Result<Range<usize>> {
            let start = total - view.remaining();
            view.array(count, width)?;
            Ok(start..total - view.remaining())
        };
        let with_positions = |count| if positions { count } else { 0 };
        let super_distances = [array(supers, 8)?, array(supers, 8)?, array(with_positions(supers), 8)?];
        let super_impacts_at = array(supers, 4)?;
        let super_front_lens = array(supers, 2)?;
        let super_bounds = array(supers, 2)?;
        let last = array(blocks, 4)?;
        let bounds = array(blocks, 2)?;
        let lens = [array(blocks, 2)?, array(blocks, 2)?, array(with_positions(blocks), 4)?];
        let front_lens = array(blocks, 1)?;
        let impacts = total - view.remaining()..total;
        let arrays = Arrays {
            super_distances,
            super_impacts_at,
            super_front_lens,
            super_bounds,
            last,
            bounds,
            lens,
            front_lens,
            impacts,
        };
        let (offset, documents) = (term.skips.start, term.documents);
        Ok(BlockList { file, offset, bytes, documents, blocks, wholes, positions_start, arrays })
    }

    /// Postings.
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

    /// Postings in a block.
    pub fn block_len(&self, block: usize) -> usize {
        (self.documents as usize - block * BLOCK).min(BLOCK)
    }

    /// Last document of a block.
    #[inline]
    pub fn last(&self, block: usize) -> u32 {
        u32_at(&self.bytes[self.arrays.last.clone()], block).expect("block is in the list")
    }

    /// Last document before a block, `u32::MAX` before the first.
    #[inline]
    pub fn before(&self, block: usize) -> u32 {
        if block == 0 { u32::MAX } else { self.last(block - 1) }
    }

    /// The first block from `from` on whose last document is at least `document`: there it stands, if anywhere.
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

    /// Largest share of `k1 + 1` with the default parameters in a block, in units of 1/65535.
    pub fn bound(&self, block: usize) -> u16 {
        u16_at(&self.bytes[self.arrays.bounds.clone()], block).expect("block is in the list")
    }

    /// The largest [`BlockList::bound`] of some blocks.
    pub fn largest_bound(&self, blocks: RangeInclusive<usize>) -> u16 {
        let (bounds, _) = self.bytes[self.arrays.bounds.clone()].as_chunks();
        bounds[blocks].iter().map(|bound| u16::from_le_bytes(*bound)).max().unwrap_or(0)
    }

    /// The blocks of a superblock, and the [`BlockList::bound`] of each.
    pub fn bounds(&self, superblock: usize) -> impl Iterator<Item = (usize, u16)> {
        let first = superblock * SUPERBLOCK;
        let (bounds, _) = self.bytes[self.arrays.bounds.clone()].as_chunks();
        let bounds = &bounds[first..self.blocks.min(first + SUPERBLOCK)];
        (first..).zip(bounds.iter().map(|bound| u16::from_le_bytes(*bound)))
    }

    /// The same for a superblock.
    pub fn super_bound(&self, superblock: usize) -> u16 {
        u16_at(&self.bytes[self.arrays.super_bounds.clone()], superblock).expect("superblock is in the list")
    }

    /// Where a block's bytes stand in one of the three files.
    pub fn range(&self, part: Part, block: usize) -> Result<Range<u64>> {
        let superblock = block / SUPERBLOCK;
        let first = superblock * SUPERBLOCK;
        let before = self.total_len(part, first..block);
        let distances = &self.bytes[self.arrays.super_distances[part as usize].clone()];
        let distance = u64_at(distances, superblock).expect("superblock is in the list");
        let start = self.start(part).checked_add(distance).and_then(|at| at.checked_add(before));
        let end = start.and_then(|start| start.checked_add(self.len(part, block)));
        match (start, end) {
            (Some(start), Some(end)) if end <= OFFSET_MAX => Ok(start..end),
            _ => Err(self.corrupt(format!("place of block {block} overflows"))),
        }
    }

    /// Where the list begins in one of the three files.
    pub fn start(&self, part: Part) -> u64 {
        match part {
            Part::Docs | Part::Freqs => self.wholes[part as usize].start,
            Part::Positions => self.positions_start,
        }
    }

    /// Where the whole list stands in one of the three files.
    pub fn whole(&self, part: Part) -> Result<Range<u64>> {
        match part {
            Part::Docs | Part::Freqs => Ok(self.wholes[part as usize].clone()),
            Part::Positions => Ok(self.positions_start..self.range(part, self.blocks - 1)?.end),
        }
    }

    /// Reads the impacts of a block.
    pub fn impacts(&self, block: usize, front: &mut Vec<Impact>) -> Result<()> {
        impact::read(self.front(block)?, front)
    }

    /// The impacts of a block, as they are written.
    pub fn front(&self, block: usize) -> Result<View<'_>> {
        let lens = &self.bytes[self.arrays.front_lens.clone()];
        let superblock = block / SUPERBLOCK;
        let head = self.super_range(superblock)?;
        let skipped: usize = lens[superblock * SUPERBLOCK..block].iter().map(|&len| usize::from(len)).sum();
        let start = head.end + skipped;
        self.view(start..start + usize::from(lens[block]))
    }

    /// The impacts of a superblock, as they are written.
    pub fn super_front(&self, superblock: usize) -> Result<View<'_>> {
        self.view(self.super_range(superblock)?)
    }

    /// Bytes of all impacts, and how many of them the fronts of blocks and superblocks account for.
    pub(crate) fn impact_bytes(&self) -> Result<(usize, usize)> {
        let blocks: usize =
            self.bytes[self.arrays.front_lens.clone()].iter().map(|&len| usize::from(len)).sum();
        let supers = (0..self.superblocks()).map(|s| Ok(self.super_range(s)?.len()));
        Ok((self.arrays.impacts.len(), blocks + supers.sum::<Result<usize>>()?))
    }

    /// Length in bytes of a block in one of the three files.
    #[inline]
    pub fn len(&self, part: Part, block: usize) -> u64 {
        let lens = &self.bytes[self.arrays.lens[part as usize].clone()];
        match part {
            Part::Positions => u32_at(lens, block).map(u64::from),
            _ => u16_at(lens, block).map(u64::from),
        }
        .expect("block is in the list")
    }

    /// The same for neighbouring blocks together.
    fn total_len(&self, part: Part, blocks: Range<usize>) -> u64 {
        let lens = &self.bytes[self.arrays.lens[part as usize].clone()];
        match part {
            Part::Positions => {
                lens.as_chunks().0[blocks].iter().map(|len| u64::from(u32::from_le_bytes(*len))).sum()
            }
            // There are at most 32 of them.
            _ => {
                let lens = lens.as_chunks().0[blocks].iter().map(|len| u32::from(u16::from_le_bytes(*len)));
                u64::from(lens.sum::<u32>())
            }
        }
    }

    /// An error that names this record.
    pub fn corrupt(&self, what: impl Into<String>) -> Error {
        Error::corrupt(self.file, self.offset, what)
    }

    fn super_range(&self, superblock: usize) -> Result<Range<usize>> {
        let at = u32_at(&self.bytes[self.arrays.super_impacts_at.clone()], superblock);
        let len = u16_at(&self.bytes[self.arrays.super_front_lens.clone()], superblock);
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
