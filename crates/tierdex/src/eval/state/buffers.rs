//! Buffers of a list during evaluation.

use crate::limits::BLOCK;
use crate::transform::impact::Impact;
use tierdex_codec::{Intersection, Selection};

/// Scratch arrays of a list: scores of the decoded block, and candidates found in the list. Reused between
/// queries. The arrays start at cache lines.
#[repr(C, align(64))]
pub struct TermBuffers {
    pub(in crate::eval) scores: [u32; BLOCK],
    /// Documents and frequencies of the postings to score, and their scores.
    pub(in crate::eval) documents: [u32; BLOCK],
    pub(in crate::eval) frequencies: [u32; BLOCK],
    pub(in crate::eval) selected_scores: [u32; BLOCK],
    /// The block to which `scores` belong.
    pub(in crate::eval) scored: usize,
    pub(in crate::eval) impacts: Vec<Impact>,
    /// Offsets of the postings of a block selected by frequency.
    pub(in crate::eval) selected: Selection,
    pub(in crate::eval) shared: Intersection,
    pub(in crate::eval) found: FoundPostings,
}

/// The candidates found in the list, with block and offset of each.
pub(in crate::eval) struct FoundPostings {
    pub(in crate::eval) documents: [u32; BLOCK],
    pub(in crate::eval) blocks: [u32; BLOCK],
    pub(in crate::eval) offsets: [u8; BLOCK],
    pub(in crate::eval) len: usize,
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
    pub(in crate::eval) fn add(&mut self, block: usize, start: usize, offsets: &[u8]) {
        let to = self.len..self.len + offsets.len();
        self.len = to.end;
        self.blocks[to.clone()].fill(block as u32);
        for (to, offset) in self.offsets[to].iter_mut().zip(offsets) {
            *to = start as u8 + offset;
        }
    }

    /// Fills in the documents of the entries from position `from` on, given those of their block.
    pub(in crate::eval) fn take_documents(&mut self, from: usize, documents: &[u32]) {
        let added = from..self.len;
        for (to, offset) in self.documents[added.clone()].iter_mut().zip(&self.offsets[added]) {
            *to = documents[usize::from(*offset)];
        }
    }
}
