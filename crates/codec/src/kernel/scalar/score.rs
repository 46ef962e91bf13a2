//! BM25 scores, filters over scores, and selection of the largest keys.

use crate::block::{Selection, Survivors};
use crate::saturation::Saturation;

/// Implements [`crate::Kernel::score`].
pub(crate) fn score(of: &Saturation, values: &[u32], frequencies: &[u32], scores: &mut [u32]) {
    for ((score, value), frequency) in scores.iter_mut().zip(values).zip(frequencies) {
        *score = of.score_of(*value, *frequency);
    }
}

/// Implements [`crate::Kernel::values_at_least`]: no branch depends on the values.
pub(crate) fn values_at_least(values: &[u32], threshold: u32, positions: &mut Selection) {
    let (positions, count) = positions.parts();
    let mut found = 0;
    for (position, value) in values.iter().enumerate() {
        positions[found] = position as u8;
        found += usize::from(*value >= threshold);
    }
    *count = found;
}

/// Number of sums that are compared with the threshold before a branch.
const DRAIN_CHUNK_SUMS: usize = 16;

/// Implements [`crate::Kernel::drain_at_least`]: one branch per [`DRAIN_CHUNK_SUMS`] sums, since most contain
/// none that reaches the threshold.
pub(crate) fn drain_at_least(sums: &mut [u32], first: u32, threshold: u32, survivors: &mut Survivors) {
    let (values, large, count, positive) = survivors.parts(sums.len());
    let (mut found, mut nonzero) = (0, 0);
    let mut take = |sums: &mut [u32], first: u32| {
        let any = sums.iter().fold(false, |any, sum| any | (*sum >= threshold));
        nonzero += sums.iter().map(|sum| u32::from(*sum > 0)).sum::<u32>();
        if any {
            for (value, sum) in (0..).map(|k| first.wrapping_add(k)).zip(&*sums) {
                // Always written, kept if it reaches the threshold.
                (values[found], large[found]) = (value, *sum);
                found += usize::from(*sum >= threshold);
            }
        }
        sums.fill(0);
    };
    let (chunks, rest) = sums.as_chunks_mut::<DRAIN_CHUNK_SUMS>();
    let mut start = first;
    for sums in chunks {
        take(sums, start);
        start = start.wrapping_add(DRAIN_CHUNK_SUMS as u32);
    }
    take(rest, start);
    (*count, *positive) = (found, nonzero as usize);
}

/// Implements [`crate::Kernel::keep_at_least`]: no branch depends on the scores.
pub(crate) fn keep_at_least(values: &mut [u32], scores: &mut [u32], from: usize, threshold: u32) -> usize {
    let mut kept = 0;
    for position in from..values.len() {
        (values[kept], scores[kept]) = (values[position], scores[position]);
        kept += usize::from(scores[kept] >= threshold);
    }
    kept
}

/// Implements [`crate::Kernel::largest`].
pub(crate) fn largest(keys: &mut [u64], k: usize, _: &mut Vec<u64>) -> u64 {
    select_largest(keys, k);
    keys[..k].iter().copied().min().unwrap_or(u64::MAX)
}

/// Moves the largest `k` keys to the front.
pub(crate) fn select_largest(keys: &mut [u64], k: usize) {
    if (1..keys.len()).contains(&k) {
        keys.select_nth_unstable_by(k - 1, |a, b| b.cmp(a));
    }
}
