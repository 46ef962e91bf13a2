//! Queued requests, one queue for each priority, and tasks: document ranges handed over to idle threads.
//!
//! Threads take tasks first, then interactive requests, then requests of batches; a request of a batch that
//! has waited for a second is taken after eight interactive ones. Requests have reserved their memory.
//! Counters that search threads check often are read without the lock.
//!
//! While a search thread sleeps, one caller at a time may take the [`CallerReader`] and evaluate its request
//! itself, in place of that thread: its request is never queued.

use super::{
    active::SearchTask, caller_reader::CallerReader, priority::Priority, queued_request::QueuedRequest,
    request_counters::RequestCounters,
};
use crate::Error;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tierdex_cache::PageReader;

/// Requests between two measurements of the rate at which requests are taken.
const RATE_REQUESTS: u32 = 16;

/// Bounds of the pause that an overloaded engine asks for.
const RETRY_AFTER_MIN: Duration = Duration::from_millis(1);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// Time between two scans for requests that are due, at least.
const SCAN_INTERVAL: Duration = Duration::from_millis(1);

/// Interactive requests that are taken for one of a batch that has waited for `BATCH_WAIT`: batches make
/// progress however many interactive requests there are.
const INTERACTIVE_PER_BATCH: u32 = 8;
const BATCH_WAIT: Duration = Duration::from_secs(1);

/// Entries for which an empty queue keeps memory.
const KEPT_ENTRIES: usize = 64;

/// The next work of a search thread.
pub(super) enum NextWork {
    Request(Box<QueuedRequest>),
    /// A document range of a request in progress.
    Task(SearchTask),
    /// To wait for the reads in flight of the reader for callers, and to return it.
    Reads(CallerReader),
    /// There is no work that the thread may take.
    Empty,
    /// The engine was closed.
    Closed,
}

/// The queue between callers and search threads.
pub(super) struct RequestQueue {
    state: Mutex<QueueState>,
    /// Signals a new request or task, or the close of the engine.
    changed: Condvar,
    /// Number of queued interactive requests; read without the lock.
    interactive: AtomicUsize,
    /// Number of sleeping threads without work; read without the lock.
    idle: AtomicUsize,
    began: Instant,
    /// The next scan for requests that are due, in nanoseconds since `began`; read without the lock.
    next_scan: AtomicU64,
    /// By the number of the priority.
    counters: [RequestCounters; 2],
}

#[derive(Default)]
struct QueueState {
    interactive: VecDeque<QueuedRequest>,
    batch: VecDeque<QueuedRequest>,
    /// Tasks for sleeping threads.
    tasks: VecDeque<SearchTask>,
    /// Sleeping threads.
    idle: usize,
    /// Whether a caller evaluates a request, and the reader for callers while none does.
    caller_runs: bool,
    caller: Option<CallerReader>,
    closed: bool,
    /// Number of requests so far.
    pushed: u64,
    /// Interactive requests taken since the last one of a batch.
    interactive_taken: u32,
    /// Requests taken since the last measurement, and its instant; 0 after a request that left none behind.
    taken: u32,
    measured: Option<Instant>,
    /// Moving average of the time in which `RATE_REQUESTS` are taken while others wait.
    interval: Duration,
}

impl QueueState {
    /// Number of sleeping threads beyond those that were woken for queued requests, tasks and reads, and the
    /// one in whose place a caller runs.
    fn idle_without_work(&self) -> usize {
        let queued = self.interactive.len() + self.batch.len() + self.tasks.len();
        self.idle.saturating_sub(queued + usize::from(self.caller_runs || self.caller_reads()))
    }

    /// Whether the reader for callers was returned with reads in flight.
    fn caller_reads(&self) -> bool {
        self.caller.as_ref().is_some_and(|caller| caller.reader.is_reading())
    }

    /// The next interactive request, else one of a batch if `takes_batch`. Also one of a batch that has
    /// waited for long, after some interactive ones.
    fn pop(&mut self, takes_batch: bool) -> Option<QueuedRequest> {
        let is_turn = takes_batch
            && self.interactive_taken >= INTERACTIVE_PER_BATCH
            && self.batch.front().is_some_and(|oldest| oldest.arrived.elapsed() >= BATCH_WAIT);
        let request = match self.interactive.pop_front_if(|_| !is_turn) {
            Some(interactive) => {
                self.interactive_taken = self.interactive_taken.saturating_add(1);
                interactive
            }
            None => {
                let batch = self.batch.pop_front_if(|_| takes_batch)?;
                self.interactive_taken = 0;
                batch
            }
        };
        let waits = !(self.interactive.is_empty() && self.batch.is_empty());
        for class in [&mut self.interactive, &mut self.batch] {
            // The requests have released the memory that they reserved for their entries.
            if class.is_empty() && class.capacity() > KEPT_ENTRIES {
                *class = VecDeque::new();
            }
        }
        self.taken = if waits { self.taken + 1 } else { 0 };
        if self.taken % RATE_REQUESTS == 1 {
            let now = Instant::now();
            if let Some(before) = self.measured.filter(|_| self.taken > 1) {
                self.interval = (3 * self.interval + (now - before)) / 4;
            }
            (self.taken, self.measured) = (1, Some(now));
        }
        Some(request)
    }

