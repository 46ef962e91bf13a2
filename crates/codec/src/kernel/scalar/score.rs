//! Scores of blocks.

use crate::score::{Places, Saturation};

/// [`crate::Kernel::score`].
pub(in crate::kernel) fn score(of: &Saturation, values: &[u32], frequencies: &[u32], scores: &mut [f32]) {
    for ((score, value), frequency) in scores.iter_mut().zip(values).zip(frequencies) {
        *score = of.score_of(*value, *frequency);
    }
}

/// [`crate::Kernel::at_least`].
pub(in crate::kernel) fn at_least(scores: &[f32], least: f32, places: &mut Places) {
    find(scores, least, places);
}

/// [`crate::Kernel::values_at_least`].
pub(in crate::kernel) fn values_at_least(values: &[u32], least: u32, places: &mut Places) {
    find(values, least, places);
}

/// No branch depends on the values.
fn find<T: PartialOrd>(values: &[T], least: T, places: &mut Places) {
    let (places, count) = places.parts();
    let mut found = 0;
    for (place, value) in values.iter().enumerate() {
        places[found] = place as u8;
        found += usize::from(*value >= least);
    }
    *count = found;
}

/// [`crate::Kernel::positive`].
#[inline(always)]
pub(in crate::kernel) fn positive(scores: &[f32]) -> usize {
    // Counted in 32 bits, as wide as a score, so that a vector counts as many at once as it compares.
    let some = |scores: &[f32]| scores.iter().map(|score| u32::from(*score > 0.0)).sum::<u32>() as usize;
    scores.chunks(1 << 30).map(some).sum()
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
