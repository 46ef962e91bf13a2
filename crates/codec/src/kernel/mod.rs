//! The hot loops, one implementation an instruction set.
//!
//! You have slices whose lengths a codec has worked out; a [`Kernel`] does one loop over them. Its methods
//! check whatever memory safety needs, so that nothing outside this folder can be the reason of a bad access.
//! They know nothing of headers; of errors only `VByte`, where the loop itself finds the end; and of the
//! forms of blocks only how PFor says where its exceptions are ([`Kernel::places`]) and what each width would
//! cost.
//!
//! Every kernel gives the same values and the same bytes; [`scalar`] is the reference, and what the others
//! use wherever vector instructions would not help. A kernel is chosen once a process ([`Kernel::active`]).

/// The table of `$function::<W ..>` for W from 0 to 32.
macro_rules! by_width {
    ($function:ident $(, $more:ident)*) => {
        by_width!(@ $function, ($($more),*), 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32)
    };
    (@ $function:ident, $more:tt, $($w:literal)*) => { [$(by_width!(@@ $function, $more, $w)),*] };
    (@@ $function:ident, ($($more:ident),*), $w:literal) => { $function::<$w $(, $more)*> };
}

/// Runs `$body` once for each `$k` from 0 to 15 or to 31, as so many pieces of code in which `$k` is
/// constant.
macro_rules! unrolled {
    (16, $k:ident, $body:expr) => { unrolled!(@ $k, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15) };
    (32, $k:ident, $body:expr) => {
        unrolled!(@ $k, $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31)
    };
    (@ $k:ident, $body:expr, $($n:literal)*) => {{ $({ let $k = $n; $body; })* }};
}

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;
mod select;

use crate::bitpack::{Layout, WIDTH_MAX, packed_len};
use crate::runs::{RUN_SLACK, Run, RunPair};
use crate::score::{Places as ScorePlaces, Saturation, Swept};
use crate::search::Shared;
use crate::{BLOCK, DecodeError};
pub use select::KernelError;
use std::mem::MaybeUninit;

/// A set of loops for one instruction set. There is a value of this type only where the CPU can run it.
#[derive(Clone, Copy)]
pub struct Kernel(&'static Table);

/// The loops of a kernel. Each may assume what the method of [`Kernel`] of the same name checks, and that the
/// CPU has its instructions: the two reasons why they are unsafe.
#[allow(clippy::type_complexity, reason = "a table of what the methods of `Kernel` spell out")]
struct Table {
    name: &'static str,
    pack: unsafe fn(&[u32], u32, Layout, &mut [MaybeUninit<u8>]),
    unpack: unsafe fn(&Packed, &mut [u32]),
    wider: unsafe fn(&[u32]) -> Wider,
    shortest_patched: unsafe fn(usize, &Wider) -> (u32, usize),
    exceptions: unsafe fn(&[u32], u32, &mut Exceptions),
    places: unsafe fn(&[u8], usize, bool) -> Option<Places>,
    ones: unsafe fn(&[u8]) -> usize,
    sparse: unsafe fn(&Bitmap) -> Sparse,
    gaps: unsafe fn(&[u32], u32, u32, &mut [MaybeUninit<u32>]),
    vbyte_encode: unsafe fn(&[u32], &mut Vec<u8>),
    vbyte_decode: unsafe fn(&[u8], Option<u32>, &mut [u32]) -> Decoded,
    vbyte_skip: unsafe fn(&[u8], usize) -> Decoded,
    streamvbyte_encode: unsafe fn(&[u32], &mut [u8], &mut [u8]) -> usize,
    streamvbyte_data_len: unsafe fn(&[u8], usize) -> usize,
    streamvbyte_decode: unsafe fn(&[u8], &[u8], Option<u32>, &mut [u32]),
    intersect: unsafe fn(&[u32], &[u32], &mut Shared),
    rises: unsafe fn(&[u32]) -> bool,
    add_one: unsafe fn(&mut [u32]) -> u32,
    copy_runs: unsafe fn(&RunBlock, &[Run], &mut [u32]) -> usize,
    share_runs: unsafe fn(&RunBlock, &RunBlock, &mut [RunPair], &mut [u32]) -> usize,
    bitmap_read: unsafe fn(&[u8], u32, &mut [u32]),
    collect_bits: unsafe fn(&mut [u8], &mut [u8]),
    bitmap_find: unsafe fn(&[u8], u32, &[u32], &mut Shared),
    bitmap_score: unsafe fn(&Saturation, &[u8], u32, &[u32], &mut [u32]),
    score: unsafe fn(&Saturation, &[u32], &[u32], &mut [u32]),
    values_at_least: unsafe fn(&[u32], u32, &mut ScorePlaces),
    sweep: unsafe fn(&mut [u32], u32, u32, &mut Swept),
    mark_positive: unsafe fn(&[u32], &mut [u8]),
    keep_marked: unsafe fn(&mut [u32], &[u8]),
    keep_at_least: unsafe fn(&mut [u32], &mut [u32], usize, u32) -> usize,
    largest: unsafe fn(&mut [u64], usize, &mut Vec<u64>) -> u64,
}

/// Bytes consumed.
type Decoded = Result<usize, DecodeError>;

/// A block of runs.
type RunBlock = [u32; BLOCK + RUN_SLACK];

/// Bitmap of the values of a block: bit `i mod 8` of byte `i div 8` stands for value `i`.
pub(crate) type Bitmap = [u8; BLOCK / 8];

/// What each width, from 0 to 31, is too small for.
pub(crate) struct Wider {
    /// Number of values of more than so many bits.
    pub(crate) values: [u16; 32],
    /// Number of groups of eight neighbours that hold such a value.
    pub(crate) groups: [u16; 32],
    /// The smallest width that none is wider than.
    pub(crate) widest: u32,
}

/// Packed bits, and what is done to the values on their way out.
#[derive(Clone, Copy)]
pub(crate) struct Packed<'a> {
    /// Exactly as many bytes as the values take.
    pub(crate) bytes: &'a [u8],
    /// Bits of a value, at most 32.
    pub(crate) width: u32,
    pub(crate) layout: Layout,
    /// What is put over the values.
    pub(crate) patch: Option<Patch<'a>>,
    /// The value before, if the values are gaps less one and their sums are wanted.
    pub(crate) after: Option<u32>,
}

