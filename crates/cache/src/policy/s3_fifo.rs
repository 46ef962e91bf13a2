//! S3-FIFO (Yang and others, "FIFO queues are all you need for cache eviction", SOSP 2023).
//!
//! 1. A new entry is added to the *small* queue, which has a tenth of all cells; if the *ghost* queue has
//!    its hash, to the *main* queue.
//! 2. A use increments the entry's counter, up to 3.
//! 3. While the small queue has more than its tenth, its oldest entry is examined: used more than once, it
//!    moves to the main queue; else it is evicted, and the ghost queue keeps its hash.
//! 4. Otherwise the oldest entry of the main queue is examined: used, it is reinserted with a decremented
//!    counter; else it is evicted.
//!
//! The ghost queue keeps as many hashes as there can be entries. It is a table in which a newer hash
//! replaces an older one in the same slot: it may forget early, which costs a miss and nothing else.

use super::entry_list::{EntryList, Neighbours};
use super::eviction::Policy;

const COUNT_MAX: u8 = 3;

/// S3-FIFO.
pub(super) struct S3Fifo {
    neighbours: Neighbours,
    small: EntryList,
    main: EntryList,
    small_cells: u32,
    small_cells_max: u32,
    entries: Box<[S3Entry]>,
    ghost: Ghost,
    resident: u32,
}

#[derive(Clone, Copy)]
struct S3Entry {
    hash: u32,
    cells: u32,
    uses: u8,
    in_main: bool,
}

/// A hash and the number of its eviction.
type GhostSlot = (u32, u32);

/// Hashes of recently evicted entries.
struct Ghost {
    slots: Box<[GhostSlot]>,
    evictions: u32,
    remembered: u32,
}

impl S3Fifo {
    /// Bytes of memory for each entry, at most: the ghost queue has fewer than two slots for each.
    pub(super) const BYTES_PER_ENTRY_MAX: usize =
        Neighbours::BYTES_PER_ENTRY + size_of::<S3Entry>() + 2 * size_of::<GhostSlot>();

    /// For entries below `cells`, of `cells` cells in all.
    pub(super) fn new(cells: u32) -> S3Fifo {
        let vacant = S3Entry { hash: 0, cells: 0, uses: 0, in_main: false };
        S3Fifo {
            neighbours: Neighbours::new(cells),
            small: EntryList::EMPTY,
            main: EntryList::EMPTY,
            small_cells: 0,
            small_cells_max: cells / 10,
            entries: vec![vacant; cells as usize].into(),
            ghost: Ghost::new(cells),
            resident: 0,
        }
    }

    fn oldest(&self, in_main: bool, is_evictable: &dyn Fn(u32) -> bool) -> Option<u32> {
        let list = if in_main { &self.main } else { &self.small };
        self.neighbours.oldest_first(list).find(|entry| is_evictable(*entry))
    }

    fn push(&mut self, entry: u32, in_main: bool) {
        self.entries[entry as usize].in_main = in_main;
        if in_main {
            self.neighbours.push_front(&mut self.main, entry);
        } else {
            self.neighbours.push_front(&mut self.small, entry);
            self.small_cells += self.entries[entry as usize].cells;
        }
    }

    fn unlink(&mut self, entry: u32) {
        if self.entries[entry as usize].in_main {
            self.neighbours.remove(&mut self.main, entry);
        } else {
            self.neighbours.remove(&mut self.small, entry);
            self.small_cells -= self.entries[entry as usize].cells;
        }
    }
}

impl Policy for S3Fifo {
    fn insert(&mut self, entry: u32, hash: u64, cells: u32) {
        let hash = (hash >> 32) as u32;
        let in_main = self.ghost.remembers(hash);
        self.entries[entry as usize] = S3Entry { hash, cells, uses: 0, in_main };
        self.push(entry, in_main);
        self.resident += 1;
    }

    fn touch(&mut self, entry: u32) {
        let uses = &mut self.entries[entry as usize].uses;
        *uses = (*uses + 1).min(COUNT_MAX);
    }

    fn remove(&mut self, entry: u32) {
        if !self.entries[entry as usize].in_main {
            self.ghost.remember(self.entries[entry as usize].hash);
        }
        self.unlink(entry);
        self.resident -= 1;
    }

    fn victim(&mut self, is_evictable: &dyn Fn(u32) -> bool) -> Option<u32> {
        // Each entry moves at most once to the main queue and COUNT_MAX times around it.
        for _ in 0..=self.resident * (u32::from(COUNT_MAX) + 1) {
            let prefer_main = self.small_cells <= self.small_cells_max;
            let entry =
                self.oldest(prefer_main, is_evictable).or_else(|| self.oldest(!prefer_main, is_evictable))?;
            let S3Entry { uses, in_main, .. } = self.entries[entry as usize];
            if uses == 0 || (!in_main && uses == 1) {
                return Some(entry);
            }
            self.unlink(entry);
            self.entries[entry as usize].uses = if in_main { uses - 1 } else { 0 };
            self.push(entry, true);
        }
        None
    }

    fn bytes(&self) -> usize {
        self.neighbours.bytes() + size_of_val(&*self.entries) + size_of_val(&*self.ghost.slots)
    }
}

impl Ghost {
    fn new(remembered: u32) -> Ghost {
        let slots = (remembered as usize).next_power_of_two();
        // Starts at a number from which an empty slot counts as forgotten.
        Ghost { slots: vec![(0, 0); slots].into(), evictions: remembered + 1, remembered }
    }

    fn remember(&mut self, hash: u32) {
        // Wraps after 2^32 evictions, when some old hashes may count as recent again.
        self.evictions = self.evictions.wrapping_add(1);
        let slot = hash as usize & (self.slots.len() - 1);
        self.slots[slot] = (hash, self.evictions);
    }

    fn remembers(&self, hash: u32) -> bool {
        let (known, eviction) = self.slots[hash as usize & (self.slots.len() - 1)];
        known == hash && self.evictions.wrapping_sub(eviction) < self.remembered
    }
}
