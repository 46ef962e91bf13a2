//! Memory that contenders write to.
//!
//! All contenders use the same buffers, so that the address favours none of them. All pages are touched in
//! advance, so that no page fault is timed.

use tierdex::codec::BLOCK;

/// Memory for decoded and for encoded values.
pub struct Buffers {
    /// One decoded block.
    block: Vec<u32>,
    /// Ring buffer of decoded lists.
    ram: Vec<u32>,
    /// Offset of the next list in `ram`.
    at: usize,
    bytes: Vec<u8>,
    words: Vec<u32>,
}

/// Number of values of the ring buffer: 256 MiB, far more than a CPU cache holds.
const RING_VALUES: usize = 64 << 20;
/// Values per cache line.
const CACHE_LINE_VALUES: usize = 16;

impl Default for Buffers {
    /// Allocates the buffers and touches all pages.
    fn default() -> Buffers {
        Buffers {
            block: vec![1; BLOCK + CACHE_LINE_VALUES],
            ram: vec![1; RING_VALUES],
            at: 0,
            bytes: Vec::new(),
            words: Vec::new(),
        }
    }
}

impl Buffers {
    /// A buffer of `len` values at the start of a cache line, the same in each call.
    pub(super) fn block_buffer(&mut self, len: usize) -> &mut [u32] {
        if self.block.len() < len + CACHE_LINE_VALUES {
            self.block.resize(len + CACHE_LINE_VALUES, 1);
        }
        let start = first_cache_line(&self.block);
        &mut self.block[start..start + len]
    }

    /// The next `len` values of the ring, from the start of a cache line on: memory that no cache holds.
    pub(super) fn next_ring_buffer(&mut self, len: usize) -> &mut [u32] {
        if self.ram.len() < len + CACHE_LINE_VALUES {
            self.ram.resize(len + CACHE_LINE_VALUES, 1);
        }
        let first = first_cache_line(&self.ram);
        let next = first + (self.at.saturating_sub(first)).next_multiple_of(CACHE_LINE_VALUES);
        let start = if next + len > self.ram.len() { first } else { next };
        self.at = start + len;
        &mut self.ram[start..self.at]
    }
}

/// Offset of the first value at the start of a cache line.
fn first_cache_line(values: &[u32]) -> usize {
    values.as_ptr().align_offset(CACHE_LINE_VALUES * size_of::<u32>())
}

/// The unit of encoded lists: bytes, or words of four bytes.
pub trait EncodedWord: Copy {
    /// The vector that contenders encode into.
    fn scratch(buffers: &mut Buffers) -> &mut Vec<Self>;
}

impl EncodedWord for u8 {
    fn scratch(buffers: &mut Buffers) -> &mut Vec<u8> {
        &mut buffers.bytes
    }
}

impl EncodedWord for u32 {
    fn scratch(buffers: &mut Buffers) -> &mut Vec<u32> {
        &mut buffers.words
    }
}
