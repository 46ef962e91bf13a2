//! Values to blocks.

use super::header::{Form, bitmap_len, constant_len};
use super::plan::choose;
use crate::Kernel;
use crate::bitpack::{self, Layout};
use crate::kernel::Exceptions;

/// Appends the shortest block of `values`, of which there are 1 to 256.
pub(crate) fn encode(kernel: Kernel, values: &[u32], layout: Layout, out: &mut Vec<u8>) {
    let header = choose(kernel, values);
    let (start, width) = (out.len(), header.width);
    header.write(out);
    if let Form::Constant = header.form {
        out.extend_from_slice(&values[0].to_le_bytes()[..constant_len(width)]);
    } else {
        if let Form::List { high_width, .. } | Form::Bitmap { high_width, .. } = header.form {
            let mut found = Exceptions::new();
            kernel.exceptions(values, width, &mut found);
            match header.form {
                Form::List { .. } => write_positions(&found, out),
                _ => out.extend_from_slice(&found.bitmap[..bitmap_len(values.len())]),
            }
            bitpack::pack(kernel, found.highs(), high_width, Layout::Horizontal, out);
        }
        bitpack::pack(kernel, values, width, layout, out);
    }
    debug_assert_eq!(out.len() - start, header.block_len(values.len()));
}

/// Appends the places of the set bits.
fn write_positions(found: &Exceptions, out: &mut Vec<u8>) {
    for (start, bytes) in [0, 64, 128, 192].into_iter().zip(found.bitmap.as_chunks().0) {
        let mut bits = u64::from_le_bytes(*bytes);
        while bits != 0 {
            out.push(start + bits.trailing_zeros() as u8);
            bits &= bits - 1;
        }
    }
}
