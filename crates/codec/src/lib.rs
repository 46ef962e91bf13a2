//! Block codecs of posting lists, and vector loops over decoded blocks.
//!
//! A block is up to [`BLOCK`] values of 32 bits: document ids in strictly increasing order, or frequencies.
//! A [`Codec`] appends a block to a byte vector and decodes it into a slice. The number of values is not
//! stored; the caller knows it. Decoders accept untrusted bytes: they return a [`DecodeError`], never panic,
//! and never read outside the slice. Decoded blocks are intersected ([`intersect`]) and scored
//! ([`Saturation`]), and the best of many scores are selected ([`largest`]).
//!
//! A [`Kernel`] runs the loops, one for each instruction set: the fastest that the CPU supports, or the one
//! that the environment variable `TIERDEX_KERNEL` names. If the variable names an unknown or unsupported
//! kernel, every function that needs a kernel panics; programs call [`Kernel::from_env`] first.
//!
//! This crate knows no documents, files or caches.
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
mod block;
mod bp256;
mod delta;
mod error;
#[allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]
mod kernel;
mod pfor;
mod raw;
mod runs;
mod saturation;
mod score;
mod search;
mod streamvbyte;
mod vbyte;
mod wide;

pub use bitmap::BitmapView;
use bitpack::Layout;
pub use block::{BLOCK, Intersection, MARGIN_MAX, RUN_SLACK, RunPair, Selection, Survivors, ValueRun};
use delta::DeltaStep;
pub use error::{DecodeError, Result};
use kernel::GapBuffer;
pub use kernel::{Kernel, KernelError};
pub use runs::{copy_runs, intersect_runs};
pub use saturation::{CodeTable, Saturation};
pub use score::{
    copy_marked, drain_at_least, keep_at_least, keep_marked, largest, mark_positive, values_at_least,
};
pub use search::{add_one, intersect, is_increasing};
pub use wide::{WideBlock, WideView};

/// The number of set bits in `bytes`.
pub fn count_ones(bytes: &[u8]) -> usize {
    let kernel = Kernel::active();
    bytes.chunks(1 << 20).map(|chunk| kernel.count_ones(chunk)).sum()
}

/// Prefetches bytes into the CPU caches.
pub fn prefetch(bytes: &[u8]) {
    kernel::prefetch(bytes);
}

/// Sets bit `i mod 8` of byte `i div 8` of `bits` for each `marks[i]` that is 1, and clears `marks`. Each
/// mark is 0 or 1.
///
/// # Panics
/// If `marks` is not eight times as long as `bits`.
pub fn collect_bits(marks: &mut [u8], bits: &mut [u8]) {
    Kernel::active().collect_bits(marks, bits);
}

/// An encoding of a block of 32-bit values. `docs/format` specifies each byte. The number of a variant is its
/// [`Codec::id`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Codec {
    /// Each value as four bytes, little-endian.
    Raw = 1,
    /// Seven bits a byte, lowest group first, high bit set while more bytes follow (LEB128).
    VByte = 2,
    /// [`Codec::VByte`] over the gaps between consecutive values.
    VByteDelta = 3,
    /// Patched frame of reference: values bit-packed at one width, with exceptions for the wider ones.
    Pfor256 = 4,
    /// [`Codec::Pfor256`] over the gaps less 1.
    Pfor256Delta = 5,
    /// One to four bytes per value; the lengths are stored separately, two bits each (Stream `VByte`).
    StreamVByte = 6,
    /// [`Codec::StreamVByte`] over the gaps.
    StreamVByteDelta = 7,
    /// [`Codec::Pfor256`] with the horizontal layout, one bit stream, at every length.
    Pfor = 8,
    /// [`Codec::Pfor`] over the gaps less 1.
    PforDelta = 9,
    /// Gaps less 1, bit-packed at the width of the widest.
    Bp256Delta = 10,
    /// Increasing values as the set bits of a bitmap, or uncompressed if that is shorter.
    Bitmap = 11,
    /// Increasing values as [`Codec::Pfor256Delta`], or as a bitmap where they are dense.
    Auto = 12,
}

