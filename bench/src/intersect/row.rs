//! Measurements of an algorithm at a point of a sweep.

use crate::intersection::{Algorithm, ReadStats};
use serde_json::{Value, json};

/// An algorithm at a point of a sweep, or over all queries.
#[derive(Clone, Debug)]
pub struct SweepRow {
    /// Name of the sweep.
    pub sweep: &'static str,
    /// Value of the parameter.
    pub x: f64,
    /// Label of the point.
    pub label: String,
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Number of threads of the algorithm.
    pub threads: usize,
    /// Number of queries that the figures are sums over.
    pub queries: usize,
    /// Time in seconds.
    pub seconds: f64,
    /// CPU time of all threads in seconds.
    pub cpu_seconds: f64,
    /// Reads and pages.
    pub reads: ReadStats,
    /// Number of pages of the lists.
    pub pages: u64,
    /// Number of ids in the intersections.
    pub found: u64,
}

impl SweepRow {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "sweep": self.sweep,
            "x": self.x,
            "label": self.label,
            "algorithm": self.algorithm.name(),
            "threads": self.threads,
            "queries": self.queries,
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "pages_read": self.reads.pages,
            "bytes_read": self.reads.bytes,
            "reads": self.reads.reads,
            "pages_in_memory": self.reads.resident,
            "pages_skipped": self.reads.skipped,
            "pages": self.pages,
            "false_positives": self.reads.false_positives,
            "found": self.found,
        })
    }
}
