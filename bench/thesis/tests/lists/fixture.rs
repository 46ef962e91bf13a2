//! Lists in files, caches of a few pages, and a disk that holds reads back.

use std::sync::{Arc, Condvar, Mutex};
use tierdex_io::{Cells, Disk, MemDisk, PAGE, ReadFile, ReadKind, Region, RegionKind, Result};
use tierdex_thesis::{FetchedList, ListCache, ListKey, ListRequest, Lookahead, Prefetcher, RequestedRange};

pub use super::files::{
    TestFile, fail_read, new_read_queue, tested_read_kinds, with_watchdog, write_test_file,
};

pub const CELL_BYTES: usize = 4096;

impl TestFile {
    /// The bytes of a part.
    pub fn bytes(&self, part: &RequestedRange) -> &[u8] {
        let range = part.range();
        &self.bytes[range.start as usize - 64..range.end as usize - 64]
    }

    /// A list of one part that takes `pages` pages from page `first` on, except for some bytes at both
    /// ends.
    pub fn request(&self, list: u64, first: u64, pages: u64) -> ListRequest {
        let range = first * PAGE + 100..(first + pages) * PAGE - 50;
        ListRequest::new(ListKey(list, 0), vec![RequestedRange::new(Arc::clone(&self.file), range).unwrap()])
            .unwrap()
    }

    /// Checks all parts of a list, as a whole and in ranges that cross cells.
    pub fn check(&self, request: &ListRequest, list: &FetchedList) {
        let mut out = Vec::new();
        for (number, part) in request.parts().iter().enumerate() {
            let expected = self.bytes(part);
            let len = expected.len() as u64;
            let mut reader = list.reader(number);
            let ends = [(0, len), (len / 2, len), (0, len.min(10)), (len / 3, len / 3), (len - 1, len)];
            let steps = (0..len).step_by(700).map(|from| (from, len.min(from + 800)));
            for (from, to) in ends.into_iter().chain(steps) {
                reader.read(from..to, &mut out).unwrap();
                assert!(out == expected[from as usize..to as usize], "{request:?} {from}..{to}");
            }
            assert!(reader.read(0..len + 1, &mut out).is_err());
            assert!(reader.read(len + 1..len + 1, &mut out).is_err());
        }
    }
}

/// A cache of `cells` cells of one page, one of which is the bounce buffer.
pub fn new_cache(cells: usize) -> Arc<ListCache> {
    cache_of(cells, CELL_BYTES)
}

/// A cache of `cells` cells of `cell_bytes` bytes, the bounce buffer included.
pub fn cache_of(cells: usize, cell_bytes: usize) -> Arc<ListCache> {
    let region = Region::new(&RegionKind::Dram, (cells * cell_bytes) as u64).unwrap();
    ListCache::new(Cells::new(region, cell_bytes).unwrap()).unwrap()
}

/// A worker that reads with two threads.
pub fn start_prefetcher(cache: &Arc<ListCache>, disk: &dyn Disk, lookahead: Lookahead) -> Prefetcher {
    Prefetcher::start(cache, new_read_queue(disk, ReadKind::Pread, 2), lookahead).unwrap()
}

/// A worker that reads by this method, with this number of reads at a time.
pub fn start_worker(cache: &Arc<ListCache>, disk: &dyn Disk, kind: ReadKind, depth: usize) -> Prefetcher {
    Prefetcher::start(cache, new_read_queue(disk, kind, depth), Lookahead::Adaptive).unwrap()
}

/// Fetches a list by a query of its own. Must not be called by a thread that holds an earlier query.
pub fn fetch(prefetcher: &Prefetcher, request: &ListRequest) -> Result<FetchedList> {
    prefetcher.push(vec![request.clone()]).wait(0)
}

/// Waits until a condition holds, which other threads change.
pub fn yield_until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