/// The codecs that differ only in the delta step, or in nothing.
#[derive(Clone, Copy)]
enum CodecFamily {
    Raw,
    VByte,
    StreamVByte,
    Pfor(Layout),
    Bp256,
    /// `Bitmap` and `Auto` take the original values and `prev`; they have no separate delta step.
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

    /// The name on command lines and in schemas.
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

    /// The number stored in files. It never changes. No codec has 0, so that zeroed bytes are detected.
    pub fn id(self) -> u8 {
        self as u8
    }

    /// The codec whose [`Codec::id`] is `id`.
    pub fn from_id(id: u8) -> Option<Codec> {
        Codec::ALL.iter().copied().find(|codec| codec.id() == id)
    }

    /// Whether the codec expects strictly increasing values and uses `prev`.
    pub fn is_delta(self) -> bool {
        self.delta_step().is_some() || matches!(self, Codec::Bitmap | Codec::Auto)
    }

    /// The codec of the same family without a delta step; [`Codec::Pfor256`] if there is none.
    pub fn plain(self) -> Codec {
        match self.family() {
            CodecFamily::Raw => Codec::Raw,
            CodecFamily::VByte => Codec::VByte,
            CodecFamily::StreamVByte => Codec::StreamVByte,
            CodecFamily::Pfor(Layout::Horizontal) => Codec::Pfor,
            CodecFamily::Pfor(Layout::Vertical)
            | CodecFamily::Bp256
            | CodecFamily::Bitmap
            | CodecFamily::Auto => Codec::Pfor256,
        }
    }

    /// Maximum bytes that [`Codec::encode`] appends for `n` values, which are at most [`BLOCK`]. Some values
    /// need that many.
    pub fn max_len(self, n: usize) -> usize {
        match self.family() {
            CodecFamily::Raw => raw::max_len(n),
            CodecFamily::VByte => vbyte::max_len(n),
            CodecFamily::StreamVByte => streamvbyte::max_len(n),
            CodecFamily::Pfor(_) | CodecFamily::Bp256 => pfor::max_len(n),
            CodecFamily::Bitmap => bitmap::max_len(n),
            CodecFamily::Auto => auto::max_len(n),
        }
    }

    /// Appends the block of `values` to `out`. No values append no bytes.
    ///
    /// Delta codecs expect strictly increasing values, the first greater than `prev`; `prev` is `u32::MAX`,
    /// which means -1, at the start of a list. Other inputs round-trip too, since differences are taken mod
    /// 2^32.
    ///
    /// # Panics
    /// If there are more than [`BLOCK`] values.
    pub fn encode(self, values: &[u32], prev: u32, out: &mut Vec<u8>) {
        self.encode_with(Kernel::active(), values, prev, out);
    }

    /// [`Codec::encode`] with a given kernel. The bytes are the same. ([`Codec::Pfor`] and
    /// [`Codec::PforDelta`], the papers' scalar baseline, always run on [`Kernel::SCALAR`].)
    ///
    /// # Panics
    /// If there are more than [`BLOCK`] values.
    pub fn encode_with(self, kernel: Kernel, values: &[u32], prev: u32, out: &mut Vec<u8>) {
        assert_block_size(values.len());
        if values.is_empty() {
            return;
        }
        out.reserve(self.max_len(values.len()));
        let Some(step) = self.delta_step() else { return self.family().encode(kernel, values, prev, out) };
        let mut buffer = GapBuffer::new();
        let gaps = kernel.compute_gaps(values, prev, step as u32, &mut buffer);
        self.family().encode(kernel, gaps, prev, out);
    }

