//! Times algorithms at a point of a sweep. They alternate within each round, so that a disturbance of the
//! machine affects all of them.

use crate::intersect::{
    cpu_time::cpu_seconds, row::SweepRow, runner::IntersectionRunner, settings::Settings,
};
use crate::intersection::{Algorithm, PagedList, ReadStats};
use crate::{Error, Result, median::median, status};
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

/// Times and reads of one algorithm in one round, summed over the queries of the point.
struct AlgorithmRound {
    seconds: f64,
    cpu_seconds: f64,
    reads: ReadStats,
}

/// Measures all algorithms of a point in all rounds. An untimed run of `bl` comes first, because it allocates
/// memory.
pub(super) fn measure_point(
    runner: &mut IntersectionRunner,
    point: &SweepPoint<'_>,
    settings: &Settings,
) -> Result<Vec<SweepRow>> {
    status::show_status(&format!("{} {}", point.sweep, point.label));
    let mut taken: Vec<Vec<AlgorithmRound>> = point.algorithms.iter().map(|_| Vec::new()).collect();
    if point.algorithms.contains(&Algorithm::Bl) {
        run_round(runner, point, Algorithm::Bl, &settings.stop)?;
    }
    for _ in 0..settings.rounds {
        for (algorithm, taken) in point.algorithms.iter().zip(&mut taken) {
            taken.push(run_round(runner, point, *algorithm, &settings.stop)?);
        }
    }
    let pages = |lists: &[PagedList]| lists.iter().map(|list| list.pages() as u64).sum::<u64>();
    let row = |(algorithm, taken): (&Algorithm, Vec<AlgorithmRound>)| {
        let seconds = || taken.iter().map(|round| round.seconds);
        let cpu_seconds = taken.iter().map(|round| round.cpu_seconds).collect();
        SweepRow {
            sweep: point.sweep,
            x: point.x,
            label: point.label.clone(),
            algorithm: *algorithm,
            threads: if *algorithm == Algorithm::Direct { 1 } else { runner.threads },
            queries: point.queries.len(),
            seconds: median(seconds().collect()).unwrap_or_default(),
            spread: (seconds().fold(f64::INFINITY, f64::min), seconds().fold(0.0, f64::max)),
            cpu_seconds: median(cpu_seconds).unwrap_or_default(),
            reads: taken[0].reads,
            pages: point.queries.iter().map(|(lists, _)| pages(lists)).sum(),
            found: point.queries.iter().map(|(_, expected)| expected.len() as u64).sum(),
        }
    };
    Ok(point.algorithms.iter().zip(taken).map(row).collect())
}

fn run_round(
    runner: &mut IntersectionRunner,
    point: &SweepPoint<'_>,
    algorithm: Algorithm,
    stop: &StopSignal,
) -> Result<AlgorithmRound> {
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
    Ok(AlgorithmRound { seconds, cpu_seconds: cpu_seconds() - cpu, reads })
}
