//! Finding segments of a chain by their number in it.
//!
//! *You have* a chain that is pinned, and a range of it. *You get* any of its segments, along the links, without memory beside
//! this: a few milestones, each the same power of two behind the one before, are noted when they are passed for the first
//! time. A step onwards follows one link. Any other goes on from here or from the last milestone before its goal, whichever
//! is nearer. Of a range of up to [`MILESTONES`] segments all are milestones.

use crate::segments::Links;

/// How many milestones are noted.
const MILESTONES: usize = 16;

/// A place in a chain.
pub(crate) struct Walk<'a> {
    links: &'a Links,
    /// Where it is: the number in the chain, and the segment.
    at: usize,
    segment: u32,
    /// Milestone `n` is the segment at `first + (n << shift)`.
    milestones: [u32; MILESTONES],
    first: usize,
    shift: u32,
    /// How many of them were passed.
    passed: usize,
}

impl<'a> Walk<'a> {
    /// At the head of a chain, of which segments `first` to `last` will be wanted.
    pub(crate) fn new(links: &'a Links, head: u32, first: usize, last: usize) -> Walk<'a> {
        let bits = usize::BITS - (last - first).leading_zeros();
        let shift = bits.saturating_sub(MILESTONES.trailing_zeros());
        Walk { links, at: 0, segment: head, milestones: [0; MILESTONES], first, shift, passed: 0 }
    }

    /// The number in the chain of the segment that it is at.
    #[inline]
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Goes to segment `at`, one of those that were named.
    pub(crate) fn go_to(&mut self, at: usize) -> u32 {
        if self.passed > 0 {
            let milestone = ((at - self.first) >> self.shift).min(self.passed - 1);
            let from = self.first + (milestone << self.shift);
            if at < self.at || self.at < from {
                (self.at, self.segment) = (from, self.milestones[milestone]);
            }
        }
        loop {
            if self.at == self.first + (self.passed << self.shift) {
                self.milestones[self.passed] = self.segment;
                self.passed += 1;
            }
            if self.at == at {
                return self.segment;
            }
            (self.at, self.segment) = (self.at + 1, self.links.next(self.segment));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_where_the_links_lead(
            count in prop_oneof![1..40_u32, 1..2000_u32],
            ends in any::<(prop::sample::Index, prop::sample::Index)>(),
            goals in prop::collection::vec(any::<prop::sample::Index>(), 1..60),
        ) {
            let (links, mut free) = Links::new(count + 3);
            // The free list is no longer in order.
            let head = links.take(&mut free, 1).unwrap();
            let others = links.take(&mut free, 2).unwrap();
            links.give_back(&mut free, head);
            links.give_back(&mut free, others);
            let chain = links.take(&mut free, count).unwrap();
            let (one, other) = (ends.0.index(count as usize), ends.1.index(count as usize));
            let (first, last) = (one.min(other), one.max(other));
            let mut walk = Walk::new(&links, chain.head, first, last);
            for goal in goals {
                let goal = first + goal.index(last - first + 1);
                prop_assert_eq!(walk.go_to(goal), links.after(chain.head, goal as u32));
                prop_assert_eq!(walk.at(), goal);
            }
        }
    }
}
