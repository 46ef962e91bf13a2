//! Integers to bytes and back: the block codecs of posting lists.
//!
//! You have up to [`BLOCK`] values of 32 bits (document ids in strictly increasing order, or frequencies);
//! a [`Codec`] appends them to a byte vector and reads them back into a slice. The number of values is never
//! stored: the caller knows it. Decoders take untrusted bytes: a slice in, a [`DecodeError`] out, no read past
//! the slice and no panic. Of blocks that have been decoded it finds what two share ([`intersect`]), their scores
//! ([`Saturation`]), and the best of many ([`largest`]).
//!
//! The work is done by a [`Kernel`], one for each instruction set: the fastest that the CPU can run, or the one that the
//! environment variable `TIERDEX_KERNEL` names. If that cannot be had, whatever needs a kernel panics; programs ask
//! [`Kernel::from_env`] first.
//!
//! This crate must not know what a document, a file or a cache is.
//!
//! ```
//! use tierdex_codec::Codec;
//!
//! let ids = [3, 9, 27, 81, 243, 729];
//! let mut bytes = Vec::new();
//! Codec::Pfor256Delta.encode(&ids, u32::MAX, &mut bytes);
//!
//! let mut back = [0; 6];
//! let used = Codec::Pfor256Delta.decode(&bytes, u32::MAX, &mut back)?;
//! assert_eq!((back, used), (ids, bytes.len()));
//! # Ok::<(), tierdex_codec::DecodeError>(())
//! ```

#![deny(unsafe_code)]

mod auto;
mod bitmap;
mod bitpack;
mod bp256;
mod delta;
mod error;
#[allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]
mod kernel;
mod pfor;
mod raw;
mod runs;
mod score;
mod search;
mod streamvbyte;
mod vbyte;

pub use bitmap::BitmapView;
use bitpack::Layout;
use delta::Step;
pub use error::DecodeError;
use kernel::Gaps;
pub use kernel::{Kernel, KernelError};
pub use runs::{RUN_SLACK, Run, RunPair, copy_runs, share_runs};
pub use score::{
    ByCode, Places, Saturation, Swept, keep_at_least, keep_marked, largest, mark_positive, sweep,
    values_at_least,
};
pub use search::{Shared, add_one, intersect, rises};

/// Set bits of `bytes`.
pub fn ones(bytes: &[u8]) -> usize {
    let kernel = Kernel::active();
    bytes.chunks(1 << 20).map(|chunk| kernel.ones(chunk)).sum()
}

/// Asks the processor to bring bytes into its caches, for a reader that comes to them soon.
pub fn prefetch(bytes: &[u8]) {
    kernel::prefetch(bytes);
}

/// Sets the bits whose bytes in `marks`, each 0 or 1, are 1: bit `i mod 8` of byte `i div 8`. No mark is left.
///
/// # Panics
/// If there are not eight marks for each byte of bits.
pub fn collect_bits(marks: &mut [u8], bits: &mut [u8]) {
    Kernel::active().collect_bits(marks, bits);
}

/// The largest number of values in one block.
pub const BLOCK: usize = 256;

/// A way to write a block of 32-bit values. `docs/format` draws each to the byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Codec {
    /// Each value as four bytes, little-endian.
    Raw,
    /// Seven bits a byte, lowest group first, high bit set while more bytes follow (LEB128).
    VByte,
    /// [`Codec::VByte`] over the differences of neighbours.
    VByteDelta,
    /// Patched frame of reference: values bit-packed at one width, the few wider ones patched in.
    Pfor256,
    /// [`Codec::Pfor256`] over the differences of neighbours minus 1.
    Pfor256Delta,
    /// One to four bytes a value, their number apart in two bits (Stream `VByte`).
    StreamVByte,
    /// [`Codec::StreamVByte`] over the differences of neighbours.
    StreamVByteDelta,
    /// [`Codec::Pfor256`] with the packed values in one stream of bits at every length.
    Pfor,
    /// [`Codec::Pfor`] over the differences of neighbours minus 1.
    PforDelta,
    /// Differences of neighbours minus 1, bit-packed at the width of the widest.
    Bp256Delta,
    /// Rising values as the set bits of a bitmap, or as they are if that is shorter.
    Bitmap,
    /// Rising values as [`Codec::Pfor256Delta`], or as a bitmap where they are dense.
    Auto,
}

/// How values become bytes once the delta step, if any, is done.
#[derive(Clone, Copy)]
enum Family {
    Raw,
    VByte,
    StreamVByte,
    Pfor(Layout),
    Bp256,
    /// This and the next take the values themselves and `prev`: their delta step is their own.
    Bitmap,
    Auto,
}

