//! The bit widths of values: how many are wider than each.

use crate::BLOCK;
use crate::bitpack::width_of_all;
use crate::kernel::Wider;

/// Independent counters: neighbours of equal width would otherwise wait for each other's store.
const WAYS: usize = 4;

/// [`crate::Kernel::wider`].
#[inline(always)]
pub(in crate::kernel) fn wider(values: &[u32]) -> Wider {
    let mut groups = [0; BLOCK / 8];
    let groups = &mut groups[..values.len().div_ceil(8)];
    for (all, group) in groups.iter_mut().zip(values.chunks(8)) {
        *all = group.iter().fold(0, |all, value| all | value);
    }
    Wider {
        values: sums_from_above(width_counts(values)),
        groups: sums_from_above(width_counts(groups)),
        widest: width_of_all(groups),
    }
}

/// `[b]` = number of those counted under more than `b`.
fn sums_from_above(counts: [u16; 33]) -> [u16; 32] {
    let mut above = 0;
    let mut sums = [0; 32];
    for (sum, count) in sums.iter_mut().zip(&counts[1..]).rev() {
        above += count;
        *sum = above;
    }
    sums
}

/// `counts[w]` = number of values whose highest set bit is bit `w - 1`; `counts[0]` counts zeros.
/// At most 65,535 values.
#[inline(always)]
fn width_counts(values: &[u32]) -> [u16; 33] {
    // 64 entries a way and a mask that the range of the index already satisfies: no bounds checks.
    let mut ways = [[0u16; 64]; WAYS];
    let (groups, rest) = values.as_chunks::<WAYS>();
    for group in groups {
        for (way, value) in ways.iter_mut().zip(group) {
            way[width(*value)] += 1;
        }
    }
    for value in rest {
        ways[0][width(*value)] += 1;
    }
    std::array::from_fn(|w| ways.iter().map(|way| way[w]).sum())
}

/// Bit width from the exponent of the value as a float, which is exact and takes vector instructions; counting
/// leading zeros takes one slow instruction a value on CPUs without `lzcnt`.
fn width(value: u32) -> usize {
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
        let wider = wider(&values);
        assert_eq!(wider.values[..9], [9, 8, 6, 5, 5, 5, 5, 5, 4]);
        assert_eq!(wider.values[30..], [3, 2]);
        assert_eq!(wider.groups[..9], [2, 2, 2, 2, 2, 2, 2, 2, 2]);
        assert_eq!(wider.groups[9..12], [1, 1, 1]);
    }
}
