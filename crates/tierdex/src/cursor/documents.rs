//! Adds the documents of posting lists to a bitset, one list after the other.

use super::{NO_DOCUMENT, RangePrefetcher, blocks::Blocks};
use crate::segment::read::{BlockSource, FieldReader, SkipRecord};
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

    /// Appends the documents of a list to `documents`.
    pub fn append_documents(&mut self, record: SkipRecord<'_>, documents: &mut Vec<u32>) -> Result<()> {
        let mut blocks = Blocks::in_any_order(record, self.source);
        for block in 0..blocks.len() {
            let len = blocks.decode_documents(self.field, block, &mut self.decoded)?;
            documents.extend(&self.decoded[..len]);
        }
        Ok(())
    }

    /// Adds the documents of a list to `bits`: document `i` is bit `i mod 8` of byte `i div 8`. `bits` has a
    /// bit for each document of the field.
    pub fn add_documents(&mut self, record: SkipRecord<'_>, bits: &mut [u8]) -> Result<()> {
        self.add_blocks(record, 0..=NO_DOCUMENT, bits, || {})
    }

    /// As [`DocumentsReader::add_documents`] for each of the lists that `records` returns, only the blocks
    /// that overlap a range. Blocks are prefetched, across lists too. Each call of `records` must return the
    /// same lists.
    pub fn add_lists<'r, I: Iterator<Item = Result<SkipRecord<'r>>>>(
        &mut self,
        records: impl Fn() -> I,
        range: RangeInclusive<u32>,
        bits: &mut [u8],
    ) -> Result<()>
    where
        'a: 'r,
    {
        let source = self.source;
        // A record that is damaged is an error of the pass itself.
        let ranges = records().flatten().flat_map(|record| {
            let mut blocks = Blocks::in_any_order(record, source);
            let overlapping = overlapping_blocks(&blocks, range.clone());
            overlapping.map(move |block| blocks.document_range(block).unwrap_or_default())
        });
        let mut ahead = RangePrefetcher::new(source, self.field.postings_file(), ranges);
        for record in records() {
            source.checkpoint(0..0)?;
            self.add_blocks(record?, range.clone(), bits, || ahead.before_read())?;
        }
        Ok(())
    }

    fn add_blocks(
        &mut self,
        record: SkipRecord<'_>,
        range: RangeInclusive<u32>,
        bits: &mut [u8],
        mut before_block: impl FnMut(),
    ) -> Result<()> {
        let mut blocks = Blocks::in_any_order(record, self.source);
        for block in overlapping_blocks(&blocks, range) {
            before_block();
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
