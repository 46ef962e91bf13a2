//! The table of loops that a kernel consists of, and the types of their arguments and results.

use crate::bitpack::{Layout, WIDTH_MAX, packed_len};
use crate::block::{BLOCK, Intersection, RUN_SLACK, RunPair, Selection, Survivors, ValueRun};
use crate::{error::DecodeError, saturation::Saturation};
use std::mem::MaybeUninit;

/// The loops of a kernel. Each may assume the conditions that the method of [`crate::Kernel`] of the same
/// name checks, and a CPU with its instructions: the two reasons why they are unsafe.
#[allow(clippy::type_complexity, reason = "the methods of `Kernel` name each argument")]
pub(super) struct KernelTable {
    pub(super) name: &'static str,
    pub(super) pack: unsafe fn(&[u32], u32, Layout, &mut [MaybeUninit<u8>]),
    pub(super) unpack: unsafe fn(&Packed, &mut [u32]),
    pub(super) pfor_decode: unsafe fn(&[u8], Layout, Option<u32>, &mut [u32]) -> Consumed,
    pub(super) count_wider: unsafe fn(&[u32]) -> WidthCounts,
    pub(super) shortest_patched: unsafe fn(usize, &WidthCounts) -> (u32, usize),
    pub(super) exceptions: unsafe fn(&[u32], u32, &mut Exceptions),
    pub(super) exception_bitmap: unsafe fn(&[u8], usize, bool, &mut Bitmap) -> Option<StoredBitmap>,
    pub(super) count_ones: unsafe fn(&[u8]) -> usize,
    pub(super) sparse_bitmap: unsafe fn(&Bitmap) -> SparseBitmap,
    pub(super) gaps: unsafe fn(&[u32], u32, u32, &mut [MaybeUninit<u32>]),
    pub(super) vbyte_encode: unsafe fn(&[u32], &mut Vec<u8>),
    pub(super) vbyte_decode: unsafe fn(&[u8], Option<u32>, &mut [u32]) -> Consumed,
    pub(super) vbyte_skip: unsafe fn(&[u8], usize) -> Consumed,
    pub(super) streamvbyte_encode: unsafe fn(&[u32], &mut [u8], &mut [u8]) -> usize,
    pub(super) streamvbyte_data_len: unsafe fn(&[u8], usize) -> usize,
    pub(super) streamvbyte_decode: unsafe fn(&[u8], &[u8], Option<u32>, &mut [u32]),
    pub(super) intersect: unsafe fn(&[u32], &[u32], &mut Intersection),
    pub(super) is_increasing: unsafe fn(&[u32]) -> bool,
    pub(super) add_one: unsafe fn(&mut [u32]) -> u32,
    pub(super) copy_runs: unsafe fn(&RunBlock, &[ValueRun], &mut [u32]) -> usize,
    pub(super) intersect_runs: unsafe fn(&RunBlock, &RunBlock, &mut [RunPair], &mut [u32]) -> usize,
    pub(super) bitmap_read: unsafe fn(&[u8], u32, &mut [u32]),
    pub(super) collect_bits: unsafe fn(&mut [u8], &mut [u8]),
    pub(super) bitmap_find: unsafe fn(&[u8], u32, &[u32], &mut Intersection),
    pub(super) bitmap_score: unsafe fn(&Saturation, &[u8], u32, &[u32], &mut [u32]),
    pub(super) score: unsafe fn(&Saturation, &[u32], &[u32], &mut [u32]),
    pub(super) values_at_least: unsafe fn(&[u32], u32, &mut Selection),
    pub(super) drain_at_least: unsafe fn(&mut [u32], u32, u32, &mut Survivors),
    pub(super) mark_positive: unsafe fn(&[u32], &mut [u8]),
    pub(super) keep_marked: unsafe fn(&mut [u32], &[u8]),
    pub(super) keep_at_least: unsafe fn(&mut [u32], &mut [u32], usize, u32) -> usize,
    pub(super) largest: unsafe fn(&mut [u64], usize, &mut Vec<u64>) -> u64,
}

/// The number of bytes consumed.
pub(super) type Consumed = Result<usize, DecodeError>;

/// A block whose runs can be read in whole vectors.
pub(super) type RunBlock = [u32; BLOCK + RUN_SLACK];

