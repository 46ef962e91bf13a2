//! Writes encoded posting lists: full blocks to `postings` and `positions`, and at the end of each list its
//! skip record to `skips`.
//!
//! A list shorter than one block is stored inline in its skip record. The record of a longer list has three
//! parts (docs/format/skips.md): max share and last document of each superblock of 32 blocks; an entry for
//! each superblock, with its offsets, and the last documents, max shares and lengths of its blocks; and the
//! impacts, superblock by superblock.

use super::super::layout::{
    CHUNK_ALIGNMENT_BYTES_MAX, CHUNK_SUPERBLOCKS_MAX, FileKind, FileMeta, ListSizes, chunk_alignment,
};
use super::file::{create, seal};
use super::superblock::{Superblock, push_u16};
use crate::{Error, Result, bytes::push_varint, limits::SUPERBLOCK, schema::Field};
use std::ops::Range;
use tierdex_io::{Disk, SealedWriter};

/// Writes the posting lists of one field.
pub(super) struct ListsWriter {
    skips: SealedWriter,
    postings: SealedWriter,
    /// Every chunk in `postings` starts at a multiple of this number of bytes.
    alignment: usize,
    /// Whether all documents of every chunk precede all its frequencies: uncompressed documents beside
    /// compressed frequencies are then aligned, and can be used in place.
    documents_first: bool,
    positions: Option<SealedWriter>,
    chunk: ListChunk,
    record: SkipRecordBuilder,
    sizes: ListSizes,
    /// Scratch buffer for bytes to write.
    bytes: Vec<u8>,
}

/// Superblocks that are written together. If their frequencies take more bytes than their documents, all
/// documents are written before all frequencies: where documents are dense, most queries that read all of
/// them need few frequencies. Uncompressed documents are also written before compressed frequencies.
/// Otherwise the frequencies of each block follow its documents.
#[derive(Default)]
struct ListChunk {
    /// Encoded documents, and encoded frequencies, of all blocks.
    docs: Vec<u8>,
    freqs: Vec<u8>,
    /// For each block: bytes of its documents and of its frequencies.
    lens: Vec<[u16; 2]>,
}

/// The skip record of the current list.
#[derive(Default)]
struct SkipRecordBuilder {
    /// Offsets of the list in `postings` and in `positions`.
    starts: [u64; 2],
    /// Max share and last document of each superblock.
    max_shares: Vec<u8>,
    last: Vec<u8>,
    /// Entries of the superblocks whose offsets in `postings` are known.
    entries: Vec<u8>,
    /// Entries of the superblocks in the chunk, without these offsets, and the length of each.
    pending: Vec<u8>,
    pending_lens: Vec<usize>,
    impacts: Vec<u8>,
    /// For the superblock that is not full: the offset of its positions, relative to the list, and the bytes
    /// of the positions of each of its blocks.
    positions_start: Option<u64>,
    positions_lens: Vec<u8>,
    blocks: usize,
}

impl ListsWriter {
    /// Creates the files.
    pub(super) fn new(disk: &dyn Disk, segment: u64, number: usize, field: &Field) -> Result<ListsWriter> {
        let file = |kind| create(disk, segment, number, kind);
        Ok(ListsWriter {
            skips: file(FileKind::Skips)?,
            postings: file(FileKind::Postings)?,
            alignment: chunk_alignment(field),
            documents_first: field.doc_codec.is_uncompressed() && !field.freq_codec.is_uncompressed(),
            positions: field.positions.then(|| file(FileKind::Positions)).transpose()?,
            chunk: ListChunk::default(),
            record: SkipRecordBuilder::default(),
            sizes: ListSizes::default(),
            bytes: Vec::new(),
        })
    }

    /// Sizes of the lists so far.
    pub(super) fn sizes(&self) -> ListSizes {
        self.sizes
    }

    /// Offset in `skips` of the end of the last record.
    pub(super) fn skips_end(&self) -> u64 {
        self.skips.position()
    }