    /// Expected time until this number of requests has been taken.
    fn expected_wait(&self, requests: usize) -> Duration {
        let requests = u32::try_from(requests).unwrap_or(u32::MAX);
        (self.interval.saturating_mul(requests) / RATE_REQUESTS).clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX)
    }

    fn class(&mut self, priority: Priority) -> &mut VecDeque<QueuedRequest> {
        match priority {
            Priority::Interactive => &mut self.interactive,
            Priority::Batch => &mut self.batch,
        }
    }
}

impl RequestQueue {
    /// An empty queue, with a reader for callers that evaluate their own requests.
    pub(super) fn new(reader: Box<PageReader>) -> RequestQueue {
        let caller = Some(CallerReader { reader, stack: None });
        RequestQueue {
            state: Mutex::new(QueueState { caller, ..QueueState::default() }),
            changed: Condvar::new(),
            interactive: AtomicUsize::new(0),
            idle: AtomicUsize::new(0),
            began: Instant::now(),
            next_scan: AtomicU64::new(u64::MAX),
            counters: Default::default(),
        }
    }

    /// Adds a request. If the queue is closed, drops the request: its ticket then receives an error.
    pub(super) fn push(&self, mut request: QueuedRequest) {
        let mut state = self.lock();
        if state.closed {
            return drop(state);
        }
        (request.number, state.pushed) = (state.pushed, state.pushed + 1);
        if self.next_scan.load(Ordering::Relaxed) == u64::MAX {
            self.next_scan.store(self.nanos(request.arrived + SCAN_INTERVAL), Ordering::Relaxed);
        }
        state.class(request.priority()).push_back(request);
        self.publish(&state);
        // A wake-up is a system call.
        if state.idle > 0 {
            drop(state);
            self.changed.notify_one();
        }
    }

    /// The error of a request for which there is no memory.
    pub(super) fn overloaded(&self, priority: Priority) -> Error {
        let mut state = self.lock();
        let queued = state.class(priority).len();
        let retry_after = state.expected_wait(queued);
        let message = format!("the queue is full: {queued} requests wait; try again later");
        Error::Overloaded { message, retry_after }
    }

    /// Whether the engine was closed.
    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Number of queued requests of a priority, and the time that the oldest has waited.
    pub(super) fn length(&self, priority: Priority) -> (usize, Duration) {
        let mut state = self.lock();
        let class = state.class(priority);
        (class.len(), class.front().map_or(Duration::ZERO, |oldest| oldest.arrived.elapsed()))
    }

    /// Counters of the requests of a priority.
    pub(super) fn counters(&self, priority: Priority) -> &RequestCounters {
        &self.counters[priority as usize]
    }

    /// Number of requests of both priorities that were answered.
    pub(super) fn answered(&self) -> u64 {
        self.counters.iter().map(RequestCounters::answered).sum()
    }

    /// Answers requests that were cancelled, or whose deadline passed, in the queue: at most once a
    /// millisecond, and in at most a hundredth of the time of a thread.
    pub(super) fn expire(&self) {
        let next_scan = self.next_scan.load(Ordering::Relaxed);
        if next_scan < u64::MAX && self.nanos(Instant::now()) >= next_scan {
            self.remove_due();
        }
    }

    /// As [`RequestQueue::expire`], now.
    pub(super) fn remove_due(&self) {
        let (mut state, now) = (self.lock(), Instant::now());
        let mut due = Vec::new();
        let QueueState { interactive, batch, .. } = &mut *state;
        for class in [&mut *interactive, &mut *batch] {
            if class.iter().any(|request| request.is_due(now)) {
                let (ended, left): (VecDeque<_>, _) =
                    class.drain(..).partition(|request| request.is_due(now));
                *class = left;
                due.extend(ended);
            }
        }
        let next_scan = match interactive.is_empty() && batch.is_empty() {
            true => u64::MAX,
            false => self.nanos(now + SCAN_INTERVAL.max(100 * now.elapsed())),
        };
        self.next_scan.store(next_scan, Ordering::Relaxed);
        self.publish(&state);
        drop(state);
        // Callbacks run here.
        due.into_iter().for_each(|request| self.expire_request(request));
    }

