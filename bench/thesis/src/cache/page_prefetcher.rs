//! Prefetching into the system's page cache: the mode `base-prefetch` (thesis, section 7.2.2).
//!
//! A worker reads the lists of waiting queries through a buffer of 4,096 bytes, so that their pages are in
//! the page cache when a query is evaluated, unless the system has evicted them. As the system does not
//! report evictions, the lookahead is fixed: a number of queries. The worker does not check the bytes; the
//! query checks what it reads.
//!
//! No thread waits for ever: the worker waits for reads, and for the oldest query to end; queries wait for
//! the worker, which always reads for the oldest query.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, atomic::AtomicBool, atomic::Ordering};
use std::{collections::BTreeMap, panic::AssertUnwindSafe, panic::catch_unwind, thread, thread::JoinHandle};

use tierdex_io::{Error, PAGE, Result, panic_message};

use crate::cache::lookahead::{LookaheadLog, LookaheadSample};
use crate::cache::{error::stopped_error, request::ListRequest, request::RequestedRange};

/// A worker that reads into the page cache. Dropping it ends the worker after its current page.
pub struct PagePrefetcher {
    worker: Arc<PageWorker>,
    thread: Option<JoinHandle<()>>,
}

/// A query in the queue of a [`PagePrefetcher`]. It ends when this is dropped.
pub struct PageQuery {
    worker: Arc<PageWorker>,
    number: u64,
}

struct PageWorker {
    state: Mutex<PageQueue>,
    /// A stop request. Set under the lock; the worker reads it without the lock before each page.
    stopping: AtomicBool,
    /// Wakes the worker when there is work, or when it is to stop.
    work: Condvar,
    /// Wakes query threads when the worker has set a result, or has stopped.
    done: Condvar,
}

struct PageQueue {
    /// Queries that have not ended, by number.
    entries: BTreeMap<u64, PageQueueEntry>,
    /// The number of the next query to be pushed, and of the next to read for.
    next: u64,
    turn: u64,
    /// How many of the queries before `turn` have not ended.
    taken: u64,
    lookahead: u64,
    ended: u64,
    bytes_read: u64,
    lookahead_log: LookaheadLog,
    /// The worker sleeps, and was not woken.
    sleeping: bool,
    /// Query threads that sleep.
    waiting: usize,
    /// The message of the worker's panic, if it panicked.
    panic: Option<String>,
}

struct PageQueueEntry {
    requests: Vec<ListRequest>,
    read: Option<Result<()>>,
}

impl PagePrefetcher {
    /// Starts a worker that reads for at most `lookahead` queries behind the oldest that has not ended; the
    /// thesis takes 16. It records the lookahead each time a query ends, and keeps the last `samples` of
    /// these.
    ///
    /// # Errors
    /// The error of starting a thread.
    pub fn start(lookahead: u64, samples: usize) -> Result<PagePrefetcher> {
        let mut lookahead_log = LookaheadLog::default();
        lookahead_log.restart(samples);
        let state = PageQueue {
            entries: BTreeMap::new(),
            next: 0,
            turn: 0,
            taken: 0,
            lookahead,
            ended: 0,
            bytes_read: 0,
            lookahead_log,
            sleeping: false,
            waiting: 0,
            panic: None,
        };
        let worker = Arc::new(PageWorker {
            state: Mutex::new(state),
            stopping: AtomicBool::new(false),
            work: Condvar::new(),
            done: Condvar::new(),
        });
        let own = Arc::clone(&worker);
        let thread = thread::Builder::new().name("fetch-pages".to_owned()).spawn(move || {
            // However the worker ended, no thread waits for it any more.
            let ended = catch_unwind(AssertUnwindSafe(|| own.run_worker()));
            own.lock().panic = ended.err().map(|panic| panic_message(&*panic));
            own.stop_worker();
        });
        let thread = thread.map_err(|error| Error::from_os("start", "prefetcher", &error))?;
        Ok(PagePrefetcher { worker, thread: Some(thread) })
    }

    /// Appends a query to the queue.
    pub fn push(&self, requests: Vec<ListRequest>) -> PageQuery {
        let mut state = self.worker.lock();
        let number = state.next;
        state.next += 1;
        state.entries.insert(number, PageQueueEntry { requests, read: None });
        self.worker.unlock_and_wake(state);
        PageQuery { worker: Arc::clone(&self.worker), number }
    }

    /// Bytes that were read.
    pub fn bytes_read(&self) -> u64 {
        self.worker.lock().bytes_read
    }

