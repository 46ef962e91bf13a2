//! S3-FIFO (Yang and others, "FIFO queues are all you need for cache eviction", SOSP 2023), with an admission
//! rule for queries that are asked again in a cycle.
//!
//! 1. Two queues hold the entries: *small* has a tenth of all cells, *main* has nine tenths. The *ghost*
//!    table has the hashes of evicted entries, with the time of their last use. Time is counted in requests.
//! 2. A use increments the entry's counter, up to 3.
//! 3. If an entry must be evicted and the small queue has more than its tenth, the oldest entry of this queue
//!    is examined. If its counter is above 1, it moves to the main queue; otherwise it is evicted.
//! 4. Otherwise the oldest entry of the main queue is examined. If its counter is above 0, it is reinserted
//!    with a decremented counter; otherwise it is evicted.
//! 5. Until the first eviction, new entries are added to the main queue while that has less than nine tenths.
//!    Later they are added to the small queue, with one exception. An entry whose hash is in the ghost table
//!    is added to the main queue if it was used more recently than the oldest entry of the main queue, or if
//!    this queue is less than half full.
//!
//! The comparison of rule 5 is that of LIRS (Jiang and Zhang, SIGMETRICS 2002). The original S3-FIFO adds
//! every entry of the ghost table to the main queue. If requests repeat in a cycle that is longer than the
//! cache, each of them then evicts an entry that is needed sooner. With rule 5 a part of the cycle stays in
//! the main queue.
//!
//! The ghost table is a hash table without collision lists: a new hash replaces the old one in its slot.

use super::entry_list::{EntryList, Neighbours};
use super::eviction::Policy;
use crate::hash::mix_bits;

/// Maximum of the counter of uses of an entry.
const USES_MAX: u8 = 3;

/// The small queue has the cells of the cache divided by this.
const SMALL_QUEUE_DIVISOR: u32 = 10;

/// The queues, the entries and the ghost table of S3-FIFO.
pub(super) struct S3Fifo {
    neighbours: Neighbours,
    small: EntryList,
    main: EntryList,
    small_cells: u32,
    main_cells: u32,
    small_cells_max: u32,
    main_cells_max: u32,
    /// The current time: the number of requests so far.
    now: u32,
    /// Whether an entry was ever evicted.
    has_evicted: bool,
    entries: Box<[S3Entry]>,
    ghost: GhostTable,
    resident: u32,
}

#[derive(Clone, Copy)]
struct S3Entry {
    hash: u32,
    cells: u32,
    /// Time of the last use.
    last: u32,
    uses: u8,
    in_main: bool,
}

/// The hash of an evicted entry, and the time of its last use.
type GhostSlot = (u32, u32);

/// The hashes of evicted entries: a table indexed by the lowest bits of the hash.
struct GhostTable {
    slots: Box<[GhostSlot]>,
}

impl S3Fifo {
    /// Maximum bytes of memory for each entry: the ghost table has fewer than two slots for each.
    pub(super) const BYTES_PER_ENTRY_MAX: usize =
        Neighbours::BYTES_PER_ENTRY + size_of::<S3Entry>() + 2 * size_of::<GhostSlot>();

    /// A policy for a cache of `cells` cells. Its entries are numbered below `cells`.
    pub(super) fn new(cells: u32) -> S3Fifo {
        let vacant = S3Entry { hash: 0, cells: 0, last: 0, uses: 0, in_main: false };
        S3Fifo {
            neighbours: Neighbours::new(cells),
            small: EntryList::EMPTY,
            main: EntryList::EMPTY,
            small_cells: 0,
            main_cells: 0,
            small_cells_max: cells / SMALL_QUEUE_DIVISOR,
            main_cells_max: cells - cells / SMALL_QUEUE_DIVISOR,
            now: 0,
            has_evicted: false,
            entries: vec![vacant; cells as usize].into(),
            ghost: GhostTable::new(cells),
            resident: 0,
        }
    }

    fn oldest_in(&self, in_main: bool, is_evictable: &dyn Fn(u32) -> bool) -> Option<u32> {
        let list = if in_main { &self.main } else { &self.small };
        self.neighbours.oldest_first(list).find(|entry| is_evictable(*entry))
    }

    fn add_to_queue(&mut self, entry: u32, in_main: bool) {
        self.entries[entry as usize].in_main = in_main;
        if in_main {
            self.neighbours.push_front(&mut self.main, entry);
            self.main_cells += self.entries[entry as usize].cells;
        } else {
            self.neighbours.push_front(&mut self.small, entry);
            self.small_cells += self.entries[entry as usize].cells;
        }
    }

    fn remove_from_queue(&mut self, entry: u32) {
        if self.entries[entry as usize].in_main {
            self.neighbours.remove(&mut self.main, entry);
            self.main_cells -= self.entries[entry as usize].cells;
        } else {
            self.neighbours.remove(&mut self.small, entry);
            self.small_cells -= self.entries[entry as usize].cells;
        }
    }
}

