//! Counts, for each bit width, the values that are wider.

use crate::{bitpack::width_of_all, block::BLOCK, kernel::table::WidthCounts};

/// Number of counter arrays. With one array, consecutive values of equal width would wait for each other's
/// store.
const COUNTER_ARRAYS: usize = 4;

/// Implements [`crate::Kernel::count_wider`].
#[inline(always)]
pub(crate) fn count_wider(values: &[u32]) -> WidthCounts {
    let mut groups = [0; BLOCK / 8];
    let groups = &mut groups[..values.len().div_ceil(8)];
    for (all, group) in groups.iter_mut().zip(values.chunks(8)) {
        *all = group.iter().fold(0, |all, value| all | value);
    }
    WidthCounts {
        values: sums_from_above(width_counts(values)),
        groups: sums_from_above(width_counts(groups)),
        widest: width_of_all(groups),
    }
}

/// `sums[b]` is the sum of `counts[w]` for all `w` > `b`.
fn sums_from_above(counts: [u16; 33]) -> [u16; 32] {
    let mut above = 0;
    let mut sums = [0; 32];
    for (sum, count) in sums.iter_mut().zip(&counts[1..]).rev() {
        above += count;
        *sum = above;
    }
    sums
}

/// `counts[w]` is the number of values of `w` bits; zeros have width 0. At most 65,535 values.
#[inline(always)]
fn width_counts(values: &[u32]) -> [u16; 33] {
    // 64 entries per array, and an index masked to 6 bits: no bounds checks.
    let mut counters = [[0u16; 64]; COUNTER_ARRAYS];
    let (groups, rest) = values.as_chunks::<COUNTER_ARRAYS>();
    for group in groups {
        for (counter, value) in counters.iter_mut().zip(group) {
            counter[bit_width(*value)] += 1;
        }
    }
    for value in rest {
        counters[0][bit_width(*value)] += 1;
    }
    std::array::from_fn(|w| counters.iter().map(|counter| counter[w]).sum())
}

/// Bit width from the exponent of the value as a float. It is exact and can be vectorised; counting leading
/// zeros takes one slow instruction per value on CPUs without `lzcnt`.
fn bit_width(value: u32) -> usize {
    const BEFORE_ONE: u64 = 1022;
    let exponent = f64::from(value).to_bits() >> 52;
    (exponent.saturating_sub(BEFORE_ONE) & 63) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_counted_once_under_its_width() {
        let values = [0, 0, 1, 2, 3, 4, 255, 256, u32::MAX, 0x8000_0000, 0x7fff_ffff];
        let counts = width_counts(&values);
        let some: Vec<_> = counts.iter().enumerate().filter(|(_, count)| **count > 0).collect();
        let expect = [(0, &2), (1, &1), (2, &2), (3, &1), (8, &1), (9, &1), (31, &1), (32, &2)];
        assert_eq!(some, expect);
        let wider = count_wider(&values);
        assert_eq!(wider.values[..9], [9, 8, 6, 5, 5, 5, 5, 5, 4]);
        assert_eq!(wider.values[30..], [3, 2]);
        assert_eq!(wider.groups[..9], [2, 2, 2, 2, 2, 2, 2, 2, 2]);
        assert_eq!(wider.groups[9..12], [1, 1, 1]);
    }
}
