//! Requests that wait: two queues, of which threads empty the interactive one first.

use super::active::Task;
use super::request::{Hits, Priority, SearchRequest};
use super::snapshot::Snapshot;
use super::ticket::Reply;
use crate::error::{Error, Result};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A request that waits.
pub(super) struct Job {
    pub(super) request: SearchRequest,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) reply: Reply,
    pub(super) arrived: Instant,
}

impl Job {
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.reply.is_cancelled() || self.request.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Answers it without an evaluation.
    pub(super) fn expire(self) {
        let Job { snapshot, reply, arrived, .. } = self;
        let answer = if reply.is_cancelled() {
            Err(Error::Cancelled)
        } else {
            Ok(Hits::expired(snapshot, arrived.elapsed()))
        };
        reply.send(answer);
    }

    /// Bytes that it takes while it waits.
    fn memory(&self) -> u64 {
        let statistics = self.request.statistics.as_ref().map_or(0, |statistics| statistics.memory());
        (size_of::<Job>() + self.request.query.memory() + statistics) as u64
    }
}

/// What a thread that asks for a request gets.
pub(super) enum Next {
    Job(Box<Job>),
    /// A part of a request that another thread evaluates.
    Task(Task),
    /// No request waits that the thread may take.
    Empty,
    /// The engine was closed.
    Closed,
}

pub(super) struct Queue {
    state: Mutex<QueueState>,
    /// There is a request or a part of one, or the engine was closed.
    changed: Condvar,
    /// A request of a batch was taken, or the engine was closed.
    taken: Condvar,
    /// Interactive requests that wait: read without the lock.
    interactive: AtomicUsize,
    /// Threads that sleep and have nothing to do: read without the lock.
    idle: AtomicUsize,
    bytes_max: u64,
    /// The earliest deadline of a request that waits, in nanoseconds since `began`: read without the lock.
    began: Instant,
    earliest: AtomicU64,
}

#[derive(Default)]
struct QueueState {
    interactive: Class,
    batch: Class,
    /// Parts of requests for threads that sleep.
    tasks: VecDeque<Task>,
    /// Threads that sleep, and callers that wait to add to a batch.
    idle: usize,
    full: usize,
    closed: bool,
}

/// Requests of a priority that wait.
#[derive(Default)]
struct Class {
    jobs: VecDeque<Job>,
    bytes: u64,
}

impl Class {
    /// One fits in any case.
    fn fits(&self, job: &Job, bytes_max: u64) -> bool {
        self.jobs.is_empty() || self.bytes + job.memory() <= bytes_max
    }

    fn push(&mut self, job: Job) {
        self.bytes += job.memory();
        self.jobs.push_back(job);
    }

    /// Takes out requests that were cancelled, or whose deadline has passed.
    fn remove_due(&mut self) -> Vec<Job> {
        let now = Instant::now();
        let (due, left): (VecDeque<_>, _) = self.jobs.drain(..).partition(|job| job.is_due(now));
        self.jobs = left;
        self.bytes = self.jobs.iter().map(Job::memory).sum();
        due.into()
    }

    fn pop(&mut self) -> Option<Job> {
        let job = self.jobs.pop_front()?;
        self.bytes -= job.memory();
        Some(job)
    }
}

impl QueueState {
    /// Number of sleeping threads beyond those that were woken for waiting requests and tasks.
    fn unoccupied(&self) -> usize {
        let waiting = self.interactive.jobs.len() + self.batch.jobs.len() + self.tasks.len();
        self.idle.saturating_sub(waiting)
    }

    fn class(&mut self, priority: Priority) -> &mut Class {
        match priority {
            Priority::Interactive => &mut self.interactive,
            Priority::Batch => &mut self.batch,
        }
    }
}

