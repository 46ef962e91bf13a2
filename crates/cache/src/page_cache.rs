//! A cache of pages of files, shared by threads that each submit their own reads.
//!
//! *Input*: pages of sealed files. *Output*: pinned frames of 4 KiB in a region that hold the pages,
//! checked.
//!
//! 1. The page table is divided into shards by a hash of the group of the page: [`GROUP_PAGES`] adjacent
//!    pages. Each shard has a lock, a part of the frames, and an eviction policy.
//! 2. [`PageCache::lookup`] pins the frames of pages of a group. If a page has none, a free frame is taken,
//!    or one that is not pinned is evicted, with the pages of its group that are not pinned either; the
//!    caller reads the page and calls [`PageCache::complete_pages`].
//! 3. Pins are counted without the lock. Only a lookup pins an unpinned frame, and it holds the lock: so a
//!    frame that is found unpinned under the lock stays unpinned until the lock is released. A frame that
//!    is being filled is not evicted either.
//! 4. A page that cannot be read is removed from the table at once, so that the next lookup tries again.
//!    Its frame is reused when the last pin is gone.
//! 5. [`PageCache::resize`] can park frames if their region is elastic: a parked frame is out of use, and its
//!    memory is given back to the system until the cache grows again.

use crate::page_table::{GROUP_PAGES, NO_PAGE, PageKey, PageTable};
use crate::policy::{ObservedPolicy, Policy, PolicyKind, RequestObserver};
use crate::stats::{CacheStats, Counters};
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, fence};
use std::ops::Range;
use std::sync::{Arc, PoisonError};
use tierdex_io::{CellRef, Cells, Error, ErrorKind, PAGE, Result};

/// Maximum number of shards. Small caches have fewer: one for each [`SHARD_FRAMES_MIN`] frames, at least one.
const SHARDS_MAX: usize = 64;

/// Minimum number of frames of a shard. In smaller shards all frames would be pinned too often.
const SHARD_FRAMES_MIN: usize = 256;

/// States of a frame: its page is being read, can be used, or could not be read.
const STATE_LOADING: u32 = 0;
const STATE_READY: u32 = 1;
const STATE_FAILED: u32 = 2;

struct FrameState {
    pins: AtomicU32,
    state: AtomicU32,
}

struct Shard {
    /// The frames that have a page. Here and below frames are numbered within the shard.
    table: PageTable,
    /// The page of each frame, or [`NO_PAGE`].
    keys: Box<[PageKey]>,
    free: Vec<u32>,
    /// Frames that [`PageCache::resize`] has taken out of use. They have no memory.
    parked: Vec<u32>,
    /// Frames of pages that could not be read, with the error. A frame is reused when it is no longer pinned.
    failed: Vec<(u32, Error)>,
    policy: Box<dyn Policy>,
}

/// A cache of pages; see the comment of the module.
pub struct PageCache {
    cells: Arc<Cells>,
    states: Box<[FrameState]>,
    shards: Box<[Mutex<Shard>]>,
    /// Number of threads in [`PageCache::wait_for_any`].
    waiting: AtomicUsize,
    /// The lock of the condition variable `settled`.
    sleepers: Mutex<()>,
    /// Notified when a page was read or could not be, if a thread waits.
    settled: Condvar,
    counters: Counters,
    metadata_bytes: u64,
    /// Number of frames that are not parked. [`PageCache::resize`] holds this lock.
    in_use: Mutex<usize>,
}

/// A pinned frame: it keeps its page until the pin is dropped.
pub struct Pin<'f> {
    cache: &'f PageCache,
    frame: u32,
}

