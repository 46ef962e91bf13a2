//! The memory pool of an engine: what the budget leaves beside the resident parts, for all threads.
//!
//! *Input*: reservations of several kinds, each before the memory is allocated. *Output*: guards that release
//! them when dropped. What is not reserved belongs to the cache.
//!
//! 1. Each kind has a minimum that no other kind can take, and a maximum; the cache has a minimum too.
//! 2. A reservation within the minimum of its kind takes free bytes without a lock. Free bytes are neither
//!    reserved nor part of the cache.
//! 3. Other reservations take the lock. If too few bytes are free, they shrink the cache at once. They are
//!    not granted while too many frames are pinned.
//! 4. The cache grows back slowly: with the first release after an epoch, to what the largest sum of
//!    reservations of that epoch left. So it is not resized for each query.
//! 5. Evaluations that must wait are queued: interactive ones first, then in order of arrival. Each reserves
//!    all that it needs before it starts, so one that runs never waits for memory. [`MemoryPool::changes`]
//!    counts what may let a reservation succeed: whoever failed compares it and sleeps until it changes.

use super::priority::Priority;
use super::sync::{AtomicU64, Condvar, Mutex, MutexGuard, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tierdex_io::trim_heap;

/// Time between two growths of the cache, and between two attempts of a caller that waits for memory.
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
    /// Bytes that are neither reserved nor part of the cache.
    free: AtomicU64,
    /// Reserved bytes, and the most so far, by the number of the kind.
    reserved: [AtomicU64; PoolUse::ALL.len()],
    largest: [AtomicU64; PoolUse::ALL.len()],
    /// Bytes of the cache, and the fewest so far.
    cache: AtomicU64,
    smallest_cache: AtomicU64,
    /// Largest sum of reservations since the start of the epoch.
    epoch_largest: AtomicU64,
    changes: AtomicU64,
    /// Evaluations in the wait queue, and threads in [`MemoryPool::wait`].
    waiting: AtomicU64,
    sleeping: AtomicU64,
    state: Mutex<PoolState>,
    changed: Condvar,
}

/// What only changes under the lock. Whoever resizes the cache, or exceeds the minimum of a kind, has it too.
struct PoolState {
    epoch_began: Instant,
    wait_queue: Vec<WaitingEvaluation>,
    /// Number of the next evaluation that waits.
    next_waiting: u64,
}

/// An evaluation in the wait queue.
struct WaitingEvaluation {
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

/// A position in the wait queue of evaluations; dropping it leaves the queue.
pub(super) struct Waiter<'p> {
    pool: &'p Arc<MemoryPool>,
    number: u64,
}

