//! Reads and decodes the blocks of one list, stored inline in its skip record or in files. Every block is
//! checked against the skip data.

use super::error::decode_error;
use crate::error::{Error, Result};
use crate::limits::{BLOCK, FIELD_TOKENS_MAX, SUPERBLOCK};
use crate::segment::read::{
    BUFFER_MIN, BlockList, BlockSource, FieldReader, InlineList, ListPart, SkipRecord,
};
use std::ops::Range;
use std::sync::Arc;
use tierdex_codec::{BitmapView, Codec, DecodeError, add_one, is_increasing, prefetch};
use tierdex_io::{PAGE, SealedFile};

/// Maximum blocks per read, so that a long list is never buffered whole.
const BLOCKS_READ_MAX: usize = 128;

/// Maximum bytes of an encoded block of documents or frequencies, or of a piece of positions.
pub(super) const BLOCK_BYTES_MAX: usize = 5 * BLOCK + 8;

const _: () = assert!(BLOCK_BYTES_MAX <= BUFFER_MIN / 2);

/// Maximum memory of an open list in bytes, beside its record, its read buffers and its decoded blocks.
pub const LIST_BYTES: usize = size_of::<BlockList<'_>>() + 2 * BLOCK_BYTES_MAX;

/// Maximum read buffers of a list that is read in order, in bytes.
pub const IN_ORDER_BYTES: usize = 2 * BLOCKS_READ_MAX * BLOCK_BYTES_MAX;

/// The blocks of one list.
pub(super) enum Blocks<'a> {
    Inline(InlineList<'a>),
    Listed { list: Box<BlockList<'a>>, docs: ReadBuffer<'a>, freqs: ReadBuffer<'a> },
}

/// Read buffer: adjacent encoded blocks of one part of a list.
pub(super) struct ReadBuffer<'a> {
    part: ListPart,
    source: &'a dyn BlockSource,
    /// Blocks of the next read: doubled with each sequential read.
    ahead: usize,
    /// Blocks of the first read after a seek.
    min_ahead: usize,
    blocks: Range<usize>,
    start: u64,
    /// The block requested last, and its byte range.
    last: Option<(usize, Range<u64>)>,
    bytes: Vec<u8>,
}

impl<'a> ReadBuffer<'a> {
    fn new(part: ListPart, ahead: usize, source: &'a dyn BlockSource) -> ReadBuffer<'a> {
        ReadBuffer {
            part,
            source,
            ahead,
            min_ahead: ahead,
            blocks: 0..0,
            start: 0,
            last: None,
            bytes: Vec::new(),
        }
    }

    /// Byte range of a block in the file: derived from the last range if that was of the same block or of
    /// the previous one in the superblock, else from the skip data.
    fn range(&mut self, list: &BlockList, block: usize) -> Result<Range<u64>> {
        let range = match &self.last {
            Some((last, range)) if *last == block => range.clone(),
            Some((last, range)) if last + 1 == block && !block.is_multiple_of(SUPERBLOCK) => {
                range.end..range.end.saturating_add(list.len(self.part, block))
            }
            _ => list.range(self.part, block)?,
        };
        self.last = Some((block, range.clone()));
        Ok(range)
    }

    /// Prefetches the beginning of a resident block into the CPU cache.
    fn load_lines(&mut self, list: &BlockList, file: &SealedFile, block: usize) -> Result<()> {
        let range = self.range(list, block)?;
        prefetch(file.resident_range(range.start, range_len(&range)).unwrap_or(&[]));
        Ok(())
    }

    /// Bytes of a block and their offset in the file. If the block is not buffered, reads it and the next
    /// blocks.
    fn block<'b>(
        &'b mut self,
        list: &BlockList,
        file: &'b Arc<SealedFile>,
        block: usize,
    ) -> Result<(&'b [u8], u64)> {
        let range = self.range(list, block)?;
        if let Some(payload) = file.resident() {
            let bytes = piece(payload, file.payload().start, &range);
            return Ok((bytes.ok_or_else(|| list.corrupt("a block lies outside its file"))?, range.start));
        }
        if !self.blocks.contains(&block) {
            self.fill(list, file, block, range.clone())?;
        }
        let bytes = piece(&self.bytes, self.start, &range);
        Ok((bytes.ok_or_else(|| list.corrupt("blocks do not follow one another"))?, range.start))
    }

