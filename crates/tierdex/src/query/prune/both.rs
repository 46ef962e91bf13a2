//! Documents that hold both of two terms, where nobody asks how many they are: those of the rarer one that score enough are
//! looked up in the other, and only where the bounds of both together may reach a hit. Of more than two terms the others may
//! add so much that hardly a document of the rarest is left out: there, all are intersected before any is scored.

use super::any::enough;
use super::scratch::Scratch;
use super::{Scored, slack};
use crate::error::Result;
use crate::rank::TopK;

/// Offers the documents that hold both terms to `top`, numbered from `base` on, but for those that it cannot take; returns how
/// many were met.
pub fn best_of_both(
    [first, second]: [&mut Scored<'_>; 2],
    base: u32,
    scratch: &mut Scratch,
    top: &mut TopK,
) -> Result<u64> {
    let batch = &mut scratch.batches[0];
    let (rarer, other) = if second.documents < first.documents { (second, first) } else { (first, second) };
    let mut met = 0;
    for block in 0..rarer.blocks.len() {
        let range = (rarer.blocks.first(block), rarer.blocks.last(block));
        other.advance(range.0);
        let rest = other.bound_of_range(range.0, range.1);
        if (rarer.bound_of(block) + rest) * slack(2) < top.least() {
            rarer.blocks.refuse(block);
            continue;
        }
        let (documents, scores) = rarer.read_at_least(block, enough(2, rest, top.least()))?;
        batch.clear();
        batch.push_all(documents, scores);
        // The sum of two scores is the same in either order.
        let enough = enough(2, 0.0, top.least());
        other.require(batch, enough)?;
        batch.retain(enough);
        if batch.len() == 0 {
            continue;
        }
        met += batch.len() as u64;
        top.offer_all(base, &batch.documents, &batch.scores);
        top.tighten();
    }
    Ok(met)
}
