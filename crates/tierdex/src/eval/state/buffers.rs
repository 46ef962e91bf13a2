//! Buffers of an open list.

use crate::{limits::BLOCK, transform::impact::Impact};
use std::sync::{Arc, Mutex, PoisonError};
use tierdex_codec::{Intersection, Selection};

/// Buffers of an open list: scores of the decoded block, and candidates found in the list. Reused between
/// queries. The arrays start at cache lines.
#[repr(C, align(64))]
pub struct TermBuffers {
    pub(in crate::eval) scores: [u32; BLOCK],
    /// The number of the block to which `scores` belong; `usize::MAX` if none.
    pub(in crate::eval) scored: usize,
    pub(in crate::eval) impacts: Vec<Impact>,
    pub(in crate::eval) found: FoundPostings,
    look_up: Option<Box<LookUpBuffers>>,
    /// Whether the list takes its look-up buffers from `spare` for each batch and returns them, because a
    /// query with many lists has only one set for most of them.
    pub(in crate::eval) shares_look_ups: bool,
    spare: SpareLookUp,
}

/// Buffers that a list needs while candidates are looked up in it, or its postings are selected.
#[repr(C, align(64))]
pub(in crate::eval) struct LookUpBuffers {
    /// Documents and frequencies of postings to score; their scores are in `selected_scores`.
    pub(in crate::eval) documents: [u32; BLOCK],
    pub(in crate::eval) frequencies: [u32; BLOCK],
    pub(in crate::eval) selected_scores: [u32; BLOCK],
    /// Offsets of the postings of a block selected by frequency.
    pub(in crate::eval) selected: Selection,
    pub(in crate::eval) shared: Intersection,
}

/// The set of look-up buffers that the lists of an evaluation share, while none of them uses it.
#[derive(Clone, Default)]
pub(in crate::eval) struct SpareLookUp(Arc<Mutex<Option<Box<LookUpBuffers>>>>);

/// The candidates found in a list, each with its block and its offset in the block: frequencies and positions
/// are read there later.
pub(in crate::eval) struct FoundPostings {
    pub(in crate::eval) documents: [u32; BLOCK],
    pub(in crate::eval) blocks: [u32; BLOCK],
    pub(in crate::eval) offsets: [u8; BLOCK],
    pub(in crate::eval) len: usize,
}

impl TermBuffers {
    /// Buffers of a list, which may share look-up buffers with other lists through `spare`.
    pub(in crate::eval) fn new(spare: SpareLookUp) -> TermBuffers {
        TermBuffers {
            scores: [0; BLOCK],
            scored: usize::MAX,
            impacts: Vec::new(),
            found: FoundPostings { documents: [0; BLOCK], blocks: [0; BLOCK], offsets: [0; BLOCK], len: 0 },
            look_up: None,
            shares_look_ups: false,
            spare,
        }
    }

    /// The look-up buffers. The list has them until [`TermBuffers::release_look_up`].
    #[inline]
    pub(in crate::eval) fn look_up(&mut self) -> &mut LookUpBuffers {
        self.found_and_look_up().1
    }

    /// The candidates found, and the look-up buffers.
    #[inline]
    pub(in crate::eval) fn found_and_look_up(&mut self) -> (&mut FoundPostings, &mut LookUpBuffers) {
        let TermBuffers { found, look_up, spare, .. } = self;
        (found, look_up.get_or_insert_with(|| spare.take().unwrap_or_default()))
    }

    /// Returns the look-up buffers to `spare`, if this list shares them.
    #[inline]
    pub(in crate::eval) fn release_look_up(&mut self) {
        if self.shares_look_ups
            && let Some(buffers) = self.look_up.take()
        {
            self.spare.give(buffers);
        }
    }
}

impl Default for LookUpBuffers {
    fn default() -> LookUpBuffers {
        LookUpBuffers {
            documents: [0; BLOCK],
            frequencies: [0; BLOCK],
            selected_scores: [0; BLOCK],
            selected: Selection::new(),
            shared: Intersection::new(),
        }
    }
}

impl SpareLookUp {
    fn take(&self) -> Option<Box<LookUpBuffers>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn give(&self, buffers: Box<LookUpBuffers>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(buffers);
    }
}

impl FoundPostings {
    /// The blocks in which candidates were found, each once.
    pub(in crate::eval) fn distinct_blocks(&self) -> impl Iterator<Item = usize> {
        self.blocks[..self.len].chunk_by(|a, b| a == b).map(|same| same[0] as usize)
    }

    /// Appends postings of a block, given their offsets in it minus `start`.
    pub(in crate::eval) fn add(&mut self, block: usize, start: usize, offsets: &[u8]) {
        let to = self.len..self.len + offsets.len();
        self.len = to.end;
        self.blocks[to.clone()].fill(block as u32);
        for (to, offset) in self.offsets[to].iter_mut().zip(offsets) {
            *to = start as u8 + offset;
        }
    }

    /// Fills in the documents of the postings from position `from` on, given the documents of their block.
    pub(in crate::eval) fn take_documents(&mut self, from: usize, documents: &[u32]) {
        let added = from..self.len;
        for (to, offset) in self.documents[added.clone()].iter_mut().zip(&self.offsets[added]) {
            *to = documents[usize::from(*offset)];
        }
    }
}
