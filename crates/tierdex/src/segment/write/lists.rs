//! Posting lists: blocks go to `docs`, `freqs` and `positions` as they fill; the skip record follows at the end.
//!
//! A list shorter than one block stands whole in its record. The record of a longer one is arrays, each laid
//! out contiguously (docs/format/skips.md):
//! places of the list's blocks; for each superblock of 32 blocks its distances and bound; for each block its
//! last document, bound and lengths; then the impacts, superblock by superblock.

use super::super::layout::{FileKind, FileMeta, bound_units};
use super::{create, seal};
use crate::bytes::push_varint;
use crate::error::{Error, Result};
use crate::limits::{BLOCK, SUPERBLOCK};
use crate::schema::Field;
use crate::transform::block::{Block, BlockEncoder};
use crate::transform::impact::{self, BLOCK_FRONT_BYTES_MAX, Impact, SUPERBLOCK_FRONT_BYTES_MAX};
use std::ops::Range;
use tierdex_io::{Disk, SealedWriter};

/// Share of `k1 + 1` that an impact earns with the default parameters in a segment.
pub(super) type Share<'a> = &'a dyn Fn(Impact) -> f64;

/// Writes the lists of one field.
pub(super) struct ListsWriter<'a> {
    norms: &'a [u8],
    share: Share<'a>,
    encoder: BlockEncoder,
    skips: SealedWriter,
    docs: SealedWriter,
    freqs: SealedWriter,
    positions: Option<SealedWriter>,
    pending: Pending,
    record: Record,
    bytes: Vec<u8>,
}

/// Postings of the block that is filling.
#[derive(Default)]
struct Pending {
    before: u32,
    documents: Vec<u32>,
    frequencies: Vec<u32>,
    positions: Vec<u32>,
}

/// The arrays of a record in the making.
#[derive(Default)]
struct Record {
    starts: [u64; 3],
    superblocks: Superblocks,
    last: Vec<u8>,
    bounds: Vec<u8>,
    docs_lens: Vec<u8>,
    freqs_lens: Vec<u8>,
    positions_lens: Vec<u8>,
    front_lens: Vec<u8>,
    /// Fronts of the present superblock's blocks: as bytes, and all their pairs.
    fronts: Vec<u8>,
    pairs: Vec<Impact>,
    front: Vec<Impact>,
    bound: u16,
    blocks: usize,
}

#[derive(Default)]
struct Superblocks {
    docs: Vec<u8>,
    freqs: Vec<u8>,
    positions: Vec<u8>,
    impacts_at: Vec<u8>,
    front_lens: Vec<u8>,
    bounds: Vec<u8>,
    impacts: Vec<u8>,
}

