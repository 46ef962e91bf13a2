//! Which list stands in which chain.
//!
//! A chain is named by its first segment, so the record of a chain stands at that number: there are as many records as
//! segments, and never too few. An open-addressed index finds the record of a key. Nothing is allocated after it was made.
//!
//! The life of a chain: *loading* while a worker fills it; then *ready*, or *failed*. A failed chain is in no index any
//! more, so that who asks next tries anew; it is kept, one segment long, until all that wait for it have seen why.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tierdex_io::Error;

use crate::segments::{Chain, NONE};

/// Which list: two numbers that are the caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u64, pub u64);

impl Key {
    /// Scattered bits of it.
    pub(crate) fn hash(self) -> u64 {
        mix(self.0 ^ mix(self.1))
    }
}

/// The finalizer of SplitMix64.
pub(crate) fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// What a chain is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChainState {
    /// No chain begins in this segment.
    Vacant,
    /// A worker fills it, or will.
    Loading,
    /// Its bytes are those of the file.
    Ready,
    /// Its bytes could not be had.
    Failed,
}

/// The record of a chain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    pub(crate) key: Key,
    /// Of its parts: see [`crate::Job`].
    pub(crate) print: u32,
    tail: u32,
    pub(crate) count: u32,
    /// How many hold it. It is not evicted before all have gone.
    pub(crate) pins: u32,
}

/// What each chain is good for. It changes under the lock; who has pinned a chain sees it without: that it is ready only
/// after all that was written before.
pub(crate) struct States(Box<[AtomicU8]>);

/// The records of all chains, and their index.
pub(crate) struct Chains {
    records: Box<[Record]>,
    states: Arc<States>,
    /// First segments, by hash of key; linear probing.
    index: Box<[u32]>,
    /// Why chains failed.
    errors: Vec<(u32, Error)>,
}

impl Chains {
    /// Bytes of memory for each segment, at most: the index has fewer than four slots for each.
    pub(crate) const BYTES_PER_SEGMENT_MAX: usize =
        size_of::<Record>() + size_of::<AtomicU8>() + 4 * size_of::<u32>();

