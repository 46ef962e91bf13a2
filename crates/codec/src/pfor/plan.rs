//! Chooses the form and the width with which a block is shortest.
//!
//! For each width, the number of wider values and the number of groups of eight values with a wider one give
//! the exact length: each wider value is an exception, and each such group is a nonzero byte of the bitmap.

use super::cost::{bitmap_len, sparse_len};
use super::header::constant_len;
use crate::bitpack::{WIDTH_MAX, packed_len};
use crate::kernel::Kernel;

/// Form, width and length of the shortest block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PforPlan {
    pub(super) form: PlannedForm,
    /// Width of the low parts in bits; in a constant block, of the value.
    pub(super) width: u32,
    /// Bytes of the block.
    pub(super) len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlannedForm {
    Plain,
    Sparse { high_width: u32 },
    Bitmap { high_width: u32 },
    Constant,
}

/// The shortest block of `values`, which are not empty. Among equally long blocks the one with fewer
/// exceptions, and the bitmap form before the sparse form.
pub(super) fn choose_form(kernel: Kernel, values: &[u32]) -> PforPlan {
    let (first, n) = (values[0], values.len());
    if first != 0 && values.iter().all(|value| *value == first) {
        let width = WIDTH_MAX - first.leading_zeros();
        return PforPlan { form: PlannedForm::Constant, width, len: 1 + constant_len(width) };
    }
    let counts = kernel.count_wider(values);
    let plain =
        PforPlan { form: PlannedForm::Plain, width: counts.widest, len: 1 + packed_len(n, counts.widest) };
    let (width, len) = kernel.shortest_patched_block(n, &counts);
    if len >= plain.len {
        return plain;
    }
    let high_width = counts.widest - width;
    let sparse = sparse_len(n, counts.groups[width as usize]) < bitmap_len(n) as u16;
    let form = if sparse { PlannedForm::Sparse { high_width } } else { PlannedForm::Bitmap { high_width } };
    PforPlan { form, width, len }
}

/// The length of the shortest block of `values`, which are not empty.
pub(crate) fn block_len(kernel: Kernel, values: &[u32]) -> usize {
    choose_form(kernel, values).len
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BLOCK;

    fn choose_form(values: &[u32]) -> (PlannedForm, u32, usize) {
        let plan = super::choose_form(Kernel::SCALAR, values);
        (plan.form, plan.width, plan.len)
    }

    #[test]
    fn equal_values_are_constant_but_zeros_are_plain() {
        assert_eq!(choose_form(&[5; 9]), (PlannedForm::Constant, 3, 2));
        assert_eq!(choose_form(&[0; 9]), (PlannedForm::Plain, 0, 1));
        assert_eq!(choose_form(&[u32::MAX]), (PlannedForm::Constant, 32, 5));
    }

    #[test]
    fn few_exceptions_are_sparse_and_many_a_bitmap() {
        let mut values = [1; BLOCK];
        values[..3].fill(1 << 20);
        assert_eq!(choose_form(&values), (PlannedForm::Sparse { high_width: 20 }, 1, 2 + 4 + 1 + 8 + 32));
        for position in values.iter_mut().step_by(4) {
            *position = 1 << 20;
        }
        assert_eq!(choose_form(&values), (PlannedForm::Bitmap { high_width: 20 }, 1, 2 + 32 + 165 + 32));
    }
}
