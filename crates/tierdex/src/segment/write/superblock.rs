//! Superblocks: up to 32 blocks of a list, encoded. Their bytes do not depend on their offset in the files, so
//! several threads can encode them in parallel.

use super::super::layout::bound_units;
use crate::limits::SUPERBLOCK;
use crate::transform::block::{Block, BlockEncoder};
use crate::transform::impact::{self, BLOCK_FRONT_BYTES_MAX, Impact, SUPERBLOCK_FRONT_BYTES_MAX};

/// Share of `k1 + 1` that an impact earns with the default parameters in a segment.
pub(super) type Share<'a> = &'a (dyn Fn(Impact) -> f64 + Sync);

/// Encodes superblocks of one field, without positions.
#[derive(Clone)]
pub struct SuperblockEncoder<'a> {
    pub(super) blocks: BlockEncoder,
    norms: &'a [u8],
    share: Share<'a>,
    front: Vec<Impact>,
}

/// The bytes of a superblock in `docs` and `freqs`, and what the list's record says of it.
#[derive(Default)]
pub struct Superblock {
    pub(super) docs: Vec<u8>,
    pub(super) freqs: Vec<u8>,
    /// Of each block: last document, bound, lengths in `docs` and `freqs`, length of the front.
    pub(super) last: Vec<u8>,
    pub(super) bounds: Vec<u8>,
    pub(super) docs_lens: Vec<u8>,
    pub(super) freqs_lens: Vec<u8>,
    pub(super) front_lens: Vec<u8>,
    /// Fronts of the blocks: as bytes, and all their pairs.
    pub(super) fronts: Vec<u8>,
    pairs: Vec<Impact>,
    /// The front of all, as bytes, once it is closed.
    pub(super) front: Vec<u8>,
    pub(super) bound: u16,
    pub(super) blocks: usize,
}

impl<'a> SuperblockEncoder<'a> {
    /// `norms` holds the code of every document of the segment.
    pub(super) fn new(blocks: BlockEncoder, norms: &'a [u8], share: Share<'a>) -> SuperblockEncoder<'a> {
        SuperblockEncoder { blocks, norms, share, front: Vec::new() }
    }

    /// Appends a block to a superblock that is not full.
    pub fn add(&mut self, block: Block<'_>, to: &mut Superblock) {
        let start = to.docs.len();
        self.blocks.documents(block, &mut to.docs);
        push_u16(&mut to.docs_lens, to.docs.len() - start);
        let start = to.freqs.len();
        self.blocks.frequencies(block, &mut to.freqs);
        push_u16(&mut to.freqs_lens, to.freqs.len() - start);

        to.last.extend_from_slice(&block.documents[block.documents.len() - 1].to_le_bytes());
        self.blocks.impacts(block, self.norms, &mut self.front);
        let best = self.front.iter().map(|&impact| (self.share)(impact)).fold(0.0, f64::max);
        let bound = bound_units(best);
        to.bounds.extend_from_slice(&bound.to_le_bytes());
        to.bound = to.bound.max(bound);
        to.pairs.extend_from_slice(&self.front);
        impact::coarsen(&mut self.front, BLOCK_FRONT_BYTES_MAX);
        let start = to.fronts.len();
        impact::write(&self.front, &mut to.fronts);
        to.front_lens.push((to.fronts.len() - start) as u8);
        to.blocks += 1;
    }

    /// Ends a superblock, to which at least one block was added.
    pub fn close(&mut self, superblock: &mut Superblock) {
        self.blocks.join_fronts(&superblock.pairs, &mut self.front);
        impact::coarsen(&mut self.front, SUPERBLOCK_FRONT_BYTES_MAX);
        impact::write(&self.front, &mut superblock.front);
    }

    /// Appends a list of less than a block, as it stands in its record.
    pub fn short(&mut self, block: Block<'_>, out: &mut Vec<u8>) {
        self.blocks.documents(block, out);
        self.blocks.frequencies(block, out);
    }
}

impl Superblock {
    /// Whether no block has room.
    pub(super) fn is_full(&self) -> bool {
        self.blocks == SUPERBLOCK
    }

    /// Last document of the last block; none is `u32::MAX`.
    pub(super) fn last_document(&self) -> u32 {
        self.last.last_chunk().map_or(u32::MAX, |bytes| u32::from_le_bytes(*bytes))
    }

    /// Takes all blocks away.
    pub fn clear(&mut self) {
        for bytes in [
            &mut self.docs,
            &mut self.freqs,
            &mut self.last,
            &mut self.bounds,
            &mut self.docs_lens,
            &mut self.freqs_lens,
            &mut self.front_lens,
            &mut self.fronts,
            &mut self.front,
        ] {
            bytes.clear();
        }
        self.pairs.clear();
        (self.bound, self.blocks) = (0, 0);
    }
}

pub(super) fn push_u16(out: &mut Vec<u8>, len: usize) {
    debug_assert!(len <= usize::from(u16::MAX));
    out.extend_from_slice(&(len as u16).to_le_bytes());
}