    /// Appends the encoded positions of the next block of the current list.
    pub(super) fn add_positions(&mut self, bytes: &[u8]) -> Result<()> {
        let (record, Some(positions)) = (&mut self.record, &mut self.positions) else { return Ok(()) };
        let starts_superblock = record.positions_lens.is_empty();
        if starts_superblock && record.blocks == 0 {
            record.starts[1] = positions.position();
        }
        if starts_superblock {
            record.positions_start = Some(positions.position() - record.starts[1]);
        }
        positions.write(bytes)?;
        record.positions_lens.extend_from_slice(&length_to_u32(bytes.len())?.to_le_bytes());
        Ok(())
    }

    /// Appends a closed superblock to the current list, whose previous superblocks are full. Positions of its
    /// blocks were added before.
    pub(super) fn add_superblock(&mut self, superblock: &Superblock) -> Result<()> {
        self.chunk.append(superblock);
        self.record.append(superblock)?;
        if self.chunk.lens.len() >= CHUNK_SUPERBLOCKS_MAX * SUPERBLOCK { self.write_chunk() } else { Ok(()) }
    }

    /// Writes the superblocks of the chunk, and adds their offsets to the record.
    fn write_chunk(&mut self) -> Result<()> {
        let misaligned = self.postings.position() as usize % self.alignment;
        let padding = (self.alignment - misaligned) % self.alignment;
        self.postings.write(&[0; CHUNK_ALIGNMENT_BYTES_MAX][..padding])?;
        if self.record.entries.is_empty() {
            self.record.starts[0] = self.postings.position();
        }
        let chunk = &self.chunk;
        self.sizes.docs_bytes += chunk.docs.len() as u64;
        self.sizes.freqs_bytes += chunk.freqs.len() as u64;
        let mut offset = self.postings.position() - self.record.starts[0];
        let documents_first = self.documents_first || chunk.freqs.len() > chunk.docs.len();
        let mut freqs_offset = offset + chunk.docs.len() as u64;
        let record = &mut self.record;
        let mut entries = &record.pending[..];
        for (lens, entry_len) in chunk.lens.chunks(SUPERBLOCK).zip(&record.pending_lens) {
            let sum = |part: usize| lens.iter().map(|lens| u64::from(lens[part])).sum::<u64>();
            let freqs = if documents_first { freqs_offset } else { offset + u64::from(lens[0][0]) };
            let (entry, rest) = entries.split_at(*entry_len);
            entries = rest;
            record.entries.extend_from_slice(&offset.to_le_bytes());
            record.entries.extend_from_slice(&freqs.to_le_bytes());
            record.entries.extend_from_slice(entry);
            offset += sum(0) + if documents_first { 0 } else { sum(1) };
            freqs_offset += sum(1);
        }
        record.pending.clear();
        record.pending_lens.clear();
        if documents_first {
            self.postings.write(&chunk.docs)?;
            self.postings.write(&chunk.freqs)?;
        } else {
            let (mut docs, mut freqs) = (&chunk.docs[..], &chunk.freqs[..]);
            self.bytes.clear();
            for [docs_len, freqs_len] in &chunk.lens {
                for (bytes, len) in [(&mut docs, docs_len), (&mut freqs, freqs_len)] {
                    let (block, rest) = bytes.split_at(usize::from(*len));
                    self.bytes.extend_from_slice(block);
                    *bytes = rest;
                }
            }
            self.postings.write(&self.bytes)?;
        }
        self.chunk.clear();
        Ok(())
    }

    /// Writes a whole list shorter than a block, and its positions, as the current list.
    pub(super) fn add_inline_list(&mut self, positions: &[u8], list: &[u8]) -> Result<()> {
        self.bytes.clear();
        if let Some(file) = &mut self.positions {
            push_varint(&mut self.bytes, file.position());
            push_varint(&mut self.bytes, positions.len() as u64);
            file.write(positions)?;
        }
        self.bytes.extend_from_slice(list);
        self.sizes.inline_bytes += self.bytes.len() as u64;
        Ok(self.skips.write(&self.bytes)?)
    }