/// Bitmap of the values of a block: bit `i mod 8` of byte `i div 8` belongs to value `i`.
pub(crate) type Bitmap = [u8; BLOCK / 8];

/// For each width from 0 to 31, how many values are wider.
pub(crate) struct WidthCounts {
    /// Number of values of more than `index` bits.
    pub(crate) values: [u16; 32],
    /// Number of groups of eight consecutive values that contain such a value.
    pub(crate) groups: [u16; 32],
    /// The width of the widest value.
    pub(crate) widest: u32,
}

/// Packed bits, and the steps that turn them into values: unpack, add exceptions, sum.
#[derive(Clone, Copy)]
pub(crate) struct Packed<'a> {
    /// Exactly the bytes of the packed values.
    pub(crate) bytes: &'a [u8],
    /// Bits of a value, at most 32.
    pub(crate) width: u32,
    pub(crate) layout: Layout,
    /// The high parts of the exceptions, if there are any.
    pub(crate) patch: Option<Patch<'a>>,
    /// The value before the first, if the packed values are gaps less 1 whose prefix sums are wanted.
    pub(crate) after: Option<u32>,
}

impl Packed<'_> {
    /// Panics if lengths and widths are inconsistent.
    #[inline]
    pub(super) fn check(&self, n: usize) {
        let exact = self.bytes.len() == packed_len(n, self.width);
        let high_width = self.patch.as_ref().map_or(1, |patch| patch.width);
        let fits = high_width > 0 && self.width.saturating_add(high_width) <= WIDTH_MAX;
        assert!(n <= BLOCK && self.width <= WIDTH_MAX && exact && (self.patch.is_none() || fits));
    }
}

/// The loops that PFor decodes by. A kernel that implements them for a type of its own decodes a block by a
/// single function, without calls through its table.
pub(crate) trait PforLoops: Copy {
    /// See [`Kernel::exception_bitmap`](super::Kernel::exception_bitmap).
    fn exception_bitmap(
        self,
        bytes: &[u8],
        bitmap_len: usize,
        sparse: bool,
        bitmap: &mut Bitmap,
    ) -> Option<StoredBitmap>;

    /// See [`Kernel::unpack`](super::Kernel::unpack).
    fn unpack(self, packed: &Packed, out: &mut [u32]);
}

/// The high parts of the exceptions.
#[derive(Clone, Copy)]
pub(crate) struct Patch<'a> {
    /// The positions of the exceptions.
    pub(crate) bitmap: &'a Bitmap,
    /// One high part for each set bit, in order and packed horizontally. Any bytes may follow; they are
    /// ignored.
    pub(crate) highs: &'a [u8],
    /// Bits of a high part: at least 1, and at most 32 together with the width of the values.
    pub(crate) width: u32,
}

/// The size of a bitmap of exceptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredBitmap {
    /// Number of set bits.
    pub(crate) count: usize,
    /// Bytes in the block.
    pub(crate) len: usize,
}

/// The exceptions of values that are to be packed.
pub(crate) struct Exceptions {
    pub(crate) bitmap: Bitmap,
    /// The high part of each.
    pub(super) highs: [MaybeUninit<u32>; BLOCK],
    /// Number of high parts written.
    pub(super) count: usize,
}

impl Exceptions {
    /// No exceptions.
    pub(crate) fn new() -> Exceptions {
        Exceptions { bitmap: [0; _], highs: [MaybeUninit::uninit(); _], count: 0 }
    }

    /// The high parts.
    pub(crate) fn highs(&self) -> &[u32] {
        // SAFETY: The first `count` high parts have been written.
        unsafe { self.highs[..self.count].assume_init_ref() }
    }
}

/// Scratch buffer for the gaps of a block, aligned so that no vector crosses a cache line.
#[repr(align(64))]
pub(crate) struct GapBuffer(pub(super) [MaybeUninit<u32>; BLOCK]);

impl GapBuffer {
    /// An uninitialised buffer: clearing 1 KiB would take as long as filling it.
    pub(crate) fn new() -> GapBuffer {
        GapBuffer([MaybeUninit::uninit(); _])
    }
}

/// A bitmap without its zero bytes.
pub(crate) struct SparseBitmap {
    /// Bit `k` is set if byte `k` of the bitmap is not zero.
    pub(crate) mask: u32,
    /// The bytes that are not zero, padded with zeros.
    pub(crate) bytes: Bitmap,
}
