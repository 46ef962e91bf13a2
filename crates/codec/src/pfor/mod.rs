//! Patched frame of reference over blocks of up to 256 values.
//!
//! Most values of a block are packed at one width `b`; the few wider ones, the *exceptions*, have their low `b`
//! bits packed with the others and their high part (`v >> b`) stored apart. The header byte holds the form in
//! its two high bits and `b` in the rest:
//!
//! ```text
//! 00 plain     [00|b] low parts
//! 01 sparse    [01|b] [bx] mask, bytes of the bitmap | high parts at bx bits, horizontal | low parts
//! 10 bitmap    [10|b] [bx] bitmap, ceil(n/8) bytes | high parts at bx bits, horizontal | low parts
//! 11 constant  [11|b] the value, ceil(b/8) bytes, little-endian; b is its exact width, so it is not zero
//! ```
//!
//! Low parts are horizontal or, in the vertical layout and if n = 256, vertical ([`crate::bitpack`]). Every form
//! tells its length from its first bytes, whatever the layout. Plain, bitmap and constant blocks are those of
//! TurboPFor's `p4enc32` (horizontal) and `p4enc256v32` (vertical). The sparse form is our own: the same with the
//! zero bytes of the bitmap left out. Its mask has a bit for each byte of the bitmap, so `ceil(ceil(n/8) / 8)`
//! bytes. It takes the place of TurboPFor's list of positions and variable bytes: it is shorter on frequencies,
//! and one instruction makes a whole bitmap of it, so that one loop reads both.
//!
//! Examples:
//!
//! ```text
//! 1, 2, 3, 4                   03 | d1 08
//! 256 x 70000                  d1 | 70 11 01
//! 1, 258, 66051, 16909060      8a 0f | 0c | 40 00 40 20 | 01 08 34 20 c1
//! 64 x 1, but 9 at place 5     41 03 | 01 | 20 | 04 | ff ff ff ff ff ff ff ff
//! ```
//!
//! Source: Zukowski, Héman, Nes, Boncz, "Super-Scalar RAM-CPU Cache Compression", for the idea; TurboPFor for
//! the forms.

mod header;
pub(crate) mod plan;
mod read;
mod write;

use crate::{DecodeError, Kernel};
use header::Header;
pub(crate) use plan::block_len;
pub(crate) use read::decode;
pub(crate) use write::encode;

/// The most bytes of `n` values: a plain block of the full width, as bit packing without exceptions
/// has it too.
pub(crate) fn max_len(n: usize) -> usize {
    if n == 0 { 0 } else { 1 + 4 * n }
}

/// Bytes of the block of `n` > 0 values at the front of `bytes`.
pub(crate) fn encoded_len(kernel: Kernel, bytes: &[u8], n: usize) -> Result<usize, DecodeError> {
    let len = Header::read(kernel, bytes, n)?.block_len(n);
    if bytes.len() < len { Err(DecodeError::NotEnough) } else { Ok(len) }
}
