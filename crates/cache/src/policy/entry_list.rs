//! Doubly linked lists of entries in two arrays; each entry is in at most one list.

/// The number that stands for no entry, as a null pointer does.
pub(super) const NO_ENTRY: u32 = u32::MAX;

/// The links of all lists: the previous and the next entry of each entry.
pub(super) struct Neighbours {
    /// For each entry the next entry towards the front, and the next one towards the back.
    pairs: Box<[[u32; 2]]>,
}

/// The two ends of a list. New entries are added at the front, restored ones at the back.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryList {
    pub(super) front: u32,
    pub(super) back: u32,
}

impl EntryList {
    pub(super) const EMPTY: EntryList = EntryList { front: NO_ENTRY, back: NO_ENTRY };
}

impl Neighbours {
    /// Bytes of memory for each entry.
    pub(super) const BYTES_PER_ENTRY: usize = size_of::<[u32; 2]>();

    pub(super) fn new(entries: u32) -> Neighbours {
        Neighbours { pairs: vec![[NO_ENTRY; 2]; entries as usize].into() }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.pairs)
    }

    pub(super) fn push_front(&mut self, list: &mut EntryList, entry: u32) {
        self.pairs[entry as usize] = [NO_ENTRY, list.front];
        match list.front {
            NO_ENTRY => list.back = entry,
            front => self.pairs[front as usize][0] = entry,
        }
        list.front = entry;
    }

    pub(super) fn push_back(&mut self, list: &mut EntryList, entry: u32) {
        self.pairs[entry as usize] = [list.back, NO_ENTRY];
        match list.back {
            NO_ENTRY => list.front = entry,
            back => self.pairs[back as usize][1] = entry,
        }
        list.back = entry;
    }

    pub(super) fn remove(&mut self, list: &mut EntryList, entry: u32) {
        let [previous, next] = self.pairs[entry as usize];
        match previous {
            NO_ENTRY => list.front = next,
            previous => self.pairs[previous as usize][1] = next,
        }
        match next {
            NO_ENTRY => list.back = previous,
            next => self.pairs[next as usize][0] = previous,
        }
    }

    /// The next entry towards the front.
    pub(super) fn before(&self, entry: u32) -> u32 {
        self.pairs[entry as usize][0]
    }

    /// The entries of a list from the back to the front: in order of insertion.
    pub(super) fn oldest_first(&self, list: &EntryList) -> impl Iterator<Item = u32> {
        let some = |entry: u32| (entry != NO_ENTRY).then_some(entry);
        std::iter::successors(some(list.back), move |entry| some(self.before(*entry)))
    }
}
