//! The table of cache entries: which list is in which cells.
//!
//! An entry has the number of its first cell, so an array with one record per cell holds all entries. An
//! open-addressing index finds the entry of a key. Nothing is allocated after construction, except for
//! errors.
//!
//! Life of an entry: *loading* while the worker fills it, then *ready* or *failed*. A failed entry is no
//! longer in the index, so the next request for its key tries again. It is kept, with one cell, until all
//! threads that wait for it have seen the error.

use tierdex_io::Error;

use crate::cache::{cell_links::CellList, cell_links::NO_CELL, key::ListKey};

/// State of a cache entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryState {
    /// No entry begins at this cell.
    Vacant,
    /// The worker fills the entry, or will.
    Loading,
    /// The cells of the entry contain the bytes of the file.
    Ready,
    /// The list could not be read.
    Failed,
}

/// A cache entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheEntry {
    pub(crate) key: ListKey,
    /// Fingerprint of the parts: see [`crate::ListRequest`].
    pub(crate) fingerprint: u32,
    tail: u32,
    pub(crate) count: u32,
    /// Number of pins. An entry is evicted only when it has none.
    pub(crate) pins: u32,
}

/// All cache entries, and their index by key.
pub(crate) struct EntryTable {
    entries: Box<[CacheEntry]>,
    states: Box<[EntryState]>,
    /// Entry numbers by hash of key; linear probing.
    index: Box<[u32]>,
    /// Errors of failed entries.
    errors: Vec<(u32, Error)>,
}

impl EntryTable {
    /// Bytes of memory for each cell, at most: the index has fewer than four slots for each.
    pub(crate) const BYTES_PER_CELL_MAX: usize =
        size_of::<CacheEntry>() + size_of::<EntryState>() + 4 * size_of::<u32>();

    /// A table for entries of `cells` cells in all.
    pub(crate) fn new(cells: u32) -> EntryTable {
        let vacant = CacheEntry { key: ListKey(0, 0), fingerprint: 0, tail: NO_CELL, count: 0, pins: 0 };
        let slots = (cells as usize * 2).next_power_of_two();
        EntryTable {
            entries: vec![vacant; cells as usize].into(),
            states: vec![EntryState::Vacant; cells as usize].into(),
            index: vec![NO_CELL; slots].into(),
            errors: Vec::new(),
        }
    }

