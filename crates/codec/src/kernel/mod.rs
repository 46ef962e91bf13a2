//! The hot loops, one implementation per instruction set.
//!
//! A codec works out the lengths of its slices; a [`Kernel`] runs one loop over them. Its methods check
//! every condition that memory safety needs, so that code outside this module cannot cause an invalid
//! access. A kernel does not interpret block headers. Two exceptions: `VByte`, where the loop itself finds
//! the end of the input, and PFor, where it reads the positions of the exceptions
//! ([`Kernel::exception_bitmap`]), compiles the decoder with its loops inlined ([`Kernel::pfor_decode`]),
//! and computes the block length for each width ([`Kernel::shortest_patched`]).
//!
//! Every kernel gives the same values and the same bytes. [`scalar`] is the reference; the other kernels
//! also use its loops where vector instructions do not help. A process chooses one kernel
//! ([`Kernel::active`]).

/// The table of `$function::<W ..>` for W from 0 to 32.
macro_rules! by_width {
    ($function:ident $(, $more:ident)*) => {
        by_width!(@ $function, ($($more),*), 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32)
    };
    (@ $function:ident, $more:tt, $($w:literal)*) => { [$(by_width!(@@ $function, $more, $w)),*] };
    (@@ $function:ident, ($($more:ident),*), $w:literal) => { $function::<$w $(, $more)*> };
}

/// Repeats `$body` for each `$k` from 0 to 7, 15 or 31: straight-line code in which `$k` is a constant.
macro_rules! unrolled {
    (8, $k:ident, $body:expr) => { unrolled!(@ $k, $body, 0 1 2 3 4 5 6 7) };
    (16, $k:ident, $body:expr) => { unrolled!(@ $k, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15) };
    (32, $k:ident, $body:expr) => {
        unrolled!(@ $k, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31)
    };
    (@ $k:ident, $body:expr, $($n:literal)*) => {{ $({ let $k = $n; $body; })* }};
}

// Before the modules that use its macros.
#[cfg(target_arch = "x86_64")]
#[macro_use]
mod x86;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;
mod select;
#[cfg(target_arch = "x86_64")]
mod size;
pub(crate) mod table;

use crate::bitpack::{Layout, WIDTH_MAX, packed_len};
use crate::block::{BLOCK, Intersection, RunPair, Selection, Survivors, ValueRun};
use crate::{error::DecodeError, saturation::Saturation};
pub use select::KernelError;
pub(crate) use table::{
    Bitmap, Exceptions, GapBuffer, Packed, PforLoops, SparseBitmap, StoredBitmap, WidthCounts,
};
use table::{KernelTable, RunBlock};