impl Queue {
    /// Requests of each priority of `bytes_max` bytes may wait.
    pub(super) fn new(bytes_max: u64) -> Queue {
        Queue {
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
    /// [`Error::Limit`] when too many of its priority wait.
    pub(super) fn push(&self, job: Job) -> Result<()> {
        let mut state = self.lock();
        let class = state.class(job.request.priority);
        let due = if class.fits(&job, self.bytes_max) { Vec::new() } else { class.remove_due() };
        let waiting = class.jobs.len();
        if class.fits(&job, self.bytes_max) {
            self.add(state, job);
        } else {
            drop(state);
            drop(job);
            due.into_iter().for_each(Job::expire);
            return Err(Error::Limit(format!("{waiting} requests wait already; try again later")));
        }
        due.into_iter().for_each(Job::expire);
        Ok(())
    }

    /// Adds a request as soon as not too many of its priority wait.
    pub(super) fn push_waiting(&self, job: Job) {
        let mut state = self.lock();
        while !state.class(job.request.priority).fits(&job, self.bytes_max) && !state.closed {
            state.full += 1;
            state = self.taken.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.full -= 1;
        }
        self.add(state, job);
    }

    fn add(&self, mut state: MutexGuard<'_, QueueState>, job: Job) {
        if state.closed {
            // It is answered by an error when it is dropped.
            return drop(state);
        }
        let priority = job.request.priority;
        self.earliest.fetch_min(self.deadline(&job), Ordering::Relaxed);
        state.class(priority).push(job);
        self.publish(&state);
        // Waking is a system call.
        if state.idle > 0 {
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Answers requests whose deadline passed while they waited. Does nothing before the earliest deadline.
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
        let jobs = interactive.jobs.iter().chain(&batch.jobs);
        let earliest = jobs.map(|job| self.deadline(job)).min().unwrap_or(u64::MAX);
        // At most one scan a millisecond.
        let next_scan = self.began.elapsed().as_nanos() as u64 + 1_000_000;
        self.earliest.store(earliest.max(next_scan), Ordering::Relaxed);
        self.publish(&state);
        if state.full > 0 {
            self.taken.notify_all();
        }
        drop(state);
        // Callbacks run here.
        due.into_iter().for_each(Job::expire);
    }

    /// Nanoseconds from `began` to the deadline of a request.
    fn deadline(&self, job: &Job) -> u64 {
        let deadline = job.request.deadline;
        deadline.map_or(u64::MAX, |deadline| {
            u64::try_from(deadline.saturating_duration_since(self.began).as_nanos()).unwrap_or(u64::MAX)
        })
    }

    /// The next request: an interactive one, else one of a batch if the thread `takes_batch`. If `sleep`,
    /// waits for one.
    pub(super) fn next(&self, takes_batch: bool, sleep: bool) -> Next {
        let mut state = self.lock();
        loop {
            if state.closed {
                return Next::Closed;
            }
            if !sleep && state.idle > 0 {
                // Requests that wait are left to the threads that sleep: each push wakes one.
                return Next::Empty;
            }
            let takes_task = |task: &Task| takes_batch || task.request.priority == Priority::Interactive;
            let found = state.tasks.iter().position(takes_task);
            if let Some(task) = found.and_then(|at| state.tasks.remove(at)) {
                self.publish(&state);
                return Next::Task(task);
            }
            let job = state.interactive.pop();
            let job = job.or_else(|| if takes_batch { state.batch.pop() } else { None });
            self.publish(&state);
            if let Some(job) = job {
                if state.full > 0 {
                    self.taken.notify_all();
                }
                return Next::Job(Box::new(job));
            }
            if !sleep {
                return Next::Empty;
            }
            state.idle += 1;
            self.publish(&state);
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
            self.publish(&state);
        }
    }

    /// Adds a part of a request if a thread sleeps that has nothing to do. Whether it did.
    #[inline]
    pub(super) fn push_task_if_idle(&self, task: impl FnOnce() -> Task) -> bool {
        self.idle.load(Ordering::Relaxed) > 0 && self.push_task(task)
    }

    fn push_task(&self, task: impl FnOnce() -> Task) -> bool {
        let mut state = self.lock();
        if state.closed || state.unoccupied() == 0 {
            return false;
        }
        state.tasks.push_back(task());
        self.publish(&state);
        drop(state);
        self.changed.notify_one();
        true
    }

    /// Stores what is read without the lock.
    fn publish(&self, state: &QueueState) {
        self.interactive.store(state.interactive.jobs.len(), Ordering::Relaxed);
        self.idle.store(state.unoccupied(), Ordering::Relaxed);
    }

    /// Whether an interactive request waits.
    #[inline]
    pub(super) fn has_interactive(&self) -> bool {
        self.interactive.load(Ordering::Relaxed) > 0
    }

    /// Ends all: requests that wait are answered by errors.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let waiting = (
            std::mem::take(&mut state.interactive),
            std::mem::take(&mut state.batch),
            std::mem::take(&mut state.tasks),
        );
        drop(state);
        self.changed.notify_all();
        self.taken.notify_all();
        // Callbacks run here.
        drop(waiting);
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
