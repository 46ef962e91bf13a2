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
//! asked of the order, so they are relaxed. All that holds for the parts, too.
//!
//! Parts of a list are packed: each begins at the page behind the last page of the one before, in the same segment if
//! that has one left. So where they begin follows from their lengths, and from how far they begin within their first pages:
//!
//! ```text
//! segments of 4 pages   | a a a b | b b b b | b c d d |   a has 3 pages, b 6, c 1, d 2
//! ```
//!
//! Up to [`PARTS_MAX`] parts may begin in one segment, and one may be as long as all segments. So each segment has as
//! many words of 32 bits. Those of a chain's head hold what parts need that are no longer than a segment, those of the
//! second segment what longer ones need beyond that:
//!
//! ```text
//! head             bits 0 to 11: bytes of its first page before it    bits 12 to 31: the low 20 bits of its length - 1
//! second segment   bits 0 to 31: the others
//! ```

use std::sync::atomic::{AtomicU32, Ordering};

use tierdex_io::{CELL_BYTES_MAX, PAGE};

use crate::job::PARTS_MAX;

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

/// For each segment the next one, and what parts stand in the chain of which it is the first or the second.
pub(crate) struct Links {
    next: Box<[AtomicU32]>,
    parts: Box<[[AtomicU32; PARTS_MAX]]>,
}

/// Where a part stands in its chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Bytes of the chain that stand before it.
    pub(crate) start: u64,
    /// Its length in bytes.
    pub(crate) len: u64,
}

/// Bits of a part's first word that say how far it begins within a page.
const SKIP_BITS: u32 = PAGE.trailing_zeros();

/// Bits of its length that the first word holds.
const LEN_BITS: u32 = u32::BITS - SKIP_BITS;

/// In all words of a part: there is none. One that begins so late in its page and is so long needs one segment more.
const NO_PART: u32 = u32::MAX;

// A part that is no longer than a segment needs no second word.
const _: () = assert!(CELL_BYTES_MAX <= 1 << LEN_BITS);

impl Links {
    /// Links of `count` segments, fewer than 2^32 - 1, all free.
    pub(crate) fn new(count: u32) -> (Links, Free) {
        let next = (1..=count).map(|next| AtomicU32::new(if next == count { NONE } else { next })).collect();
        let parts = (0..count).map(|_| Default::default()).collect();
        (Links { next, parts }, Free { head: 0, count })
    }

    /// Bytes of memory for each segment.
    pub(crate) const BYTES_PER_SEGMENT: usize = size_of::<AtomicU32>() * (1 + PARTS_MAX);

    /// The segment behind this one.
    pub(crate) fn next(&self, segment: u32) -> u32 {
        self.next[segment as usize].load(Ordering::Relaxed)
    }

    /// The segment `steps` behind this one, which there is.
    pub(crate) fn after(&self, segment: u32, steps: u32) -> u32 {
        (0..steps).fold(segment, |segment, _| self.next(segment))
    }

    /// Where part `part` of the chain `head` stands; none when it has fewer.
    pub(crate) fn place(&self, head: u32, part: usize) -> Option<Place> {
        let mut page = 0;
        for before in 0..part {
            let (skip, len) = self.part(head, before)?;
            page += (skip + len).next_multiple_of(PAGE);
        }
        let (skip, len) = self.part(head, part)?;
        Some(Place { start: page + skip, len })
    }

    /// How far a part begins within its first page, and its length.
    fn part(&self, head: u32, part: usize) -> Option<(u64, u64)> {
        let word = |segment: u32| Some(self.parts[segment as usize].get(part)?.load(Ordering::Relaxed));
        let (low, second) = (word(head)?, self.next(head));
        let high = if second == NONE { None } else { word(second) };
        if low == NO_PART && high.is_none_or(|high| high == NO_PART) {
            return None;
        }
        let more = u64::from(high.unwrap_or(0)) << LEN_BITS | u64::from(low >> SKIP_BITS);
        Some((u64::from(low) % PAGE, more + 1))
    }

    /// Notes the parts that are to stand in the chain `head`, which has room for them: of each, how far it begins within
    /// its first page, and its length.
    pub(crate) fn set_parts(&self, head: u32, parts: impl Iterator<Item = (u64, u64)>) {
        let second = self.next(head);
        let words = parts.map(|(skip, len)| {
            let more = len - 1;
            ((more << SKIP_BITS | skip) as u32, (more >> LEN_BITS) as u32)
        });
        for (part, (low, high)) in words.chain([(NO_PART, NO_PART)]).take(PARTS_MAX).enumerate() {
            self.parts[head as usize][part].store(low, Ordering::Relaxed);
            if second != NONE {
                self.parts[second as usize][part].store(high, Ordering::Relaxed);
            }
        }
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
    fn places_follow_from_lengths() {
        let (links, mut free) = Links::new(3);
        let one = links.take(&mut free, 1).unwrap();
        let two = links.take(&mut free, 2).unwrap();
        let longest = CELL_BYTES_MAX as u64;
        let cases: [(Chain, &[(u64, u64)]); 7] = [
            (one, &[(0, 1)]),
            (one, &[(0, longest)]),
            (one, &[(PAGE - 1, longest - PAGE + 1)]),
            (one, &[(5, longest - PAGE - 5), (PAGE - 1, 1)]),
            (one, &[(7, 1); PARTS_MAX]),
            (two, &[(PAGE - 1, longest), (0, 17)]),
            (two, &[(PAGE - 1, (1 << 52) - 2 * PAGE), (0, 1)]),
        ];
        for (chain, parts) in cases {
            links.set_parts(chain.head, parts.iter().copied());
            let mut page = 0;
            for (part, (skip, len)) in parts.iter().enumerate() {
                let place = Place { start: page + skip, len: *len };
                assert_eq!(links.place(chain.head, part), Some(place), "{parts:?}");
                page += (skip + len).next_multiple_of(PAGE);
            }
            assert_eq!(links.place(chain.head, parts.len()), None, "{parts:?}");
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
