//! Queued requests, one queue for each priority, and tasks: document ranges handed over to idle threads.
//!
//! Threads take tasks first, then interactive requests, then requests of batches. The memory of each queue
//! is bounded. Counters that search threads check often are read without the lock.

use super::active::SearchTask;
use super::queued_request::QueuedRequest;
use super::request::Priority;
use crate::error::{Error, Result};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Intervals over which the rate of the queue is averaged.
const INTERVALS_AVERAGED: u32 = 64;

/// Bounds of the pause that an overloaded engine asks for.
const RETRY_AFTER_MIN: Duration = Duration::from_millis(1);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// The next work of a search thread.
pub(super) enum NextWork {
    Request(Box<QueuedRequest>),
    /// A document range of a request in progress.
    Task(SearchTask),
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
    /// Signals freed capacity, or the close of the engine.
    taken: Condvar,
    /// Number of queued interactive requests; read without the lock.
    interactive: AtomicUsize,
    /// Number of sleeping threads without work; read without the lock.
    idle: AtomicUsize,
    /// Bytes of each priority, at most.
    bytes_max: u64,
    began: Instant,
    /// The earliest deadline of a queued request, in nanoseconds since `began`; read without the lock.
    earliest: AtomicU64,
}

#[derive(Default)]
struct QueueState {
    interactive: PriorityClass,
    batch: PriorityClass,
    /// Tasks for sleeping threads.
    tasks: VecDeque<SearchTask>,
    /// Sleeping threads.
    idle: usize,
    /// Callers that wait for capacity.
    blocked: usize,
    closed: bool,
    /// When the last request was taken, if it left others behind.
    last_taken: Option<Instant>,
    /// Moving average of the time between two requests that are taken while others wait.
    interval: Duration,
}

/// Queued requests of a priority.
#[derive(Default)]
struct PriorityClass {
    requests: VecDeque<QueuedRequest>,
    bytes: u64,
}

impl PriorityClass {
    /// Whether a request fits; a single one always does.
    fn fits(&self, request: &QueuedRequest, bytes_max: u64) -> bool {
        self.requests.is_empty() || self.bytes + request.memory() <= bytes_max
    }

    fn push(&mut self, request: QueuedRequest) {
        self.bytes += request.memory();
        self.requests.push_back(request);
    }

    /// Removes requests that were cancelled, or whose deadline has passed.
    fn remove_due(&mut self) -> Vec<QueuedRequest> {
        let now = Instant::now();
        let (due, left): (VecDeque<_>, _) = self.requests.drain(..).partition(|request| request.is_due(now));
        self.requests = left;
        self.bytes = self.requests.iter().map(QueuedRequest::memory).sum();
        due.into()
    }

    fn pop(&mut self) -> Option<QueuedRequest> {
        let request = self.requests.pop_front()?;
        self.bytes -= request.memory();
        Some(request)
    }
}

impl QueueState {
    /// Number of sleeping threads beyond those that were woken for queued requests and tasks.
    fn idle_without_work(&self) -> usize {
        let queued = self.interactive.requests.len() + self.batch.requests.len() + self.tasks.len();
        self.idle.saturating_sub(queued)
    }

    /// The next interactive request, else one of a batch if `takes_batch`.
    fn pop(&mut self, takes_batch: bool) -> Option<QueuedRequest> {
        let request = self.interactive.pop();
        let request = request.or_else(|| if takes_batch { self.batch.pop() } else { None })?;
        let now = Instant::now();
        if let Some(last) = self.last_taken {
            self.interval = (self.interval * (INTERVALS_AVERAGED - 1) + (now - last)) / INTERVALS_AVERAGED;
        }
        let waits = !(self.interactive.requests.is_empty() && self.batch.requests.is_empty());
        self.last_taken = waits.then_some(now);
        Some(request)
    }

    /// Expected time until this number of requests has been taken.
    fn expected_wait(&self, requests: usize) -> Duration {
        let requests = u32::try_from(requests).unwrap_or(u32::MAX);
        self.interval.saturating_mul(requests).clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX)
    }

    fn class(&mut self, priority: Priority) -> &mut PriorityClass {
        match priority {
            Priority::Interactive => &mut self.interactive,
            Priority::Batch => &mut self.batch,
        }
    }
}

impl RequestQueue {
    /// A queue of up to `bytes_max` bytes of requests for each priority.
    pub(super) fn new(bytes_max: u64) -> RequestQueue {
        RequestQueue {
            state: Mutex::default(),
            changed: Condvar::new(),
            taken: Condvar::new(),
            interactive: AtomicUsize::new(0),
            idle: AtomicUsize::new(0),
            bytes_max,
            began: Instant::now(),
            earliest: AtomicU64::new(u64::MAX),
        }
    }

