//! Document ids as `pfor256-delta`, or as a bitmap where they are dense.
//!
//! ```text
//! bitmap         [3f] [m u8] m bytes, the bits of [`crate::bitmap`]
//! pfor256-delta  the block, whose first byte is never 3f
//! ```
//!
//! The encoder writes a bitmap if it is at most a quarter longer than the pfor256-delta block, or takes at
//! most a sixth of a byte per value: a bitmap is counted, intersected and scored without decoding, while the
//! other form has to be decoded first. That is the case from a density of about 0.2 on. Ids at equal
//! distances are an exception: their pfor256-delta block has one or two bytes and is kept. Among these, a
//! run of consecutive ids is recognised by its first and last id ([`BitmapView::of_run`]).

use crate::{BitmapView, DecodeError, Kernel, Result, bitmap, pfor};
use crate::{bitpack::Layout, delta::DeltaStep, kernel::GapBuffer};

/// The first byte of a block that is a bitmap.
const BITMAP_TAG: u8 = 0x3f;

/// Bytes of a pfor256-delta block whose gaps are equal and at most 256.
const EQUAL_GAPS_BYTES: usize = 2;

/// Bytes of a bitmap block before the bits: [`BITMAP_TAG`] and the number of bytes of bits.
const HEAD_BYTES: usize = 2;

/// Maximum difference between the last value of a bitmap block and the value before the block.
pub(crate) const BITMAP_SPAN_MAX: u32 = 8 * u8::MAX as u32;

/// Maximum bytes of a block of `n` values. (A bitmap is shorter than a pfor256-delta block can be.)
pub(crate) fn max_len(n: usize) -> usize {
    pfor::max_len(n)
}

/// Appends the block of 1 to 256 `values`. `prev` is the value before them.
pub(crate) fn encode(kernel: Kernel, values: &[u32], prev: u32, out: &mut Vec<u8>) {
    let mut buffer = GapBuffer::new();
    let gaps = kernel.compute_gaps(values, prev, DeltaStep::One as u32, &mut buffer);
    let last = values[values.len() - 1];
    // A cheap test first, as most blocks are not dense. `bit_span` finds values that are not increasing.
    let is_dense = last.wrapping_sub(prev) <= BITMAP_SPAN_MAX;
    let len = if is_dense { bitmap::bit_span(values, prev).div_ceil(8) } else { u64::MAX };
    match u8::try_from(len) {
        Ok(len)
            if HEAD_BYTES + usize::from(len)
                <= bitmap_bytes_max(values.len(), pfor::block_len(kernel, gaps)) =>
        {
            out.extend_from_slice(&[BITMAP_TAG, len]);
            bitmap::write_bits(values, prev, usize::from(len), out);
        }
        _ => pfor::encode(kernel, gaps, Layout::Vertical, out),
    }
}

/// A bitmap of `n` values is written if it has at most this number of bytes, where the pfor256-delta block
/// has `other` bytes. 0 if the gaps are equal: then no bitmap is written.
fn bitmap_bytes_max(n: usize, other: usize) -> usize {
    if other <= EQUAL_GAPS_BYTES { 0 } else { (other + other / 4).max(n.div_ceil(6)) }
}

/// Decodes `out.len()` values, 1 to 256. Returns the bytes of the block.
pub(crate) fn decode(kernel: Kernel, bytes: &[u8], prev: u32, out: &mut [u32]) -> Result<usize> {
    let Some(bits) = bitmap_bits(bytes)? else {
        return kernel.pfor_decode(bytes, Layout::Vertical, Some(prev), out);
    };
    bitmap::check_bits(kernel, bits, prev, out.len())?;
    bitmap::read_bits(kernel, bits, prev, out);
    Ok(HEAD_BYTES + bits.len())
}

/// The length of the block of `n` > 0 values at the front of `bytes`.
pub(crate) fn encoded_len(kernel: Kernel, bytes: &[u8], n: usize) -> Result<usize> {
    match bitmap_bits(bytes)? {
        Some(bits) => Ok(HEAD_BYTES + bits.len()),
        None => pfor::encoded_len(kernel, bytes, n),
    }
}

/// See [`crate::Codec::bitmap`].
pub(crate) fn view_bitmap(
    kernel: Kernel,
    bytes: &[u8],
    prev: u32,
    n: usize,
) -> Result<Option<BitmapView<'_>>> {
    match bitmap_bits(bytes)? {
        Some(bits) => BitmapView::of(kernel, bits, prev, n),
        None => Ok(None),
    }
}

/// See [`crate::Codec::has_narrow_gaps`].
#[inline]
pub(crate) fn has_narrow_gaps(bytes: &[u8]) -> bool {
    bytes.first() == Some(&BITMAP_TAG) || pfor::has_narrow_values(bytes)
}

/// The bits of a bitmap block; `None` for a pfor256-delta block.
fn bitmap_bits(bytes: &[u8]) -> Result<Option<&[u8]>> {
    match bytes {
        [] | [BITMAP_TAG] => Err(DecodeError::Truncated),
        [BITMAP_TAG, len, rest @ ..] => rest.get(..usize::from(*len)).map(Some).ok_or(DecodeError::Truncated),
        _ => Ok(None),
    }
}
