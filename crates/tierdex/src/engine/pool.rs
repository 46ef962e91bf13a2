//! The memory pool of an engine: what the budget leaves beside the resident parts, for all threads.
//!
//! *Input*: reservations of several kinds, each before the memory is allocated. *Output*: guards that release
//! them when dropped. What is not reserved belongs to the cache.
//!
//! 1. Each kind has a minimum that no other kind can take, and a maximum; the cache has a minimum too.
//! 2. A reservation that needs memory of the cache shrinks the cache at once. It is not granted while too
//!    many frames are pinned.
//! 3. The cache grows back slowly: once an epoch, to what the largest sum of the last epoch left. So it is
//!    not resized for each query.
//! 4. Evaluations wait in a line: interactive ones first, then in order of arrival. Each reserves all that it
//!    needs before it starts, so one that runs never waits for memory. [`MemoryPool::changes`] counts what
//!    may let a reservation succeed: whoever failed compares it and sleeps until it changes.

use super::priority::Priority;
use super::sync::{AtomicU64, Condvar, Mutex, MutexGuard, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tierdex_io::trim_heap;

/// Time between two growths of the cache.
const EPOCH: Duration = Duration::from_secs(1);

/// Memory of evaluations from which on the freed heap is given back to the system at once: the allocator
/// would keep it for the thread, while another thread or the cache reserves it. A query that takes as much
/// has hundreds of lists.
const TRIM_BYTES: u64 = 2 << 20;

/// A kind of user of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PoolUse {
    /// Interactive requests from their arrival to the delivery of their results.
    Interactive,
    /// The same of batches.
    Batches,
    /// Lists, buffers and hits of running evaluations.
    Evaluations,
    /// Reading of external ids and texts of hits by callers.
    Output,
    /// Metadata of segments.
    Metadata,
}

impl PoolUse {
    /// All kinds, in the order of their numbers.
    pub(super) const ALL: [PoolUse; 5] =
        [PoolUse::Interactive, PoolUse::Batches, PoolUse::Evaluations, PoolUse::Output, PoolUse::Metadata];

    /// The kind of requests of a priority.
    pub(super) fn of_requests(priority: Priority) -> PoolUse {
        match priority {
            Priority::Interactive => PoolUse::Interactive,
            Priority::Batch => PoolUse::Batches,
        }
    }

    /// Name in reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            PoolUse::Interactive => "interactive requests and results",
            PoolUse::Batches => "requests and results of batches",
            PoolUse::Evaluations => "evaluations",
            PoolUse::Output => "ids and texts of hits",
            PoolUse::Metadata => "metadata of later segments",
        }
    }
}

/// Bytes that a kind can always have, and may have at most.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PoolLimits {
    pub(super) minimum: u64,
    pub(super) maximum: u64,
}

impl PoolLimits {
    /// A minimum that is also the maximum.
    pub(super) fn fixed(bytes: u64) -> PoolLimits {
        PoolLimits { minimum: bytes, maximum: bytes }
    }
}

/// Sizes of a pool in bytes.
#[derive(Clone, Debug)]
pub(super) struct PoolSizes {
    /// All of it; `None`: unlimited.
    pub(super) total: Option<u64>,
    /// By the number of the kind.
    pub(super) limits: [PoolLimits; PoolUse::ALL.len()],
    /// The cache, at least and at most; 0 if it is not a part of the pool.
    pub(super) cache: PoolLimits,
}

impl PoolSizes {
    /// The limits of a kind.
    pub(super) fn of(&self, kind: PoolUse) -> PoolLimits {
        self.limits[kind as usize]
    }
}

/// Resizes the cache to a number of bytes, at most. Returns the number that it has now.
pub(super) type ResizeCache = Box<dyn Fn(u64) -> u64 + Send + Sync>;

/// The memory that all threads of an engine reserve from.
pub(super) struct MemoryPool {
    sizes: PoolSizes,
    resize_cache: ResizeCache,
    state: Mutex<PoolState>,
    changed: Condvar,
    changes: AtomicU64,
}