impl Codec {
    /// Every codec, in the order of their ids.
    pub const ALL: &'static [Codec] = &[
        Codec::Raw,
        Codec::VByte,
        Codec::VByteDelta,
        Codec::Pfor256,
        Codec::Pfor256Delta,
        Codec::StreamVByte,
        Codec::StreamVByteDelta,
        Codec::Pfor,
        Codec::PforDelta,
        Codec::Bp256Delta,
        Codec::Bitmap,
        Codec::Auto,
    ];

    /// The name users type.
    pub fn name(self) -> &'static str {
        match self {
            Codec::Raw => "raw",
            Codec::VByte => "vbyte",
            Codec::VByteDelta => "vbyte-delta",
            Codec::Pfor256 => "pfor256",
            Codec::Pfor256Delta => "pfor256-delta",
            Codec::StreamVByte => "streamvbyte",
            Codec::StreamVByteDelta => "streamvbyte-delta",
            Codec::Pfor => "pfor",
            Codec::PforDelta => "pfor-delta",
            Codec::Bp256Delta => "bp256-delta",
            Codec::Bitmap => "bitmap",
            Codec::Auto => "auto",
        }
    }

    /// The codec that [`Codec::name`] calls `name`.
    pub fn from_name(name: &str) -> Option<Codec> {
        Codec::ALL.iter().copied().find(|codec| codec.name() == name)
    }

    /// The number that files store. It never changes; 0 is not used, so that zeroed bytes name no codec.
    pub fn id(self) -> u8 {
        match self {
            Codec::Raw => 1,
            Codec::VByte => 2,
            Codec::VByteDelta => 3,
            Codec::Pfor256 => 4,
            Codec::Pfor256Delta => 5,
            Codec::StreamVByte => 6,
            Codec::StreamVByteDelta => 7,
            Codec::Pfor => 8,
            Codec::PforDelta => 9,
            Codec::Bp256Delta => 10,
            Codec::Bitmap => 11,
            Codec::Auto => 12,
        }
    }

    /// The codec whose [`Codec::id`] is `id`.
    pub fn from_id(id: u8) -> Option<Codec> {
        Codec::ALL.iter().copied().find(|codec| codec.id() == id)
    }

    /// Whether the codec is for rising values only, and so needs `prev`.
    pub fn is_delta(self) -> bool {
        self.step().is_some() || matches!(self, Codec::Bitmap | Codec::Auto)
    }

    /// The codec of the same family that takes any values as they are; if there is none, [`Codec::Pfor256`].
    pub fn plain(self) -> Codec {
        match self.family() {
            Family::Raw => Codec::Raw,
            Family::VByte => Codec::VByte,
            Family::StreamVByte => Codec::StreamVByte,
            Family::Pfor(Layout::Horizontal) => Codec::Pfor,
            Family::Pfor(Layout::Vertical) | Family::Bp256 | Family::Bitmap | Family::Auto => Codec::Pfor256,
        }
    }

    /// The most bytes that [`Codec::encode`] appends for `n` values, at most [`BLOCK`]: there are values that take
    /// as many.
    pub fn max_len(self, n: usize) -> usize {
        match self.family() {
            Family::Raw => raw::max_len(n),
            Family::VByte => vbyte::max_len(n),
            Family::StreamVByte => streamvbyte::max_len(n),
            Family::Pfor(_) | Family::Bp256 => pfor::max_len(n),
            Family::Bitmap => bitmap::max_len(n),
            Family::Auto => auto::max_len(n),
        }
    }

    /// Appends the block of `values` to `out`; no values, no bytes.
    ///
    /// Delta codecs expect strictly increasing values, the first greater than `prev`, where `u32::MAX` stands
    /// for -1: the start of a list. Other inputs still round-trip, since differences are taken mod 2^32.
    ///
    /// # Panics
    /// If there are more than [`BLOCK`] values.
    pub fn encode(self, values: &[u32], prev: u32, out: &mut Vec<u8>) {
        self.encode_with(Kernel::active(), values, prev, out);
    }

    /// [`Codec::encode`] by a kernel of your choice. The bytes are the same. ([`Codec::Pfor`] and
    /// [`Codec::PforDelta`], the papers' scalar baseline, run on [`Kernel::SCALAR`] whichever is chosen.)
    ///
    /// # Panics
    /// If there are more than [`BLOCK`] values.
    pub fn encode_with(self, kernel: Kernel, values: &[u32], prev: u32, out: &mut Vec<u8>) {
        check_count(values.len());
        if values.is_empty() {
            return;
        }
        out.reserve(self.max_len(values.len()));
        let Some(step) = self.step() else { return self.family().encode(kernel, values, prev, out) };
        let mut room = Gaps::new();
        let gaps = kernel.gaps(values, prev, step as u32, &mut room);
        self.family().encode(kernel, gaps, prev, out);
    }

    /// Decodes `out.len()` values from the front of `bytes` and returns the number of bytes they took.
    ///
    /// `prev` is what [`Codec::encode`] was given. Damaged delta blocks may give values that wrap mod 2^32
    /// and so do not increase; that is for the caller to check. After an error `out` holds anything.
    ///
    /// # Errors
    /// [`DecodeError::NotEnough`] if the block goes on past `bytes`, [`DecodeError::Invalid`] if no encoder
    /// writes such a block.
    ///
    /// # Panics
    /// If `out` is longer than [`BLOCK`]; never because of `bytes`.
    #[inline]
    pub fn decode(self, bytes: &[u8], prev: u32, out: &mut [u32]) -> Result<usize, DecodeError> {
        self.decode_with(Kernel::active(), bytes, prev, out)
    }

    /// [`Codec::decode`] by a kernel of your choice. The values are the same.
    ///
    /// # Errors
    /// As [`Codec::decode`].
    ///
    /// # Panics
    /// As [`Codec::decode`].
    pub fn decode_with(
        self,
        kernel: Kernel,
        bytes: &[u8],
        prev: u32,
        out: &mut [u32],
    ) -> Result<usize, DecodeError> {
        check_count(out.len());
        if out.is_empty() {
            return Ok(0);
        }
        let after = self.step().map(|_| prev);
        match self.family() {
            Family::Raw => raw::decode(bytes, out),
            Family::VByte => vbyte::decode(kernel, bytes, after, out),
            Family::StreamVByte => streamvbyte::decode(kernel, bytes, after, out),
            Family::Pfor(layout) => pfor::decode(layout.kernel(kernel), bytes, layout, after, out),
            Family::Bp256 => bp256::decode(kernel, bytes, after, out),
            Family::Bitmap => bitmap::decode(kernel, bytes, prev, out),
            Family::Auto => auto::decode(kernel, bytes, prev, out),
        }
    }

    /// Decodes values and adds them up: each is replaced by the sum of all up to it, with 1 added for each,
    /// from `before` on and mod 2^32. Returns the number of bytes the values took.
    ///
    /// # Errors
    /// As [`Codec::decode`].
    ///
    /// # Panics
    /// As [`Codec::decode`].
    pub fn decode_sums(self, bytes: &[u8], before: u32, out: &mut [u32]) -> Result<usize, DecodeError> {
        self.decode_sums_with(Kernel::active(), bytes, before, out)
    }

    /// [`Codec::decode_sums`] by a kernel of your choice. The sums are the same.
    ///
    /// # Errors
    /// As [`Codec::decode`].
    ///
    /// # Panics
    /// As [`Codec::decode`].
    pub fn decode_sums_with(
        self,
        kernel: Kernel,
        bytes: &[u8],
        before: u32,
        out: &mut [u32],
    ) -> Result<usize, DecodeError> {
        // Gaps less one are decoded to such sums.
        let delta = if self == Codec::Pfor256 { Codec::Pfor256Delta } else { self };
        let used = delta.decode_with(kernel, bytes, before, out)?;
        if delta == self {
            out.iter_mut().fold(before, |sum, value| {
                *value = sum.wrapping_add(*value).wrapping_add(1);
                *value
            });
        }
        Ok(used)
    }

    /// The length in bytes of the block of `n` values at the front of `bytes`, without decoding values.
    ///
    /// Equal to what [`Codec::decode`] returns whenever that succeeds. Only the framing is checked.
    ///
    /// # Errors
    /// As [`Codec::decode`], for as much of the block as has to be looked at.
    ///
    /// # Panics
    /// If `n` is greater than [`BLOCK`].
    pub fn encoded_len(self, bytes: &[u8], n: usize) -> Result<usize, DecodeError> {
        self.encoded_len_with(Kernel::active(), bytes, n)
    }

    /// [`Codec::encoded_len`] by a kernel of your choice. The length is the same.
    ///
    /// # Errors
    /// As [`Codec::encoded_len`].
    ///
    /// # Panics
    /// As [`Codec::encoded_len`].
    pub fn encoded_len_with(self, kernel: Kernel, bytes: &[u8], n: usize) -> Result<usize, DecodeError> {
        check_count(n);
        if n == 0 {
            return Ok(0);
        }
        match self.family() {
            Family::Raw => raw::encoded_len(bytes, n),
            Family::VByte => vbyte::encoded_len(kernel, bytes, n),
            Family::StreamVByte => streamvbyte::encoded_len(kernel, bytes, n),
            Family::Pfor(layout) => pfor::encoded_len(layout.kernel(kernel), bytes, n),
            Family::Bp256 => bp256::encoded_len(bytes, n),
            Family::Bitmap => bitmap::encoded_len(bytes, n),
            Family::Auto => auto::encoded_len(kernel, bytes, n),
        }
    }

    /// The bits of the block of `n` > 0 values at the front of `bytes`, if it is a bitmap: only blocks of
    /// [`Codec::Bitmap`] and [`Codec::Auto`] can be, and none whose values wrap.
    ///
    /// # Errors
    /// As [`Codec::decode`], for what is looked at of the block.
    ///
    /// # Panics
    /// If `n` is not from 1 to [`BLOCK`].
    pub fn bitmap(self, bytes: &[u8], prev: u32, n: usize) -> Result<Option<BitmapView<'_>>, DecodeError> {
        assert!((1..=BLOCK).contains(&n), "a block holds 1 to {BLOCK} values, not {n}");
        let kernel = Kernel::active();
        match self {
            Codec::Bitmap => BitmapView::new(kernel, bytes, prev, n),
            Codec::Auto => auto::view(kernel, bytes, prev, n),
            _ => Ok(None),
        }
    }

    /// Whether a block whose last value is `span` above `prev` may be a bitmap: mostly it may not, and then there is no
    /// need to look at it.
    #[inline]
    pub fn may_be_bitmap(self, span: u32) -> bool {
        match self {
            Codec::Bitmap => span as usize <= 8 * raw::max_len(BLOCK),
            Codec::Auto => span <= auto::SPAN_MAX,
            _ => false,
        }
    }

    fn family(self) -> Family {
        match self {
            Codec::Raw => Family::Raw,
            Codec::VByte | Codec::VByteDelta => Family::VByte,
            Codec::StreamVByte | Codec::StreamVByteDelta => Family::StreamVByte,
            Codec::Pfor | Codec::PforDelta => Family::Pfor(Layout::Horizontal),
            Codec::Pfor256 | Codec::Pfor256Delta => Family::Pfor(Layout::Vertical),
            Codec::Bp256Delta => Family::Bp256,
            Codec::Bitmap => Family::Bitmap,
            Codec::Auto => Family::Auto,
        }
    }

    /// The step between the values and what the family stores.
    fn step(self) -> Option<Step> {
        match self {
            Codec::Raw | Codec::VByte | Codec::StreamVByte | Codec::Pfor | Codec::Pfor256 => None,
            Codec::Bitmap | Codec::Auto => None,
            Codec::VByteDelta | Codec::StreamVByteDelta => Some(Step::Zero),
            Codec::Pfor256Delta | Codec::PforDelta | Codec::Bp256Delta => Some(Step::One),
        }
    }
}

