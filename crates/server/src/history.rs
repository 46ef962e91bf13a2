//! Samples of the last minutes, one a second, for charts.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Samples that are kept.
pub(crate) const SAMPLES: usize = 600;

/// One second of a server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServerSample {
    /// Seconds since 1970.
    pub(crate) time: u64,
    pub(crate) answered: u64,
    pub(crate) refused: u64,
    /// Percentiles in microseconds; `None` without a search.
    pub(crate) latencies: Option<[u64; 3]>,
    pub(crate) queued: u64,
    pub(crate) running: u64,
    /// `None` if no page was requested.
    pub(crate) cache_hit_rate: Option<f64>,
    pub(crate) read_bytes: u64,
    pub(crate) expected_wait_us: u64,
    pub(crate) connections: u64,
    pub(crate) cache_bytes: u64,
}

/// The last samples.
#[derive(Default)]
pub(crate) struct History(Mutex<VecDeque<ServerSample>>);

impl History {
    /// The newest `seconds` samples, the oldest first.
    pub(crate) fn last(&self, seconds: usize) -> Vec<ServerSample> {
        let samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        samples.iter().skip(samples.len().saturating_sub(seconds)).copied().collect()
    }

    pub(crate) fn push(&self, sample: ServerSample) {
        let mut samples = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() == SAMPLES {
            samples.pop_front();
        }
        samples.push_back(sample);
    }
}