impl<'a> ListsWriter<'a> {
    /// `norms` holds the code of every document of the segment.
    pub(super) fn new(
        disk: &dyn Disk,
        segment: u64,
        number: usize,
        field: &Field,
        norms: &'a [u8],
        share: Share<'a>,
    ) -> Result<ListsWriter<'a>> {
        let file = |kind| create(disk, segment, number, kind);
        Ok(ListsWriter {
            norms,
            share,
            encoder: BlockEncoder::new(field.doc_codec, field.freq_codec),
            skips: file(FileKind::Skips)?,
            docs: file(FileKind::Docs)?,
            freqs: file(FileKind::Freqs)?,
            positions: field.positions.then(|| file(FileKind::Positions)).transpose()?,
            pending: Pending {
                before: u32::MAX,
                documents: Vec::with_capacity(BLOCK),
                frequencies: Vec::with_capacity(BLOCK),
                positions: Vec::new(),
            },
            record: Record::default(),
            bytes: Vec::new(),
        })
    }

    /// Offset in `skips` behind the last record.
    pub(super) fn skips_end(&self) -> u64 {
        self.skips.position()
    }

    /// Appends a posting to the list in the making. Positions are empty unless the field keeps them.
    #[inline]
    pub(super) fn posting(&mut self, document: u32, frequency: u32, positions: &[u32]) -> Result<()> {
        self.pending.documents.push(document);
        self.pending.frequencies.push(frequency);
        if self.positions.is_some() {
            self.pending.positions.extend_from_slice(positions);
        }
        if self.pending.documents.len() == BLOCK { self.close_block() } else { Ok(()) }
    }

    /// Appends postings to the list in the making: documents rising, and the frequency of each. For fields without
    /// positions. Whole blocks are encoded from where they stand.
    pub(super) fn postings(&mut self, mut documents: &[u32], mut frequencies: &[u32]) -> Result<()> {
        debug_assert!(self.positions.is_none() && documents.len() == frequencies.len());
        while !documents.is_empty() {
            let filled = self.pending.documents.len();
            let count = documents.len().min(BLOCK - filled);
            let (block_documents, later_documents) = documents.split_at(count);
            let (block_frequencies, later_frequencies) = frequencies.split_at(count);
            (documents, frequencies) = (later_documents, later_frequencies);
            if count == BLOCK {
                let before = self.pending.before;
                self.write_block(Block {
                    before,
                    documents: block_documents,
                    frequencies: block_frequencies,
                    positions: &[],
                })?;
                self.pending.before = block_documents[BLOCK - 1];
                continue;
            }
            self.pending.documents.extend_from_slice(block_documents);
            self.pending.frequencies.extend_from_slice(block_frequencies);
            if filled + count == BLOCK {
                self.close_block()?;
            }
        }
        Ok(())
    }

    /// Ends the list and appends its record. Returns where its blocks of documents and of frequencies stand, if it has some.
    pub(super) fn finish_list(&mut self) -> Result<Option<[Range<u64>; 2]>> {
        let mut blocks = None;
        if self.record.blocks == 0 {
            self.write_inline()?;
        } else {
            if !self.pending.documents.is_empty() {
                self.close_block()?;
            }
            if !self.record.blocks.is_multiple_of(SUPERBLOCK) {
                self.record.close_superblock(&mut self.encoder)?;
            }
            self.bytes.clear();
            self.record.write(self.positions.is_some(), &mut self.bytes);
            self.skips.write(&self.bytes)?;
            let [docs, freqs, _] = self.record.starts;
            blocks = Some([docs..self.docs.position(), freqs..self.freqs.position()]);
            self.record.clear();
        }
        self.pending.before = u32::MAX;
        Ok(blocks)
    }

    /// Seals the files.
    pub(super) fn finish(self, number: usize) -> Result<Vec<FileMeta>> {
        let mut files = vec![
            seal(self.skips, number, FileKind::Skips)?,
            seal(self.docs, number, FileKind::Docs)?,
            seal(self.freqs, number, FileKind::Freqs)?,
        ];
        if let Some(positions) = self.positions {
            files.push(seal(positions, number, FileKind::Positions)?);
        }
        Ok(files)
    }

    fn write_inline(&mut self) -> Result<()> {
        let block = self.pending.block();
        self.bytes.clear();
        if let Some(positions) = &mut self.positions {
            push_varint(&mut self.bytes, positions.position());
            let mut encoded = Vec::new();
            self.encoder.positions(block, &mut encoded);
            positions.write(&encoded)?;
            push_varint(&mut self.bytes, encoded.len() as u64);
        }
        self.encoder.documents(block, &mut self.bytes);
        self.encoder.frequencies(block, &mut self.bytes);
        self.skips.write(&self.bytes)?;
        self.pending.clear();
        Ok(())
    }

    fn close_block(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let written = self.write_block(pending.block());
        self.pending = pending;
        self.pending.next_block();
        written
    }

    fn write_block(&mut self, block: Block<'_>) -> Result<()> {
        let record = &mut self.record;
        let ends = [
            self.docs.position(),
            self.freqs.position(),
            self.positions.as_ref().map_or(0, SealedWriter::position),
        ];
        if record.blocks == 0 {
            record.starts = ends;
        }
        if record.blocks.is_multiple_of(SUPERBLOCK) {
            record.open_superblock(ends);
        }

        self.bytes.clear();
        self.encoder.documents(block, &mut self.bytes);
        self.docs.write(&self.bytes)?;
        push_u16(&mut record.docs_lens, self.bytes.len());

        self.bytes.clear();
        self.encoder.frequencies(block, &mut self.bytes);
        self.freqs.write(&self.bytes)?;
        push_u16(&mut record.freqs_lens, self.bytes.len());

        if let Some(positions) = &mut self.positions {
            self.bytes.clear();
            self.encoder.positions(block, &mut self.bytes);
            positions.write(&self.bytes)?;
            record.positions_lens.extend_from_slice(&length(self.bytes.len())?.to_le_bytes());
        }

        self.encoder.impacts(block, self.norms, &mut record.front);
        record.close_block(block.documents[block.documents.len() - 1], self.share);
        if record.blocks.is_multiple_of(SUPERBLOCK) {
            record.close_superblock(&mut self.encoder)?;
        }
        Ok(())
    }
}

