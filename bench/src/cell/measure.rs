//! The process of a cell.
//!
//! 1. Join the control group of the cell, so that all memory from then on is charged to it, and take the
//!    processor of the cell, which threads that are started later inherit.
//! 2. Open the index, and create the searcher, the engine or the executor.
//! 3. Answer all queries twice. Reads are throttled in the second repetition only, because the first one
//!    fills the caches; for an engine from the start, as it measures the device, and in all cells where the
//!    memory group also has the limits of the device (control groups of version 2).
//!    The second repetition is itself repeated until it has taken the seconds that the cell names, or
//!    [`MEMORY_SECONDS_MIN`] for an index in memory.
//! 4. Return the measurements of the second repetition, and a checksum of the hits of both.

use crate::cell::measurement::{CacheCounters, CellMeasurement};
use crate::cell::{Cell, Reads, processors::Processors};
use crate::held_index::{load_index, open_index};
use crate::{Error, Result, request::ExperimentRequest, slow_tier::SlowTier};
use rustix::fs::OFlags;
use serde_json::{Value, to_value};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::{Mutex, PoisonError, atomic::AtomicUsize, atomic::Ordering};
use std::time::{Duration, Instant};
use std::{fs, fs::File, hint::black_box, io::Read, io::Write, path::Path, path::PathBuf, thread::Builder};
use tierdex::{Engine, EngineOptions, Hits, Index, Query, SearchHit, SearchOptions, SearchRequest};
use tierdex::{StopSignal, explain::SearchResult, internal::cache::CacheStats};
use tierdex_thesis::{ListCacheStats, ListExecutor};

impl ExperimentRequest for Cell {
    fn answer(&self, _: &StopSignal) -> Result<Value> {
        to_value(measure_cell(self)?).map_err(|error| Error::Failed(error.to_string()))
    }
}

/// Joins the control groups and measures the cell.
fn measure_cell(cell: &Cell) -> Result<CellMeasurement> {
    cell.check()?;
    let place = &cell.process;
    place.join.iter().try_for_each(|procs| join_cgroup(procs))?;
    if matches!(cell.reads, Reads::Engine(_)) {
        place.throttle.iter().try_for_each(|procs| join_cgroup(procs))?;
    }
    place.processor.map_or(Ok(()), |number| Processors::allowed()?.pin(number))?;
    let index = open_index(&cell.index)?;
    let run = CellRun { cell, queries: cell.queries.parse(&index)?, options: cell.search()?, index };
    match &cell.reads {
        Reads::Searcher { region, slow_tier: None } => {
            let searcher = load_index(&run.index, region)?;
            run.run_searcher(&|query| searcher.search(query, &run.options))
        }
        Reads::Searcher { region, slow_tier: Some(delay) } => {
            let tier = SlowTier::load(&run.index, region, *delay)?;
            run.run_searcher(&|query| tier.search(query, &run.options))
        }
        Reads::Engine(reads) => run.run_engine(&reads.options(cell.threads, cell.k)),
        Reads::Lists(reads) => {
            let executor = ListExecutor::new(&run.index, &reads.options(cell.threads, cell.k))?;
            run.run_executor(&executor, reads.samples)
        }
    }
}

/// Moves this process into a control group.
fn join_cgroup(procs: &Path) -> Result<()> {
    let write = |mut file: File| file.write_all(std::process::id().to_string().as_bytes());
    let joined = File::options().write(true).open(procs).and_then(write);
    joined.map_err(Error::failed(format!("cannot join {}", procs.display())))
}

/// A cell with its opened index, parsed queries and search options.
struct CellRun<'c> {
    cell: &'c Cell,
    index: Index,
    queries: Vec<Query>,
    options: SearchOptions,
}

/// Answers a query on the calling thread.
type AnswerQuery<'a> = dyn Fn(&Query) -> tierdex::Result<SearchResult> + Sync + 'a;

/// Counters of the cache and of reads at one time; a measurement is the difference of two.
struct ReadCounters {
    cache: Option<CacheCounters>,
    bytes_read: u64,
}