/// High parts of some values.
#[derive(Clone, Copy)]
pub(crate) struct Patch<'a> {
    /// Whose they are.
    pub(crate) bitmap: &'a Bitmap,
    /// One for each set bit, in order and packed horizontally. Any bytes may follow, and are not looked at.
    pub(crate) highs: &'a [u8],
    /// Bits of a high part: at least 1, and at most 32 together with the width of the values.
    pub(crate) width: u32,
}

/// How high parts are read: whether there are any, and how wide they may be.
#[cfg(target_arch = "x86_64")]
mod size {
    use super::{Bitmap, Patch};

    /// [`NONE`], [`BYTES`] or [`WORDS`].
    pub(super) type Size = u8;
    /// No values have high parts.
    pub(super) const NONE: Size = 0;
    /// High parts have up to 8 bits.
    pub(super) const BYTES: Size = 1;
    /// High parts have up to 32 bits.
    pub(super) const WORDS: Size = 2;

    /// The size of high parts.
    pub(super) fn of(patch: Option<Patch>) -> Size {
        patch.map_or(NONE, |patch| if patch.width <= 8 { BYTES } else { WORDS })
    }

    /// High parts of no values.
    pub(super) const NO_PATCH: Patch<'static> = Patch { bitmap: &NO_PLACES, highs: &[], width: 1 };
    static NO_PLACES: Bitmap = [0; 32];
}

/// Where a block has exceptions, as the block says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) bitmap: Bitmap,
    /// Set bits of the bitmap.
    pub(crate) count: usize,
    /// Bytes that say so.
    pub(crate) len: usize,
}

/// The exceptions of values that are to be packed.
pub(crate) struct Exceptions {
    pub(crate) bitmap: Bitmap,
    /// The high part of each.
    highs: [MaybeUninit<u32>; BLOCK],
    /// How many high parts have been written.
    count: usize,
}

impl Exceptions {
    /// None.
    pub(crate) fn new() -> Exceptions {
        Exceptions { bitmap: [0; _], highs: [MaybeUninit::uninit(); _], count: 0 }
    }

    /// The high parts.
    pub(crate) fn highs(&self) -> &[u32] {
        // SAFETY: So many have been written.
        unsafe { self.highs[..self.count].assume_init_ref() }
    }
}

