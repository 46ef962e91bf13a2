//! Patched frame of reference over blocks of up to 256 values.
//!
//! Most values of a block are packed at one width `b`. The few wider ones are *exceptions*: their low `b`
//! bits are packed with the others, and their high part (`v >> b`) is stored separately. The header byte
//! holds the form in its two high bits and `b` in the others:
//!
//! ```text
//! 00 plain     [00|b] low parts
//! 01 sparse    [01|b] [bx] mask, bytes of the bitmap | high parts at bx bits, horizontal | low parts
//! 10 bitmap    [10|b] [bx] bitmap, ceil(n/8) bytes | high parts at bx bits, horizontal | low parts
//! 11 constant  [11|b] the value, ceil(b/8) bytes, little-endian; b is its exact width, so it is not zero
//! ```
//!
//! Low parts are horizontal, or vertical in the vertical layout if n = 256 ([`crate::bitpack`]). The length
//! of a block follows from its first bytes and does not depend on the layout. Plain, bitmap and constant
//! blocks are those of TurboPFor's `p4enc32` (horizontal) and `p4enc256v32` (vertical). The sparse form is
//! specific to tierdex: the bitmap form without the zero bytes of the bitmap. Its mask has a bit for each
//! byte of the bitmap, so `ceil(ceil(n/8) / 8)` bytes. It replaces TurboPFor's list of positions and
//! variable bytes: it is shorter for frequencies, and one instruction expands it to a whole bitmap, so that
//! one loop reads both forms.
//!
//! Examples:
//!
//! ```text
//! 1, 2, 3, 4                   03 | d1 08
//! 256 x 70000                  d1 | 70 11 01
//! 1, 258, 66051, 16909060      8a 0f | 0c | 40 00 40 20 | 01 08 34 20 c1
//! 64 x 1, but 9 at position 5  41 03 | 01 | 20 | 04 | ff ff ff ff ff ff ff ff
//! ```
//!
//! Source: Zukowski, Héman, Nes, Boncz, "Super-Scalar RAM-CPU Cache Compression", for the idea; TurboPFor
//! for the forms.

pub(crate) mod cost;
mod header;
mod plan;
pub(crate) mod read;
mod write;

use crate::{DecodeError, Kernel, Result};
use header::PforHeader;
pub(crate) use header::has_narrow_values;
pub(crate) use plan::block_len;
pub(crate) use write::encode;

/// Maximum bytes of a block of `n` values: those of a plain block of 32 bits a value. This is also the
/// maximum of [`crate::bp256`].
pub(crate) fn max_len(n: usize) -> usize {
    if n == 0 { 0 } else { 1 + 4 * n }
}

/// The length of the block of `n` > 0 values at the front of `bytes`.
pub(crate) fn encoded_len(kernel: Kernel, bytes: &[u8], n: usize) -> Result<usize> {
    let len = PforHeader::read(kernel, bytes, n, &mut [0; _])?.block_len(n);
    if bytes.len() < len { Err(DecodeError::Truncated) } else { Ok(len) }
}
