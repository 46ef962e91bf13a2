//! Reads and decodes the blocks of one posting list, which is inline in its skip record or stored in files.
//! Every decoded block is compared with the skip record.

use super::error::decode_error;
use super::part_buffer::{BLOCKS_READ_MAX, PartBuffer, bytes_of_range};
use crate::limits::{BLOCK, FIELD_TOKENS_MAX, SUPERBLOCK};
use crate::segment::read::{
    BUFFER_BYTES_MIN, BlockList, BlockLocation, BlockSource, FieldReader, InlineList, ListPart, SkipRecord,
};
use crate::{Error, Result};
use std::{ops::Range, sync::Arc};
use tierdex_codec::{BitmapView, Codec, DecodeError, add_one, is_increasing, prefetch};
use tierdex_io::{PAGE, SealedFile};

/// Maximum bytes of the encoded documents or frequencies of a block, or of an encoded piece of positions.
pub const BLOCK_BYTES_MAX: usize = 5 * BLOCK + 8;

const _: () = assert!(BLOCK_BYTES_MAX <= BUFFER_BYTES_MIN / 2);

/// Bytes of memory of an open list, beside its skip record, its read buffers and its decoded blocks.
pub const LIST_BYTES: usize = size_of::<BlockList<'_>>();

/// Maximum bytes of the read buffers of a list whose blocks are read in order.
pub const IN_ORDER_BUFFER_BYTES: usize = 2 * BLOCKS_READ_MAX * BLOCK_BYTES_MAX;

/// The blocks of one posting list; an inline list has one.
pub(super) enum Blocks<'a> {
    Inline(InlineList<'a>),
    Listed(ListedBlocks<'a>),
}

/// The blocks of a list in `postings`, and read buffers.
pub(super) struct ListedBlocks<'a> {
    list: Box<BlockList<'a>>,
    source: &'a dyn BlockSource,
    source_lends: bool,
    /// Buffers for documents and for frequencies ([`ListPart`] as index). Frequencies that follow the
    /// documents of their block are read with them, into the buffer for documents.
    buffers: [PartBuffer; 2],
    /// The block that was located last, and that was located last for prefetching.
    location: BlockLocation,
    prefetched: BlockLocation,
}

impl<'a> ListedBlocks<'a> {
    #[inline]
    fn locate(&mut self, block: usize) -> Result<&BlockLocation> {
        self.list.locate(&mut self.location, block)?;
        Ok(&self.location)
    }

    #[inline]
    fn range(&mut self, part: ListPart, block: usize) -> Result<Range<u64>> {
        let location = self.locate(block)?;
        Ok(if part == ListPart::Docs { location.docs.clone() } else { location.freqs.clone() })
    }

