//! The input of a cell's process, one line of JSON: the index, the queries, the settings and the limits.

use super::cell::TableCell;
use super::flags::Flags;
use super::json_object::JsonObject;
use super::mode::{CellMode, read_lookahead, show_lookahead};
use super::queries::DrawnQueries;
use super::query_kind::QueryShape;
use crate::counters::CounterSet;
use crate::{Error, HeldIndexFlags, Result};
use serde_json::{Value, json};
use std::path::PathBuf;
use tierdex::cache::{Lookahead, PolicyKind};
use tierdex::engine::{ExecutorOptions, MetaTier, Mode};
use tierdex::index::SearchOptions;
use tierdex::io::{EngineKind, EngineOptions, RegionKind, Size};
use tierdex::rank::Bm25;

/// The settings of one cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CellTask {
    pub(super) index: PathBuf,
    /// Files of control groups into which the process first writes its process id.
    pub(super) join: Vec<PathBuf>,
    /// The same of a control group that throttles reads.
    pub(super) throttle: Option<PathBuf>,
    /// The memory statistics file of the cell's control group.
    pub(super) stat: Option<PathBuf>,
    /// Number of the processor to which the process is pinned with all its threads.
    pub(super) processor: Option<usize>,
    pub(super) mode: CellMode,
    pub(super) region: RegionKind,
    /// The memory of the index in mode `memory`.
    pub(super) held: HeldIndexFlags,
    pub(super) meta: MetaTier,
    pub(super) size: Size,
    pub(super) segment: u64,
    pub(super) lookahead: Lookahead,
    pub(super) policy: PolicyKind,
    pub(super) io: EngineKind,
    pub(super) readahead: bool,
    pub(super) depth: usize,
    pub(super) threads: usize,
    pub(super) dram: u64,
    pub(super) k: usize,
    pub(super) bm25: Bm25,
    pub(super) exhaustive: bool,
    /// Number of lookahead samples that are kept.
    pub(super) samples: usize,
    /// Events that are counted during the second repetition.
    pub(super) counters: Option<CounterSet>,
    pub(super) shape: QueryShape,
    pub(super) field: usize,
    /// The terms of each query.
    pub(super) queries: Vec<Vec<String>>,
}

impl CellTask {
    pub(super) fn new(flags: &Flags, cell: &TableCell, field: usize, queries: &DrawnQueries) -> CellTask {
        let defaults = ExecutorOptions::default();
        CellTask {
            index: flags.index.clone(),
            join: Vec::new(),
            throttle: None,
            stat: None,
            processor: None,
            mode: cell.mode,
            region: flags.region.clone(),
            held: flags.held.clone(),
            meta: flags.meta(),
            size: cell.size.unwrap_or(defaults.size),
            segment: cell.segment.unwrap_or(defaults.list_cell_bytes as u64),
            lookahead: cell.lookahead.unwrap_or(defaults.lookahead),
            policy: cell.policy.unwrap_or(defaults.policy),
            io: flags.io,
            readahead: !flags.no_readahead,
            depth: flags.depth,
            threads: flags.threads,
            dram: flags.dram,
            k: flags.k,
            bm25: Bm25 { k1: flags.k1, b: flags.b },
            exhaustive: flags.exhaustive,
            samples: flags.lookahead_samples,
            counters: flags.counters,
            shape: cell.workload.shape,
            field,
            queries: queries.terms.clone(),
        }
    }

    /// The executor options; `None` for an index in memory.
    pub(super) fn executor(&self) -> Option<ExecutorOptions> {
        let CellMode::Executor(mode) = self.mode else { return None };
        let kind = match self.io {
            EngineKind::Auto | EngineKind::Uring if !mode.has_cache() => EngineKind::Mmap,
            kind => kind,
        };
        let engine = EngineOptions { kind, depth: self.depth, direct: mode == Mode::Direct };
        Some(ExecutorOptions {
            mode,
            region: self.region.clone(),
            size: self.size,
            cache_in_budget: false,
            list_cell_bytes: self.segment as usize,
            policy: self.policy,
            lookahead: self.lookahead,
            engine,
            kernel_readahead: self.readahead,
            threads: self.threads,
            meta_tier: self.meta.clone(),
            dram: Some(self.dram),
            hits_max: self.k,
            lookahead_samples: self.samples,
            ..ExecutorOptions::default()
        })
    }

