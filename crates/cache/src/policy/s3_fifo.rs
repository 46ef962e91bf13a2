//! S3-FIFO (Yang and others, "FIFO queues are all you need for cache eviction", SOSP 2023).
//!
//! 1. A new chain comes into the *small* queue, a tenth of all segments; one that the *ghost* remembers into the *main*.
//! 2. A use adds one to the chain's count, up to 3.
//! 3. While the small queue has more than its tenth, its oldest chain is looked at: used more than once it moves to the
//!    main queue, else it is evicted and the ghost remembers its hash.
//! 4. Else the oldest chain of the main queue is looked at: used, it goes round once more with a count one less, else it
//!    is evicted.
//!
//! The ghost remembers as many chains as can be there at once. It is a table in which a newer hash takes the place of an older:
//! it may forget early, which costs a miss and nothing else.

use super::Policy;
use super::list::{List, Neighbours};

const COUNT_MAX: u8 = 3;

/// S3-FIFO.
pub struct S3Fifo {
    neighbours: Neighbours,
    small: List,
    main: List,
    small_segments: u32,
    small_segments_max: u32,
    chains: Box<[Entry]>,
    ghost: Ghost,
    resident: u32,
}

#[derive(Clone, Copy)]
struct Entry {
    hash: u32,
    segments: u32,
    uses: u8,
    in_main: bool,
}

/// A hash and the number of its eviction.
type Evicted = (u32, u32);

/// What was evicted of late.
struct Ghost {
    slots: Box<[Evicted]>,
    evictions: u32,
    remembered: u32,
}

impl S3Fifo {
    /// Bytes of memory for each chain, at most: the ghost has fewer than two slots for each.
    pub(super) const BYTES_PER_CHAIN_MAX: usize =
        Neighbours::BYTES_PER_CHAIN + size_of::<Entry>() + 2 * size_of::<Evicted>();

    /// For chains below `segments`, of so many segments in all.
    pub fn new(segments: u32) -> S3Fifo {
        let nothing = Entry { hash: 0, segments: 0, uses: 0, in_main: false };
        S3Fifo {
            neighbours: Neighbours::new(segments),
            small: List::EMPTY,
            main: List::EMPTY,
            small_segments: 0,
            small_segments_max: segments / 10,
            chains: vec![nothing; segments as usize].into(),
            ghost: Ghost::new(segments),
            resident: 0,
        }
    }

    fn oldest(&self, in_main: bool, may_go: &dyn Fn(u32) -> bool) -> Option<u32> {
        let list = if in_main { &self.main } else { &self.small };
        self.neighbours.oldest_first(list).find(|chain| may_go(*chain))
    }

    fn push(&mut self, chain: u32, in_main: bool) {
        self.chains[chain as usize].in_main = in_main;
        if in_main {
            self.neighbours.push_front(&mut self.main, chain);
        } else {
            self.neighbours.push_front(&mut self.small, chain);
            self.small_segments += self.chains[chain as usize].segments;
        }
    }

    fn unlink(&mut self, chain: u32) {
        if self.chains[chain as usize].in_main {
            self.neighbours.remove(&mut self.main, chain);
        } else {
            self.neighbours.remove(&mut self.small, chain);
            self.small_segments -= self.chains[chain as usize].segments;
        }
    }
}

impl Policy for S3Fifo {
    fn insert(&mut self, chain: u32, hash: u64, segments: u32) {
        let hash = (hash >> 32) as u32;
        let in_main = self.ghost.remembers(hash);
        self.chains[chain as usize] = Entry { hash, segments, uses: 0, in_main };
        self.push(chain, in_main);
        self.resident += 1;
    }

    fn touch(&mut self, chain: u32) {
        let uses = &mut self.chains[chain as usize].uses;
        *uses = (*uses + 1).min(COUNT_MAX);
    }

    fn remove(&mut self, chain: u32) {
        if !self.chains[chain as usize].in_main {
            self.ghost.remember(self.chains[chain as usize].hash);
        }
        self.unlink(chain);
        self.resident -= 1;
    }

    fn victim(&mut self, may_go: &dyn Fn(u32) -> bool) -> Option<u32> {
        // Each chain moves at most once to the main queue and COUNT_MAX times around it.
        for _ in 0..=self.resident * (u32::from(COUNT_MAX) + 1) {
            let prefer_main = self.small_segments <= self.small_segments_max;
            let chain = self.oldest(prefer_main, may_go).or_else(|| self.oldest(!prefer_main, may_go))?;
            let Entry { uses, in_main, .. } = self.chains[chain as usize];
            if uses == 0 || (!in_main && uses == 1) {
                return Some(chain);
            }
            self.unlink(chain);
            self.chains[chain as usize].uses = if in_main { uses - 1 } else { 0 };
            self.push(chain, true);
        }
        None
    }

    fn bytes(&self) -> usize {
        self.neighbours.bytes() + size_of_val(&*self.chains) + size_of_val(&*self.ghost.slots)
    }
}

impl Ghost {
    fn new(remembered: u32) -> Ghost {
        let slots = (remembered as usize).next_power_of_two();
        // Evictions are counted from behind the time that is remembered.
        Ghost { slots: vec![(0, 0); slots].into(), evictions: remembered + 1, remembered }
    }

    fn remember(&mut self, hash: u32) {
        // Wraps after 2^32 evictions, when some hashes may be remembered again.
        self.evictions = self.evictions.wrapping_add(1);
        let slot = hash as usize & (self.slots.len() - 1);
        self.slots[slot] = (hash, self.evictions);
    }

    fn remembers(&self, hash: u32) -> bool {
        let (known, eviction) = self.slots[hash as usize & (self.slots.len() - 1)];
        known == hash && self.evictions.wrapping_sub(eviction) < self.remembered
    }
}