    /// Bytes of memory that the table takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.entries) + size_of_val(&*self.states) + size_of_val(&*self.index)
    }

    /// The state of an entry.
    pub(crate) fn state(&self, entry: u32) -> EntryState {
        self.states[entry as usize]
    }

    /// Marks an entry as ready.
    pub(crate) fn set_ready(&mut self, entry: u32) {
        self.states[entry as usize] = EntryState::Ready;
    }

    /// The entry of a key, loading or ready.
    pub(crate) fn find_entry(&self, key: ListKey) -> Option<u32> {
        let entry = self.index[self.slot(key)];
        (entry != NO_CELL).then_some(entry)
    }

    /// An entry that must exist.
    pub(crate) fn entry(&self, entry: u32) -> &CacheEntry {
        &self.entries[entry as usize]
    }

    /// An entry that must exist.
    pub(crate) fn entry_mut(&mut self, entry: u32) -> &mut CacheEntry {
        &mut self.entries[entry as usize]
    }

    /// The cells of an entry.
    pub(crate) fn cells(&self, entry: u32) -> CellList {
        let CacheEntry { tail, count, .. } = self.entries[entry as usize];
        CellList { head: entry, tail, count }
    }

    /// Adds an entry, loading and not pinned, for a key that has none.
    pub(crate) fn insert(&mut self, key: ListKey, fingerprint: u32, cells: CellList) -> u32 {
        let CellList { head, tail, count } = cells;
        let slot = self.slot(key);
        debug_assert!(self.index[slot] == NO_CELL && self.state(head) == EntryState::Vacant);
        self.index[slot] = head;
        self.entries[head as usize] = CacheEntry { key, fingerprint, tail, count, pins: 0 };
        self.states[head as usize] = EntryState::Loading;
        head
    }

    /// Removes a ready entry, and returns its cells.
    pub(crate) fn remove_ready(&mut self, entry: u32) -> CellList {
        debug_assert!(self.state(entry) == EntryState::Ready && self.entry(entry).pins == 0);
        self.remove_from_index(self.entry(entry).key);
        self.vacate_entry(entry)
    }

    /// Marks an entry as failed, and removes it from the index.
    pub(crate) fn fail_entry(&mut self, entry: u32, error: Error) {
        self.remove_from_index(self.entry(entry).key);
        self.states[entry as usize] = EntryState::Failed;
        self.errors.push((entry, error));
    }

    /// Sets the cells of a failed entry to those that it still has.
    pub(crate) fn set_cells(&mut self, cells: CellList) {
        let entry = &mut self.entries[cells.head as usize];
        (entry.tail, entry.count) = (cells.tail, cells.count);
    }

    /// The error of a failed entry.
    pub(crate) fn error(&self, entry: u32) -> Option<&Error> {
        self.errors.iter().find(|(failed, _)| *failed == entry).map(|(_, error)| error)
    }

    /// Removes a failed entry, and returns its cells.
    pub(crate) fn remove_failed(&mut self, entry: u32) -> CellList {
        self.errors.retain(|(failed, _)| *failed != entry);
        self.vacate_entry(entry)
    }

    fn vacate_entry(&mut self, entry: u32) -> CellList {
        let cells = self.cells(entry);
        self.states[entry as usize] = EntryState::Vacant;
        cells
    }

    /// The slot of a key in the index, or the free slot in which it would be stored.
    fn slot(&self, key: ListKey) -> usize {
        let mut slot = self.home_slot(key);
        while self.index[slot] != NO_CELL && self.entries[self.index[slot] as usize].key != key {
            slot = self.next_slot(slot);
        }
        slot
    }

    fn home_slot(&self, key: ListKey) -> usize {
        key.hash_bits() as usize & (self.index.len() - 1)
    }

    fn next_slot(&self, slot: usize) -> usize {
        (slot + 1) & (self.index.len() - 1)
    }

    /// Removes a key from the index, and moves later keys of the same probe sequence forward.
    fn remove_from_index(&mut self, key: ListKey) {
        let mut hole = self.slot(key);
        let mut slot = self.next_slot(hole);
        while self.index[slot] != NO_CELL {
            let home = self.home_slot(self.entries[self.index[slot] as usize].key);
            let mask = self.index.len() - 1;
            // The home slot of this entry is not between the hole and this slot: it may move into the hole.
            if (slot.wrapping_sub(home) & mask) >= (slot.wrapping_sub(hole) & mask) {
                self.index[hole] = self.index[slot];
                hole = slot;
            }
            slot = self.next_slot(slot);
        }
        self.index[hole] = NO_CELL;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn the_index_is_a_map(steps in prop::collection::vec((0..24_u64, any::<bool>()), 0..200)) {
            const CELLS: u32 = 8;
            let mut table = EntryTable::new(CELLS);
            let mut model: HashMap<ListKey, u32> = HashMap::new();
            let mut free: Vec<u32> = (0..CELLS).collect();
            for (number, fails) in steps {
                let key = ListKey(number, number % 3);
                if let Some(entry) = model.remove(&key) {
                    if fails {
                        table.fail_entry(entry, Error::corrupt("a", 1, "x"));
                        prop_assert!(table.find_entry(key).is_none() && table.error(entry).is_some());
                        table.remove_failed(entry);
                        prop_assert!(table.error(entry).is_none());
                    } else {
                        table.set_ready(entry);
                        prop_assert_eq!(table.remove_ready(entry).head, entry);
                    }
                    free.push(entry);
                } else if let Some(head) = free.pop() {
                    table.insert(key, 0, CellList { head, tail: head, count: 1 });
                    model.insert(key, head);
                }
                for number in 0..24 {
                    let key = ListKey(number, number % 3);
                    prop_assert_eq!(table.find_entry(key), model.get(&key).copied());
                }
            }
        }
    }
}
