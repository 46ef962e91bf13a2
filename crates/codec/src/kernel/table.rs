//! The table of loops that a kernel consists of, and the types of their arguments and results.

use crate::bitpack::{Layout, WIDTH_MAX, packed_len};
use crate::block::{BLOCK, Intersection, RUN_SLACK, RunPair, Selection, Survivors, ValueRun};
use crate::{error::Result, saturation::Saturation};
use std::mem::MaybeUninit;

/// Calls a macro with the list of all loops. By it [`KernelTable`] and the methods of [`crate::Kernel`] are
/// defined. A method checks the condition in brackets. The methods of the loops in the first group are
/// written by hand.
macro_rules! loops {
    ($define:ident) => {
        $define! {
            {
                pack: unsafe fn(&[u32], u32, Layout, &mut [MaybeUninit<u8>]),
                unpack: unsafe fn(&Packed, &mut [u32]),
                compute_gaps: unsafe fn(&[u32], u32, u32, &mut [MaybeUninit<u32>]),
                streamvbyte_decode: unsafe fn(&[u8], &[u8], Option<u32>, &mut [u32]),
                drain_at_least: unsafe fn(&mut [u32], u32, u32, &mut Survivors),
            }

            /// Decodes a PFor block of at most 256 values; see [`crate::pfor::read::decode`].
            pfor_decode(bytes: &[u8], layout: Layout, after: Option<u32>, out: &mut [u32]) -> Result<usize>
                [out.len() <= BLOCK];
            /// Counts, for each width, the values that are wider. At most 256 values.
            count_wider(values: &[u32]) -> WidthCounts [values.len() <= BLOCK];
            /// Width and length of the shortest block of `n` <= 256 values with exceptions; see
            /// [`crate::pfor::cost::shortest_patched_block`].
            shortest_patched_block(n: usize, counts: &WidthCounts) -> (u32, usize) [n <= BLOCK];
            /// Finds the exceptions of at most 256 values, those of more than `width` < 32 bits, and their
            /// high parts.
            find_exceptions(values: &[u32], width: u32, found: &mut Exceptions)
                [values.len() <= BLOCK && width < WIDTH_MAX];
            /// Reads a bitmap of `bitmap_len` <= 32 bytes and pads it with zeros. A sparse bitmap has a bit
            /// for each of its bytes, then the bytes whose bit is set. `None` if `bytes` is too short.
            read_exception_bitmap(bytes: &[u8], bitmap_len: usize, sparse: bool, bitmap: &mut Bitmap)
                -> Option<StoredBitmap> [bitmap_len <= BLOCK / 8];
            /// The number of set bits in `bytes`.
            count_ones(bytes: &[u8]) -> usize;
            /// The sparse form of a bitmap: a mask and the nonzero bytes.
            make_sparse_bitmap(bitmap: &Bitmap) -> SparseBitmap;
            /// Appends `values`, 1 to 5 bytes each.
            vbyte_encode(values: &[u32], out: &mut Vec<u8>);
            /// Reads `out.len()` values, or their prefix sums from `after` on; returns the bytes consumed.
            vbyte_decode(bytes: &[u8], after: Option<u32>, out: &mut [u32]) -> Result<usize>;
            /// The number of bytes up to and including the `n`-th whose continuation bit is clear.
            vbyte_skip(bytes: &[u8], n: usize) -> Result<usize>;
            /// Writes the control bytes, which are zero before, one for each four values, and the data;
            /// returns the length of the data. `data` has at least four bytes per value.
            streamvbyte_encode(values: &[u32], controls: &mut [u8], data: &mut [u8]) -> usize
                [controls.len() == values.len().div_ceil(4) && data.len() >= 4 * values.len()];
            /// Bytes of data for `n` values with these control bytes; the codes after the `n`-th are zero.
            streamvbyte_data_len(controls: &[u8], n: usize) -> usize;
            /// Finds the values that two strictly increasing blocks of at most 256 values share.
            intersect(first: &[u32], second: &[u32], shared: &mut Intersection)
                [first.len() <= BLOCK && second.len() <= BLOCK];
            /// Whether the values are strictly increasing; see [`crate::is_increasing`].
            is_increasing(values: &[u32]) -> bool;
            /// Adds 1 to each value; see [`crate::add_one`].
            add_one(values: &mut [u32]) -> u32;
            /// Copies runs of values; see [`crate::copy_runs`].
            copy_runs(values: &RunBlock, runs: &[ValueRun], out: &mut [u32]) -> usize;
            /// Intersects pairs of runs; see [`crate::intersect_runs`].
            intersect_runs(first: &RunBlock, second: &RunBlock, margin: u32, pairs: &mut [RunPair],
                out: &mut [u32]) -> usize [margin <= MARGIN_MAX];
            /// Reads the values of the first `out.len()` set bits; bit 0 is `prev + 1`. Fewer set bits leave
            /// the end of `out` unspecified.
            read_bitmap(bits: &[u8], prev: u32, out: &mut [u32]);
            /// Collects marks into bits; see [`crate::collect_bits`].
            collect_bits(marks: &mut [u8], bits: &mut [u8]) [marks.len() == 8 * bits.len()];
            /// Finds at most 256 values in a bitmap whose bit 0 is `first`; see [`crate::BitmapView::find`].
            find_in_bitmap(bits: &[u8], first: u32, values: &[u32], shared: &mut Intersection)
                [values.len() <= BLOCK];
            /// Adds the scores of the values of a bitmap to their sums; bit 0 and the first sum are `first`.
            /// See [`Saturation::add_bits`].
            score_bitmap(of: &Saturation, bits: &[u8], first: u32, frequencies: &[u32], sums: &mut [u32])
                [sums.len() <= 8 * bits.len() && first as usize + sums.len() <= of.codes.len()];
            /// Scores a block of values; see [`Saturation::score`].
            score(of: &Saturation, values: &[u32], frequencies: &[u32], scores: &mut [u32])
                [values.len() <= BLOCK && frequencies.len() == values.len() && scores.len() == values.len()];
            /// Selects the values of at least `threshold`; see [`crate::values_at_least`].
            values_at_least(values: &[u32], threshold: u32, positions: &mut Selection)
                [values.len() <= BLOCK];
            /// Sets the bits of the sums that are greater than 0; see [`crate::mark_positive`].
            mark_positive(sums: &[u32], bits: &mut [u8]) [sums.len() <= 8 * bits.len()];
            /// Clears the sums whose bits are clear; see [`crate::keep_marked`].
            keep_marked(sums: &mut [u32], bits: &[u8]) [sums.len() <= 8 * bits.len()];
            /// Copies the values whose bits are set; see [`crate::copy_marked`].
            copy_marked(values: &[u32], bits: &[u8], out: &mut [u32]) -> usize
                [bits.len().is_multiple_of(4) && out.len() >= values.len()];
            /// Compacts values and scores to those of at least `threshold`; see [`crate::keep_at_least`].
            keep_at_least(values: &mut [u32], scores: &mut [u32], from: usize, threshold: u32) -> usize
                [scores.len() == values.len() && from <= values.len()];
            /// Moves the largest `k` keys to the front; see [`crate::largest`].
            largest(keys: &mut [u64], k: usize, scratch: &mut Vec<u64>) -> u64 [k <= keys.len()];
            /// Sets the bits of the offsets in a range; see [`crate::WideView::between`]. Bits from the
            /// number of offsets on are unspecified.
            offsets_within(offsets: &PackedOffsets, range: OffsetRange) -> [u64; 4]
                [offsets.is_consistent()];
            /// The sums of `smallest` and the offsets; see [`crate::WideView::decode`].
            decode_offsets(offsets: &PackedOffsets, smallest: u64, out: &mut [u64])
                [offsets.is_consistent() && out.len() == offsets.len];
        }
    };
}
pub(super) use loops;