impl MemoryPool {
    /// A pool, whose cache has its maximum.
    pub(super) fn new(sizes: PoolSizes, resize_cache: ResizeCache) -> Arc<MemoryPool> {
        let cache = sizes.cache.maximum;
        let free = sizes.total.map_or(u64::MAX, |total| total.saturating_sub(cache));
        let state = PoolState { epoch_began: Instant::now(), wait_queue: Vec::new(), next_waiting: 0 };
        Arc::new(MemoryPool {
            sizes,
            resize_cache,
            free: AtomicU64::new(free),
            reserved: Default::default(),
            largest: Default::default(),
            cache: AtomicU64::new(cache),
            smallest_cache: AtomicU64::new(cache),
            epoch_largest: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            sleeping: AtomicU64::new(0),
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    /// The sizes.
    pub(super) fn sizes(&self) -> &PoolSizes {
        &self.sizes
    }

    /// Bytes now.
    pub(super) fn bytes(&self) -> PoolBytes {
        let values = |of: &[AtomicU64; PoolUse::ALL.len()]| of.each_ref().map(load);
        PoolBytes {
            reserved: values(&self.reserved),
            largest: values(&self.largest),
            cache: load(&self.cache),
            smallest_cache: load(&self.smallest_cache),
        }
    }

    /// Whether a reservation of this size can ever be granted.
    pub(super) fn can_grant(&self, kind: PoolUse, bytes: u64) -> bool {
        self.sizes.total.is_none() || bytes <= self.sizes.of(kind).maximum
    }

    /// Whether evaluations have reserved so much that no thread should start another beside its own.
    pub(super) fn is_busy(&self) -> bool {
        let kind = PoolUse::Evaluations;
        load(&self.reserved[kind as usize]) > self.sizes.of(kind).maximum / 2
    }

    /// Reserves bytes if they are available now.
    pub(super) fn try_reserve(self: &Arc<Self>, kind: PoolUse, bytes: u64) -> Option<Reservation> {
        let taken = self.take_of_minimum(kind, bytes) || self.take_of_maximum(&mut self.lock(), kind, bytes);
        taken.then(|| Reservation { pool: self.clone(), kind, bytes })
    }

    /// Reserves bytes for an evaluation if they are available now and none waits.
    pub(super) fn try_evaluation(self: &Arc<Self>, bytes: u64) -> Option<Reservation> {
        if load(&self.waiting) > 0 { None } else { self.try_reserve(PoolUse::Evaluations, bytes) }
    }

    /// Reserves bytes that can be granted; waits until they are available. `None` when `gives_up`, which is
    /// asked after each attempt: after a change, and at least once a second. It is told whether there was a
    /// change since the attempt before.
    pub(super) fn reserve(
        self: &Arc<Self>,
        kind: PoolUse,
        bytes: u64,
        mut gives_up: impl FnMut(bool) -> bool,
    ) -> Option<Reservation> {
        let mut has_changed = true;
        loop {
            let seen = self.changes();
            if let Some(reserved) = self.try_reserve(kind, bytes) {
                return Some(reserved);
            }
            if gives_up(has_changed) {
                return None;
            }
            self.wait(seen, Some(Instant::now() + EPOCH));
            has_changed = self.changes() != seen;
        }
    }

    /// Joins the wait queue of evaluations.
    pub(super) fn join_wait_queue(self: &Arc<Self>, priority: Priority) -> Waiter<'_> {
        let mut state = self.lock();
        let number = state.next_waiting;
        state.next_waiting += 1;
        let at = state.wait_queue.partition_point(|other| other.priority <= priority);
        state.wait_queue.insert(at, WaitingEvaluation { priority, number });
        self.waiting.fetch_add(1, Ordering::AcqRel);
        Waiter { pool: self, number }
    }

    /// Change counter, to be read before an attempt.
    pub(super) fn changes(&self) -> u64 {
        load(&self.changes)
    }

    /// Sleeps until there was a change after `seen`, or until the deadline.
    pub(super) fn wait(&self, seen: u64, deadline: Option<Instant>) {
        let mut state = self.lock();
        self.sleeping.fetch_add(1, Ordering::Relaxed);
        // Not a load: a change that this misses comes after it, and its thread sees `sleeping`.
        while self.changes.fetch_add(0, Ordering::AcqRel) == seen {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            state = match left {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => break,
                Some(left) => {
                    self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        self.sleeping.fetch_sub(1, Ordering::Relaxed);
    }

    /// Lets those that sleep look again: reads have completed, or the engine was closed.
    pub(super) fn wake(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        // A wake-up is a system call.
        if load(&self.sleeping) > 0 {
            let _state = self.lock();
            self.changed.notify_all();
        }
    }

    /// Reserves bytes within the minimum of the kind, or within the maximum of an unlimited pool, if they are
    /// free.
    fn take_of_minimum(&self, kind: PoolUse, bytes: u64) -> bool {
        let (limits, reserved) = (self.sizes.of(kind), &self.reserved[kind as usize]);
        let most = if self.sizes.total.is_some() { limits.minimum } else { limits.maximum };
        let Some(sum) = add_up_to(reserved, bytes, most) else { return false };
        if subtract(&self.free, bytes) {
            self.record(kind, sum);
            return true;
        }
        reserved.fetch_sub(bytes, Ordering::AcqRel);
        false
    }

    /// Reserves bytes within the maximum of the kind; shrinks the cache if too few are free.
    fn take_of_maximum(&self, _state: &mut PoolState, kind: PoolUse, bytes: u64) -> bool {
        let (number, limits) = (kind as usize, self.sizes.of(kind));
        let maximum = match self.sizes.total {
            // Requests are bounded too, but a single one is always accepted.
            None if load(&self.reserved[number]) == 0 => u64::MAX,
            None => limits.maximum,
            Some(total) => {
                let others = (0..PoolUse::ALL.len()).filter(|other| *other != number);
                let kept = |other: usize| load(&self.reserved[other]).max(self.sizes.limits[other].minimum);
                let left = total.saturating_sub(self.sizes.cache.minimum + others.map(kept).sum::<u64>());
                limits.maximum.min(left)
            }
        };
        let Some(sum) = add_up_to(&self.reserved[number], bytes, maximum) else { return false };
        while !subtract(&self.free, bytes) {
            if !self.shrink_cache(bytes) {
                self.reserved[number].fetch_sub(bytes, Ordering::AcqRel);
                return false;
            }
        }
        self.record(kind, sum);
        true
    }

    /// Shrinks the cache, so that this number of bytes is free. False if it cannot be smaller.
    fn shrink_cache(&self, bytes: u64) -> bool {
        let (cache, missing) = (load(&self.cache), bytes.saturating_sub(load(&self.free)));
        let smaller = (self.resize_cache)(cache.saturating_sub(missing));
        self.cache.store(smaller, Ordering::Release);
        self.smallest_cache.fetch_min(smaller, Ordering::Relaxed);
        self.free.fetch_add(cache - smaller, Ordering::AcqRel);
        missing == 0 || smaller < cache
    }

    /// Updates the maxima after a reservation.
    fn record(&self, kind: PoolUse, reserved: u64) {
        // Without a write in the usual case, because other threads read these too.
        let raise = |maximum: &AtomicU64, to: u64| {
            if load(maximum) < to {
                maximum.fetch_max(to, Ordering::Relaxed);
            }
        };
        raise(&self.largest[kind as usize], reserved);
        if let Some(total) = self.sizes.total {
            raise(&self.epoch_largest, total.saturating_sub(load(&self.free) + load(&self.cache)));
        }
    }

    fn release(&self, kind: PoolUse, bytes: u64) {
        self.reserved[kind as usize].fetch_sub(bytes, Ordering::AcqRel);
        self.free.fetch_add(bytes, Ordering::AcqRel);
        if load(&self.cache) < self.sizes.cache.maximum {
            self.grow_cache();
        }
        self.wake();
    }

    /// At the end of an epoch, gives the cache what its reservations have left.
    fn grow_cache(&self) {
        let (mut state, now) = (self.lock(), Instant::now());
        let Some(total) = self.sizes.total.filter(|_| now - state.epoch_began >= EPOCH) else { return };
        let cache = load(&self.cache);
        let left = total.saturating_sub(load(&self.epoch_largest));
        let more = left.min(self.sizes.cache.maximum).saturating_sub(cache);
        if more > 0 && subtract(&self.free, more) {
            trim_heap();
            let larger = (self.resize_cache)(cache + more);
            self.cache.store(larger, Ordering::Release);
            self.free.fetch_add(cache + more - larger, Ordering::AcqRel);
        }
        state.epoch_began = now;
        let reserved = self.reserved.iter().map(load).sum();
        self.epoch_largest.store(reserved, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn load(value: &AtomicU64) -> u64 {
    value.load(Ordering::Acquire)
}

/// Adds bytes unless the sum would exceed a maximum. Returns the sum.
fn add_up_to(value: &AtomicU64, bytes: u64, maximum: u64) -> Option<u64> {
    let sum = |value: u64| value.checked_add(bytes).filter(|sum| *sum <= maximum);
    value.fetch_update(Ordering::AcqRel, Ordering::Acquire, sum).ok().map(|before| before + bytes)
}

/// Subtracts bytes unless there are fewer.
fn subtract(value: &AtomicU64, bytes: u64) -> bool {
    let rest = |value: u64| value.checked_sub(bytes);
    value.fetch_update(Ordering::AcqRel, Ordering::Acquire, rest).is_ok()
}

impl Waiter<'_> {
    /// Reserves bytes if they are available and the evaluation is the first in the wait queue.
    pub(super) fn try_reserve(&self, bytes: u64) -> Option<Reservation> {
        let kind = PoolUse::Evaluations;
        let mut state = self.pool.lock();
        let is_first = state.wait_queue.first().is_some_and(|first| first.number == self.number);
        let taken = is_first && self.pool.take_of_maximum(&mut state, kind, bytes);
        taken.then(|| Reservation { pool: self.pool.clone(), kind, bytes })
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.pool.lock().wait_queue.retain(|waiting| waiting.number != self.number);
        self.pool.waiting.fetch_sub(1, Ordering::AcqRel);
        self.pool.wake();
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
