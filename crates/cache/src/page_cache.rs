//! A cache of pages of files, shared by threads that each submit their own reads.
//!
//! *Input*: pages of sealed files. *Output*: pinned frames of 4 KiB in a region that hold the pages,
//! checked.
//!
//! 1. The page table is divided into shards by a hash of the page. Each shard has a lock, a part of the
//!    frames, and an eviction policy.
//! 2. [`PageCache::lookup`] pins the frame of a page. If the page has none, a free frame is taken, or one
//!    that is not pinned is evicted; the caller fills it and calls [`PageCache::complete`].
//! 3. Pins are counted without the lock. Only a lookup pins an unpinned frame, and it holds the lock: so a
//!    frame that is found unpinned under the lock stays unpinned until the lock is released. A frame that
//!    is being filled is not evicted either.
//! 4. A page that cannot be read is removed from the table at once, so that the next lookup tries again.
//!    Its frame is reused when the last pin is gone.
//! 5. [`PageCache::resize`] parks frames of an elastic region: they hold no page, and their memory is given
//!    back to the system until the cache grows again.

use crate::policy::{Policy, PolicyKind};
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, fence};
use crate::{hash::mix, stats::CacheStats};
use hashbrown::HashTable;
use std::ops::Range;
use std::sync::{Arc, PoisonError};
use tierdex_io::{CellMut, CellRef, Cells, Error, ErrorKind, PAGE, Result};

/// Shards, at most; each has at least [`SHARD_FRAMES_MIN`] frames, unless there is only one.
const SHARDS_MAX: usize = 64;

/// In a shard of fewer frames than this, all frames would be pinned too often.
const SHARD_FRAMES_MIN: usize = 256;

/// A page of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageKey {
    /// [`SealedFile::number`](tierdex_io::SealedFile::number).
    file: u64,
    page: u64,
}

impl PageKey {
    /// A page of the file with this number.
    pub(crate) fn of(file: u64, page: u64) -> PageKey {
        PageKey { file, page }
    }

    fn hash(self) -> u64 {
        mix(mix(self.file) ^ self.page)
    }
}

/// States of a frame: not readable yet, checked, or failed.
const LOADING: u32 = 0;
const READY: u32 = 1;
const FAILED: u32 = 2;

struct FrameState {
    pins: AtomicU32,
    state: AtomicU32,
}

struct Shard {
    /// The frame of each page, by its number in the shard. The pages are in `keys`.
    table: HashTable<u32>,
    /// The page of each frame.
    keys: Box<[PageKey]>,
    free: Vec<u32>,
    /// Frames that are not used now, without memory.
    parked: Vec<u32>,
    /// Frames of pages that could not be read, and their errors; some may still be pinned.
    failed: Vec<(u32, Error)>,
    policy: Box<dyn Policy>,
}

/// A cache of pages; see the comment of the module.
pub struct PageCache {
    cells: Arc<Cells>,
    states: Box<[FrameState]>,
    shards: Box<[Mutex<Shard>]>,
    /// Threads that wait for pages which other threads read.
    waiting: AtomicUsize,
    sleepers: Mutex<()>,
    settled: Condvar,
    counters: Counters,
    metadata_bytes: u64,
    /// Frames that are not parked; locked while they change.
    in_use: Mutex<usize>,
}

#[derive(Default)]
pub(crate) struct Counters {
    hits: AtomicU64,
    misses: AtomicU64,
    /// Pages of gaps that were taken into the cache: nobody has requested them.
    unrequested: AtomicU64,
    /// Lookups for which all frames of the shard were pinned.
    pub(crate) no_frame: AtomicU64,
    evictions: AtomicU64,
    failures: AtomicU64,
    pub(crate) waits: AtomicU64,
    pub(crate) reads: AtomicU64,
    pub(crate) reads_fell_back: AtomicU64,
    pub(crate) bytes_read: AtomicU64,
}

/// A frame that is not evicted before this is dropped.
pub struct Pin<'f> {
    cache: &'f PageCache,
    frame: u32,
}