/// Room for the gaps of a block, none of whose vectors lies in two cache lines.
#[repr(align(64))]
pub(crate) struct Gaps([MaybeUninit<u32>; BLOCK]);

impl Gaps {
    /// With nothing in it: clearing 1 KiB would take as long as filling it.
    pub(crate) fn new() -> Gaps {
        Gaps([MaybeUninit::uninit(); _])
    }
}

/// A bitmap without its zero bytes.
pub(crate) struct Sparse {
    /// Bit `k` is set if byte `k` of the bitmap is not zero.
    pub(crate) mask: u32,
    /// The bytes that are not zero, and as many zeros as have been left out.
    pub(crate) bytes: Bitmap,
}

/// Asks the processor to bring bytes near, if it can be asked.
pub(crate) fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(64) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: Nothing is read or written, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

impl Kernel {
    /// Portable loops: the reference that the others are tested against.
    pub const SCALAR: Kernel = Kernel(&scalar::TABLE);

    /// What users call it: `scalar`, `avx2` or `avx512`.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Appends the low `width` bits of each value.
    pub(crate) fn pack(self, values: &[u32], width: u32, layout: Layout, out: &mut Vec<u8>) {
        assert!(width <= WIDTH_MAX);
        let len = packed_len(values.len(), width);
        out.reserve(len);
        let packed = &mut out.spare_capacity_mut()[..len];
        // SAFETY: The CPU can, and the lengths match.
        unsafe { (self.0.pack)(values, width, layout, packed) };
        // SAFETY: There is room for so many more, and all of them have been written.
        unsafe { out.set_len(out.len() + len) };
    }

    /// Reads as many values as `out` has, which are at most 256.
    ///
    /// # Panics
    /// If lengths and widths do not fit one another. If there are fewer high parts than set bits there is a
    /// panic or wrong values, and no bad access.
    pub(crate) fn unpack(self, packed: &Packed, out: &mut [u32]) {
        let exact = packed.bytes.len() == packed_len(out.len(), packed.width);
        let high_width = packed.patch.map_or(1, |patch| patch.width);
        let fits = high_width > 0 && packed.width.saturating_add(high_width) <= WIDTH_MAX;
        assert!(out.len() <= BLOCK && packed.width <= WIDTH_MAX && exact && (packed.patch.is_none() || fits));
        // SAFETY: The CPU can, the widths are possible, and the lengths match.
        unsafe { (self.0.unpack)(packed, out) }
    }

    /// Counts, for each width, what is wider. At most 256 values.
    pub(crate) fn wider(self, values: &[u32]) -> Wider {
        assert!(values.len() <= BLOCK);
        // SAFETY: The CPU can, and there are not too many.
        unsafe { (self.0.wider)(values) }
    }

    /// Width and length of the shortest block of `n` <= 256 values with exceptions; see [`crate::pfor`].
    pub(crate) fn shortest_patched(self, n: usize, wider: &Wider) -> (u32, usize) {
        assert!(n <= BLOCK);
        // SAFETY: The CPU can.
        unsafe { (self.0.shortest_patched)(n, wider) }
    }

    /// Finds the values of more than `width` < 32 bits, at most 256 of them, and what is above these bits.
    pub(crate) fn exceptions(self, values: &[u32], width: u32, found: &mut Exceptions) {
        assert!(values.len() <= BLOCK && width < WIDTH_MAX);
        // SAFETY: The CPU can, and there are not too many.
        unsafe { (self.0.exceptions)(values, width, found) }
    }

    /// Reads a bitmap of `bitmap_len` <= 32 bytes; a sparse one has a bit for each of its bytes, and then
    /// those whose bit is set. None if `bytes` end before.
    pub(crate) fn places(self, bytes: &[u8], bitmap_len: usize, sparse: bool) -> Option<Places> {
        assert!(bitmap_len <= BLOCK / 8);
        // SAFETY: The CPU can, and the bitmap is not too long.
        unsafe { (self.0.places)(bytes, bitmap_len, sparse) }
    }

    /// Set bits of `bytes`.
    pub(crate) fn ones(self, bytes: &[u8]) -> usize {
        // SAFETY: The CPU can.
        unsafe { (self.0.ones)(bytes) }
    }

    /// Leaves out the zero bytes.
    pub(crate) fn sparse(self, bitmap: &Bitmap) -> Sparse {
        // SAFETY: The CPU can.
        unsafe { (self.0.sparse)(bitmap) }
    }

