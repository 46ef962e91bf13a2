//! Reads and decodes the blocks of one list, stored inline in its skip record or in files. Every block is
//! checked against the skip data.

use super::error::decode_error;
use crate::limits::{BLOCK, FIELD_TOKENS_MAX, SUPERBLOCK};
use crate::segment::read::{
    BUFFER_MIN, BlockList, BlockSource, FieldReader, InlineList, ListPart, SkipRecord,
};
use crate::{Error, Result};
use std::{ops::Range, sync::Arc};
use tierdex_codec::{BitmapView, Codec, DecodeError, add_one, is_increasing, prefetch};
use tierdex_io::{PAGE, SealedFile};

/// Maximum blocks per read, so that a long list is never buffered whole.
const BLOCKS_READ_MAX: usize = 128;

/// Maximum bytes of an encoded block of documents or frequencies, or of a piece of positions.
pub const BLOCK_BYTES_MAX: usize = 5 * BLOCK + 8;

const _: () = assert!(BLOCK_BYTES_MAX <= BUFFER_MIN / 2);

/// Memory of an open list in bytes, beside its record, its read buffers and its decoded blocks.
pub const LIST_BYTES: usize = size_of::<BlockList<'_>>();

/// Maximum read buffers of a list that is read in order, in bytes.
pub const IN_ORDER_BYTES: usize = 2 * BLOCKS_READ_MAX * BLOCK_BYTES_MAX;

/// The blocks of one list.
pub(super) enum Blocks<'a> {
    Inline(InlineList<'a>),
    Listed(ListedBlocks<'a>),
}

/// The blocks of a list in `postings`, and read buffers.
pub(super) struct ListedBlocks<'a> {
    list: Box<BlockList<'a>>,
    source: &'a dyn BlockSource,
    source_lends: bool,
    /// Documents. Frequencies that follow the documents of their block are read into the same buffer.
    docs: PartBuffer,
    freqs: PartBuffer,
    /// The superblock used last, and whether it is interleaved.
    interleaved: (usize, bool),
}

/// Read buffer of a part of a list.
struct PartBuffer {
    part: ListPart,
    /// The block requested last, and its byte range.
    last: Option<(usize, Range<u64>)>,
    /// Blocks of the next read: doubled with each sequential read.
    ahead: usize,
    /// Blocks of the first read after a seek.
    min_ahead: usize,
    /// The block after those of the last read.
    next: usize,
    /// Offset of the bytes in the file.
    start: u64,
    bytes: Vec<u8>,
}

impl PartBuffer {
    fn new(part: ListPart, ahead: usize) -> PartBuffer {
        PartBuffer { part, last: None, ahead, min_ahead: ahead, next: 0, start: 0, bytes: Vec::new() }
    }

    /// Byte range of a block in the file: derived from the last range if that was of the same block or of
    /// the previous one in the superblock, else from the skip data.
    fn range(&mut self, list: &BlockList, interleaved: bool, block: usize) -> Result<Range<u64>> {
        let range = match &self.last {
            Some((last, range)) if *last == block => return Ok(range.clone()),
            Some((last, range)) if last + 1 == block && !block.is_multiple_of(SUPERBLOCK) => {
                list.range_after(self.part, interleaved, block, range)
            }
            _ => list.range_of(self.part, interleaved, block)?,
        };
        self.last = Some((block, range.clone()));
        Ok(range)
    }

    fn get(&self, range: &Range<u64>) -> Option<&[u8]> {
        piece(&self.bytes, self.start, range)
    }

    /// Reads a range that belongs to `block`, and the next blocks if the source reads ahead.
    fn fill(
        &mut self,
        list: &BlockList,
        file: &Arc<SealedFile>,
        source: &dyn BlockSource,
        block: usize,
        mut range: Range<u64>,
    ) -> Result<()> {
        let (start, read_ahead) = (range.start, source.read_ahead() as u64);
        if read_ahead > 0 {
            let is_sequential = block == self.next && block > 0;
            self.ahead = if is_sequential {
                (2 * self.ahead).min(BLOCKS_READ_MAX)
            } else {
                self.ahead.min(self.min_ahead)
            };
            let mut end = (block + self.ahead).min(list.blocks());
            let most = start / PAGE * PAGE + read_ahead;
            loop {
                let read_to = self.end(list, end - 1)?;
                if end == block + 1 || read_to <= most {
                    range.end = read_to.max(range.end);
                    break;
                }
                end = block + (end - block) / 2;
            }
            self.next = end;
        }
        // The rest of the last page is read anyway. It is copied if the last read was of this page or of
        // the page before: then the next blocks are probably requested too.
        let end = self.start + self.bytes.len() as u64;
        if read_ahead > 0 || source.copies_pages() && (self.start..end + PAGE).contains(&start) {
            range.end = range.end.next_multiple_of(PAGE).min(list.whole().end.max(range.end));
        }
        self.bytes.clear();
        source.read(file, range, &mut self.bytes)?;
        self.start = start;
        Ok(())
    }