    /// Decodes `out.len()` values from the front of `bytes` and returns the number of bytes they took.
    ///
    /// `prev` is the argument that [`Codec::encode`] was given. Damaged delta blocks may give values that
    /// wrap mod 2^32 and so are not increasing; the caller checks that. After an error the contents of `out`
    /// are unspecified.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`] if the block is longer than `bytes`, [`DecodeError::Invalid`] if no
    /// encoder writes such a block.
    ///
    /// # Panics
    /// If `out` is longer than [`BLOCK`]; never because of `bytes`.
    #[inline]
    pub fn decode(self, bytes: &[u8], prev: u32, out: &mut [u32]) -> Result<usize> {
        self.decode_with(Kernel::active(), bytes, prev, out)
    }

    /// [`Codec::decode`] with a given kernel. The values are the same.
    ///
    /// # Errors
    /// As [`Codec::decode`].
    ///
    /// # Panics
    /// As [`Codec::decode`].
    pub fn decode_with(self, kernel: Kernel, bytes: &[u8], prev: u32, out: &mut [u32]) -> Result<usize> {
        assert_block_size(out.len());
        if out.is_empty() {
            return Ok(0);
        }
        let after = self.delta_step().map(|_| prev);
        match self.family() {
            CodecFamily::Raw => raw::decode(bytes, out),
            CodecFamily::VByte => vbyte::decode(kernel, bytes, after, out),
            CodecFamily::StreamVByte => streamvbyte::decode(kernel, bytes, after, out),
            CodecFamily::Pfor(layout) => layout.choose_kernel(kernel).pfor_decode(bytes, layout, after, out),
            CodecFamily::Bp256 => bp256::decode(kernel, bytes, after, out),
            CodecFamily::Bitmap => bitmap::decode(kernel, bytes, prev, out),
            CodecFamily::Auto => auto::decode(kernel, bytes, prev, out),
        }
    }

    /// Whether blocks are values in memory: [`Codec::values_in_place`] may return them.
    #[inline]
    pub fn is_uncompressed(self) -> bool {
        self == Codec::Raw
    }

    /// The `n` values of a block that is exactly `bytes`, without decoding. `None` if the codec compresses,
    /// or the block is not aligned or has another length.
    #[inline]
    pub fn values_in_place(self, bytes: &[u8], n: usize) -> Option<&[u32]> {
        if self.is_uncompressed() { raw::in_place(bytes, n) } else { None }
    }

    /// Decodes values to prefix sums: `out[i]` is `before` plus the values up to and including `i`, plus 1
    /// for each of them, mod 2^32. Returns the number of bytes consumed.
    ///
    /// # Errors
    /// As [`Codec::decode`].
    ///
    /// # Panics
    /// As [`Codec::decode`].
    pub fn decode_sums(self, bytes: &[u8], before: u32, out: &mut [u32]) -> Result<usize> {
        self.decode_sums_with(Kernel::active(), bytes, before, out)
    }

