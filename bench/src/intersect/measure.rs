//! Timing: algorithms in turn, round after round, so that what disturbs one disturbs all.

use super::room::Room;
use super::row::Row;
use super::usage::cpu_seconds;
use crate::intersection::{Algorithm, PagedList, Reads};
use crate::{Error, Result};
use std::time::Instant;

/// A point of a sweep.
pub(super) struct Point<'a> {
    pub(super) sweep: &'static str,
    pub(super) x: f64,
    pub(super) label: String,
    pub(super) algorithms: &'a [Algorithm],
    /// Lists of each query, and what stands in all of them.
    pub(super) queries: &'a [(Vec<PagedList>, Vec<u32>)],
}

/// One round of one algorithm.
struct Round {
    seconds: f64,
    cpu_seconds: f64,
    reads: Reads,
}

/// Runs `rounds` rounds, after one of `bl` that is not counted: it makes the memory that later ones find.
pub(super) fn point(room: &mut Room, point: &Point<'_>, rounds: usize) -> Result<Vec<Row>> {
    super::say(&format!("{} {}", point.sweep, point.label));
    let mut taken: Vec<Vec<Round>> = point.algorithms.iter().map(|_| Vec::new()).collect();
    if point.algorithms.contains(&Algorithm::Bl) {
        round(room, point, Algorithm::Bl)?;
    }
    for _ in 0..rounds {
        for (algorithm, taken) in point.algorithms.iter().zip(&mut taken) {
            taken.push(round(room, point, *algorithm)?);
        }
    }
    let pages = |lists: &[PagedList]| lists.iter().map(|list| list.pages() as u64).sum::<u64>();
    let row = |(algorithm, taken): (&Algorithm, Vec<Round>)| {
        let seconds = sorted(taken.iter().map(|round| round.seconds));
        Row {
            sweep: point.sweep,
            x: point.x,
            label: point.label.clone(),
            algorithm: *algorithm,
            threads: if *algorithm == Algorithm::Direct { 1 } else { room.threads },
            queries: point.queries.len(),
            seconds: seconds[seconds.len() / 2],
            spread: (seconds[0], seconds[seconds.len() - 1]),
            cpu_seconds: sorted(taken.iter().map(|round| round.cpu_seconds))[taken.len() / 2],
            reads: taken[0].reads,
            pages: point.queries.iter().map(|(lists, _)| pages(lists)).sum(),
            found: point.queries.iter().map(|(_, want)| want.len() as u64).sum(),
        }
    };
    Ok(point.algorithms.iter().zip(taken).map(row).collect())
}

fn round(room: &mut Room, point: &Point<'_>, algorithm: Algorithm) -> Result<Round> {
    let mut reads = Reads::default();
    let (mut seconds, cpu) = (0.0, cpu_seconds());
    for (number, (lists, want)) in point.queries.iter().enumerate() {
        let start = Instant::now();
        let found = room.run(algorithm, lists)?;
        seconds += start.elapsed().as_secs_f64();
        if found.ids != *want {
            let (sweep, name, label) = (point.sweep, algorithm.name(), &point.label);
            return Err(Error::Failed(format!(
                "{name} finds {} ids and not the {} that there are: {sweep} {label}, query {number}",
                found.ids.len(),
                want.len()
            )));
        }
        reads += found.reads;
    }
    Ok(Round { seconds, cpu_seconds: cpu_seconds() - cpu, reads })
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}
