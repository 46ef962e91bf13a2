//! Random access to the decoded blocks of one list.

use super::trace::{BlockCounts, DOCUMENTS, FREQUENCIES, PRUNED, Trace};
use super::{blocks::Blocks, positions::PositionsReader};
use crate::segment::read::{BlockList, BlockSource, FieldReader, ListPart, RecordPart, TermInfo};
use crate::{Result, limits::BLOCK};
use tierdex_codec::{BitmapView, Intersection, intersect};

/// Decodes blocks of a list in any order; one decoded block is retained.
pub struct ScatteredBlocks<'a> {
    field: &'a FieldReader,
    blocks: Blocks<'a>,
    prefetches: bool,
    decoded: Box<DecodedBlock>,
    /// Documents and frequencies that were used where they are in memory last, each with its block.
    documents_in_place: (usize, &'a [u32]),
    frequencies_in_place: (usize, &'a [u32]),
    /// Whether documents, and documents and frequencies, may be used in place.
    in_place: (bool, bool),
    trace: Trace,
}

/// Buffers of a decoded block, reused from list to list.
pub struct DecodedBlock {
    documents: DecodedPart,
    frequencies: DecodedPart,
}

/// The decoded documents or frequencies of a block. The values start at a cache line: vector loads then do
/// not cross two.
#[repr(C, align(64))]
struct DecodedPart {
    values: [u32; BLOCK],
    block: usize,
    len: usize,
}

impl DecodedPart {
    const NONE: DecodedPart = DecodedPart { block: usize::MAX, len: 0, values: [0; BLOCK] };

    fn values(&self) -> &[u32] {
        &self.values[..self.len]
    }
}

impl Default for DecodedBlock {
    fn default() -> DecodedBlock {
        DecodedBlock { documents: DecodedPart::NONE, frequencies: DecodedPart::NONE }
    }
}

impl<'a> ScatteredBlocks<'a> {
    /// Opens the list of `term`. Bytes that are not resident are read from `source`; of the skip record only
    /// this part.
    pub fn open(
        field: &'a FieldReader,
        term: &TermInfo,
        part: RecordPart,
        source: &'a dyn BlockSource,
        mut decoded: Box<DecodedBlock>,
    ) -> Result<ScatteredBlocks<'a>> {
        let blocks = Blocks::in_any_order(field.record(term, source, part)?, source);
        (decoded.documents.block, decoded.frequencies.block) = (usize::MAX, usize::MAX);
        let prefetches =
            source.prefetches() && blocks.skips().is_some() && field.postings().resident().is_none();
        let (none, schema) = ((usize::MAX, &[][..]), field.field());
        let documents = schema.doc_codec.is_uncompressed() && field.is_verified();
        Ok(ScatteredBlocks {
            field,
            blocks,
            prefetches,
            decoded,
            documents_in_place: none,
            frequencies_in_place: none,
            in_place: (documents, documents && schema.freq_codec.is_uncompressed()),
            trace: Trace::default(),
        })
    }

    /// Closes the list and returns the buffers for reuse.
    pub fn close(self) -> Box<DecodedBlock> {
        self.decoded
    }

    /// The list's field.
    pub fn field(&self) -> &'a FieldReader {
        self.field
    }

    /// Starts to record which blocks are decoded or pruned.
    pub fn trace(&mut self) {
        self.trace.start(self.blocks.len());
    }

    /// Whether [`ScatteredBlocks::trace`] was called.
    pub fn is_traced(&self) -> bool {
        self.trace.is_on()
    }

    /// Records that a block was pruned by its block max score.
    #[inline]
    pub fn mark_pruned(&mut self, block: usize) {
        self.trace.mark(block, PRUNED);
    }

    /// Number of decoded and pruned blocks since [`ScatteredBlocks::trace`].
    pub fn traced(&self) -> BlockCounts {
        self.trace.sum(&self.blocks)
    }

    /// Whether blocks are read from a source that prefetches.
    #[inline]
    pub fn prefetches(&self) -> bool {
        self.prefetches
    }

    /// Prefetches the documents of a block, and its frequencies if `frequencies`. False if the prefetch
    /// limit of the source is reached.
    pub fn prefetch(&mut self, block: usize, frequencies: bool) -> Result<bool> {
        if self.prefetches && self.decoded.documents.block != block {
            return match frequencies {
                true => self.blocks.prefetch_both(self.field, block),
                false => self.blocks.prefetch(self.field, ListPart::Docs, block),
            };
        }
        Ok(true)
    }

    /// Prefetches the frequencies of a block.
    pub fn prefetch_frequencies(&mut self, block: usize) -> Result<bool> {
        match self.prefetches && self.decoded.frequencies.block != block {
            true => self.blocks.prefetch(self.field, ListPart::Freqs, block),
            false => Ok(true),
        }
    }

    /// Prefetches the positions of a block for `reader`.
    pub fn prefetch_positions(&mut self, block: usize, reader: &PositionsReader<'_>) -> Result<bool> {
        if self.prefetches && reader.block() != block {
            return Ok(reader.prefetch(self.blocks.positions_range(block)?));
        }
        Ok(true)
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// The skip data; `None` for an inline list.
    pub fn skips(&self) -> Option<&BlockList<'a>> {
        self.blocks.skips()
    }

    /// Whether entries of superblocks in the skip data may not have been read.
    pub fn has_unread_entries(&self) -> bool {
        self.skips().is_some_and(BlockList::has_unread_entries)
    }

    /// Reads the entries of these superblocks, in order, unless they have been read.
    pub fn read_entries(&mut self, superblocks: &[usize]) -> Result<()> {
        self.blocks.read_entries(self.field, superblocks)
    }

    /// The first block from `from` on that can contain `document` or a later one; [`ScatteredBlocks::len`]
    /// if there is none.
    pub fn find(&self, from: usize, document: u32) -> usize {
        self.blocks.find(from, document)
    }

    /// As [`ScatteredBlocks::find`], from the first block on if `from` starts after `document`.
    #[inline]
    pub fn seek(&self, from: usize, document: u32) -> usize {
        self.skips().map_or(from, |list| list.seek(from, document))
    }

    /// Upper bound of the documents of a block: its last document, or `u32::MAX` for an inline list.
    pub fn last(&self, block: usize) -> u32 {
        self.skips().map_or(u32::MAX, |list| list.last(block))
    }

    /// Lower bound of the documents of a block.
    pub fn first(&self, block: usize) -> u32 {
        self.blocks.before(block).wrapping_add(1)
    }

    /// Reads a block whose frequencies will be requested before its documents, so that one read serves both.
    pub fn load(&mut self, block: usize) -> Result<()> {
        self.blocks.load(self.field, block)
    }

    /// Documents of a block.
    pub fn documents(&mut self, block: usize) -> Result<&[u32]> {
        self.find_documents(block)?;
        Ok(self.found_documents(block))
    }

    /// Frequencies of a block.
    pub fn frequencies(&mut self, block: usize) -> Result<&[u32]> {
        self.find_frequencies(block)?;
        Ok(self.found_frequencies(block))
    }

    /// Documents and frequencies of a block.
    pub fn read(&mut self, block: usize) -> Result<(&[u32], &[u32])> {
        self.find_documents(block)?;
        self.find_frequencies(block)?;
        Ok((self.found_documents(block), self.found_frequencies(block)))
    }

    /// A bitmap view of the documents of a block, if it is encoded as a bitmap and has not been decoded.
    pub fn bitmap(&mut self, block: usize) -> Result<Option<BitmapView<'_>>> {
        if self.decoded.documents.block == block {
            return Ok(None);
        }
        let bitmap = self.blocks.bitmap(self.field, block)?;
        if bitmap.is_some() {
            self.trace.mark(block, DOCUMENTS);
        }
        Ok(bitmap)
    }

    /// The same with the frequencies of the block.
    pub fn bitmap_and_frequencies(&mut self, block: usize) -> Result<Option<(BitmapView<'_>, &[u32])>> {
        if self.decoded.documents.block == block {
            return Ok(None);
        }
        self.load(block)?;
        self.find_frequencies(block)?;
        let bitmap = self.blocks.bitmap(self.field, block)?;
        if bitmap.is_some() {
            self.trace.mark(block, DOCUMENTS);
        }
        let frequencies = match self.in_place.1 && self.frequencies_in_place.0 == block {
            true => self.frequencies_in_place.1,
            false => self.decoded.frequencies.values(),
        };
        Ok(bitmap.map(|bitmap| (bitmap, frequencies)))
    }

    /// Intersects at most 256 ascending `documents` with a block.
    pub fn find_in(&mut self, block: usize, documents: &[u32], shared: &mut Intersection) -> Result<()> {
        match self.bitmap(block)? {
            Some(bitmap) => bitmap.find(documents, shared),
            None => intersect(documents, self.documents(block)?, shared),
        }
        Ok(())
    }

    /// Moves the reader of the positions of this list to a block; `next` returns the block after that, to
    /// prefetch.
    pub fn positions(
        &mut self,
        block: usize,
        reader: &mut PositionsReader<'_>,
        next: impl FnOnce() -> Option<u32>,
    ) -> Result<()> {
        if reader.block() == block {
            return Ok(());
        }
        reader.move_to(&mut self.blocks, block)?;
        self.trace.mark(block, FREQUENCIES);
        match next() {
            Some(next) => reader.load_lines(&mut self.blocks, next as usize),
            None => Ok(()),
        }
    }

    /// Documents of a block that were found.
    #[inline(always)]
    fn found_documents(&self, block: usize) -> &[u32] {
        match self.in_place.0 && self.documents_in_place.0 == block {
            true => self.documents_in_place.1,
            false => self.decoded.documents.values(),
        }
    }

    /// Frequencies of a block that were found.
    #[inline(always)]
    fn found_frequencies(&self, block: usize) -> &[u32] {
        match self.in_place.1 && self.frequencies_in_place.0 == block {
            true => self.frequencies_in_place.1,
            false => self.decoded.frequencies.values(),
        }
    }

    /// Finds the documents of a block in memory, or decodes them.
    #[inline(always)]
    fn find_documents(&mut self, block: usize) -> Result<()> {
        if self.in_place.0 && self.find_documents_in_place(block)? {
            return Ok(());
        }
        self.decode_documents(block)
    }

    /// Finds the frequencies of a block in memory, or decodes them.
    #[inline(always)]
    fn find_frequencies(&mut self, block: usize) -> Result<()> {
        if self.in_place.1 && self.find_frequencies_in_place(block)? {
            return Ok(());
        }
        self.decode_frequencies(block)
    }

    /// False if the documents of a block are not aligned, or are part of the skip data.
    fn find_documents_in_place(&mut self, block: usize) -> Result<bool> {
        if self.documents_in_place.0 == block {
            return Ok(true);
        }
        let values = self.blocks.values_in_place(self.field, ListPart::Docs, block)?;
        let Some(documents) = values else { return Ok(false) };
        self.documents_in_place = (block, documents);
        self.trace.mark(block, DOCUMENTS);
        Ok(true)
    }

    /// The same of its frequencies.
    fn find_frequencies_in_place(&mut self, block: usize) -> Result<bool> {
        if self.frequencies_in_place.0 == block {
            return Ok(true);
        }
        let values = self.blocks.values_in_place(self.field, ListPart::Freqs, block)?;
        let Some(frequencies) = values else { return Ok(false) };
        self.frequencies_in_place = (block, frequencies);
        self.trace.mark(block, FREQUENCIES);
        Ok(true)
    }

    #[inline]
    fn decode_documents(&mut self, block: usize) -> Result<()> {
        let part = &mut self.decoded.documents;
        if part.block != block {
            part.block = usize::MAX;
            part.len = self.blocks.documents(self.field, block, &mut part.values)?;
            part.block = block;
            self.trace.mark(block, DOCUMENTS);
        }
        Ok(())
    }

    fn decode_frequencies(&mut self, block: usize) -> Result<()> {
        let part = &mut self.decoded.frequencies;
        if part.block != block {
            part.block = usize::MAX;
            part.len = self.blocks.block_len(block);
            self.blocks.frequencies(self.field, block, &mut part.values[..part.len])?;
            part.block = block;
            self.trace.mark(block, FREQUENCIES);
        }
        Ok(())
    }
}