impl S3Fifo {
    /// Rule 5: whether a new entry with this hash is added to the main queue.
    fn enters_main(&mut self, hash: u32) -> bool {
        if !self.has_evicted && self.main_cells < self.main_cells_max {
            return true;
        }
        let Some(last) = self.ghost.last_use(hash) else { return false };
        if self.main_cells < self.main_cells_max / 2 {
            return true;
        }
        let Some(oldest) = self.oldest_in(true, &|_| true) else { return true };
        let S3Entry { last: last_of_oldest, uses, .. } = self.entries[oldest as usize];
        if uses > 0 {
            // Reinserted, so that the next new entry is compared with another entry.
            self.remove_from_queue(oldest);
            self.entries[oldest as usize].uses = uses - 1;
            self.add_to_queue(oldest, true);
        }
        self.now.wrapping_sub(last) < self.now.wrapping_sub(last_of_oldest)
    }
}

impl Policy for S3Fifo {
    fn insert(&mut self, entry: u32, key: u64, cells: u32) {
        let hash = (mix_bits(key) >> 32) as u32;
        self.now = self.now.wrapping_add(1);
        let in_main = self.enters_main(hash);
        self.entries[entry as usize] = S3Entry { hash, cells, last: self.now, uses: 0, in_main };
        self.add_to_queue(entry, in_main);
        self.resident += 1;
    }

    /// Rule 5 chooses the queue, as the size of the cache may be another.
    fn restore(&mut self, entry: u32, key: u64, cells: u32, class: usize) {
        self.insert(entry, key, cells);
        self.entries[entry as usize].uses = 2_u8.saturating_sub(class as u8);
    }

    fn touch(&mut self, entry: u32) {
        self.now = self.now.wrapping_add(1);
        let entry = &mut self.entries[entry as usize];
        entry.uses = (entry.uses + 1).min(USES_MAX);
        entry.last = self.now;
    }

    fn remove(&mut self, entry: u32) {
        let S3Entry { hash, last, .. } = self.entries[entry as usize];
        self.ghost.remember(hash, last);
        self.remove_from_queue(entry);
        self.resident -= 1;
    }

    fn victim(&mut self, is_evictable: &dyn Fn(u32) -> bool) -> Option<u32> {
        self.has_evicted = true;
        // Each entry moves at most once to the main queue and USES_MAX times around it.
        for _ in 0..=self.resident * (u32::from(USES_MAX) + 1) {
            let prefer_main = self.small_cells < self.small_cells_max;
            let entry = self
                .oldest_in(prefer_main, is_evictable)
                .or_else(|| self.oldest_in(!prefer_main, is_evictable))?;
            let S3Entry { uses, in_main, .. } = self.entries[entry as usize];
            if uses == 0 || (!in_main && uses == 1) {
                return Some(entry);
            }
            self.remove_from_queue(entry);
            self.entries[entry as usize].uses = if in_main { uses - 1 } else { 0 };
            self.add_to_queue(entry, true);
        }
        None
    }

    /// Entries of the main queue that were used more than once, once, and not at all since they were
    /// examined; the small queue.
    fn visit(&self, visit: &mut dyn FnMut(u32, usize)) {
        for entry in self.neighbours.oldest_first(&self.main) {
            visit(entry, 2 - usize::from(self.entries[entry as usize].uses.min(2)));
        }
        self.neighbours.oldest_first(&self.small).for_each(|entry| visit(entry, 3));
    }

    fn bytes(&self) -> usize {
        self.neighbours.bytes() + size_of_val(&*self.entries) + size_of_val(&*self.ghost.slots)
    }
}

impl GhostTable {
    fn new(entries: u32) -> GhostTable {
        GhostTable { slots: vec![(0, 0); (entries as usize).next_power_of_two()].into() }
    }

    fn remember(&mut self, hash: u32, last: u32) {
        let slot = hash as usize & (self.slots.len() - 1);
        self.slots[slot] = (hash, last);
    }

    /// The time of the last use of an evicted entry, modulo 2^32 requests; `None` if its hash is not in the
    /// table.
    fn last_use(&self, hash: u32) -> Option<u32> {
        let (known, last) = self.slots[hash as usize & (self.slots.len() - 1)];
        (known == hash).then_some(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Number of hits of these requests in a cache of `capacity` pages.
    fn count_hits(capacity: u32, requests: impl Iterator<Item = u64>) -> u32 {
        let mut policy = S3Fifo::new(capacity);
        let (mut frames, mut pages) = (HashMap::new(), vec![0; capacity as usize]);
        let mut hits = 0;
        for page in requests {
            if let Some(frame) = frames.get(&page) {
                policy.touch(*frame);
                hits += 1;
                continue;
            }
            let frame = if frames.len() < capacity as usize {
                frames.len() as u32
            } else {
                let victim = policy.victim(&|_| true).unwrap();
                policy.remove(victim);
                frames.remove(&pages[victim as usize]);
                victim
            };
            frames.insert(page, frame);
            pages[frame as usize] = page;
            policy.insert(frame, page, 1);
        }
        hits
    }

    #[test]
    fn a_cycle_longer_than_the_cache_keeps_the_main_queue() {
        // The optimum is 909 hits in 1,000 requests if the cycle is 1.1 times as long as the cache, and 500
        // if it is twice as long.
        for (pages, expected) in [(110, 730), (200, 400)] {
            let found = count_hits(100, (0..10 * pages).map(|at| at % pages)) * 100 / pages as u32;
            assert!(found >= expected, "{found} of 1,000");
        }
    }
}
