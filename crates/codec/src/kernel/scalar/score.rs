//! Scores of blocks.

use crate::score::{Places, Saturation, Swept};

/// [`crate::Kernel::score`].
pub(in crate::kernel) fn score(of: &Saturation, values: &[u32], frequencies: &[u32], scores: &mut [u32]) {
    for ((score, value), frequency) in scores.iter_mut().zip(values).zip(frequencies) {
        *score = of.score_of(*value, *frequency);
    }
}

/// [`crate::Kernel::values_at_least`]: no branch depends on the values.
pub(in crate::kernel) fn values_at_least(values: &[u32], least: u32, places: &mut Places) {
    let (places, count) = places.parts();
    let mut found = 0;
    for (place, value) in values.iter().enumerate() {
        places[found] = place as u8;
        found += usize::from(*value >= least);
    }
    *count = found;
}

/// [`crate::Kernel::sweep`]: no branch depends on the sums.
pub(in crate::kernel) fn sweep(sums: &mut [u32], first: u32, least: u32, swept: &mut Swept) {
    let (values, large, count, positive) = swept.parts(sums.len());
    let (mut found, mut some) = (0, 0);
    for (k, sum) in sums.iter_mut().enumerate() {
        (values[found], large[found]) = (first.wrapping_add(k as u32), *sum);
        found += usize::from(*sum >= least);
        some += usize::from(*sum > 0);
        *sum = 0;
    }
    (*count, *positive) = (found, some);
}

/// [`crate::Kernel::keep_at_least`]: no branch depends on the scores.
pub(in crate::kernel) fn keep_at_least(
    values: &mut [u32],
    scores: &mut [u32],
    from: usize,
    least: u32,
) -> usize {
    let mut kept = 0;
    for place in from..values.len() {
        (values[kept], scores[kept]) = (values[place], scores[place]);
        kept += usize::from(scores[kept] >= least);
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
