//! LRU: evicts the entry that was not used for the longest time, the policy of the APCache thesis (section
//! 7.2.3).

use super::entry_list::{EntryList, Neighbours};
use super::eviction::{HEAT_CLASSES, Policy};

/// The entries in order of their last use.
pub struct Lru {
    neighbours: Neighbours,
    list: EntryList,
}

impl Lru {
    /// Bytes of memory for each entry.
    pub const BYTES_PER_ENTRY: usize = Neighbours::BYTES_PER_ENTRY;

    /// A policy for entries numbered below `entries`.
    pub fn new(entries: u32) -> Lru {
        Lru { neighbours: Neighbours::new(entries), list: EntryList::EMPTY }
    }

    /// The entries, the least recently used one first.
    pub fn oldest_first(&self) -> impl Iterator<Item = u32> {
        self.neighbours.oldest_first(&self.list)
    }
}

impl Policy for Lru {
    fn insert(&mut self, entry: u32, _hash: u64, _segments: u32) {
        self.neighbours.push_front(&mut self.list, entry);
    }

    /// Adds the entry as the least recently used one.
    fn restore(&mut self, entry: u32, _key: u64, _cells: u32, _class: usize) {
        self.neighbours.push_back(&mut self.list, entry);
    }

    fn touch(&mut self, entry: u32) {
        self.neighbours.remove(&mut self.list, entry);
        self.neighbours.push_front(&mut self.list, entry);
    }

    fn remove(&mut self, entry: u32) {
        self.neighbours.remove(&mut self.list, entry);
    }

    fn victim(&mut self, is_evictable: &dyn Fn(u32) -> bool) -> Option<u32> {
        self.oldest_first().find(|entry| is_evictable(*entry))
    }

    /// Entries of a class are as many as those of every other, in order of their last use.
    fn visit(&self, visit: &mut dyn FnMut(u32, usize)) {
        let entries = self.oldest_first().count();
        for (entry, older) in self.oldest_first().zip(0..) {
            visit(entry, HEAT_CLASSES - 1 - older * HEAT_CLASSES / entries);
        }
    }

    fn bytes(&self) -> usize {
        self.neighbours.bytes()
    }
}
