//! Belady's rule within the lookahead window: spares the entries that waiting queries will use.
//!
//! 1. Before asking for victims, the caller tells which entries the waiting requests will use, the next use
//!    first.
//! 2. An entry that none of them uses is evicted first, the least recently used of these.
//! 3. When all are used, the entry whose next use is farthest is evicted.
//!
//! With a window that reaches to the end of the trace and entries of one size, this is Belady's optimum ("A
//! study of replacement algorithms for a virtual-storage computer", IBM Systems Journal, 1966). With
//! entries of several sizes no such rule is optimal, and evicting the farthest next use is a heuristic.

use tierdex_cache::{Lru, Policy};

/// Belady's rule within the window, and LRU outside of it.
pub struct BeladyWindow {
    lru: Lru,
    /// Entries in the window in order of their next use.
    upcoming: Vec<u32>,
    is_upcoming: Box<[bool]>,
    uses_max: usize,
}

impl BeladyWindow {
    /// Bytes of memory for each entry, at most: with all of them in the window.
    pub(super) const BYTES_PER_ENTRY_MAX: usize = Lru::BYTES_PER_ENTRY + size_of::<bool>() + size_of::<u32>();

    /// How many uses ahead it looks by default. That costs one table lookup per use for each list that is
    /// read, which is small compared with the read.
    pub const USES_AHEAD: usize = 512;

    /// For entries below `entries`, looking at most `uses_max` uses ahead.
    pub fn new(entries: u32, uses_max: usize) -> BeladyWindow {
        BeladyWindow {
            lru: Lru::new(entries),
            upcoming: Vec::with_capacity(uses_max.min(entries as usize)),
            is_upcoming: vec![false; entries as usize].into(),
            uses_max,
        }
    }

    /// How many uses ahead it looks.
    pub(super) fn uses_max(&self) -> usize {
        self.uses_max
    }

    /// Sets which entries will be used next, the next use first; an entry may occur more than once. Called
    /// before [`Policy::victim`]; replaces the last call.
    pub fn set_upcoming(&mut self, uses: impl Iterator<Item = u32>) {
        for entry in self.upcoming.drain(..) {
            self.is_upcoming[entry as usize] = false;
        }
        for entry in uses.take(self.uses_max) {
            if !std::mem::replace(&mut self.is_upcoming[entry as usize], true) {
                self.upcoming.push(entry);
            }
        }
    }
}

impl Policy for BeladyWindow {
    fn insert(&mut self, entry: u32, hash: u64, cells: u32) {
        self.lru.insert(entry, hash, cells);
    }

    fn restore(&mut self, entry: u32, hash: u64, cells: u32, class: usize) {
        self.lru.restore(entry, hash, cells, class);
    }

    fn touch(&mut self, entry: u32) {
        self.lru.touch(entry);
    }

    fn remove(&mut self, entry: u32) {
        self.lru.remove(entry);
        if std::mem::take(&mut self.is_upcoming[entry as usize]) {
            self.upcoming.retain(|upcoming| *upcoming != entry);
        }
    }

    fn victim(&mut self, is_evictable: &dyn Fn(u32) -> bool) -> Option<u32> {
        let unused =
            self.lru.oldest_first().find(|entry| !self.is_upcoming[*entry as usize] && is_evictable(*entry));
        unused.or_else(|| self.upcoming.iter().rev().copied().find(|entry| is_evictable(*entry)))
    }

    fn visit(&self, visit: &mut dyn FnMut(u32, usize)) {
        self.lru.visit(visit);
    }

    fn bytes(&self) -> usize {
        self.lru.bytes() + size_of_val(&*self.is_upcoming) + self.upcoming.capacity() * size_of::<u32>()
    }
}