/// The result of a lookup.
pub(crate) enum PageLookup<'f> {
    /// The page is in the frame, or another thread reads it.
    Pinned(Pin<'f>),
    /// The caller must read the page into the cell.
    Fill(Pin<'f>, CellMut),
}

/// A frame that a page between two requested pages is read into.
pub(crate) struct GapFrame {
    pub(crate) frame: u32,
    pub(crate) cell: CellMut,
    /// The page is in the cache: after the read, [`PageCache::release`] frees this frame.
    pub(crate) is_cached: bool,
}

impl PageCache {
    /// A cache in `cells` of 4 KiB, of which it is the only user from now on. Its memory is allocated here,
    /// except for the errors of pages that could not be read.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] when cells are not pages, or are 2^32 or more.
    pub fn new(cells: Arc<Cells>, policy: PolicyKind) -> Result<Arc<PageCache>> {
        let denied = |why: String| Error::new(ErrorKind::Denied, "make", "a cache of pages", why);
        if cells.cell_bytes() as u64 != PAGE {
            return Err(denied(format!("its cells have {} bytes, and a page {PAGE}", cells.cell_bytes())));
        }
        let frames =
            u32::try_from(cells.len()).map_err(|_| denied("it has 2^32 pages or more".to_owned()))?;
        let shards = (cells.len() / SHARD_FRAMES_MIN).clamp(1, SHARDS_MAX);
        let shards: Box<[_]> =
            (0..shards).map(|shard| Shard::new(cells.len(), shard, shards, policy)).collect();
        let state = |_| FrameState { pins: AtomicU32::new(0), state: AtomicU32::new(LOADING) };
        let metadata_bytes = u64::from(frames) * PageCache::metadata_bytes_max(policy) as u64;
        let in_use = Mutex::new(cells.len());
        Ok(Arc::new(PageCache {
            cells,
            states: (0..frames).map(state).collect(),
            shards: shards.into_iter().map(Mutex::new).collect(),
            waiting: AtomicUsize::new(0),
            sleepers: Mutex::new(()),
            settled: Condvar::new(),
            counters: Counters::default(),
            metadata_bytes,
            in_use,
        }))
    }

    /// Bytes of memory outside the region for each frame, at most.
    pub fn metadata_bytes_max(policy: PolicyKind) -> usize {
        // A table is at least seven sixteenths full, and takes one byte more for each slot.
        let table = 16 * (size_of::<u32>() + 1) / 7;
        let cell = size_of::<u32>();
        let lists = 2 * size_of::<u32>();
        let shard = size_of::<PageKey>() + lists + table + policy.bytes_per_entry_max();
        size_of::<FrameState>() + cell + shard
    }

    /// Number of frames, parked ones included.
    pub fn frames(&self) -> usize {
        self.states.len()
    }

    /// The memory.
    pub fn cells(&self) -> &Arc<Cells> {
        &self.cells
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Counters since the start, and the current state.
    pub fn stats(&self) -> CacheStats {
        let (mut free, mut evictable, mut loading, mut parked) = (0, 0, 0, 0);
        for (number, shard) in self.shards.iter().enumerate() {
            let shard = lock(shard);
            free += (shard.free.len() + shard.failed.len()) as u64;
            parked += shard.parked.len() as u64;
            for frame in &shard.table {
                let state = &self.states[self.frame_number(number, *frame) as usize];
                let is_loading = state.state.load(Ordering::Relaxed) == LOADING;
                loading += u64::from(is_loading);
                evictable += u64::from(!is_loading && state.pins.load(Ordering::Relaxed) == 0);
            }
        }
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        CacheStats {
            hits: of(&counters.hits),
            misses: of(&counters.misses),
            no_frame: of(&counters.no_frame),
            // The counters are read one after the other, while threads change them.
            fetched: (of(&counters.misses) + of(&counters.unrequested))
                .saturating_sub(of(&counters.no_frame) + of(&counters.failures) + loading),
            evictions: of(&counters.evictions),
            failures: of(&counters.failures),
            waits: of(&counters.waits),
            reads: of(&counters.reads),
            reads_fell_back: of(&counters.reads_fell_back),
            bytes_read: of(&counters.bytes_read),
            frames: self.states.len() as u64 - parked,
            frames_free: free,
            frames_evictable: evictable,
            loading,
            metadata_bytes: self.metadata_bytes,
        }
    }

    /// Replaces the policy of each shard by what `wrap` makes of it, such as a policy that also counts. It
    /// gets an insertion for each page that is read into a frame, and a touch for each lookup of a page that
    /// has one.
    pub fn wrap_policies(&self, wrap: impl Fn(Box<dyn Policy>) -> Box<dyn Policy>) {
        for shard in &self.shards {
            let policy = &mut lock(shard).policy;
            let own = std::mem::replace(policy, PolicyKind::Lru.policy(0));
            *policy = wrap(own);
        }
    }

    /// Changes the number of frames that are used, up to [`PageCache::frames`], if the region of the cells is
    /// elastic. Shrinking takes free frames, then evicts by the policy, from all shards evenly, and gives
    /// their memory back: 1 to 2 µs a frame, and as long again when a page is read into it later. Pinned
    /// frames stay. Returns the number that is used now.
    pub fn resize(&self, frames: usize) -> usize {
        let mut in_use = lock(&self.in_use);
        if !self.cells.region().is_elastic() {
            return *in_use;
        }
        let frames = frames.clamp(1, self.states.len());
        let share = |number: usize| frames.saturating_sub(number).div_ceil(self.shards.len());
        for (number, shard) in self.shards.iter().enumerate() {
            let mut shard = lock(shard);
            let own = shard.frames_in_use();
            *in_use += shard.unpark(share(number));
            *in_use -= self.park(number, &mut shard, own.saturating_sub(share(number)));
        }
        // Where too many frames are pinned, other shards give more.
        for (number, shard) in self.shards.iter().enumerate() {
            *in_use -= self.park(number, &mut lock(shard), in_use.saturating_sub(frames));
        }
        *in_use
    }

    /// Parks up to `count` frames of a shard that are not pinned. Returns their number.
    fn park(&self, number: usize, shard: &mut Shard, count: usize) -> usize {
        for parked in 0..count {
            let Some(frame) = self.free_frame(number, shard) else { return parked };
            if !self.cells.discard(self.frame_number(number, frame) as usize) {
                shard.free.push(frame);
                return parked;
            }
            shard.parked.push(frame);
        }
        count
    }

    /// Pins the frame of a page; `None` when the page has none and all frames of its shard are pinned.
    pub(crate) fn lookup(&self, key: PageKey) -> Option<PageLookup<'_>> {
        let number = self.shard_of(key);
        let mut shard = lock(&self.shards[number]);
        if let Some(frame) = shard.find(key) {
            shard.policy.touch(frame);
            self.counters.hits.fetch_add(1, Ordering::Relaxed);
            return Some(PageLookup::Pinned(self.pin(self.frame_number(number, frame))));
        }
        self.counters.misses.fetch_add(1, Ordering::Relaxed);
        let filled = self.fill(number, &mut shard, Some(key));
        if filled.is_none() {
            self.counters.no_frame.fetch_add(1, Ordering::Relaxed);
        }
        filled.map(|(pin, cell)| PageLookup::Fill(pin, cell))
    }

    /// Takes a frame of the shard, for a page that has none if `key` is given; `None` if all are pinned.
    fn fill(&self, number: usize, shard: &mut Shard, key: Option<PageKey>) -> Option<(Pin<'_>, CellMut)> {
        let frame = self.free_frame(number, shard)?;
        let global = self.frame_number(number, frame);
        let Some(cell) = self.cells.write(global as usize) else {
            // Only a pinned frame has a cell in use.
            shard.free.push(frame);
            return None;
        };
        self.states[global as usize].state.store(LOADING, Ordering::Relaxed);
        if let Some(key) = key {
            shard.insert_page(key, frame);
        }
        Some((self.pin(global), cell))
    }

    /// Takes a frame for each page of a gap, which nobody has requested, and appends it to `gap`; the caller
    /// fills it. False if a page has no frame; those before it may have been appended.
    pub(crate) fn fill_gap(&self, file: u64, pages: Range<u64>, gap: &mut Vec<GapFrame>) -> bool {
        for page in pages {
            let key = PageKey::of(file, page);
            let number = self.shard_of(key);
            let mut shard = lock(&self.shards[number]);
            let mut is_cached = shard.find(key).is_some();
            let filled = self.fill(number, &mut shard, (!is_cached).then_some(key));
            let Some((pin, cell)) = filled else {
                drop(shard);
                self.release_last_cached(gap);
                return false;
            };
            if is_cached && shard.find(key).is_none() {
                // The frame that was taken is that of this page.
                shard.insert_page(key, self.own_number(pin.frame()).1);
                is_cached = false;
            }
            self.counters.unrequested.fetch_add(u64::from(!is_cached), Ordering::Relaxed);
            // A frame that is being filled is not evicted, so it need not be pinned.
            gap.push(GapFrame { frame: pin.frame(), cell, is_cached });
        }
        true
    }

    /// Removes the last pages of a gap that are cached: there is nothing to read behind them.
    fn release_last_cached(&self, gap: &mut Vec<GapFrame>) {
        while let Some(GapFrame { frame, cell, .. }) = gap.pop_if(|last| last.is_cached) {
            drop(cell);
            self.release(frame);
        }
    }

    /// Frees the frame of a page of a gap that is cached in another frame. The caller has released the cell.
    pub(crate) fn release(&self, frame: u32) {
        let (number, own) = self.own_number(frame);
        lock(&self.shards[number]).free.push(own);
    }

    /// The page of a frame was read, or could not be. The caller has released the cell.
    pub(crate) fn complete(&self, frame: u32, result: Result<()>) {
        let state = &self.states[frame as usize];
        match result {
            Ok(()) => state.state.store(READY, Ordering::SeqCst),
            Err(error) => {
                self.counters.failures.fetch_add(1, Ordering::Relaxed);
                let (number, own) = self.own_number(frame);
                let mut shard = lock(&self.shards[number]);
                state.state.store(FAILED, Ordering::SeqCst);
                shard.remove(own);
                shard.policy.remove(own);
                shard.failed.push((own, error));
            }
        }
        // Either this thread sees the count of `wait_for`, or `wait_for` sees the new state.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            drop(self.sleepers.lock().unwrap_or_else(PoisonError::into_inner));
            self.settled.notify_all();
        }
    }

    /// Sleeps until one of these frames is settled: its page was read, or could not be.
    pub(crate) fn wait_for(&self, mut frames: impl Iterator<Item = u32> + Clone) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let mut sleeper = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        let again = frames.clone();
        while !frames.any(|frame| self.is_settled(frame)) {
            sleeper = self.settled.wait(sleeper).unwrap_or_else(PoisonError::into_inner);
            frames = again.clone();
        }
        drop(sleeper);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether the page of a frame was read, or could not be.
    pub fn is_settled(&self, frame: u32) -> bool {
        self.states[frame as usize].state.load(Ordering::SeqCst) != LOADING
    }

    /// Frees the frames of these files, given by their numbers, that no thread uses.
    pub fn forget(&self, files: &[u64]) {
        for (at, shard) in self.shards.iter().enumerate() {
            let mut shard = lock(shard);
            let Shard { table, keys, free, policy, .. } = &mut *shard;
            table.retain(|frame| {
                let state = &self.states[self.frame_number(at, *frame) as usize];
                // Acquire: as in `free_frame`.
                let is_used =
                    state.pins.load(Ordering::Acquire) > 0 || state.state.load(Ordering::Acquire) != READY;
                let keep = is_used || !files.contains(&keys[*frame as usize].file);
                if !keep {
                    policy.remove(*frame);
                    free.push(*frame);
                }
                keep
            });
        }
    }

    /// A free frame of the shard, or one that is evicted.
    fn free_frame(&self, number: usize, shard: &mut Shard) -> Option<u32> {
        if let Some(frame) = shard.free.pop() {
            return Some(frame);
        }
        let pins = |frame: u32| {
            let state = &self.states[self.frame_number(number, frame) as usize];
            // Acquire: the last reader has finished with the page before the frame is reused.
            (state.pins.load(Ordering::Acquire), state.state.load(Ordering::Acquire))
        };
        if let Some(at) = shard.failed.iter().position(|(frame, _)| pins(*frame).0 == 0) {
            return Some(shard.failed.swap_remove(at).0);
        }
        let victim = shard.policy.victim(&|frame| pins(frame) == (0, READY))?;
        shard.policy.remove(victim);
        shard.remove(victim);
        self.counters.evictions.fetch_add(1, Ordering::Relaxed);
        Some(victim)
    }

    fn shard_of(&self, key: PageKey) -> usize {
        // The table of the shard uses the lowest bits, and the seven highest as tags.
        ((key.hash() >> 24) as u32 as usize * self.shards.len()) >> 32
    }

    /// The number of a shard's frame among all frames.
    fn frame_number(&self, shard: usize, frame: u32) -> u32 {
        frame * self.shards.len() as u32 + shard as u32
    }

    /// The shard of a frame, and the number of the frame in it.
    fn own_number(&self, frame: u32) -> (usize, u32) {
        (frame as usize % self.shards.len(), frame / self.shards.len() as u32)
    }

    fn pin(&self, frame: u32) -> Pin<'_> {
        self.states[frame as usize].pins.fetch_add(1, Ordering::Relaxed);
        Pin { cache: self, frame }
    }
}