    /// Answers a request that is due, without an evaluation.
    pub(super) fn expire_request(&self, request: QueuedRequest) {
        self.counters(request.priority()).add_expired(request.reply.is_cancelled());
        request.expire();
    }

    /// Nanoseconds from `began` to `at`.
    fn nanos(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.began).as_nanos()).unwrap_or(u64::MAX)
    }

    /// The next work: a task, else an interactive request, else one of a batch if the thread `takes_batch`.
    /// If `sleep`, waits until there is work.
    pub(super) fn next(&self, takes_batch: bool, sleep: bool) -> NextWork {
        let mut state = self.lock();
        loop {
            if state.closed {
                return NextWork::Closed;
            }
            if !sleep && state.idle > 0 {
                // Queued requests are left to the sleeping threads: each push wakes one.
                return NextWork::Empty;
            }
            if let Some(caller) = state.caller.take_if(|caller| sleep && caller.reader.is_reading()) {
                self.publish(&state);
                return NextWork::Reads(caller);
            }
            let takes_task =
                |task: &SearchTask| takes_batch || task.request.asked.priority == Priority::Interactive;
            let found = state.tasks.iter().position(takes_task);
            if let Some(task) = found.and_then(|at| state.tasks.remove(at)) {
                self.publish(&state);
                return NextWork::Task(task);
            }
            let request = state.pop(takes_batch);
            self.publish(&state);
            if let Some(request) = request {
                return NextWork::Request(Box::new(request));
            }
            if !sleep {
                return NextWork::Empty;
            }
            state.idle += 1;
            self.publish(&state);
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
            self.publish(&state);
        }
    }

    /// Lets the calling thread evaluate a request instead of a thread that sleeps. The request is numbered as
    /// if it had been queued. `None` if no thread sleeps, or another caller has the reader; else the reader
    /// goes to [`RequestQueue::leave`].
    pub(super) fn enter(&self, request: &mut QueuedRequest) -> Option<CallerReader> {
        if !self.is_thread_idle() {
            return None;
        }
        let mut state = self.lock();
        let caller = state.caller.take()?;
        if state.closed || state.idle_without_work() == 0 {
            state.caller = Some(caller);
            return None;
        }
        (request.number, state.pushed) = (state.pushed, state.pushed + 1);
        state.caller_runs = true;
        self.publish(&state);
        Some(caller)
    }

    /// Ends what [`RequestQueue::enter`] began. A sleeping thread waits for reads in flight, so that the
    /// caller has its result at once.
    pub(super) fn leave(&self, mut caller: CallerReader) {
        let mut state = self.lock();
        state.caller_runs = false;
        if caller.reader.is_reading() && state.idle_without_work() == 0 {
            drop(state);
            caller.reader.finish();
            state = self.lock();
        }
        let reads = caller.reader.is_reading();
        state.caller = Some(caller);
        self.publish(&state);
        drop(state);
        if reads {
            self.changed.notify_one();
        }
    }

    /// Ends [`NextWork::Reads`].
    pub(super) fn return_reader(&self, caller: CallerReader) {
        self.lock().caller = Some(caller);
    }

    /// Whether a thread without work sleeps.
    #[inline]
    pub(super) fn is_thread_idle(&self) -> bool {
        self.idle.load(Ordering::Relaxed) > 0
    }

    /// Adds a task if a thread without work sleeps. Returns whether it did.
    pub(super) fn push_task_if_idle(&self, task: impl FnOnce() -> SearchTask) -> bool {
        let mut state = self.lock();
        if state.closed || state.idle_without_work() == 0 {
            return false;
        }
        state.tasks.push_back(task());
        self.publish(&state);
        drop(state);
        self.changed.notify_one();
        true
    }

    /// Updates the counters that are read without the lock.
    fn publish(&self, state: &QueueState) {
        self.interactive.store(state.interactive.len(), Ordering::Relaxed);
        self.idle.store(state.idle_without_work(), Ordering::Relaxed);
    }

    /// Whether an interactive request is queued.
    #[inline]
    pub(super) fn has_interactive(&self) -> bool {
        self.interactive.load(Ordering::Relaxed) > 0
    }

    /// Closes the queue, and drops the queued requests: their tickets then receive errors.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let queued = (
            std::mem::take(&mut state.interactive),
            std::mem::take(&mut state.batch),
            std::mem::take(&mut state.tasks),
            // Threads may wait for pages that it reads.
            state.caller.take(),
        );
        drop(state);
        self.changed.notify_all();
        // Callbacks run here.
        drop(queued);
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
