//! SIEVE: one queue in order of insertion, and a pointer, the *hand*, that moves from old to new entries and
//! evicts the first one that was not used since the hand last passed it. The others keep their position
//! (Zhang and others, "SIEVE is Simpler than LRU", NSDI 2024).

use super::entry_list::{EntryList, NO_ENTRY, Neighbours};
use super::eviction::Policy;

/// The queue of SIEVE, and its hand.
pub(super) struct Sieve {
    neighbours: Neighbours,
    list: EntryList,
    used: Box<[bool]>,
    /// The next entry to examine; [`NO_ENTRY`] stands for the oldest.
    hand: u32,
    entries: u32,
}

impl Sieve {
    /// Bytes of memory for each entry.
    pub(super) const BYTES_PER_ENTRY: usize = Neighbours::BYTES_PER_ENTRY + size_of::<bool>();

    /// A policy for entries numbered below `entries`.
    pub(super) fn new(entries: u32) -> Sieve {
        let used = vec![false; entries as usize].into();
        Sieve {
            neighbours: Neighbours::new(entries),
            list: EntryList::EMPTY,
            used,
            hand: NO_ENTRY,
            entries: 0,
        }
    }
}

impl Policy for Sieve {
    fn insert(&mut self, entry: u32, _hash: u64, _segments: u32) {
        self.neighbours.push_front(&mut self.list, entry);
        self.used[entry as usize] = false;
        self.entries += 1;
    }

    fn restore(&mut self, entry: u32, key: u64, cells: u32, class: usize) {
        self.insert(entry, key, cells);
        self.used[entry as usize] = class == 0;
    }

    fn touch(&mut self, entry: u32) {
        self.used[entry as usize] = true;
    }

    fn remove(&mut self, entry: u32) {
        if self.hand == entry {
            self.hand = self.neighbours.before(entry);
        }
        self.neighbours.remove(&mut self.list, entry);
        self.entries -= 1;
    }

    fn victim(&mut self, is_evictable: &dyn Fn(u32) -> bool) -> Option<u32> {
        // Two rounds: in the first, all evictable entries may have been used.
        for _ in 0..=2 * self.entries {
            let entry = if self.hand == NO_ENTRY { self.list.back } else { self.hand };
            if entry == NO_ENTRY {
                return None;
            }
            if is_evictable(entry) && !std::mem::take(&mut self.used[entry as usize]) {
                self.hand = entry;
                return Some(entry);
            }
            self.hand = self.neighbours.before(entry);
        }
        None
    }

    /// Entries that were used since the hand passed them; the others.
    fn visit(&self, visit: &mut dyn FnMut(u32, usize)) {
        for entry in self.neighbours.oldest_first(&self.list) {
            visit(entry, usize::from(!self.used[entry as usize]));
        }
    }

    fn bytes(&self) -> usize {
        self.neighbours.bytes() + size_of_val(&*self.used)
    }
}
