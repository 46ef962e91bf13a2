//! Measures engines in memory: they alternate on each set and command, round after round.
//!
//! 1. The first round runs each query once. It determines how often the queries of a set are repeated, the
//!    same number for all engines, so that a batch takes long enough to be timed.
//! 2. Warm-up rounds are discarded: afterwards memory is touched and just-in-time compilation is done, for
//!    which Lucene gets at least three rounds.
//! 3. Measured rounds; each begins with another engine.

use crate::{engine::Kind, flags::Flags, mean::median};
use crate::results::{EngineCell, Row};
use crate::server::{Batch, Server};
use crate::sets::{self, Set};
use crate::tools::{self, say};
use std::path::PathBuf;
use tierdex_bench::Result;

/// Largest number of passes over a set in one batch.
const TIMES_MAX: u64 = 1000;
/// Smallest number of warm-up rounds of an engine with a just-in-time compiler.
const WARM_COMPILED: usize = 3;
/// Largest time of a batch of the slowest engine, as a multiple of the requested time.
const SLOWEST: u64 = 10;

/// A set and a command, with their measurements.
struct Case<'a> {
    threads: u32,
    set: &'a Set,
    command: String,
    file: PathBuf,
    times: u64,
    /// Per engine, per round; `None` for an engine that does not support the set.
    batches: Vec<Option<Vec<Batch>>>,
}

/// Measures all commands on all sets.
///
/// # Errors
/// If an engine fails or a batch cannot be written.
pub fn run(flags: &Flags, sets: &[Set], servers: &mut [Server]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for &threads in &flags.threads {
        let mut cases = Vec::new();
        for set in sets {
            for command in flags.commands_of(set.recipe) {
                cases.push(Case::new(flags, threads, set, command, servers)?);
            }
        }
        let (warm, rounds) = (flags.warm() - 1, flags.rounds());
        for round in 0..warm + rounds {
            if round == warm {
                for case in &mut cases {
                    case.compile(WARM_COMPILED.saturating_sub(warm), servers)?;
                }
            }
            let what = if round < warm { "warming up" } else { "measuring" };
            say(&format!("{what}, {threads} threads, round {} of {}", round + 1, warm + rounds));
            for case in &mut cases {
                case.turn(round, round >= warm, servers)?;
            }
        }
        rows.extend(cases.iter().map(|case| case.row(servers)));
    }
    Ok(rows)
}

impl<'a> Case<'a> {
    /// Writes the batch, finds the engines that support it, and determines how often queries are repeated.
    fn new(
        flags: &Flags,
        threads: u32,
        set: &'a Set,
        command: String,
        servers: &mut [Server],
    ) -> Result<Case<'a>> {
        let file = sets::folder(flags).join(format!("{}-{command}.batch", set.name));
        let mut case = Case { threads, set, command, file, times: 1, batches: Vec::new() };
        case.write()?;
        let mut walls = Vec::new();
        for server in servers {
            let batch = server.batch(&case.file, threads)?;
            let answers = batch.unsupported == 0;
            case.batches.push(answers.then(Vec::new));
            walls.extend(answers.then_some(batch.wall_ns.max(1)));
        }
        let wanted = flags.batch_ns() * u64::from(threads);
        let (fast, slow) = (walls.iter().min().copied(), walls.iter().max().copied());
        let most = (wanted * SLOWEST / slow.unwrap_or(1)).clamp(1, TIMES_MAX);
        case.times = wanted.div_ceil(fast.unwrap_or(1)).clamp(1, most);
        case.write()?;
        Ok(case)
    }

    fn write(&self) -> Result<()> {
        let lines: String =
            self.set.queries.iter().map(|query| format!("{}\t{query}\n", self.command)).collect();
        tools::write(&self.file, &lines.repeat(self.times as usize))
    }

    /// Number of further warm-up rounds of an engine with a just-in-time compiler.
    fn compile(&mut self, rounds: usize, servers: &mut [Server]) -> Result<()> {
        for (server, batches) in servers.iter_mut().zip(&self.batches) {
            if server.kind == Kind::Lucene && batches.is_some() {
                for _ in 0..rounds {
                    server.batch(&self.file, self.threads)?;
                }
            }
        }
        Ok(())
    }

    /// Runs the batch on each engine that supports it, beginning with another engine each round.
    fn turn(&mut self, round: usize, counts: bool, servers: &mut [Server]) -> Result<()> {
        for step in 0..servers.len() {
            let index = (round + step) % servers.len();
            if let Some(batches) = &mut self.batches[index] {
                let batch = servers[index].batch(&self.file, self.threads)?;
                batches.extend(counts.then_some(batch));
            }
        }
        Ok(())
    }

    fn row(&self, servers: &[Server]) -> Row {
        let cell = |(server, batches): (&Server, &Option<Vec<Batch>>)| {
            let batches = batches.as_ref()?;
            let middle =
                |of: &dyn Fn(&Batch) -> u64| median(batches.iter().map(|batch| of(batch) as f64).collect());
            Some(EngineCell {
                kind: server.kind,
                name: server.name.clone(),
                rounds: batches.iter().map(|batch| batch.n as f64 / (batch.wall_ns as f64 / 1e9)).collect(),
                p50_ns: middle(&|batch| batch.p50_ns),
                p99_ns: middle(&|batch| batch.p99_ns),
                sum: batches.first().map_or(0, |batch| batch.sum) / self.times,
                differs: false,
            })
        };
        Row {
            threads: self.threads,
            set: self.set.name.clone(),
            command: self.command.clone(),
            times: self.times,
            cells: servers.iter().zip(&self.batches).filter_map(cell).collect(),
        }
    }
}
