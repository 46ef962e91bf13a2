//! Reads the values of documents from `stored`: zstd-compressed blocks of documents, and an index of the
//! blocks.

use super::source::{BlockSource, FILES};
use super::tail::read_tail;
use super::unpack::{Unpacker, new_decoder};
use crate::limits::{DOCUMENT_BYTES_MAX, VALUE_COST};
use crate::{Error, Result};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::{cell::Cell, ops::Range};
use tierdex_io::{PAGE, SealedFile};
use zstd::stream::raw::Decoder;

/// Bytes of an entry of the block index: offset of the block u64, its first document u32, its decompressed
/// bytes u32.
const INDEX_ENTRY_BYTES: u64 = 16;

/// Looks up the stored values of a document. Of each page of the block index that a binary search has visited
/// the first entry stays resident: 24 bytes for 256 blocks, of 4 MiB of documents. Once they are, a look-up
/// reads one page of the index.
pub struct StoredReader {
    file: Arc<SealedFile>,
    documents: u32,
    /// Number of members that each document has.
    members: usize,
    blocks: u64,
    /// Offset of the block index in the file.
    index_at: u64,
    /// For each page of the file in which entries of the block index end, the first of them.
    page_entries: Box<[OnceLock<StoredBlockEntry>]>,
    /// For reuse: creating a decoder takes longer than decompressing a block.
    decoder: Mutex<Option<Decoder<'static>>>,
}

/// Largest number of bytes of a character in UTF-8.
pub const CHARACTER_BYTES_MAX: usize = 4;

/// The values of each stored member of a document.
pub type StoredValues = Vec<Vec<String>>;

/// The first version in which documents have members; before, each had a title and a text.
const MEMBERS_VERSION: u16 = 7;

/// A compressed block as stored in the file.
pub struct PackedBlock {
    /// Number of documents in the block.
    pub documents: u32,
    /// Decompressed bytes.
    pub raw_len: u32,
    /// Compressed bytes.
    pub packed: Vec<u8>,
}

/// A block: its byte range in the file, its first document, number of documents and decompressed bytes.
struct StoredBlock {
    range: Range<u64>,
    first: u32,
    count: u32,
    raw_len: u32,
}

/// An entry of the block index.
#[derive(Clone, Copy)]
struct StoredBlockEntry {
    at: u64,
    first: u32,
    raw_len: u32,
}

impl StoredReader {
    pub(super) fn open(file: SealedFile, documents: u32, members_max: usize) -> Result<StoredReader> {
        let (blocks, index_at, members, tail_bytes) = if file.version() < MEMBERS_VERSION {
            let [blocks, index_at] = read_tail::<2>(&file)?;
            (blocks, index_at, 2, 16)
        } else {
            let [blocks, index_at, members] = read_tail::<3>(&file)?;
            (blocks, index_at, members, 24)
        };
        let payload = file.payload();
        let end = blocks
            .checked_mul(INDEX_ENTRY_BYTES)
            .and_then(|len| index_at.checked_add(len)?.checked_add(tail_bytes));
        let fits = index_at >= payload.start && end == Some(payload.end);
        // A segment that is older than members of the schema has fewer.
        let fits = fits && (1..=members_max as u64).contains(&members);
        if !fits || (blocks == 0) != (documents == 0) || blocks > u64::from(documents) {
            return Err(Error::corrupt(file.name(), payload.end, "the tail does not fit the file"));
        }
        let members = members as usize;
        let last_pages = [1, blocks].map(|entries| (index_at + INDEX_ENTRY_BYTES * entries - 1) / PAGE);
        let index_pages = if blocks == 0 { 0 } else { last_pages[1] - last_pages[0] + 1 };
        let page_entries = (0..index_pages).map(|_| OnceLock::new()).collect();
        let (file, decoder) = (Arc::new(file), Mutex::new(None));
        Ok(StoredReader { file, documents, members, blocks, index_at, page_entries, decoder })
    }

    /// Whether blocks can be copied to a file of the current version with this number of members.
    pub fn has_current_blocks(&self, members: usize) -> bool {
        self.file.version() >= MEMBERS_VERSION && self.members == members
    }