impl Pending {
    fn block(&self) -> Block<'_> {
        Block {
            before: self.before,
            documents: &self.documents,
            frequencies: &self.frequencies,
            positions: &self.positions,
        }
    }

    fn next_block(&mut self) {
        self.before = self.documents[self.documents.len() - 1];
        self.clear();
    }

    fn clear(&mut self) {
        self.documents.clear();
        self.frequencies.clear();
        self.positions.clear();
    }
}

impl Record {
    fn open_superblock(&mut self, ends: [u64; 3]) {
        let distance = |i: usize| (ends[i] - self.starts[i]).to_le_bytes();
        self.superblocks.docs.extend_from_slice(&distance(0));
        self.superblocks.freqs.extend_from_slice(&distance(1));
        self.superblocks.positions.extend_from_slice(&distance(2));
    }

    /// Notes a block whose front stands in `front`.
    fn close_block(&mut self, last: u32, share: Share<'_>) {
        self.last.extend_from_slice(&last.to_le_bytes());
        let best = self.front.iter().map(|&impact| share(impact)).fold(0.0, f64::max);
        let bound = bound_units(best);
        self.bounds.extend_from_slice(&bound.to_le_bytes());
        self.bound = self.bound.max(bound);
        self.pairs.extend_from_slice(&self.front);
        impact::coarsen(&mut self.front, BLOCK_FRONT_BYTES_MAX);
        let start = self.fronts.len();
        impact::write(&self.front, &mut self.fronts);
        self.front_lens.push((self.fronts.len() - start) as u8);
        self.blocks += 1;
    }

    fn close_superblock(&mut self, encoder: &mut BlockEncoder) -> Result<()> {
        encoder.join_fronts(&self.pairs, &mut self.front);
        impact::coarsen(&mut self.front, SUPERBLOCK_FRONT_BYTES_MAX);
        let of = &mut self.superblocks;
        let at = of.impacts.len();
        of.impacts_at.extend_from_slice(&length(at)?.to_le_bytes());
        impact::write(&self.front, &mut of.impacts);
        push_u16(&mut of.front_lens, of.impacts.len() - at);
        of.impacts.append(&mut self.fronts);
        of.bounds.extend_from_slice(&self.bound.to_le_bytes());
        self.pairs.clear();
        self.bound = 0;
        Ok(())
    }

    fn write(&self, positions: bool, out: &mut Vec<u8>) {
        let of = &self.superblocks;
        if positions {
            out.extend_from_slice(&self.starts[2].to_le_bytes());
        }
        out.extend_from_slice(&of.docs);
        out.extend_from_slice(&of.freqs);
        if positions {
            out.extend_from_slice(&of.positions);
        }
        for array in [&of.impacts_at, &of.front_lens, &of.bounds] {
            out.extend_from_slice(array);
        }
        for array in [&self.last, &self.bounds, &self.docs_lens, &self.freqs_lens] {
            out.extend_from_slice(array);
        }
        out.extend_from_slice(&self.positions_lens);
        out.extend_from_slice(&self.front_lens);
        out.extend_from_slice(&of.impacts);
    }

    fn clear(&mut self) {
        *self = Record::default();
    }
}

/// A length that the record keeps in four bytes.
fn length(len: usize) -> Result<u32> {
    u32::try_from(len).map_err(|_| Error::Limit(format!("{len} bytes in one block of a list are too many")))
}

fn push_u16(out: &mut Vec<u8>, len: usize) {
    debug_assert!(len <= usize::from(u16::MAX));
    out.extend_from_slice(&(len as u16).to_le_bytes());
}
