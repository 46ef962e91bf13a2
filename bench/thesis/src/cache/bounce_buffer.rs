//! The bounce buffer: a few cells through which lists that do not fit are read chunk by chunk.
//!
//! The buffer serves one chunk at a time. A reader waits for the buffer, queues a chunk, waits until the
//! worker has read and checked it, copies it out, and frees the buffer. It waits for nothing else meanwhile.
//! So the buffer becomes free again whatever entries are pinned, and any number of streams make progress,
//! several of one query included.

use std::ops::Range;

use tierdex_io::Result;

use super::request::ListRequest;

/// Bytes of the bounce buffer, at most, unless a cell is larger.
const BOUNCE_BYTES_MAX: usize = 256 << 10;

/// Adjacent pages of one part of a list.
#[derive(Clone)]
pub(crate) struct StreamChunk {
    pub(crate) request: ListRequest,
    pub(crate) part: usize,
    /// File offsets: whole pages, at most as many as the bounce buffer holds.
    pub(crate) pages: Range<u64>,
}

/// State of the bounce buffer.
#[derive(Default)]
pub(crate) struct BounceBuffer {
    pub(crate) taken: bool,
    /// The chunk, until the worker takes it.
    pub(crate) task: Option<StreamChunk>,
    /// The result of reading the chunk, until the waiting thread takes it.
    pub(crate) result: Option<Result<()>>,
}

/// How many of `cells` cells are the bounce buffer, at least one: enough for several reads at once, and few
/// of all.
pub(crate) fn bounce_cell_count(cells: usize, cell_bytes: usize) -> usize {
    (BOUNCE_BYTES_MAX / cell_bytes).min(cells / 32).max(1)
}
