//! What was measured: an algorithm at a point of a sweep.

use crate::intersection::{Algorithm, Reads};
use serde_json::{Value, json};

/// An algorithm at a point of a sweep, or over all queries.
#[derive(Clone, Debug)]
pub struct Row {
    /// Name of the sweep.
    pub sweep: &'static str,
    /// Where it stands in a plot.
    pub x: f64,
    /// What the table calls it.
    pub label: String,
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Its threads.
    pub threads: usize,
    /// Intersections that the figures are the sums of: 1, or the number of queries.
    pub queries: usize,
    /// Median of the rounds, in seconds.
    pub seconds: f64,
    /// The fastest and the slowest round.
    pub spread: (f64, f64),
    /// Median of the rounds, in seconds of all threads.
    pub cpu_seconds: f64,
    /// What was read.
    pub reads: Reads,
    /// Pages of the lists.
    pub pages: u64,
    /// Ids that were found.
    pub found: u64,
}

impl Row {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "sweep": self.sweep,
            "x": self.x,
            "label": self.label,
            "algorithm": self.algorithm.name(),
            "threads": self.threads,
            "queries": self.queries,
            "seconds": self.seconds,
            "seconds_min": self.spread.0,
            "seconds_max": self.spread.1,
            "cpu_seconds": self.cpu_seconds,
            "pages_read": self.reads.pages,
            "bytes_read": self.reads.bytes,
            "reads": self.reads.reads,
            "pages_in_memory": self.reads.near,
            "pages_skipped": self.reads.skipped,
            "pages": self.pages,
            "false_positives": self.reads.false_positives,
            "found": self.found,
        })
    }
}
