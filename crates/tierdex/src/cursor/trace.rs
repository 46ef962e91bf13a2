//! Records which blocks of a list were decoded or pruned, for explanations of queries. Takes no memory until
//! it is started.

use super::blocks::Blocks;
use crate::segment::read::ListPart;
use std::ops::Range;
use tierdex_io::PAGE;

/// Flag of a block whose documents were decoded.
pub(super) const DOCUMENTS_DECODED: u8 = 1;

/// Flag of a block whose frequencies were decoded.
pub(super) const FREQUENCIES_DECODED: u8 = 2;

/// Flag of a block that was pruned by its block max score.
pub(super) const BLOCK_PRUNED: u8 = 4;

/// The flags of each block of a list; empty if recording was not started.
#[derive(Default)]
pub(super) struct Trace {
    flags: Vec<u8>,
}

/// Numbers of decoded and skipped blocks of a list; `blocks` is the sum of `decoded`, `by_bound` and
/// `by_range`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockCounts {
    /// Number of blocks of the list.
    pub blocks: u64,
    /// Number of blocks whose documents or frequencies were decoded.
    pub decoded: u64,
    /// Number of blocks whose documents were decoded.
    pub documents: u64,
    /// Number of blocks whose frequencies were decoded.
    pub frequencies: u64,
    /// Number of blocks that were skipped because the max score of the block, or of a window of documents, is
    /// too low.
    pub by_bound: u64,
    /// Number of blocks that were skipped because none of their documents was requested.
    pub by_range: u64,
    /// Bytes of encoded documents of the list; 0 for an inline list.
    pub docs_bytes: u64,
    /// Bytes of encoded frequencies of the list; 0 for an inline list.
    pub freqs_bytes: u64,
    /// Bytes of encoded documents that were decoded.
    pub docs_decoded: u64,
    /// Bytes of encoded frequencies that were decoded.
    pub freqs_decoded: u64,
}

impl Trace {
    /// Starts recording, for a list of `blocks` blocks.
    pub(super) fn start(&mut self, blocks: usize) {
        self.flags.clear();
        self.flags.resize(blocks, 0);
    }

    /// Whether recording was started.
    pub(super) fn is_started(&self) -> bool {
        !self.flags.is_empty()
    }

    /// Sets a flag of a block, if recording was started.
    #[inline]
    pub(super) fn mark(&mut self, block: usize, flag: u8) {
        if let Some(flags) = self.flags.get_mut(block) {
            *flags |= flag;
        }
    }

    /// Counts the blocks of the list with each combination of flags.
    pub(super) fn count(&self, blocks: &Blocks<'_>) -> BlockCounts {
        let mut sum = BlockCounts { blocks: blocks.len() as u64, ..BlockCounts::default() };
        for block in 0..blocks.len() {
            let flags = self.flags.get(block).copied().unwrap_or(0);
            let has = |flag: u8| u64::from(flags & flag != 0);
            let len = |part| blocks.skips().map_or(0, |list| list.len(part, block));
            sum.documents += has(DOCUMENTS_DECODED);
            sum.frequencies += has(FREQUENCIES_DECODED);
            sum.docs_bytes += len(ListPart::Docs);
            sum.freqs_bytes += len(ListPart::Freqs);
            sum.docs_decoded += has(DOCUMENTS_DECODED) * len(ListPart::Docs);
            sum.freqs_decoded += has(FREQUENCIES_DECODED) * len(ListPart::Freqs);
            match flags {
                0 => sum.by_range += 1,
                BLOCK_PRUNED => sum.by_bound += 1,
                _ => sum.decoded += 1,
            }
        }
        sum
    }

    /// The pages of decoded documents and frequencies, in ascending order.
    pub(super) fn pages(&self, blocks: &Blocks<'_>) -> Vec<Range<u64>> {
        let parts = [(DOCUMENTS_DECODED, ListPart::Docs), (FREQUENCIES_DECODED, ListPart::Freqs)];
        let decoded = |(flag, part)| {
            let flags = self.flags.iter().enumerate().filter(move |(_, flags)| **flags & flag != 0);
            flags.filter_map(move |(block, _)| blocks.skips()?.range(part, block).ok())
        };
        let mut ranges: Vec<Range<u64>> =
            parts.into_iter().flat_map(decoded).map(|range| pages_of(&range)).collect();
        ranges.sort_unstable_by_key(|pages| pages.start);
        let mut merged: Vec<Range<u64>> = Vec::new();
        for pages in ranges {
            match merged.last_mut().filter(|last| pages.start <= last.end) {
                Some(last) => last.end = last.end.max(pages.end),
                None => merged.push(pages),
            }
        }
        merged
    }
}

/// The pages that a byte range overlaps.
pub(super) fn pages_of(bytes: &Range<u64>) -> Range<u64> {
    bytes.start / PAGE..bytes.end.div_ceil(PAGE)
}
