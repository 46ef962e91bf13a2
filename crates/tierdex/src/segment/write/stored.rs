//! Writes `stored`: the values of documents in zstd-compressed blocks of at least 16 KiB, then an index of
//! the blocks.

use super::super::layout::{FileKind, FileMeta, push_tail};
use super::file::{create, seal};
use crate::{Error, Result, bytes::push_varint, limits::STORED_BLOCK_BYTES};
use tierdex_io::{Disk, SealedWriter};
use zstd::bulk::Compressor;

/// Compression level of zstd: the fastest regular one.
const ZSTD_LEVEL: i32 = 1;

/// Largest number of bytes of a 64-bit integer of variable length.
const VARINT_BYTES_MAX: usize = 10;

/// Compressed blocks of adjacent documents, which one thread makes.
#[derive(Default)]
pub struct StoredBlocks {
    /// Number of documents, decompressed bytes, and compressed bytes of each block.
    blocks: Vec<(u32, u32, Vec<u8>)>,
    /// The block under construction: the values of documents, and number of documents.
    raw: Vec<u8>,
    documents: u32,
    compressor: Option<Compressor<'static>>,
}

impl StoredBlocks {
    /// Appends the values of the next member of a document. Without values the member is empty.
    pub fn add_values<'v>(&mut self, mut values: impl Iterator<Item = &'v str>) {
        let mut value = values.next().unwrap_or_default();
        loop {
            let next = values.next();
            if self.raw.capacity() - self.raw.len() < value.len() + VARINT_BYTES_MAX {
                // More than needed, so that a small value behind a large one does not double the buffer.
                self.raw.reserve(value.len() + STORED_BLOCK_BYTES);
            }
            // The lowest bit: another value of the member follows.
            push_varint(&mut self.raw, (value.len() as u64) << 1 | u64::from(next.is_some()));
            self.raw.extend_from_slice(value.as_bytes());
            match next {
                Some(next) => value = next,
                None => return,
            }
        }
    }

    /// Ends a document whose members were added.
    pub fn finish_document(&mut self) -> Result<()> {
        self.documents += 1;
        if self.raw.len() >= STORED_BLOCK_BYTES { self.close_block() } else { Ok(()) }
    }

    /// Compresses the block under construction, if it has documents.
    pub fn close_block(&mut self) -> Result<()> {
        if self.documents == 0 {
            return Ok(());
        }
        let compressor = match &mut self.compressor {
            Some(compressor) => compressor,
            none => none.insert(Compressor::new(ZSTD_LEVEL).map_err(|e| pack_error(&e))?),
        };
        let packed = compressor.compress(&self.raw).map_err(|e| pack_error(&e))?;
        self.blocks.push((self.documents, self.raw.len() as u32, packed));
        self.raw.clear();
        self.documents = 0;
        Ok(())
    }
}

/// Writes compressed blocks in the order of documents.
pub struct StoredWriter {
    file: SealedWriter,
    members: usize,
    index: Vec<u8>,
    blocks: u64,
    documents: u32,
}

impl StoredWriter {
    /// Creates the file, of documents with this number of stored members.
    pub fn create(disk: &dyn Disk, segment: u64, members: usize) -> Result<StoredWriter> {
        let file = create(disk, segment, 0, FileKind::Stored)?;
        Ok(StoredWriter { file, members, index: Vec::new(), blocks: 0, documents: 0 })
    }

    /// Number of documents so far.
    pub fn documents(&self) -> u32 {
        self.documents
    }

    /// Moves the closed blocks to the file.
    pub fn add_blocks(&mut self, blocks: &mut StoredBlocks) -> Result<()> {
        let mut closed = blocks.blocks.drain(..);
        closed.try_for_each(|(documents, raw_len, packed)| self.add_block(documents, raw_len, &packed))
    }

    /// Appends a compressed block of `documents` documents and `raw_len` decompressed bytes.
    pub fn add_block(&mut self, documents: u32, raw_len: u32, packed: &[u8]) -> Result<()> {
        push_tail(&mut self.index, &[self.file.position()]);
        self.index.extend_from_slice(&self.documents.to_le_bytes());
        self.index.extend_from_slice(&raw_len.to_le_bytes());
        self.documents += documents;
        self.blocks += 1;
        Ok(self.file.write(packed)?)
    }

    /// Writes the block index and seals the file.
    pub fn finish(mut self) -> Result<FileMeta> {
        let at = self.file.position();
        self.file.write(&self.index)?;
        let mut tail = Vec::new();
        push_tail(&mut tail, &[self.blocks, at, self.members as u64]);
        self.file.write(&tail)?;
        seal(self.file, 0, FileKind::Stored)
    }
}

fn pack_error(error: &std::io::Error) -> Error {
    Error::Failed(format!("cannot pack stored text: {error}"))
}
