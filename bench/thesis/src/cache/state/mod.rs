//! The metadata of a cache, under its lock: entries and their pins, free cells, the prefetch queue, and the
//! tasks of the worker.
//!
//! The lists of queries are admitted in queue order, by whichever thread has changed something:
//!
//! 1. If the list has an entry, ready or loading, the entry is pinned. If the entry has other parts, the
//!    list is rejected.
//! 2. If the list is longer than the cache, it will be streamed.
//! 3. If the worker has a task already, the list waits. So entries are evicted no sooner than needed.
//! 4. If free and evictable cells together are too few: the oldest query waits until no entry is loading,
//!    and then streams the list; every other query waits until a query ends.
//! 5. Entries are evicted until enough cells are free, at the pace of the lookahead; the oldest query is
//!    not paced.
//! 6. Cells are allocated for an entry. It is pinned for the query and for the worker that will fill it,
//!    and becomes a task.

use std::{collections::VecDeque, sync::Arc};

use tierdex_cache::{Policy, PolicyKind};
use tierdex_io::Error;

use crate::cache::entry_table::{EntryState, EntryTable};
use crate::cache::lookahead::{Lookahead, LookaheadLog, LookaheadSample, PrefetchPace};
use crate::cache::queue::{Admission, NextList, PrefetchQueue};
use crate::cache::{error::stopped_error, request::ListRequest, stats::ListCacheStats};
use crate::{cache::bounce_buffer::BounceBuffer, cache::cell_links::CellLinks, cache::cell_links::FreeCells};

/// Detached requests in the queue, at most.
const DETACHED_QUERIES_MAX: usize = 1024;

/// An entry to be filled by the worker.
pub(crate) struct FetchTask {
    pub(crate) entry: u32,
    pub(crate) request: ListRequest,
}

/// The metadata of a cache.
pub(crate) struct ListCacheState {
    links: Arc<CellLinks>,
    free: FreeCells,
    pub(crate) entries: EntryTable,
    eviction: Box<dyn Policy>,
    cells: u32,
    cell_bytes: usize,
    /// Cells of entries that are ready and not pinned.
    evictable: u32,
    /// Entries that are loading.
    loading: u32,
    pub(crate) queue: PrefetchQueue,
    pub(crate) pace: PrefetchPace,
    pub(crate) lookahead_log: LookaheadLog,
    tasks: VecDeque<FetchTask>,
    pub(crate) bounce: BounceBuffer,
    /// There is a prefetcher. Its worker may have stopped before it.
    pub(crate) has_prefetcher: bool,
    /// The worker thread runs, and whether it sleeps.
    pub(crate) worker_runs: bool,
    pub(crate) worker_sleeps: bool,
    /// Query threads that sleep.
    pub(crate) waiting_threads: usize,
    /// Something changed that a query thread may wait for.
    pub(crate) changed: bool,
    pub(crate) stopping: bool,
    /// The message of the worker's panic that stopped the prefetcher, if one did.
    pub(crate) panic: Option<String>,
    pub(crate) stats: ListCacheStats,
}

/// Whether enough cells are available.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Availability {
    Now,
    Later,
    Never,
}

impl ListCacheState {
    pub(crate) fn new(links: Arc<CellLinks>, free: FreeCells, cell_bytes: usize) -> ListCacheState {
        let cells = free.count();
        ListCacheState {
            links,
            free,
            entries: EntryTable::new(cells),
            eviction: PolicyKind::Lru.policy(cells),
            cells,
            cell_bytes,
            evictable: 0,
            loading: 0,
            queue: PrefetchQueue::default(),
            pace: PrefetchPace::new(Lookahead::Adaptive, cells),
            lookahead_log: LookaheadLog::default(),
            tasks: VecDeque::new(),
            bounce: BounceBuffer::default(),
            has_prefetcher: false,
            worker_runs: false,
            worker_sleeps: false,
            waiting_threads: 0,
            changed: false,
            stopping: false,
            panic: None,
            stats: ListCacheStats::default(),
        }
    }

    /// Looks up the list of a request: pins and returns its entry if it is ready, and counts a hit or miss.
    /// An error if the entry was read from other byte ranges than those requested.
    pub(crate) fn lookup(&mut self, request: &ListRequest) -> Result<Option<u32>, Error> {
        let entry =
            self.entries.find_entry(request.key()).filter(|entry| self.state(*entry) == EntryState::Ready);
        if entry.is_some_and(|entry| self.has_other_parts(entry, request)) {
            return Err(request.mismatch_error());
        }
        match entry {
            Some(entry) => {
                self.stats.hits += 1;
                self.touch_and_pin(entry);
            }
            None => self.stats.misses += 1,
        }
        Ok(entry)
    }