    /// Reads a block, and the next blocks if the source reads ahead.
    fn fill(
        &mut self,
        list: &BlockList,
        file: &Arc<SealedFile>,
        block: usize,
        mut range: Range<u64>,
    ) -> Result<()> {
        let mut end = block + 1;
        let (start, read_ahead) = (range.start, self.source.read_ahead() as u64);
        if read_ahead > 0 {
            let is_sequential = block == self.blocks.end && block > 0;
            self.ahead = if is_sequential {
                (2 * self.ahead).min(BLOCKS_READ_MAX)
            } else {
                self.ahead.min(self.min_ahead)
            };
            end = (block + self.ahead).min(list.blocks());
            range.end = list.range(self.part, end - 1)?.end;
            let most = start / PAGE * PAGE + read_ahead;
            while range.end > most && end > block + 1 {
                end = block + (end - block) / 2;
                range.end = list.range(self.part, end - 1)?.end;
            }
        }
        // Extend the read by the blocks that end in the same page.
        let page_end = range.end.next_multiple_of(PAGE);
        while end < list.blocks() && range.end + list.len(self.part, end) <= page_end {
            range.end += list.len(self.part, end);
            end += 1;
        }
        self.blocks = 0..0;
        self.source.read(file, range, &mut self.bytes)?;
        (self.blocks, self.start) = (block..end, start);
        Ok(())
    }

    /// Prefetches a block. False if the prefetch limit of the source is reached.
    fn prefetch(&mut self, list: &BlockList, file: &Arc<SealedFile>, block: usize) -> Result<bool> {
        let is_buffered = file.resident().is_some() || self.blocks.contains(&block);
        Ok(is_buffered || self.source.prefetch(file, self.range(list, block)?))
    }
}

