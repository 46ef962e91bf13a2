//! The page table of a shard: a hash table from pages to frames, in which the pages of a group
//! ([`GROUP_PAGES`]) are neighbours. A run of pages is so found in few cache lines.
//!
//! Open addressing with linear probing. The home of a page is the slot of its number within the group, in a
//! line of [`GROUP_PAGES`] slots that the hash of the group chooses. A removed entry is replaced by one that
//! was displaced to a later slot, so there are no tombstones.

use crate::hash::mix_bits;

/// Pages of a group: their slots are 64 bytes, in one cache line or two.
pub(crate) const GROUP_PAGES: u64 = 8;

/// A page of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageKey {
    /// The number of the file: [`SealedFile::number`](tierdex_io::SealedFile::number).
    pub(crate) file: u64,
    pub(crate) page: u64,
}

impl PageKey {
    /// Page number `page` of the file with the number `file`.
    pub(crate) fn new(file: u64, page: u64) -> PageKey {
        PageKey { file, page }
    }

    /// The page as one number, for the eviction policy. Pages of a file are numbered in their order; those of
    /// a group differ in the lowest bits.
    pub(crate) fn id(self) -> u64 {
        let first = mix_bits(self.file) / GROUP_PAGES * GROUP_PAGES;
        first.wrapping_add(self.page)
    }

    pub(crate) fn group_hash(self) -> u64 {
        group_hash(self.id())
    }

    pub(crate) fn tag(self) -> u32 {
        PageTable::tag(self.group_hash(), self.page)
    }
}

/// The hash of the group of a page, given by [`PageKey::id`].
pub(crate) fn group_hash(id: u64) -> u64 {
    mix_bits(id / GROUP_PAGES)
}

/// The key of a frame without a page.
pub(crate) const NO_PAGE: PageKey = PageKey { file: u64::MAX, page: 0 };

/// No frame.
const VACANT: u32 = u32::MAX;

/// A frame and the tag of its page. The lowest three bits of a tag are the number of the page in its group,
/// the others are of the hash of the group. Different pages may have the same tag.
#[derive(Clone, Copy)]
struct PageSlot {
    tag: u32,
    frame: u32,
}

/// A hash table of frames by the tags of their pages.
pub(crate) struct PageTable {
    slots: Box<[PageSlot]>,
}

impl PageTable {
    /// A table for at most `frames` frames.
    pub(crate) fn new(frames: usize) -> PageTable {
        let slots = (frames * 7 / 4 + 1).next_multiple_of(GROUP_PAGES as usize);
        PageTable { slots: vec![PageSlot { tag: 0, frame: VACANT }; slots].into() }
    }

    /// Maximum bytes for each frame. A table for fewer than 32 frames has up to 56 bytes more.
    pub(crate) const BYTES_PER_FRAME_MAX: usize = 2 * size_of::<PageSlot>();

    /// The tag of a page, from the hash of its group.
    pub(crate) fn tag(group_hash: u64, page: u64) -> u32 {
        (group_hash >> 32) as u32 & !(GROUP_PAGES as u32 - 1) | (page % GROUP_PAGES) as u32
    }

    /// The frame with this tag for which `is_page` is true.
    #[inline]
    pub(crate) fn find(&self, tag: u32, is_page: impl Fn(u32) -> bool) -> Option<u32> {
        let mut at = self.home(tag);
        loop {
            let slot = self.slots[at];
            if slot.frame == VACANT {
                return None;
            }
            if slot.tag == tag && is_page(slot.frame) {
                return Some(slot.frame);
            }
            at = self.next(at);
        }
    }

    /// Adds a frame that is not in the table.
    pub(crate) fn insert(&mut self, tag: u32, frame: u32) {
        let mut at = self.home(tag);
        while self.slots[at].frame != VACANT {
            at = self.next(at);
        }
        self.slots[at] = PageSlot { tag, frame };
    }

    /// Removes a frame, if the table has it.
    pub(crate) fn remove(&mut self, tag: u32, frame: u32) {
        let mut vacant = self.home(tag);
        while self.slots[vacant].frame != frame {
            if self.slots[vacant].frame == VACANT {
                return;
            }
            vacant = self.next(vacant);
        }
        // Up to the next vacant slot, each entry that may be stored in the vacant one moves there.
        let mut at = self.next(vacant);
        while self.slots[at].frame != VACANT {
            let home = self.home(self.slots[at].tag);
            if self.distance(home, vacant) <= self.distance(home, at) {
                self.slots[vacant] = self.slots[at];
                vacant = at;
            }
            at = self.next(at);
        }
        self.slots[vacant].frame = VACANT;
    }

    /// Slots from `from` to `to`, which may be behind the end of the table.
    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.slots.len() - from }
    }

    #[inline]
    fn home(&self, tag: u32) -> usize {
        let lines = self.slots.len() as u64 / GROUP_PAGES;
        let line = (u64::from(tag) / GROUP_PAGES * lines) >> (u32::BITS - GROUP_PAGES.trailing_zeros());
        (line * GROUP_PAGES + u64::from(tag) % GROUP_PAGES) as usize
    }

    #[inline]
    fn next(&self, at: usize) -> usize {
        if at + 1 == self.slots.len() { 0 } else { at + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::{GROUP_PAGES, PageTable};
    use crate::hash::mix_bits;
    use std::collections::HashMap;

    /// Random insertions and removals, compared with a hash map; tags collide, as there are few groups.
    #[test]
    fn the_table_equals_a_map() {
        for (frames, groups) in [(1, 3), (8, 2), (100, 40), (257, 1 << 20)] {
            let mut table = PageTable::new(frames);
            let mut of_frame: HashMap<u32, u64> = HashMap::new();
            let mut of_page: HashMap<u64, u32> = HashMap::new();
            // Hashes of few bits, so that different pages have equal tags.
            let tag = |page: u64| PageTable::tag(mix_bits(page / GROUP_PAGES) & 0xF8_0000_0000, page);
            let mut random = 1;
            for step in 0..20_000u64 {
                random = mix_bits(random ^ step);
                let page = random % (groups * GROUP_PAGES);
                let found = table.find(tag(page), |frame| of_frame.get(&frame) == Some(&page));
                assert_eq!(found, of_page.get(&page).copied(), "page {page} in step {step}");
                match found {
                    Some(frame) if random % 3 == 0 => {
                        table.remove(tag(page), frame);
                        table.remove(tag(page), frame);
                        of_frame.remove(&frame);
                        of_page.remove(&page);
                    }
                    None if of_frame.len() < frames => {
                        let free = (0..frames as u32).find(|frame| !of_frame.contains_key(frame)).unwrap();
                        table.insert(tag(page), free);
                        of_frame.insert(free, page);
                        of_page.insert(page, free);
                    }
                    None => {
                        let (frame, page) = of_frame.iter().next().map(|(f, p)| (*f, *p)).unwrap();
                        table.remove(tag(page), frame);
                        of_frame.remove(&frame);
                        of_page.remove(&page);
                    }
                    Some(_) => {}
                }
            }
        }
    }
}
