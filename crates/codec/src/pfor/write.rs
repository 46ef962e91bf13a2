//! Encoding of PFor blocks.

use super::cost::bitmap_len;
use super::header::{PforHeader, constant_len};
use super::plan::{PlannedForm, choose_form};
use crate::kernel::{Bitmap, Exceptions};
use crate::{Kernel, bitpack::Layout};

/// Appends the shortest block of 1 to 256 `values`.
pub(crate) fn encode(kernel: Kernel, values: &[u32], layout: Layout, out: &mut Vec<u8>) {
    let plan = choose_form(kernel, values);
    let (start, width) = (out.len(), plan.width);
    let low = width as u8;
    match plan.form {
        PlannedForm::Plain => out.push(low),
        PlannedForm::Constant => {
            out.push(PforHeader::FORM_CONSTANT | low);
            return out.extend_from_slice(&values[0].to_le_bytes()[..constant_len(width)]);
        }
        PlannedForm::Sparse { high_width } | PlannedForm::Bitmap { high_width } => {
            let sparse = matches!(plan.form, PlannedForm::Sparse { .. });
            let tag = if sparse { PforHeader::FORM_SPARSE } else { PforHeader::FORM_BITMAP };
            out.extend_from_slice(&[tag | low, high_width as u8]);
            let mut found = Exceptions::new();
            kernel.find_exceptions(values, width, &mut found);
            write_bitmap(kernel, &found.bitmap, bitmap_len(values.len()), sparse, out);
            kernel.pack(found.highs(), high_width, Layout::Horizontal, out);
        }
    }
    kernel.pack(values, width, layout, out);
    debug_assert_eq!(out.len() - start, plan.len);
}

/// Appends the first `len` bytes of the bitmap; in the sparse form, a mask with a bit for each byte, then
/// the nonzero bytes.
fn write_bitmap(kernel: Kernel, bitmap: &Bitmap, len: usize, sparse: bool, out: &mut Vec<u8>) {
    if !sparse {
        return out.extend_from_slice(&bitmap[..len]);
    }
    let sparse = kernel.make_sparse_bitmap(bitmap);
    out.extend_from_slice(&sparse.mask.to_le_bytes()[..len.div_ceil(8)]);
    out.extend_from_slice(&sparse.bytes[..sparse.mask.count_ones() as usize]);
}
