//! Reading ahead into the system's page cache: the mode `base-prefetch` (thesis, section 7.2.2).
//!
//! *You have* jobs, and no cache of your own. *You get* their pages into the page cache before the query's turn comes, as
//! far as the system keeps them. A worker copies lists through a buffer of 4,096 bytes: what was copied was there. Which
//! pages are evicted when, nobody tells, so the lookahead is fixed: a number of queries. What is copied is not looked at;
//! the query checks what it reads.
//!
//! Nobody waits for ever: the worker waits for reads, and for the oldest query to end; queries wait for the worker, which
//! never keeps the oldest waiting.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use tierdex_io::{Error, PAGE, Result, panic_message};

use crate::cache::stopped;
use crate::job::{Job, Part};
use crate::lookahead::{Record, Sample};

/// A worker that reads ahead into the page cache. Dropped, it ends the page that it is at, and reads no more.
pub struct PagePrefetcher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// A query in the queue of a [`PagePrefetcher`]. Dropped, it has ended.
pub struct PageQuery {
    shared: Arc<Shared>,
    number: u64,
}

struct Shared {
    state: Mutex<State>,
    /// All is to stop. It changes under the lock; the worker sees it without, before each page.
    stopping: AtomicBool,
    /// The worker sleeps here.
    work: Condvar,
    /// Query threads sleep here.
    done: Condvar,
}

struct State {
    /// Queries that have not ended, by number.
    entries: BTreeMap<u64, Entry>,
    /// The numbers of the next query to come, and of the next to read.
    next: u64,
    turn: u64,
    /// How many of those before the turn have not ended.
    taken: u64,
    lookahead: u64,
    ended: u64,
    bytes_read: u64,
    record: Record,
    /// The worker sleeps, and was not woken.
    sleeping: bool,
    /// Query threads that sleep.
    waiting: usize,
    /// What the worker's panic says, if it was one that made an end.
    panic: Option<String>,
}

struct Entry {
    jobs: Vec<Job>,
    read: Option<Result<()>>,
}

impl PagePrefetcher {
    /// Starts a worker that reads for at most `lookahead` queries beyond the oldest that has not ended; the thesis takes 16.
    /// It notes the lookahead each time a query ends: the last `samples` of them.
    ///
    /// # Errors
    /// What the system says to a new thread.
    pub fn start(lookahead: u64, samples: usize) -> Result<PagePrefetcher> {
        let mut record = Record::default();
        record.start(samples);
        let state = State {
            entries: BTreeMap::new(),
            next: 0,
            turn: 0,
            taken: 0,
            lookahead,
            ended: 0,
            bytes_read: 0,
            record,
            sleeping: false,
            waiting: 0,
            panic: None,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            stopping: AtomicBool::new(false),
            work: Condvar::new(),
            done: Condvar::new(),
        });
        let worker = Arc::clone(&shared);
        let thread = thread::Builder::new().name("fetch-pages".to_owned()).spawn(move || {
            // However it ends, nobody waits for it any more.
            let ended = catch_unwind(AssertUnwindSafe(|| worker.work()));
            worker.lock().panic = ended.err().map(|panic| panic_message(&*panic));
            worker.stop();
        });
        let thread = thread.map_err(|error| Error::from_os("start", "prefetcher", &error))?;
        Ok(PagePrefetcher { shared, thread: Some(thread) })
    }

    /// Puts a query into the queue.
    pub fn push(&self, jobs: Vec<Job>) -> PageQuery {
        let mut state = self.shared.lock();
        let number = state.next;
        state.next += 1;
        state.entries.insert(number, Entry { jobs, read: None });
        self.shared.wake_worker(state);
        PageQuery { shared: Arc::clone(&self.shared), number }
    }

    /// How many bytes were copied.
    pub fn bytes_read(&self) -> u64 {
        self.shared.lock().bytes_read
    }

    /// What was noted of the lookahead, the oldest first. There is no rolling sum.
    pub fn lookahead_samples(&self) -> Vec<Sample> {
        self.shared.lock().record.samples()
    }
}

impl Drop for PagePrefetcher {
    fn drop(&mut self) {
        self.shared.stop();
        self.thread.take().map(JoinHandle::join);
    }
}

impl PageQuery {
    /// Waits until all lists of the query were read.
    ///
    /// # Errors
    /// The first read that failed, or that the worker has stopped.
    pub fn wait(&self) -> Result<()> {
        let mut state = self.shared.lock();
        loop {
            if let Some(result) = &state.entries[&self.number].read {
                return result.clone();
            }
            if self.shared.is_stopping() {
                return Err(stopped(state.panic.as_deref()));
            }
            state.waiting += 1;
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }
}

impl Drop for PageQuery {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.end(self.number);
        self.shared.wake_worker(state);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until the worker is wanted.
    fn sleep<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.sleeping = true;
        let mut state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.sleeping = false;
        state
    }

    /// Gives the lock back and wakes the worker, if it sleeps and has something to read: else makes no system call.
    fn wake_worker(&self, mut state: MutexGuard<'_, State>) {
        let wakes = state.next_turn().is_some() && std::mem::take(&mut state.sleeping);
        drop(state);
        if wakes {
            self.work.notify_one();
        }
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Has all end, and says so.
    fn stop(&self) {
        let state = self.lock();
        self.stopping.store(true, Ordering::Relaxed);
        drop(state);
        self.work.notify_all();
        self.done.notify_all();
    }

    fn work(&self) {
        let mut buffer = [0; PAGE as usize];
        let mut state = self.lock();
        while !self.is_stopping() {
            let Some((number, jobs)) = state.take_turn() else {
                state = self.sleep(state);
                continue;
            };
            drop(state);
            let mut bytes = 0;
            let mut parts = jobs.iter().flat_map(Job::parts);
            let result =
                parts.try_for_each(|part| self.copy(part, &mut buffer).map(|copied| bytes += copied));
            state = self.lock();
            state.bytes_read += bytes;
            state.was_read(number, result);
            if state.waiting > 0 {
                self.done.notify_all();
            }
        }
    }

    /// Copies the pages of a part, one after the other, until all is to stop. Returns how many bytes.
    fn copy(&self, part: &Part, buffer: &mut [u8; PAGE as usize]) -> Result<u64> {
        let file = part.file().file();
        let (start, end) = (part.pages().start, part.pages().end.min(file.len()));
        for page in (start..end).step_by(PAGE as usize) {
            if self.is_stopping() {
                return Err(stopped(None));
            }
            file.read_at(page, &mut buffer[..(end - page).min(PAGE) as usize])?;
        }
        Ok(end - start)
    }
}

impl State {
    /// The next query to read for, unless it is too far ahead.
    fn next_turn(&self) -> Option<(u64, &Entry)> {
        let next = self.entries.range(self.turn..).next().filter(|_| self.taken <= self.lookahead);
        next.map(|(number, entry)| (*number, entry))
    }

    /// Takes that turn: the number and the jobs.
    fn take_turn(&mut self) -> Option<(u64, Vec<Job>)> {
        let (number, entry) = self.next_turn()?;
        let jobs = entry.jobs.clone();
        self.turn = number + 1;
        self.taken += 1;
        Some((number, jobs))
    }

    /// Notes how reading went, for a query that may have ended.
    fn was_read(&mut self, number: u64, result: Result<()>) {
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.read = Some(result);
        }
    }

    fn end(&mut self, number: u64) {
        let queries = self.taken.saturating_sub(1);
        self.entries.remove(&number);
        self.ended += 1;
        self.taken -= u64::from(number < self.turn);
        self.record.add(Sample { ended: self.ended, queries, segments: 0 });
    }
}