    /// Whether an entry has other parts than a request with its key. Counts a failure if so.
    fn has_other_parts(&mut self, entry: u32, request: &ListRequest) -> bool {
        let has_other_parts = self.entries.entry(entry).fingerprint != request.fingerprint();
        self.stats.failures += u64::from(has_other_parts);
        has_other_parts
    }

    /// The state of a pinned entry.
    pub(crate) fn state(&self, entry: u32) -> EntryState {
        self.entries.state(entry)
    }

    /// The error of a pinned entry that failed.
    pub(crate) fn error(&self, entry: u32) -> Option<Error> {
        self.entries.error(entry).cloned()
    }

    /// Adds a pin to an entry.
    pub(crate) fn pin(&mut self, entry: u32) {
        let ready = self.state(entry) == EntryState::Ready;
        let record = self.entries.entry_mut(entry);
        if record.pins == 0 && ready {
            self.evictable -= record.count;
        }
        record.pins += 1;
    }

    /// Removes a pin. An entry without pins can be evicted; if it failed, its cell is freed.
    pub(crate) fn unpin(&mut self, entry: u32) {
        let state = self.state(entry);
        let record = self.entries.entry_mut(entry);
        record.pins -= 1;
        match state {
            EntryState::Ready if record.pins == 0 => self.evictable += record.count,
            EntryState::Failed if record.pins == 0 => {
                let cells = self.entries.remove_failed(entry);
                self.links.release_list(&mut self.free, cells);
            }
            _ => {}
        }
    }

    /// The worker has filled an entry, or failed to.
    pub(crate) fn finish_fill(&mut self, entry: u32, result: Result<(), Error>) {
        self.loading -= 1;
        self.changed = true;
        match result {
            Ok(()) => {
                self.stats.fetched += 1;
                self.entries.set_ready(entry);
            }
            Err(error) => {
                self.stats.failures += 1;
                self.eviction.remove(entry);
                self.entries.fail_entry(entry, error);
                let cells = self.entries.cells(entry);
                let head = self.links.release_all_but_first(&mut self.free, cells);
                self.entries.set_cells(head);
            }
        }
        self.unpin(entry);
    }

    /// Appends a list for which no thread waits to the queue. Does nothing when the queue has too many such
    /// lists, or when the worker does not run.
    pub(crate) fn push_detached(&mut self, request: ListRequest) {
        if !self.stopping && self.worker_runs && self.queue.detached < DETACHED_QUERIES_MAX {
            self.queue.push(vec![request], true);
        }
    }

    /// Ends a query, and removes the pins of its entries.
    pub(crate) fn end_query(&mut self, query: u64) {
        let queries = self.queue.lookahead();
        let (admissions, paced_cells) = self.queue.end_query(query);
        self.pace.subtract_cells(paced_cells);
        for admission in admissions {
            if let Admission::Cached(entry) = admission {
                self.unpin(entry);
            }
        }
        let sample = LookaheadSample { ended: self.queue.ended, queries, cells: self.pace.rolling_sum() };
        self.lookahead_log.add_sample(sample);
    }

    /// Whether there is work for the worker.
    pub(crate) fn has_tasks(&self) -> bool {
        !self.tasks.is_empty() || self.bounce.task.is_some()
    }

    /// The next entry to be filled.
    pub(crate) fn take_task(&mut self) -> Option<FetchTask> {
        self.tasks.pop_front()
    }

    /// Fails all tasks, after the worker has stopped.
    pub(crate) fn fail_waiting_tasks(&mut self) {
        let why = self.stopped_error();
        while let Some(FetchTask { entry, .. }) = self.take_task() {
            self.finish_fill(entry, Err(why.clone()));
        }
        self.queue.end_detached();
    }

    /// The error for requests that the worker will not serve.
    pub(crate) fn stopped_error(&self) -> Error {
        stopped_error(self.panic.as_deref())
    }

    /// Admits as many lists of the queue as possible.
    pub(crate) fn admit_lists(&mut self) {
        while !self.stopping && self.admit_next_list() {}
        self.stats.lookahead_max = self.stats.lookahead_max.max(self.queue.lookahead());
    }

