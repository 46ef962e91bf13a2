//! The output of a cell's process, one line of JSON.

use serde::{Serialize, Serializer};

/// The measurements of a cell. Figures are of the second repetition unless stated otherwise.
#[derive(Debug, Default, Serialize)]
pub struct CellMeasurement {
    /// Seconds of the first repetition.
    pub first_seconds: f64,
    /// Seconds of the second repetition; the mean, if it was itself repeated.
    pub seconds: f64,
    /// Number of queries of a repetition.
    pub queries: u64,
    /// Median latency in microseconds, from the start of the evaluation of a query.
    #[serde(rename = "p50_us")]
    pub p50: f64,
    /// 99th percentile of the latency in microseconds.
    #[serde(rename = "p99_us")]
    pub p99: f64,
    /// Bytes read from files. Bytes that are prefetched into the page cache count a second time when the
    /// query reads them.
    pub bytes_read: u64,
    /// Bytes that the kernel read from the device; `None` if it does not report them.
    pub bytes_fetched: Option<u64>,
    /// Counters of the cache of lists or pages; `None` without one.
    pub lists: Option<CacheCounters>,
    /// Lookahead samples: completed queries, and queries prefetched at that time.
    #[serde(rename = "lookahead_samples")]
    pub samples: Vec<(u64, u64)>,
    /// Sum of matching documents, 0 if they were not counted.
    pub matches: u64,
    /// Sum of hits.
    pub hits: u64,
    /// Checksum over both repetitions of all hits (document and score bits) and numbers of matches.
    #[serde(serialize_with = "checksum_text")]
    pub checksum: u64,
    /// Description of the I/O engine.
    pub engine: String,
    /// Bytes of DRAM that are needed according to the memory report.
    #[serde(rename = "planned_bytes")]
    pub planned: u64,
}

/// Counters of requests to the cache of lists, or of an engine's requests for pages.
#[derive(Debug, Serialize)]
pub struct CacheCounters {
    /// Lists or pages that were cached or being fetched.
    pub hits: u64,
    /// Requested lists or pages that were neither.
    pub misses: u64,
    /// Times a query waited for a list or a page.
    pub waits: u64,
    /// Completed reads.
    pub reads: u64,
}

impl CacheCounters {
    /// The counts since an earlier time.
    pub(super) fn since(&self, earlier: &CacheCounters) -> CacheCounters {
        CacheCounters {
            hits: self.hits - earlier.hits,
            misses: self.misses - earlier.misses,
            waits: self.waits - earlier.waits,
            reads: self.reads - earlier.reads,
        }
    }
}

/// A checksum as text, because many JSON readers do not keep all 64 bits of a number.
fn checksum_text<S: Serializer>(checksum: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{checksum:016x}"))
}