impl Shard {
    /// The shard with this number of `shards`, for its part of all `frames`.
    fn new(frames: usize, number: usize, shards: usize, policy: PolicyKind) -> Shard {
        let own = (frames - number).div_ceil(shards) as u32;
        let none = PageKey { file: u64::MAX, page: 0 };
        Shard {
            table: HashTable::with_capacity(own as usize),
            keys: (0..own).map(|_| none).collect(),
            free: (0..own).rev().collect(),
            parked: Vec::new(),
            failed: Vec::new(),
            policy: policy.policy(own),
        }
    }

    /// Number of frames that are not parked.
    fn frames_in_use(&self) -> usize {
        self.keys.len() - self.parked.len()
    }

    /// Frees parked frames, so that `frames` are used if there are as many. Returns how many were parked.
    fn unpark(&mut self, frames: usize) -> usize {
        let count = frames.saturating_sub(self.frames_in_use()).min(self.parked.len());
        self.free.extend(self.parked.drain(self.parked.len() - count..));
        count
    }

    /// The frame of a page, by its number in the shard.
    fn find(&self, key: PageKey) -> Option<u32> {
        self.table.find(key.hash(), |frame| self.keys[*frame as usize] == key).copied()
    }

    /// Gives a page a frame, in the table and in the policy.
    fn insert_page(&mut self, key: PageKey, frame: u32) {
        self.keys[frame as usize] = key;
        self.table.insert_unique(key.hash(), frame, |frame| self.keys[*frame as usize].hash());
        self.policy.insert(frame, key.hash(), 1);
    }

