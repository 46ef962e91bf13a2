//! Titles and texts.

use super::read_tail;
use super::unpack::{Unpacker, decoder};
use crate::bytes::View;
use crate::error::{Error, Result};
use crate::limits::{DOCUMENT_BYTES_MAX, PREVIEW_TEXT_BYTES, PREVIEW_TITLE_BYTES, STORED_BLOCK_BYTES_MAX};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use tierdex_io::SealedFile;
use zstd::bulk::Decompressor;
use zstd::stream::raw::Decoder;

/// Bytes of an entry of the block index: place u64, first document u32, unpacked bytes u32.
const ENTRY: u64 = 16;

/// Finds title and text of a document. The block index is searched in the file; nothing is resident.
pub struct StoredReader {
    file: SealedFile,
    documents: u32,
    blocks: u64,
    index_at: u64,
    /// Kept between calls, because making one takes longer than unpacking a block.
    unpacker: Mutex<Option<Decompressor<'static>>>,
    previewer: Mutex<Option<Decoder<'static>>>,
}

/// What is kept of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its title, possibly empty.
    pub title: String,
    /// Its text.
    pub text: String,
}

/// A packed block as it stands in the file.
pub struct PackedBlock {
    /// First document of the block.
    pub first: u32,
    /// Documents in the block.
    pub documents: u32,
    /// Unpacked bytes.
    pub raw_len: u32,
    /// Packed bytes.
    pub packed: Vec<u8>,
    at: u64,
}

impl PackedBlock {
    /// Offset in the file.
    pub fn offset(&self) -> u64 {
        self.at
    }
}

/// The documents of a block, and the bytes to which it unpacks.
struct Documents {
    first: u32,
    count: u32,
    raw_len: u32,
}

struct Entry {
    at: u64,
    first: u32,
    raw_len: u32,
}

impl StoredReader {
    pub(super) fn open(file: SealedFile, documents: u32) -> Result<StoredReader> {
        let [blocks, index_at] = read_tail::<2>(&file)?;
        let payload = file.payload();
        let end = blocks.checked_mul(ENTRY).and_then(|len| index_at.checked_add(len)?.checked_add(16));
        let fits = index_at >= payload.start && end == Some(payload.end);
        if !fits || (blocks == 0) != (documents == 0) || blocks > u64::from(documents) {
            return Err(Error::corrupt(file.name(), payload.end, "the tail does not fit the file"));
        }
        Ok(StoredReader {
            file,
            documents,
            blocks,
            index_at,
            unpacker: Mutex::new(None),
            previewer: Mutex::new(None),
        })
    }

    /// Title and text of a document, cut to their first [`PREVIEW_TITLE_BYTES`] and [`PREVIEW_TEXT_BYTES`]. What this
    /// takes of memory does not depend on the document: these, and [`UNPACK_BYTES`](super::UNPACK_BYTES).
    ///
    /// # Errors
    /// If the block is damaged, as far as it was read.
    pub fn preview(&self, document: u32) -> Result<Stored> {
        let (range, of) = self.range(self.find(document)?)?;
        let damaged =
            |error| Error::corrupt(self.file.name(), range.start, format!("cannot unpack: {error}"));
        let kept = self.previewer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut decoder = kept.map_or_else(decoder, Ok).map_err(damaged)?;
        let mut unpacker = Unpacker::new(&self.file, range, &mut decoder)?;
        for _ in of.first..document {
            unpacker.string(0)?;
            unpacker.string(0)?;
        }
        let title = unpacker.string(PREVIEW_TITLE_BYTES)?;
        let stored = Stored { title, text: unpacker.string(PREVIEW_TEXT_BYTES)? };
        *self.previewer.lock().unwrap_or_else(PoisonError::into_inner) = Some(decoder);
        Ok(stored)
    }

    /// Title and text of a document.
    pub fn get(&self, document: u32) -> Result<Stored> {
        let block = self.block(self.find(document)?)?;
        let mut found = None;
        let wanted = document.wrapping_sub(block.first);
        self.unpack(&block, |place, title, text| {
            if place == wanted {
                found = Some(Stored { title: title.to_string(), text: text.to_string() });
            }
        })?;
        found.ok_or_else(|| Error::corrupt(self.file.name(), block.at, "document is not in its block"))
    }

    /// The block that holds a document.
    fn find(&self, document: u32) -> Result<u64> {
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

    /// A block, still packed.
    pub fn block(&self, number: u64) -> Result<PackedBlock> {
        let (range, Documents { first, count, raw_len }) = self.range(number)?;
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let packed = self.file.read(range.start, len)?;
        Ok(PackedBlock { first, documents: count, raw_len, packed, at: range.start })
    }

    /// Where a block is in the file, and what it holds.
    fn range(&self, number: u64) -> Result<(Range<u64>, Documents)> {
        let Entry { at, first, raw_len } = self.entry(number)?;
        let (end, next) = if number + 1 == self.blocks {
            (self.index_at, self.documents)
        } else {
            let next = self.entry(number + 1)?;
            (next.at, next.first)
        };
        let count = next.checked_sub(first).filter(|&count| count > 0);
        let sane = at >= self.file.payload().start && at <= end && end <= self.index_at;
        let count = count.filter(|_| sane);
        let count = count.ok_or_else(|| self.corrupt(number, "blocks do not follow one another"))?;
        Ok((at..end, Documents { first, count, raw_len }))
    }

    /// Calls `body` with place in the block, title and text of each of its documents.
    pub fn unpack(&self, block: &PackedBlock, mut body: impl FnMut(u32, &str, &str)) -> Result<()> {
        if block.raw_len as usize > STORED_BLOCK_BYTES_MAX {
            return Err(Error::corrupt(self.file.name(), block.at, "block claims to be impossibly large"));
        }
        let damaged = |error| Error::corrupt(self.file.name(), block.at, format!("cannot unpack: {error}"));
        let kept = self.unpacker.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut unpacker = kept.map_or_else(Decompressor::new, Ok).map_err(damaged)?;
        let raw = unpacker.decompress(&block.packed, block.raw_len as usize).map_err(damaged)?;
        *self.unpacker.lock().unwrap_or_else(PoisonError::into_inner) = Some(unpacker);
        if raw.len() != block.raw_len as usize {
            return Err(Error::corrupt(self.file.name(), block.at, "unpacks to another length"));
        }
        let mut view = View::new(self.file.name(), block.at, &raw);
        for place in 0..block.documents {
            let title = view.string(DOCUMENT_BYTES_MAX)?;
            let text = view.string(DOCUMENT_BYTES_MAX)?;
            body(place, title, text);
        }
        view.finish()
    }

    /// Name of the file, for messages.
    pub fn name(&self) -> &str {
        self.file.name()
    }

    pub(super) fn file(&self) -> &SealedFile {
        &self.file
    }

    fn entry(&self, number: u64) -> Result<Entry> {
        let at = self.index_at + number * ENTRY;
        let bytes = self.file.read(at, ENTRY as usize)?;
        let mut view = View::new(self.file.name(), at, &bytes);
        Ok(Entry { at: view.u64()?, first: view.u32()?, raw_len: view.u32()? })
    }

    fn corrupt(&self, number: u64, what: &str) -> Error {
        Error::corrupt(self.file.name(), self.index_at + number * ENTRY, what)
    }
}
