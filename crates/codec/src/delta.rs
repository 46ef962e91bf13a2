//! Differences of neighbours, mod 2^32, and their sums.
//!
//! `prev` is the value before the block. `u32::MAX` is -1 mod 2^32, so the start of a list needs no special case.

use crate::kernel;

/// What two neighbours differ by at least, and so what need not be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Store `v[i] - v[i-1]`.
    Zero = 0,
    /// Store `v[i] - v[i-1] - 1`, for strictly increasing values.
    One = 1,
}

/// Writes the gaps of `values` to `gaps`, which is as long.
pub(crate) fn gaps(values: &[u32], prev: u32, step: Step, gaps: &mut [u32]) {
    kernel::gaps(values, prev, step as u32, gaps);
}

/// Turns gaps into values, in place.
pub(crate) fn prefix_sum(values: &mut [u32], prev: u32, step: Step) {
    kernel::prefix_sum(values, prev, step as u32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(values: &[u32], prev: u32, step: Step, expect: &[u32]) {
        let mut work = vec![0; values.len()];
        gaps(values, prev, step, &mut work);
        assert_eq!(work, expect);
        prefix_sum(&mut work, prev, step);
        assert_eq!(work, values);
    }

    #[test]
    fn the_start_of_a_list_is_minus_one() {
        check(&[0, 1, 5], u32::MAX, Step::One, &[0, 0, 3]);
        check(&[0, 1, 5], u32::MAX, Step::Zero, &[1, 1, 4]);
    }

    #[test]
    fn a_block_goes_on_from_its_predecessor() {
        check(&[8, 9, u32::MAX], 7, Step::One, &[0, 0, u32::MAX - 10]);
        check(&[8, 9, u32::MAX], 7, Step::Zero, &[1, 1, u32::MAX - 9]);
    }

    #[test]
    fn falling_values_wrap() {
        check(&[5, 3, 3], 9, Step::One, &[u32::MAX - 4, u32::MAX - 2, u32::MAX]);
    }
}
