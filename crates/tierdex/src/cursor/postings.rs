//! The cursor over one list.

use super::blocks::Blocks;
use super::positions::PositionsReader;
use super::trace::{Blockwise, DOCUMENTS, FREQUENCIES, Trace};
use crate::error::Result;
use crate::limits::BLOCK;
use crate::segment::read::{BlockList, BlockSource, FILES, FieldReader, Record, TermInfo};

/// Stands for "behind the last document".
pub const NO_DOCUMENT: u32 = u32::MAX;

/// Moves forward over the documents of a term.
pub struct PostingsCursor<'a> {
    field: &'a FieldReader,
    source: &'a dyn BlockSource,
    term: TermInfo,
    blocks: Blocks<'a>,
    /// The decoded block; `usize::MAX` before the first.
    block: usize,
    len: usize,
    at: usize,
    documents: Box<[u32; BLOCK]>,
    frequencies: Box<[u32; BLOCK]>,
    frequencies_of: usize,
    /// Once positions are asked for.
    reader: Option<PositionsReader<'a>>,
    positions: Vec<u32>,
    trace: Trace,
}

const NONE: usize = usize::MAX;

impl<'a> PostingsCursor<'a> {
    /// Reads the list of `term`. The cursor stands before the first document.
    pub fn open(field: &'a FieldReader, term: TermInfo) -> Result<PostingsCursor<'a>> {
        let record = field.record(&term, &FILES)?;
        PostingsCursor::with_record(field, term, record, &FILES)
    }

    /// The same, for a caller that has read the record of `term`; all else is read from `source`.
    pub fn with_record(
        field: &'a FieldReader,
        term: TermInfo,
        record: Record<'a>,
        source: &'a dyn BlockSource,
    ) -> Result<PostingsCursor<'a>> {
        Ok(PostingsCursor {
            field,
            source,
            blocks: Blocks::in_order(record, source),
            term,
            block: NONE,
            len: 0,
            at: 0,
            documents: Box::new([0; BLOCK]),
            frequencies: Box::new([0; BLOCK]),
            frequencies_of: NONE,
            reader: None,
            positions: Vec::new(),
            trace: Trace::default(),
        })
    }

    /// The same cursor over a list below a block, for a caller that has read its positions.
    pub(super) fn with_positions(self, bytes: Vec<u8>, offset: u64) -> PostingsCursor<'a> {
        PostingsCursor {
            reader: Some(PositionsReader::with_bytes(self.field, self.source, (bytes, offset))),
            ..self
        }
    }

    /// Notes from now on what becomes of each block.
    pub fn trace(&mut self) {
        self.trace.start(self.blocks.len());
    }

    /// What became of the blocks since [`PostingsCursor::trace`].
    pub fn traced(&self) -> Blockwise {
        self.trace.sum(&self.blocks)
    }

    /// What the skip data says of the blocks; `None` of a list so short that it has none.
    pub fn skips(&self) -> Option<&BlockList<'a>> {
        self.blocks.skips()
    }

    /// What the dictionary says of the term.
    pub fn term(&self) -> &TermInfo {
        &self.term
    }

    /// The document at which the cursor stands; [`NO_DOCUMENT`] behind the last and before the first.
    pub fn document(&self) -> u32 {
        if self.at < self.len { self.documents[self.at] } else { NO_DOCUMENT }
    }

    /// Moves to the first document that is at least `target`, decoding at most one block, and returns it.
    pub fn advance(&mut self, target: u32) -> Result<u32> {
        if self.at < self.len && self.documents[self.at] >= target {
            return Ok(self.documents[self.at]);
        }
        if self.block == NONE || self.len == 0 || self.documents[self.len - 1] < target {
            let from = if self.block == NONE { 0 } else { (self.block + 1).min(self.blocks.len()) };
            self.load(self.blocks.find(from, target))?;
        }
        self.at += self.documents[self.at..self.len].partition_point(|&document| document < target);
        Ok(self.document())
    }

    /// A document that is at least `target` and not greater than the first one of the list that is; no block is
    /// decoded for it. [`NO_DOCUMENT`] when the list has none.
    pub fn lower_bound(&self, target: u32) -> u32 {
        if self.block != NONE && self.len > 0 && self.documents[self.len - 1] >= target {
            let rest = &self.documents[self.at..self.len];
            return rest[rest.partition_point(|&document| document < target)];
        }
        let from = if self.block == NONE { 0 } else { (self.block + 1).min(self.blocks.len()) };
        let block = self.blocks.find(from, target);
        if block >= self.blocks.len() {
            return NO_DOCUMENT;
        }
        target.max(self.blocks.before(block).wrapping_add(1))
    }

    /// The documents of the present block from the cursor on, and their frequencies. Empty behind the last.
    pub fn rest_of_block(&mut self) -> Result<(&[u32], &[u32])> {
        self.need_frequencies()?;
        Ok((&self.documents[self.at..self.len], &self.frequencies[self.at..self.len]))
    }

    /// The documents of the present block from the cursor on; empty behind the last.
    pub fn documents_of_block(&self) -> &[u32] {
        &self.documents[self.at..self.len]
    }

    /// Moves on by `count` documents of the present block, which has them; at its end the next block is decoded.
    pub fn skip(&mut self, count: usize) -> Result<()> {
        self.at += count;
        if self.at >= self.len && self.block != NONE {
            self.load(self.block + 1)?;
        }
        Ok(())
    }

    /// Frequency of the term in the present document.
    pub fn frequency(&mut self) -> Result<u32> {
        self.need_frequencies()?;
        Ok(self.frequencies[self.at])
    }

    /// Positions of the term in the present document.
    pub fn positions(&mut self) -> Result<&[u32]> {
        let reader = self.reader.get_or_insert_with(|| PositionsReader::new(self.field, self.source));
        reader.move_to(&mut self.blocks, self.block)?;
        reader.read(self.at as u8, &mut self.positions)?;
        Ok(&self.positions)
    }

    fn load(&mut self, block: usize) -> Result<()> {
        self.at = 0;
        self.len = 0;
        self.block = block;
        if block < self.blocks.len() {
            self.len = self.blocks.documents(self.field, block, &mut self.documents)?;
            self.trace.mark(block, DOCUMENTS);
        }
        Ok(())
    }

    fn need_frequencies(&mut self) -> Result<()> {
        if self.frequencies_of != self.block && self.len > 0 {
            self.blocks.frequencies(self.field, self.block, &mut self.frequencies[..self.len])?;
            self.frequencies_of = self.block;
            self.trace.mark(self.block, FREQUENCIES);
        }
        Ok(())
    }
}
