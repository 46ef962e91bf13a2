//! Memory that contenders write to.
//!
//! All use the same, so that its place favours none of them, and all of it has been touched before, so that the
//! system hands out no page while the clock runs.

use super::ours::BLOCK;

/// Memory for decoded and for encoded values.
pub struct Buffers {
    near: Vec<u32>,
    far: Vec<u32>,
    /// Where the next list goes in `far`.
    at: usize,
    bytes: Vec<u8>,
    words: Vec<u32>,
}

/// Values that the far buffer has room for: 256 MiB, far more than a cache.
const FAR: usize = 64 << 20;
/// Values of a cache line.
const LINE: usize = 16;

impl Buffers {
    /// All memory is touched here, so that no page is new to the system later.
    pub fn new() -> Buffers {
        Buffers {
            near: vec![1; BLOCK + LINE],
            far: vec![1; FAR],
            at: 0,
            bytes: Vec::new(),
            words: Vec::new(),
        }
    }

    /// The same room for `len` values each time, from the start of a cache line on.
    pub(super) fn near(&mut self, len: usize) -> &mut [u32] {
        if self.near.len() < len + LINE {
            self.near.resize(len + LINE, 1);
        }
        let start = first_line(&self.near);
        &mut self.near[start..start + len]
    }

    /// Room for `len` values that has not been touched for long, from the start of a cache line on.
    pub(super) fn far(&mut self, len: usize) -> &mut [u32] {
        if self.far.len() < len + LINE {
            self.far.resize(len + LINE, 1);
        }
        let first = first_line(&self.far);
        let next = first + (self.at.saturating_sub(first)).next_multiple_of(LINE);
        let start = if next + len > self.far.len() { first } else { next };
        self.at = start + len;
        &mut self.far[start..self.at]
    }
}

/// Where the first cache line starts.
fn first_line(values: &[u32]) -> usize {
    values.as_ptr().align_offset(LINE * size_of::<u32>())
}

impl Default for Buffers {
    fn default() -> Buffers {
        Buffers::new()
    }
}

/// What encoded lists consist of.
pub trait Word: Copy {
    /// The vector that all contenders encode into.
    fn scratch(buffers: &mut Buffers) -> &mut Vec<Self>;
}

impl Word for u8 {
    fn scratch(buffers: &mut Buffers) -> &mut Vec<u8> {
        &mut buffers.bytes
    }
}

impl Word for u32 {
    fn scratch(buffers: &mut Buffers) -> &mut Vec<u32> {
        &mut buffers.words
    }
}
