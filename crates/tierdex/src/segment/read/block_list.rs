//! The skip record of a posting list that is stored in blocks: where its blocks are, which documents they
//! contain, and which scores they can reach.

mod arrays;
mod layout;

use self::arrays::{count_less, gallop};
use self::layout::{
    DOCS_LENS, FREQS_LENS, LAST_DOCUMENTS, MAX_SHARES, POSITIONS_LENS, entry_bytes, head_range,
};
use super::terms::TermInfo;
use crate::bytes::{ByteReader, u16_at, u32_at, u64_at};
use crate::limits::{BLOCK, SUPERBLOCK};
use crate::segment::layout::{OFFSET_MAX, block_count};
use crate::transform::impact::{self, Impact};
use crate::{Error, Result};
use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};

/// One of the parts of a block, which are encoded and stored separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListPart {
    /// Documents, in `postings`.
    Docs = 0,
    /// Frequencies, in `postings`.
    Freqs = 1,
    /// Positions, in `positions`.
    Positions = 2,
}

/// Where the bytes of a block are in the file of posting lists ([`BlockList::locate`]).
#[derive(Clone)]
pub struct BlockLocation {
    block: usize,
    /// Whether the frequencies of each block of the superblock follow its documents.
    pub is_interleaved: bool,
    /// Byte ranges of the documents and of the frequencies.
    pub docs: Range<u64>,
    /// As `docs`.
    pub freqs: Range<u64>,
}

impl Default for BlockLocation {
    fn default() -> BlockLocation {
        BlockLocation { block: usize::MAX, is_interleaved: false, docs: 0..0, freqs: 0..0 }
    }
}

/// The skip record of a list of at least one block (docs/format/skips.md): the head, with max share and last
/// document of each superblock of 32 blocks; an entry for each superblock, which describes its blocks; and
/// impacts.
pub struct BlockList<'a> {
    /// Name of the file `skips`, and offset of the record in it.
    file: &'a str,
    offset: u64,
    /// The record, possibly without its impacts.
    bytes: Cow<'a, [u8]>,
    /// Number of postings and of blocks of the list.
    postings: u32,
    blocks: usize,
    /// Byte range of the list in `postings`.
    postings_range: Range<u64>,
    /// Offset of the list in `positions`.
    positions_start: u64,
    /// Offset in the record of the last documents of superblocks; the max shares precede them.
    superblock_last: usize,
    /// Offset in the record of the entries of superblocks, and of the arrays in the first entry.
    entries: usize,
    arrays: usize,
    /// Bytes of an entry of 32 blocks.
    entry_len: usize,
    /// Offset in the record of the impacts.
    impacts: usize,
}

impl<'a> BlockList<'a> {
    /// Bytes of the record of a list with this number of postings, without its impacts.
    pub fn bytes_without_impacts(postings: u32, positions: bool) -> u64 {
        let blocks = block_count(postings) as u64;
        let superblocks = blocks.div_ceil(SUPERBLOCK as u64);
        let (of_superblock, of_block) = entry_bytes(positions);
        let entries = of_superblock as u64 * superblocks + of_block as u64 * blocks;
        BlockList::head_bytes(postings, positions) + entries
    }

    /// Bytes of the record of a list with this number of postings before the entries of its superblocks.
    pub fn head_bytes(postings: u32, positions: bool) -> u64 {
        head_range(block_count(postings).div_ceil(SUPERBLOCK), positions).1 as u64
    }

    /// Whether the impacts were read with the record: [`RecordPart::Whole`](super::RecordPart::Whole).
    pub fn has_impacts(&self) -> bool {
        self.impacts < self.bytes.len()
    }

    /// The record without its impacts.
    pub fn without_impacts(&self) -> &[u8] {
        &self.bytes[..self.impacts]
    }

