//! The output of a cell's process, one line of JSON.

use super::json_object::JsonObject;
use crate::counters::EventCounts;
use crate::{Error, Result};
use serde_json::{Value, json};

/// The measurements of a cell. Figures are of the second repetition unless stated otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellMeasurement {
    /// Seconds of the first repetition.
    pub first_seconds: f64,
    /// Seconds of the second repetition; the mean, if it was itself repeated.
    pub seconds: f64,
    /// Number of queries of a repetition.
    pub queries: u64,
    /// Median latency in microseconds, from the start of the evaluation of a query.
    pub p50: f64,
    /// 99th percentile of the latency in microseconds.
    pub p99: f64,
    /// Bytes read from files. Bytes that the page cache worker prefetches count a second time when the query
    /// reads them.
    pub bytes_read: u64,
    /// Bytes that the kernel read from the device; `None` if it does not report them.
    pub bytes_fetched: Option<u64>,
    /// Counters of the postings cache; `None` without one.
    pub lists: Option<CacheCounters>,
    /// Largest lookahead in queries, over both repetitions.
    pub lookahead_max: u64,
    /// Lookahead samples: completed queries, and queries prefetched at that time.
    pub samples: Vec<(u64, u64)>,
    /// Sum of matching documents, 0 if they were not counted.
    pub matches: u64,
    /// Sum of hits.
    pub hits: u64,
    /// Checksum over both repetitions of all hits (document and score bits) and numbers of matches.
    pub checksum: u64,
    /// Description of the I/O engine.
    pub engine: String,
    /// Why the requested I/O engine was not used.
    pub fallback: Option<String>,
    /// DRAM in bytes that the executor planned to use.
    pub planned: u64,
    /// Peak resident memory of the process in bytes, pages of mapped files included.
    pub process_peak: u64,
    /// Memory of the control group without page cache at the end, in bytes.
    pub own: Option<u64>,
    /// Page cache of the control group at the end, in bytes.
    pub page_cache: Option<u64>,
    /// Counts of events of the processor; `None` if they were not to be counted.
    pub counters: Option<EventCounts>,
}

/// Counters of list requests to the postings cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Lists that were cached or being fetched.
    pub hits: u64,
    /// Lists that were not.
    pub misses: u64,
    /// Missed lists that were streamed.
    pub streamed: u64,
    /// Evicted lists.
    pub evictions: u64,
    /// Times a query waited for a list.
    pub waits: u64,
    /// Reads.
    pub reads: u64,
}

impl CacheCounters {
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

    pub(super) fn to_json(&self) -> Value {
        let lists = self.lists.map(|lists| {
            json!({
                "hits": lists.hits,
                "misses": lists.misses,
                "streamed": lists.streamed,
                "evictions": lists.evictions,
                "waits": lists.waits,
                "reads": lists.reads,
                "miss_rate": lists.miss_rate(),
            })
        });
        json!({
            "qps": self.qps(),
            "first_qps": self.first_qps(),
            "p50_us": self.p50,
            "p99_us": self.p99,
            "seconds": self.seconds,
            "first_seconds": self.first_seconds,
            "queries": self.queries,
            "bytes_read": self.bytes_read,
            "bytes_fetched": self.bytes_fetched,
            "lists": lists,
            "lookahead_max": self.lookahead_max,
            "lookahead_samples": self.samples,
            "matches": self.matches,
            "hits": self.hits,
            // A string, because many JSON readers do not keep all 64 bits of a number.
            "checksum": format!("{:016x}", self.checksum),
            "engine": self.engine,
            "fallback": self.fallback,
            "planned_bytes": self.planned,
            "process_peak_bytes": self.process_peak,
            "group_own_bytes": self.own,
            "group_page_cache_bytes": self.page_cache,
            "counters": self.counters.as_ref().map(EventCounts::to_json),
        })
    }

    /// Parses the output of [`CellMeasurement::to_json`].
    ///
    /// # Errors
    /// If a member is missing or has the wrong type.
    pub(super) fn from_json(value: &Value) -> Result<CellMeasurement> {
        let read = JsonObject(value);
        let lists = value.get("lists").filter(|lists| !lists.is_null()).map(|lists| {
            let read = JsonObject(lists);
            Ok::<_, Error>(CacheCounters {
                hits: read.number("hits")?,
                misses: read.number("misses")?,
                streamed: read.number("streamed")?,
                evictions: read.number("evictions")?,
                waits: read.number("waits")?,
                reads: read.number("reads")?,
            })
        });
        let sample = |sample: &Value| Some((sample[0].as_u64()?, sample[1].as_u64()?));
        let checksum = u64::from_str_radix(read.text("checksum")?, 16);
        Ok(CellMeasurement {
            first_seconds: read.float("first_seconds")?,
            seconds: read.float("seconds")?,
            queries: read.number("queries")?,
            p50: read.float("p50_us")?,
            p99: read.float("p99_us")?,
            bytes_read: read.number("bytes_read")?,
            bytes_fetched: value["bytes_fetched"].as_u64(),
            lists: lists.transpose()?,
            lookahead_max: read.number("lookahead_max")?,
            samples: read.list("lookahead_samples")?.iter().filter_map(sample).collect(),
            matches: read.number("matches")?,
            hits: read.number("hits")?,
            checksum: checksum
                .map_err(|_| Error::Failed("the checksum is not a hexadecimal number".to_string()))?,
            engine: read.text("engine")?.to_string(),
            fallback: value["fallback"].as_str().map(str::to_string),
            planned: read.number("planned_bytes")?,
            process_peak: read.number("process_peak_bytes")?,
            own: value["group_own_bytes"].as_u64(),
            page_cache: value["group_page_cache_bytes"].as_u64(),
            counters: EventCounts::from_json(&value["counters"]),
        })
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
            counters: EventCounts::from_json(&json!({ "cycles": [1, 2, 3] })),
            ..CellMeasurement::default()
        };
        for measured in [some, CellMeasurement::default()] {
            let line = measured.to_json().to_string();
            assert_eq!(CellMeasurement::from_json(&serde_json::from_str(&line).unwrap()).unwrap(), measured);
        }
        assert!(CellMeasurement::from_json(&json!({"qps": 1})).is_err());
        assert_eq!(CacheCounters { hits: 1, misses: 3, ..CacheCounters::default() }.miss_rate(), 0.75);
    }
}
