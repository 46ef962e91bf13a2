//! Buffers of a list during evaluation.

use crate::limits::BLOCK;
use crate::transform::impact::Impact;
use tierdex_codec::{Places, Shared};

/// Arrays for the block that was decoded last, and for candidates; queries use them one after the other.
pub struct TermBuffers {
    /// The block of which `scores` are.
    pub(super) scored: usize,
    pub(super) scores: [u32; BLOCK],
    pub(super) impacts: Vec<Impact>,
    /// Postings of a block that were selected by frequency.
    pub(super) selected: Places,
    pub(super) documents: [u32; BLOCK],
    pub(super) frequencies: [u32; BLOCK],
    pub(super) some_scores: [u32; BLOCK],
    pub(super) shared: Shared,
    pub(super) found: FoundPostings,
}

/// The candidates that the list has, and where each is in it.
pub(super) struct FoundPostings {
    pub(super) documents: [u32; BLOCK],
    pub(super) blocks: [u32; BLOCK],
    pub(super) offsets: [u8; BLOCK],
    pub(super) len: usize,
}

impl Default for TermBuffers {
    fn default() -> TermBuffers {
        TermBuffers {
            scored: usize::MAX,
            scores: [0; BLOCK],
            impacts: Vec::new(),
            selected: Places::new(),
            documents: [0; BLOCK],
            frequencies: [0; BLOCK],
            some_scores: [0; BLOCK],
            shared: Shared::new(),
            found: FoundPostings { documents: [0; BLOCK], blocks: [0; BLOCK], offsets: [0; BLOCK], len: 0 },
        }
    }
}

impl FoundPostings {
    /// Adds some offsets of a block, counted from `start`.
    pub(super) fn add(&mut self, block: usize, start: usize, offsets: &[u8]) {
        let to = self.len..self.len + offsets.len();
        self.len = to.end;
        self.blocks[to.clone()].fill(block as u32);
        for (to, offset) in self.offsets[to].iter_mut().zip(offsets) {
            *to = start as u8 + offset;
        }
    }

    /// Takes the documents at the offsets that were added from position `from` on.
    pub(super) fn take_documents(&mut self, from: usize, documents: &[u32]) {
        let added = from..self.len;
        for (to, offset) in self.documents[added.clone()].iter_mut().zip(&self.offsets[added]) {
            *to = documents[usize::from(*offset)];
        }
    }
}
