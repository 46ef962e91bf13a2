//! Document ids as `pfor256-delta`, or as a bitmap where they are dense.
//!
//! ```text
//! bitmap    [3f] [m u8] m bytes, as those of [`crate::bitmap`]
//! else      the block of pfor256-delta, whose first byte is never 3f
//! ```
//!
//! A bitmap may be up to a quarter longer than the other block would be, and may in any case take a sixth of a byte a value:
//! it is counted, intersected and added up as it is, while the other has to be decoded first. So it is taken from a density
//! of about 0.2 on, but for ids that are all equally far from one another, which take one or two bytes. Of these, runs of
//! neighbours are told by their ends alone ([`BitmapView::of_run`]).

use crate::bitpack::Layout;
use crate::delta::Step;
use crate::kernel::Gaps;
use crate::{BitmapView, DecodeError, Kernel, bitmap, pfor};

/// The first byte of a bitmap.
const BITMAP: u8 = 0x3f;

/// Bytes of a block whose gaps are equal, up to 256.
const EQUAL_GAPS: usize = 2;

/// Bytes before the bits.
const HEAD: usize = 2;

/// The largest value of a bitmap is not more than this above the one before the block.
pub(crate) const SPAN_MAX: u32 = 8 * u8::MAX as u32;

/// The most bytes of `n` values. (A bitmap is shorter than four bytes a value.)
pub(crate) fn max_len(n: usize) -> usize {
    pfor::max_len(n)
}

/// Appends `values`, of which there are 1 to 256.
pub(crate) fn encode(kernel: Kernel, values: &[u32], prev: u32, out: &mut Vec<u8>) {
    let mut room = Gaps::new();
    let gaps = kernel.gaps(values, prev, Step::One as u32, &mut room);
    let last = values[values.len() - 1];
    // Most blocks are not dense; of those that are, few do not rise.
    let is_dense = last.wrapping_sub(prev) <= SPAN_MAX;
    let len = if is_dense { bitmap::span(values, prev).div_ceil(8) } else { u64::MAX };
    match u8::try_from(len) {
        Ok(len) if HEAD + usize::from(len) <= most(values.len(), pfor::block_len(kernel, gaps)) => {
            out.extend_from_slice(&[BITMAP, len]);
            bitmap::write_bits(values, prev, usize::from(len), out);
        }
        _ => pfor::encode(kernel, gaps, Layout::Vertical, out),
    }
}

/// The most bytes of a bitmap of `n` values in place of another block. One with equal gaps stays as it is.
fn most(n: usize, other: usize) -> usize {
    if other <= EQUAL_GAPS { 0 } else { (other + other / 4).max(n.div_ceil(6)) }
}

/// Reads `out.len()` values, 1 to 256; returns the bytes consumed.
pub(crate) fn decode(kernel: Kernel, bytes: &[u8], prev: u32, out: &mut [u32]) -> Result<usize, DecodeError> {
    let Some(bits) = bits(bytes)? else {
        return pfor::decode(kernel, bytes, Layout::Vertical, Some(prev), out);
    };
    bitmap::check_bits(kernel, bits, prev, out.len())?;
    bitmap::read_bits(kernel, bits, prev, out);
    Ok(HEAD + bits.len())
}

/// Bytes of the block of `n` > 0 values at the front of `bytes`.
pub(crate) fn encoded_len(kernel: Kernel, bytes: &[u8], n: usize) -> Result<usize, DecodeError> {
    match bits(bytes)? {
        Some(bits) => Ok(HEAD + bits.len()),
        None => pfor::encoded_len(kernel, bytes, n),
    }
}

/// See [`crate::Codec::bitmap`].
pub(crate) fn view(
    kernel: Kernel,
    bytes: &[u8],
    prev: u32,
    n: usize,
) -> Result<Option<BitmapView<'_>>, DecodeError> {
    match bits(bytes)? {
        Some(bits) => BitmapView::of(kernel, bits, prev, n),
        None => Ok(None),
    }
}

/// The bits of a bitmap; `None` of another block.
fn bits(bytes: &[u8]) -> Result<Option<&[u8]>, DecodeError> {
    match bytes {
        [] | [BITMAP] => Err(DecodeError::NotEnough),
        [BITMAP, len, rest @ ..] => rest.get(..usize::from(*len)).map(Some).ok_or(DecodeError::NotEnough),
        _ => Ok(None),
    }
}
