//! Random access to the blocks of one posting list.

use super::trace::{BLOCK_PRUNED, BlockCounts, DOCUMENTS_DECODED, FREQUENCIES_DECODED, Trace, pages_of};
use super::{blocks::Blocks, positions::PositionsReader};
use crate::segment::read::{BlockList, BlockSource, FieldReader, ListPart, RecordPart, TermInfo};
use crate::{Result, limits::BLOCK};
use std::ops::Range;
use tierdex_cache::{PlannedReads, ReadCosts};
use tierdex_codec::{BitmapView, Intersection, intersect};

/// Decodes blocks of a list in any order, and holds one decoded block. Arrays of two have an element for
/// documents and one for frequencies.
pub struct ScatteredBlocks<'a> {
    field: &'a FieldReader,
    blocks: Blocks<'a>,
    prefetches: bool,
    decoded: Box<DecodedBlock>,
    /// Whether values may be used where they are in memory, without a copy: they are not compressed, and the
    /// field was verified.
    may_be_in_place: [bool; 2],
    /// The block whose values were last used in place, and these values.
    in_place: [(usize, &'a [u32]); 2],
    trace: Trace,
}

/// Indexes of documents and of frequencies in arrays of two.
const DOCS: usize = ListPart::Docs as usize;
const FREQS: usize = ListPart::Freqs as usize;

/// The flag of each part in a [`Trace`].
const TRACE_FLAGS: [u8; 2] = [DOCUMENTS_DECODED, FREQUENCIES_DECODED];

/// Buffers of a decoded block, which one list after the other uses.
#[derive(Default)]
pub struct DecodedBlock {
    parts: [DecodedPart; 2],
}

/// The decoded documents or frequencies of a block. The values start at a cache line, so that no vector load
/// crosses two.
#[repr(C, align(64))]
struct DecodedPart {
    values: [u32; BLOCK],
    block: usize,
    len: usize,
}

impl Default for DecodedPart {
    fn default() -> DecodedPart {
        DecodedPart { block: usize::MAX, len: 0, values: [0; BLOCK] }
    }
}

impl<'a> ScatteredBlocks<'a> {
    /// Opens the list of `term`. Bytes that are not resident are read from `source`; of the skip record only
    /// `part` is read.
    pub fn open(
        field: &'a FieldReader,
        term: &TermInfo,
        part: RecordPart,
        source: &'a dyn BlockSource,
        mut decoded: Box<DecodedBlock>,
    ) -> Result<ScatteredBlocks<'a>> {
        let blocks = Blocks::in_any_order(field.record(term, source, part)?, source);
        decoded.parts.iter_mut().for_each(|part| part.block = usize::MAX);
        let prefetches =
            source.prefetches() && blocks.skips().is_some() && field.postings_file().resident().is_none();
        let schema = field.field();
        let documents = schema.doc_codec.is_uncompressed() && field.is_verified();
        Ok(ScatteredBlocks {
            field,
            blocks,
            prefetches,
            decoded,
            may_be_in_place: [documents, documents && schema.freq_codec.is_uncompressed()],
            in_place: [(usize::MAX, &[][..]); 2],
            trace: Trace::default(),
        })
    }

    /// Closes the list and returns the buffers for reuse.
    pub fn close(self) -> Box<DecodedBlock> {
        self.decoded
    }

    /// The field of the list.
    pub fn field(&self) -> &'a FieldReader {
        self.field
    }

    /// Starts to record which blocks are decoded or pruned.
    pub fn start_trace(&mut self) {
        self.trace.start(self.blocks.len());
    }

    /// Whether [`ScatteredBlocks::start_trace`] was called.
    pub fn is_traced(&self) -> bool {
        self.trace.is_started()
    }

    /// Records that a block was pruned by its block max score.
    #[inline]
    pub fn mark_pruned(&mut self, block: usize) {
        self.trace.mark(block, BLOCK_PRUNED);
    }

    /// Numbers of decoded and pruned blocks since [`ScatteredBlocks::start_trace`].
    pub fn traced_counts(&self) -> BlockCounts {
        self.trace.count(&self.blocks)
    }

    /// The pages of the documents and frequencies that were decoded since then, in ascending order.
    pub fn traced_pages(&self) -> Vec<Range<u64>> {
        self.trace.pages(&self.blocks)
    }

    /// Whether prefetching a block can read anything: the list is not resident, and the source prefetches.
    #[inline]
    pub fn prefetches(&self) -> bool {
        self.prefetches
    }

    /// Prefetches the documents of a block, and its frequencies if `frequencies`. False if the source
    /// prefetches no more ([`BlockSource::prefetch`]).
    pub fn prefetch(&mut self, block: usize, frequencies: bool) -> Result<bool> {
        let is_decoded = self.decoded.parts[DOCS].block == block;
        if is_decoded { Ok(true) } else { self.prefetch_run(block..block + 1, frequencies) }
    }

    /// As [`ScatteredBlocks::prefetch`], of adjacent blocks: they are stored one after the other.
    pub fn prefetch_run(&mut self, blocks: Range<usize>, frequencies: bool) -> Result<bool> {
        if self.prefetches { self.blocks.prefetch_run(self.field, blocks, frequencies) } else { Ok(true) }
    }

    /// Prefetches adjacent blocks of one superblock if they have no more pages than the number of them that
    /// are `needed`: then nearly all pages are. `None` if they have more.
    pub fn prefetch_whole(&mut self, blocks: Range<usize>, needed: usize) -> Result<Option<bool>> {
        if self.prefetches { self.blocks.prefetch_whole(self.field, blocks, needed) } else { Ok(Some(true)) }
    }

    /// What reads cost; `None` if the list is not read from a device.
    pub fn read_costs(&self) -> Option<ReadCosts> {
        self.blocks.source().filter(|_| self.prefetches)?.read_costs()
    }

    /// Adds documents and frequencies of adjacent blocks to what is to be read.
    pub fn add_to_reads(&self, blocks: Range<usize>, reads: &mut PlannedReads) -> Result<()> {
        reads.add(pages_of(&self.blocks.range_of_run(blocks)?));
        Ok(())
    }

    /// Prefetches the frequencies of a block. False if the source prefetches no more.
    pub fn prefetch_frequencies(&mut self, block: usize) -> Result<bool> {
        match self.prefetches && self.decoded.parts[FREQS].block != block {
            true => self.blocks.prefetch(self.field, ListPart::Freqs, block),
            false => Ok(true),
        }
    }

    /// Prefetches the first positions of a block for `reader`. False if the source prefetches no more.
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

    /// The skip record; `None` for an inline list.
    pub fn skips(&self) -> Option<&BlockList<'a>> {
        self.blocks.skips()
    }

    /// Reads the entries of these superblocks, at least one, of a list of which only the head of the skip
    /// record was read, before any block is used. From then on the list has only these superblocks, and their
    /// blocks are numbered from 0.
    pub fn keep_superblocks(&mut self, superblocks: &[u32]) -> Result<()> {
        self.blocks.keep_superblocks(self.field, superblocks)
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

    /// The last document of a block; for an inline list `u32::MAX`, an upper bound.
    pub fn last(&self, block: usize) -> u32 {
        self.skips().map_or(u32::MAX, |list| list.last(block))
    }

    /// Lower bound of the documents of a block: the one after the last document of the block before.
    pub fn first(&self, block: usize) -> u32 {
        self.blocks.before(block).wrapping_add(1)
    }

    /// Reads documents and frequencies of a block together if they are neighbours in the file. For callers
    /// that request the frequencies first, which would else be read alone.
    pub fn load(&mut self, block: usize) -> Result<()> {
        self.blocks.load(self.field, block)
    }

    /// Documents of a block.
    pub fn documents(&mut self, block: usize) -> Result<&[u32]> {
        self.find_part::<DOCS>(block)?;
        Ok(self.found::<DOCS>(block))
    }

    /// Frequencies of a block.
    pub fn frequencies(&mut self, block: usize) -> Result<&[u32]> {
        self.find_part::<FREQS>(block)?;
        Ok(self.found::<FREQS>(block))
    }

    /// Documents and frequencies of a block.
    pub fn read(&mut self, block: usize) -> Result<(&[u32], &[u32])> {
        self.find_part::<DOCS>(block)?;
        self.find_part::<FREQS>(block)?;
        Ok((self.found::<DOCS>(block), self.found::<FREQS>(block)))
    }

    /// The documents of a block as a bitmap, if they are encoded as one and have not been decoded.
    pub fn bitmap(&mut self, block: usize) -> Result<Option<BitmapView<'_>>> {
        if self.decoded.parts[DOCS].block == block {
            return Ok(None);
        }
        let bitmap = self.blocks.bitmap(self.field, block)?;
        if bitmap.is_some() {
            self.trace.mark(block, DOCUMENTS_DECODED);
        }
        Ok(bitmap)
    }

    /// As [`ScatteredBlocks::bitmap`], with the frequencies of the block.
    pub fn bitmap_and_frequencies(&mut self, block: usize) -> Result<Option<(BitmapView<'_>, &[u32])>> {
        if self.decoded.parts[DOCS].block == block {
            return Ok(None);
        }
        self.load(block)?;
        self.find_part::<FREQS>(block)?;
        let bitmap = self.blocks.bitmap(self.field, block)?;
        if bitmap.is_some() {
            self.trace.mark(block, DOCUMENTS_DECODED);
        }
        let part = &self.decoded.parts[FREQS];
        let frequencies = match self.may_be_in_place[FREQS] && self.in_place[FREQS].0 == block {
            true => self.in_place[FREQS].1,
            false => &part.values[..part.len],
        };
        Ok(bitmap.map(|bitmap| (bitmap, frequencies)))
    }

    /// Intersects at most 256 increasing `documents` with a block; the result is written to `shared`.
    pub fn intersect_block(
        &mut self,
        block: usize,
        documents: &[u32],
        shared: &mut Intersection,
    ) -> Result<()> {
        match self.bitmap(block)? {
            Some(bitmap) => bitmap.find(documents, shared),
            None => intersect(documents, self.documents(block)?, shared),
        }
        Ok(())
    }

    /// Moves the reader of the positions of this list to a block. The block that `next` returns is prefetched
    /// into the CPU cache.
    pub fn move_positions(
        &mut self,
        block: usize,
        reader: &mut PositionsReader<'_>,
        next: impl FnOnce() -> Option<u32>,
    ) -> Result<()> {
        if reader.block() == block {
            return Ok(());
        }
        reader.move_to(&mut self.blocks, block)?;
        self.trace.mark(block, FREQUENCIES_DECODED);
        match next() {
            Some(next) => reader.prefetch_to_cpu(&mut self.blocks, next as usize),
            None => Ok(()),
        }
    }

    /// The documents or frequencies of a block, after [`ScatteredBlocks::find_part`].
    #[inline(always)]
    fn found<const PART: usize>(&self, block: usize) -> &[u32] {
        if self.may_be_in_place[PART] && self.in_place[PART].0 == block {
            return self.in_place[PART].1;
        }
        let part = &self.decoded.parts[PART];
        &part.values[..part.len]
    }

    /// Finds the documents or frequencies of a block in memory, or decodes them.
    #[inline(always)]
    fn find_part<const PART: usize>(&mut self, block: usize) -> Result<()> {
        if self.may_be_in_place[PART] && self.find_in_place::<PART>(block)? {
            return Ok(());
        }
        self.decode::<PART>(block)
    }

    /// False if the values of a block cannot be used in place: they are not aligned, or part of a skip
    /// record.
    fn find_in_place<const PART: usize>(&mut self, block: usize) -> Result<bool> {
        if self.in_place[PART].0 == block {
            return Ok(true);
        }
        let part = if PART == DOCS { ListPart::Docs } else { ListPart::Freqs };
        let values = self.blocks.values_in_place(self.field, part, block)?;
        let Some(values) = values else { return Ok(false) };
        self.in_place[PART] = (block, values);
        self.trace.mark(block, TRACE_FLAGS[PART]);
        Ok(true)
    }

    #[inline]
    fn decode<const PART: usize>(&mut self, block: usize) -> Result<()> {
        let part = &mut self.decoded.parts[PART];
        if part.block != block {
            part.block = usize::MAX;
            if PART == DOCS {
                part.len = self.blocks.decode_documents(self.field, block, &mut part.values)?;
            } else {
                part.len = self.blocks.block_len(block);
                self.blocks.decode_frequencies(self.field, block, &mut part.values[..part.len])?;
            }
            part.block = block;
            self.trace.mark(block, TRACE_FLAGS[PART]);
        }
        Ok(())
    }
}
