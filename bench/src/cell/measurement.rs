//! The output of a cell's process, one line of JSON.

use crate::counters::EventCounts;
use serde::{Deserialize, Serialize};

/// The measurements of a cell. Figures are of the second repetition unless stated otherwise. Programs of
/// other builds may leave out those that have a default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellMeasurement {
    /// Seconds of the first repetition.
    #[serde(default)]
    pub first_seconds: f64,
    /// Seconds of the second repetition; the mean, if it was itself repeated.
    pub seconds: f64,
    /// Number of queries of a repetition.
    pub queries: u64,
    /// Median latency in microseconds, from the start of the evaluation of a query.
    #[serde(default, rename = "p50_us")]
    pub p50: f64,
    /// 99th percentile of the latency in microseconds.
    #[serde(default, rename = "p99_us")]
    pub p99: f64,
    /// Bytes read from files. Bytes that are prefetched into the page cache count a second time when the
    /// query reads them.
    #[serde(default)]
    pub bytes_read: u64,
    /// Bytes that the kernel read from the device; `None` if it does not report them.
    pub bytes_fetched: Option<u64>,
    /// Counters of the cache of lists or pages; `None` without one.
    pub lists: Option<CacheCounters>,
    /// Largest lookahead in queries, over both repetitions.
    #[serde(default)]
    pub lookahead_max: u64,
    /// Lookahead samples: completed queries, and queries prefetched at that time.
    #[serde(default, rename = "lookahead_samples")]
    pub samples: Vec<(u64, u64)>,
    /// Sum of matching documents, 0 if they were not counted.
    #[serde(default)]
    pub matches: u64,
    /// Sum of hits.
    #[serde(default)]
    pub hits: u64,
    /// Checksum over both repetitions of all hits (document and score bits) and numbers of matches.
    #[serde(with = "checksum_text")]
    pub checksum: u64,
    /// Description of the I/O engine.
    #[serde(default)]
    pub engine: String,
    /// Why the requested I/O engine was not used.
    pub fallback: Option<String>,
    /// Bytes of DRAM that are needed according to the memory report.
    #[serde(default, rename = "planned_bytes")]
    pub planned: u64,
    /// Peak resident memory of the process in bytes, pages of mapped files included.
    #[serde(default, rename = "process_peak_bytes")]
    pub process_peak: u64,
    /// Memory of the control group without page cache at the end, in bytes.
    #[serde(rename = "group_own_bytes")]
    pub own: Option<u64>,
    /// Page cache of the control group at the end, in bytes.
    #[serde(rename = "group_page_cache_bytes")]
    pub page_cache: Option<u64>,
    /// Counts of events of the processor; `None` if they were not to be counted.
    pub counters: Option<EventCounts>,
}

/// Counters of requests to the cache of lists, or of an engine's requests for pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheCounters {
    /// Lists or pages that were cached or being fetched.
    pub hits: u64,
    /// Requested lists or pages that were neither.
    pub misses: u64,
    /// Misses that were not cached, as the cache had too few free cells.
    pub streamed: u64,
    /// Evicted lists or pages.
    pub evictions: u64,
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
            streamed: self.streamed - earlier.streamed,
            evictions: self.evictions - earlier.evictions,
            waits: self.waits - earlier.waits,
            reads: self.reads - earlier.reads,
        }
    }

    /// Misses as a share of all requests.
    pub fn miss_rate(&self) -> f64 {
        self.misses as f64 / (self.hits + self.misses).max(1) as f64
    }
}

impl CellMeasurement {
    /// Queries per second.
    pub fn qps(&self) -> f64 {
        self.queries as f64 / self.seconds.max(1e-9)
    }

    /// Queries per second of the first repetition.
    pub fn first_qps(&self) -> f64 {
        self.queries as f64 / self.first_seconds.max(1e-9)
    }

    /// Misses as a share of all requests; `None` without a cache.
    pub fn miss_rate(&self) -> Option<f64> {
        self.lists.map(|lists| lists.miss_rate())
    }
}

/// Checksums in JSON: texts, because many JSON readers do not keep all 64 bits of a number.
mod checksum_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(checksum: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{checksum:016x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        u64::from_str_radix(&String::deserialize(from)?, 16).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_round_trips_through_json() {
        let some = CellMeasurement {
            seconds: 0.25,
            queries: 10,
            lists: Some(CacheCounters { hits: 1, misses: 3, ..CacheCounters::default() }),
            samples: vec![(1, 2), (3, 4)],
            checksum: u64::MAX - 1,
            fallback: Some("why".to_string()),
            own: Some(5),
            bytes_fetched: Some(6),
            counters: serde_json::from_str(r#"{"cycles": [1, 2, 3]}"#).ok(),
            ..CellMeasurement::default()
        };
        for measured in [some, CellMeasurement::default()] {
            let line = serde_json::to_string(&measured).unwrap();
            assert_eq!(serde_json::from_str::<CellMeasurement>(&line).unwrap(), measured);
        }
        assert!(serde_json::from_str::<CellMeasurement>(r#"{"queries": 1}"#).is_err());
        assert_eq!(CacheCounters { hits: 1, misses: 3, ..CacheCounters::default() }.miss_rate(), 0.75);
    }
}
