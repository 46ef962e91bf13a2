//! Intersection of two sorted blocks.

use crate::block::Intersection;

/// [`crate::Kernel::intersect`]. No branch depends on the values.
pub(in crate::kernel) fn intersect(first: &[u32], second: &[u32], shared: &mut Intersection) {
    let ([firsts, seconds], count) = shared.parts();
    let (mut i, mut j, mut found) = (0, 0, 0);
    while let (Some(a), Some(b)) = (first.get(i), second.get(j)) {
        // Always written, kept if the values are equal.
        (firsts[found], seconds[found]) = (i as u8, j as u8);
        found += usize::from(a == b);
        i += usize::from(a <= b);
        j += usize::from(b <= a);
    }
    *count = found;
}

/// [`crate::Kernel::is_increasing`], without an early exit.
#[inline(always)]
pub(in crate::kernel) fn is_increasing(values: &[u32]) -> bool {
    let later = values.get(1..).unwrap_or(&[]);
    values.iter().zip(later).fold(true, |rise, (a, b)| rise & (a < b))
}

/// [`crate::Kernel::add_one`].
#[inline(always)]
pub(in crate::kernel) fn add_one(values: &mut [u32]) -> u32 {
    values.iter_mut().fold(0, |largest: u32, value| {
        let before = *value;
        *value = before.wrapping_add(1);
        largest.max(before)
    })
}