    /// The values of each member of a document, read from `source`. `left` returns the number of bytes that
    /// may still be kept of the values of a member, which decreases as values are read; `None` for a member
    /// that is not wanted. Takes at most these bytes and [`UNPACK_BYTES`](super::UNPACK_BYTES) of memory,
    /// however long the document is.
    ///
    /// # Errors
    /// If the part of the block that is read is damaged.
    pub fn get<'b>(
        &self,
        document: u32,
        source: &dyn BlockSource,
        left: impl Fn(usize) -> Option<&'b Cell<usize>>,
    ) -> Result<StoredValues> {
        self.unpack_block(&self.find_block(document, source)?, source, |unpacker, of| {
            for _ in of.first..document {
                self.unpack_document(unpacker, |_| None)?;
            }
            self.unpack_document(unpacker, &left)
        })
    }

    /// Calls `body` with the values of each document of a block.
    ///
    /// # Errors
    /// If the block is damaged, or a document has more than [`DOCUMENT_BYTES_MAX`].
    pub fn for_each_of_block(
        &self,
        number: u64,
        mut body: impl FnMut(StoredValues) -> Result<()>,
    ) -> Result<()> {
        self.unpack_block(&self.block_at(number)?, &FILES, |unpacker, of| {
            let mut all = of.first..of.first + of.count;
            all.try_for_each(|document| body(self.unpack_whole_document(unpacker, document)?))?;
            unpacker.finish(u64::from(of.raw_len))
        })
    }

    /// Calls `body` with the values of each of these documents, which ascend. Each block is unpacked once.
    ///
    /// # Errors
    /// As [`StoredReader::for_each_of_block`], and those of `body`.
    pub fn for_each_of(
        &self,
        documents: &[u32],
        mut body: impl FnMut(u32, StoredValues) -> Result<()>,
    ) -> Result<()> {
        let mut rest = documents;
        while let Some(first) = rest.first() {
            rest = self.unpack_block(&self.find_block(*first, &FILES)?, &FILES, |unpacker, of| {
                let end = of.first + of.count;
                let (wanted, others) = rest.split_at(rest.partition_point(|document| *document < end));
                let mut next = of.first;
                for &document in wanted {
                    (next..document).try_for_each(|_| self.unpack_document(unpacker, |_| None).map(drop))?;
                    body(document, self.unpack_whole_document(unpacker, document)?)?;
                    next = document + 1;
                }
                Ok(others)
            })?;
        }
        Ok(())
    }

    fn unpack_whole_document(&self, unpacker: &mut Unpacker<'_>, document: u32) -> Result<StoredValues> {
        // A value that is truncated leaves less than the bytes of a character.
        let left = Cell::new(DOCUMENT_BYTES_MAX + CHARACTER_BYTES_MAX);
        let values = self.unpack_document(unpacker, |_| Some(&left))?;
        if left.get() < CHARACTER_BYTES_MAX {
            let what = format!("document {document} of the segment has more than {DOCUMENT_BYTES_MAX} bytes");
            return Err(Error::corrupt(self.file.name(), 0, what));
        }
        Ok(values)
    }

    fn unpack_document<'b>(
        &self,
        unpacker: &mut Unpacker<'_>,
        left: impl Fn(usize) -> Option<&'b Cell<usize>>,
    ) -> Result<StoredValues> {
        let is_old = self.file.version() < MEMBERS_VERSION;
        let values_of = |member| {
            let mut values = Vec::new();
            loop {
                let left = left(member);
                let max = left.map_or(0, Cell::get);
                let (value, more) =
                    if is_old { (unpacker.string(max)?, false) } else { unpacker.value(max)? };
                if let Some(left) = left.filter(|_| max > 0) {
                    let cost = if values.is_empty() { 0 } else { VALUE_COST };
                    left.set((max - value.len()).saturating_sub(cost));
                    values.push(value);
                }
                if !more {
                    return Ok(values);
                }
            }
        };
        (0..self.members).map(values_of).collect()
    }

    /// Decompresses and checks a whole block; returns the range of its documents.
    pub fn check_block(&self, number: u64) -> Result<Range<u32>> {
        self.unpack_block(&self.block_at(number)?, &FILES, |unpacker, of| {
            let all = of.first..of.first + of.count;
            all.clone().try_for_each(|document| self.unpack_whole_document(unpacker, document).map(drop))?;
            unpacker.finish(u64::from(of.raw_len))?;
            Ok(all)
        })
    }

    /// Calls `body` with an unpacker at the start of a block.
    fn unpack_block<T>(
        &self,
        block: &StoredBlock,
        source: &dyn BlockSource,
        body: impl FnOnce(&mut Unpacker<'_>, &StoredBlock) -> Result<T>,
    ) -> Result<T> {
        let damaged =
            |error| Error::corrupt(self.file.name(), block.range.start, format!("cannot unpack: {error}"));
        let unused = self.decoder.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut decoder = unused.map_or_else(new_decoder, Ok).map_err(damaged)?;
        let done = body(&mut Unpacker::new(&self.file, source, block.range.clone(), &mut decoder)?, block)?;
        *self.decoder.lock().unwrap_or_else(PoisonError::into_inner) = Some(decoder);
        Ok(done)
    }

    /// The block that contains a document. Searches the first entries of the pages of the block index, then
    /// the page.
    fn find_block(&self, document: u32, source: &dyn BlockSource) -> Result<StoredBlock> {
        if document >= self.documents {
            return Err(self.corrupt(self.blocks, "there is no such document"));
        }
        let (mut low, mut high) = (0, self.page_entries.len());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.page_entry(middle, source)?.first <= document { low = middle } else { high = middle }
        }
        // All of them are within the page.
        let others = self.first_of_page(low) + 1..self.first_of_page(low + 1);
        let bytes = self.read_entries(others.clone(), source)?;
        let entries = bytes.as_chunks().0;
        let before = entries.partition_point(|bytes| StoredBlockEntry::of(bytes).first <= document);
        let entry = match before.checked_sub(1) {
            Some(last) => StoredBlockEntry::of(&entries[last]),
            None => self.page_entry(low, source)?,
        };
        let next = match entries.get(before) {
            Some(bytes) => StoredBlockEntry::of(bytes),
            None if others.end < self.blocks => self.page_entry(low + 1, source)?,
            None => self.end_entry(),
        };
        let number = others.start - 1 + before as u64;
        let block = self.block_between(number, entry, next)?;
        if !(block.first..block.first + block.count).contains(&document) {
            return Err(self.corrupt(number, "blocks are not in the order of documents"));
        }
        Ok(block)
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Bytes in memory of the first entries of the pages of the block index.
    pub fn memory(&self) -> u64 {
        size_of_val(&*self.page_entries) as u64
    }

    /// The documents of a block.
    pub fn block_documents(&self, number: u64) -> Result<Range<u32>> {
        let block = self.block_at(number)?;
        Ok(block.first..block.first + block.count)
    }

    /// A block in compressed form.
    pub fn block(&self, number: u64) -> Result<PackedBlock> {
        let StoredBlock { range, count, raw_len, .. } = self.block_at(number)?;
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let packed = self.file.read(range.start, len)?;
        Ok(PackedBlock { documents: count, raw_len, packed })
    }

    /// The file.
    pub fn file(&self) -> &Arc<SealedFile> {
        &self.file
    }

    /// The block with this number.
    fn block_at(&self, number: u64) -> Result<StoredBlock> {
        let bytes = self.read_entries(number..self.blocks.min(number + 2), &FILES)?;
        let mut entries = bytes.as_chunks().0.iter().map(StoredBlockEntry::of);
        let entry = entries.next().ok_or_else(|| self.corrupt(number, "there is no such block"))?;
        self.block_between(number, entry, entries.next().unwrap_or_else(|| self.end_entry()))
    }

    /// The block of an entry, which ends where that of the next entry starts.
    fn block_between(
        &self,
        number: u64,
        entry: StoredBlockEntry,
        next: StoredBlockEntry,
    ) -> Result<StoredBlock> {
        let StoredBlockEntry { at, first, raw_len } = entry;
        let count = next.first.checked_sub(first).filter(|&count| count > 0);
        let is_valid = at >= self.file.payload().start && at <= next.at && next.at <= self.index_at;
        let count = count.filter(|_| is_valid);
        let count = count.ok_or_else(|| self.corrupt(number, "blocks do not follow one another"))?;
        Ok(StoredBlock { range: at..next.at, first, count, raw_len })
    }

    /// What follows the last entry.
    fn end_entry(&self) -> StoredBlockEntry {
        StoredBlockEntry { at: self.index_at, first: self.documents, raw_len: 0 }
    }

    /// The first entry that ends in a page of the index, which may begin in the page before.
    fn page_entry(&self, page: usize, source: &dyn BlockSource) -> Result<StoredBlockEntry> {
        let entry = &self.page_entries[page];
        if let Some(entry) = entry.get() {
            return Ok(*entry);
        }
        let number = self.first_of_page(page);
        let bytes = self.read_entries(number..number + 1, source)?;
        let read = bytes.first_chunk().map(StoredBlockEntry::of);
        let read = read.ok_or_else(|| self.corrupt(number, "there is no such block"))?;
        Ok(*entry.get_or_init(|| read))
    }

    /// Number of the first entry that ends in a page of the index; the number of blocks behind the last page.
    fn first_of_page(&self, page: usize) -> u64 {
        let first_page = (self.index_at + INDEX_ENTRY_BYTES - 1) / PAGE;
        let start = (first_page + page as u64) * PAGE;
        (start.saturating_sub(self.index_at) / INDEX_ENTRY_BYTES).min(self.blocks)
    }

    fn read_entries(&self, numbers: Range<u64>, source: &dyn BlockSource) -> Result<Vec<u8>> {
        let [start, end] =
            [numbers.start, numbers.end].map(|number| self.index_at + number * INDEX_ENTRY_BYTES);
        let mut bytes = Vec::new();
        source.read(&self.file, start..end, &mut bytes)?;
        Ok(bytes)
    }

    fn corrupt(&self, number: u64, what: &str) -> Error {
        Error::corrupt(self.file.name(), self.index_at + number * INDEX_ENTRY_BYTES, what)
    }
}

impl StoredBlockEntry {
    fn of(bytes: &[u8; INDEX_ENTRY_BYTES as usize]) -> StoredBlockEntry {
        let [a, b, c, d, e, f, g, h, first @ .., i, j, k, l] = *bytes;
        StoredBlockEntry {
            at: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            first: u32::from_le_bytes(first),
            raw_len: u32::from_le_bytes([i, j, k, l]),
        }
    }
}

#[cfg(test)]
mod tests;
