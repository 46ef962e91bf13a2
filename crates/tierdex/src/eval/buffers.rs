//! Buffers of a list during evaluation.

use crate::limits::BLOCK;
use crate::transform::impact::Impact;
use tierdex_codec::{Intersection, Selection};

/// Scratch arrays of a list: scores of the decoded block, and candidates found in the list. Reused between
/// queries. The arrays start at cache lines.
#[repr(C, align(64))]
pub struct TermBuffers {
    pub(super) scores: [u32; BLOCK],
    /// Documents and frequencies of the postings to score, and their scores.
    pub(super) documents: [u32; BLOCK],
    pub(super) frequencies: [u32; BLOCK],
    pub(super) selected_scores: [u32; BLOCK],
    /// The block to which `scores` belong.
    pub(super) scored: usize,
    pub(super) impacts: Vec<Impact>,
    /// Offsets of the postings of a block selected by frequency.
    pub(super) selected: Selection,
    pub(super) shared: Intersection,
    pub(super) found: FoundPostings,
}

/// The candidates found in the list, with block and offset of each.
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
            selected: Selection::new(),
            documents: [0; BLOCK],
            frequencies: [0; BLOCK],
            selected_scores: [0; BLOCK],
            shared: Intersection::new(),
            found: FoundPostings { documents: [0; BLOCK], blocks: [0; BLOCK], offsets: [0; BLOCK], len: 0 },
        }
    }
}

impl FoundPostings {
    /// Appends offsets of a block, relative to `start`.
    pub(super) fn add(&mut self, block: usize, start: usize, offsets: &[u8]) {
        let to = self.len..self.len + offsets.len();
        self.len = to.end;
        self.blocks[to.clone()].fill(block as u32);
        for (to, offset) in self.offsets[to].iter_mut().zip(offsets) {
            *to = start as u8 + offset;
        }
    }

    /// Fills in the documents of the entries from position `from` on, given those of their block.
    pub(super) fn take_documents(&mut self, from: usize, documents: &[u32]) {
        let added = from..self.len;
        for (to, offset) in self.documents[added.clone()].iter_mut().zip(&self.offsets[added]) {
            *to = documents[usize::from(*offset)];
        }
    }
}