struct PoolState {
    /// Reserved bytes, and the most so far, by the number of the kind.
    reserved: [u64; PoolUse::ALL.len()],
    largest: [u64; PoolUse::ALL.len()],
    /// Bytes of the cache, and the fewest so far.
    cache: u64,
    smallest_cache: u64,
    /// Start of the epoch, and the largest sum of reservations since then.
    epoch_began: Instant,
    epoch_largest: u64,
    line: Vec<Waiting>,
    next_waiting: u64,
    /// Threads in [`MemoryPool::wait`].
    sleeping: usize,
}

/// An evaluation in the line.
struct Waiting {
    priority: Priority,
    number: u64,
}

/// Bytes of a pool now, and their extremes since the start.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolBytes {
    pub(super) reserved: [u64; PoolUse::ALL.len()],
    pub(super) largest: [u64; PoolUse::ALL.len()],
    pub(super) cache: u64,
    pub(super) smallest_cache: u64,
}

/// Reserved bytes; dropping it releases them.
pub(super) struct Reservation {
    pool: Arc<MemoryPool>,
    kind: PoolUse,
    bytes: u64,
}

/// A position in the line of evaluations; dropping it leaves the line.
pub(super) struct Waiter<'p> {
    pool: &'p Arc<MemoryPool>,
    number: u64,
}

impl MemoryPool {
    /// A pool, whose cache has its maximum.
    pub(super) fn new(sizes: PoolSizes, resize_cache: ResizeCache) -> Arc<MemoryPool> {
        let cache = sizes.cache.maximum;
        let state = PoolState {
            reserved: Default::default(),
            largest: Default::default(),
            cache,
            smallest_cache: cache,
            epoch_began: Instant::now(),
            epoch_largest: 0,
            line: Vec::new(),
            next_waiting: 0,
            sleeping: 0,
        };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Arc::new(MemoryPool { sizes, resize_cache, state, changed, changes: AtomicU64::new(0) })
    }

    /// The sizes.
    pub(super) fn sizes(&self) -> &PoolSizes {
        &self.sizes
    }

    /// Bytes now.
    pub(super) fn bytes(&self) -> PoolBytes {
        let PoolState { reserved, largest, cache, smallest_cache, .. } = *self.lock();
        PoolBytes { reserved, largest, cache, smallest_cache }
    }

    /// Whether a reservation of this size can ever be granted.
    pub(super) fn can_grant(&self, kind: PoolUse, bytes: u64) -> bool {
        self.sizes.total.is_none() || bytes <= self.sizes.of(kind).maximum
    }

    /// Whether evaluations have reserved so much that no thread should start another beside its own.
    pub(super) fn is_busy(&self) -> bool {
        let kind = PoolUse::Evaluations;
        self.lock().reserved[kind as usize] > self.sizes.of(kind).maximum / 2
    }

    /// Reserves bytes if they are available now.
    pub(super) fn try_reserve(self: &Arc<Self>, kind: PoolUse, bytes: u64) -> Option<Reservation> {
        let taken = self.take(&mut self.lock(), kind, bytes);
        taken.then(|| Reservation { pool: self.clone(), kind, bytes })
    }

    /// Reserves bytes for an evaluation if they are available now and none waits.
    pub(super) fn try_evaluation(self: &Arc<Self>, bytes: u64) -> Option<Reservation> {
        let kind = PoolUse::Evaluations;
        let mut state = self.lock();
        let taken = state.line.is_empty() && self.take(&mut state, kind, bytes);
        taken.then(|| Reservation { pool: self.clone(), kind, bytes })
    }

    /// Reserves bytes that can be granted; waits until they are available, or until `ends`. Only for kinds
    /// of which every reservation is released without the caller.
    pub(super) fn reserve(
        self: &Arc<Self>,
        kind: PoolUse,
        bytes: u64,
        ends: impl Fn() -> bool,
    ) -> Option<Reservation> {
        loop {
            let seen = self.changes();
            if let Some(reserved) = self.try_reserve(kind, bytes) {
                return Some(reserved);
            }
            if ends() {
                return None;
            }
            self.wait(seen, None);
        }
    }

