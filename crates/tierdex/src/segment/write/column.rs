//! Writes `column`: the values of a column in blocks of documents, then a directory of the blocks
//! (docs/format/column.md).
//!
//! 1. A pass over all values finds the smallest one, and the greatest common divisor of the differences to
//!    it. Values are stored as multiples of the divisor above the smallest.
//! 2. A second pass encodes the blocks, and collects the directory: which documents of a block have values,
//!    the smallest and the largest one.

use super::super::layout::{
    CHUNK_HEADER_BYTES, COLUMN_ENTRY_BYTES, ColumnEntry, ColumnTail, FileKind, FileMeta, Presence,
};
use super::file::{create, seal};
use crate::limits::{BLOCK, COLUMN_BLOCK_DOCS};
use crate::{Result, schema::Column};
use tierdex_codec::WideBlock;
use tierdex_io::{Disk, SealedWriter};

/// The values of the documents of a column in memory, in the order of documents.
#[derive(Default)]
pub struct ColumnBuffer {
    values: Vec<u64>,
    /// Number of values of each document.
    counts: Vec<u8>,
}

impl ColumnBuffer {
    /// Appends the values of the next document, at most
    /// [`COLUMN_VALUES_MAX`](crate::limits::COLUMN_VALUES_MAX).
    pub fn add(&mut self, values: impl Iterator<Item = u64>) {
        let start = self.values.len();
        self.values.extend(values);
        self.values[start..].sort_unstable();
        self.counts.push((self.values.len() - start) as u8);
    }

    /// Appends the documents of another buffer.
    pub fn append(&mut self, other: &ColumnBuffer) {
        self.values.extend_from_slice(&other.values);
        self.counts.extend_from_slice(&other.counts);
    }

    /// Calls `body` with the values of each document in ascending order.
    pub fn for_each(&self, body: &mut DocumentValuesBody<'_>) -> Result<()> {
        let mut start = 0;
        for count in &self.counts {
            let end = start + usize::from(*count);
            body(&self.values[start..end])?;
            start = end;
        }
        Ok(())
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        size_of::<u64>() * self.values.capacity() + self.counts.capacity()
    }
}

/// Called with the values of a document in ascending order, as integers.
pub type DocumentValuesBody<'b> = dyn FnMut(&[u64]) -> Result<()> + 'b;

/// The column of a segment that is written.
#[derive(Clone, Copy)]
pub struct ColumnTarget<'a> {
    /// Where the file is written.
    pub disk: &'a dyn Disk,
    /// The segment.
    pub segment: u64,
    /// Number of the column in the schema.
    pub number: usize,
    /// The column.
    pub column: &'a Column,
}