    /// End of what is read for a block: of its frequencies if they follow its documents.
    fn end(&self, list: &BlockList, block: usize) -> Result<u64> {
        let part = if list.is_interleaved(block / SUPERBLOCK) { ListPart::Freqs } else { self.part };
        Ok(list.range(part, block)?.end)
    }
}

impl<'a> ListedBlocks<'a> {
    /// Whether documents and frequencies of a block are neighbours.
    #[inline]
    fn is_interleaved(&mut self, block: usize) -> bool {
        let superblock = block / SUPERBLOCK;
        if self.interleaved.0 != superblock {
            self.interleaved = (superblock, self.list.is_interleaved(superblock));
        }
        self.interleaved.1
    }

    fn part(&mut self, part: ListPart) -> &mut PartBuffer {
        if part == ListPart::Docs { &mut self.docs } else { &mut self.freqs }
    }

    fn range(&mut self, part: ListPart, block: usize) -> Result<Range<u64>> {
        let interleaved = self.is_interleaved(block);
        let ListedBlocks { list, docs, freqs, .. } = self;
        let buffer = if part == ListPart::Docs { docs } else { freqs };
        buffer.range(list, interleaved, block)
    }

    /// Byte range of documents and frequencies of a block that are neighbours.
    fn whole_range(&mut self, block: usize) -> Result<Range<u64>> {
        Ok(self.range(ListPart::Docs, block)?.start..self.range(ListPart::Freqs, block)?.end)
    }

    /// The buffer of a part of a block.
    fn buffer(&mut self, part: ListPart, block: usize) -> &mut PartBuffer {
        let part = if self.is_interleaved(block) { ListPart::Docs } else { part };
        self.part(part)
    }

