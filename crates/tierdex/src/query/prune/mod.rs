//! Evaluation that looks only at blocks that may hold one of the best hits. What it finds is what [`super::ops`]
//! find by looking at all: the same documents, the same scores, the same order.

mod all;
mod any;
mod scored;
mod term;

pub use all::best_of_all;
pub use any::best_of_any;
pub use scored::Scored;
pub use term::best_of_term;

use crate::error::Result;
use crate::rank::TermScorer;
use crate::segment::read::BlockList;

/// Where the bounds of blocks come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bounds {
    /// The numbers stored beside the blocks: ranking has the default parameters, and the average length is that
    /// of the segment.
    Stored,
    /// The impacts of each block.
    Impacts,
}

/// What sums of bounds of so many terms are multiplied by before they are compared. They are summed in another order
/// than scores are, and each addition, of theirs and of those, rounds by up to half of [`f32::EPSILON`].
fn slack(terms: usize) -> f32 {
    1.0 + 2.0 * f32::EPSILON * (terms as f32 + 1.0)
}

/// What the postings of each block of `list` score at most, into `out`.
fn block_bounds(list: &BlockList, scorer: &TermScorer, bounds: Bounds, out: &mut Vec<f32>) -> Result<()> {
    out.clear();
    match bounds {
        Bounds::Stored => out.extend(list.bounds().map(|units| scorer.bound(units))),
        Bounds::Impacts => {
            let mut front = Vec::new();
            for block in 0..list.blocks() {
                list.impacts(block, &mut front)?;
                out.push(scorer.bound_of(&front));
            }
        }
    }
    Ok(())
}
