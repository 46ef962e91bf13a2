//! Segments in one array-based linked list (thesis, section 7.2.3, figure 7.5).
//!
//! *You have* a number of segments. *You get* chains of them, and give them back. One array holds, for each segment, the
//! number of the one behind it: in its chain, or in the one list of free segments. Nothing is allocated after it was made.
//!
//! - Giving a chain back is two stores, whatever its length: its tail is put in front of the free list.
//! - Taking a chain off costs a step a segment, as each is to be written anyway, and two stores.
//!
//! The links are atomic so that a thread whose chain is pinned follows them without the lock: nobody changes the links of
//! a chain before it is given back, and the lock under which the pin was taken has ordered them before. Nothing more is
//! asked of the order, so they are relaxed.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// No segment.
pub(crate) const NONE: u32 = u32::MAX;

/// Segments that belong together, in order. At least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) head: u32,
    pub(crate) tail: u32,
    pub(crate) count: u32,
}

/// The free segments.
#[derive(Debug)]
pub(crate) struct Free {
    head: u32,
    count: u32,
}

/// For each segment the next one, and what part of a list begins in it.
pub(crate) struct Links {
    next: Box<[AtomicU32]>,
    /// Of a part's first segment: its place, packed.
    parts: Box<[AtomicU64]>,
}

/// Where a part stands, from its first segment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Bytes of the first segment that stand before it, fewer than a page.
    pub(crate) skip: usize,
    /// Its length in bytes.
    pub(crate) len: u64,
}

/// Bits of a packed place that hold `skip`.
const SKIP_BITS: u32 = tierdex_io::PAGE.trailing_zeros();

impl Links {
    /// Links of `count` segments, fewer than 2^32 - 1, all free.
    pub(crate) fn new(count: u32) -> (Links, Free) {
        let next = (1..=count).map(|next| AtomicU32::new(if next == count { NONE } else { next })).collect();
        let parts = (0..count).map(|_| AtomicU64::new(0)).collect();
        (Links { next, parts }, Free { head: 0, count })
    }

    /// Bytes of memory for each segment.
    pub(crate) const BYTES_PER_SEGMENT: usize = size_of::<AtomicU32>() + size_of::<AtomicU64>();

    /// The segment behind this one.
    pub(crate) fn next(&self, segment: u32) -> u32 {
        self.next[segment as usize].load(Ordering::Relaxed)
    }

    /// The segment `steps` behind this one, which there is.
    pub(crate) fn after(&self, segment: u32, steps: u32) -> u32 {
        (0..steps).fold(segment, |segment, _| self.next(segment))
    }

    /// The place of the part that begins in this segment.
    pub(crate) fn place(&self, segment: u32) -> Place {
        let packed = self.parts[segment as usize].load(Ordering::Relaxed);
        Place { skip: (packed & ((1 << SKIP_BITS) - 1)) as usize, len: packed >> SKIP_BITS }
    }

    /// Notes the part that begins in this segment.
    pub(crate) fn set_place(&self, segment: u32, place: Place) {
        let packed = place.len << SKIP_BITS | place.skip as u64;
        self.parts[segment as usize].store(packed, Ordering::Relaxed);
    }

    /// Takes `count` segments, at least one; none when fewer are free.
    pub(crate) fn take(&self, free: &mut Free, count: u32) -> Option<Chain> {
        if count == 0 || free.count < count {
            return None;
        }
        let head = free.head;
        let tail = self.after(head, count - 1);
        free.head = self.next(tail);
        free.count -= count;
        self.link(tail, NONE);
        Some(Chain { head, tail, count })
    }

    /// Gives a chain back.
    pub(crate) fn give_back(&self, free: &mut Free, chain: Chain) {
        self.link(chain.tail, free.head);
        free.head = chain.head;
        free.count += chain.count;
    }

    /// Gives all of a chain back but its head, which is left.
    pub(crate) fn give_back_all_but_head(&self, free: &mut Free, chain: Chain) -> Chain {
        let Chain { head, tail, count } = chain;
        if count > 1 {
            self.give_back(free, Chain { head: self.next(head), tail, count: count - 1 });
            self.link(head, NONE);
        }
        Chain { head, tail: head, count: 1 }
    }

    fn link(&self, segment: u32, next: u32) {
        self.next[segment as usize].store(next, Ordering::Relaxed);
    }
}

impl Free {
    /// How many segments are free.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn members(links: &Links, head: u32) -> Vec<u32> {
        let mut members = Vec::new();
        let mut at = head;
        while at != NONE {
            assert!(members.len() < links.next.len(), "the list has a circle");
            members.push(at);
            at = links.next(at);
        }
        members
    }

    #[test]
    fn the_segment_list_of_figure_7_5() {
        let next = [7, 5, 4, NONE, NONE, 3, 0, 8, NONE].map(AtomicU32::new);
        let links = Links { next: Box::new(next), parts: Box::default() };
        let mut free = Free { head: 6, count: 4 };
        assert_eq!(members(&links, free.head), [6, 0, 7, 8]);
        // Term 1 is evicted: the free list begins at segment 1, and 6 stands behind 3.
        links.give_back(&mut free, Chain { head: 1, tail: 3, count: 3 });
        assert_eq!((free.head, links.next(3)), (1, 6));
        assert_eq!(members(&links, free.head), [1, 5, 3, 6, 0, 7, 8]);
        assert_eq!(members(&links, 2), [2, 4]);
    }

    #[test]
    fn places_are_kept() {
        let (links, _) = Links::new(3);
        for place in [Place { skip: 0, len: 1 }, Place { skip: 4095, len: (1 << 52) - 1 }] {
            links.set_place(2, place);
            assert_eq!(links.place(2), place);
        }
    }

    proptest! {
        #[test]
        fn free_and_chained_are_all(
            count in 1..40_u32,
            steps in prop::collection::vec((0..8_u32, any::<prop::sample::Index>(), 0..4_u8), 0..80),
        ) {
            let (links, mut free) = Links::new(count);
            let mut chains: Vec<(Chain, Vec<u32>)> = Vec::new();
            for (size, which, verb) in steps {
                if verb == 0 && !chains.is_empty() {
                    let (chain, _) = chains.swap_remove(which.index(chains.len()));
                    links.give_back(&mut free, chain);
                } else if verb == 1 && !chains.is_empty() {
                    let at = which.index(chains.len());
                    let (chain, kept) = &mut chains[at];
                    *chain = links.give_back_all_but_head(&mut free, *chain);
                    kept.truncate(1);
                } else {
                    let before = free.count();
                    match links.take(&mut free, size) {
                        Some(chain) => {
                            prop_assert_eq!(chain.count, size);
                            chains.push((chain, members(&links, chain.head)));
                        }
                        None => prop_assert!(size == 0 || size > before),
                    }
                }
                // The model: what each chain was given is what it has, and nothing is in two places.
                let mut seen = members(&links, free.head);
                prop_assert_eq!(seen.len(), free.count() as usize);
                for (chain, given) in &chains {
                    prop_assert_eq!(&members(&links, chain.head), given);
                    prop_assert_eq!(given.last(), Some(&chain.tail));
                    prop_assert_eq!(given.len(), chain.count as usize);
                    seen.extend(given);
                }
                seen.sort_unstable();
                prop_assert!(seen.into_iter().eq(0..count));
            }
        }
    }
}
