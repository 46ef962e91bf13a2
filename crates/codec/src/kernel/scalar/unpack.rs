//! Unpacking: bits, then exceptions, then prefix sums.

use super::bits::{UNPACK_VERTICAL, unpack_horizontal};
use super::{exceptions::add_exceptions, sums::prefix_sum};
use crate::{bitpack::Layout, block::BLOCK, kernel::table::Packed};

/// Implements [`crate::Kernel::unpack`]: bits, exceptions and sums one after the other.
pub(crate) fn unpack(packed: &Packed, out: &mut [u32]) {
    match packed.layout {
        Layout::Vertical if out.len() == BLOCK => UNPACK_VERTICAL[packed.width as usize](packed.bytes, out),
        _ => unpack_horizontal(packed.bytes, packed.width, out),
    }
    if let Some(highs) = &packed.patch {
        add_exceptions(highs, packed.width, out);
    }
    if let Some(prev) = packed.after {
        prefix_sum(out, prev, 1);
    }
}
