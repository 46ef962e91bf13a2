//! SIEVE: one queue in order of arrival, and a hand that moves from old to new. It spares, once, what was used since it
//! last came by; what it spares keeps its place (Zhang and others, "SIEVE is Simpler than LRU", NSDI 2024).

use super::Policy;
use super::list::{List, Neighbours};
use crate::segments::NONE;

/// SIEVE.
pub struct Sieve {
    neighbours: Neighbours,
    list: List,
    used: Box<[bool]>,
    /// Where the hand goes on; `NONE`: at the oldest.
    hand: u32,
    chains: u32,
}

impl Sieve {
    /// Bytes of memory for each chain.
    pub(super) const BYTES_PER_CHAIN: usize = Neighbours::BYTES_PER_CHAIN + size_of::<bool>();

    /// For chains below `chains`.
    pub fn new(chains: u32) -> Sieve {
        let used = vec![false; chains as usize].into();
        Sieve { neighbours: Neighbours::new(chains), list: List::EMPTY, used, hand: NONE, chains: 0 }
    }
}

impl Policy for Sieve {
    fn insert(&mut self, chain: u32, _hash: u64, _segments: u32) {
        self.neighbours.push_front(&mut self.list, chain);
        self.used[chain as usize] = false;
        self.chains += 1;
    }

    fn touch(&mut self, chain: u32) {
        self.used[chain as usize] = true;
    }

    fn remove(&mut self, chain: u32) {
        if self.hand == chain {
            self.hand = self.neighbours.before(chain);
        }
        self.neighbours.remove(&mut self.list, chain);
        self.chains -= 1;
    }

    fn victim(&mut self, may_go: &dyn Fn(u32) -> bool) -> Option<u32> {
        // Twice around: the first time may have spared all that may go. What may not go is passed over as it is.
        for _ in 0..=2 * self.chains {
            let chain = if self.hand == NONE { self.list.back } else { self.hand };
            if chain == NONE {
                return None;
            }
            if may_go(chain) && !std::mem::take(&mut self.used[chain as usize]) {
                self.hand = chain;
                return Some(chain);
            }
            self.hand = self.neighbours.before(chain);
        }
        None
    }

    fn bytes(&self) -> usize {
        self.neighbours.bytes() + size_of_val(&*self.used)
    }
}
