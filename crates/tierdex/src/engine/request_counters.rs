//! Counters of the requests of one priority.

use super::latency::{Latencies, LatencyHistogram};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Requests of one priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestMetrics {
    /// Queued requests.
    pub queued: u64,
    /// Time that the oldest of them has waited.
    pub oldest_wait: Duration,
    /// Running evaluations; a request that is divided among threads has several.
    pub running: u64,
    /// Requests whose evaluation has ended, with a result or an error.
    pub answered: u64,
    /// Requests that were cancelled in the queue.
    pub cancelled: u64,
    /// Requests whose deadline passed in the queue.
    pub expired: u64,
    /// Time that the answered requests waited in the queue, as a sum.
    pub queued_time: Duration,
    /// From the arrival of a request to its answer.
    pub latencies: Latencies,
}

/// Counters of the requests of one priority.
#[derive(Default)]
pub(super) struct RequestCounters {
    pub(super) running: AtomicUsize,
    answered: AtomicU64,
    cancelled: AtomicU64,
    expired: AtomicU64,
    /// Nanoseconds.
    queued_time: AtomicU64,
    latencies: LatencyHistogram,
}

impl RequestCounters {
    /// Counts a request that is answered.
    pub(super) fn add_answered(&self, queued: Duration, took: Duration) {
        self.answered.fetch_add(1, Ordering::Relaxed);
        self.queued_time.fetch_add(queued.as_nanos() as u64, Ordering::Relaxed);
        self.latencies.add(took);
    }

    /// Number of requests that were answered.
    pub(super) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }

    /// Counts a request that leaves the queue without an evaluation.
    pub(super) fn add_expired(&self, is_cancelled: bool) {
        let counter = if is_cancelled { &self.cancelled } else { &self.expired };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// The counters with those of the queue.
    pub(super) fn metrics(&self, queued: usize, oldest_wait: Duration) -> RequestMetrics {
        RequestMetrics {
            queued: queued as u64,
            oldest_wait,
            running: self.running.load(Ordering::Relaxed) as u64,
            answered: self.answered.load(Ordering::Relaxed),
            cancelled: self.cancelled.load(Ordering::Relaxed),
            expired: self.expired.load(Ordering::Relaxed),
            queued_time: Duration::from_nanos(self.queued_time.load(Ordering::Relaxed)),
            latencies: self.latencies.quantiles(),
        }
    }
}