/// The result of a lookup.
pub(crate) enum PageLookup<'f> {
    /// The page is in the frame, or is being read into it.
    Pinned(Pin<'f>),
    /// The caller must read the page into the cell of the frame.
    Fill(Pin<'f>),
}

/// A frame for a page that was not requested, but is read because it is between two requested pages.
pub(crate) struct GapFrame {
    pub(crate) frame: u32,
    /// The page has another frame already, so after the read this one is freed by
    /// [`PageCache::free_gap_frame`].
    pub(crate) is_cached: bool,
}

impl PageCache {
    /// A cache with one frame for each of `cells`, which nothing else may use from now on. Later calls
    /// allocate nothing except for the errors of pages that could not be read.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] when the cells do not have 4 KiB, or there are 2^32 or more.
    pub fn new(cells: Arc<Cells>, policy: PolicyKind) -> Result<Arc<PageCache>> {
        let denied = |why: String| Error::new(ErrorKind::Denied, "make", "a cache of pages", why);
        if cells.cell_bytes() as u64 != PAGE {
            return Err(denied(format!("its cells have {} bytes, and a page {PAGE}", cells.cell_bytes())));
        }
        let frames =
            u32::try_from(cells.len()).map_err(|_| denied("it has 2^32 pages or more".to_owned()))?;
        let shards = shards_of_frames(cells.len());
        let shards: Box<[_]> =
            (0..shards).map(|shard| Shard::new(cells.len(), shard, shards, policy)).collect();
        let state = |_| FrameState { pins: AtomicU32::new(0), state: AtomicU32::new(STATE_LOADING) };
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

    /// Maximum bytes of memory that a frame needs outside its cell: page table, eviction policy, state.
    pub fn metadata_bytes_max(policy: PolicyKind) -> usize {
        let cell = size_of::<u32>();
        let lists = 2 * size_of::<u32>();
        let shard =
            size_of::<PageKey>() + lists + PageTable::BYTES_PER_FRAME_MAX + policy.bytes_per_entry_max();
        size_of::<FrameState>() + cell + shard
    }

    /// Number of frames, including those that [`PageCache::resize`] has taken out of use.
    pub fn frames(&self) -> usize {
        self.states.len()
    }

    /// The memory cells of the frames.
    pub fn cells(&self) -> &Arc<Cells> {
        &self.cells
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Counters since the start, and the current use of the frames. Takes time in proportion to their number.
    pub fn stats(&self) -> CacheStats {
        let (counts, of_frames) = (self.counts(), self.frame_stats());
        CacheStats {
            frames_free: of_frames.frames_free,
            frames_evictable: of_frames.frames_evictable,
            loading: of_frames.loading,
            fetched: counts.fetched.saturating_sub(of_frames.loading),
            ..counts
        }
    }

    /// As [`PageCache::stats`], without the numbers of free, evictable and loading frames: pages that are
    /// loading count as fetched. Takes constant time.
    pub fn counts(&self) -> CacheStats {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        CacheStats {
            hits: of(&counters.hits),
            misses: of(&counters.misses),
            no_frame: of(&counters.no_frame),
            // Saturating, because threads change the counters while they are read one by one.
            fetched: (of(&counters.misses) + of(&counters.unrequested))
                .saturating_sub(of(&counters.no_frame) + of(&counters.failures)),
            evictions: of(&counters.evictions),
            failures: of(&counters.failures),
            waits: of(&counters.waits),
            reads: of(&counters.reads),
            reads_fell_back: of(&counters.reads_fell_back),
            bytes_read: of(&counters.bytes_read),
            frames: *lock(&self.in_use) as u64,
            metadata_bytes: self.metadata_bytes,
            ..CacheStats::default()
        }
    }

    /// The numbers of frames in each state; the other counts are zero.
    fn frame_stats(&self) -> CacheStats {
        let mut stats = CacheStats::default();
        for (number, shard) in self.shards.iter().enumerate() {
            let shard = lock(shard);
            stats.frames_free += (shard.free.len() + shard.failed.len()) as u64;
            let used = (0..).zip(&shard.keys).filter(|(_, key)| **key != NO_PAGE);
            for (frame, _) in used {
                let state = &self.states[self.frame_number(number, frame) as usize];
                let is_loading = state.state.load(Ordering::Relaxed) == STATE_LOADING;
                stats.loading += u64::from(is_loading);
                let is_evictable = !is_loading && state.pins.load(Ordering::Relaxed) == 0;
                stats.frames_evictable += u64::from(is_evictable);
            }
        }
        stats
    }

    /// From now on calls `observe` with each page that gets a frame or is found, in their order, as numbers:
    /// those of adjacent pages are adjacent. The cache must be empty.
    pub fn observe_requests(&self, observe: impl Fn(u64) + Send + Sync + 'static) {
        let observe: Arc<RequestObserver> = Arc::new(observe);
        for shard in &self.shards {
            let policy = &mut lock(shard).policy;
            let own = std::mem::replace(policy, PolicyKind::Lru.policy(0));
            *policy = Box::new(ObservedPolicy::new(own, observe.clone()));
        }
    }

    /// Changes the number of frames in use, up to [`PageCache::frames`], if the region of the cells is
    /// elastic. Shrinking takes free frames and then evicts pages, evenly from all shards, and gives the
    /// memory back to the system: 1 to 2 µs a frame, and as long again when the frame is used later. Pinned
    /// frames stay in use. Returns the number of frames now in use.
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
            *in_use += shard.unpark_frames(share(number));
            *in_use -= self.park_frames(number, &mut shard, own.saturating_sub(share(number)));
        }
        // If a shard has too many pinned frames, others shrink further.
        for (number, shard) in self.shards.iter().enumerate() {
            *in_use -= self.park_frames(number, &mut lock(shard), in_use.saturating_sub(frames));
        }
        *in_use
    }

    /// Takes up to `count` frames of the shard that are not pinned out of use. Returns how many.
    fn park_frames(&self, number: usize, shard: &mut Shard, count: usize) -> usize {
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

    /// Pins the frames of `pages`, which are in one group of [`GROUP_PAGES`], and calls `found` with each. It
    /// stops at a page that has no frame if all frames of its shard are pinned, and returns false.
    pub(crate) fn lookup<'f>(
        &'f self,
        file: u64,
        pages: Range<u64>,
        mut found: impl FnMut(u64, PageLookup<'f>),
    ) -> bool {
        let number = self.shard_of(PageKey::new(file, pages.start));
        let mut shard = lock(&self.shards[number]);
        let (mut hits, mut misses, mut all) = (0, 0, true);
        for page in pages {
            let key = PageKey::new(file, page);
            if let Some(frame) = shard.find_frame(key) {
                hits += 1;
                shard.policy.touch(frame);
                found(page, PageLookup::Pinned(self.pin_frame(self.frame_number(number, frame))));
                continue;
            }
            misses += 1;
            match self.take_frame(number, &mut shard, Some(key)) {
                Some(pin) => found(page, PageLookup::Fill(pin)),
                None => {
                    self.counters.no_frame.fetch_add(1, Ordering::Relaxed);
                    all = false;
                    break;
                }
            }
        }
        drop(shard);
        self.counters.hits.fetch_add(hits, Ordering::Relaxed);
        if misses > 0 {
            self.counters.misses.fetch_add(misses, Ordering::Relaxed);
        }
        all
    }

    /// Takes a free frame of the shard, or evicts one, and pins it. If `key` is given, the frame becomes that
    /// of this page. `None` if all frames are pinned.
    fn take_frame(&self, number: usize, shard: &mut Shard, key: Option<PageKey>) -> Option<Pin<'_>> {
        let frame = self.free_frame(number, shard)?;
        let global = self.frame_number(number, frame);
        self.states[global as usize].state.store(STATE_LOADING, Ordering::Relaxed);
        if let Some(key) = key {
            shard.insert_page(key, frame);
        }
        Some(self.pin_frame(global))
    }

    /// Takes a frame for each of `pages`, which are between two requested pages, and appends it to `gap`. The
    /// caller reads the pages. False if there was no frame for a page; `gap` then has the pages before it.
    pub(crate) fn take_gap_frames(&self, file: u64, pages: Range<u64>, gap: &mut Vec<GapFrame>) -> bool {
        for page in pages {
            let key = PageKey::new(file, page);
            let number = self.shard_of(key);
            let mut shard = lock(&self.shards[number]);
            let mut is_cached = shard.find_frame(key).is_some();
            let Some(pin) = self.take_frame(number, &mut shard, (!is_cached).then_some(key)) else {
                drop(shard);
                self.free_trailing_cached(gap);
                return false;
            };
            if is_cached && shard.find_frame(key).is_none() {
                // The page was cached in the frame that was just evicted for it.
                shard.insert_page(key, self.shard_and_frame(pin.frame()).1);
                is_cached = false;
            }
            self.counters.unrequested.fetch_add(u64::from(!is_cached), Ordering::Relaxed);
            // A frame that is being filled is not evicted, so it need not be pinned.
            gap.push(GapFrame { frame: pin.frame(), is_cached });
        }
        true
    }

    /// Removes pages from the end of a gap as long as they are cached: as the read ends with the gap, they
    /// need not be read.
    fn free_trailing_cached(&self, gap: &mut Vec<GapFrame>) {
        while let Some(GapFrame { frame, .. }) = gap.pop_if(|last| last.is_cached) {
            self.free_gap_frame(frame);
        }
    }

    /// Frees a frame into which a page was read that has another frame. The caller has dropped the cell.
    pub(crate) fn free_gap_frame(&self, frame: u32) {
        let (number, own) = self.shard_and_frame(frame);
        lock(&self.shards[number]).free.push(own);
    }

    /// Takes free frames for those of `pages` that are not cached, and calls `taken` with each page and its
    /// frame; evicts nothing. The pages are in one group and of this class ([`Policy::visit`]); the caller
    /// reads them.
    pub(crate) fn take_free_frames(
        &self,
        file: u64,
        pages: Range<u64>,
        class: usize,
        mut taken: impl FnMut(u64, u32),
    ) {
        let number = self.shard_of(PageKey::new(file, pages.start));
        let mut shard = lock(&self.shards[number]);
        for key in pages.map(|page| PageKey::new(file, page)) {
            if shard.find_frame(key).is_some() {
                continue;
            }
            let Some(frame) = shard.free.pop() else { return };
            let global = self.frame_number(number, frame);
            self.states[global as usize].state.store(STATE_LOADING, Ordering::Relaxed);
            shard.add_page(key, frame);
            shard.policy.restore(frame, key.id(), 1, class);
            self.counters.unrequested.fetch_add(1, Ordering::Relaxed);
            taken(key.page, global);
        }
    }

    /// Calls `visit` with the class ([`Policy::visit`]), the number of the file, and the number of each page.
    pub fn visit_pages(&self, mut visit: impl FnMut(usize, u64, u64)) {
        for shard in &self.shards {
            let Shard { policy, keys, .. } = &*lock(shard);
            policy.visit(&mut |frame, class| {
                visit(class, keys[frame as usize].file, keys[frame as usize].page)
            });
        }
    }

    /// Makes the pages of frames usable after their read, or removes those whose read has failed. Wakes the
    /// threads that wait. The caller has dropped the cells.
    pub(crate) fn complete_pages(&self, pages: impl IntoIterator<Item = (u32, Result<()>)>) {
        for (frame, result) in pages {
            let state = &self.states[frame as usize];
            match result {
                Ok(()) => state.state.store(STATE_READY, Ordering::Release),
                Err(error) => {
                    self.counters.failures.fetch_add(1, Ordering::Relaxed);
                    let (number, own) = self.shard_and_frame(frame);
                    let mut shard = lock(&self.shards[number]);
                    state.state.store(STATE_FAILED, Ordering::Release);
                    shard.remove_page(own);
                    shard.policy.remove(own);
                    shard.failed.push((own, error));
                }
            }
        }
        // Either this thread sees the incremented `waiting`, or the waiting thread sees the new states.
        fence(Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            drop(self.sleepers.lock().unwrap_or_else(PoisonError::into_inner));
            self.settled.notify_all();
        }
    }

    /// Sleeps until the page of one of these frames was read or could not be.
    pub(crate) fn wait_for_any(&self, mut frames: impl Iterator<Item = u32> + Clone) {
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

    /// Whether the page of a frame was read or could not be, so that it is no longer loading.
    pub fn is_settled(&self, frame: u32) -> bool {
        self.states[frame as usize].state.load(Ordering::Acquire) != STATE_LOADING
    }

    /// Evicts the pages of these files, given by their numbers, except those that are pinned or loading.
    pub fn evict_files(&self, files: &[u64]) {
        for (at, shard) in self.shards.iter().enumerate() {
            let mut shard = lock(shard);
            for frame in 0..shard.keys.len() as u32 {
                let state = &self.states[self.frame_number(at, frame) as usize];
                // Acquire: as in `free_frame`.
                let is_used = state.pins.load(Ordering::Acquire) > 0
                    || state.state.load(Ordering::Acquire) != STATE_READY;
                let file = shard.keys[frame as usize].file;
                if !is_used && file != NO_PAGE.file && files.contains(&file) {
                    shard.remove_page(frame);
                    shard.policy.remove(frame);
                    shard.free.push(frame);
                }
            }
        }
    }

    /// Takes a free frame of the shard, or evicts one; `None` if all are pinned.
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
        let victim = shard.policy.victim(&|frame| pins(frame) == (0, STATE_READY))?;
        let PageKey { file, page } = shard.keys[victim as usize];
        shard.policy.remove(victim);
        shard.remove_page(victim);
        // The other pages of its group too, which were read with it: so the pages that are missing later are
        // neighbours, and one read brings them back.
        let first = page / GROUP_PAGES * GROUP_PAGES;
        let mut evicted = 1;
        for page in first..first + GROUP_PAGES {
            if let Some(other) =
                shard.find_frame(PageKey { file, page }).filter(|other| pins(*other) == (0, STATE_READY))
            {
                shard.policy.remove(other);
                shard.remove_page(other);
                shard.free.push(other);
                evicted += 1;
            }
        }
        self.counters.evictions.fetch_add(evicted, Ordering::Relaxed);
        Some(victim)
    }

    fn shard_of(&self, key: PageKey) -> usize {
        shard_of_hash(key.group_hash(), self.shards.len())
    }

    /// Converts the number of a frame within its shard to its number in the cache.
    fn frame_number(&self, shard: usize, frame: u32) -> u32 {
        frame * self.shards.len() as u32 + shard as u32
    }

    /// Converts the number of a frame in the cache to its shard and its number within the shard.
    fn shard_and_frame(&self, frame: u32) -> (usize, u32) {
        (frame as usize % self.shards.len(), frame / self.shards.len() as u32)
    }

    fn pin_frame(&self, frame: u32) -> Pin<'_> {
        self.states[frame as usize].pins.fetch_add(1, Ordering::Relaxed);
        Pin { cache: self, frame }
    }
}