/// A set of loops for one instruction set. There is a value of this type only where the CPU can run it.
#[derive(Clone, Copy)]
pub struct Kernel(&'static KernelTable);

/// The bytes as little-endian words, if the machine has those and the bytes are aligned.
pub(crate) fn words(bytes: &[u8]) -> Option<&[u32]> {
    // SAFETY: Every four bytes are a valid `u32`.
    let (before, words, after) = unsafe { bytes.align_to::<u32>() };
    (cfg!(target_endian = "little") && before.is_empty() && after.is_empty()).then_some(words)
}

/// Prefetches bytes into the CPU caches, where the target has an instruction for it.
pub(crate) fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(64) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: A prefetch reads and writes nothing, and is valid for every address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

impl Kernel {
    /// Portable loops: the reference for tests of the other kernels.
    pub const SCALAR: Kernel = Kernel(&scalar::TABLE);

    /// The name: `scalar`, `avx2`, `avx512f` or `avx512`.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Appends the low `width` bits of each value.
    pub(crate) fn pack(self, values: &[u32], width: u32, layout: Layout, out: &mut Vec<u8>) {
        assert!(width <= WIDTH_MAX);
        let len = packed_len(values.len(), width);
        out.reserve(len);
        let packed = &mut out.spare_capacity_mut()[..len];
        // SAFETY: The CPU has the instructions of this kernel, and the lengths match.
        unsafe { (self.0.pack)(values, width, layout, packed) };
        // SAFETY: The capacity is sufficient, and the kernel has written all `len` bytes.
        unsafe { out.set_len(out.len() + len) };
    }

    /// Unpacks `out.len()` values, at most 256.
    ///
    /// # Panics
    /// If lengths and widths are inconsistent. Fewer high parts than set bits cause a panic or wrong values,
    /// but no invalid access.
    pub(crate) fn unpack(self, packed: &Packed, out: &mut [u32]) {
        packed.check(out.len());
        // SAFETY: The CPU has the instructions of this kernel, the widths are valid, and the lengths match.
        unsafe { (self.0.unpack)(packed, out) }
    }

    /// See [`crate::pfor::read::decode`]. At most 256 values.
    pub(crate) fn pfor_decode(
        self,
        bytes: &[u8],
        layout: Layout,
        after: Option<u32>,
        out: &mut [u32],
    ) -> Result<usize, DecodeError> {
        assert!(out.len() <= BLOCK);
        // SAFETY: The CPU has the instructions of this kernel, and there are at most 256 values.
        unsafe { (self.0.pfor_decode)(bytes, layout, after, out) }
    }

    /// Counts, for each width, the values that are wider. At most 256 values.
    pub(crate) fn count_wider(self, values: &[u32]) -> WidthCounts {
        assert!(values.len() <= BLOCK);
        // SAFETY: The CPU has the instructions of this kernel, and there are at most 256 values.
        unsafe { (self.0.count_wider)(values) }
    }

    /// Width and length of the shortest block of `n` <= 256 values with exceptions; see
    /// [`crate::pfor::cost::shortest_patched`].
    pub(crate) fn shortest_patched(self, n: usize, counts: &WidthCounts) -> (u32, usize) {
        assert!(n <= BLOCK);
        // SAFETY: The CPU has the instructions of this kernel.
        unsafe { (self.0.shortest_patched)(n, counts) }
    }

    /// Finds the exceptions of at most 256 values, those of more than `width` < 32 bits, and their high
    /// parts.
    pub(crate) fn exceptions(self, values: &[u32], width: u32, found: &mut Exceptions) {
        assert!(values.len() <= BLOCK && width < WIDTH_MAX);
        // SAFETY: The CPU has the instructions of this kernel, and there are at most 256 values.
        unsafe { (self.0.exceptions)(values, width, found) }
    }

    /// Reads a bitmap of `bitmap_len` <= 32 bytes and pads it with zeros. A sparse bitmap has a bit for each
    /// of its bytes, then the bytes whose bit is set. `None` if `bytes` is too short.
    pub(crate) fn exception_bitmap(
        self,
        bytes: &[u8],
        bitmap_len: usize,
        sparse: bool,
        bitmap: &mut Bitmap,
    ) -> Option<StoredBitmap> {
        assert!(bitmap_len <= BLOCK / 8);
        // SAFETY: The CPU has the instructions of this kernel, and the bitmap is not too long.
        unsafe { (self.0.exception_bitmap)(bytes, bitmap_len, sparse, bitmap) }
    }

    /// The number of set bits in `bytes`.
    pub(crate) fn count_ones(self, bytes: &[u8]) -> usize {
        // SAFETY: The CPU has the instructions of this kernel.
        unsafe { (self.0.count_ones)(bytes) }
    }

    /// The sparse form of a bitmap: a mask and the nonzero bytes.
    pub(crate) fn sparse_bitmap(self, bitmap: &Bitmap) -> SparseBitmap {
        // SAFETY: The CPU has the instructions of this kernel.
        unsafe { (self.0.sparse_bitmap)(bitmap) }
    }

    /// `values[i] - values[i-1] - step` mod 2^32, with `prev` before the first. At most 256 values.
    pub(crate) fn gaps<'a>(
        self,
        values: &[u32],
        prev: u32,
        step: u32,
        buffer: &'a mut GapBuffer,
    ) -> &'a [u32] {
        let gaps = &mut buffer.0[..values.len()];
        // SAFETY: The CPU has the instructions of this kernel, and the lengths match.
        unsafe { (self.0.gaps)(values, prev, step, gaps) };
        // SAFETY: There is a gap for every value, and all have been written.
        unsafe { gaps.assume_init_ref() }
    }

    /// Appends `values`, 1 to 5 bytes each.
    pub(crate) fn vbyte_encode(self, values: &[u32], out: &mut Vec<u8>) {
        // SAFETY: The CPU has the instructions of this kernel.
        unsafe { (self.0.vbyte_encode)(values, out) }
    }

    /// Reads `out.len()` values, or their prefix sums from `after` on; returns the bytes consumed.
    pub(crate) fn vbyte_decode(
        self,
        bytes: &[u8],
        after: Option<u32>,
        out: &mut [u32],
    ) -> Result<usize, DecodeError> {
        // SAFETY: The CPU has the instructions of this kernel.
        unsafe { (self.0.vbyte_decode)(bytes, after, out) }
    }

    /// The number of bytes up to and including the `n`-th whose continuation bit is clear.
    pub(crate) fn vbyte_skip(self, bytes: &[u8], n: usize) -> Result<usize, DecodeError> {
        // SAFETY: The CPU has the instructions of this kernel.
        unsafe { (self.0.vbyte_skip)(bytes, n) }
    }

    /// Writes the control bytes, which are zero before, one for each four values, and the data; returns the
    /// length of the data. `data` has at least four bytes per value.
    pub(crate) fn streamvbyte_encode(self, values: &[u32], controls: &mut [u8], data: &mut [u8]) -> usize {
        assert!(controls.len() == values.len().div_ceil(4) && data.len() >= 4 * values.len());
        // SAFETY: The CPU has the instructions of this kernel, and both slices are long enough.
        unsafe { (self.0.streamvbyte_encode)(values, controls, data) }
    }

    /// Bytes of data for `n` values with these control bytes; the codes after the `n`-th are zero.
    pub(crate) fn streamvbyte_data_len(self, controls: &[u8], n: usize) -> usize {
        // SAFETY: The CPU has the instructions of this kernel.
        unsafe { (self.0.streamvbyte_data_len)(controls, n) }
    }

    /// Reads `out.len()` values, or their prefix sums from `after` on. `data` has exactly the length that
    /// the control bytes give. The caller checks that at no cost, and debug builds check it here; another
    /// length causes a panic or wrong values, but no invalid access.
    pub(crate) fn streamvbyte_decode(
        self,
        controls: &[u8],
        data: &[u8],
        after: Option<u32>,
        out: &mut [u32],
    ) {
        assert!(out.len() <= BLOCK && controls.len() == out.len().div_ceil(4));
        debug_assert_eq!(data.len(), self.streamvbyte_data_len(controls, out.len()));
        // SAFETY: The CPU has the instructions of this kernel, and there is a code for every value.
        unsafe { (self.0.streamvbyte_decode)(controls, data, after, out) }
    }

    /// Finds the values that two strictly increasing blocks of at most 256 values share.
    pub(crate) fn intersect(self, first: &[u32], second: &[u32], shared: &mut Intersection) {
        assert!(first.len() <= BLOCK && second.len() <= BLOCK);
        // SAFETY: The CPU has the instructions of this kernel, and there are at most 256 values.
        unsafe { (self.0.intersect)(first, second, shared) }
    }

    /// Whether the values are strictly increasing; see [`crate::is_increasing`].
    pub(crate) fn is_increasing(self, values: &[u32]) -> bool {
        // SAFETY: The CPU has the instructions of this kernel.
        unsafe { (self.0.is_increasing)(values) }
    }

    /// Adds 1 to each value; see [`crate::add_one`].
    pub(crate) fn add_one(self, values: &mut [u32]) -> u32 {
        // SAFETY: The CPU has the instructions of this kernel.
        unsafe { (self.0.add_one)(values) }
    }

    /// Copies runs of values; see [`crate::copy_runs`].
    pub(crate) fn copy_runs(self, values: &RunBlock, runs: &[ValueRun], out: &mut [u32]) -> usize {
        // SAFETY: The CPU has the instructions of this kernel.
        unsafe { (self.0.copy_runs)(values, runs, out) }
    }

    /// Intersects pairs of runs; see [`crate::intersect_runs`].
    pub(crate) fn intersect_runs(
        self,
        first: &RunBlock,
        second: &RunBlock,
        pairs: &mut [RunPair],
        out: &mut [u32],
    ) -> usize {
        // SAFETY: The CPU has the instructions of this kernel.
        unsafe { (self.0.intersect_runs)(first, second, pairs, out) }
    }

    /// Reads the values of the first `out.len()` set bits; bit 0 is `prev + 1`. Fewer set bits leave the end
    /// of `out` unspecified.
    pub(crate) fn bitmap_read(self, bits: &[u8], prev: u32, out: &mut [u32]) {
        // SAFETY: The CPU has the instructions of this kernel.
        unsafe { (self.0.bitmap_read)(bits, prev, out) }
    }

    /// Collects marks into bits; see [`crate::collect_bits`].
    pub(crate) fn collect_bits(self, marks: &mut [u8], bits: &mut [u8]) {
        assert_eq!(marks.len(), 8 * bits.len());
        // SAFETY: The CPU has the instructions of this kernel, and there are eight marks for each byte of
        // bits.
        unsafe { (self.0.collect_bits)(marks, bits) }
    }

    /// Finds at most 256 values in a bitmap whose bit 0 is `first`; see [`crate::BitmapView::find`].
    pub(crate) fn bitmap_find(self, bits: &[u8], first: u32, values: &[u32], shared: &mut Intersection) {
        assert!(values.len() <= BLOCK);
        // SAFETY: The CPU has the instructions of this kernel, and there are at most 256 values.
        unsafe { (self.0.bitmap_find)(bits, first, values, shared) }
    }

    /// Adds the scores of the values of a bitmap to their sums; bit 0 and the first sum are `first`. See
    /// [`Saturation::add_bits`].
    pub(crate) fn bitmap_score(
        self,
        of: &Saturation,
        bits: &[u8],
        first: u32,
        frequencies: &[u32],
        sums: &mut [u32],
    ) {
        let end = first as usize + sums.len();
        assert!(sums.len() <= 8 * bits.len() && end <= of.codes.len());
        // SAFETY: The CPU has the instructions of this kernel, and every sum has a bit and a code.
        unsafe { (self.0.bitmap_score)(of, bits, first, frequencies, sums) }
    }

    /// Scores a block of values; see [`Saturation::score`].
    pub(crate) fn score(self, of: &Saturation, values: &[u32], frequencies: &[u32], scores: &mut [u32]) {
        let n = values.len();
        assert!(n <= BLOCK && frequencies.len() == n && scores.len() == n);
        // SAFETY: The CPU has the instructions of this kernel, and there is a frequency and a score for each
        // value.
        unsafe { (self.0.score)(of, values, frequencies, scores) }
    }

    /// Selects the values of at least `threshold`; see [`crate::values_at_least`].
    pub(crate) fn values_at_least(self, values: &[u32], threshold: u32, positions: &mut Selection) {
        assert!(values.len() <= BLOCK);
        // SAFETY: The CPU has the instructions of this kernel, and there are at most 256 values.
        unsafe { (self.0.values_at_least)(values, threshold, positions) }
    }

    /// Collects the sums of at least `threshold` and clears all; see [`crate::drain_at_least`]. The loops get
    /// a threshold of at least 1.
    pub(crate) fn drain_at_least(
        self,
        sums: &mut [u32],
        first: u32,
        threshold: u32,
        survivors: &mut Survivors,
    ) {
        // SAFETY: The CPU has the instructions of this kernel.
        unsafe { (self.0.drain_at_least)(sums, first, threshold.max(1), survivors) }
    }

    /// Sets the bits of the sums that are greater than 0; see [`crate::mark_positive`].
    pub(crate) fn mark_positive(self, sums: &[u32], bits: &mut [u8]) {
        assert!(sums.len() <= 8 * bits.len());
        // SAFETY: The CPU has the instructions of this kernel, and every sum has a bit.
        unsafe { (self.0.mark_positive)(sums, bits) }
    }

    /// Clears the sums whose bits are clear; see [`crate::keep_marked`].
    pub(crate) fn keep_marked(self, sums: &mut [u32], bits: &[u8]) {
        assert!(sums.len() <= 8 * bits.len());
        // SAFETY: The CPU has the instructions of this kernel, and every sum has a bit.
        unsafe { (self.0.keep_marked)(sums, bits) }
    }

    /// Compacts values and scores to those of at least `threshold`; see [`crate::keep_at_least`].
    pub(crate) fn keep_at_least(
        self,
        values: &mut [u32],
        scores: &mut [u32],
        from: usize,
        threshold: u32,
    ) -> usize {
        assert!(scores.len() == values.len() && from <= values.len());
        // SAFETY: The CPU has the instructions of this kernel, and there is a score for each value.
        unsafe { (self.0.keep_at_least)(values, scores, from, threshold) }
    }

    /// Moves the largest `k` keys to the front; see [`crate::largest`].
    pub(crate) fn largest(self, keys: &mut [u64], k: usize, scratch: &mut Vec<u64>) -> u64 {
        assert!(k <= keys.len());
        // SAFETY: The CPU has the instructions of this kernel, and there are at least `k` keys.
        unsafe { (self.0.largest)(keys, k, scratch) }
    }
}

impl PforLoops for Kernel {
    fn exception_bitmap(
        self,
        bytes: &[u8],
        bitmap_len: usize,
        sparse: bool,
        bitmap: &mut Bitmap,
    ) -> Option<StoredBitmap> {
        Kernel::exception_bitmap(self, bytes, bitmap_len, sparse, bitmap)
    }

    fn unpack(self, packed: &Packed, out: &mut [u32]) {
        Kernel::unpack(self, packed, out);
    }
}

impl PartialEq for Kernel {
    fn eq(&self, other: &Kernel) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Kernel {}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Kernel({})", self.name())
    }
}