    /// Bytes of a part of a block and their offset in the file, from the buffer or read into it.
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
        self.load(file, part, block, range.clone())?;
        let bytes = self.buffer(part, block).get(&range);
        Ok((bytes.expect("the range was read"), range.start))
    }

    /// Bytes of a part of a block where they are in memory, and their offset in the file, if the file is
    /// resident or the source lends them.
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
        let bytes = piece(payload, file.payload().start, &range);
        let bytes = bytes.ok_or_else(|| self.list.corrupt("a block lies outside its file"))?;
        Ok(Some((bytes, range.start)))
    }

    /// Reads a range of a block into the buffer of `part`, unless the buffer contains it.
    fn load(
        &mut self,
        file: &Arc<SealedFile>,
        part: ListPart,
        block: usize,
        range: Range<u64>,
    ) -> Result<()> {
        let is_docs = part == ListPart::Docs || self.is_interleaved(block);
        let ListedBlocks { list, source, docs, freqs, .. } = self;
        let buffer = if is_docs { docs } else { freqs };
        if buffer.get(&range).is_some() {
            return Ok(());
        }
        buffer.fill(list, file, *source, block, range)
    }

    /// Prefetches a range of a block. False if the prefetch limit of the source is reached.
    fn prefetch(&mut self, file: &Arc<SealedFile>, part: ListPart, block: usize, range: Range<u64>) -> bool {
        self.buffer(part, block).get(&range).is_some() || self.source.prefetch(file, range)
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
            SkipRecord::Blocks(list) => Blocks::Listed(ListedBlocks {
                list,
                source,
                source_lends: source.lends(),
                docs: PartBuffer::new(ListPart::Docs, ahead),
                freqs: PartBuffer::new(ListPart::Freqs, ahead),
                interleaved: (usize::MAX, false),
            }),
        }
    }

    /// Prefetches documents or frequencies of a block. False if the prefetch limit of the source is reached.
    pub(super) fn prefetch(&mut self, field: &FieldReader, part: ListPart, block: usize) -> Result<bool> {
        let Blocks::Listed(list) = self else { return Ok(true) };
        let range = list.range(part, block)?;
        Ok(list.prefetch(field.postings(), part, block, range))
    }

    /// Prefetches documents and frequencies of a block. False if the prefetch limit of the source is reached.
    pub(super) fn prefetch_both(&mut self, field: &FieldReader, block: usize) -> Result<bool> {
        if let Blocks::Listed(list) = self
            && list.is_interleaved(block)
        {
            let range = list.whole_range(block)?;
            return Ok(list.prefetch(field.postings(), ListPart::Docs, block, range));
        }
        Ok(self.prefetch(field, ListPart::Docs, block)? && self.prefetch(field, ListPart::Freqs, block)?)
    }

    /// Buffers a block whose frequencies will be requested before its documents, so that one read serves
    /// both.
    pub(super) fn load(&mut self, field: &FieldReader, block: usize) -> Result<()> {
        if let Blocks::Listed(list) = self
            && field.postings().resident().is_none()
            && list.is_interleaved(block)
        {
            let range = list.whole_range(block)?;
            if !list.source_lends || list.source.lend(field.postings(), &range)?.is_none() {
                list.load(field.postings(), ListPart::Docs, block, range)?;
            }
        }
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Blocks::Inline(_) => 1,
            Blocks::Listed(list) => list.list.blocks(),
        }
    }

    /// Number of postings in a block.
    pub(super) fn block_len(&self, block: usize) -> usize {
        match self {
            Blocks::Inline(list) => list.documents as usize,
            Blocks::Listed(list) => list.list.block_len(block),
        }
    }

    pub(super) fn skips(&self) -> Option<&BlockList<'a>> {
        match self {
            Blocks::Inline(_) => None,
            Blocks::Listed(list) => Some(&list.list),
        }
    }

    /// Reads the entries of these superblocks, in order, unless they have been read.
    pub(super) fn read_entries(&mut self, field: &FieldReader, superblocks: &[usize]) -> Result<()> {
        match self {
            Blocks::Inline(_) => Ok(()),
            Blocks::Listed(list) => field.read_entries(&mut list.list, superblocks, list.source),
        }
    }

    /// The first block from `from` on that can contain `document` or a later one.
    pub(super) fn find(&self, from: usize, document: u32) -> usize {
        match self {
            Blocks::Inline(_) => from,
            Blocks::Listed(list) => list.list.find_block(from, document),
        }
    }

    /// Last document before a block; `u32::MAX` if there is none.
    pub(super) fn before(&self, block: usize) -> u32 {
        match self {
            Blocks::Inline(_) => u32::MAX,
            Blocks::Listed(list) => list.list.before(block),
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
        let (len, last, narrow) = match self {
            Blocks::Inline(list) => {
                let len = list.documents as usize;
                let decoded = codec.decode(&list.postings, u32::MAX, &mut out[..len]);
                decoded.map_err(|e| decode_error(field.skips().name(), list.offset, codec, e))?;
                (len, None, codec.has_narrow_gaps(&list.postings))
            }
            Blocks::Listed(blocks) => {
                let list = &blocks.list;
                let (len, (before, last)) = (list.block_len(block), list.before_and_last(block));
                let (bytes, at) = blocks.bytes(field.postings(), ListPart::Docs, block)?;
                let used = codec.decode(bytes, before, &mut out[..len]);
                check_decoded(field.postings().name(), at, codec, bytes, used)?;
                (len, Some(last), codec.has_narrow_gaps(bytes))
            }
        };
        self.check_documents(field, block, &out[..len], narrow, last)?;
        Ok(len)
    }

    /// The documents or frequencies of a block where they are in memory, prefetched into the CPU cache, if
    /// the field is verified and the block is not compressed. Without the prefetch conjunctions are slower by
    /// a tenth.
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
        let Some((bytes, _)) = blocks.bytes_in_place(field.postings(), part, block)? else { return Ok(None) };
        let values = codec.values_in_place(bytes, len);
        if values.is_some() {
            prefetch(bytes);
        }
        Ok(values)
    }

    /// Checks that the documents of a block increase, which is known if gaps are `narrow`, that they are
    /// after those of the previous block, and that the last one is `last`, if given, and in the segment.
    fn check_documents(
        &self,
        field: &FieldReader,
        block: usize,
        documents: &[u32],
        narrow: bool,
        last: Option<u32>,
    ) -> Result<()> {
        let end = documents[documents.len() - 1];
        let floor = self.before(block);
        let is_above = |document| floor == u32::MAX || floor < document;
        let rise = if narrow { is_above(end) } else { is_increasing(documents) && is_above(documents[0]) };
        if !rise || end >= field.documents() || last.is_some_and(|last| last != end) {
            let what = "documents of a block do not fit its skip data";
            return Err(self.corrupt(field, ListPart::Docs, block, what));
        }
        Ok(())
    }

    /// A view of the block as a bitmap, if it is one, with the checks of [`Blocks::documents`]. A block of
    /// 256 consecutive documents is recognized from the skip data alone.
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
        let (bytes, at) = blocks.bytes(field.postings(), ListPart::Docs, block)?;
        let name = field.postings().name();
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
        let is_possible = match codec.is_uncompressed() {
            true => out.iter().all(|frequency| (1..FIELD_TOKENS_MAX).contains(frequency)),
            false => add_one(out) < FIELD_TOKENS_MAX,
        };
        if !is_possible {
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
    pub(super) fn load_frequency_lines(&mut self, field: &FieldReader, block: usize) -> Result<()> {
        match self {
            Blocks::Inline(_) => Ok(()),
            Blocks::Listed(list) => {
                let (range, file) = (list.range(ListPart::Freqs, block)?, field.postings());
                prefetch(file.resident_range(range.start, range_len(&range)).unwrap_or(&[]));
                Ok(())
            }
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
            Blocks::Listed(list) => {
                let (bytes, at) = list.bytes(field.postings(), ListPart::Freqs, block)?;
                Ok((field.postings().name(), at, bytes))
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
            Blocks::Inline(list) => (field.skips(), list.offset),
            Blocks::Listed(list) => {
                (field.postings(), list.list.range(part, block).map_or(0, |range| range.start))
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