    /// Joins the line of evaluations.
    pub(super) fn join_line(self: &Arc<Self>, priority: Priority) -> Waiter<'_> {
        let mut state = self.lock();
        let number = state.next_waiting;
        state.next_waiting += 1;
        let at = state.line.partition_point(|other| other.priority <= priority);
        state.line.insert(at, Waiting { priority, number });
        Waiter { pool: self, number }
    }

    /// Change counter, to be read before an attempt.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Sleeps until there was a change after `seen`, or until the deadline.
    pub(super) fn wait(&self, seen: u64, deadline: Option<Instant>) {
        let mut state = self.lock();
        state.sleeping += 1;
        while self.changes() == seen {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            state = match left {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => break,
                Some(left) => {
                    self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        state.sleeping -= 1;
    }

    /// Lets those that sleep look again: reads have completed, or the engine was closed.
    pub(super) fn wake(&self) {
        self.change(&self.lock());
    }

    fn change(&self, state: &PoolState) {
        self.changes.fetch_add(1, Ordering::Release);
        // A wake-up is a system call.
        if state.sleeping > 0 {
            self.changed.notify_all();
        }
    }

    fn take(&self, state: &mut PoolState, kind: PoolUse, bytes: u64) -> bool {
        let number = kind as usize;
        let Some(total) = self.sizes.total else {
            // Requests are bounded too, but a single one is always accepted.
            let sum = state.reserved[number].saturating_add(bytes);
            if state.reserved[number] > 0 && sum > self.sizes.limits[number].maximum {
                return false;
            }
            state.set(number, sum);
            return true;
        };
        let Some(sum) = state.reserved[number].checked_add(bytes) else { return false };
        let others = |other: usize| state.reserved[other].max(self.sizes.limits[other].minimum);
        let kept: u64 = (0..PoolUse::ALL.len()).filter(|other| *other != number).map(others).sum();
        let left = total.saturating_sub(self.sizes.cache.minimum + kept);
        if sum > self.sizes.limits[number].maximum.min(left) {
            return false;
        }
        let cache = total - (state.sum() + bytes);
        if state.cache > cache {
            state.cache = (self.resize_cache)(cache);
            state.smallest_cache = state.smallest_cache.min(state.cache);
            if state.cache > cache {
                return false;
            }
        }
        state.set(number, sum);
        true
    }

    fn release(&self, kind: PoolUse, bytes: u64) {
        let mut state = self.lock();
        state.reserved[kind as usize] -= bytes;
        self.grow_cache(&mut state);
        self.change(&state);
    }

    /// At the end of an epoch, gives the cache what its reservations have left.
    fn grow_cache(&self, state: &mut PoolState) {
        let Some(total) = self.sizes.total.filter(|_| state.cache < self.sizes.cache.maximum) else { return };
        let now = Instant::now();
        if now - state.epoch_began < EPOCH {
            return;
        }
        let cache = (total - state.epoch_largest).min(self.sizes.cache.maximum);
        if cache > state.cache {
            trim_heap();
            state.cache = (self.resize_cache)(cache);
        }
        (state.epoch_began, state.epoch_largest) = (now, state.sum());
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolState {
    fn sum(&self) -> u64 {
        self.reserved.iter().sum()
    }

    fn set(&mut self, number: usize, bytes: u64) {
        self.reserved[number] = bytes;
        self.largest[number] = self.largest[number].max(bytes);
        self.epoch_largest = self.epoch_largest.max(self.sum());
    }
}

impl Waiter<'_> {
    /// Reserves bytes if they are available and the evaluation is the first in the line.
    pub(super) fn try_reserve(&self, bytes: u64) -> Option<Reservation> {
        let kind = PoolUse::Evaluations;
        let mut state = self.pool.lock();
        let is_first = state.line.first().is_some_and(|first| first.number == self.number);
        let taken = is_first && self.pool.take(&mut state, kind, bytes);
        taken.then(|| Reservation { pool: self.pool.clone(), kind, bytes })
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        state.line.retain(|waiting| waiting.number != self.number);
        self.pool.change(&state);
    }
}

impl Reservation {
    /// Splits off a part of the bytes.
    pub(super) fn split(&mut self, bytes: u64) -> Reservation {
        self.bytes -= bytes;
        Reservation { pool: self.pool.clone(), kind: self.kind, bytes }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.kind == PoolUse::Evaluations && self.bytes >= TRIM_BYTES && self.pool.sizes.total.is_some() {
            trim_heap();
        }
        self.pool.release(self.kind, self.bytes);
    }
}
