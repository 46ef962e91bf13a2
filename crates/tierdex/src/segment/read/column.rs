//! Reads `column` (docs/format/column.md): the directory of its blocks, and blocks from a source.
//!
//! The directory is checked when it is loaded, and stays resident: 32 bytes for 4,096 documents. It tells
//! which blocks have values in a range, so that others are not read. A block is checked when it is parsed.

use super::column_block::BlockValues;
use super::source::BlockSource;
use super::tail::read_tail;
use crate::limits::{COLUMN_BLOCK_DOCS, COLUMN_VALUES_MAX};
use crate::schema::{Column, ColumnValue};
use crate::segment::layout::{COLUMN_ENTRY_BYTES, COLUMN_TAIL_LEN, ColumnEntry, ColumnTail, Presence};
use crate::{Error, Result};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use tierdex_io::{Arena, ResidentBytes, SealedFile};

/// An open column of a segment in which at least one document has a value.
pub struct ColumnReader {
    file: Arc<SealedFile>,
    number: usize,
    column: Column,
    tail: ColumnTail,
    directory: OnceLock<ResidentBytes>,
}

impl ColumnReader {
    pub(super) fn open(
        file: SealedFile,
        number: usize,
        column: &Column,
        documents: u32,
    ) -> Result<ColumnReader> {
        let damaged = |what: &str| Error::corrupt(file.name(), file.payload().end, what);
        let tail = ColumnTail::read(read_tail::<COLUMN_TAIL_LEN>(&file)?);
        let tail = tail.ok_or_else(|| damaged("unknown type of values"))?;
        if tail.documents != u64::from(documents) || (tail.of, tail.multi) != (column.values, column.multi) {
            return Err(damaged("the column of another segment or of another type"));
        }
        let blocks = (documents as usize).div_ceil(COLUMN_BLOCK_DOCS);
        let directory_bytes = (blocks * COLUMN_ENTRY_BYTES) as u64;
        let after = file.payload().end - 8 * COLUMN_TAIL_LEN as u64;
        if after.checked_sub(directory_bytes) != Some(tail.directory)
            || tail.directory < file.payload().start
            || tail.divisor == 0
            || tail.minimum > tail.maximum
            || tail.present == 0
        {
            return Err(damaged("the tail does not fit the file"));
        }
        let directory = OnceLock::new();
        Ok(ColumnReader { file: Arc::new(file), number, column: column.clone(), tail, directory })
    }

    /// Number of the column in the schema.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Schema of the column.
    pub fn column(&self) -> &Column {
        &self.column
    }

    /// What the file says of all its values.
    pub fn tail(&self) -> &ColumnTail {
        &self.tail
    }

    /// The file of the column.
    pub fn file(&self) -> &Arc<SealedFile> {
        &self.file
    }

    /// Number of documents of the segment.
    pub fn documents(&self) -> u32 {
        self.tail.documents as u32
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        (self.tail.documents as usize).div_ceil(COLUMN_BLOCK_DOCS)
    }

    /// Bytes in memory of the directory.
    pub fn memory(&self) -> u64 {
        (self.blocks() * COLUMN_ENTRY_BYTES) as u64
    }