    /// Room for chains of `segments` segments in all.
    pub(crate) fn new(segments: u32) -> Chains {
        let vacant = Record { key: Key(0, 0), print: 0, tail: NONE, count: 0, pins: 0 };
        let slots = (segments as usize * 2).next_power_of_two();
        Chains {
            records: vec![vacant; segments as usize].into(),
            states: Arc::new(States((0..segments).map(|_| AtomicU8::new(0)).collect())),
            index: vec![NONE; slots].into(),
            errors: Vec::new(),
        }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.records) + size_of_val(&*self.states.0) + size_of_val(&*self.index)
    }

    /// What chains are good for, to be seen by others.
    pub(crate) fn states(&self) -> &Arc<States> {
        &self.states
    }

    /// What a chain is good for.
    pub(crate) fn state(&self, chain: u32) -> ChainState {
        self.states.get(chain)
    }

    /// Marks a chain as ready.
    pub(crate) fn finish(&mut self, chain: u32) {
        self.states.set(chain, ChainState::Ready);
    }

    /// The chain of a key, loading or ready.
    pub(crate) fn find(&self, key: Key) -> Option<u32> {
        let chain = self.index[self.slot(key)];
        (chain != NONE).then_some(chain)
    }

    /// The record of a chain that there is.
    pub(crate) fn record(&self, chain: u32) -> &Record {
        &self.records[chain as usize]
    }

    /// The record of a chain that there is.
    pub(crate) fn record_mut(&mut self, chain: u32) -> &mut Record {
        &mut self.records[chain as usize]
    }

    /// The segments of a chain.
    pub(crate) fn segments(&self, chain: u32) -> Chain {
        let Record { tail, count, .. } = self.records[chain as usize];
        Chain { head: chain, tail, count }
    }

    /// Notes a chain for a key that has none: loading, and not pinned.
    pub(crate) fn insert(&mut self, (key, print): (Key, u32), segments: Chain) -> u32 {
        let Chain { head, tail, count } = segments;
        let slot = self.slot(key);
        debug_assert!(self.index[slot] == NONE && self.state(head) == ChainState::Vacant);
        self.index[slot] = head;
        self.records[head as usize] = Record { key, print, tail, count, pins: 0 };
        self.states.set(head, ChainState::Loading);
        head
    }

    /// Takes a chain that is ready out of the index, and gives its segments.
    pub(crate) fn remove(&mut self, chain: u32) -> Chain {
        debug_assert!(self.state(chain) == ChainState::Ready && self.record(chain).pins == 0);
        self.unindex(self.record(chain).key);
        self.vacate(chain)
    }

    /// Marks a chain as failed: nobody finds it any more.
    pub(crate) fn fail(&mut self, chain: u32, error: Error) {
        self.unindex(self.record(chain).key);
        self.states.set(chain, ChainState::Failed);
        self.errors.push((chain, error));
    }

    /// Notes that a failed chain has only its head left.
    pub(crate) fn shrink(&mut self, segments: Chain) {
        let record = &mut self.records[segments.head as usize];
        (record.tail, record.count) = (segments.tail, segments.count);
    }

    /// Why a chain failed.
    pub(crate) fn error(&self, chain: u32) -> Option<&Error> {
        self.errors.iter().find(|(failed, _)| *failed == chain).map(|(_, error)| error)
    }

    /// Forgets a failed chain, and gives its segments.
    pub(crate) fn forget(&mut self, chain: u32) -> Chain {
        self.errors.retain(|(failed, _)| *failed != chain);
        self.vacate(chain)
    }

    fn vacate(&mut self, chain: u32) -> Chain {
        let segments = self.segments(chain);
        self.states.set(chain, ChainState::Vacant);
        segments
    }

    /// Where a key stands in the index, or would.
    fn slot(&self, key: Key) -> usize {
        let mut slot = self.home(key);
        while self.index[slot] != NONE && self.records[self.index[slot] as usize].key != key {
            slot = self.behind(slot);
        }
        slot
    }

    fn home(&self, key: Key) -> usize {
        key.hash() as usize & (self.index.len() - 1)
    }

    fn behind(&self, slot: usize) -> usize {
        (slot + 1) & (self.index.len() - 1)
    }

    /// Takes a key out and moves up those behind it that would not be found any more.
    fn unindex(&mut self, key: Key) {
        let mut hole = self.slot(key);
        let mut slot = self.behind(hole);
        while self.index[slot] != NONE {
            let home = self.home(self.records[self.index[slot] as usize].key);
            let mask = self.index.len() - 1;
            // Its home is not between the hole and here: it may stand in the hole.
            if (slot.wrapping_sub(home) & mask) >= (slot.wrapping_sub(hole) & mask) {
                self.index[hole] = self.index[slot];
                hole = slot;
            }
            slot = self.behind(slot);
        }
        self.index[hole] = NONE;
    }
}

impl States {
    /// Of a chain that is pinned, or under the lock.
    #[inline]
    pub(crate) fn get(&self, chain: u32) -> ChainState {
        const ALL: [ChainState; 4] =
            [ChainState::Vacant, ChainState::Loading, ChainState::Ready, ChainState::Failed];
        ALL[usize::from(self.0[chain as usize].load(Ordering::Acquire))]
    }

    fn set(&self, chain: u32, state: ChainState) {
        self.0[chain as usize].store(state as u8, Ordering::Release);
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
            const SEGMENTS: u32 = 8;
            let mut chains = Chains::new(SEGMENTS);
            let mut model: HashMap<Key, u32> = HashMap::new();
            let mut free: Vec<u32> = (0..SEGMENTS).collect();
            for (number, fails) in steps {
                let key = Key(number, number % 3);
                if let Some(chain) = model.remove(&key) {
                    if fails {
                        chains.fail(chain, Error::corrupt("a", 1, "x"));
                        prop_assert!(chains.find(key).is_none() && chains.error(chain).is_some());
                        chains.forget(chain);
                        prop_assert!(chains.error(chain).is_none());
                    } else {
                        chains.finish(chain);
                        prop_assert_eq!(chains.remove(chain).head, chain);
                    }
                    free.push(chain);
                } else if let Some(head) = free.pop() {
                    chains.insert((key, 0), Chain { head, tail: head, count: 1 });
                    model.insert(key, head);
                }
                for number in 0..24 {
                    let key = Key(number, number % 3);
                    prop_assert_eq!(chains.find(key), model.get(&key).copied());
                }
            }
        }
    }
}
