//! Patched frame of reference over blocks of up to 256 values.
//!
//! Most values of a block are packed at one width `b`; the few wider ones, the *exceptions*, have their low `b`
//! bits packed with the others and their high part (`v >> b`) stored apart. The header byte holds the form in
//! its two high bits and `b` in the rest:
//!
//! ```text
//! 00 plain     [00|b] low parts
//! 01 list      [01|b] [x] [e] low parts | x high parts as VByte, e bytes | x positions, one byte each, rising
//! 10 bitmap    [10|b] [bx] bitmap, ceil(n/8) bytes | high parts at bx bits, horizontal | low parts
//! 11 constant  [11|b] the value, ceil(b/8) bytes, little-endian; b is its exact width, so it is not zero
//! ```
//!
//! Low parts are horizontal or, in the vertical layout and if n = 256, vertical ([`crate::bitpack`]). Every form
//! tells its length from its first bytes, whatever the layout. Plain, bitmap and constant blocks are those of
//! TurboPFor's `p4enc32` (horizontal) and `p4enc256v32` (vertical). The list form is our own: it has `e`, so that the block's end is known without
//! reading the high parts, and it writes these as ordinary `VByte`, with no escape to raw words.
//!
//! Examples:
//!
//! ```text
//! 1, 2, 3, 4                   03 | d1 08
//! 256 x 70000                  d1 | 70 11 01
//! 1, 258, 66051, 16909060      8a 0f | 0c | 40 00 40 20 | 01 08 34 20 c1
//! 64 x 1, but 9 at place 5     41 01 01 | ff ff ff ff ff ff ff ff | 04 | 05
//! ```
//!
//! Source: Zukowski, Héman, Nes, Boncz, "Super-Scalar RAM-CPU Cache Compression", for the idea; TurboPFor for
//! the forms.

mod header;
mod plan;
mod read;
mod write;

use crate::DecodeError;
use header::Header;
pub(crate) use plan::block_len;
pub(crate) use read::decode;
pub(crate) use write::encode;

/// Upper bound of the bytes of `n` values: a plain block of the full width.
pub(crate) fn max_len(n: usize) -> usize {
    if n == 0 { 0 } else { 1 + 4 * n }
}

/// Bytes of the block of `n` > 0 values at the front of `bytes`.
pub(crate) fn encoded_len(bytes: &[u8], n: usize) -> Result<usize, DecodeError> {
    let len = Header::read(bytes, n)?.block_len(n);
    if bytes.len() < len { Err(DecodeError::NotEnough) } else { Ok(len) }
}
