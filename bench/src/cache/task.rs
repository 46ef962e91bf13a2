//! What a cell's process is told, as JSON on one line: which index, which queries, how, and under which limits.

use super::cell::{Cell, Contender, read_lookahead, show_lookahead};
use super::flags::Flags;
use super::queries::{Queries, Shape};
use crate::{Error, Result};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::str::FromStr;
use tierdex::cache::{Lookahead, PolicyKind};
use tierdex::engine::{ExecutorOptions, MetaTier, Mode};
use tierdex::index::SearchOptions;
use tierdex::io::{EngineKind, EngineOptions, RegionKind, Size};

/// What a cell's process is told.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Task {
    pub(super) index: PathBuf,
    /// Files into which the process first writes its number.
    pub(super) join: Vec<PathBuf>,
    /// Where its group says what its memory is.
    pub(super) stat: Option<PathBuf>,
    pub(super) contender: Contender,
    pub(super) region: RegionKind,
    pub(super) meta: MetaTier,
    pub(super) size: Size,
    pub(super) segment: u64,
    pub(super) lookahead: Lookahead,
    pub(super) policy: PolicyKind,
    pub(super) io: EngineKind,
    pub(super) depth: usize,
    pub(super) threads: usize,
    pub(super) dram: u64,
    pub(super) k: usize,
    pub(super) exhaustive: bool,
    /// Of the lookahead.
    pub(super) samples: usize,
    pub(super) shape: Shape,
    pub(super) field: usize,
    /// The terms of each query.
    pub(super) queries: Vec<Vec<String>>,
}

impl Task {
    pub(super) fn new(flags: &Flags, cell: &Cell, field: usize, queries: &Queries) -> Task {
        let usual = ExecutorOptions::default();
        Task {
            index: flags.index.clone(),
            join: Vec::new(),
            stat: None,
            contender: cell.contender,
            region: flags.region.clone(),
            meta: flags.meta(),
            size: cell.size.unwrap_or(usual.size),
            segment: cell.segment.unwrap_or(usual.segment as u64),
            lookahead: cell.lookahead.unwrap_or(usual.lookahead),
            policy: cell.policy.unwrap_or(usual.policy),
            io: flags.io,
            depth: flags.depth,
            threads: flags.threads,
            dram: flags.dram,
            k: flags.k,
            exhaustive: flags.exhaustive,
            samples: flags.lookahead_samples,
            shape: cell.workload.shape,
            field,
            queries: queries.terms.clone(),
        }
    }

    /// What its executor is set up with; none for an index in memory.
    pub(super) fn executor(&self) -> Option<ExecutorOptions> {
        let Contender::Near(mode) = self.contender else { return None };
        let engine = EngineOptions { kind: self.io, depth: self.depth, direct: mode == Mode::Direct };
        Some(ExecutorOptions {
            mode,
            region: self.region.clone(),
            size: self.size,
            within: false,
            segment: self.segment as usize,
            policy: self.policy,
            lookahead: self.lookahead,
            engine,
            threads: self.threads,
            meta: self.meta.clone(),
            dram: Some(self.dram),
            hits: self.k,
            samples: self.samples,
            ..ExecutorOptions::default()
        })
    }

