//! A pair: one cell, measured with both builds.

use crate::cell::{Cell, CellMeasurement, Launch, ProcessPlacement};
use crate::{Error, Result, cache::drop_page_cache, cgroup::CgroupParent, median::median};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use tierdex::StopSignal;

/// The programs of both builds, and the parent of the control groups in which they run.
pub(super) struct Builds {
    a: Launch,
    b: Launch,
    /// For cells with a memory limit.
    groups: Option<CgroupParent>,
}

/// The measurements of both builds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Pair {
    pub(super) a: CellMeasurement,
    pub(super) b: CellMeasurement,
}

impl Pair {
    /// Time of the first build divided by that of the second.
    pub(super) fn ratio(&self) -> f64 {
        self.a.seconds.max(1e-9) / self.b.seconds.max(1e-9)
    }
}

/// Median queries per second of both builds.
pub(super) fn median_speeds(pairs: &[Pair]) -> (f64, f64) {
    let of = |speed: fn(&Pair) -> f64| median(pairs.iter().map(speed).collect()).unwrap_or_default();
    (of(|pair| pair.a.qps()), of(|pair| pair.b.qps()))
}

impl Builds {
    /// Both programs.
    ///
    /// # Errors
    /// If a cell has a memory limit and control groups are not permitted.
    pub(super) fn new<'c>(a: &Path, b: &Path, mut cells: impl Iterator<Item = &'c Cell>) -> Result<Builds> {
        let limit = cells.find_map(|cell| cell.limit);
        let groups = limit.map(|_| CgroupParent::memory()).transpose()?;
        // Fails before the first cell.
        groups.as_ref().zip(limit).map(|(groups, limit)| groups.create_limited(limit)).transpose()?;
        let launch = |program: &Path| Launch::Process(program.to_path_buf(), vec!["cell".to_string()]);
        Ok(Builds { a: launch(a), b: launch(b), groups })
    }

    /// Measures a cell with both builds; the first one goes first in even rounds. The inner error is why a
    /// process failed, or that the answers differ.
    ///
    /// # Errors
    /// If a process cannot be started, or `stop` is raised.
    pub(super) fn measure(
        &self,
        cell: &Cell,
        json: &Value,
        round: usize,
        stop: &StopSignal,
    ) -> Result<std::result::Result<Pair, String>> {
        let (a, b) = match round.is_multiple_of(2) {
            true => {
                let a = self.run_build(&self.a, cell, json, stop)?;
                (a, self.run_build(&self.b, cell, json, stop)?)
            }
            false => {
                let b = self.run_build(&self.b, cell, json, stop)?;
                (self.run_build(&self.a, cell, json, stop)?, b)
            }
        };
        let named = |build: &str, found: std::result::Result<CellMeasurement, String>| {
            found.map_err(|why| format!("build {build}: {why}"))
        };
        Ok(named("A", a).and_then(|a| Ok(Pair { a, b: named("B", b)? })).and_then(Pair::check_answers))
    }

    fn run_build(
        &self,
        launch: &Launch,
        cell: &Cell,
        json: &Value,
        stop: &StopSignal,
    ) -> Result<std::result::Result<CellMeasurement, String>> {
        let group = self.groups.as_ref().zip(cell.limit);
        let group = group.map(|(groups, limit)| groups.create_limited(limit)).transpose()?;
        if group.is_some() {
            drop_page_cache()?;
        }
        let mut json = json.clone();
        if let Some(group) = &group {
            let join = cell.process.join.iter().cloned().chain([group.procs()]).collect();
            let process = ProcessPlacement { join, stat: Some(group.stat()), ..cell.process.clone() };
            json["process"] = serde_json::to_value(process).map_err(|why| Error::Failed(why.to_string()))?;
        }
        let found = launch.measure_json(&json, group.as_ref(), stop)?;
        stop.check().map_err(|_| Error::Interrupted)?;
        Ok(found)
    }
}

impl Pair {
    fn check_answers(self) -> std::result::Result<Pair, String> {
        if self.a.checksum == self.b.checksum {
            return Ok(self);
        }
        Err(format!(
            "the answers of both builds differ ({} hits, {} matches; {} hits, {} matches)",
            self.a.hits, self.a.matches, self.b.hits, self.b.matches
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_answers_are_an_error() {
        let measured = |checksum, seconds| CellMeasurement {
            checksum,
            seconds,
            queries: 3,
            ..CellMeasurement::default()
        };
        let pair = Pair { a: measured(1, 3.0), b: measured(1, 2.0) }.check_answers().unwrap();
        assert_eq!((pair.ratio(), median_speeds(&[pair])), (1.5, (1.0, 1.5)));
        let different = Pair { a: measured(1, 3.0), b: measured(2, 2.0) };
        assert!(different.check_answers().unwrap_err().contains("answers of both builds differ"));
    }
}
