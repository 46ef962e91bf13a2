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
    let wider = kernel.wider(values);
    let plain = Plan { form: Form::Plain, width: wider.widest, len: 1 + packed_len(n, wider.widest) };
    let (width, len) = kernel.shortest_patched(n, &wider);
    if len >= plain.len {
        return plain;
    }
    let high_width = wider.widest - width;
    let sparse = sparse_len(n, wider.groups[width as usize]) < bitmap_len(n) as u16;
    let form = if sparse { Form::Sparse { high_width } } else { Form::Bitmap { high_width } };
    Plan { form, width, len }
}

/// The width of the shortest block with exceptions, the largest among equals, and its length; some greater length
/// than any if there can be none. One loop over all widths, which the compiler makes a few vector instructions of
/// those of the kernel that asks for it.
#[inline(always)]
pub(crate) fn shortest_patched(n: usize, wider: &Wider) -> (u32, usize) {
    let packed_len = |n: u16, width: u16| (n * width).div_ceil(8);
    let (all, widest, bitmap) = (n as u16, wider.widest as u16, bitmap_len(n) as u16);
    // Length and width in one number: lengths have 11 bits and widths 5, which count downwards.
    let mut best = u16::MAX;
    for (width, (count, groups)) in (0..).zip(wider.values.iter().zip(&wider.groups)) {
        let places = sparse_len(n, *groups).min(bitmap);
        let highs = packed_len(*count, widest.saturating_sub(width));
        let len = HEAD as u16 + places + highs + packed_len(all, width);
        let key = len << 5 | (31 - width);
        best = best.min(if width < widest { key } else { u16::MAX });
    }
    (u32::from(31 - best % 32), usize::from(best / 32))
}

/// Bytes of the sparse bitmap of `n` values, of whose groups of eight so many have exceptions.
fn sparse_len(n: usize, groups: u16) -> u16 {
    bitmap_len(n).div_ceil(8) as u16 + groups
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
