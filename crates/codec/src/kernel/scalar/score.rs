//! Scores, and filters over them.

use crate::block::{Selection, Survivors};
use crate::saturation::Saturation;

/// [`crate::Kernel::score`].
pub(in crate::kernel) fn score(of: &Saturation, values: &[u32], frequencies: &[u32], scores: &mut [u32]) {
    for ((score, value), frequency) in scores.iter_mut().zip(values).zip(frequencies) {
        *score = of.score_of(*value, *frequency);
    }
}

/// [`crate::Kernel::values_at_least`]: no branch depends on the values.
pub(in crate::kernel) fn values_at_least(values: &[u32], threshold: u32, positions: &mut Selection) {
    let (positions, count) = positions.parts();
    let mut found = 0;
    for (position, value) in values.iter().enumerate() {
        positions[found] = position as u8;
        found += usize::from(*value >= threshold);
    }
    *count = found;
}

/// [`crate::Kernel::drain_at_least`]: no branch depends on the sums.
pub(in crate::kernel) fn drain_at_least(
    sums: &mut [u32],
    first: u32,
    threshold: u32,
    survivors: &mut Survivors,
) {
    let (values, large, count, positive) = survivors.parts(sums.len());
    let (mut found, mut nonzero) = (0, 0);
    for (k, sum) in sums.iter_mut().enumerate() {
        (values[found], large[found]) = (first.wrapping_add(k as u32), *sum);
        found += usize::from(*sum >= threshold);
        nonzero += usize::from(*sum > 0);
        *sum = 0;
    }
    (*count, *positive) = (found, nonzero);
}

/// [`crate::Kernel::keep_at_least`]: no branch depends on the scores.
pub(in crate::kernel) fn keep_at_least(
    values: &mut [u32],
    scores: &mut [u32],
    from: usize,
    threshold: u32,
) -> usize {
    let mut kept = 0;
    for position in from..values.len() {
        (values[kept], scores[kept]) = (values[position], scores[position]);
        kept += usize::from(scores[kept] >= threshold);
    }
    kept
}

/// [`crate::Kernel::largest`].
pub(in crate::kernel) fn largest(keys: &mut [u64], k: usize, _: &mut Vec<u64>) -> u64 {
    select(keys, k);
    keys[..k].iter().copied().min().unwrap_or(u64::MAX)
}

/// Moves the largest `k` keys to the front.
pub(in crate::kernel) fn select(keys: &mut [u64], k: usize) {
    if (1..keys.len()).contains(&k) {
        keys.select_nth_unstable_by(k - 1, |a, b| b.cmp(a));
    }
}