    /// A record that was read with all entries.
    pub(super) fn parse(
        file: &'a str,
        term: &TermInfo,
        bytes: Cow<'a, [u8]>,
        positions: bool,
    ) -> Result<BlockList<'a>> {
        let list = BlockList::parse_unchecked(file, term, bytes, positions)?;
        if list.impacts > list.bytes.len() {
            return Err(list.corrupt("ends early"));
        }
        Ok(list)
    }

    /// A record, the length of which is not checked.
    fn parse_unchecked(
        file: &'a str,
        term: &TermInfo,
        bytes: Cow<'a, [u8]>,
        positions: bool,
    ) -> Result<BlockList<'a>> {
        let (offset, postings) = (term.skips.start, term.document_frequency);
        let mut view = ByteReader::new(file, offset, &bytes);
        let postings_range = term.blocks.clone().ok_or_else(|| view.corrupt("the record of a short list"))?;
        let positions_start = if positions { view.u64()? } else { 0 };
        let blocks = block_count(postings);
        let superblocks = blocks.div_ceil(SUPERBLOCK);
        let (start, entries) = head_range(superblocks, positions);
        let impacts = BlockList::bytes_without_impacts(postings, positions);
        let impacts = usize::try_from(impacts).map_err(|_| view.corrupt("ends early"))?;
        let superblock_last = start + 2 * superblocks;
        let (fixed, of_block) = entry_bytes(positions);
        Ok(BlockList {
            file,
            offset,
            bytes,
            postings,
            blocks,
            postings_range,
            positions_start,
            superblock_last,
            entries,
            arrays: entries + fixed,
            entry_len: fixed + SUPERBLOCK * of_block,
            impacts,
        })
    }

    /// Number of postings.
    pub fn postings(&self) -> u32 {
        self.postings
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
        (self.postings as usize - block * BLOCK).min(BLOCK)
    }

    /// A record of which only the head was read.
    pub(super) fn parse_head(
        file: &'a str,
        term: &TermInfo,
        head: Vec<u8>,
        positions: bool,
    ) -> Result<BlockList<'a>> {
        let list = BlockList::parse_unchecked(file, term, head.into(), positions)?;
        if list.has_entries() || list.bytes.len() < list.entries {
            return Err(list.corrupt("ends early"));
        }
        Ok(list)
    }

    /// Whether the entries of superblocks were read. Without them there are only the max shares and last
    /// documents of superblocks: [`RecordPart::Head`](super::RecordPart::Head).
    pub fn has_entries(&self) -> bool {
        self.entries < self.bytes.len()
    }

    /// Byte range in `skips` of the entry of a superblock.
    pub(super) fn entry_range(&self, superblock: usize) -> Range<u64> {
        let start = self.entries + superblock * self.entry_len;
        let end = (start + self.entry_len).min(self.impacts);
        self.offset + start as u64..self.offset + end as u64
    }

    /// The head of a list of only these superblocks, in ascending order. They and their blocks are numbered
    /// from 0. Their entries are added by [`BlockList::add_entry`].
    pub(super) fn head_of_superblocks(&self, superblocks: &[u32]) -> BlockList<'a> {
        let postings = |superblock: &u32| {
            let start = *superblock as usize * SUPERBLOCK * BLOCK;
            (self.postings as usize - start).min(SUPERBLOCK * BLOCK)
        };
        let postings = superblocks.iter().map(postings).sum::<usize>() as u32;
        let shares_start = self.superblock_last - 2 * self.superblocks();
        let (start, entries) = head_range(superblocks.len(), shares_start > 0);
        let impacts = BlockList::bytes_without_impacts(postings, shares_start > 0) as usize;
        let mut bytes = Vec::with_capacity(impacts);
        bytes.extend_from_slice(&self.bytes[..shares_start]);
        for superblock in superblocks {
            bytes.extend_from_slice(&self.superblock_max_share(*superblock as usize).to_le_bytes());
        }
        for superblock in superblocks {
            bytes.extend_from_slice(&self.superblock_last(*superblock as usize).to_le_bytes());
        }
        BlockList {
            bytes: bytes.into(),
            postings,
            blocks: block_count(postings),
            postings_range: self.postings_range.clone(),
            superblock_last: start + 2 * superblocks.len(),
            entries,
            arrays: entries + self.arrays - self.entries,
            impacts,
            ..*self
        }
    }

    /// Adds the entry of the next superblock.
    pub(super) fn add_entry(&mut self, entry: &[u8]) {
        self.bytes.to_mut().extend_from_slice(entry);
    }

    /// Number of blocks of a superblock.
    #[inline]
    fn blocks_of(&self, superblock: usize) -> usize {
        (self.blocks - superblock * SUPERBLOCK).min(SUPERBLOCK)
    }

    /// Offset in the record of the entry of a superblock.
    #[inline]
    fn entry(&self, superblock: usize) -> usize {
        self.entries + superblock * self.entry_len
    }

    /// Offset in the record of an array in the entry of a superblock. `before` is one of the constants above:
    /// the bytes of a block in all arrays before it.
    #[inline]
    fn array_start(&self, superblock: usize, before: usize) -> usize {
        self.arrays + superblock * self.entry_len + before * self.blocks_of(superblock)
    }

    /// An array in the entry of a superblock, with elements of `N` bytes.
    #[inline]
    fn array<const N: usize>(&self, superblock: usize, before: usize) -> &[[u8; N]] {
        let start = self.array_start(superblock, before);
        self.bytes[start..start + N * self.blocks_of(superblock)].as_chunks().0
    }

    /// The element of a block in an array with elements of `N` bytes.
    #[inline]
    fn element<const N: usize>(&self, block: usize, before: usize) -> [u8; N] {
        let start = self.array_start(block / SUPERBLOCK, before) + N * (block % SUPERBLOCK);
        self.bytes[start..].first_chunk().copied().expect("block is in the list")
    }

    /// Last documents of the blocks of a superblock.
    #[inline]
    fn last_documents(&self, superblock: usize) -> &[[u8; 4]] {
        self.array(superblock, LAST_DOCUMENTS)
    }

    /// Last document of a superblock.
    #[inline]
    fn superblock_last(&self, superblock: usize) -> u32 {
        u32_at(&self.bytes[self.superblock_last..self.entries], superblock)
            .expect("superblock is in the list")
    }

    /// Last document of a block.
    #[inline]
    pub fn last(&self, block: usize) -> u32 {
        let start = self.arrays + block / SUPERBLOCK * self.entry_len + 4 * (block % SUPERBLOCK);
        u32::from_le_bytes(self.bytes[start..].first_chunk().copied().expect("block is in the list"))
    }

    /// Last document of the block before; `u32::MAX` for the first block.
    #[inline]
    pub fn before(&self, block: usize) -> u32 {
        self.before_and_last(block).0
    }

    /// [`BlockList::before`] and [`BlockList::last`] of a block.
    #[inline]
    pub fn before_and_last(&self, block: usize) -> (u32, u32) {
        // Each array of last documents is preceded by the last document before the superblock.
        let start = self.arrays + block / SUPERBLOCK * self.entry_len + 4 * (block % SUPERBLOCK) - 4;
        let both = self.bytes[start..].first_chunk().copied().expect("block is in the list");
        let both = u64::from_le_bytes(both);
        (both as u32, (both >> 32) as u32)
    }

    /// The first block whose last document is at least `document`, searched from block `from` on, or from the
    /// first if `from` starts after `document`; the number of blocks if there is none.
    #[inline]
    pub fn seek(&self, from: usize, document: u32) -> usize {
        if from >= self.blocks {
            let last = self.superblock_last(self.superblocks() - 1);
            return if last < document { self.blocks } else { self.find_block(0, document) };
        }
        let (before, last) = self.before_and_last(from);
        match (before.wrapping_add(1) <= document, document <= last) {
            (true, true) => from,
            (true, false) => self.find_after(from, document),
            (false, _) => self.find_block(0, document),
        }
    }

    /// The first superblock from `from` on whose last document is at least `document`; the number of
    /// superblocks if there is none.
    pub fn find_superblock(&self, from: usize, document: u32) -> usize {
        let last = self.bytes[self.superblock_last..self.entries].as_chunks().0;
        gallop(last, from, document)
    }

    /// The first block from `from` on whose last document is at least `document`; the number of blocks if
    /// there is none.
    #[inline]
    pub fn find_block(&self, from: usize, document: u32) -> usize {
        if from >= self.blocks || self.last(from) >= document {
            from
        } else {
            self.find_after(from, document)
        }
    }

    /// As [`BlockList::find_block`], if the last document of block `from` is less than `document`.
    fn find_after(&self, from: usize, document: u32) -> usize {
        // Dense lists are searched block by block.
        let next = from + 1;
        if next < self.blocks && self.last(next) >= document {
            return next;
        }
        let mut superblock = from / SUPERBLOCK;
        if self.superblock_last(superblock) < document {
            superblock = self.find_superblock(superblock + 1, document);
            if superblock == self.superblocks() {
                return self.blocks;
            }
        }
        let block = superblock * SUPERBLOCK + count_less(self.last_documents(superblock), document);
        // The last documents of a damaged record may not increase; callers need a later block that contains
        // `document`.
        let is_found = |block: usize| self.last(block) >= document;
        if block > from && block < self.blocks && is_found(block) {
            return block;
        }
        (next..self.blocks).find(|block| is_found(*block)).unwrap_or(self.blocks)
    }

    /// Max share of a block: the highest BM25 score of its postings with the default parameters, divided by
    /// the weight of the term, in units of 1/65535 ([`encode_max_share`]).
    ///
    /// [`encode_max_share`]: super::super::layout::encode_max_share
    #[inline]
    pub fn block_max_share(&self, block: usize) -> u16 {
        u16::from_le_bytes(self.element(block, MAX_SHARES))
    }

    /// The largest max share of a range of blocks.
    pub fn max_share(&self, blocks: RangeInclusive<usize>) -> u16 {
        let (first, last) = blocks.into_inner();
        let largest = |superblock: usize, from: usize, to: usize| {
            let shares = &self.array(superblock, MAX_SHARES)[from..=to];
            shares.iter().map(|share| u16::from_le_bytes(*share)).max().unwrap_or(0)
        };
        let (superblock, end) = (first / SUPERBLOCK, last / SUPERBLOCK);
        if superblock == end {
            return largest(superblock, first % SUPERBLOCK, last % SUPERBLOCK);
        }
        let between = (superblock + 1..end).map(|superblock| self.superblock_max_share(superblock));
        let outer =
            largest(superblock, first % SUPERBLOCK, SUPERBLOCK - 1).max(largest(end, 0, last % SUPERBLOCK));
        between.fold(outer, u16::max)
    }

    /// The numbers of the blocks of a superblock with their max shares: the largest share
    /// ([`encode_max_share`](crate::segment::layout::encode_max_share)) of a posting of the block.
    pub fn block_max_shares(&self, superblock: usize) -> impl Iterator<Item = (usize, u16)> {
        let shares = self.array(superblock, MAX_SHARES);
        (superblock * SUPERBLOCK..).zip(shares.iter().map(|share| u16::from_le_bytes(*share)))
    }

    /// Max share of a superblock: the largest of its blocks.
    #[inline]
    pub fn superblock_max_share(&self, superblock: usize) -> u16 {
        let start = self.superblock_last - 2 * self.superblocks();
        u16_at(&self.bytes[start..self.superblock_last], superblock).expect("superblock is in the list")
    }

    /// Byte range of a part of a block in the file that has this part.
    pub fn range(&self, part: ListPart, block: usize) -> Result<Range<u64>> {
        let mut location = BlockLocation::default();
        match part {
            ListPart::Docs => self.locate(&mut location, block).map(|()| location.docs),
            ListPart::Freqs => self.locate(&mut location, block).map(|()| location.freqs),
            ListPart::Positions => self.positions_range(block),
        }
    }

    fn positions_range(&self, block: usize) -> Result<Range<u64>> {
        let (superblock, part) = (block / SUPERBLOCK, ListPart::Positions);
        let before = self.total_len(part, superblock, 0..block % SUPERBLOCK);
        let start = self.list_start(part).checked_add(self.superblock_offset(part, superblock));
        let start = start.and_then(|start| start.checked_add(before));
        let end = start.and_then(|start| start.checked_add(self.len(part, block)));
        match (start, end) {
            (Some(start), Some(end)) if end <= OFFSET_MAX => Ok(start..end),
            _ => Err(self.corrupt(format!("offset of block {block} overflows"))),
        }
    }

    /// Moves `location` to a block. Forward within a superblock takes an addition for each block between.
    #[inline]
    pub fn locate(&self, location: &mut BlockLocation, block: usize) -> Result<()> {
        if location.block == block {
            return Ok(());
        }
        let superblock = block / SUPERBLOCK;
        let starts_superblock = location.block / SUPERBLOCK != superblock || location.block > block;
        if starts_superblock {
            self.locate_superblock(location, superblock)?;
        }
        let between = location.block % SUPERBLOCK..block % SUPERBLOCK;
        let of = |part| self.total_len(part, superblock, between.clone());
        let (docs, freqs) = (of(ListPart::Docs), of(ListPart::Freqs));
        let docs = location.docs.start + docs + if location.is_interleaved { freqs } else { 0 };
        let end = docs + self.len(ListPart::Docs, block);
        let freqs = if location.is_interleaved { end } else { location.freqs.start + freqs };
        location.block = block;
        (location.docs, location.freqs) = (docs..end, freqs..freqs + self.len(ListPart::Freqs, block));
        Ok(())
    }

    /// Moves `location` to the first block of a superblock; the ends of its ranges are not set.
    fn locate_superblock(&self, location: &mut BlockLocation, superblock: usize) -> Result<()> {
        let start = |part| {
            let start = self.list_start(part).checked_add(self.superblock_offset(part, superblock));
            let overflow = || self.corrupt(format!("offset of superblock {superblock} overflows"));
            start.filter(|start| *start <= OFFSET_MAX).ok_or_else(overflow)
        };
        let (docs, freqs) = (start(ListPart::Docs)?, start(ListPart::Freqs)?);
        *location = BlockLocation {
            block: superblock * SUPERBLOCK,
            is_interleaved: self.is_interleaved(superblock),
            docs: docs..docs,
            freqs: freqs..freqs,
        };
        Ok(())
    }

    /// Whether the frequencies of each block of a superblock follow its documents. Otherwise all its
    /// documents precede all its frequencies.
    pub fn is_interleaved(&self, superblock: usize) -> bool {
        let first = self.len(ListPart::Docs, superblock * SUPERBLOCK);
        self.superblock_offset(ListPart::Docs, superblock).checked_add(first)
            == Some(self.superblock_offset(ListPart::Freqs, superblock))
    }

    /// Offset of the list in the file that has this part.
    fn list_start(&self, part: ListPart) -> u64 {
        if part == ListPart::Positions { self.positions_start } else { self.postings_range.start }
    }

    /// Offset at which a part of a superblock starts, relative to the list.
    fn superblock_offset(&self, part: ListPart, superblock: usize) -> u64 {
        let entry = &self.bytes[self.entry(superblock)..self.impacts];
        u64_at(entry, part as usize).expect("superblock is in the list")
    }

    /// Byte range of the whole list in `postings`.
    pub fn postings_range(&self) -> Range<u64> {
        self.postings_range.clone()
    }

    /// Decodes the impacts of a block.
    pub fn decode_impacts(&self, block: usize, out: &mut Vec<Impact>) -> Result<()> {
        impact::read(self.encoded_impacts(block)?, out)
    }

    /// The encoded impacts of a block.
    pub fn encoded_impacts(&self, block: usize) -> Result<ByteReader<'_>> {
        let (superblock, block) = (block / SUPERBLOCK, block % SUPERBLOCK);
        let lens = self.impact_lens(superblock);
        let of_superblock = self.superblock_impacts_range(superblock)?;
        let skipped: usize = lens[..block].iter().map(|[len]| usize::from(*len)).sum();
        let start = of_superblock.end + skipped;
        self.impacts_view(start..start + usize::from(lens[block][0]))
    }

    /// Bytes of the impacts of each block of a superblock.
    fn impact_lens(&self, superblock: usize) -> &[[u8; 1]] {
        let of_block = (self.entry_len - (self.arrays - self.entries)) / SUPERBLOCK;
        self.array(superblock, of_block - 1)
    }

    /// The encoded impacts of a superblock.
    pub fn superblock_impacts(&self, superblock: usize) -> Result<ByteReader<'_>> {
        self.impacts_view(self.superblock_impacts_range(superblock)?)
    }

    /// Bytes of the record from its impacts on, and the sum of the lengths of all impacts. They are equal in
    /// a record without damage.
    pub(crate) fn impact_bytes(&self) -> Result<(usize, usize)> {
        let of_superblock = |superblock| {
            let blocks = self.impact_lens(superblock).iter().map(|[len]| usize::from(*len));
            Ok(blocks.sum::<usize>() + self.superblock_impacts_range(superblock)?.len())
        };
        let sum = (0..self.superblocks()).map(of_superblock).sum::<Result<usize>>()?;
        Ok((self.bytes.len() - self.impacts, sum))
    }

    /// Whether the last documents that are stored twice are equal: that of a superblock is that of its last
    /// block, and is the document before the first block of the next superblock.
    pub(crate) fn last_documents_agree(&self) -> bool {
        let mut before = u32::MAX;
        (0..self.superblocks()).all(|superblock| {
            let first = superblock * SUPERBLOCK;
            let continues = self.before(first) == before;
            before = self.superblock_last(superblock);
            continues && self.last(first + self.blocks_of(superblock) - 1) == before
        })
    }

    /// Bytes of a part of a block.
    #[inline]
    pub fn len(&self, part: ListPart, block: usize) -> u64 {
        match part {
            ListPart::Docs => u64::from(u16::from_le_bytes(self.element(block, DOCS_LENS))),
            ListPart::Freqs => u64::from(u16::from_le_bytes(self.element(block, FREQS_LENS))),
            ListPart::Positions => u64::from(u32::from_le_bytes(self.element(block, POSITIONS_LENS))),
        }
    }

    /// Total bytes of a part of adjacent blocks of a superblock.
    #[inline]
    fn total_len(&self, part: ListPart, superblock: usize, blocks: Range<usize>) -> u64 {
        match part {
            ListPart::Positions => {
                let lens = self.array(superblock, POSITIONS_LENS)[blocks].iter();
                lens.map(|len| u64::from(u32::from_le_bytes(*len))).sum()
            }
            // At most 32 lengths of 16 bits: the sum fits in 32 bits.
            _ => {
                let before = if part == ListPart::Docs { DOCS_LENS } else { FREQS_LENS };
                let lens = self.array(superblock, before)[blocks].iter();
                u64::from(lens.map(|len| u32::from(u16::from_le_bytes(*len))).sum::<u32>())
            }
        }
    }

    /// The error of damage in this record, with its file and its offset.
    pub fn corrupt(&self, what: impl Into<String>) -> Error {
        Error::corrupt(self.file, self.offset, what)
    }

    /// Offsets in the record of the impacts of a superblock; those of its blocks follow.
    fn superblock_impacts_range(&self, superblock: usize) -> Result<Range<usize>> {
        let entry = self.entry(superblock);
        // In an entry, the offset and length of the impacts follow the offsets of the three other parts.
        let mut view =
            ByteReader::new(self.file, self.offset + entry as u64, &self.bytes[entry..self.impacts]);
        view.bytes(self.arrays - self.entries - 10)?;
        let (at, len) = (view.u32()?, view.u16()?);
        let start = self.impacts + at as usize;
        let range = start..start + usize::from(len);
        if range.end > self.bytes.len() {
            return Err(self.corrupt("impacts lie outside the record"));
        }
        Ok(range)
    }

    fn impacts_view(&self, range: Range<usize>) -> Result<ByteReader<'_>> {
        let bytes = self.bytes.get(range.clone());
        let bytes = bytes.ok_or_else(|| self.corrupt("impacts lie outside the record"))?;
        Ok(ByteReader::new(self.file, self.offset + range.start as u64, bytes))
    }
}

#[cfg(test)]
mod tests;