impl Shard {
    /// Shard `number` of `shards`, with its part of the `frames` of the cache.
    fn new(frames: usize, number: usize, shards: usize, policy: PolicyKind) -> Shard {
        let own = (frames - number).div_ceil(shards) as u32;
        Shard {
            table: PageTable::new(own as usize),
            keys: vec![NO_PAGE; own as usize].into(),
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

    /// Puts parked frames into use again until `frames` are in use or none is parked. Returns how many.
    fn unpark_frames(&mut self, frames: usize) -> usize {
        let count = frames.saturating_sub(self.frames_in_use()).min(self.parked.len());
        self.free.extend(self.parked.drain(self.parked.len() - count..));
        count
    }

    /// The number of the frame of a page within the shard.
    fn find_frame(&self, key: PageKey) -> Option<u32> {
        self.table.find(key.tag(), |frame| self.keys[frame as usize] == key)
    }

    /// Adds a page with its frame to the page table and to the eviction policy.
    fn insert_page(&mut self, key: PageKey, frame: u32) {
        self.add_page(key, frame);
        self.policy.insert(frame, key.id(), 1);
    }

    /// Adds a page with its frame to the page table.
    fn add_page(&mut self, key: PageKey, frame: u32) {
        self.keys[frame as usize] = key;
        self.table.insert(key.tag(), frame);
    }

    /// Removes the page of a frame from the page table.
    fn remove_page(&mut self, frame: u32) {
        let key = std::mem::replace(&mut self.keys[frame as usize], NO_PAGE);
        self.table.remove(key.tag(), frame);
    }
}

impl Pin<'_> {
    /// The number of the frame in the cache.
    pub fn frame(&self) -> u32 {
        self.frame
    }

    /// Whether the page was read or could not be, so that [`Pin::page`] can be called.
    pub fn is_settled(&self) -> bool {
        self.cache.is_settled(self.frame)
    }

    /// The bytes of the page.
    ///
    /// # Errors
    /// The error of the read, if the page could not be read.
    ///
    /// # Panics
    /// While the page is loading.
    pub fn page(&self) -> Result<CellRef<'_>> {
        match self.cache.states[self.frame as usize].state.load(Ordering::Acquire) {
            STATE_READY => {
                Ok(self.cache.cells.read(self.frame as usize).expect("a pinned frame is not written"))
            }
            STATE_FAILED => Err(self.read_error()),
            _ => panic!("the page is loading"),
        }
    }

    fn read_error(&self) -> Error {
        let (number, own) = self.cache.shard_and_frame(self.frame);
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

/// Number of shards of a cache with this number of frames.
pub(crate) fn shards_of_frames(frames: usize) -> usize {
    (frames / SHARD_FRAMES_MIN).clamp(1, SHARDS_MAX)
}

/// The shard of a page by the hash of its group: the lower half, which the page table does not use.
pub(crate) fn shard_of_hash(hash: u64, shards: usize) -> usize {
    (hash as u32 as usize * shards) >> 32
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