macro_rules! table {
    (
        { $($other:ident: $pointer:ty,)* }
        $(
            $(#[$doc:meta])*
            $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? $([$condition:expr])?;
        )*
    ) => {
        /// The loops of a kernel. Each may assume the conditions that the method of [`crate::Kernel`] of the
        /// same name checks, and a CPU with its instructions: the two reasons why they are unsafe.
        #[allow(clippy::type_complexity, reason = "the methods of `Kernel` name each argument")]
        pub(super) struct KernelTable {
            pub(super) name: &'static str,
            $(pub(super) $other: $pointer,)*
            $(pub(super) $name: unsafe fn($($type),*) $(-> $result)?,)*
        }
    };
}
loops!(table);

/// A block of values, with slack so that its runs can be read in whole vectors.
pub(super) type RunBlock = [u32; BLOCK + RUN_SLACK];

/// Bitmap of the values of a block: bit `i mod 8` of byte `i div 8` belongs to value `i`.
pub(crate) type Bitmap = [u8; BLOCK / 8];

/// For each width from 0 to 31, how many values are wider.
pub(crate) struct WidthCounts {
    /// Number of values of more than `index` bits.
    pub(crate) values: [u16; 32],
    /// Number of groups of eight consecutive values that contain a value of more than `index` bits.
    pub(crate) groups: [u16; 32],
    /// The width of the widest value.
    pub(crate) widest: u32,
}

/// Packed bits, and the steps that turn them into values: unpack, add exceptions, sum.
#[derive(Clone, Copy)]
pub(crate) struct Packed<'a> {
    /// Exactly the bytes of the packed values.
    pub(crate) bytes: &'a [u8],
    /// Width of a packed value in bits, at most 32.
    pub(crate) width: u32,
    pub(crate) layout: Layout,
    /// The high parts of the exceptions, if there are any.
    pub(crate) patch: Option<Patch<'a>>,
    /// The value before the first one, if the packed values are gaps less 1 and the output is their prefix
    /// sums.
    pub(crate) after: Option<u32>,
}

