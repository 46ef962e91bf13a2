//! Reads the values of documents from `stored`: zstd-compressed blocks of documents, and an index of the
//! blocks.

use super::tail::read_tail;
use super::unpack::{Unpacker, new_decoder};
use crate::limits::{DOCUMENT_BYTES_MAX, VALUE_COST};
use crate::{Error, Result, bytes::ByteReader};
use std::sync::{Mutex, PoisonError};
use std::{cell::Cell, ops::Range};
use tierdex_io::SealedFile;
use zstd::stream::raw::Decoder;

/// Bytes of an entry of the block index: offset of the block u64, its first document u32, its decompressed
/// bytes u32.
const INDEX_ENTRY_BYTES: u64 = 16;

/// Looks up the stored values of a document. Binary search reads the block index from the file; nothing is
/// resident.
pub struct StoredReader {
    file: SealedFile,
    documents: u32,
    /// Number of members that each document has.
    members: usize,
    blocks: u64,
    /// Offset of the block index in the file.
    index_at: u64,
    /// For reuse: creating a decoder takes longer than decompressing a block.
    decoder: Mutex<Option<Decoder<'static>>>,
}

/// Largest number of bytes of a character in UTF-8.
const CHARACTER_BYTES_MAX: usize = 4;

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

/// What a block contains: its first document, number of documents and decompressed bytes.
struct BlockDocuments {
    first: u32,
    count: u32,
    raw_len: u32,
}

/// An entry of the block index.
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
        Ok(StoredReader { file, documents, members, blocks, index_at, decoder: Mutex::new(None) })
    }

    /// Whether blocks can be copied to a file of the current version with this number of members.
    pub fn has_current_blocks(&self, members: usize) -> bool {
        self.file.version() >= MEMBERS_VERSION && self.members == members
    }

    /// The values of each member of a document. `left` returns the number of bytes that may still be kept of
    /// the values of a member, which decreases as values are read; `None` for a member that is not wanted.
    /// Takes at most these bytes and [`UNPACK_BYTES`](super::UNPACK_BYTES) of memory, however long the
    /// document is.
    ///
    /// # Errors
    /// If the part of the block that is read is damaged.
    pub fn get<'b>(
        &self,
        document: u32,
        left: impl Fn(usize) -> Option<&'b Cell<usize>>,
    ) -> Result<StoredValues> {
        self.unpack_block(self.find_block(document)?, |unpacker, of| {
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
        self.unpack_block(number, |unpacker, of| {
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
            let number = self.find_block(*first)?;
            rest = self.unpack_block(number, |unpacker, of| {
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
        self.unpack_block(number, |unpacker, of| {
            let all = of.first..of.first + of.count;
            all.clone().try_for_each(|document| self.unpack_whole_document(unpacker, document).map(drop))?;
            unpacker.finish(u64::from(of.raw_len))?;
            Ok(all)
        })
    }

    /// Calls `body` with an unpacker at the start of a block.
    fn unpack_block<T>(
        &self,
        number: u64,
        body: impl FnOnce(&mut Unpacker<'_>, &BlockDocuments) -> Result<T>,
    ) -> Result<T> {
        let (range, of) = self.block_range(number)?;
        let damaged =
            |error| Error::corrupt(self.file.name(), range.start, format!("cannot unpack: {error}"));
        let unused = self.decoder.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut decoder = unused.map_or_else(new_decoder, Ok).map_err(damaged)?;
        let done = body(&mut Unpacker::new(&self.file, range, &mut decoder)?, &of)?;
        *self.decoder.lock().unwrap_or_else(PoisonError::into_inner) = Some(decoder);
        Ok(done)
    }

    /// The block that contains a document.
    fn find_block(&self, document: u32) -> Result<u64> {
        let (mut low, mut high) = (0, self.blocks);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.entry(middle)?.first <= document { low = middle } else { high = middle }
        }
        Ok(low)
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The documents of a block.
    pub fn block_documents(&self, number: u64) -> Result<Range<u32>> {
        let (_, of) = self.block_range(number)?;
        Ok(of.first..of.first + of.count)
    }

    /// A block in compressed form.
    pub fn block(&self, number: u64) -> Result<PackedBlock> {
        let (range, BlockDocuments { count, raw_len, .. }) = self.block_range(number)?;
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let packed = self.file.read(range.start, len)?;
        Ok(PackedBlock { documents: count, raw_len, packed })
    }

    /// Byte range of a block in the file, and its documents.
    fn block_range(&self, number: u64) -> Result<(Range<u64>, BlockDocuments)> {
        let StoredBlockEntry { at, first, raw_len } = self.entry(number)?;
        let (end, next) = if number + 1 == self.blocks {
            (self.index_at, self.documents)
        } else {
            let next = self.entry(number + 1)?;
            (next.at, next.first)
        };
        let count = next.checked_sub(first).filter(|&count| count > 0);
        let is_valid = at >= self.file.payload().start && at <= end && end <= self.index_at;
        let count = count.filter(|_| is_valid);
        let count = count.ok_or_else(|| self.corrupt(number, "blocks do not follow one another"))?;
        Ok((at..end, BlockDocuments { first, count, raw_len }))
    }

    /// The file.
    pub fn file(&self) -> &SealedFile {
        &self.file
    }

    fn entry(&self, number: u64) -> Result<StoredBlockEntry> {
        let at = self.index_at + number * INDEX_ENTRY_BYTES;
        let bytes = self.file.read(at, INDEX_ENTRY_BYTES as usize)?;
        let mut view = ByteReader::new(self.file.name(), at, &bytes);
        Ok(StoredBlockEntry { at: view.u64()?, first: view.u32()?, raw_len: view.u32()? })
    }

    fn corrupt(&self, number: u64, what: &str) -> Error {
        Error::corrupt(self.file.name(), self.index_at + number * INDEX_ENTRY_BYTES, what)
    }
}