/// Checks that nothing is pinned or loading, and that every cell is free or evictable.
pub fn assert_idle(cache: &ListCache) {
    let stats = cache.stats();
    assert_eq!((stats.queries, stats.loading, stats.rolling_sum), (0, 0, 0), "{stats:?}");
    assert_eq!(stats.cells_free + stats.cells_evictable, stats.cells, "{stats:?}");
    let cells = cache.cells();
    assert!((0..cells.len()).all(|cell| cells.write(cell).is_some()), "a cell is in use");
}

/// A disk whose reads wait while the gate is closed.
#[derive(Clone)]
pub struct GatedDisk {
    inner: Arc<MemDisk>,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    closed: bool,
    panics_on_read: bool,
    panics_on_len: bool,
    waiting_reads: usize,
}

struct GatedFile {
    inner: Box<dyn ReadFile>,
    gate: Arc<Gate>,
}

/// What [`open_cache`] returns, with the gate of the disk closed.
pub fn gated_cache(pages: usize, cells: usize) -> (GatedDisk, TestFile, Arc<ListCache>, Prefetcher) {
    let opened = open_cache(pages, cells);
    opened.0.close_gate();
    opened
}

/// A disk, a file of `pages` pages on it, a cache of `cells` cells, and a prefetcher for it.
pub fn open_cache(pages: usize, cells: usize) -> (GatedDisk, TestFile, Arc<ListCache>, Prefetcher) {
    let disk = GatedDisk::new();
    let written = write_test_file(&disk, "a", pages);
    let cache = new_cache(cells);
    let prefetcher = start_prefetcher(&cache, &disk, Lookahead::Adaptive);
    (disk, written, cache, prefetcher)
}

impl GatedDisk {
    pub fn new() -> GatedDisk {
        GatedDisk { inner: Arc::new(MemDisk::new()), gate: Arc::default() }
    }

    pub fn close_gate(&self) {
        self.gate.state.lock().unwrap().closed = true;
    }

    /// Makes reads panic from now on.
    pub fn panic_on_read(&self) {
        self.gate.state.lock().unwrap().panics_on_read = true;
    }

    /// Makes files panic from now on when asked for their length, which read queues do in the worker's own
    /// thread.
    pub fn panic_on_len(&self) {
        self.gate.state.lock().unwrap().panics_on_len = true;
    }

    pub fn repair(&self) {
        let mut state = self.gate.state.lock().unwrap();
        (state.panics_on_read, state.panics_on_len) = (false, false);
    }

    pub fn open_gate(&self) {
        self.gate.state.lock().unwrap().closed = false;
        self.gate.changed.notify_all();
    }

    /// Waits until a read waits at the gate.
    pub fn wait_for_read(&self) {
        self.wait_for_reads(1);
    }

    /// Waits until `reads` reads wait at the gate.
    pub fn wait_for_reads(&self, reads: usize) {
        let state = self.gate.state.lock().unwrap();
        drop(self.gate.changed.wait_while(state, |state| state.waiting_reads < reads).unwrap());
    }
}

impl ReadFile for GatedFile {
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn len(&self) -> u64 {
        let panics_on_len = self.gate.state.lock().unwrap().panics_on_len;
        assert!(!panics_on_len, "as the test wants it");
        self.inner.len()
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut state = self.gate.state.lock().unwrap();
        state.waiting_reads += 1;
        self.gate.changed.notify_all();
        let mut state = self.gate.changed.wait_while(state, |state| state.closed).unwrap();
        state.waiting_reads -= 1;
        let panics_on_read = state.panics_on_read;
        drop(state);
        assert!(!panics_on_read, "as the test wants it");
        self.inner.read_at(offset, buf)
    }
}

impl Disk for GatedDisk {
    tierdex_io::forward_disk!(self, self.inner; list create rename remove sync_dir lock describe);

    fn open(&self, name: &str) -> Result<Box<dyn ReadFile>> {
        Ok(Box::new(GatedFile { inner: self.inner.open(name)?, gate: Arc::clone(&self.gate) }))
    }
}