    /// Ends the current list and writes its skip record. Returns the byte range of its blocks in `postings`;
    /// `None` for an inline list.
    pub(super) fn finish_list(&mut self) -> Result<Option<Range<u64>>> {
        if self.record.blocks == 0 {
            return Ok(None);
        }
        if !self.chunk.lens.is_empty() {
            self.write_chunk()?;
        }
        self.bytes.clear();
        self.record.write(self.positions.is_some(), &mut self.bytes);
        self.skips.write(&self.bytes)?;
        let start = self.record.starts[0];
        self.record.clear();
        Ok(Some(start..self.postings.position()))
    }

    /// Seals the files and returns their manifest entries.
    pub(super) fn finish(self, number: usize) -> Result<Vec<FileMeta>> {
        let mut files = vec![
            seal(self.skips, number, FileKind::Skips)?,
            seal(self.postings, number, FileKind::Postings)?,
        ];
        if let Some(positions) = self.positions {
            files.push(seal(positions, number, FileKind::Positions)?);
        }
        Ok(files)
    }
}

impl ListChunk {
    fn append(&mut self, superblock: &Superblock) {
        self.docs.extend_from_slice(&superblock.docs);
        self.freqs.extend_from_slice(&superblock.freqs);
        let lens =
            |lens: &[u8]| lens.as_chunks().0.iter().map(|len| u16::from_le_bytes(*len)).collect::<Vec<_>>();
        let (docs, freqs) = (lens(&superblock.docs_lens), lens(&superblock.freqs_lens));
        self.lens.extend(docs.into_iter().zip(freqs).map(|(docs, freqs)| [docs, freqs]));
    }

    fn clear(&mut self) {
        self.docs.clear();
        self.freqs.clear();
        self.lens.clear();
    }
}

impl SkipRecordBuilder {
    /// Appends a superblock, without its offsets in `postings`.
    fn append(&mut self, superblock: &Superblock) -> Result<()> {
        let before = self.last.last_chunk().copied().unwrap_or(u32::MAX.to_le_bytes());
        self.max_shares.extend_from_slice(&superblock.max_share.to_le_bytes());
        self.last.extend_from_slice(&superblock.last_document().to_le_bytes());

        let start = self.pending.len();
        if let Some(positions) = self.positions_start.take() {
            self.pending.extend_from_slice(&positions.to_le_bytes());
        }
        self.pending.extend_from_slice(&length_to_u32(self.impacts.len())?.to_le_bytes());
        push_u16(&mut self.pending, superblock.impacts.len());
        self.pending.extend_from_slice(&before);
        for array in [
            &superblock.last,
            &superblock.block_max_shares,
            &superblock.docs_lens,
            &superblock.freqs_lens,
            &self.positions_lens,
            &superblock.impact_lens,
        ] {
            self.pending.extend_from_slice(array);
        }
        self.positions_lens.clear();
        self.pending_lens.push(self.pending.len() - start);

        self.impacts.extend_from_slice(&superblock.impacts);
        self.impacts.extend_from_slice(&superblock.block_impacts);
        self.blocks += superblock.blocks;
        Ok(())
    }

    /// Appends the encoded record.
    fn write(&self, positions: bool, out: &mut Vec<u8>) {
        if positions {
            out.extend_from_slice(&self.starts[1].to_le_bytes());
        }
        for part in [&self.max_shares, &self.last, &self.entries, &self.impacts] {
            out.extend_from_slice(part);
        }
    }

    fn clear(&mut self) {
        *self = SkipRecordBuilder::default();
    }
}

/// A length in bytes as the skip record stores it.
fn length_to_u32(len: usize) -> Result<u32> {
    u32::try_from(len)
        .map_err(|_| Error::TooLarge(format!("{len} bytes in one block of a list are too many")))
}
