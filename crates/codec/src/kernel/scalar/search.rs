//! Intersection of two sorted blocks.

use crate::block::{BLOCK, Intersection, Positions};

/// If one block has this many times the values of the other, each value of the other is searched in it.
const SEARCH_LENGTH_RATIO: usize = 8;

/// Implements [`crate::Kernel::intersect`]. No branch depends on the values.
pub(crate) fn intersect(first: &[u32], second: &[u32], shared: &mut Intersection) {
    let ([firsts, seconds], count) = shared.parts();
    *count = if first.len() * SEARCH_LENGTH_RATIO <= second.len() {
        look_up(first, second, firsts, seconds)
    } else if second.len() * SEARCH_LENGTH_RATIO <= first.len() {
        look_up(second, first, seconds, firsts)
    } else {
        merge_blocks(first, second, firsts, seconds)
    };
}

/// Finds each value of `few` in `many` by a binary search. Writes the positions of the shared values in both
/// blocks and returns their number. The searches of several values overlap in the CPU.
fn look_up(few: &[u32], many: &[u32], in_few: &mut Positions, in_many: &mut Positions) -> usize {
    let mut padded = [u32::MAX; BLOCK];
    padded[..many.len()].copy_from_slice(many);
    let mut found = 0;
    for (k, value) in few.iter().enumerate() {
        // The number of smaller values, one bit more in each step.
        let (mut at, mut step) = (0, many.len().next_power_of_two() / 2);
        while step > 0 {
            // Not an `if`, which the compiler might turn into a branch.
            let smaller = usize::from(padded[(at + step - 1) % BLOCK] < *value);
            at += smaller.wrapping_neg() & step;
            step /= 2;
        }
        let at = at % BLOCK;
        // Always written, kept if the values are equal.
        (in_few[found % BLOCK], in_many[found % BLOCK]) = (k as u8, at as u8);
        found += usize::from(padded[at] == *value && at < many.len());
    }
    found
}

/// Steps through both blocks, as a merge does. Arguments and result are those of [`look_up`].
fn merge_blocks(first: &[u32], second: &[u32], firsts: &mut Positions, seconds: &mut Positions) -> usize {
    let (mut i, mut j, mut found) = (0, 0, 0);
    while let (Some(a), Some(b)) = (first.get(i), second.get(j)) {
        // Always written, kept if the values are equal.
        (firsts[found], seconds[found]) = (i as u8, j as u8);
        found += usize::from(a == b);
        i += usize::from(a <= b);
        j += usize::from(b <= a);
    }
    found
}

/// Implements [`crate::Kernel::is_increasing`], without an early exit.
#[inline(always)]
pub(crate) fn is_increasing(values: &[u32]) -> bool {
    let later = values.get(1..).unwrap_or(&[]);
    values.iter().zip(later).fold(true, |rise, (a, b)| rise & (a < b))
}

/// Implements [`crate::Kernel::add_one`].
#[inline(always)]
pub(crate) fn add_one(values: &mut [u32]) -> u32 {
    values.iter_mut().fold(0, |largest: u32, value| {
        let before = *value;
        *value = before.wrapping_add(1);
        largest.max(before)
    })
}
