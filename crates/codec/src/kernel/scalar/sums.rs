//! Gaps and prefix sums. All arithmetic is mod 2^32.

use core::mem::MaybeUninit;

/// Implements [`crate::Kernel::compute_gaps`].
#[inline(always)]
pub(crate) fn compute_gaps(values: &[u32], prev: u32, step: u32, gaps: &mut [MaybeUninit<u32>]) {
    let difference = |value: u32, before: u32| value.wrapping_sub(before).wrapping_sub(step);
    let (Some((first_gap, gaps)), Some(first)) = (gaps.split_first_mut(), values.first()) else { return };
    first_gap.write(difference(*first, prev));
    for (gap, pair) in gaps.iter_mut().zip(values.windows(2)) {
        gap.write(difference(pair[1], pair[0]));
    }
}

/// `values[i] = values[i-1] + values[i] + step`, with `prev` before the first, in place.
pub(crate) fn prefix_sum(values: &mut [u32], prev: u32, step: u32) {
    let mut sum = prev;
    for value in values {
        // The step is added to the gap, so that the dependency chain between values is one addition.
        sum = sum.wrapping_add(value.wrapping_add(step));
        *value = sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kernel, kernel::table::GapBuffer};

    /// Checks the gaps of `values`, and that their prefix sums are the values again.
    #[track_caller]
    fn check_gaps(values: &[u32], prev: u32, step: u32, expect: &[u32]) {
        let mut buffer = GapBuffer::new();
        let mut work = Kernel::SCALAR.compute_gaps(values, prev, step, &mut buffer).to_vec();
        assert_eq!(work, expect);
        prefix_sum(&mut work, prev, step);
        assert_eq!(work, values);
    }

    #[test]
    fn the_start_of_a_list_is_minus_one() {
        check_gaps(&[0, 1, 5], u32::MAX, 1, &[0, 0, 3]);
        check_gaps(&[0, 1, 5], u32::MAX, 0, &[1, 1, 4]);
    }

    #[test]
    fn a_block_continues_from_the_value_before_it() {
        check_gaps(&[8, 9, u32::MAX], 7, 1, &[0, 0, u32::MAX - 10]);
        check_gaps(&[8, 9, u32::MAX], 7, 0, &[1, 1, u32::MAX - 9]);
    }

    #[test]
    fn falling_values_wrap() {
        check_gaps(&[5, 3, 3], 9, 1, &[u32::MAX - 4, u32::MAX - 2, u32::MAX]);
    }
}
