//! Values to blocks.

use super::header::{Header, bitmap_len, constant_len};
use super::plan::{Form, choose};
use crate::Kernel;
use crate::bitpack::{self, Layout};
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
        Form::Sparse { high_width } => {
            out.extend_from_slice(&[Header::SPARSE | low, high_width as u8]);
            write_exceptions(kernel, values, width, high_width, write_sparse, out);
        }
        Form::Bitmap { high_width } => {
            out.extend_from_slice(&[Header::BITMAP | low, high_width as u8]);
            write_exceptions(kernel, values, width, high_width, write_bitmap, out);
        }
    }
    bitpack::pack(kernel, values, width, layout, out);
    debug_assert_eq!(out.len() - start, plan.len);
}

/// Where the exceptions are, and their high parts.
fn write_exceptions(
    kernel: Kernel,
    values: &[u32],
    width: u32,
    high_width: u32,
    write_places: fn(Kernel, &Bitmap, usize, &mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    let mut found = Exceptions::new();
    kernel.exceptions(values, width, &mut found);
    write_places(kernel, &found.bitmap, bitmap_len(values.len()), out);
    bitpack::pack(kernel, found.highs(), high_width, Layout::Horizontal, out);
}

fn write_bitmap(_: Kernel, bitmap: &Bitmap, len: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&bitmap[..len]);
}

/// A bit for each byte, and the bytes that are not zero.
fn write_sparse(kernel: Kernel, bitmap: &Bitmap, len: usize, out: &mut Vec<u8>) {
    let sparse = kernel.sparse(bitmap);
    out.extend_from_slice(&sparse.mask.to_le_bytes()[..len.div_ceil(8)]);
    out.extend_from_slice(&sparse.bytes[..sparse.mask.count_ones() as usize]);
}
