//! What a cell's process found, as JSON on one line.

use super::task::Members;
use crate::{Error, Result};
use serde_json::{Value, json};

/// What a cell's process found in its second repetition, unless it says otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Seconds of the first repetition and of the second one.
    pub first_seconds: f64,
    /// The second one.
    pub seconds: f64,
    /// Queries of a repetition.
    pub queries: u64,
    /// Latency in microseconds, from when a thread began to answer a query: median and 99th percentile.
    pub p50: f64,
    /// The 99th.
    pub p99: f64,
    /// Bytes read from files; what a worker of the page cache copies, the query reads again.
    pub bytes_read: u64,
    /// Of these, bytes that the system fetched from the device; none if it does not say.
    pub bytes_fetched: Option<u64>,
    /// Lists found in the cache, and not; none without one.
    pub lists: Option<Lists>,
    /// Queries fetched ahead at most, in both repetitions.
    pub lookahead_max: u64,
    /// How many queries had ended, and how many were fetched ahead then.
    pub samples: Vec<(u64, u64)>,
    /// Documents that match, if they were counted, and hits.
    pub matches: u64,
    /// Hits.
    pub hits: u64,
    /// All hits of both repetitions, documents and bits of scores, and the matches.
    pub checksum: u64,
    /// How files were read.
    pub engine: String,
    /// Why not in the way that was asked for.
    pub fallback: Option<String>,
    /// What the executor said it would take of ordinary memory.
    pub planned: u64,
    /// Memory of the process at most, as the system counts it for processes: with pages of files that it maps.
    pub process_peak: u64,
    /// Memory of the group at the end: of its own, and of the page cache.
    pub own: Option<u64>,
    /// Page cache.
    pub page_cache: Option<u64>,
}

/// Lists that queries asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// Found in the cache, or on their way.
    pub hits: u64,
    /// Not found.
    pub misses: u64,
    /// Of these, streamed.
    pub streamed: u64,
    /// Lists that gave way.
    pub evictions: u64,
    /// How often a query waited.
    pub waits: u64,
    /// Reads.
    pub reads: u64,
}

impl Lists {
    /// Misses as a part of all.
    pub fn miss_rate(&self) -> f64 {
        self.misses as f64 / (self.hits + self.misses).max(1) as f64
    }
}

impl Measured {
    /// Queries a second.
    pub fn qps(&self) -> f64 {
        self.queries as f64 / self.seconds.max(1e-9)
    }

    /// Of the first repetition.
    pub fn first_qps(&self) -> f64 {
        self.queries as f64 / self.first_seconds.max(1e-9)
    }

    /// Misses as a part of all lists; none without a cache.
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
            // As text: JSON has no numbers of 64 bits that everybody reads.
            "checksum": format!("{:016x}", self.checksum),
            "engine": self.engine,
            "fallback": self.fallback,
            "planned_bytes": self.planned,
            "process_peak_bytes": self.process_peak,
            "group_own_bytes": self.own,
            "group_page_cache_bytes": self.page_cache,
        })
    }

    /// Reads what [`Measured::to_json`] wrote.
    ///
    /// # Errors
    /// If a member is missing or is not what it should be.
    pub(super) fn from_json(value: &Value) -> Result<Measured> {
        let read = Members(value);
        let lists = value.get("lists").filter(|lists| !lists.is_null()).map(|lists| {
            let read = Members(lists);
            Ok::<_, Error>(Lists {
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
        Ok(Measured {
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
            checksum: checksum.map_err(|_| Error::Failed("a checksum is no number".to_string()))?,
            engine: read.text("engine")?.to_string(),
            fallback: value["fallback"].as_str().map(str::to_string),
            planned: read.number("planned_bytes")?,
            process_peak: read.number("process_peak_bytes")?,
            own: value["group_own_bytes"].as_u64(),
            page_cache: value["group_page_cache_bytes"].as_u64(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_read_as_it_is_written() {
        let some = Measured {
            seconds: 0.25,
            queries: 10,
            lists: Some(Lists { hits: 1, misses: 3, ..Lists::default() }),
            samples: vec![(1, 2), (3, 4)],
            checksum: u64::MAX - 1,
            fallback: Some("why".to_string()),
            own: Some(5),
            bytes_fetched: Some(6),
            ..Measured::default()
        };
        for measured in [some, Measured::default()] {
            let line = measured.to_json().to_string();
            assert_eq!(Measured::from_json(&serde_json::from_str(&line).unwrap()).unwrap(), measured);
        }
        assert!(Measured::from_json(&json!({"qps": 1})).is_err());
        assert_eq!(Lists { hits: 1, misses: 3, ..Lists::default() }.miss_rate(), 0.75);
    }
}
