//! The cache: cells of memory, the metadata of the lists in them, and the lock and condition variables by
//! which query threads and the worker wait for each other.
//!
//! # Why no thread waits for ever
//!
//! 1. The worker waits only for its reads, which complete, and sleeps only when no task is queued.
//! 2. Entries are allocated in queue order. Cells that the oldest query lacks are therefore held by that
//!    query itself, by the worker that fills them, or by a caller outside the queue. The oldest query waits
//!    for the worker only (1). A list for which too few cells are available after that is streamed, so the
//!    oldest query is always served.
//! 3. Every other query waits for older ones. If each thread drops a query before it waits for a later one,
//!    the oldest query ends, and then, one after the other, all of them.
//! 4. The bounce buffer is held while one chunk is read and copied, and its holder waits for nothing else
//!    (1).

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tierdex_cache::PolicyKind;
use tierdex_io::{Cells, Error, ErrorKind, Result};

use crate::cache::bounce_buffer::{StreamChunk, bounce_cell_count};
use crate::cache::{cell_links::CellLinks, entry_table::EntryTable, error::stopped_error};
use crate::cache::{cell_links::NO_CELL, state::ListCacheState};
use crate::{cache::lookahead::LookaheadSample, cache::stats::ListCacheStats};

/// A cache of posting lists in cells of memory, shared by query threads and the prefetch worker.
///
/// One lock guards the metadata. It is taken a few times per list and never per block. When a requested list
/// is in the cache, no thread sleeps or is woken, and no system call is made.
pub struct ListCache {
    cells: Arc<Cells>,
    links: Arc<CellLinks>,
    /// Number of cells that hold lists; those after them are the bounce buffer.
    list_cells: usize,
    state: Mutex<ListCacheState>,
    /// Wakes the worker when there is a task, or when it is to stop.
    work: Condvar,
    /// Wakes query threads when a list or a chunk has been read.
    done: Condvar,
}

/// Bytes of state that [`Cells`] keep for each cell.
const STATE_BYTES_PER_CELL: usize = size_of::<u32>();

impl ListCache {
    /// A cache in `cells`, of which it is the only user from now on. All memory that it needs is allocated
    /// here.
    ///
    /// A 32nd of the cells, but at least one and at most 256 KiB or one cell, becomes the bounce buffer,
    /// through which lists are streamed that do not fit.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] when there are fewer than 2 cells, or 2^32 - 1 or more for lists.
    pub fn new(cells: Arc<Cells>) -> Result<Arc<ListCache>> {
        let list_cells = cells.len() - bounce_cell_count(cells.len(), cells.cell_bytes()).min(cells.len());
        let count = u32::try_from(list_cells).ok().filter(|count| (1..NO_CELL).contains(count));
        let Some(count) = count else {
            let why = format!("it has {} segments, and needs 2 or more", cells.len());
            let name = format!("cache {}", cells.region().kind());
            return Err(Error::new(ErrorKind::Denied, "make", name, why));
        };
        let (links, free) = CellLinks::new(count);
        let links = Arc::new(links);
        let state = Mutex::new(ListCacheState::new(Arc::clone(&links), free, cells.cell_bytes()));
        let (work, done) = (Condvar::new(), Condvar::new());
        Ok(Arc::new(ListCache { cells, links, list_cells, state, work, done }))
    }

    /// Bytes of memory outside the region for each cell, at most: see [`ListCacheStats::metadata_bytes`].
    pub fn metadata_bytes_max() -> usize {
        let entries = CellLinks::BYTES_PER_CELL + EntryTable::BYTES_PER_CELL_MAX;
        STATE_BYTES_PER_CELL + entries + PolicyKind::Lru.bytes_per_entry_max()
    }

    /// Counters since the start, and the current state.
    pub fn stats(&self) -> ListCacheStats {
        let states = self.cells.len() * STATE_BYTES_PER_CELL;
        let stats = self.lock().stats();
        ListCacheStats { metadata_bytes: stats.metadata_bytes + states as u64, ..stats }
    }

    /// From now on records the lookahead each time a query ends, and keeps the last `samples` of these; none
    /// when 0.
    pub fn record_lookahead(&self, samples: usize) {
        self.lock().lookahead_log.restart(samples);
    }

    /// The recorded samples, oldest first.
    pub fn lookahead_samples(&self) -> Vec<LookaheadSample> {
        self.lock().lookahead_log.samples()
    }

