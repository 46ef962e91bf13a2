//! Ranges of documents of a segment.

use crate::cursor::{NO_DOCUMENT, ScatteredBlocks};
use crate::{Result, eval::tuning::PREFETCH_DOCS, eval::tuning::WINDOW_DOCS};

/// Candidates that will be looked up in other lists: their range, and the number of blocks of their own list
/// in it.
#[derive(Clone, Copy)]
pub(crate) struct CandidateRange {
    pub(crate) range: DocRange,
    pub(crate) lead_blocks: usize,
}

/// A range of documents of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DocRange {
    pub(crate) first: u32,
    /// The last document, which is in the range.
    pub(crate) last: u32,
}

impl DocRange {
    /// All documents.
    pub(crate) const ALL: DocRange = DocRange { first: 0, last: u32::MAX };

    /// From the first to the last document of a block.
    #[inline]
    pub(crate) fn of_block(blocks: &ScatteredBlocks<'_>, block: usize) -> DocRange {
        DocRange { first: blocks.first(block), last: blocks.last(block) }
    }

    /// Whether the range is in one score window, which starts at its first document.
    pub(crate) fn fits_window(self) -> bool {
        self.last - aligned_origin(self.first) < WINDOW_DOCS as u32
    }
}

/// The document to which the first bit or sum of a range belongs that starts with document `first`: the
/// multiple of eight at or before it, since bitmaps of lists begin at such multiples too, and whole bytes are
/// combined.
pub(crate) fn aligned_origin(first: u32) -> u32 {
    first & !7
}

/// Calls `prefetch` with consecutive ranges of several windows from `first` to `end`, until it returns false
/// because the prefetch limit is reached. Returns the first document that was not prefetched.
pub(crate) fn prefetch_ahead(
    first: u32,
    end: u32,
    mut prefetch: impl FnMut(DocRange) -> Result<bool>,
) -> Result<u32> {
    for first in (first..end).step_by(PREFETCH_DOCS as usize) {
        if !prefetch(DocRange { first, last: first.saturating_add(PREFETCH_DOCS - 1) })? {
            return Ok(first);
        }
    }
    Ok(NO_DOCUMENT)
}

/// The range from `first` on, of at most `size` documents after its [`aligned_origin`], before `end`.
pub(crate) fn window_from(first: u32, size: usize, end: u32) -> DocRange {
    DocRange { first, last: aligned_origin(first).saturating_add(size as u32 - 1).min(end - 1) }
}

/// The positions in `documents`, which are ascending, of those in a range.
pub(crate) fn positions_within(documents: &[u32], range: DocRange) -> std::ops::Range<usize> {
    let DocRange { first, last } = range;
    let before = |most: u32| documents.partition_point(|document| *document < most);
    let from = if documents.first().is_none_or(|document| *document >= first) { 0 } else { before(first) };
    let past_all = documents.last().is_none_or(|end| *end <= last);
    from..if past_all { documents.len() } else { before(last + 1) }
}
