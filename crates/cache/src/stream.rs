//! Lists that find no room: read piece by piece through a window of segments that are set apart.
//!
//! The window serves one piece at a time. Who wants one waits for the window, orders the piece, waits until a worker has read
//! and checked it, copies it out and frees the window. It waits for nothing else while it has it, so the window comes free
//! again whatever chains are pinned, and any number of streams get on, also several of one query.

use std::ops::Range;

use tierdex_io::Result;

use crate::job::Job;

/// The most bytes of a window, unless a segment has more.
const BYTES_MAX: usize = 256 << 10;

/// Some pages of a part of a list.
#[derive(Clone)]
pub(crate) struct Piece {
    pub(crate) job: Job,
    pub(crate) part: usize,
    /// File offsets: whole pages, no more than the window has.
    pub(crate) pages: Range<u64>,
}

/// Who has the window, and for what.
#[derive(Default)]
pub(crate) struct Window {
    pub(crate) taken: bool,
    /// The piece, until a worker takes it.
    pub(crate) order: Option<Piece>,
    /// How that ended.
    pub(crate) result: Option<Result<()>>,
}

/// How many of `segments` segments are set apart, at least one: enough for several reads at once, and few of them all.
pub(crate) fn window_segments(segments: usize, segment_bytes: usize) -> usize {
    (BYTES_MAX / segment_bytes).min(segments / 32).max(1)
}
