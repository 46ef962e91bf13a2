//! The chain that was not used for the longest time goes first: the policy of the thesis (section 7.2.3).

use super::Policy;
use super::list::{List, Neighbours};

/// Least recently used.
pub struct Lru {
    neighbours: Neighbours,
    list: List,
}

impl Lru {
    /// Bytes of memory for each chain.
    pub(super) const BYTES_PER_CHAIN: usize = Neighbours::BYTES_PER_CHAIN;

    /// For chains below `chains`.
    pub fn new(chains: u32) -> Lru {
        Lru { neighbours: Neighbours::new(chains), list: List::EMPTY }
    }

    /// From the least recently used on.
    pub(super) fn oldest_first(&self) -> impl Iterator<Item = u32> {
        self.neighbours.oldest_first(&self.list)
    }
}

impl Policy for Lru {
    fn insert(&mut self, chain: u32, _hash: u64, _segments: u32) {
        self.neighbours.push_front(&mut self.list, chain);
    }

    fn touch(&mut self, chain: u32) {
        self.neighbours.remove(&mut self.list, chain);
        self.neighbours.push_front(&mut self.list, chain);
    }

    fn remove(&mut self, chain: u32) {
        self.neighbours.remove(&mut self.list, chain);
    }

    fn victim(&mut self, may_go: &dyn Fn(u32) -> bool) -> Option<u32> {
        self.oldest_first().find(|chain| may_go(*chain))
    }

    fn bytes(&self) -> usize {
        self.neighbours.bytes()
    }
}