impl CellRun<'_> {
    fn run_searcher(&self, answer: &AnswerQuery<'_>) -> Result<CellMeasurement> {
        let processors = Processors::allowed()?;
        let counters = || ReadCounters { cache: None, bytes_read: self.index.bytes_read() };
        let measured = self.measure_repetitions(&counters, &|| self.answer_all(answer, &processors))?;
        Ok(CellMeasurement { engine: "none".to_string(), ..measured })
    }

    /// Answers all queries on the query threads.
    fn answer_all(&self, answer: &AnswerQuery<'_>, processors: &Processors) -> Result<Repetition> {
        let queries = &self.queries;
        let (next, measured) = (AtomicUsize::new(0), Mutex::new(Repetition::new(queries.len())));
        let work = |thread| -> Result<()> {
            processors.pin(thread)?;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(query) = queries.get(number) else { return Ok(()) };
                let began = Instant::now();
                let found = answer(query)?;
                let took = began.elapsed();
                let mut measured = measured.lock().unwrap_or_else(PoisonError::into_inner);
                measured.record(number, &found.hits, self.matches(found.total), took);
            }
        };
        std::thread::scope(|scope| {
            let work = &work;
            let start = |thread| Builder::new().spawn_scoped(scope, move || work(thread));
            let others = (1..self.cell.threads).map(start).collect::<std::io::Result<Vec<_>>>();
            let others = others
                .map_err(|error| tierdex::io::Error::from_os("start", "a thread that answers", &error))?;
            let mine = work(0);
            processors.unpin()?;
            let joined = others.into_iter().map(|thread| thread.join().expect("a thread does not panic"));
            std::iter::once(mine).chain(joined.collect::<Vec<_>>()).collect::<Result<()>>()
        })?;
        Ok(measured.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Answers all queries by an engine, as a batch.
    fn run_engine(&self, options: &EngineOptions) -> Result<CellMeasurement> {
        let engine = Engine::new(&self.index, options)?;
        let repetition = || -> Result<Repetition> {
            let mut measured = Repetition::new(self.queries.len());
            let mut requests =
                self.queries.iter().map(|query| SearchRequest::new(query.clone()).options(self.options));
            engine.run_ordered(
                || Ok::<_, tierdex::Error>(requests.next()),
                |number, found| {
                    let Hits { hits, total, took, queued, .. } = found?;
                    measured.record(number, &hits, self.matches(total.value()), took.saturating_sub(queued));
                    Ok(())
                },
            )?;
            Ok(measured)
        };
        let counters = || {
            let CacheStats { hits, misses, waits, reads, .. } = engine.stats();
            let cache = Some(CacheCounters { hits, misses, waits, reads });
            ReadCounters { cache, bytes_read: engine.bytes_read() }
        };
        let measured = self.measure_repetitions(&counters, &repetition)?;
        Ok(CellMeasurement {
            engine: engine.read_method().to_string(),
            planned: engine.memory().needed(),
            ..measured
        })
    }

    fn run_executor(&self, executor: &ListExecutor, samples_max: usize) -> Result<CellMeasurement> {
        let repetition = || -> Result<Repetition> {
            let mut measured = Repetition::new(self.queries.len());
            let mut source = self.queries.iter().cloned();
            executor.run_timed(
                || Ok::<_, tierdex::Error>(source.next()),
                &self.options,
                |number, found| {
                    let (found, took) = found?;
                    measured.record(number, &found.hits, self.matches(found.total), took);
                    Ok(())
                },
            )?;
            Ok(measured)
        };
        let counters = || {
            let cache = executor.stats().map(|stats| {
                let ListCacheStats { hits, misses, waits, reads, .. } = stats;
                CacheCounters { hits, misses, waits, reads }
            });
            ReadCounters { cache, bytes_read: executor.bytes_read() }
        };
        let measured = self.measure_repetitions(&counters, &repetition)?;
        // The samples are of both repetitions; those of the first are dropped.
        let began = self.queries.len() as u64;
        let noted = executor.lookahead_samples().into_iter().filter(|sample| sample.ended > began);
        let mut samples: Vec<_> = noted.map(|sample| (sample.ended - began, sample.queries)).collect();
        samples.drain(..samples.len().saturating_sub(samples_max));
        Ok(CellMeasurement {
            samples,
            engine: executor.read_method().to_string(),
            planned: executor.memory().needed(),
            ..measured
        })
    }

    /// The number of matches, 0 if they are not counted.
    fn matches(&self, total: u64) -> u64 {
        if self.options.count { total } else { 0 }
    }

    /// Answers all queries twice, and measures the second time, which is repeated until it has taken long
    /// enough. `repetition` answers all queries once; `counters` are read before and after the first
    /// measured repetition.
    fn measure_repetitions(
        &self,
        counters: &dyn Fn() -> ReadCounters,
        repetition: &dyn Fn() -> Result<Repetition>,
    ) -> Result<CellMeasurement> {
        let first = first_repetition(repetition)?;
        self.cell.process.throttle.iter().try_for_each(|procs| join_cgroup(procs))?;
        let (before, fetched_before) = (counters(), bytes_fetched());
        let perf = self.cell.process.perf.as_ref();
        perf.map_or(Ok(()), |pipes| control_perf(pipes, "enable\n"))?;
        let mut second = repetition()?;
        perf.map_or(Ok(()), |pipes| control_perf(pipes, "disable\n"))?;
        let (after, fetched_after) = (counters(), bytes_fetched());
        let in_memory = matches!(self.cell.reads, Reads::Searcher { .. });
        let least = self.cell.seconds.unwrap_or(if in_memory { MEMORY_SECONDS_MIN } else { 0.0 });
        while second.seconds < least && !self.queries.is_empty() {
            second.add(repetition()?)?;
        }
        let lists = before.cache.zip(after.cache).map(|(before, after)| after.since(&before));
        Ok(CellMeasurement {
            bytes_read: after.bytes_read - before.bytes_read,
            bytes_fetched: fetched_after.zip(fetched_before).map(|(after, before)| after - before),
            lists,
            ..Repetition::measurement(first, second)
        })
    }
}

