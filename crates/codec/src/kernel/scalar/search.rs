//! What two sorted blocks share.

use crate::search::Shared;

/// [`crate::Kernel::intersect`].
pub(in crate::kernel) fn intersect(first: &[u32], second: &[u32], shared: &mut Shared) {
    *shared.parts().1 = 0;
    merge((first, 0), (second, 0), shared);
}

/// Goes on from the given places. No branch depends on the values.
#[inline(always)]
pub(in crate::kernel) fn merge(
    (first, mut i): (&[u32], usize),
    (second, mut j): (&[u32], usize),
    shared: &mut Shared,
) {
    let ([firsts, seconds], count) = shared.parts();
    let mut found = *count;
    while let (Some(a), Some(b)) = (first.get(i), second.get(j)) {
        // Written in any case, kept if they are equal.
        (firsts[found], seconds[found]) = (i as u8, j as u8);
        found += usize::from(a == b);
        i += usize::from(a <= b);
        j += usize::from(b <= a);
    }
    *count = found;
}
