//! The documents whose values in a column are within some ranges.
//!
//! The directory of the column tells which blocks have no such document, and in which all documents are such:
//! only the other blocks are read, each once for the documents of a window or of a batch.

use crate::eval::state::{Bits, DocRange};
use crate::limits::COLUMN_BLOCK_DOCS;
use crate::query::column_clause::{BlockMatches, ColumnClause, matches_of, units_of};
use crate::segment::read::{BlockBits, BlockSource, ColumnDirectory, ColumnReader};
use crate::{Result, cursor::NO_DOCUMENT};

/// The documents of a segment that match a clause on a column.
pub struct ColumnSet<'a> {
    directory: ColumnDirectory<'a>,
    /// In the unit of the file, ascending, without overlaps, both ends included.
    ranges: Vec<(u64, u64)>,
    source: &'a dyn BlockSource,
    /// The bytes of the block that was read last, and a scratch buffer.
    bytes: Vec<u8>,
    scratch: Vec<u64>,
    /// The block whose documents are in `bits`.
    block: Option<usize>,
    bits: Box<[u8; COLUMN_BLOCK_DOCS / 8]>,
}

/// Bytes of the bits of a block of documents in two forms: of [`ColumnSet`], and while a block is evaluated.
const BITS_BYTES: usize = 2 * COLUMN_BLOCK_DOCS / 8;

/// Bytes of memory of a [`ColumnSet`] over this column: a block, and a bit for each of its values.
pub(crate) fn column_set_bytes(column: &ColumnReader, ranges: usize) -> Result<usize> {
    let directory = column.directory()?;
    let values = (0..column.blocks()).map(|block| directory.entry(block).values as usize).max().unwrap_or(0);
    let bits = values.div_ceil(8).max(COLUMN_BLOCK_DOCS / 8).next_power_of_two();
    let ranges = ranges * size_of::<(u64, u64)>();
    Ok(size_of::<ColumnSet<'_>>() + directory.block_bytes_max() + BITS_BYTES + bits + ranges)
}

impl<'a> ColumnSet<'a> {
    pub(crate) fn open(
        column: &'a ColumnReader,
        clause: &ColumnClause,
        source: &'a dyn BlockSource,
    ) -> Result<ColumnSet<'a>> {
        Ok(ColumnSet {
            directory: column.directory()?,
            ranges: units_of(column, &clause.ranges),
            source,
            bytes: Vec::new(),
            scratch: Vec::new(),
            block: None,
            bits: Box::new([0; COLUMN_BLOCK_DOCS / 8]),
        })
    }

    fn matches_of(&self, block: usize) -> BlockMatches {
        matches_of(&self.directory.entry(block), &self.ranges)
    }

    /// The first document from `from` on whose block may have a match.
    pub(crate) fn next_lower_bound(&self, from: u32) -> u32 {
        let column = self.directory.reader();
        let blocks = from as usize / COLUMN_BLOCK_DOCS..column.blocks();
        let found = blocks.into_iter().find(|block| self.matches_of(*block) != BlockMatches::None);
        let first = found.map(|block| column.documents_of(block).start.max(from));
        first.filter(|first| *first < column.documents()).unwrap_or(NO_DOCUMENT)
    }

    /// Adds the matches in the range of `bits` to it.
    pub(crate) fn mark_matches(&mut self, bits: &mut Bits) -> Result<()> {
        let DocRange { first, last } = bits.range();
        for block in first as usize / COLUMN_BLOCK_DOCS..=last as usize / COLUMN_BLOCK_DOCS {
            let documents = self.directory.reader().documents_of(block);
            match self.matches_of(block) {
                BlockMatches::None => {}
                BlockMatches::All => {
                    let all = [u8::MAX; COLUMN_BLOCK_DOCS / 8];
                    bits.add_bytes(documents.start, &all[..documents.len().div_ceil(8)]);
                }
                BlockMatches::Present | BlockMatches::Some => {
                    self.read_block(block)?;
                    bits.add_bytes(documents.start, &self.bits[..documents.len().div_ceil(8)]);
                }
            }
        }
        Ok(())
    }

    /// Whether a document of the segment matches.
    pub(crate) fn contains(&mut self, document: u32) -> Result<bool> {
        let (block, at) = (document as usize / COLUMN_BLOCK_DOCS, document as usize % COLUMN_BLOCK_DOCS);
        if self.block != Some(block) {
            match self.matches_of(block) {
                BlockMatches::None => return Ok(false),
                BlockMatches::All => return Ok(true),
                BlockMatches::Present | BlockMatches::Some => self.read_block(block)?,
            }
        }
        Ok(self.bits[at / 8] >> (at % 8) & 1 != 0)
    }

    /// Finds the matches of a block.
    fn read_block(&mut self, block: usize) -> Result<()> {
        if self.block == Some(block) {
            return Ok(());
        }
        self.block = None;
        let mut words: BlockBits = [0; COLUMN_BLOCK_DOCS / u64::BITS as usize];
        let values = self.directory.read_block(block, self.source, &mut self.bytes)?;
        values.mark(&self.ranges, &mut self.scratch, &mut words);
        let bytes = self.bits.as_chunks_mut::<8>().0;
        bytes.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
        self.block = Some(block);
        Ok(())
    }
}