    /// Adds a request.
    ///
    /// # Errors
    /// [`Error::Overloaded`] when the queue of its priority is full.
    pub(super) fn push(&self, request: QueuedRequest) -> Result<()> {
        let mut state = self.lock();
        let class = state.class(request.priority());
        let due = if class.fits(&request, self.bytes_max) { Vec::new() } else { class.remove_due() };
        let queued = class.requests.len();
        if class.fits(&request, self.bytes_max) {
            self.add(state, request);
        } else {
            let retry_after = state.expected_wait(queued);
            drop(state);
            drop(request);
            due.into_iter().for_each(QueuedRequest::expire);
            let message = format!("the queue is full: {queued} requests wait; try again later");
            return Err(Error::Overloaded { message, retry_after });
        }
        due.into_iter().for_each(QueuedRequest::expire);
        Ok(())
    }

    /// Adds a request; waits while the queue of its priority is full.
    pub(super) fn push_waiting(&self, request: QueuedRequest) {
        let mut state = self.lock();
        while !state.class(request.priority()).fits(&request, self.bytes_max) && !state.closed {
            state.blocked += 1;
            state = self.taken.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.blocked -= 1;
        }
        self.add(state, request);
    }

    fn add(&self, mut state: MutexGuard<'_, QueueState>, request: QueuedRequest) {
        if state.closed {
            // Dropping the request answers it with an error.
            return drop(state);
        }
        let priority = request.priority();
        self.earliest.fetch_min(self.deadline(&request), Ordering::Relaxed);
        state.class(priority).push(request);
        self.publish(&state);
        // A wake-up is a system call.
        if state.idle > 0 {
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Answers requests whose deadline passed in the queue. Does nothing before the earliest deadline.
    pub(super) fn expire(&self) {
        let earliest = self.earliest.load(Ordering::Relaxed);
        if earliest == u64::MAX || self.began.elapsed().as_nanos() < u128::from(earliest) {
            return;
        }
        let mut state = self.lock();
        let mut due = Vec::new();
        let QueueState { interactive, batch, .. } = &mut *state;
        for class in [&mut *interactive, batch] {
            due.extend(class.remove_due());
        }
        let requests = interactive.requests.iter().chain(&batch.requests);
        let earliest = requests.map(|request| self.deadline(request)).min().unwrap_or(u64::MAX);
        // At most one scan a millisecond.
        let next_scan = self.began.elapsed().as_nanos() as u64 + 1_000_000;
        self.earliest.store(earliest.max(next_scan), Ordering::Relaxed);
        self.publish(&state);
        if state.blocked > 0 {
            self.taken.notify_all();
        }
        drop(state);
        // Callbacks run here.
        due.into_iter().for_each(QueuedRequest::expire);
    }

    /// Nanoseconds from `began` to the deadline of a request; `u64::MAX` without a deadline.
    fn deadline(&self, request: &QueuedRequest) -> u64 {
        let deadline = request.deadline();
        deadline.map_or(u64::MAX, |deadline| {
            u64::try_from(deadline.saturating_duration_since(self.began).as_nanos()).unwrap_or(u64::MAX)
        })
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
            let takes_task =
                |task: &SearchTask| takes_batch || task.request.priority == Priority::Interactive;
            let found = state.tasks.iter().position(takes_task);
            if let Some(task) = found.and_then(|at| state.tasks.remove(at)) {
                self.publish(&state);
                return NextWork::Task(task);
            }
            let request = state.pop(takes_batch);
            self.publish(&state);
            if let Some(request) = request {
                if state.blocked > 0 {
                    self.taken.notify_all();
                }
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

    /// Adds a task if a thread without work sleeps. Returns whether it did.
    #[inline]
    pub(super) fn push_task_if_idle(&self, task: impl FnOnce() -> SearchTask) -> bool {
        self.idle.load(Ordering::Relaxed) > 0 && self.push_task(task)
    }

    fn push_task(&self, task: impl FnOnce() -> SearchTask) -> bool {
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
        self.interactive.store(state.interactive.requests.len(), Ordering::Relaxed);
        self.idle.store(state.idle_without_work(), Ordering::Relaxed);
    }

    /// Whether an interactive request is queued.
    #[inline]
    pub(super) fn has_interactive(&self) -> bool {
        self.interactive.load(Ordering::Relaxed) > 0
    }

    /// Closes the queue: queued requests are answered with errors.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let queued = (
            std::mem::take(&mut state.interactive),
            std::mem::take(&mut state.batch),
            std::mem::take(&mut state.tasks),
        );
        drop(state);
        self.changed.notify_all();
        self.taken.notify_all();
        // Callbacks run here.
        drop(queued);
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
