//! Adds the documents of posting lists to a bitset, one list after the other.

use super::blocks::Blocks;
use crate::segment::read::{BlockSource, FieldReader, ListPart, SkipRecord};
use crate::{Result, limits::BLOCK};
use std::ops::{Range, RangeInclusive};

/// Reads the documents of the lists of a field, with one buffer for all of them.
pub struct DocumentsReader<'a> {
    field: &'a FieldReader,
    source: &'a dyn BlockSource,
    decoded: Box<[u32; BLOCK]>,
}

impl<'a> DocumentsReader<'a> {
    /// A reader of lists of this field, whose blocks are read from `source`.
    pub fn new(field: &'a FieldReader, source: &'a dyn BlockSource) -> DocumentsReader<'a> {
        DocumentsReader { field, source, decoded: Box::new([0; BLOCK]) }
    }

    /// Prefetches the blocks that [`DocumentsReader::add_documents`] reads for this range. False if the
    /// source prefetches no more.
    pub fn prefetch(&self, record: SkipRecord<'_>, range: RangeInclusive<u32>) -> Result<bool> {
        let mut blocks = Blocks::in_any_order(record, self.source);
        let mut overlapping = overlapping_blocks(&blocks, range);
        overlapping
            .try_fold(true, |all, block| Ok(all && blocks.prefetch(self.field, ListPart::Docs, block)?))
    }

    /// Appends the documents of a list to `documents`.
    pub fn append_documents(&mut self, record: SkipRecord<'_>, documents: &mut Vec<u32>) -> Result<()> {
        let mut blocks = Blocks::in_any_order(record, self.source);
        for block in 0..blocks.len() {
            let len = blocks.decode_documents(self.field, block, &mut self.decoded)?;
            documents.extend(&self.decoded[..len]);
        }
        Ok(())
    }

    /// Adds the documents of the blocks that overlap a range to `bits`: document `i` is bit `i mod 8` of byte
    /// `i div 8`. `bits` has a bit for each document of the field.
    pub fn add_documents(
        &mut self,
        record: SkipRecord<'_>,
        range: RangeInclusive<u32>,
        bits: &mut [u8],
    ) -> Result<()> {
        let mut blocks = Blocks::in_any_order(record, self.source);
        for block in overlapping_blocks(&blocks, range) {
            if let Some(bitmap) = blocks.bitmap(self.field, block)? {
                let of_block = bits[bitmap.first() as usize / 8..].iter_mut().zip(bitmap.bits());
                of_block.for_each(|(bits, others)| *bits |= others);
                continue;
            }
            let len = blocks.decode_documents(self.field, block, &mut self.decoded)?;
            for document in &self.decoded[..len] {
                bits[(document / 8) as usize] |= 1 << (document % 8);
            }
        }
        Ok(())
    }
}

/// The blocks that may have documents of a range.
fn overlapping_blocks(blocks: &Blocks<'_>, range: RangeInclusive<u32>) -> Range<usize> {
    let (start, end) = range.into_inner();
    let first = blocks.find(0, start);
    let last = blocks.find(first, end);
    let overlaps = last < blocks.len() && blocks.before(last).wrapping_add(1) <= end;
    first..last + usize::from(overlaps)
}