impl Family {
    fn encode(self, kernel: Kernel, values: &[u32], prev: u32, out: &mut Vec<u8>) {
        match self {
            Family::Raw => raw::encode(values, out),
            Family::VByte => vbyte::encode(kernel, values, out),
            Family::StreamVByte => streamvbyte::encode(kernel, values, out),
            Family::Pfor(layout) => pfor::encode(layout.kernel(kernel), values, layout, out),
            Family::Bp256 => bp256::encode(kernel, values, out),
            Family::Bitmap => bitmap::encode(values, prev, out),
            Family::Auto => auto::encode(kernel, values, prev, out),
        }
    }
}

impl Layout {
    /// The horizontal layout is the papers' scalar `PForDelta`, the baseline of the vertical one: it is read and
    /// written by portable loops whatever the CPU can do.
    fn kernel(self, kernel: Kernel) -> Kernel {
        match self {
            Layout::Horizontal => Kernel::SCALAR,
            Layout::Vertical => kernel,
        }
    }
}

fn check_count(n: usize) {
    assert!(n <= BLOCK, "a block holds at most {BLOCK} values, not {n}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ids_lead_back_to_their_codec() {
        for &codec in Codec::ALL {
            assert_eq!(Codec::from_name(codec.name()), Some(codec));
            assert_eq!(Codec::from_id(codec.id()), Some(codec));
            assert!(!codec.plain().is_delta());
        }
        assert_eq!(Codec::from_name("pfor512"), None);
        assert_eq!(Codec::from_id(0), None);
    }

    #[test]
    fn ids_are_what_files_already_hold() {
        let ids: Vec<_> = Codec::ALL.iter().map(|codec| (codec.id(), codec.name())).collect();
        let stored = [
            (1, "raw"),
            (2, "vbyte"),
            (3, "vbyte-delta"),
            (4, "pfor256"),
            (5, "pfor256-delta"),
            (6, "streamvbyte"),
            (7, "streamvbyte-delta"),
            (8, "pfor"),
            (9, "pfor-delta"),
            (10, "bp256-delta"),
            (11, "bitmap"),
            (12, "auto"),
        ];
        assert_eq!(ids, stored);
    }

    #[test]
    #[should_panic(expected = "at most 256")]
    fn a_block_of_257_is_a_mistake_of_the_caller() {
        Codec::Raw.encode(&[0; BLOCK + 1], 0, &mut Vec::new());
    }
}
