//! Finds a cell of a pinned list by its index in the list.
//!
//! A walk follows the links and takes no memory of its own except 16 milestones: cells at equal distances,
//! a power of two, noted when the walk first passes them. A step forward follows one link. Any other move
//! starts at the current cell or at the last milestone before the target, whichever is nearer. In a range
//! of up to [`MILESTONE_COUNT`] cells every cell is a milestone.

use super::cell_links::CellLinks;

/// Number of cells of a list whose numbers a walk stores, at equal distances, so that it can start there.
const MILESTONE_COUNT: usize = 16;

/// A position in a list of cells.
pub(crate) struct CellWalk<'a> {
    links: &'a CellLinks,
    /// The current cell: its index in the list, and its number.
    at: usize,
    cell: u32,
    /// Milestone `n` is the cell at index `first + (n << shift)`.
    milestones: [u32; MILESTONE_COUNT],
    first: usize,
    shift: u32,
    /// Number of milestones passed so far.
    passed: usize,
}

impl<'a> CellWalk<'a> {
    /// At the head of a list, to visit cells `first` to `last`.
    pub(crate) fn new(links: &'a CellLinks, head: u32, first: usize, last: usize) -> CellWalk<'a> {
        let bits = usize::BITS - (last - first).leading_zeros();
        let shift = bits.saturating_sub(MILESTONE_COUNT.trailing_zeros());
        CellWalk { links, at: 0, cell: head, milestones: [0; MILESTONE_COUNT], first, shift, passed: 0 }
    }

    /// The index of the current cell.
    #[inline]
    pub(crate) fn cell_index(&self) -> usize {
        self.at
    }

    /// Goes to the cell at index `at`, within the range given to [`CellWalk::new`].
    pub(crate) fn seek_cell(&mut self, at: usize) -> u32 {
        if self.passed > 0 {
            let milestone = ((at - self.first) >> self.shift).min(self.passed - 1);
            let from = self.first + (milestone << self.shift);
            if at < self.at || self.at < from {
                (self.at, self.cell) = (from, self.milestones[milestone]);
            }
        }
        loop {
            if self.at == self.first + (self.passed << self.shift) {
                self.milestones[self.passed] = self.cell;
                self.passed += 1;
            }
            if self.at == at {
                return self.cell;
            }
            (self.at, self.cell) = (self.at + 1, self.links.next_cell(self.cell));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_walk_follows_the_links(
            count in prop_oneof![1..40_u32, 1..2000_u32],
            ends in any::<(prop::sample::Index, prop::sample::Index)>(),
            goals in prop::collection::vec(any::<prop::sample::Index>(), 1..60),
        ) {
            let (links, mut free) = CellLinks::new(count + 3);
            // Release two lists out of order, so that the free list is not in order.
            let head = links.allocate(&mut free, 1).unwrap();
            let others = links.allocate(&mut free, 2).unwrap();
            links.release_list(&mut free, head);
            links.release_list(&mut free, others);
            let list = links.allocate(&mut free, count).unwrap();
            let (one, other) = (ends.0.index(count as usize), ends.1.index(count as usize));
            let (first, last) = (one.min(other), one.max(other));
            let mut walk = CellWalk::new(&links, list.head, first, last);
            for goal in goals {
                let goal = first + goal.index(last - first + 1);
                prop_assert_eq!(walk.seek_cell(goal), links.cell_after(list.head, goal as u32));
                prop_assert_eq!(walk.cell_index(), goal);
            }
        }
    }
}