    /// How its queries are answered.
    pub(super) fn search(&self) -> SearchOptions {
        SearchOptions {
            k: self.k,
            exhaustive: self.exhaustive,
            count: self.exhaustive,
            ..SearchOptions::default()
        }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "index": self.index,
            "join": self.join,
            "stat": self.stat,
            "contender": self.contender.to_string(),
            "region": self.region.to_string(),
            "meta": self.meta.to_string(),
            "size": self.size.to_string(),
            "segment": self.segment,
            "lookahead": show_lookahead(self.lookahead),
            "policy": self.policy.to_string(),
            "io": self.io.to_string(),
            "depth": self.depth,
            "threads": self.threads,
            "dram": self.dram,
            "k": self.k,
            "exhaustive": self.exhaustive,
            "samples": self.samples,
            "shape": self.shape.to_string(),
            "field": self.field,
            "queries": self.queries,
        })
    }

    /// Reads what [`Task::to_json`] wrote.
    ///
    /// # Errors
    /// [`Error::Usage`] if a member is missing or is not what it should be.
    pub(super) fn from_json(value: &Value) -> Result<Task> {
        let read = Members(value);
        Ok(Task {
            index: read.text("index")?.into(),
            join: read.texts(&value["join"])?.into_iter().map(PathBuf::from).collect(),
            stat: value["stat"].as_str().map(PathBuf::from),
            contender: read.parse("contender")?,
            region: read.parse("region")?,
            meta: read.parse("meta")?,
            size: read.parse("size")?,
            segment: read.number("segment")?,
            lookahead: read_lookahead(read.text("lookahead")?).map_err(Error::Usage)?,
            policy: read.parse("policy")?,
            io: read.parse("io")?,
            depth: read.number("depth")? as usize,
            threads: read.number("threads")? as usize,
            dram: read.number("dram")?,
            k: read.number("k")? as usize,
            exhaustive: value["exhaustive"].as_bool().ok_or_else(|| wrong("exhaustive"))?,
            samples: read.number("samples")? as usize,
            shape: read.parse("shape")?,
            field: read.number("field")? as usize,
            queries: read.list("queries")?.iter().map(|terms| read.texts(terms)).collect::<Result<_>>()?,
        })
    }
}

/// The members of an object.
pub(super) struct Members<'a>(pub(super) &'a Value);

impl<'a> Members<'a> {
    pub(super) fn number(&self, name: &str) -> Result<u64> {
        self.0[name].as_u64().ok_or_else(|| wrong(name))
    }

    pub(super) fn float(&self, name: &str) -> Result<f64> {
        self.0[name].as_f64().ok_or_else(|| wrong(name))
    }

    pub(super) fn text(&self, name: &str) -> Result<&'a str> {
        self.0[name].as_str().ok_or_else(|| wrong(name))
    }

    pub(super) fn list(&self, name: &str) -> Result<&'a [Value]> {
        self.0[name].as_array().map(Vec::as_slice).ok_or_else(|| wrong(name))
    }

    fn parse<T: FromStr>(&self, name: &str) -> Result<T> {
        self.text(name)?.parse().map_err(|_| wrong(name))
    }

    fn texts(&self, list: &Value) -> Result<Vec<String>> {
        let texts = list.as_array().into_iter().flatten();
        texts.map(|text| text.as_str().map(str::to_string).ok_or_else(|| wrong("a text"))).collect()
    }
}

fn wrong(name: &str) -> Error {
    Error::Usage(format!("`{name}` is missing, or not what it should be"))
}

#[cfg(test)]
mod tests {
    use super::super::flags::tests::flags;
    use super::super::queries::Queries;
    use super::*;

    #[test]
    fn a_task_is_read_as_it_is_written() {
        let flags = flags(
            "--modes memory,direct,base --sizes 0.5 --lookahead 16,adaptive --region file:/dev/shm/a --exhaustive false",
        );
        let queries = Queries {
            terms: vec![vec!["a".into(), "ü\"".into()], vec!["c".into(), "d".into()]],
            class_terms: 4,
            lists: Vec::new(),
            bytes_asked: 0,
            repeated: 0,
        };
        for cell in Cell::all(&flags) {
            let mut task = Task::new(&flags, &cell, 3, &queries);
            task.join = vec!["/sys/fs/cgroup/x/cgroup.procs".into()];
            let line = task.to_json().to_string();
            assert_eq!(Task::from_json(&serde_json::from_str(&line).unwrap()).unwrap(), task);
            assert_eq!(task.executor().is_none(), cell.contender == Contender::Memory);
        }
        assert!(matches!(Task::from_json(&json!({})), Err(Error::Usage(_))));
    }
}
