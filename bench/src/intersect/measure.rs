//! Times algorithms at a point of a sweep, one after the other.

use crate::intersect::{
    cpu_time::cpu_seconds, row::SweepRow, runner::IntersectionRunner, settings::Settings,
};
use crate::intersection::{Algorithm, PagedList, ReadStats};
use crate::{Error, Result};
use std::time::Instant;
use tierdex::StopSignal;

/// A point of a sweep.
pub(super) struct SweepPoint<'a> {
    pub(super) sweep: &'static str,
    pub(super) x: f64,
    pub(super) label: String,
    pub(super) algorithms: &'a [Algorithm],
    /// The lists of each query, and their intersection.
    pub(super) queries: &'a [(Vec<PagedList>, Vec<u32>)],
}

/// Measures all algorithms of a point. An untimed run of `bl` comes first, because it allocates memory.
pub(super) fn measure_point(
    runner: &mut IntersectionRunner,
    point: &SweepPoint<'_>,
    settings: &Settings,
) -> Result<Vec<SweepRow>> {
    if point.algorithms.contains(&Algorithm::Bl) {
        measure_algorithm(runner, point, Algorithm::Bl, &settings.stop)?;
    }
    let row = |algorithm: &Algorithm| measure_algorithm(runner, point, *algorithm, &settings.stop);
    point.algorithms.iter().map(row).collect()
}

fn measure_algorithm(
    runner: &mut IntersectionRunner,
    point: &SweepPoint<'_>,
    algorithm: Algorithm,
    stop: &StopSignal,
) -> Result<SweepRow> {
    let mut reads = ReadStats::default();
    let (mut seconds, cpu) = (0.0, cpu_seconds());
    for (number, (lists, expected)) in point.queries.iter().enumerate() {
        stop.check().map_err(|_| Error::Interrupted)?;
        let start = Instant::now();
        let found = runner.algorithms.intersect(algorithm, lists)?;
        seconds += start.elapsed().as_secs_f64();
        if found.ids != *expected {
            let (sweep, name, label) = (point.sweep, algorithm.name(), &point.label);
            return Err(Error::Failed(format!(
                "{name} finds {} ids instead of {}: {sweep} {label}, query {number}",
                found.ids.len(),
                expected.len()
            )));
        }
        reads += found.reads;
    }
    let pages = |lists: &[PagedList]| lists.iter().map(|list| list.pages() as u64).sum::<u64>();
    Ok(SweepRow {
        sweep: point.sweep,
        x: point.x,
        label: point.label.clone(),
        algorithm,
        threads: if algorithm == Algorithm::Direct { 1 } else { runner.threads },
        queries: point.queries.len(),
        seconds,
        cpu_seconds: cpu_seconds() - cpu,
        reads,
        pages: point.queries.iter().map(|(lists, _)| pages(lists)).sum(),
        found: point.queries.iter().map(|(_, expected)| expected.len() as u64).sum(),
    })
}
