//! The hot loops, one implementation per instruction set.
//!
//! A codec reads the header of a block and computes the lengths of its parts; a [`Kernel`] runs one loop over
//! them. Its methods check every condition that memory safety needs, so that code outside this module cannot
//! cause an invalid access. A kernel does not interpret headers, with two exceptions. In `VByte` the loop
//! itself finds the end of the input. Of PFor it reads the positions of the exceptions
//! ([`Kernel::read_exception_bitmap`]), compiles the decoder with its loops inlined
//! ([`Kernel::pfor_decode`]), and computes the length of a block for each width
//! ([`Kernel::shortest_patched_block`]).
//!
//! Every kernel gives the same values and the same bytes. [`scalar`] is the reference; the other kernels
//! also use its loops where vector instructions do not help. A process chooses one kernel
//! ([`Kernel::active`]).

/// An array of the functions `$function::<W ..>` for W from 0 to 32.
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
use crate::block::{BLOCK, Intersection, MARGIN_MAX, RunPair, Selection, Survivors, ValueRun};
use crate::{error::Result, saturation::Saturation};
pub use select::KernelError;
pub(crate) use table::{
    Bitmap, Exceptions, GapBuffer, OffsetRange, Packed, PackedOffsets, PforLoops, StoredBitmap,
};
use table::{KernelTable, RunBlock, SparseBitmap, WidthCounts, loops};

/// The vector loops for one instruction set. A value of this type exists only if the CPU can run them.
#[derive(Clone, Copy)]
pub struct Kernel(&'static KernelTable);

/// The bytes as `u32` words, if they are aligned and the machine is little-endian.
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
        packed.assert_consistent(out.len());
        // SAFETY: The CPU has the instructions of this kernel, the widths are valid, and the lengths match.
        unsafe { (self.0.unpack)(packed, out) }
    }

    /// `values[i] - values[i-1] - step` mod 2^32, with `prev` before the first. At most 256 values.
    pub(crate) fn compute_gaps<'a>(
        self,
        values: &[u32],
        prev: u32,
        step: u32,
        buffer: &'a mut GapBuffer,
    ) -> &'a [u32] {
        let gaps = &mut buffer.0[..values.len()];
        // SAFETY: The CPU has the instructions of this kernel, and the lengths match.
        unsafe { (self.0.compute_gaps)(values, prev, step, gaps) };
        // SAFETY: There is a gap for every value, and all have been written.
        unsafe { gaps.assume_init_ref() }
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
}

macro_rules! methods {
    (
        { $($other:ident: $pointer:ty,)* }
        $(
            $(#[$doc:meta])*
            $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? $([$condition:expr])?;
        )*
    ) => {
        impl Kernel {
            $(
                $(#[$doc])*
                pub(crate) fn $name(self, $($argument: $type),*) $(-> $result)? {
                    $(assert!($condition);)?
                    // SAFETY: The CPU has the instructions of this kernel, and the loop's condition is met.
                    unsafe { (self.0.$name)($($argument),*) }
                }
            )*
        }
    };
}
loops!(methods);

impl PforLoops for Kernel {
    fn read_exception_bitmap(
        self,
        bytes: &[u8],
        bitmap_len: usize,
        sparse: bool,
        bitmap: &mut Bitmap,
    ) -> Option<StoredBitmap> {
        Kernel::read_exception_bitmap(self, bytes, bitmap_len, sparse, bitmap)
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
