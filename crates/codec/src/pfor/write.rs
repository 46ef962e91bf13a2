//! Values to blocks.

use super::header::{Header, bitmap_len, constant_len};
use super::plan::{Form, choose};
use crate::Kernel;
use crate::bitpack::Layout;
use crate::kernel::{Bitmap, Exceptions};

/// Appends the shortest block of `values`, of which there are 1 to 256.
pub(crate) fn encode(kernel: Kernel, values: &[u32], layout: Layout, out: &mut Vec<u8>) {
    let plan = choose(kernel, values);
    let (start, width) = (out.len(), plan.width);
    let low = width as u8;
    match plan.form {
        Form::Plain => out.push(low),
        Form::Constant => {
            out.push(Header::CONSTANT | low);
            return out.extend_from_slice(&values[0].to_le_bytes()[..constant_len(width)]);
        }
        Form::Sparse { high_width } | Form::Bitmap { high_width } => {
            let sparse = matches!(plan.form, Form::Sparse { .. });
            let tag = if sparse { Header::SPARSE } else { Header::BITMAP };
            out.extend_from_slice(&[tag | low, high_width as u8]);
            let mut found = Exceptions::new();
            kernel.exceptions(values, width, &mut found);
            write_places(kernel, &found.bitmap, bitmap_len(values.len()), sparse, out);
            kernel.pack(found.highs(), high_width, Layout::Horizontal, out);
        }
    }
    kernel.pack(values, width, layout, out);
    debug_assert_eq!(out.len() - start, plan.len);
}

/// Appends `len` bytes of the bitmap; of a sparse one a bit for each of them, and those that are not zero.
fn write_places(kernel: Kernel, bitmap: &Bitmap, len: usize, sparse: bool, out: &mut Vec<u8>) {
    if !sparse {
        return out.extend_from_slice(&bitmap[..len]);
    }
    let sparse = kernel.sparse(bitmap);
    out.extend_from_slice(&sparse.mask.to_le_bytes()[..len.div_ceil(8)]);
    out.extend_from_slice(&sparse.bytes[..sparse.mask.count_ones() as usize]);
}
