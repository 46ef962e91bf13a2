//! Blocks of one list in any order.

use super::blocks::Blocks;
use crate::error::Result;
use crate::limits::BLOCK;
use crate::segment::read::{BlockList, FieldReader, Record, TermInfo};

/// Decodes blocks of a list, whichever are asked for.
pub struct ScatteredBlocks<'a> {
    field: &'a FieldReader,
    blocks: Blocks,
    documents: [u32; BLOCK],
    frequencies: [u32; BLOCK],
}

impl<'a> ScatteredBlocks<'a> {
    /// Reads the record of `term`.
    pub fn open(field: &'a FieldReader, term: &TermInfo) -> Result<ScatteredBlocks<'a>> {
        let record: Record = field.record(term)?;
        let blocks = Blocks::in_any_order(record);
        Ok(ScatteredBlocks { field, blocks, documents: [0; BLOCK], frequencies: [0; BLOCK] })
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether there are none, which no list that was written has.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the skip data says of the blocks; `None` of a list so short that it has none.
    pub fn skips(&self) -> Option<&BlockList> {
        self.blocks.skips()
    }

    /// Documents of a block, and their frequencies.
    pub fn read(&mut self, block: usize) -> Result<(&[u32], &[u32])> {
        let len = self.blocks.documents(self.field, block, &mut self.documents)?;
        self.blocks.frequencies(self.field, block, &mut self.frequencies[..len])?;
        Ok((&self.documents[..len], &self.frequencies[..len]))
    }
}
