//! Spares what the waiting queries will need: Belady's rule within the lookahead window.
//!
//! 1. Before victims are asked for, the caller tells which chains the waiting jobs will use, the nearest first.
//! 2. A chain that none of them uses goes first, the least recently used of these.
//! 3. When all are used, the one whose next use is farthest goes.
//!
//! With a window that reaches to the end of the trace and chains of one size it is Belady's optimum ("A study of replacement
//! algorithms for a virtual-storage computer", IBM Systems Journal, 1966). With chains of several sizes no such rule is the
//! optimum; evicting what is used farthest is then a bound to strive for, and no more.

use super::{Lru, Policy};

/// Belady within the window, and LRU outside of it.
pub struct Window {
    lru: Lru,
    /// Chains in the window, each at its next use, the nearest first.
    expected: Vec<u32>,
    is_expected: Box<[bool]>,
    uses_max: usize,
}

impl Window {
    /// Bytes of memory for each chain, at most: with all of them in the window.
    pub(super) const BYTES_PER_CHAIN_MAX: usize = Lru::BYTES_PER_CHAIN + size_of::<bool>() + size_of::<u32>();

    /// How many uses ahead it looks unless told otherwise. Looking at them is one look-up a use for each list that is
    /// read, which is little beside the reading.
    pub const USES: usize = 512;

    /// For chains below `chains`, looking at most `uses_max` uses ahead.
    pub fn new(chains: u32, uses_max: usize) -> Window {
        Window {
            lru: Lru::new(chains),
            expected: Vec::with_capacity(uses_max.min(chains as usize)),
            is_expected: vec![false; chains as usize].into(),
            uses_max,
        }
    }
}

impl Policy for Window {
    fn insert(&mut self, chain: u32, hash: u64, segments: u32) {
        self.lru.insert(chain, hash, segments);
    }

    fn touch(&mut self, chain: u32) {
        self.lru.touch(chain);
    }

    fn remove(&mut self, chain: u32) {
        self.lru.remove(chain);
        if std::mem::take(&mut self.is_expected[chain as usize]) {
            self.expected.retain(|expected| *expected != chain);
        }
    }

    fn victim(&mut self, may_go: &dyn Fn(u32) -> bool) -> Option<u32> {
        let unused =
            self.lru.oldest_first().find(|chain| !self.is_expected[*chain as usize] && may_go(*chain));
        unused.or_else(|| self.expected.iter().rev().copied().find(|chain| may_go(*chain)))
    }

    fn window(&self) -> usize {
        self.uses_max
    }

    fn expect(&mut self, uses: &mut dyn Iterator<Item = u32>) {
        for chain in self.expected.drain(..) {
            self.is_expected[chain as usize] = false;
        }
        for chain in uses.take(self.uses_max) {
            if !std::mem::replace(&mut self.is_expected[chain as usize], true) {
                self.expected.push(chain);
            }
        }
    }

    fn bytes(&self) -> usize {
        self.lru.bytes() + size_of_val(&*self.is_expected) + self.expected.capacity() * size_of::<u32>()
    }
}