    /// [`Codec::decode_sums`] with a given kernel. The sums are the same.
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
    ) -> Result<usize> {
        // The delta codec decodes gaps less 1 to such sums.
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
    /// Equal to the result of [`Codec::decode`] whenever that succeeds. Only the framing is checked.
    ///
    /// # Errors
    /// As [`Codec::decode`], for the part of the block that is read.
    ///
    /// # Panics
    /// If `n` is greater than [`BLOCK`].
    pub fn encoded_len(self, bytes: &[u8], n: usize) -> Result<usize> {
        self.encoded_len_with(Kernel::active(), bytes, n)
    }

    /// [`Codec::encoded_len`] with a given kernel. The length is the same.
    ///
    /// # Errors
    /// As [`Codec::encoded_len`].
    ///
    /// # Panics
    /// As [`Codec::encoded_len`].
    pub fn encoded_len_with(self, kernel: Kernel, bytes: &[u8], n: usize) -> Result<usize> {
        assert_block_size(n);
        if n == 0 {
            return Ok(0);
        }
        match self.family() {
            CodecFamily::Raw => raw::encoded_len(bytes, n),
            CodecFamily::VByte => vbyte::encoded_len(kernel, bytes, n),
            CodecFamily::StreamVByte => streamvbyte::encoded_len(kernel, bytes, n),
            CodecFamily::Pfor(layout) => pfor::encoded_len(layout.choose_kernel(kernel), bytes, n),
            CodecFamily::Bp256 => bp256::encoded_len(bytes, n),
            CodecFamily::Bitmap => bitmap::encoded_len(bytes, n),
            CodecFamily::Auto => auto::encoded_len(kernel, bytes, n),
        }
    }

    /// The bits of the block of `n` > 0 values at the front of `bytes`, if it is a bitmap. Only blocks of
    /// [`Codec::Bitmap`] and [`Codec::Auto`] can be bitmaps; a block whose values wrap gives `None`.
    ///
    /// # Errors
    /// As [`Codec::decode`], for the part of the block that is read.
    ///
    /// # Panics
    /// If `n` is not from 1 to [`BLOCK`].
    pub fn bitmap(self, bytes: &[u8], prev: u32, n: usize) -> Result<Option<BitmapView<'_>>> {
        assert!((1..=BLOCK).contains(&n), "a block holds 1 to {BLOCK} values, not {n}");
        let kernel = Kernel::active();
        match self {
            Codec::Bitmap => BitmapView::new(kernel, bytes, prev, n),
            Codec::Auto => auto::view_bitmap(kernel, bytes, prev, n),
            _ => Ok(None),
        }
    }

    /// Whether a block whose last value is `prev + span` can be a bitmap, without reading the block. False
    /// for most blocks.
    #[inline]
    pub fn may_be_bitmap(self, span: u32) -> bool {
        match self {
            Codec::Bitmap => span as usize <= 8 * raw::max_len(BLOCK),
            Codec::Auto => span <= auto::BITMAP_SPAN_MAX,
            _ => false,
        }
    }

    /// Whether the header of the block at the front of `bytes` limits its gaps so that their sum is at most
    /// 2^31. The values of such a block, decoded without error, increase strictly if the last one is greater
    /// than `prev`.
    #[inline]
    pub fn has_narrow_gaps(self, bytes: &[u8]) -> bool {
        match self {
            Codec::Pfor256Delta | Codec::PforDelta => pfor::has_narrow_values(bytes),
            Codec::Auto => auto::has_narrow_gaps(bytes),
            _ => false,
        }
    }

    fn family(self) -> CodecFamily {
        match self {
            Codec::Raw => CodecFamily::Raw,
            Codec::VByte | Codec::VByteDelta => CodecFamily::VByte,
            Codec::StreamVByte | Codec::StreamVByteDelta => CodecFamily::StreamVByte,
            Codec::Pfor | Codec::PforDelta => CodecFamily::Pfor(Layout::Horizontal),
            Codec::Pfor256 | Codec::Pfor256Delta => CodecFamily::Pfor(Layout::Vertical),
            Codec::Bp256Delta => CodecFamily::Bp256,
            Codec::Bitmap => CodecFamily::Bitmap,
            Codec::Auto => CodecFamily::Auto,
        }
    }

    /// The delta step between the values and the input of the family; `None` if there is none.
    fn delta_step(self) -> Option<DeltaStep> {
        match self {
            Codec::Raw | Codec::VByte | Codec::StreamVByte | Codec::Pfor | Codec::Pfor256 => None,
            Codec::Bitmap | Codec::Auto => None,
            Codec::VByteDelta | Codec::StreamVByteDelta => Some(DeltaStep::Zero),
            Codec::Pfor256Delta | Codec::PforDelta | Codec::Bp256Delta => Some(DeltaStep::One),
        }
    }
}

impl CodecFamily {
    fn encode(self, kernel: Kernel, values: &[u32], prev: u32, out: &mut Vec<u8>) {
        match self {
            CodecFamily::Raw => raw::encode(values, out),
            CodecFamily::VByte => vbyte::encode(kernel, values, out),
            CodecFamily::StreamVByte => streamvbyte::encode(kernel, values, out),
            CodecFamily::Pfor(layout) => pfor::encode(layout.choose_kernel(kernel), values, layout, out),
            CodecFamily::Bp256 => bp256::encode(kernel, values, out),
            CodecFamily::Bitmap => bitmap::encode(values, prev, out),
            CodecFamily::Auto => auto::encode(kernel, values, prev, out),
        }
    }
}