    /// The recorded samples of the lookahead, oldest first. They have no rolling sum.
    pub fn lookahead_samples(&self) -> Vec<LookaheadSample> {
        self.worker.lock().lookahead_log.samples()
    }
}

impl Drop for PagePrefetcher {
    fn drop(&mut self) {
        self.worker.stop_worker();
        self.thread.take().map(JoinHandle::join);
    }
}

impl PageQuery {
    /// Waits until all lists of the query were read.
    ///
    /// # Errors
    /// The first read error, or that the worker has stopped.
    pub fn wait(&self) -> Result<()> {
        let mut state = self.worker.lock();
        loop {
            if let Some(result) = &state.entries[&self.number].read {
                return result.clone();
            }
            if self.worker.is_stopping() {
                return Err(stopped_error(state.panic.as_deref()));
            }
            state.waiting += 1;
            state = self.worker.done.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }
}

impl Drop for PageQuery {
    fn drop(&mut self) {
        let mut state = self.worker.lock();
        state.end_query(self.number);
        self.worker.unlock_and_wake(state);
    }
}

impl PageWorker {
    fn lock(&self) -> MutexGuard<'_, PageQueue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a signal that there is work for the worker.
    fn wait_for_work<'a>(&self, mut state: MutexGuard<'a, PageQueue>) -> MutexGuard<'a, PageQueue> {
        state.sleeping = true;
        let mut state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.sleeping = false;
        state
    }

    /// Releases the lock, and wakes the worker if it sleeps and there is a query to read for; makes no
    /// system call otherwise.
    fn unlock_and_wake(&self, mut state: MutexGuard<'_, PageQueue>) {
        let wakes = state.next_query().is_some() && std::mem::take(&mut state.sleeping);
        drop(state);
        if wakes {
            self.work.notify_one();
        }
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Stops the worker, and wakes all threads.
    fn stop_worker(&self) {
        let state = self.lock();
        self.stopping.store(true, Ordering::Relaxed);
        drop(state);
        self.work.notify_all();
        self.done.notify_all();
    }

    fn run_worker(&self) {
        let mut buffer = [0; PAGE as usize];
        let mut state = self.lock();
        while !self.is_stopping() {
            let Some((number, requests)) = state.take_query() else {
                state = self.wait_for_work(state);
                continue;
            };
            drop(state);
            let mut bytes = 0;
            let mut parts = requests.iter().flat_map(ListRequest::parts);
            let result =
                parts.try_for_each(|part| self.read_part(part, &mut buffer).map(|copied| bytes += copied));
            state = self.lock();
            state.bytes_read += bytes;
            state.set_result(number, result);
            if state.waiting > 0 {
                self.done.notify_all();
            }
        }
    }

    /// Reads the pages of a part, one after the other, until a stop request. Returns the number of bytes.
    fn read_part(&self, part: &RequestedRange, buffer: &mut [u8; PAGE as usize]) -> Result<u64> {
        let file = part.file().file();
        let (start, end) = (part.pages().start, part.pages().end.min(file.len()));
        for page in (start..end).step_by(PAGE as usize) {
            if self.is_stopping() {
                return Err(stopped_error(None));
            }
            file.read_at(page, &mut buffer[..(end - page).min(PAGE) as usize])?;
        }
        Ok(end - start)
    }
}

impl PageQueue {
    /// The next query to read for, unless it is too far ahead.
    fn next_query(&self) -> Option<(u64, &PageQueueEntry)> {
        let next = self.entries.range(self.turn..).next().filter(|_| self.taken <= self.lookahead);
        next.map(|(number, entry)| (*number, entry))
    }

    /// Takes the next query: its number and its requests.
    fn take_query(&mut self) -> Option<(u64, Vec<ListRequest>)> {
        let (number, entry) = self.next_query()?;
        let requests = entry.requests.clone();
        self.turn = number + 1;
        self.taken += 1;
        Some((number, requests))
    }

    /// Sets the result for a query, which may have ended.
    fn set_result(&mut self, number: u64, result: Result<()>) {
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.read = Some(result);
        }
    }

    fn end_query(&mut self, number: u64) {
        let queries = self.taken.saturating_sub(1);
        self.entries.remove(&number);
        self.ended += 1;
        self.taken -= u64::from(number < self.turn);
        self.lookahead_log.add_sample(LookaheadSample { ended: self.ended, queries, cells: 0 });
    }
}
