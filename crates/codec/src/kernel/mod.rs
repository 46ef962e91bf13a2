//! The hot loops, one implementation an instruction set.
//!
//! You have slices whose lengths a codec has worked out; a [`Kernel`] does one loop over them. Its methods check
//! whatever memory safety needs, so that nothing outside this folder can be the reason of a bad access. They
//! know nothing of headers, forms or errors, except for `VByte`, where the loop itself finds the end.
//!
//! Every kernel gives the same values and the same bytes; [`scalar`] is the reference, and what the others use
//! wherever vector instructions would not help. A kernel is chosen once a process ([`Kernel::active`]).

#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;
mod select;

use crate::bitpack::{Layout, WIDTH_MAX, packed_len};
use crate::{BLOCK, DecodeError};
pub use select::KernelError;

/// A set of loops for one instruction set. There is a value of this type only where the CPU can run it.
#[derive(Clone, Copy)]
pub struct Kernel(&'static Table);

/// The loops of a kernel. Each may assume what the method of [`Kernel`] of the same name checks, and that the
/// CPU has its instructions: the two reasons why they are unsafe.
struct Table {
    name: &'static str,
    pack: unsafe fn(&[u32], u32, Layout, &mut [u8]),
    unpack: unsafe fn(&Packed, &mut [u32]),
    wider: unsafe fn(&[u32]) -> [u16; WIDTHS],
    highs: unsafe fn(&[u8], u32, u32, &mut Exceptions) -> bool,
    exceptions: unsafe fn(&[u32], u32, &mut Exceptions),
    gaps: unsafe fn(&[u32], u32, u32, &mut [u32]),
    vbyte_encode: unsafe fn(&[u32], &mut Vec<u8>),
    vbyte_decode: unsafe fn(&[u8], Option<u32>, &mut [u32]) -> Decoded,
    vbyte_skip: unsafe fn(&[u8], usize) -> Decoded,
    streamvbyte_encode: unsafe fn(&[u32], &mut [u8], &mut [u8]) -> usize,
    streamvbyte_data_len: unsafe fn(&[u8], usize) -> usize,
    streamvbyte_decode: unsafe fn(&[u8], &[u8], Option<u32>, &mut [u32]),
    bitmap_read: unsafe fn(&[u8], u32, &mut [u32]),
}

/// Bytes consumed.
type Decoded = Result<usize, DecodeError>;

/// Places of [`Kernel::wider`]: widths 0 to 32, and 7 more that are always zero.
pub(crate) const WIDTHS: usize = 40;

/// Packed bits, and what is done to the values on their way out.
pub(crate) struct Packed<'a> {
    /// Exactly as many bytes as the values take.
    pub(crate) bytes: &'a [u8],
    /// Bits of a value, at most 32.
    pub(crate) width: u32,
    pub(crate) layout: Layout,
    /// What is put over the values.
    pub(crate) exceptions: Option<&'a Exceptions>,
    /// The value before, if the values are gaps less one and their sums are wanted.
    pub(crate) after: Option<u32>,
}

/// High parts of the values that are wider than the others, and where they belong.
pub(crate) struct Exceptions {
    /// Bit `i mod 8` of byte `i div 8` is set if value `i` is an exception.
    pub(crate) bitmap: [u8; BLOCK / 8],
    /// One for each set bit, in order; [`Kernel::unpack`] wants them shifted to where they belong. What comes
    /// after them is anything; the slack lets a whole vector be read from any of them.
    pub(crate) highs: [u32; BLOCK + Exceptions::SLACK],
    pub(crate) count: usize,
}

impl Exceptions {
    const SLACK: usize = 16;

    /// None.
    pub(crate) const fn new() -> Exceptions {
        Exceptions { bitmap: [0; BLOCK / 8], highs: [0; BLOCK + Exceptions::SLACK], count: 0 }
    }

    /// The high parts.
    pub(crate) fn highs(&self) -> &[u32] {
        &self.highs[..self.count]
    }
}

impl Kernel {
    /// Portable loops: the reference that the others are tested against.
    pub const SCALAR: Kernel = Kernel(&scalar::TABLE);

    /// What users call it: `scalar`, `avx2` or `avx512`.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Writes the low `width` bits of each value to `packed`, all of whose bytes are taken.
    pub(crate) fn pack(self, values: &[u32], width: u32, layout: Layout, packed: &mut [u8]) {
        assert!(width <= WIDTH_MAX && packed.len() == packed_len(values.len(), width));
        // SAFETY: The CPU can, and the lengths match.
        unsafe { (self.0.pack)(values, width, layout, packed) }
    }

    /// Reads as many values as `out` has, which are at most 256.
    pub(crate) fn unpack(self, packed: &Packed, out: &mut [u32]) {
        let exact = packed.bytes.len() == packed_len(out.len(), packed.width);
        assert!(out.len() <= BLOCK && packed.width <= WIDTH_MAX && exact);
        // SAFETY: The CPU can, and the lengths match. A bitmap of 256 bits cannot ask for a 257th exception.
        unsafe { (self.0.unpack)(packed, out) }
    }

    /// Reads `found.count` high parts of `width` bits to where they belong, above `shift` bits; false if one of
    /// them is zero. `width + shift` is at most 32.
    pub(crate) fn highs(self, bytes: &[u8], width: u32, shift: u32, found: &mut Exceptions) -> bool {
        let exact = bytes.len() == packed_len(found.count, width);
        assert!(found.count <= BLOCK && width + shift <= WIDTH_MAX && exact);
        // SAFETY: The CPU can, and the lengths match.
        unsafe { (self.0.highs)(bytes, width, shift, found) }
    }

    /// `[b]` = number of values of more than `b` bits. At most 256 values.
    pub(crate) fn wider(self, values: &[u32]) -> [u16; WIDTHS] {
        assert!(values.len() <= BLOCK);
        // SAFETY: The CPU can, and there are not too many.
        unsafe { (self.0.wider)(values) }
    }

    /// Finds the values of more than `width` < 32 bits, at most 256 of them, and what is above these bits.
    pub(crate) fn exceptions(self, values: &[u32], width: u32, found: &mut Exceptions) {
        assert!(values.len() <= BLOCK && width < WIDTH_MAX);
        // SAFETY: The CPU can, and there are not too many.
        unsafe { (self.0.exceptions)(values, width, found) }
    }

    /// `gaps[i] = values[i] - values[i-1] - step` mod 2^32, with `prev` before the first.
    pub(crate) fn gaps(self, values: &[u32], prev: u32, step: u32, gaps: &mut [u32]) {
        assert!(values.len() == gaps.len());
        // SAFETY: The CPU can, and the lengths match.
        unsafe { (self.0.gaps)(values, prev, step, gaps) }
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
    /// `controls` announce, which is checked by the caller at no cost and here in debug builds; if it has not,
    /// there is a panic or wrong values, and no bad access.
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

    /// Reads the values of the set bits, counted from `prev + 1` on: as many as `out` has, if there are.
    pub(crate) fn bitmap_read(self, bits: &[u8], prev: u32, out: &mut [u32]) {
        // SAFETY: The CPU can.
        unsafe { (self.0.bitmap_read)(bits, prev, out) }
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