impl<'a> Blocks<'a> {
    /// For sequential access.
    pub(super) fn in_order(record: SkipRecord<'a>, source: &'a dyn BlockSource) -> Blocks<'a> {
        Blocks::new(record, BLOCKS_READ_MAX, source)
    }

    /// For random access.
    pub(super) fn in_any_order(record: SkipRecord<'a>, source: &'a dyn BlockSource) -> Blocks<'a> {
        Blocks::new(record, 1, source)
    }

    fn new(record: SkipRecord<'a>, ahead: usize, source: &'a dyn BlockSource) -> Blocks<'a> {
        match record {
            SkipRecord::Inline(list) => Blocks::Inline(list),
            SkipRecord::Blocks(list) => {
                let docs = ReadBuffer::new(ListPart::Docs, ahead, source);
                let freqs = ReadBuffer::new(ListPart::Freqs, ahead, source);
                Blocks::Listed { list, docs, freqs }
            }
        }
    }

    /// Prefetches a block of documents or frequencies. False if the prefetch limit of the source is reached.
    pub(super) fn prefetch(&mut self, field: &FieldReader, part: ListPart, block: usize) -> Result<bool> {
        match self {
            Blocks::Listed { list, docs, .. } if part == ListPart::Docs => {
                docs.prefetch(list, field.docs(), block)
            }
            Blocks::Listed { list, freqs, .. } => freqs.prefetch(list, field.freqs(), block),
            Blocks::Inline(_) => Ok(true),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Blocks::Inline(_) => 1,
            Blocks::Listed { list, .. } => list.blocks(),
        }
    }

    /// Number of postings in a block.
    pub(super) fn block_len(&self, block: usize) -> usize {
        match self {
            Blocks::Inline(list) => list.documents as usize,
            Blocks::Listed { list, .. } => list.block_len(block),
        }
    }

    pub(super) fn skips(&self) -> Option<&BlockList<'a>> {
        match self {
            Blocks::Inline(_) => None,
            Blocks::Listed { list, .. } => Some(list),
        }
    }

    /// The first block from `from` on that can contain `document` or a later one.
    pub(super) fn find(&self, from: usize, document: u32) -> usize {
        match self {
            Blocks::Inline(_) => from,
            Blocks::Listed { list, .. } => list.find_block(from, document),
        }
    }

    /// Last document before a block; `u32::MAX` if there is none.
    pub(super) fn before(&self, block: usize) -> u32 {
        match self {
            Blocks::Inline(_) => u32::MAX,
            Blocks::Listed { list, .. } => list.before(block),
        }
    }

    /// Decodes the documents of a block. Checks that they increase, that the last one equals that in the
    /// skip data, and that all are less than the number of documents in the segment.
    pub(super) fn documents(
        &mut self,
        field: &FieldReader,
        block: usize,
        out: &mut [u32; BLOCK],
    ) -> Result<usize> {
        let codec = field.field().doc_codec;
        let (len, last) = match self {
            Blocks::Inline(list) => {
                let len = list.documents as usize;
                let decoded = codec.decode(&list.postings, u32::MAX, &mut out[..len]);
                decoded.map_err(|e| decode_error(field.skips().name(), list.offset, codec, e))?;
                (len, None)
            }
            Blocks::Listed { list, docs, .. } => {
                let (bytes, at) = docs.block(list, field.docs(), block)?;
                let len = list.block_len(block);
                let used = codec.decode(bytes, list.before(block), &mut out[..len]);
                check_decoded(field.docs().name(), at, codec, bytes, used)?;
                (len, Some(list.last(block)))
            }
        };
        let documents = &out[..len];
        let end = documents[len - 1];
        let floor = self.before(block);
        let rise = is_increasing(documents) && (floor == u32::MAX || floor < documents[0]);
        if !rise || end >= field.documents() || last.is_some_and(|last| last != end) {
            return Err(self.corrupt(
                field,
                ListPart::Docs,
                block,
                "documents of a block do not fit its skip data",
            ));
        }
        Ok(len)
    }

    /// A view of the block as a bitmap, if it is one, with the checks of [`Blocks::documents`]. A block of
    /// 256 consecutive documents is recognized from the skip data alone.
    pub(super) fn bitmap<'b>(
        &'b mut self,
        field: &'b FieldReader,
        block: usize,
    ) -> Result<Option<BitmapView<'b>>> {
        let codec = field.field().doc_codec;
        let Blocks::Listed { list, docs, .. } = self else { return Ok(None) };
        let (before, last, len) = (list.before(block), list.last(block), list.block_len(block));
        if len == BLOCK && last.wrapping_sub(before) as usize == BLOCK && last < field.documents() {
            return Ok(BitmapView::of_run(before));
        }
        if !codec.may_be_bitmap(last.wrapping_sub(before)) {
            return Ok(None);
        }
        let (bytes, at) = docs.block(list, field.docs(), block)?;
        let name = field.docs().name();
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
    pub(super) fn frequencies(&mut self, field: &FieldReader, block: usize, out: &mut [u32]) -> Result<()> {
        let codec = field.field().freq_codec;
        let (file, at, bytes) = self.encoded_frequencies(field, block, out.len())?;
        check_decoded(file, at, codec, bytes, codec.decode(bytes, 0, out))?;
        if add_one(out) >= FIELD_TOKENS_MAX {
            return Err(self.corrupt(field, ListPart::Freqs, block, "an impossible frequency"));
        }
        Ok(())
    }

    /// Prefix sums of the frequencies of a block, each sum including its posting.
    pub(super) fn frequency_sums(
        &mut self,
        field: &FieldReader,
        block: usize,
        out: &mut [u32],
    ) -> Result<()> {
        let codec = field.field().freq_codec;
        let (file, at, bytes) = self.encoded_frequencies(field, block, out.len())?;
        check_decoded(file, at, codec, bytes, codec.decode_sums(bytes, 0, out))?;
        if out[0] == 0 || !is_increasing(out) {
            return Err(self.corrupt(field, ListPart::Freqs, block, "frequencies of 2^32 and more together"));
        }
        Ok(())
    }

    /// Prefetches the beginning of a resident block of frequencies into the CPU cache.
    pub(super) fn load_frequency_lines(&mut self, field: &FieldReader, block: usize) -> Result<()> {
        match self {
            Blocks::Inline(_) => Ok(()),
            Blocks::Listed { list, freqs, .. } => freqs.load_lines(list, field.freqs(), block),
        }
    }

    /// The encoded frequencies of a block of `len` postings, with the name of their file and their offset in
    /// it.
    fn encoded_frequencies<'b>(
        &'b mut self,
        field: &'b FieldReader,
        block: usize,
        len: usize,
    ) -> Result<(&'b str, u64, &'b [u8])> {
        match self {
            Blocks::Inline(list) => {
                let (name, codec) = (field.skips().name(), field.field().doc_codec);
                let skipped = codec.encoded_len(&list.postings, len);
                let skipped = skipped.map_err(|error| decode_error(name, list.offset, codec, error))?;
                Ok((name, list.offset + skipped as u64, &list.postings[skipped..]))
            }
            Blocks::Listed { list, freqs, .. } => {
                let (bytes, at) = freqs.block(list, field.freqs(), block)?;
                Ok((field.freqs().name(), at, bytes))
            }
        }
    }

    /// Byte range of the positions of a block. The field has positions.
    pub(super) fn positions_range(&self, block: usize) -> Result<Range<u64>> {
        match self {
            Blocks::Inline(list) => Ok(list.positions.clone().expect("the field keeps positions")),
            Blocks::Listed { list, .. } => list.range(ListPart::Positions, block),
        }
    }

    fn corrupt(&self, field: &FieldReader, part: ListPart, block: usize, what: &str) -> Error {
        let (file, at) = match self {
            Blocks::Inline(list) => (field.skips(), list.offset),
            Blocks::Listed { list, .. } => {
                let file = if part == ListPart::Docs { field.docs() } else { field.freqs() };
                (file, list.range(part, block).map_or(0, |range| range.start))
            }
        };
        Error::corrupt(file.name(), at, what)
    }
}

/// Checks that decoding succeeded and consumed all bytes of the block.
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

fn piece<'a>(bytes: &'a [u8], start: u64, range: &Range<u64>) -> Option<&'a [u8]> {
    let from = usize::try_from(range.start.checked_sub(start)?).ok()?;
    let to = usize::try_from(range.end.checked_sub(start)?).ok()?;
    bytes.get(from..to)
}

fn range_len(range: &Range<u64>) -> usize {
    usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX)
}