    /// Removes the page of a frame.
    fn remove(&mut self, frame: u32) {
        let hash = self.keys[frame as usize].hash();
        if let Ok(entry) = self.table.find_entry(hash, |other| *other == frame) {
            entry.remove();
        }
    }
}

impl Pin<'_> {
    /// The number of the frame.
    pub fn frame(&self) -> u32 {
        self.frame
    }

    /// Whether [`Pin::page`] can be called.
    pub fn is_settled(&self) -> bool {
        self.cache.is_settled(self.frame)
    }

    /// The page.
    ///
    /// # Errors
    /// The read error.
    ///
    /// # Panics
    /// When it is not settled.
    pub fn page(&self) -> Result<CellRef<'_>> {
        match self.cache.states[self.frame as usize].state.load(Ordering::Acquire) {
            READY => Ok(self.cache.cells.read(self.frame as usize).expect("a pinned frame is not written")),
            FAILED => Err(self.error()),
            _ => panic!("the page is on its way"),
        }
    }

    fn error(&self) -> Error {
        let (number, own) = self.cache.own_number(self.frame);
        let shard = lock(&self.cache.shards[number]);
        let found = shard.failed.iter().find(|(frame, _)| *frame == own);
        found.map(|(_, error)| error.clone()).expect("a frame that has failed is kept until it is not pinned")
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.cache.states[self.frame as usize].pins.fetch_sub(1, Ordering::Release);
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
