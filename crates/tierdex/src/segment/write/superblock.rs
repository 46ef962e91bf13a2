//! Encodes superblocks, up to 32 blocks of a list. The encoded bytes do not depend on their offset in the
//! files, so threads can encode superblocks in parallel.

use super::super::layout::encode_max_share;
use crate::limits::SUPERBLOCK;
use crate::transform::block::{Block, BlockEncoder};
use crate::transform::impact::{self, BLOCK_IMPACT_BYTES_MAX, Impact, SUPERBLOCK_IMPACT_BYTES_MAX};

/// Share of a posting with this impact in a segment: see [`default_share`](super::default_share).
pub(super) type ShareFn<'a> = &'a (dyn Fn(Impact) -> f64 + Sync);

/// Encodes superblocks of one field: documents, frequencies and impacts, but not positions.
#[derive(Clone)]
pub struct SuperblockEncoder<'a> {
    pub(super) blocks: BlockEncoder,
    norms: &'a [u8],
    share: ShareFn<'a>,
    /// Scratch buffer: the impacts of one block or superblock.
    impacts: Vec<Impact>,
}

/// An encoded superblock: documents and frequencies of its blocks, and what the skip record has for it.
#[derive(Default)]
pub struct Superblock {
    pub(super) docs: Vec<u8>,
    pub(super) freqs: Vec<u8>,
    /// Arrays with an element for each block: last document, max share, and bytes of documents, of
    /// frequencies and of impacts.
    pub(super) last: Vec<u8>,
    pub(super) block_max_shares: Vec<u8>,
    pub(super) docs_lens: Vec<u8>,
    pub(super) freqs_lens: Vec<u8>,
    pub(super) impact_lens: Vec<u8>,
    /// Impacts of all blocks: encoded, and decoded before they were made fewer to fit their limit of bytes.
    pub(super) block_impacts: Vec<u8>,
    pairs: Vec<Impact>,
    /// Encoded impacts of the superblock, after [`SuperblockEncoder::close`].
    pub(super) impacts: Vec<u8>,
    pub(super) max_share: u16,
    pub(super) blocks: usize,
}

impl<'a> SuperblockEncoder<'a> {
    /// `norms` contains the norm code of each document of the segment.
    pub(super) fn new(blocks: BlockEncoder, norms: &'a [u8], share: ShareFn<'a>) -> SuperblockEncoder<'a> {
        SuperblockEncoder { blocks, norms, share, impacts: Vec::new() }
    }

    /// Appends a block to a superblock that is not full.
    pub fn add(&mut self, block: Block<'_>, to: &mut Superblock) {
        let start = to.docs.len();
        self.blocks.encode_documents(block, &mut to.docs);
        push_u16(&mut to.docs_lens, to.docs.len() - start);
        let start = to.freqs.len();
        self.blocks.encode_frequencies(block, &mut to.freqs);
        push_u16(&mut to.freqs_lens, to.freqs.len() - start);

        to.last.extend_from_slice(&block.documents[block.documents.len() - 1].to_le_bytes());
        self.blocks.collect_impacts(block, self.norms, &mut self.impacts);
        let best = self.impacts.iter().map(|&impact| (self.share)(impact)).fold(0.0, f64::max);
        let max_share = encode_max_share(best);
        to.block_max_shares.extend_from_slice(&max_share.to_le_bytes());
        to.max_share = to.max_share.max(max_share);
        to.pairs.extend_from_slice(&self.impacts);
        impact::coarsen(&mut self.impacts, BLOCK_IMPACT_BYTES_MAX);
        let start = to.block_impacts.len();
        impact::write(&self.impacts, &mut to.block_impacts);
        to.impact_lens.push((to.block_impacts.len() - start) as u8);
        to.blocks += 1;
    }

    /// Closes a superblock with at least one block.
    pub fn close(&mut self, superblock: &mut Superblock) {
        self.blocks.merge_impacts(&superblock.pairs, &mut self.impacts);
        impact::coarsen(&mut self.impacts, SUPERBLOCK_IMPACT_BYTES_MAX);
        impact::write(&self.impacts, &mut superblock.impacts);
    }

    /// Appends the encoded documents and frequencies of an inline list, which is shorter than a block.
    pub fn encode_inline_list(&mut self, block: Block<'_>, out: &mut Vec<u8>) {
        self.blocks.encode_documents(block, out);
        self.blocks.encode_frequencies(block, out);
    }
}

impl Superblock {
    /// Whether no block can be added.
    pub(super) fn is_full(&self) -> bool {
        self.blocks == SUPERBLOCK
    }

    /// Last document of the last block; `u32::MAX` if there is none.
    pub(super) fn last_document(&self) -> u32 {
        self.last.last_chunk().map_or(u32::MAX, |bytes| u32::from_le_bytes(*bytes))
    }

    /// Bytes of memory that the encoded blocks take.
    pub(super) fn encoded_bytes(&self) -> usize {
        self.arrays().iter().map(|bytes| bytes.len()).sum()
    }

    /// Removes all blocks.
    pub fn clear(&mut self) {
        self.arrays_mut().into_iter().for_each(Vec::clear);
        self.pairs.clear();
        (self.max_share, self.blocks) = (0, 0);
    }

    /// Replaces all blocks by those of a closed superblock. Reuses the memory.
    pub(super) fn copy_closed(&mut self, other: &Superblock) {
        self.clear();
        for (to, from) in self.arrays_mut().into_iter().zip(other.arrays()) {
            to.extend_from_slice(from);
        }
        (self.max_share, self.blocks) = (other.max_share, other.blocks);
    }

    fn arrays(&self) -> [&Vec<u8>; 9] {
        [
            &self.docs,
            &self.freqs,
            &self.last,
            &self.block_max_shares,
            &self.docs_lens,
            &self.freqs_lens,
            &self.impact_lens,
            &self.block_impacts,
            &self.impacts,
        ]
    }

    fn arrays_mut(&mut self) -> [&mut Vec<u8>; 9] {
        [
            &mut self.docs,
            &mut self.freqs,
            &mut self.last,
            &mut self.block_max_shares,
            &mut self.docs_lens,
            &mut self.freqs_lens,
            &mut self.impact_lens,
            &mut self.block_impacts,
            &mut self.impacts,
        ]
    }
}

pub(super) fn push_u16(out: &mut Vec<u8>, len: usize) {
    debug_assert!(len <= usize::from(u16::MAX));
    out.extend_from_slice(&(len as u16).to_le_bytes());
}