impl Layout {
    /// The horizontal layout is the papers' scalar `PForDelta`, the baseline for the vertical one: portable
    /// loops read and write it on every CPU.
    fn choose_kernel(self, kernel: Kernel) -> Kernel {
        match self {
            Layout::Horizontal => Kernel::SCALAR,
            Layout::Vertical => kernel,
        }
    }
}

fn assert_block_size(n: usize) {
    assert!(n <= BLOCK, "a block holds at most {BLOCK} values, not {n}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_gaps_prove_that_values_increase() {
        // Any first bytes: all forms and widths. The other bytes are the largest possible gaps or smaller.
        let mut proven = 0;
        for seed in 0u32..1 << 16 {
            let mut bytes = [[0xff, 0x55, 0x01][seed as usize % 3]; 1200];
            bytes[..2].copy_from_slice(&(seed as u16).to_le_bytes());
            for (prev, n) in
                [(u32::MAX, 256), (u32::MAX - 1000, 256), (1 << 31, 256), (7, 100), (u32::MAX - 3, 3)]
            {
                let mut values = [0; BLOCK];
                let values = &mut values[..n];
                for codec in [Codec::Auto, Codec::Pfor256Delta] {
                    if !codec.has_narrow_gaps(&bytes) || codec.decode(&bytes, prev, values).is_err() {
                        continue;
                    }
                    let floor = if prev == u32::MAX { -1 } else { i64::from(prev) };
                    if i64::from(values[n - 1]) > floor {
                        proven += 1;
                        assert!(i64::from(values[0]) > floor && is_increasing(values), "{codec:?} {seed:x}");
                    }
                }
            }
        }
        assert!(proven > 10_000, "{proven}");
        let mut bytes = Vec::new();
        Codec::Auto.encode(&[5, 1 << 31, u32::MAX], u32::MAX, &mut bytes);
        assert!(!Codec::Auto.has_narrow_gaps(&bytes) && !Codec::Auto.has_narrow_gaps(&[]));
        assert!(!Codec::VByteDelta.has_narrow_gaps(&[0]));
    }

    #[test]
    fn names_and_ids_round_trip() {
        for &codec in Codec::ALL {
            assert_eq!(Codec::from_name(codec.name()), Some(codec));
            assert_eq!(Codec::from_id(codec.id()), Some(codec));
            assert!(!codec.plain().is_delta());
        }
        assert_eq!(Codec::from_name("pfor512"), None);
        assert_eq!(Codec::from_id(0), None);
    }

    #[test]
    fn ids_of_stored_codecs_do_not_change() {
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
    fn uncompressed_values_are_used_in_place_if_they_are_aligned() {
        let values = [1, u32::MAX, 7, 9];
        let mut bytes = vec![0; 16];
        Codec::Raw.encode(&values, 0, &mut bytes);
        let start = bytes.as_ptr().align_offset(4);
        bytes.copy_within(16.., start);
        let block = &bytes[start..start + 16];
        if cfg!(target_endian = "little") {
            assert_eq!(Codec::Raw.values_in_place(block, 4), Some(&values[..]));
        }
        for (block, n) in [(block, 3), (block, 5), (&block[1..], 3), (&block[..15], 3), (&block[2..6], 1)] {
            assert_eq!(Codec::Raw.values_in_place(block, n), None, "{n}");
        }
        assert_eq!(Codec::VByte.values_in_place(block, 4), None);
    }

    #[test]
    #[should_panic(expected = "at most 256")]
    fn a_block_of_257_values_panics() {
        Codec::Raw.encode(&[0; BLOCK + 1], 0, &mut Vec::new());
    }
}