    /// Bytes of a part of a block, and their offset in the file: in place, or in the buffer.
    fn bytes<'b>(
        &'b mut self,
        file: &'b Arc<SealedFile>,
        part: ListPart,
        block: usize,
    ) -> Result<(&'b [u8], u64)> {
        if let Some(in_place) = self.bytes_in_place(file, part, block)? {
            return Ok(in_place);
        }
        let range = self.range(part, block)?;
        let buffer = self.load(file, part, block, range.clone())?;
        Ok((self.buffers[buffer].get(&range).expect("the range was read"), range.start))
    }

    /// Bytes of a part of a block where they are in memory, and their offset in the file; `None` if the file
    /// is not resident and the source does not lend them.
    #[inline(always)]
    fn bytes_in_place<'f>(
        &mut self,
        file: &'f SealedFile,
        part: ListPart,
        block: usize,
    ) -> Result<Option<(&'f [u8], u64)>>
    where
        'a: 'f,
    {
        let Some(payload) = file.resident() else {
            if !self.source_lends {
                return Ok(None);
            }
            let range = self.range(part, block)?;
            return Ok(self.source.lend(file, &range)?.map(|bytes| (bytes, range.start)));
        };
        let range = self.range(part, block)?;
        let bytes = bytes_of_range(payload, file.payload().start, &range);
        let bytes = bytes.ok_or_else(|| self.list.corrupt("a block lies outside its file"))?;
        Ok(Some((bytes, range.start)))
    }

    /// Reads a byte range of the located block into the buffer of `part`, unless the buffer contains it.
    /// Returns the number of the buffer: frequencies that follow their documents are in that of documents.
    fn load(
        &mut self,
        file: &Arc<SealedFile>,
        part: ListPart,
        block: usize,
        range: Range<u64>,
    ) -> Result<usize> {
        let number = if self.location.is_interleaved { ListPart::Docs as usize } else { part as usize };
        let buffer = &mut self.buffers[number];
        if buffer.get(&range).is_none() {
            buffer.fill(&self.list, file, self.source, block, range)?;
        }
        Ok(number)
    }

    /// As [`Blocks::prefetch_run`], of blocks of one superblock.
    fn prefetch_in_superblock(
        &mut self,
        file: &Arc<SealedFile>,
        blocks: Range<usize>,
        frequencies: bool,
    ) -> Result<bool> {
        let at = &mut self.prefetched;
        self.list.locate(at, blocks.start)?;
        let (docs, freqs) = (at.docs.start, at.freqs.start);
        self.list.locate(at, blocks.end - 1)?;
        let (end, is_interleaved) = (at.freqs.end, at.is_interleaved);
        let docs = docs..if is_interleaved && frequencies { end } else { at.docs.end };
        Ok(self.prefetch(file, ListPart::Docs, docs)
            && (is_interleaved || !frequencies || self.prefetch(file, ListPart::Freqs, freqs..end)))
    }

    /// Prefetches bytes of a part, unless its buffer has them. False if the source prefetches no more
    /// ([`BlockSource::prefetch`]).
    fn prefetch(&mut self, file: &Arc<SealedFile>, part: ListPart, range: Range<u64>) -> bool {
        self.buffers[part as usize].get(&range).is_some() || self.source.prefetch(file, range)
    }
}

