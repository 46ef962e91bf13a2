//! Blocks of one list in any order.

use super::blocks::Blocks;
use crate::error::Result;
use crate::limits::BLOCK;
use crate::segment::read::{BlockList, FieldReader, TermInfo};

/// Decodes blocks of a list, whichever are asked for; one at a time is at hand.
pub struct ScatteredBlocks<'a> {
    field: &'a FieldReader,
    blocks: Blocks,
    documents: Part,
    frequencies: Part,
}

/// A decoded block of one part of a list.
struct Part {
    block: usize,
    len: usize,
    values: [u32; BLOCK],
}

impl Part {
    const NONE: Part = Part { block: usize::MAX, len: 0, values: [0; BLOCK] };

    fn values(&self) -> &[u32] {
        &self.values[..self.len]
    }
}

impl<'a> ScatteredBlocks<'a> {
    /// Reads the record of `term`.
    pub fn open(field: &'a FieldReader, term: &TermInfo) -> Result<ScatteredBlocks<'a>> {
        let blocks = Blocks::in_any_order(field.record(term)?);
        Ok(ScatteredBlocks { field, blocks, documents: Part::NONE, frequencies: Part::NONE })
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

    /// The first block from `from` on that can hold `document` or a later one; [`ScatteredBlocks::len`] if none can.
    pub fn find(&self, from: usize, document: u32) -> usize {
        self.blocks.find(from, document)
    }

    /// A document that no document of a block is after.
    pub fn last(&self, block: usize) -> u32 {
        self.skips().map_or(u32::MAX, |list| list.last(block))
    }

    /// A document that no document of a block is before.
    pub fn first(&self, block: usize) -> u32 {
        self.blocks.before(block).wrapping_add(1)
    }

    /// Documents of a block.
    pub fn documents(&mut self, block: usize) -> Result<&[u32]> {
        let part = &mut self.documents;
        if part.block != block {
            part.block = usize::MAX;
            part.len = self.blocks.documents(self.field, block, &mut part.values)?;
            part.block = block;
        }
        Ok(part.values())
    }

    /// Frequencies of a block.
    pub fn frequencies(&mut self, block: usize) -> Result<&[u32]> {
        let part = &mut self.frequencies;
        if part.block != block {
            part.block = usize::MAX;
            part.len = self.blocks.block_len(block);
            self.blocks.frequencies(self.field, block, &mut part.values[..part.len])?;
            part.block = block;
        }
        Ok(part.values())
    }

    /// Documents of a block, and their frequencies.
    pub fn read(&mut self, block: usize) -> Result<(&[u32], &[u32])> {
        self.documents(block)?;
        self.frequencies(block)?;
        Ok((self.documents.values(), self.frequencies.values()))
    }
}
