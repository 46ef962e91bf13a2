//! Optional trace of which blocks of a list were decoded or pruned. It takes no memory until it is started.

use super::blocks::Blocks;
use crate::segment::read::Part;

/// Its documents were decoded.
pub(super) const DOCUMENTS: u8 = 1;

/// Its frequencies were decoded.
pub(super) const FREQUENCIES: u8 = 2;

/// Its bound told that it cannot matter.
pub(super) const PRUNED: u8 = 4;

/// A mark for each block; none if nobody asks.
#[derive(Default)]
pub(super) struct Trace {
    marks: Vec<u8>,
}

/// What became of the blocks of a list. Each is one of `decoded`, `by_bound` and `by_range`, and none is
/// counted twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blockwise {
    /// Blocks of the list.
    pub blocks: u64,
    /// Blocks of which documents or frequencies, or both, were decoded.
    pub decoded: u64,
    /// Blocks of which documents were decoded.
    pub documents: u64,
    /// Blocks of which frequencies were decoded.
    pub frequencies: u64,
    /// Blocks that evaluation came to, and that it passed over because of their bounds, or those of a
    /// window.
    pub by_bound: u64,
    /// Blocks of which no document was asked for.
    pub by_range: u64,
    /// Bytes of documents in the list, 0 if it stands in its skip record.
    pub docs_bytes: u64,
    /// Bytes of frequencies in the list, 0 if it stands in its skip record.
    pub freqs_bytes: u64,
    /// Bytes of the documents that were decoded.
    pub docs_decoded: u64,
    /// Bytes of the frequencies that were decoded.
    pub freqs_decoded: u64,
}

impl Trace {
    /// Notes what becomes of so many blocks from now on.
    pub(super) fn start(&mut self, blocks: usize) {
        self.marks.clear();
        self.marks.resize(blocks, 0);
    }

    /// Whether somebody asks.
    pub(super) fn is_on(&self) -> bool {
        !self.marks.is_empty()
    }

    #[inline]
    pub(super) fn mark(&mut self, block: usize, what: u8) {
        if let Some(mark) = self.marks.get_mut(block) {
            *mark |= what;
        }
    }

    /// What was noted of `blocks`.
    pub(super) fn sum(&self, blocks: &Blocks<'_>) -> Blockwise {
        let mut sum = Blockwise { blocks: blocks.len() as u64, ..Blockwise::default() };
        for block in 0..blocks.len() {
            let mark = self.marks.get(block).copied().unwrap_or(0);
            let has = |what: u8| u64::from(mark & what != 0);
            let len = |part| blocks.skips().map_or(0, |list| list.len(part, block));
            sum.documents += has(DOCUMENTS);
            sum.frequencies += has(FREQUENCIES);
            sum.docs_bytes += len(Part::Docs);
            sum.freqs_bytes += len(Part::Freqs);
            sum.docs_decoded += has(DOCUMENTS) * len(Part::Docs);
            sum.freqs_decoded += has(FREQUENCIES) * len(Part::Freqs);
            match mark {
                0 => sum.by_range += 1,
                PRUNED => sum.by_bound += 1,
                _ => sum.decoded += 1,
            }
        }
        sum
    }
}
