//! What two sorted blocks share.

use crate::search::Shared;

/// [`crate::Kernel::intersect`]. No branch depends on the values.
pub(in crate::kernel) fn intersect(first: &[u32], second: &[u32], shared: &mut Shared) {
    let ([firsts, seconds], count) = shared.parts();
    let (mut i, mut j, mut found) = (0, 0, 0);
    while let (Some(a), Some(b)) = (first.get(i), second.get(j)) {
        // Written in any case, kept if they are equal.
        (firsts[found], seconds[found]) = (i as u8, j as u8);
        found += usize::from(a == b);
        i += usize::from(a <= b);
        j += usize::from(b <= a);
    }
    *count = found;
}