    /// The search options.
    pub(super) fn search(&self) -> SearchOptions {
        SearchOptions {
            k: self.k,
            exhaustive: self.exhaustive,
            count: self.exhaustive,
            scorer: self.bm25.into(),
            ..SearchOptions::default()
        }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "index": self.index,
            "join": self.join,
            "throttle": self.throttle,
            "stat": self.stat,
            "processor": self.processor,
            "mode": self.mode.to_string(),
            "region": self.region.to_string(),
            "keep_in": self.held.keep_in.as_ref().map(ToString::to_string),
            "slow_tier": self.held.slow_tier.as_ref().map(ToString::to_string),
            "meta": self.meta.to_string(),
            "size": self.size.to_string(),
            "segment": self.segment,
            "lookahead": show_lookahead(self.lookahead),
            "policy": self.policy.to_string(),
            "io": self.io.to_string(),
            "readahead": self.readahead,
            "depth": self.depth,
            "threads": self.threads,
            "dram": self.dram,
            "k": self.k,
            "bm25": [self.bm25.k1, self.bm25.b],
            "exhaustive": self.exhaustive,
            "samples": self.samples,
            "counters": self.counters.map(|set| set.to_string()),
            "shape": self.shape.to_string(),
            "field": self.field,
            "queries": self.queries,
        })
    }

    /// Parses the output of [`CellTask::to_json`].
    ///
    /// # Errors
    /// [`Error::Usage`] if a member is missing or has the wrong type.
    pub(super) fn from_json(value: &Value) -> Result<CellTask> {
        let read = JsonObject(value);
        Ok(CellTask {
            index: read.text("index")?.into(),
            join: read.texts(&value["join"])?.into_iter().map(PathBuf::from).collect(),
            throttle: value["throttle"].as_str().map(PathBuf::from),
            stat: value["stat"].as_str().map(PathBuf::from),
            processor: value["processor"].as_u64().map(|number| number as usize),
            mode: read.parse("mode")?,
            region: read.parse("region")?,
            held: HeldIndexFlags {
                keep_in: read.optional("keep_in")?,
                slow_tier: read.optional("slow_tier")?,
            },
            meta: read.parse("meta")?,
            size: read.parse("size")?,
            segment: read.number("segment")?,
            lookahead: read_lookahead(read.text("lookahead")?).map_err(Error::Usage)?,
            policy: read.parse("policy")?,
            io: read.parse("io")?,
            readahead: read.flag("readahead")?,
            depth: read.number("depth")? as usize,
            threads: read.number("threads")? as usize,
            dram: read.number("dram")?,
            k: read.number("k")? as usize,
            bm25: bm25(&value["bm25"])?,
            exhaustive: read.flag("exhaustive")?,
            samples: read.number("samples")? as usize,
            counters: value["counters"].as_str().map(str::parse).transpose().map_err(Error::Usage)?,
            shape: read.parse("shape")?,
            field: read.number("field")? as usize,
            queries: read.list("queries")?.iter().map(|terms| read.texts(terms)).collect::<Result<_>>()?,
        })
    }
}

fn bm25(value: &Value) -> Result<Bm25> {
    let [k1, b] = [0, 1].map(|at| value[at].as_f64().unwrap_or(f64::NAN));
    Ok(Bm25::new(k1, b)?)
}

#[cfg(test)]
mod tests {
    use super::super::flags::tests::flags;
    use super::super::queries::DrawnQueries;
    use super::*;

    #[test]
    fn a_task_round_trips_through_json() {
        let flags = flags(
            "--modes memory,direct,base --sizes 0.5 --lookahead 16,adaptive --region file:/dev/shm/a --exhaustive false \
             --counters top-down --k1 0.9 --b 0 --keep-in numa:1 --slow-tier 300,2.5",
        );
        let queries = DrawnQueries {
            terms: vec![vec!["a".into(), "ü\"".into()], vec!["c".into(), "d".into()]],
            class_terms: 4,
            lists: Vec::new(),
            bytes_asked: 0,
            repeated: 0,
        };
        for cell in TableCell::all(&flags) {
            let mut task = CellTask::new(&flags, &cell, 3, &queries);
            task.join = vec!["/sys/fs/cgroup/x/cgroup.procs".into()];
            task.processor = Some(1);
            task.throttle = Some("/sys/fs/cgroup/y/cgroup.procs".into());
            let line = task.to_json().to_string();
            assert_eq!(CellTask::from_json(&serde_json::from_str(&line).unwrap()).unwrap(), task);
            assert_eq!(task.executor().is_none(), cell.mode == CellMode::Memory);
        }
        assert!(matches!(CellTask::from_json(&json!({})), Err(Error::Usage(_))));
    }
}
