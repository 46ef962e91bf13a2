//! Doubly linked lists of chains in two arrays: each chain in at most one list.

use crate::segments::NONE;

/// The neighbours of each chain.
pub(super) struct Neighbours {
    /// Towards the front and towards the back.
    pairs: Box<[[u32; 2]]>,
}

/// A list: new chains come in at the front.
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    pub(super) front: u32,
    pub(super) back: u32,
}

impl List {
    pub(super) const EMPTY: List = List { front: NONE, back: NONE };
}

impl Neighbours {
    /// Bytes of memory for each chain.
    pub(super) const BYTES_PER_CHAIN: usize = size_of::<[u32; 2]>();

    pub(super) fn new(chains: u32) -> Neighbours {
        Neighbours { pairs: vec![[NONE; 2]; chains as usize].into() }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.pairs)
    }

    pub(super) fn push_front(&mut self, list: &mut List, chain: u32) {
        self.pairs[chain as usize] = [NONE, list.front];
        match list.front {
            NONE => list.back = chain,
            front => self.pairs[front as usize][0] = chain,
        }
        list.front = chain;
    }

    pub(super) fn remove(&mut self, list: &mut List, chain: u32) {
        let [before, behind] = self.pairs[chain as usize];
        match before {
            NONE => list.front = behind,
            before => self.pairs[before as usize][1] = behind,
        }
        match behind {
            NONE => list.back = before,
            behind => self.pairs[behind as usize][0] = before,
        }
    }

    /// The chain nearer to the front.
    pub(super) fn before(&self, chain: u32) -> u32 {
        self.pairs[chain as usize][0]
    }

    /// From the back to the front: those that came in first are first.
    pub(super) fn oldest_first(&self, list: &List) -> impl Iterator<Item = u32> {
        let known = |chain: u32| (chain != NONE).then_some(chain);
        std::iter::successors(known(list.back), move |chain| known(self.before(*chain)))
    }
}