impl<'a> Blocks<'a> {
    /// Opens a list whose blocks are read in order: reads cover many blocks.
    pub(super) fn in_order(record: SkipRecord<'a>, source: &'a dyn BlockSource) -> Blocks<'a> {
        Blocks::new(record, BLOCKS_READ_MAX, source)
    }

    /// Opens a list whose blocks are read in any order: the first read covers one block.
    pub(super) fn in_any_order(record: SkipRecord<'a>, source: &'a dyn BlockSource) -> Blocks<'a> {
        Blocks::new(record, 1, source)
    }

    fn new(record: SkipRecord<'a>, blocks_ahead: usize, source: &'a dyn BlockSource) -> Blocks<'a> {
        match record {
            SkipRecord::Inline(list) => Blocks::Inline(list),
            SkipRecord::Blocks(list) => Blocks::Listed(ListedBlocks {
                list,
                source,
                source_lends: source.lends(),
                buffers: [ListPart::Docs, ListPart::Freqs].map(|part| PartBuffer::new(part, blocks_ahead)),
                location: BlockLocation::default(),
                prefetched: BlockLocation::default(),
            }),
        }
    }

    /// Prefetches documents or frequencies of a block. False if the source prefetches no more.
    pub(super) fn prefetch(&mut self, field: &FieldReader, part: ListPart, block: usize) -> Result<bool> {
        let Blocks::Listed(list) = self else { return Ok(true) };
        let at = &mut list.prefetched;
        list.list.locate(at, block)?;
        let (range, buffer) = match part {
            ListPart::Docs => (at.docs.clone(), part),
            _ => (at.freqs.clone(), if at.is_interleaved { ListPart::Docs } else { part }),
        };
        Ok(list.prefetch(field.postings_file(), buffer, range))
    }

    /// Byte range of the documents and frequencies of adjacent blocks, if they are adjacent in the file: else
    /// from the first documents to the last frequencies. Empty for an inline list.
    pub(super) fn range_of_run(&self, blocks: Range<usize>) -> Result<Range<u64>> {
        let Blocks::Listed(list) = self else { return Ok(0..0) };
        let end = list.list.range(ListPart::Freqs, blocks.end - 1)?.end;
        Ok(list.list.range(ListPart::Docs, blocks.start)?.start..end)
    }

    /// The source that blocks are read from; `None` for an inline list.
    pub(super) fn source(&self) -> Option<&'a dyn BlockSource> {
        match self {
            Blocks::Inline(_) => None,
            Blocks::Listed(list) => Some(list.source),
        }
    }

    /// Byte range of the documents of a block; empty for an inline list.
    pub(super) fn document_range(&mut self, block: usize) -> Result<Range<u64>> {
        let Blocks::Listed(list) = self else { return Ok(0..0) };
        list.range(ListPart::Docs, block)
    }

    /// Prefetches the documents of adjacent blocks, and their frequencies if `frequencies`. False if the
    /// source prefetches no more.
    pub(super) fn prefetch_run(
        &mut self,
        field: &FieldReader,
        blocks: Range<usize>,
        frequencies: bool,
    ) -> Result<bool> {
        let Blocks::Listed(list) = self else { return Ok(true) };
        let mut first = blocks.start;
        while first < blocks.end {
            let end = blocks.end.min((first / SUPERBLOCK + 1) * SUPERBLOCK);
            if !list.prefetch_in_superblock(field.postings_file(), first..end, frequencies)? {
                return Ok(false);
            }
            first = end;
        }
        Ok(true)
    }

    /// Reads documents and frequencies of a block together if they are neighbours in the file. For callers
    /// that request the frequencies first, which would else be read alone.
    pub(super) fn load(&mut self, field: &FieldReader, block: usize) -> Result<()> {
        if let Blocks::Listed(list) = self
            && field.postings_file().resident().is_none()
            && let location = list.locate(block)?
            && location.is_interleaved
        {
            let range = location.docs.start..location.freqs.end;
            if !list.source_lends || list.source.lend(field.postings_file(), &range)?.is_none() {
                list.load(field.postings_file(), ListPart::Docs, block, range)?;
            }
        }
        Ok(())
    }

    /// As [`ScatteredBlocks::prefetch_whole`](super::ScatteredBlocks::prefetch_whole).
    pub(super) fn prefetch_whole(
        &mut self,
        field: &FieldReader,
        blocks: Range<usize>,
        needed: usize,
    ) -> Result<Option<bool>> {
        let Blocks::Listed(list) = self else { return Ok(Some(true)) };
        let at = &mut list.prefetched;
        list.list.locate(at, blocks.start)?;
        let start = at.docs.start;
        list.list.locate(at, blocks.end - 1)?;
        let range = start..at.freqs.end;
        if !at.is_interleaved || range.end.div_ceil(PAGE) - start / PAGE > needed as u64 {
            return Ok(None);
        }
        Ok(Some(list.prefetch(field.postings_file(), ListPart::Docs, range)))
    }

    /// Number of blocks.
    pub(super) fn len(&self) -> usize {
        match self {
            Blocks::Inline(_) => 1,
            Blocks::Listed(list) => list.list.blocks(),
        }
    }

    /// Number of postings in a block.
    pub(super) fn block_len(&self, block: usize) -> usize {
        match self {
            Blocks::Inline(list) => list.postings as usize,
            Blocks::Listed(list) => list.list.block_len(block),
        }
    }

    /// The skip record; `None` for an inline list.
    pub(super) fn skips(&self) -> Option<&BlockList<'a>> {
        match self {
            Blocks::Inline(_) => None,
            Blocks::Listed(list) => Some(&list.list),
        }
    }

    /// As [`ScatteredBlocks::keep_superblocks`](super::ScatteredBlocks::keep_superblocks).
    pub(super) fn keep_superblocks(&mut self, field: &FieldReader, superblocks: &[u32]) -> Result<()> {
        if let Blocks::Listed(list) = self {
            *list.list = field.read_superblocks(&list.list, superblocks, list.source)?;
        }
        Ok(())
    }

    /// The first block from `from` on that can contain `document` or a later one.
    pub(super) fn find(&self, from: usize, document: u32) -> usize {
        match self {
            Blocks::Inline(_) => from,
            Blocks::Listed(list) => list.list.find_block(from, document),
        }
    }

    /// Last document of the block before; `u32::MAX` for the first block.
    pub(super) fn before(&self, block: usize) -> u32 {
        match self {
            Blocks::Inline(_) => u32::MAX,
            Blocks::Listed(list) => list.list.before(block),
        }
    }

    /// Decodes the documents of a block and returns their number. Checks that they increase, that the last
    /// one is that of the skip record, and that all are less than the number of documents of the segment.
    pub(super) fn decode_documents(
        &mut self,
        field: &FieldReader,
        block: usize,
        out: &mut [u32; BLOCK],
    ) -> Result<usize> {
        let codec = field.field().doc_codec;
        let (len, last, narrow) = match self {
            Blocks::Inline(list) => {
                let len = list.postings as usize;
                let decoded = codec.decode(&list.encoded, u32::MAX, &mut out[..len]);
                decoded.map_err(|e| decode_error(field.skips_file().name(), list.offset, codec, e))?;
                (len, None, codec.has_narrow_gaps(&list.encoded))
            }
            Blocks::Listed(blocks) => {
                let list = &blocks.list;
                let (len, (before, last)) = (list.block_len(block), list.before_and_last(block));
                let (bytes, at) = blocks.bytes(field.postings_file(), ListPart::Docs, block)?;
                let used = codec.decode(bytes, before, &mut out[..len]);
                check_decoded(field.postings_file().name(), at, codec, bytes, used)?;
                (len, Some(last), codec.has_narrow_gaps(bytes))
            }
        };
        self.check_documents(field, block, &out[..len], narrow, last)?;
        Ok(len)
    }

    /// The documents or frequencies of a block where they are in memory; `None` if they are not in memory,
    /// not aligned, or compressed. They are not checked: the field must have been verified. They are
    /// prefetched into the CPU cache, without which conjunctions were slower by a tenth.
    pub(super) fn values_in_place(
        &mut self,
        field: &'a FieldReader,
        part: ListPart,
        block: usize,
    ) -> Result<Option<&'a [u32]>> {
        let codec = match part {
            ListPart::Docs => field.field().doc_codec,
            _ => field.field().freq_codec,
        };
        let Blocks::Listed(blocks) = self else { return Ok(None) };
        let len = blocks.list.block_len(block);
        let Some((bytes, _)) = blocks.bytes_in_place(field.postings_file(), part, block)? else {
            return Ok(None);
        };
        let values = codec.values_in_place(bytes, len);
        if values.is_some() {
            prefetch(bytes);
        }
        Ok(values)
    }

    /// Checks that the documents of a block increase, which they do if the encoded gaps are `narrow`; that
    /// they are greater than those of the block before; and that the last one is in the segment, and is
    /// `last` if that is given.
    fn check_documents(
        &self,
        field: &FieldReader,
        block: usize,
        documents: &[u32],
        narrow: bool,
        last: Option<u32>,
    ) -> Result<()> {
        let end = documents[documents.len() - 1];
        let before = self.before(block);
        let is_above = |document| before == u32::MAX || before < document;
        let increase =
            if narrow { is_above(end) } else { is_increasing(documents) && is_above(documents[0]) };
        if !increase || end >= field.documents() || last.is_some_and(|last| last != end) {
            let what = "documents of a block do not fit its skip data";
            return Err(self.corrupt(field, ListPart::Docs, block, what));
        }
        Ok(())
    }

    /// The documents of a block as a bitmap, if they are encoded as one, checked as by
    /// [`Blocks::decode_documents`]. A block of 256 consecutive documents is recognized by its skip record
    /// alone, without a read.
    pub(super) fn bitmap<'b>(
        &'b mut self,
        field: &'b FieldReader,
        block: usize,
    ) -> Result<Option<BitmapView<'b>>> {
        let codec = field.field().doc_codec;
        let Blocks::Listed(blocks) = self else { return Ok(None) };
        let list = &blocks.list;
        let ((before, last), len) = (list.before_and_last(block), list.block_len(block));
        if len == BLOCK && last.wrapping_sub(before) as usize == BLOCK && last < field.documents() {
            return Ok(BitmapView::of_run(before));
        }
        if !codec.may_be_bitmap(last.wrapping_sub(before)) {
            return Ok(None);
        }
        let (bytes, at) = blocks.bytes(field.postings_file(), ListPart::Docs, block)?;
        let name = field.postings_file().name();
        let Some(view) = codec.bitmap(bytes, before, len).map_err(|e| decode_error(name, at, codec, e))?
        else {
            return Ok(None);
        };
        let used = codec.encoded_len(bytes, len).map_err(|e| decode_error(name, at, codec, e))?;
        if used != bytes.len() {
            return Err(Error::corrupt(name, at + used as u64, "bytes follow a block"));
        }
        if view.last() != last || last >= field.documents() {
            return Err(Error::corrupt(name, at, "documents of a block do not fit its skip data"));
        }
        Ok(Some(view))
    }

    /// Decodes the frequencies of a block of `len` postings.
    pub(super) fn decode_frequencies(
        &mut self,
        field: &FieldReader,
        block: usize,
        out: &mut [u32],
    ) -> Result<()> {
        let codec = field.field().freq_codec;
        let (file, at, bytes) = self.encoded_frequencies(field, block, out.len())?;
        check_decoded(file, at, codec, bytes, codec.decode(bytes, 0, out))?;
        let is_possible = match codec.is_uncompressed() {
            true => out.iter().all(|frequency| (1..FIELD_TOKENS_MAX).contains(frequency)),
            false => add_one(out) < FIELD_TOKENS_MAX,
        };
        if !is_possible {
            return Err(self.corrupt(field, ListPart::Freqs, block, "an impossible frequency"));
        }
        Ok(())
    }

    /// Decodes the prefix sums of the frequencies of a block; each sum includes the frequency of its posting.
    pub(super) fn frequency_sums(
        &mut self,
        field: &FieldReader,
        block: usize,
        out: &mut [u32],
    ) -> Result<()> {
        let codec = field.field().freq_codec;
        let (file, at, bytes) = self.encoded_frequencies(field, block, out.len())?;
        let used = match codec.is_uncompressed() {
            true => codec.decode(bytes, 0, out),
            false => codec.decode_sums(bytes, 0, out),
        };
        check_decoded(file, at, codec, bytes, used)?;
        if codec.is_uncompressed() {
            out.iter_mut().fold(0, |sum: u32, value| {
                *value = sum.wrapping_add(*value);
                *value
            });
        }
        if out[0] == 0 || !is_increasing(out) {
            return Err(self.corrupt(field, ListPart::Freqs, block, "frequencies of 2^32 and more together"));
        }
        Ok(())
    }

    /// Prefetches the beginning of a resident block of frequencies into the CPU cache.
    pub(super) fn prefetch_frequencies_to_cpu(&mut self, field: &FieldReader, block: usize) -> Result<()> {
        if let Blocks::Listed(list) = self {
            let range = list.range(ListPart::Freqs, block)?;
            let len = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
            prefetch(field.postings_file().resident_range(range.start, len).unwrap_or(&[]));
        }
        Ok(())
    }

    /// The name of the file with the frequencies of a block of `len` postings, their offset in it, and their
    /// encoded bytes.
    fn encoded_frequencies<'b>(
        &'b mut self,
        field: &'b FieldReader,
        block: usize,
        len: usize,
    ) -> Result<(&'b str, u64, &'b [u8])> {
        match self {
            Blocks::Inline(list) => {
                let (name, codec) = (field.skips_file().name(), field.field().doc_codec);
                let skipped = codec.encoded_len(&list.encoded, len);
                let skipped = skipped.map_err(|error| decode_error(name, list.offset, codec, error))?;
                Ok((name, list.offset + skipped as u64, &list.encoded[skipped..]))
            }
            Blocks::Listed(list) => {
                let (bytes, at) = list.bytes(field.postings_file(), ListPart::Freqs, block)?;
                Ok((field.postings_file().name(), at, bytes))
            }
        }
    }

    /// Byte range of the positions of a block. The field has positions.
    pub(super) fn positions_range(&self, block: usize) -> Result<Range<u64>> {
        match self {
            Blocks::Inline(list) => Ok(list.positions.clone().expect("the field keeps positions")),
            Blocks::Listed(list) => list.list.range(ListPart::Positions, block),
        }
    }

    fn corrupt(&self, field: &FieldReader, part: ListPart, block: usize, what: &str) -> Error {
        let (file, at) = match self {
            Blocks::Inline(list) => (field.skips_file(), list.offset),
            Blocks::Listed(list) => {
                (field.postings_file(), list.list.range(part, block).map_or(0, |range| range.start))
            }
        };
        Error::corrupt(file.name(), at, what)
    }
}

/// Checks that a block was decoded, and that it `used` all its bytes.
fn check_decoded(
    file: &str,
    at: u64,
    codec: Codec,
    bytes: &[u8],
    used: std::result::Result<usize, DecodeError>,
) -> Result<()> {
    let used = used.map_err(|error| decode_error(file, at, codec, error))?;
    if used == bytes.len() {
        Ok(())
    } else {
        Err(Error::corrupt(file, at + used as u64, "bytes follow a block"))
    }
}
