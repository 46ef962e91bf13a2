//! One measurement of queries over an index: a [`Cell`].
//!
//! *Input*: a cell, as JSON: which index, which queries, and how they are read and answered. *Output*: a
//! [`CellMeasurement`], as one line of JSON.
//!
//! ```
//! let cell: tierdex_bench::cell::Cell = serde_json::from_str(
//!     r#"{
//!         "index": "my-index",
//!         "queries": { "texts": ["+solid +state", "disk"] },
//!         "reads": { "by": "engine", "dram": "50M" },
//!         "k": 10
//!     }"#,
//! )?;
//! assert_eq!(cell.threads, 1);
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! `tierdex-bench cell` reads a cell from its standard input, so each measurement has a process of its own.
//! The [`driver`](crate::driver) makes cells; its command `compare` runs any cells with two builds.

mod as_size;
pub(crate) mod as_text;
mod measure;
mod measurement;
mod memory_plan;
mod processors;
mod queries;
mod query_kind;
mod reads;

pub use measure::measure_cell;
pub use measurement::{CacheCounters, CellMeasurement};
pub(crate) use memory_plan::set_memory_limit;
pub use queries::CellQueries;
pub use query_kind::{QueryShape, TermClass};
pub use reads::{EngineReads, ListReads, Reads};

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use tierdex::{Bm25, SearchOptions, limits::DEFAULT_B, limits::DEFAULT_K1};

/// One measurement. Members that have a default may be left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Directory of the index.
    pub index: PathBuf,
    /// The queries, in one of several forms.
    pub queries: CellQueries,
    /// How lists are read.
    #[serde(default)]
    pub reads: Reads,
    /// Hits per query.
    #[serde(default = "default_hits")]
    pub k: usize,
    /// Whether matches are counted.
    #[serde(default)]
    pub count: bool,
    /// Whether every matching document is scored.
    #[serde(default)]
    pub exhaustive: bool,
    /// BM25 k1: saturation of the term frequency.
    #[serde(default = "default_k1")]
    pub k1: f64,
    /// BM25 b: weight of the document length, 0 to 1.
    #[serde(default = "default_b")]
    pub b: f64,
    /// Query threads; of a searcher each is pinned to a processor.
    #[serde(default = "default_threads")]
    pub threads: usize,
    /// Seconds that the second repetition takes at least: it is itself repeated until then [default: 0.25 for
    /// an index in memory, else 0].
    pub seconds: Option<f64>,
    /// Memory limit of the process in bytes. The process that starts this one creates the control group.
    #[serde(default, with = "as_size")]
    pub limit: Option<u64>,
    /// Control groups that the process joins before it opens the index, and its processor.
    #[serde(default)]
    pub process: ProcessPlacement,
}

/// Control groups and processor of the process of a cell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProcessPlacement {
    /// Files of control groups into which the process first writes its process id.
    pub join: Vec<PathBuf>,
    /// File of a control group that throttles reads, into which the process later writes its process id.
    pub throttle: Option<PathBuf>,
    /// The memory statistics file of the control group.
    pub stat: Option<PathBuf>,
    /// Pipes of `perf stat --control`: that for commands, and that for their acknowledgements. Events are
    /// counted during the second repetition.
    pub perf: Option<(PathBuf, PathBuf)>,
    /// Number of the processor to which the process is pinned with all its threads.
    pub processor: Option<usize>,
}

impl Cell {
    /// Rejects values that no measurement can have.
    ///
    /// # Errors
    /// [`Error::Usage`] with the member.
    pub(crate) fn check(&self) -> Result<()> {
        if self.threads == 0 {
            return Err(Error::Usage("`threads` must be 1 or more".to_string()));
        }
        self.reads.check()
    }

    /// The search options.
    ///
    /// # Errors
    /// If a parameter of BM25 is out of its range.
    pub(crate) fn search(&self) -> Result<SearchOptions> {
        Ok(SearchOptions {
            k: self.k,
            exhaustive: self.exhaustive,
            count: self.count,
            scorer: Bm25::new(self.k1, self.b)?.into(),
            ..SearchOptions::default()
        })
    }
}

fn default_hits() -> usize {
    10
}

fn default_k1() -> f64 {
    DEFAULT_K1
}

fn default_b() -> f64 {
    DEFAULT_B
}

fn default_threads() -> usize {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_round_trips_through_json() {
        let list = r#"{"index": "i", "queries": {"terms": [["a", "ü\""], ["c", "d"]], "shape": "AND", "field": 3},
            "reads": {"by": "lists", "mode": "base", "dram": "50M", "region": "file:/dev/shm/a", "size": "5%"},
            "k": 1024, "count": true, "k1": 0.9, "b": 0, "limit": "7",
            "process": {"join": ["/sys/fs/cgroup/x/cgroup.procs"], "processor": 1, "perf": ["c", "a"]}}"#;
        let engine = r#"{"index": "i", "queries": {"file": "q"}, "threads": 2,
            "reads": {"by": "engine", "size": "0.5%", "io": "pread", "policy": "sieve"}}"#;
        let memory = r#"{"index": "i", "queries": {"texts": ["+a b"]},
            "reads": {"by": "searcher", "region": "numa:1", "slow-tier": "300,2.5"}}"#;
        for text in [list, engine, memory] {
            let cell: Cell = serde_json::from_str(text).unwrap();
            let again = serde_json::to_string(&cell).unwrap();
            assert_eq!(serde_json::from_str::<Cell>(&again).unwrap(), cell, "{again}");
        }
    }

    #[test]
    fn impossible_values_are_rejected() {
        for (members, word) in [
            (r#""threads": 0"#, "threads"),
            (r#""reads": {"by": "lists", "mode": "hybrid", "segment": 0}"#, "segment"),
            (r#""reads": {"by": "lists", "mode": "hybrid", "segment": 5000}"#, "segment"),
            (r#""reads": {"by": "lists", "mode": "hybrid", "samples": 18446744073709551615}"#, "samples"),
            (r#""reads": {"by": "engine", "depth": 0}"#, "depth"),
            (r#""reads": {"by": "engine", "region": "hugetlb"}"#, "region"),
        ] {
            let text = format!(r#"{{"index": "i", "queries": {{"texts": ["a"]}}, {members}}}"#);
            let error = serde_json::from_str::<Cell>(&text).unwrap().check().unwrap_err().to_string();
            assert!(error.contains(word) && !error.contains('\n'), "{text}: {error}");
        }
    }

    #[test]
    fn a_wrong_member_is_named() {
        let wrong = [
            (r#"{"index": "i"}"#, "queries"),
            (r#"{"index": "i", "queries": {"texts": []}, "hits": 3}"#, "hits"),
            (r#"{"index": "i", "queries": {"texts": []}, "reads": {"by": "engine", "dram": "x"}}"#, "size"),
            (
                r#"{"index": "i", "queries": {"texts": []}, "reads": {"by": "engine", "mode": "base"}}"#,
                "mode",
            ),
            (r#"{"index": "i", "queries": {"texts": []}, "reads": {"by": "disk"}}"#, "disk"),
        ];
        for (text, word) in wrong {
            let error = serde_json::from_str::<Cell>(text).unwrap_err().to_string();
            assert!(error.contains(word) && !error.contains('\n'), "{text}: {error}");
        }
    }
}