    /// Makes the directory resident, in `arena` if given.
    pub fn load_directory(&self, arena: Option<&mut Arena>) -> Result<ColumnDirectory<'_>> {
        let bytes = match self.directory.get() {
            Some(bytes) => bytes,
            None => {
                let len = self.memory() as usize;
                let bytes = self.file.read(self.tail.directory, len)?;
                self.check_directory(&bytes)?;
                let fill = |out: &mut [u8]| {
                    out.copy_from_slice(&bytes);
                    Ok::<(), Error>(())
                };
                let resident = ResidentBytes::allocate(arena, len, fill, self.file.name())?;
                self.directory.get_or_init(|| resident)
            }
        };
        Ok(ColumnDirectory { reader: self, entries: bytes.as_chunks().0 })
    }

    /// The directory, read on first use.
    pub fn directory(&self) -> Result<ColumnDirectory<'_>> {
        self.load_directory(None)
    }

    /// Checks that blocks follow one another up to the directory, and that their numbers fit the tail.
    fn check_directory(&self, bytes: &[u8]) -> Result<()> {
        let entries = bytes.as_chunks::<COLUMN_ENTRY_BYTES>().0;
        let value_max = (self.tail.maximum - self.tail.minimum) / self.tail.divisor;
        let (mut values, mut present) = (0, 0);
        for (number, bytes) in entries.iter().enumerate() {
            let corrupt = |what: &str| {
                let offset = self.tail.directory + (number * COLUMN_ENTRY_BYTES) as u64;
                Error::corrupt(self.file.name(), offset, what)
            };
            let entry = ColumnEntry::read(bytes).ok_or_else(|| corrupt("an unknown form of a block"))?;
            let documents = self.documents_of(number).len();
            let count = usize::from(entry.present);
            let per_document = if self.column.multi { COLUMN_VALUES_MAX } else { 1 };
            if count > documents
                || !(count..=count * per_document).contains(&(entry.values as usize))
                || entry.presence != Presence::choose(count, documents)
                || entry.minimum > entry.maximum
                || entry.maximum > value_max
            {
                return Err(corrupt("impossible numbers of a block"));
            }
            let end = entries.get(number + 1).and_then(ColumnEntry::read);
            let end = end.map_or(self.tail.directory, |next| next.offset);
            let first = if number == 0 { self.file.payload().start } else { entry.offset };
            let bytes_max = BlockValues::bytes_max(&entry, documents, self.column.multi) as u64;
            if entry.offset != first || !(entry.offset..=entry.offset + bytes_max).contains(&end) {
                return Err(corrupt("a block of an impossible length"));
            }
            values += u64::from(entry.values);
            present += count as u64;
        }
        if (values, present) != (self.tail.values, self.tail.present) {
            return Err(Error::corrupt(self.file.name(), self.tail.directory, "another number of values"));
        }
        Ok(())
    }

    /// The documents of a block.
    pub fn documents_of(&self, block: usize) -> Range<u32> {
        let start = (block * COLUMN_BLOCK_DOCS) as u64;
        let end = (start + COLUMN_BLOCK_DOCS as u64).min(self.tail.documents);
        start as u32..end as u32
    }

    /// The value that a unit of the file stands for.
    pub fn value(&self, unit: u64) -> ColumnValue {
        self.column.values.value_of_bits(self.bits(unit))
    }

    /// The value as an integer in the order of values.
    pub fn bits(&self, unit: u64) -> u64 {
        unit.wrapping_mul(self.tail.divisor).wrapping_add(self.tail.minimum)
    }

    /// The units of the values in a range of integers, both ends included; `None` if no value can be in it.
    pub fn units_within(&self, low: u64, high: u64) -> Option<(u64, u64)> {
        let ColumnTail { minimum, maximum, divisor, .. } = self.tail;
        if low > high || low > maximum || high < minimum {
            return None;
        }
        let first = low.saturating_sub(minimum).div_ceil(divisor);
        let last = (high.min(maximum) - minimum) / divisor;
        (first <= last).then_some((first, last))
    }

    /// Replaces `units` by the values of a document of the segment, in the unit of the file.
    pub fn values_of(
        &self,
        document: u32,
        source: &dyn BlockSource,
        bytes: &mut Vec<u8>,
        units: &mut Vec<u64>,
    ) -> Result<()> {
        let (block, in_block) =
            (document as usize / COLUMN_BLOCK_DOCS, document as usize % COLUMN_BLOCK_DOCS);
        self.directory()?.read_block(block, source, bytes)?.values_of(in_block, units);
        Ok(())
    }

    /// Calls `body` with each document of the segment that has values, and these as integers, ascending.
    pub fn for_each(
        &self,
        source: &dyn BlockSource,
        mut body: impl FnMut(u32, &[u64]) -> Result<()>,
    ) -> Result<()> {
        let directory = self.directory()?;
        let (mut bytes, mut values) = (Vec::new(), Vec::new());
        for number in 0..self.blocks() {
            let block = directory.read_block(number, source, &mut bytes)?;
            let first = self.documents_of(number).start;
            block.for_each(&mut |document, units| {
                values.clear();
                values.extend(units.iter().map(|unit| self.bits(*unit)));
                body(first + document as u32, &values)
            })?;
        }
        Ok(())
    }
}

/// The resident directory of a column.
#[derive(Clone, Copy)]
pub struct ColumnDirectory<'a> {
    reader: &'a ColumnReader,
    entries: &'a [[u8; COLUMN_ENTRY_BYTES]],
}

impl<'a> ColumnDirectory<'a> {
    /// The column.
    pub fn reader(&self) -> &'a ColumnReader {
        self.reader
    }

    /// The entry of a block.
    #[inline]
    pub fn entry(&self, block: usize) -> ColumnEntry {
        ColumnEntry::read(&self.entries[block]).expect("entries were checked")
    }

    /// Bytes of a block in the file.
    pub fn range_of(&self, block: usize) -> Range<u64> {
        let end = self.entries.get(block + 1).and_then(ColumnEntry::read);
        self.entry(block).offset..end.map_or(self.reader.tail.directory, |next| next.offset)
    }

    /// Bytes of the largest block.
    pub fn block_bytes_max(&self) -> usize {
        let ranges = (0..self.entries.len()).map(|block| self.range_of(block));
        ranges.map(|range| (range.end - range.start) as usize).max().unwrap_or(0)
    }

    /// Reads a block, into `bytes` unless the source lends it.
    pub fn read_block<'b>(
        &self,
        block: usize,
        source: &'b dyn BlockSource,
        bytes: &'b mut Vec<u8>,
    ) -> Result<BlockValues<'b>> {
        let range = self.range_of(block);
        let file = &self.reader.file;
        let bytes = match source.lend(file, &range)? {
            Some(bytes) => bytes,
            None => {
                source.read(file, range.clone(), bytes)?;
                &*bytes
            }
        };
        let documents = self.reader.documents_of(block).len();
        BlockValues::parse(bytes, &self.entry(block), documents, self.reader.column.multi)
            .map_err(|what| Error::corrupt(file.name(), range.start, what))
    }
}

#[cfg(test)]
mod tests;