/// Writes a command to `perf stat`, and waits until it is obeyed.
fn control_perf(pipes: &(PathBuf, PathBuf), command: &str) -> Result<()> {
    let (commands, acknowledgements) = pipes;
    // Fails, and does not wait, if `perf stat` has ended.
    let open = || File::options().write(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(commands);
    let write = || open()?.write_all(command.as_bytes());
    let read = || File::open(acknowledgements)?.read_exact(&mut [0; PERF_ACKNOWLEDGEMENT.len()]);
    write().and_then(|()| read()).map_err(Error::failed("cannot control `perf stat`"))
}

/// The answer of `perf stat` to a command.
const PERF_ACKNOWLEDGEMENT: &str = "ack\n\0";

/// Answers all queries the first time. Callgrind counts events in this function only, so it must not be
/// inlined, and the call in it must not become a tail call.
#[inline(never)]
fn first_repetition(repetition: &dyn Fn() -> Result<Repetition>) -> Result<Repetition> {
    black_box(repetition())
}

/// Queries over an index in memory are repeated until they have been measured for this many seconds: a
/// thousand of them can take a millisecond, and a virtual machine does not run at the same speed in every
/// millisecond.
const MEMORY_SECONDS_MIN: f64 = 0.25;

/// Answers and times of all queries of a cell, answered once or several times.
struct Repetition {
    began: Instant,
    /// Seconds from the start to the last answer, summed over the repetitions.
    seconds: f64,
    repetitions: u32,
    /// Latency of each query in nanoseconds, from the start of its evaluation.
    times: Vec<u64>,
    /// Digest of the answer to each query.
    digests: Vec<u64>,
    matches: u64,
    hits: u64,
}

impl Repetition {
    fn new(queries: usize) -> Repetition {
        let (times, digests) = (Vec::with_capacity(queries), vec![0; queries]);
        Repetition {
            began: Instant::now(),
            seconds: 0.0,
            repetitions: 1,
            times,
            digests,
            matches: 0,
            hits: 0,
        }
    }

    /// Adds another repetition of the same queries, which must have the same answers.
    fn add(&mut self, other: Repetition) -> Result<()> {
        if other.digests != self.digests {
            return Err(Error::Failed("two repetitions of the queries have different answers".to_string()));
        }
        self.seconds += other.seconds;
        self.repetitions += 1;
        self.times.extend(other.times);
        Ok(())
    }

    /// Records the answer to a query.
    fn record(&mut self, number: usize, hits: &[SearchHit], matches: u64, took: Duration) {
        self.times.push(took.as_nanos() as u64);
        self.seconds = self.began.elapsed().as_secs_f64();
        self.matches += matches;
        self.hits += hits.len() as u64;
        let hits = hits.iter().map(|hit| u64::from(hit.document) << 32 | u64::from(hit.score.to_bits()));
        self.digests[number] = hits.fold(mix_digest(1, matches), mix_digest);
    }

    /// The part of a measurement that is the same for searchers, engines and executors.
    fn measurement(first: Repetition, second: Repetition) -> CellMeasurement {
        let mut times = second.times;
        times.sort_unstable();
        let digests = first.digests.iter().chain(&second.digests);
        CellMeasurement {
            first_seconds: first.seconds,
            seconds: second.seconds / f64::from(second.repetitions),
            queries: second.digests.len() as u64,
            p50: quantile_micros(&times, 0.50),
            p99: quantile_micros(&times, 0.99),
            matches: second.matches,
            hits: second.hits,
            checksum: digests.fold(0, |sum, digest| mix_digest(sum, *digest)),
            ..CellMeasurement::default()
        }
    }
}

/// The quantile `part` of sorted times, in microseconds.
fn quantile_micros(sorted: &[u64], part: f64) -> f64 {
    let rank = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(rank.max(1) - 1).map_or(0.0, |nanoseconds| *nanoseconds as f64 / 1e3)
}

fn mix_digest(sum: u64, number: u64) -> u64 {
    (sum.rotate_left(5) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Bytes that the kernel has read from devices for this process.
fn bytes_fetched() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_measured_values() {
        let times: Vec<u64> = (1..=200).map(|number| number * 1000).collect();
        assert_eq!((quantile_micros(&times, 0.5), quantile_micros(&times, 0.99)), (100.0, 198.0));
        assert_eq!((quantile_micros(&times[..1], 0.99), quantile_micros(&[], 0.5)), (1.0, 0.0));
    }

    #[test]
    fn repetitions_are_averaged_and_their_answers_compared() {
        let repetition = |digest, seconds| Repetition {
            seconds,
            times: vec![1000, 3000],
            ..Repetition { digests: vec![digest; 2], ..Repetition::new(2) }
        };
        let mut second = repetition(7, 0.25);
        second.add(repetition(7, 0.75)).unwrap();
        assert!(matches!(second.add(repetition(8, 1.0)), Err(Error::Failed(why)) if why.contains("answers")));
        let measured = Repetition::measurement(repetition(7, 2.0), second);
        assert_eq!((measured.seconds, measured.queries, measured.first_seconds), (0.5, 2, 2.0));
        assert_eq!((measured.p50, measured.p99), (1.0, 3.0));
    }
}