    /// The cells that the cache uses, the bounce buffer included.
    pub fn cells(&self) -> &Arc<Cells> {
        &self.cells
    }

    pub(crate) fn links(&self) -> &CellLinks {
        &self.links
    }

    /// The cells of the bounce buffer.
    pub(crate) fn bounce_cells(&self) -> std::ops::Range<usize> {
        self.list_cells..self.cells.len()
    }

    /// Locks the metadata. A poisoned lock is ignored: each change that matters is complete or was not made,
    /// so a panic can leave only counters wrong.
    pub(crate) fn lock(&self) -> MutexGuard<'_, ListCacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits all lists that can be admitted now, releases the lock, and wakes the threads that wait for a
    /// change. Wakes no thread, and so makes no system call, when none sleeps or nothing has changed.
    pub(crate) fn unlock_and_notify(&self, mut state: MutexGuard<'_, ListCacheState>) {
        state.admit_lists();
        let has_tasks = state.has_tasks();
        let wakes_worker = state.worker_sleeps && (has_tasks || state.stopping);
        let wakes_queries = std::mem::take(&mut state.changed) && state.waiting_threads > 0;
        drop(state);
        if wakes_worker {
            self.work.notify_one();
        }
        if wakes_queries {
            self.done.notify_all();
        }
    }

    /// Wakes the query threads if something has changed, and waits for a signal that there is work.
    pub(crate) fn wait_for_work<'a>(
        &'a self,
        mut state: MutexGuard<'a, ListCacheState>,
    ) -> MutexGuard<'a, ListCacheState> {
        if std::mem::take(&mut state.changed) && state.waiting_threads > 0 {
            self.done.notify_all();
        }
        state.worker_sleeps = true;
        let mut state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.worker_sleeps = false;
        state
    }

    /// Sleeps while `waits` is true; an error when the worker has stopped.
    pub(crate) fn wait_while<'a>(
        &'a self,
        mut state: MutexGuard<'a, ListCacheState>,
        waits: impl Fn(&ListCacheState) -> bool,
    ) -> Result<MutexGuard<'a, ListCacheState>> {
        if waits(&state) {
            state.stats.waits += 1;
        }
        while waits(&state) {
            if state.stopping || !state.worker_runs {
                return Err(state.stopped_error());
            }
            state.waiting_threads += 1;
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting_threads -= 1;
        }
        Ok(state)
    }

    /// An error after a stop request.
    pub(crate) fn check_running(&self) -> Result<()> {
        let state = self.lock();
        if state.stopping { Err(state.stopped_error()) } else { Ok(()) }
    }

    /// Replaces `out` by a chunk of a list, read through the bounce buffer.
    pub(crate) fn read_chunk(&self, chunk: StreamChunk, out: &mut Vec<u8>) -> Result<()> {
        let mut state = self.wait_while(self.lock(), |state| state.bounce.taken)?;
        state.bounce.taken = true;
        let mut left = (chunk.pages.end - chunk.pages.start) as usize;
        state.bounce.task = Some(chunk);
        self.unlock_and_notify(state);
        let result = self.wait_for_chunk();
        out.clear();
        out.reserve_exact(left);
        for cell in self.bounce_cells().take_while(|_| result.is_ok()) {
            let bytes = self.cells.read(cell).ok_or_else(|| stopped_error(None));
            let Ok(bytes) = bytes else { break };
            out.extend_from_slice(&bytes[..left.min(bytes.len())]);
            left -= left.min(bytes.len());
        }
        let mut state = self.lock();
        state.bounce.taken = false;
        state.changed = true;
        self.unlock_and_notify(state);
        result
    }

    /// Waits for the chunk in the bounce buffer. A chunk that the worker has started is always waited for, so
    /// that it does not still write to the buffer when it is freed.
    fn wait_for_chunk(&self) -> Result<()> {
        let mut state = self.lock();
        state.stats.waits += 1;
        loop {
            if let Some(result) = state.bounce.result.take() {
                return result;
            }
            let withdrawn = state.stopping && state.bounce.task.take().is_some();
            if withdrawn || !state.worker_runs {
                return Err(state.stopped_error());
            }
            state.waiting_threads += 1;
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting_threads -= 1;
        }
    }

    /// Wakes all threads, so that they see that the worker stops.
    pub(crate) fn wake_all(&self) {
        self.work.notify_all();
        self.done.notify_all();
    }
}

impl fmt::Debug for ListCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cache of {:?}", self.cells)
    }
}
