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

mod as_text;
mod measure;
mod measurement;
mod processors;
mod queries;
mod query_kind;
mod reads;

pub use measurement::{CacheCounters, CellMeasurement};
pub use queries::CellQueries;
pub use query_kind::{QueryShape, TermClass};
pub use reads::{EngineReads, ListReads, Reads};

use crate::{Error, Result};
use serde::Deserialize;
use std::path::PathBuf;
use tierdex::{Bm25, SearchOptions, limits::DEFAULT_B, limits::DEFAULT_K1};

/// One measurement. Members that have a default may be left out.
#[derive(Debug, Deserialize)]
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
    #[serde(default = "number::<10>")]
    pub k: usize,
    /// Whether matches are counted.
    #[serde(default)]
    pub count: bool,
    /// Whether every matching document is scored.
    #[serde(default)]
    pub exhaustive: bool,
    /// BM25 k1: saturation of the term frequency [default: that of a search].
    pub k1: Option<f64>,
    /// BM25 b: weight of the document length, 0 to 1 [default: that of a search].
    pub b: Option<f64>,
    /// Query threads; of a searcher each is pinned to a processor.
    #[serde(default = "number::<1>")]
    pub threads: usize,
    /// Seconds that the second repetition takes at least: it is itself repeated until then [default: 0.25 for
    /// an index in memory, else 0].
    pub seconds: Option<f64>,
    /// Memory limit of the process in bytes. The process that starts this one creates the control group.
    #[serde(default, deserialize_with = "as_text::bytes")]
    pub limit: Option<u64>,
    /// Control groups that the process joins before it opens the index, and its processor.
    #[serde(default)]
    pub process: ProcessPlacement,
}

/// Control groups and processor of the process of a cell.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProcessPlacement {
    /// Files of control groups into which the process first writes its process id.
    pub join: Vec<PathBuf>,
    /// File of a control group that throttles reads, into which the process later writes its process id.
    pub throttle: Option<PathBuf>,
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
            scorer: Bm25::new(self.k1.unwrap_or(DEFAULT_K1), self.b.unwrap_or(DEFAULT_B))?.into(),
            ..SearchOptions::default()
        })
    }
}

fn number<const NUMBER: usize>() -> usize {
    NUMBER
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slow_tier::ReadDelay;
    use tierdex::{internal::cache::PolicyKind, io::RegionKind, io::Size};
    use tierdex_thesis::Lookahead;

    #[test]
    fn cells_are_parsed() {
        let parse = |members: &str| -> Cell {
            serde_json::from_str(&format!(r#"{{"index": "i", {members}}}"#)).unwrap()
        };
        let list = parse(
            r#""queries": {"terms": [["a", "ü\""], ["c", "d"]], "shape": "AND", "field": 3},
            "limit": "7", "b": 0,
            "reads": {"by": "lists", "mode": "base", "dram": "50M", "region": "file:/dev/shm/a", "size": "5%",
                "lookahead": "1023"},
            "process": {"join": ["/sys/fs/cgroup/x/cgroup.procs"], "processor": 1, "perf": ["c", "a"]}"#,
        );
        let Reads::Lists(reads) = &list.reads else { panic!("{list:?}") };
        let lookahead = Lookahead::Queries(1023);
        assert_eq!(
            (reads.dram, reads.size, reads.lookahead),
            (Some(50 << 20), Size::BasisPoints(500), lookahead)
        );
        assert_eq!((list.limit, list.k, list.threads, list.k1, list.b), (Some(7), 10, 1, None, Some(0.0)));
        let engine = parse(
            r#""queries": {"file": "q"}, "threads": 2,
            "reads": {"by": "engine", "size": "0.5%", "io": "pread", "policy": "sieve", "dram": null}"#,
        );
        let Reads::Engine(reads) = &engine.reads else { panic!("{engine:?}") };
        assert_eq!((reads.policy, reads.dram, reads.depth), (Some(PolicyKind::Sieve), None, 32));
        let memory = parse(
            r#""queries": {"texts": ["+a b"]},
            "reads": {"by": "searcher", "region": "numa:1", "slow-tier": "300,2.5"}"#,
        );
        let Reads::Searcher { region, slow_tier } = &memory.reads else { panic!("{memory:?}") };
        let slow = ReadDelay { nanoseconds: 300, gbps: Some(2.5) };
        assert_eq!((region, slow_tier), (&RegionKind::Numa(1), &Some(slow)));
    }

    #[test]
    fn wrong_reads_are_rejected_by_name() {
        for (reads, word) in [
            (r#"{"by": "lists", "segment": 0}"#, "segment"),
            (r#"{"by": "lists", "segment": 5000}"#, "segment"),
            (r#"{"by": "lists", "samples": 18446744073709551615}"#, "samples"),
            (r#"{"by": "lists", "lookahead": "0"}"#, "1023"),
            (r#"{"by": "lists", "lookahead": "pins"}"#, "1023"),
            (r#"{"by": "engine", "depth": 0}"#, "depth"),
            (r#"{"by": "engine", "region": "hugetlb"}"#, "region"),
            (r#"{"by": "engine", "dram": "x"}"#, "size"),
            (r#"{"by": "engine", "mode": "base"}"#, "mode"),
            (r#"{"by": "disk"}"#, "disk"),
        ] {
            let text = format!(r#"{{"index": "i", "queries": {{"texts": []}}, "reads": {reads}}}"#);
            let cell = serde_json::from_str::<Cell>(&text).map_err(|error| error.to_string());
            let checked = cell.and_then(|cell| cell.check().map_err(|error| error.to_string()));
            let error = checked.unwrap_err();
            assert!(error.contains(word) && !error.contains('\n'), "{reads}: {error}");
        }
    }
}
