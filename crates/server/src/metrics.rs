//! Counters and histograms of the requests to a server.

use hdrhistogram::Histogram as Latencies;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Labels of an answered request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RouteLabels {
    pub(crate) route: String,
    pub(crate) status: u16,
}

/// Requests that were rejected, by reason.
#[derive(Default)]
pub(crate) struct Refused {
    wait: AtomicU64,
    bytes: AtomicU64,
    connections: AtomicU64,
    quota: AtomicU64,
    handshake: AtomicU64,
    body: AtomicU64,
}

/// Counters and histograms of requests.
pub(crate) struct Metrics {
    pub(crate) requests: Family<RouteLabels, Counter>,
    pub(crate) answered: AtomicU64,
    pub(crate) cancelled: AtomicU64,
    pub(crate) refused: Refused,
    /// Files of keys or of the certificate that could not be read again.
    pub(crate) reload_failures: AtomicU64,
    pub(crate) request_seconds: Histogram,
    pub(crate) queue_seconds: Histogram,
    pub(crate) read_bytes: Histogram,
    /// Microseconds of the searches since the last sample, up to a minute, within 1%.
    recent: Mutex<Latencies<u32>>,
}

impl Refused {
    /// The expected wait was too long.
    pub(crate) fn wait(&self) {
        self.wait.fetch_add(1, Ordering::Relaxed);
    }

    /// No memory was left for the request.
    pub(crate) fn bytes(&self) {
        self.bytes.fetch_add(1, Ordering::Relaxed);
    }

    /// All connections were busy.
    pub(crate) fn connections(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// The key had too many requests in progress.
    pub(crate) fn quota(&self) {
        self.quota.fetch_add(1, Ordering::Relaxed);
    }

    /// The handshake of TLS failed, or took too long.
    pub(crate) fn handshake(&self) {
        self.handshake.fetch_add(1, Ordering::Relaxed);
    }

    /// The body was too large or too slow.
    pub(crate) fn body(&self) {
        self.body.fetch_add(1, Ordering::Relaxed);
    }

    /// All, with their reasons.
    pub(crate) fn counts(&self) -> [(&'static str, u64); 6] {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [
            ("wait", load(&self.wait)),
            ("bytes", load(&self.bytes)),
            ("connections", load(&self.connections)),
            ("quota", load(&self.quota)),
            ("handshake", load(&self.handshake)),
            ("body", load(&self.body)),
        ]
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        let seconds = || Histogram::new(exponential_buckets(1e-4, 2.0, 19));
        Metrics {
            requests: Family::default(),
            answered: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            refused: Refused::default(),
            reload_failures: AtomicU64::new(0),
            request_seconds: seconds(),
            queue_seconds: seconds(),
            read_bytes: Histogram::new(exponential_buckets(4096.0, 4.0, 10)),
            recent: Mutex::new(Latencies::new_with_bounds(1, 60_000_000, 2).expect("the bounds are valid")),
        }
    }
}

impl Metrics {
    /// Counts a search that was answered.
    pub(crate) fn add_search(&self, took: Duration, queued: Duration, read_bytes: u64) {
        self.answered.fetch_add(1, Ordering::Relaxed);
        self.request_seconds.observe(took.as_secs_f64());
        self.queue_seconds.observe(queued.as_secs_f64());
        self.read_bytes.observe(read_bytes as f64);
        self.recent().saturating_record(took.as_micros() as u64);
    }

    /// The 50th, 99th and 99.9th percentile of the searches since the last call, in microseconds; `None` if
    /// there were none.
    pub(crate) fn take_recent(&self) -> Option<[u64; 3]> {
        let mut recent = self.recent();
        let found =
            (!recent.is_empty()).then(|| [0.5, 0.99, 0.999].map(|part| recent.value_at_quantile(part)));
        recent.reset();
        found
    }

    fn recent(&self) -> MutexGuard<'_, Latencies<u32>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
