//! One term: the blocks with the highest bounds first, then those of the others that may still matter.
//!
//! Bounds are one contiguous array, so a list of a million postings costs a pass over some thousand numbers and as many
//! blocks as hold the best hits, which is mostly a handful.

use super::Scored;
use crate::error::Result;
use crate::limits::BLOCK;
use crate::rank::TopK;

/// Offers the documents of `list`, which has its bounds, to `top`, numbered from `base` on, but for those that it cannot
/// take. Returns the number of blocks that were decoded.
pub fn best_of_term(mut list: Scored<'_>, base: u32, top: &mut TopK) -> Result<usize> {
    let of_blocks = std::mem::take(&mut list.bounds);
    let mut offer = |block: u32, top: &mut TopK| {
        list.for_each(block as usize, 0..=u32::MAX, |document, score| top.offer(base + document, score))
    };
    // As many blocks as k hits fill, and one: of those with the highest bounds, in document order.
    let first = (top.k().div_ceil(BLOCK) + 1).min(of_blocks.len());
    let mut order: Vec<u32> = (0..of_blocks.len() as u32).collect();
    if first < order.len() {
        let higher = |a: &u32, b: &u32| of_blocks[*b as usize].total_cmp(&of_blocks[*a as usize]);
        order.select_nth_unstable_by(first, higher);
    }
    let (best, others) = order.split_at_mut(first);
    best.sort_unstable();
    for block in best.iter() {
        offer(*block, top)?;
    }
    top.tighten();
    let mut decoded = first;
    // The highest of the rest first as well, if they are few: each may spare others.
    let least = top.least();
    let mut others: Vec<u32> =
        others.iter().copied().filter(|block| of_blocks[*block as usize] >= least).collect();
    others.sort_unstable_by(|a, b| of_blocks[*b as usize].total_cmp(&of_blocks[*a as usize]).then(a.cmp(b)));
    for block in others {
        if of_blocks[block as usize] < top.least() {
            break;
        }
        offer(block, top)?;
        top.tighten();
        decoded += 1;
    }
    Ok(decoded)
}
