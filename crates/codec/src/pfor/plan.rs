//! Which form and width make the shortest block.
//!
//! The numbers of values, and of groups of eight values, that are wider than each width give every length
//! exactly: each such value is an exception, and each such group a byte of the bitmap that is not zero.

use super::header::{HEAD, bitmap_len, constant_len};
use crate::Kernel;
use crate::bitpack::{WIDTH_MAX, packed_len};
use crate::kernel::Wider;

/// The shortest block of some values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) form: Form,
    /// Width of the low parts in bits; of the value, if it is constant.
    pub(super) width: u32,
    /// Bytes of the block.
    pub(super) len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    Sparse { high_width: u32 },
    Bitmap { high_width: u32 },
    Constant,
}

/// The shortest block of `values`, of which there is at least one.
/// Among equals the one with fewer exceptions, and the bitmap before the sparse one.
pub(super) fn choose(kernel: Kernel, values: &[u32]) -> Plan {
    let (first, n) = (values[0], values.len());
    if first != 0 && values.iter().all(|value| *value == first) {
        let width = WIDTH_MAX - first.leading_zeros();
        return Plan { form: Form::Constant, width, len: 1 + constant_len(width) };
    }
    let Wider { values: wider, groups } = kernel.wider(values);
    let widest = wider.iter().rposition(|count| *count > 0).map_or(0, |width| width as u32 + 1);
    let mut best = Plan { form: Form::Plain, width: widest, len: 1 + packed_len(n, widest) };
    let (bitmap, mask) = (bitmap_len(n), bitmap_len(n).div_ceil(8));
    for width in (0..widest).rev() {
        let (count, groups) = (usize::from(wider[width as usize]), usize::from(groups[width as usize]));
        let high_width = widest - width;
        let packed = HEAD + packed_len(count, high_width) + packed_len(n, width);
        if packed + bitmap < best.len {
            best = Plan { form: Form::Bitmap { high_width }, width, len: packed + bitmap };
        }
        if packed + mask + groups < best.len {
            best = Plan { form: Form::Sparse { high_width }, width, len: packed + mask + groups };
        }
    }
    best
}

/// Bytes of the shortest block of `values`, of which there is at least one.
pub(crate) fn block_len(kernel: Kernel, values: &[u32]) -> usize {
    choose(kernel, values).len
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BLOCK;

    fn choose(values: &[u32]) -> (Form, u32, usize) {
        let plan = super::choose(Kernel::SCALAR, values);
        (plan.form, plan.width, plan.len)
    }

    #[test]
    fn equal_values_are_constant_but_zeros_are_plain() {
        assert_eq!(choose(&[5; 9]), (Form::Constant, 3, 2));
        assert_eq!(choose(&[0; 9]), (Form::Plain, 0, 1));
        assert_eq!(choose(&[u32::MAX]), (Form::Constant, 32, 5));
    }

    #[test]
    fn few_exceptions_make_a_sparse_bitmap_and_many_a_whole_one() {
        let mut values = [1; BLOCK];
        values[..3].fill(1 << 20);
        assert_eq!(choose(&values), (Form::Sparse { high_width: 20 }, 1, 2 + 4 + 1 + 8 + 32));
        for place in values.iter_mut().step_by(4) {
            *place = 1 << 20;
        }
        assert_eq!(choose(&values), (Form::Bitmap { high_width: 20 }, 1, 2 + 32 + 165 + 32));
    }
}