impl Packed<'_> {
    /// Panics unless lengths and widths are consistent for `n` values.
    #[inline]
    pub(super) fn assert_consistent(&self, n: usize) {
        assert!(self.is_consistent(n));
    }

    /// Whether lengths and widths are consistent for `n` values.
    #[inline]
    fn is_consistent(&self, n: usize) -> bool {
        let exact = self.bytes.len() == packed_len(n, self.width);
        let high_width = self.patch.as_ref().map_or(1, |patch| patch.width);
        let fits = high_width > 0 && self.width.saturating_add(high_width) <= WIDTH_MAX;
        n <= BLOCK && self.width <= WIDTH_MAX && exact && (self.patch.is_none() || fits)
    }
}

/// Packed offsets of up to 64 bits: the low 32 bits of each, and the others. Neither has further steps.
#[derive(Clone, Copy)]
pub(crate) struct PackedOffsets<'a> {
    pub(crate) low: Packed<'a>,
    /// The bits from 32 on; none if its width is 0.
    pub(crate) high: Packed<'a>,
    /// Number of offsets.
    pub(crate) len: usize,
}

impl PackedOffsets<'_> {
    /// Whether lengths and widths are consistent.
    #[inline]
    pub(super) fn is_consistent(&self) -> bool {
        let plain = |plane: &Packed| {
            plane.layout == Layout::Vertical && plane.patch.is_none() && plane.after.is_none()
        };
        let all = [&self.low, &self.high].into_iter();
        let consistent = |plane: &Packed| plain(plane) && plane.is_consistent(self.len);
        all.into_iter().all(consistent) && (self.high.width == 0 || self.low.width == WIDTH_MAX)
    }
}

/// The offsets from `first` to `first + span`, which has at most as many bits as the offsets have.
#[derive(Clone, Copy)]
pub(crate) struct OffsetRange {
    pub(crate) first: u64,
    pub(crate) span: u64,
}

impl OffsetRange {
    /// The offsets from `first` to `last` that are at most `most`, if there are any.
    #[inline]
    pub(crate) fn clipped(first: u64, last: u64, most: u64) -> Option<OffsetRange> {
        last.min(most).checked_sub(first).map(|span| OffsetRange { first, span })
    }
}

/// The loops that PFor decodes by. A kernel that implements them for a type of its own decodes a block by a
/// single function, without calls through its table.
pub(crate) trait PforLoops: Copy {
    /// See [`Kernel::read_exception_bitmap`](super::Kernel::read_exception_bitmap).
    fn read_exception_bitmap(
        self,
        bytes: &[u8],
        bitmap_len: usize,
        sparse: bool,
        bitmap: &mut Bitmap,
    ) -> Option<StoredBitmap>;

    /// See [`Kernel::unpack`](super::Kernel::unpack).
    fn unpack(self, packed: &Packed, out: &mut [u32]);
}

/// The high parts of the exceptions of a block.
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

/// The number of exceptions of a block, and the length of the bitmap of their positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredBitmap {
    /// Number of set bits.
    pub(crate) count: usize,
    /// Number of bytes that the bitmap takes in the block.
    pub(crate) len: usize,
}

/// The exceptions of a block that is being encoded.
pub(crate) struct Exceptions {
    pub(crate) bitmap: Bitmap,
    /// The high part of each exception.
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