    /// `values[i] - values[i-1] - step` mod 2^32, with `prev` before the first. At most 256 values.
    pub(crate) fn gaps<'a>(self, values: &[u32], prev: u32, step: u32, room: &'a mut Gaps) -> &'a [u32] {
        let gaps = &mut room.0[..values.len()];
        // SAFETY: The CPU can, and the lengths match.
        unsafe { (self.0.gaps)(values, prev, step, gaps) };
        // SAFETY: There is a gap for every value, and all have been written.
        unsafe { gaps.assume_init_ref() }
    }

    /// Appends `values`, 1 to 5 bytes each.
    pub(crate) fn vbyte_encode(self, values: &[u32], out: &mut Vec<u8>) {
        // SAFETY: The CPU can.
        unsafe { (self.0.vbyte_encode)(values, out) }
    }

    /// Reads as many values as `out` has, or their sums from `after` on; returns the bytes consumed.
    pub(crate) fn vbyte_decode(
        self,
        bytes: &[u8],
        after: Option<u32>,
        out: &mut [u32],
    ) -> Result<usize, DecodeError> {
        // SAFETY: The CPU can.
        unsafe { (self.0.vbyte_decode)(bytes, after, out) }
    }

    /// Bytes up to and including the `n`-th whose continuation bit is clear.
    pub(crate) fn vbyte_skip(self, bytes: &[u8], n: usize) -> Result<usize, DecodeError> {
        // SAFETY: The CPU can.
        unsafe { (self.0.vbyte_skip)(bytes, n) }
    }

    /// Writes a zeroed control byte for every four values or fewer, and the data of all; returns their bytes.
    /// `data` has room for four bytes a value.
    pub(crate) fn streamvbyte_encode(self, values: &[u32], controls: &mut [u8], data: &mut [u8]) -> usize {
        assert!(controls.len() == values.len().div_ceil(4) && data.len() >= 4 * values.len());
        // SAFETY: The CPU can, and there is room.
        unsafe { (self.0.streamvbyte_encode)(values, controls, data) }
    }

    /// Bytes of data that `controls` announce for `n` values; the codes beyond the `n`-th are zero.
    pub(crate) fn streamvbyte_data_len(self, controls: &[u8], n: usize) -> usize {
        // SAFETY: The CPU can.
        unsafe { (self.0.streamvbyte_data_len)(controls, n) }
    }

    /// Reads as many values as `out` has, or their sums from `after` on. `data` has exactly the bytes that
    /// `controls` announce, which is checked by the caller at no cost and here in debug builds; if it has
    /// not, there is a panic or wrong values, and no bad access.
    pub(crate) fn streamvbyte_decode(
        self,
        controls: &[u8],
        data: &[u8],
        after: Option<u32>,
        out: &mut [u32],
    ) {
        assert!(out.len() <= BLOCK && controls.len() == out.len().div_ceil(4));
        debug_assert_eq!(data.len(), self.streamvbyte_data_len(controls, out.len()));
        // SAFETY: The CPU can, and there is a code for every value.
        unsafe { (self.0.streamvbyte_decode)(controls, data, after, out) }
    }

    /// Finds the values that stand in both of two rising blocks of at most 256.
    pub(crate) fn intersect(self, first: &[u32], second: &[u32], shared: &mut Shared) {
        assert!(first.len() <= BLOCK && second.len() <= BLOCK);
        // SAFETY: The CPU can, and there are not too many.
        unsafe { (self.0.intersect)(first, second, shared) }
    }

    /// Whether values rise; see [`crate::search::rises`].
    pub(crate) fn rises(self, values: &[u32]) -> bool {
        // SAFETY: The CPU can.
        unsafe { (self.0.rises)(values) }
    }

    /// Adds 1 to all; see [`crate::search::add_one`].
    pub(crate) fn add_one(self, values: &mut [u32]) -> u32 {
        // SAFETY: The CPU can.
        unsafe { (self.0.add_one)(values) }
    }

    /// Copies runs of values; see [`crate::copy_runs`].
    pub(crate) fn copy_runs(self, values: &RunBlock, runs: &[Run], out: &mut [u32]) -> usize {
        // SAFETY: The CPU can.
        unsafe { (self.0.copy_runs)(values, runs, out) }
    }

    /// Finds what pairs of runs share; see [`crate::share_runs`].
    pub(crate) fn share_runs(
        self,
        first: &RunBlock,
        second: &RunBlock,
        pairs: &mut [RunPair],
        out: &mut [u32],
    ) -> usize {
        // SAFETY: The CPU can.
        unsafe { (self.0.share_runs)(first, second, pairs, out) }
    }

    /// Reads the values of the set bits, counted from `prev + 1` on: as many as `out` has, if there are.
    pub(crate) fn bitmap_read(self, bits: &[u8], prev: u32, out: &mut [u32]) {
        // SAFETY: The CPU can.
        unsafe { (self.0.bitmap_read)(bits, prev, out) }
    }

    /// Makes bits of marks; see [`crate::collect_bits`].
    pub(crate) fn collect_bits(self, marks: &mut [u8], bits: &mut [u8]) {
        assert_eq!(marks.len(), 8 * bits.len());
        // SAFETY: The CPU can, and there are eight marks for each byte of bits.
        unsafe { (self.0.collect_bits)(marks, bits) }
    }

    /// Finds at most 256 values in a bitmap from `first` on; see [`crate::BitmapView::find`].
    pub(crate) fn bitmap_find(self, bits: &[u8], first: u32, values: &[u32], shared: &mut Shared) {
        assert!(values.len() <= BLOCK);
        // SAFETY: The CPU can, and there are not too many.
        unsafe { (self.0.bitmap_find)(bits, first, values, shared) }
    }

    /// Adds the scores of the values of a bitmap from `first` on to the sums of all values from there on; see
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
        // SAFETY: The CPU can, and every sum has a bit and a code.
        unsafe { (self.0.bitmap_score)(of, bits, first, frequencies, sums) }
    }

    /// Scores a block of values; see [`Saturation::score`].
    pub(crate) fn score(self, of: &Saturation, values: &[u32], frequencies: &[u32], scores: &mut [u32]) {
        let n = values.len();
        assert!(n <= BLOCK && frequencies.len() == n && scores.len() == n);
        // SAFETY: The CPU can, and there is a frequency and room for a score for each value.
        unsafe { (self.0.score)(of, values, frequencies, scores) }
    }

    /// Finds the values that are large enough; see [`crate::score::values_at_least`].
    pub(crate) fn values_at_least(self, values: &[u32], least: u32, places: &mut ScorePlaces) {
        assert!(values.len() <= BLOCK);
        // SAFETY: The CPU can, and there are not too many.
        unsafe { (self.0.values_at_least)(values, least, places) }
    }

    /// Finds large sums and clears all; see [`crate::score::sweep`]. The loops get at least 1 for `least`.
    pub(crate) fn sweep(self, sums: &mut [u32], first: u32, least: u32, swept: &mut Swept) {
        // SAFETY: The CPU can.
        unsafe { (self.0.sweep)(sums, first, least.max(1), swept) }
    }

    /// Sets the bits of the sums that are greater than 0; see [`crate::score::mark_positive`].
    pub(crate) fn mark_positive(self, sums: &[u32], bits: &mut [u8]) {
        assert!(sums.len() <= 8 * bits.len());
        // SAFETY: The CPU can, and every sum has a bit.
        unsafe { (self.0.mark_positive)(sums, bits) }
    }

    /// Clears the sums whose bits are not set; see [`crate::score::keep_marked`].
    pub(crate) fn keep_marked(self, sums: &mut [u32], bits: &[u8]) {
        assert!(sums.len() <= 8 * bits.len());
        // SAFETY: The CPU can, and every sum has a bit.
        unsafe { (self.0.keep_marked)(sums, bits) }
    }

    /// Keeps values with large scores; see [`crate::score::keep_at_least`].
    pub(crate) fn keep_at_least(
        self,
        values: &mut [u32],
        scores: &mut [u32],
        from: usize,
        least: u32,
    ) -> usize {
        assert!(scores.len() == values.len() && from <= values.len());
        // SAFETY: The CPU can, and there is a score for each value.
        unsafe { (self.0.keep_at_least)(values, scores, from, least) }
    }

    /// Moves the largest `k` keys to the front; see [`crate::score::largest`].
    pub(crate) fn largest(self, keys: &mut [u64], k: usize, scratch: &mut Vec<u64>) -> u64 {
        assert!(k <= keys.len());
        // SAFETY: The CPU can, and there are enough.
        unsafe { (self.0.largest)(keys, k, scratch) }
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