/// Writes a column. `for_each` calls its argument with the values of each document of the segment in order;
/// it is called twice. Returns `None`, and writes nothing, if no document has a value.
pub fn write_column(
    target: ColumnTarget<'_>,
    for_each: &mut dyn FnMut(&mut DocumentValuesBody<'_>) -> Result<()>,
) -> Result<Option<FileMeta>> {
    let mut summary = ColumnSummary::default();
    for_each(&mut |values| {
        summary.add(values);
        Ok(())
    })?;
    if summary.values == 0 {
        return Ok(None);
    }
    let ColumnTarget { disk, segment, number, column } = target;
    let file = create(disk, segment, number, FileKind::Column)?;
    let mut writer = ColumnWriter { file, column, summary, block: OpenBlock::default(), entries: Vec::new() };
    for_each(&mut |values| writer.add(values))?;
    writer.finish(number).map(Some)
}

/// What the first pass finds.
#[derive(Clone, Copy, Default)]
struct ColumnSummary {
    documents: u64,
    /// Number of documents with a value.
    present: u64,
    values: u64,
    minimum: u64,
    maximum: u64,
    /// The greatest common divisor of the differences of all values; 0 if there is one value only.
    divisor: u64,
}

impl ColumnSummary {
    fn add(&mut self, values: &[u64]) {
        for value in values {
            if self.values == 0 {
                (self.minimum, self.maximum) = (*value, *value);
            }
            let difference = value.abs_diff(self.minimum);
            self.divisor = greatest_common_divisor(self.divisor, difference);
            self.minimum = self.minimum.min(*value);
            self.maximum = self.maximum.max(*value);
            self.values += 1;
        }
        self.documents += 1;
        self.present += u64::from(!values.is_empty());
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    // The divisor of most columns is 1 after a few values.
    if a == 1 {
        return 1;
    }
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The documents of the block under construction.
#[derive(Default)]
struct OpenBlock {
    documents: usize,
    /// The documents with a value, by their number in the block.
    present: Vec<u16>,
    /// Of each of them, the number of values less 1.
    counts: Vec<u64>,
    /// Their values, divided.
    values: Vec<u64>,
}

struct ColumnWriter<'a> {
    file: SealedWriter,
    column: &'a Column,
    summary: ColumnSummary,
    block: OpenBlock,
    entries: Vec<u8>,
}

impl ColumnWriter<'_> {
    fn add(&mut self, values: &[u64]) -> Result<()> {
        if !values.is_empty() {
            self.block.present.push(self.block.documents as u16);
            self.block.counts.push(values.len() as u64 - 1);
            let ColumnSummary { minimum, divisor, .. } = self.summary;
            self.block.values.extend(values.iter().map(|value| (value - minimum) / divisor.max(1)));
        }
        self.block.documents += 1;
        if self.block.documents == COLUMN_BLOCK_DOCS { self.write_block() } else { Ok(()) }
    }

    fn write_block(&mut self) -> Result<()> {
        let OpenBlock { documents, present, counts, values } = std::mem::take(&mut self.block);
        let presence = Presence::choose(present.len(), documents);
        let entry = ColumnEntry {
            minimum: values.iter().copied().min().unwrap_or(0),
            maximum: values.iter().copied().max().unwrap_or(0),
            offset: self.file.position(),
            values: values.len() as u32,
            present: present.len() as u16,
            presence,
        };
        entry.write(&mut self.entries);
        let mut bytes = Vec::new();
        write_presence(presence, &present, documents, &mut bytes);
        if self.column.multi {
            write_packed(&counts, &mut bytes);
        }
        write_packed(&values, &mut bytes);
        Ok(self.file.write(&bytes)?)
    }

    fn finish(mut self, number: usize) -> Result<FileMeta> {
        if self.block.documents > 0 {
            self.write_block()?;
        }
        let ColumnSummary { documents, present, values, minimum, maximum, divisor } = self.summary;
        let tail = ColumnTail {
            documents,
            of: self.column.values,
            multi: self.column.multi,
            present,
            values,
            minimum,
            maximum,
            divisor: divisor.max(1),
            directory: self.file.position(),
        };
        debug_assert_eq!(self.entries.len() % COLUMN_ENTRY_BYTES, 0);
        self.file.write(&self.entries)?;
        let mut bytes = Vec::new();
        tail.write(&mut bytes);
        self.file.write(&bytes)?;
        seal(self.file, number, FileKind::Column)
    }
}

/// Appends which documents of a block have values.
fn write_presence(presence: Presence, present: &[u16], documents: usize, out: &mut Vec<u8>) {
    match presence {
        Presence::None | Presence::All => {}
        Presence::Sparse => present.iter().for_each(|document| out.extend(document.to_le_bytes())),
        Presence::Bitmap => {
            let mut bits = vec![0u64; documents.div_ceil(u64::BITS as usize)];
            for document in present {
                bits[usize::from(*document) / 64] |= 1 << (document % 64);
            }
            bits.iter().for_each(|word| out.extend(word.to_le_bytes()));
        }
    }
}

/// Appends values in chunks: the headers of all chunks, then their bits.
fn write_packed(values: &[u64], out: &mut Vec<u8>) {
    let headers = out.len();
    out.resize(headers + CHUNK_HEADER_BYTES * values.len().div_ceil(BLOCK), 0);
    for (number, chunk) in values.chunks(BLOCK).enumerate() {
        let WideBlock { smallest, width, .. } = WideBlock::encode(chunk, out);
        let header = &mut out[headers + CHUNK_HEADER_BYTES * number..][..CHUNK_HEADER_BYTES];
        header[..8].copy_from_slice(&smallest.to_le_bytes());
        header[8] = width;
    }
}
