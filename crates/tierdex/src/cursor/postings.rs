//! A cursor that moves forward over the postings of one list.

use super::blocks::Blocks;
use super::positions::{PositionArrays, PositionsReader};
use crate::segment::read::{BlockSource, FILES, FieldReader, RecordPart, SkipRecord, TermInfo};
use crate::{Result, limits::BLOCK, transform::impact};

/// The document that a cursor returns after the last document of its list.
pub const NO_DOCUMENT: u32 = u32::MAX;

/// Moves forward over the postings of a term.
pub struct PostingsCursor<'a> {
    field: &'a FieldReader,
    source: &'a dyn BlockSource,
    blocks: Blocks<'a>,
    /// The decoded block; `usize::MAX` before the first.
    block: usize,
    /// Number of postings of the block, and number of those before the cursor.
    len: usize,
    at: usize,
    documents: Box<[u32; BLOCK]>,
    /// Frequencies of the block `frequencies_of`.
    frequencies: Box<[u32; BLOCK]>,
    frequencies_of: usize,
    /// Created when positions are first requested, with these arrays if there are any.
    reader: Option<PositionsReader<'a>>,
    position_arrays: Option<PositionArrays>,
    positions: Vec<u32>,
}

/// The arrays of a cursor, which another one can use after it.
pub(super) struct CursorArrays {
    documents: Box<[u32; BLOCK]>,
    frequencies: Box<[u32; BLOCK]>,
    positions: Vec<u32>,
    position_arrays: Option<PositionArrays>,
}

impl Default for CursorArrays {
    fn default() -> CursorArrays {
        let (documents, frequencies) = (Box::new([0; BLOCK]), Box::new([0; BLOCK]));
        CursorArrays { documents, frequencies, positions: Vec::new(), position_arrays: None }
    }
}

/// The block of a cursor that has not moved yet.
const NO_BLOCK: usize = usize::MAX;

impl<'a> PostingsCursor<'a> {
    /// Opens the list of `term`. The cursor is before the first document.
    pub fn open(field: &'a FieldReader, term: TermInfo) -> Result<PostingsCursor<'a>> {
        let record = field.record(&term, &FILES, RecordPart::WithoutImpacts)?;
        PostingsCursor::with_record(field, record, &FILES)
    }

    /// Opens the list with this skip record; blocks are read from `source`.
    pub fn with_record(
        field: &'a FieldReader,
        record: SkipRecord<'a>,
        source: &'a dyn BlockSource,
    ) -> Result<PostingsCursor<'a>> {
        Ok(PostingsCursor::with_arrays(field, record, source, None, CursorArrays::default()))
    }

    /// As [`PostingsCursor::with_record`]; `read_positions` are encoded positions of an inline list, and the
    /// offset in the file at which they were read.
    pub(super) fn with_arrays(
        field: &'a FieldReader,
        record: SkipRecord<'a>,
        source: &'a dyn BlockSource,
        read_positions: Option<(&'a [u8], u64)>,
        arrays: CursorArrays,
    ) -> PostingsCursor<'a> {
        let CursorArrays { documents, frequencies, positions, mut position_arrays } = arrays;
        let reader = read_positions.map(|(bytes, offset)| {
            let arrays = position_arrays.take().unwrap_or_default();
            PositionsReader::with_bytes(field, source, bytes, offset, arrays)
        });
        PostingsCursor {
            field,
            source,
            blocks: Blocks::in_order(record, source),
            block: NO_BLOCK,
            len: 0,
            at: 0,
            documents,
            frequencies,
            frequencies_of: NO_BLOCK,
            reader,
            position_arrays,
            positions,
        }
    }

    pub(super) fn into_arrays(self) -> CursorArrays {
        let PostingsCursor { documents, frequencies, positions, reader, position_arrays, .. } = self;
        let position_arrays = reader.map(PositionsReader::into_arrays).or(position_arrays);
        CursorArrays { documents, frequencies, positions, position_arrays }
    }

    /// The current document; [`NO_DOCUMENT`] before the first and after the last.
    pub fn document(&self) -> u32 {
        if self.at < self.len { self.documents[self.at] } else { NO_DOCUMENT }
    }

    /// Moves to the first document that is at least `target` and returns it. Decodes at most one block.
    pub fn advance(&mut self, target: u32) -> Result<u32> {
        if self.at < self.len && self.documents[self.at] >= target {
            return Ok(self.documents[self.at]);
        }
        if self.block == NO_BLOCK || self.len == 0 || self.documents[self.len - 1] < target {
            let from = if self.block == NO_BLOCK { 0 } else { (self.block + 1).min(self.blocks.len()) };
            self.load_block(self.blocks.find(from, target))?;
        }
        self.at += self.documents[self.at..self.len].partition_point(|&document| document < target);
        Ok(self.document())
    }

    /// The documents of the current block from the cursor on, and their frequencies; empty after the last
    /// document of the list.
    pub fn rest_of_block(&mut self) -> Result<(&[u32], &[u32])> {
        self.decode_frequencies()?;
        Ok((&self.documents[self.at..self.len], &self.frequencies[self.at..self.len]))
    }

    /// Skips `count` documents, at most those that are left in the current block; at the end of the block,
    /// decodes the next.
    pub fn skip(&mut self, count: usize) -> Result<()> {
        self.at += count;
        if self.at >= self.len && self.block != NO_BLOCK {
            self.load_block(self.block + 1)?;
        }
        Ok(())
    }

    /// Frequency of the term in the current document.
    pub fn frequency(&mut self) -> Result<u32> {
        self.decode_frequencies()?;
        Ok(self.frequencies[self.at])
    }

    /// Positions of the term in the current document.
    pub fn positions(&mut self) -> Result<&[u32]> {
        let reader = self.reader.get_or_insert_with(|| {
            let arrays = self.position_arrays.take().unwrap_or_default();
            PositionsReader::with_bytes(self.field, self.source, &[], 0, arrays)
        });
        reader.move_to(&mut self.blocks, self.block)?;
        reader.read(self.at as u8, &mut self.positions)?;
        Ok(&self.positions)
    }

    /// Moves to the start of a block and decodes its documents.
    fn load_block(&mut self, block: usize) -> Result<()> {
        self.at = 0;
        self.len = 0;
        self.block = block;
        if block < self.blocks.len() {
            self.len = self.blocks.decode_documents(self.field, block, &mut self.documents)?;
        }
        Ok(())
    }

    fn decode_frequencies(&mut self) -> Result<()> {
        if self.frequencies_of != self.block && self.len > 0 {
            self.blocks.decode_frequencies(self.field, self.block, &mut self.frequencies[..self.len])?;
            self.frequencies_of = self.block;
        }
        Ok(())
    }
}

/// The largest frequency of a term: from the impacts of its list, or for an inline list from its postings.
pub fn frequency_max(field: &FieldReader, term: &TermInfo, source: &dyn BlockSource) -> Result<u32> {
    match field.record(term, source, RecordPart::Whole)? {
        SkipRecord::Blocks(list) => (0..list.superblocks()).try_fold(0, |max, superblock| {
            Ok(impact::max_frequency(list.superblock_impacts(superblock)?)?.max(max))
        }),
        record @ SkipRecord::Inline(_) => {
            let mut cursor = PostingsCursor::with_record(field, record, source)?;
            cursor.advance(0)?;
            Ok(cursor.rest_of_block()?.1.iter().copied().max().unwrap_or(0))
        }
    }
}
