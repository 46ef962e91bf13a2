//! Writes `stored`: titles and texts in zstd-compressed blocks of at least 16 KiB, then an index of the
//! blocks.

use super::super::layout::{FileKind, FileMeta, push_tail};
use super::file::{create, seal};
use crate::{Error, Result, bytes::push_bytes, limits::STORED_BLOCK_BYTES};
use tierdex_io::{Disk, SealedWriter};
use zstd::bulk::Compressor;

/// Compression level of zstd: the fastest regular one.
const ZSTD_LEVEL: i32 = 1;

/// Compressed blocks of adjacent documents, which one thread makes.
#[derive(Default)]
pub struct StoredBlocks {
    /// Number of documents, decompressed bytes, and compressed bytes of each block.
    blocks: Vec<(u32, u32, Vec<u8>)>,
    /// The block under construction: titles and texts, and number of documents.
    raw: Vec<u8>,
    documents: u32,
    compressor: Option<Compressor<'static>>,
}

impl StoredBlocks {
    /// Appends the next document.
    pub fn add(&mut self, title: &str, text: &str) -> Result<()> {
        push_bytes(&mut self.raw, title.as_bytes());
        push_bytes(&mut self.raw, text.as_bytes());
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
    index: Vec<u8>,
    blocks: u64,
    documents: u32,
}

impl StoredWriter {
    /// Creates the file.
    pub fn create(disk: &dyn Disk, segment: u64) -> Result<StoredWriter> {
        let file = create(disk, segment, 0, FileKind::Stored)?;
        Ok(StoredWriter { file, index: Vec::new(), blocks: 0, documents: 0 })
    }

    /// Appends blocks, all of them closed.
    pub fn add_blocks(&mut self, blocks: &StoredBlocks) -> Result<()> {
        debug_assert!(blocks.raw.is_empty(), "the last block is closed");
        for (documents, raw_len, packed) in &blocks.blocks {
            self.add_block(*documents, *raw_len, packed)?;
        }
        Ok(())
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
        push_tail(&mut tail, &[self.blocks, at]);
        self.file.write(&tail)?;
        seal(self.file, 0, FileKind::Stored)
    }
}

fn pack_error(error: &std::io::Error) -> Error {
    Error::Failed(format!("cannot pack stored text: {error}"))
}