    fn admit_next_list(&mut self) -> bool {
        let Some(NextList { request, detached, queries_before }) = self.queue.next_list() else {
            return false;
        };
        if self.pace.exceeds_lookahead(queries_before) {
            return false;
        }
        // A detached request has been counted by a lookup before.
        let Some(admission) = self.admit(&request, queries_before == 0, !detached) else { return false };
        let mut paced_cells = 0;
        match admission {
            Admission::Cached(entry) if detached => self.unpin(entry),
            Admission::Cached(entry) => {
                paced_cells = u64::from(self.entries.entry(entry).count);
                self.pace.add_cells(paced_cells);
            }
            Admission::Streamed => self.stats.streamed += u64::from(!detached),
            Admission::Rejected => {}
        }
        self.queue.admit_next(if detached { Admission::Streamed } else { admission }, paced_cells);
        self.changed = true;
        true
    }

    /// Admits a list of the oldest query or of another; `None` if it has to wait. Counts a hit or a miss if
    /// `counts`.
    fn admit(&mut self, request: &ListRequest, is_oldest: bool, counts: bool) -> Option<Admission> {
        if let Some(entry) = self.entries.find_entry(request.key()) {
            if self.has_other_parts(entry, request) {
                return Some(Admission::Rejected);
            }
            self.stats.hits += u64::from(counts);
            self.touch_and_pin(entry);
            return Some(Admission::Cached(entry));
        }
        let needed = u32::try_from(request.cells(self.cell_bytes)).unwrap_or(u32::MAX);
        if needed <= self.cells && (!self.worker_runs || !self.tasks.is_empty()) {
            return None;
        }
        let available = self.make_available(needed, is_oldest);
        if available == Availability::Later {
            return None;
        }
        self.stats.misses += u64::from(counts);
        if available == Availability::Never {
            return Some(Admission::Streamed);
        }
        let cells = self.links.allocate(&mut self.free, needed)?;
        self.links.set_parts(cells.head, request.parts().iter().map(|part| (part.page_offset(), part.len())));
        let entry = self.entries.insert(request.key(), request.fingerprint(), cells);
        self.eviction.insert(entry, request.key().hash_bits(), needed);
        self.loading += 1;
        self.pin(entry);
        self.pin(entry);
        self.tasks.push_back(FetchTask { entry, request: request.clone() });
        Some(Admission::Cached(entry))
    }

    /// Evicts entries until `needed` cells are free, if that is possible.
    fn make_available(&mut self, needed: u32, is_oldest: bool) -> Availability {
        if needed > self.cells {
            return Availability::Never;
        }
        if self.free.count() + self.evictable < needed {
            let waits = !is_oldest || self.loading > 0;
            return if waits { Availability::Later } else { Availability::Never };
        }
        while self.free.count() < needed {
            let entries = &self.entries;
            let is_evictable =
                |entry: u32| entries.entry(entry).pins == 0 && entries.state(entry) == EntryState::Ready;
            let Some(victim) = self.eviction.victim(&is_evictable) else {
                return Availability::Never;
            };
            let candidate = self.entries.entry(victim).count;
            if !is_oldest && self.pace.must_wait(self.free.count(), candidate) {
                return Availability::Later;
            }
            self.evict_entry(victim);
        }
        Availability::Now
    }

    fn evict_entry(&mut self, entry: u32) {
        self.eviction.remove(entry);
        let cells = self.entries.remove_ready(entry);
        self.evictable -= cells.count;
        self.links.release_list(&mut self.free, cells);
        self.stats.evictions += 1;
    }

    fn touch_and_pin(&mut self, entry: u32) {
        self.eviction.touch(entry);
        self.pin(entry);
    }

    /// Counters and sizes.
    pub(crate) fn stats(&self) -> ListCacheStats {
        let links = CellLinks::BYTES_PER_CELL * self.cells as usize;
        ListCacheStats {
            cells: self.cells.into(),
            cells_free: self.free.count().into(),
            cells_evictable: self.evictable.into(),
            loading: self.loading.into(),
            queries: self.queue.len(),
            lookahead: self.queue.lookahead(),
            rolling_sum: self.pace.rolling_sum(),
            metadata_bytes: (links + self.entries.bytes() + self.eviction.bytes()) as u64,
            ..self.stats
        }
    }
}

#[cfg(test)]
mod tests;
