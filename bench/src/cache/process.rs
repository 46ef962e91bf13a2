//! The process of a cell.
//!
//! 1. Join the control group of the cell, so that all memory from then on is charged to it, and take the
//!    processor of the cell, which threads that are started later inherit.
//! 2. Open the index, and create the searcher or the executor.
//! 3. Answer all queries twice. Reads are throttled in the second repetition only, because the first one
//!    fills the caches; in mode direct from the start, as the engine measures the device, and in all modes
//!    where the memory group also has the limits of the device (control groups of version 2).
//!    In memory the second repetition is itself repeated until it has taken [`MEASURED_SECONDS`].
//! 4. Print the measurements of the second repetition, and a checksum of the hits of both.

use super::measurement::{CacheCounters, CellMeasurement};
use super::mode::CellMode;
use super::processors::Processors;
use super::task::CellTask;
use crate::counters::{EventCounts, Recorder};
use crate::{Error, Result};
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};
use tierdex::engine::{Executor, Mode};
use tierdex::index::{Index, SearchResult};
use tierdex::io::PosixDisk;
use tierdex::query::Query;

/// Reads a cell from `input`, measures it, and writes the measurement to `output`.
///
/// # Errors
/// If the input is malformed, or the cell cannot be measured.
pub fn run_cell(input: &mut dyn Read, output: &mut dyn Write) -> Result<()> {
    let mut text = String::new();
    let read = input.read_to_string(&mut text);
    read.map_err(|error| Error::Failed(format!("cannot read the cell: {error}")))?;
    let value = serde_json::from_str(&text);
    let value = value.map_err(|error| Error::Usage(format!("the cell is not JSON: {error}")))?;
    let measured = run(&CellTask::from_json(&value)?)?;
    writeln!(output, "{}", measured.to_json()).and_then(|()| output.flush()).map_err(Error::Output)
}

/// Joins the control groups and measures the cell.
pub(super) fn run(task: &CellTask) -> Result<CellMeasurement> {
    task.join.iter().try_for_each(|procs| join(procs))?;
    if task.mode == CellMode::Executor(Mode::Direct) {
        task.throttle.iter().try_for_each(|procs| join(procs))?;
    }
    task.processor.map_or(Ok(()), |number| Processors::allowed()?.pin(number))?;
    let index = Index::open_on(Arc::new(PosixDisk::open(&task.index)?))?;
    let queries: Vec<Query> = task.queries.iter().map(|terms| task.shape.query(task.field, terms)).collect();
    // Before other threads start, so that they are counted.
    let recorder = task.counters.map(Recorder::open).transpose()?;
    let mut measured = match task.executor() {
        None => in_memory(task, &index, &queries, recorder)?,
        Some(_) => by_executor(task, &index, &queries, recorder)?,
    };
    measured.process_peak = status("VmHWM:").unwrap_or(0) << 10;
    if let Some(stat) = task.stat.as_ref().and_then(|path| fs::read_to_string(path).ok()) {
        // The first name is that of version 1, the second that of version 2.
        measured.own = number_of(&stat, "rss").or_else(|| number_of(&stat, "anon"));
        measured.page_cache = number_of(&stat, "cache").or_else(|| number_of(&stat, "file"));
    }
    Ok(measured)
}

/// Moves this process into a control group.
fn join(procs: &Path) -> Result<()> {
    let write = |mut file: File| file.write_all(std::process::id().to_string().as_bytes());
    let joined = File::options().write(true).open(procs).and_then(write);
    joined.map_err(|error| Error::Failed(format!("cannot join {}: {error}", procs.display())))
}

fn in_memory(
    task: &CellTask,
    index: &Index,
    queries: &[Query],
    recorder: Option<Recorder>,
) -> Result<CellMeasurement> {
    assert_eq!(task.mode, CellMode::Memory);
    task.held.load(index)?;
    let (searcher, options, processors) = (index.searcher(), task.search(), Processors::allowed()?);
    let repetition = || -> Result<Repetition> {
        let (next, measured) = (AtomicUsize::new(0), Mutex::new(Repetition::new(queries.len())));
        let work = |thread| -> Result<()> {
            processors.pin(thread)?;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(query) = queries.get(number) else { return Ok(()) };
                let began = Instant::now();
                let found = searcher.search(query, &options)?;
                let took = began.elapsed();
                measured.lock().unwrap_or_else(PoisonError::into_inner).record(
                    number,
                    &found,
                    took,
                    options.count,
                );
            }
        };
        std::thread::scope(|scope| {
            let start = |thread| Builder::new().spawn_scoped(scope, move || work(thread));
            let others = (1..task.threads).map(start).collect::<std::io::Result<Vec<_>>>();
            let others = others
                .map_err(|error| tierdex::io::Error::from_os("start", "a thread that answers", &error))?;
            let mine = work(0);
            processors.unpin()?;
            let joined = others.into_iter().map(|thread| thread.join().expect("a thread does not panic"));
            std::iter::once(mine).chain(joined.collect::<Vec<_>>()).collect::<Result<()>>()
        })?;
        Ok(measured.into_inner().unwrap_or_else(PoisonError::into_inner))
    };
    let first = first_repetition(&repetition)?;
    let (before, at) = (index.bytes_read(), fetched());
    let (mut second, counters) = measured_repetition(recorder, &repetition)?;
    let (bytes_read, bytes_fetched) =
        (index.bytes_read() - before, fetched().zip(at).map(|(now, at)| now - at));
    while second.seconds < MEASURED_SECONDS && !queries.is_empty() {
        second.add(repetition()?)?;
    }
    let engine = "none".to_string();
    Ok(CellMeasurement {
        bytes_read,
        bytes_fetched,
        engine,
        counters,
        ..Repetition::measurement(first, second)
    })
}

fn by_executor(
    task: &CellTask,
    index: &Index,
    queries: &[Query],
    recorder: Option<Recorder>,
) -> Result<CellMeasurement> {
    let Some(options) = task.executor() else { return in_memory(task, index, queries, recorder) };
    let (executor, search) = (Executor::new(index, &options)?, task.search());
    let repetition = || -> Result<Repetition> {
        let mut measured = Repetition::new(queries.len());
        let mut source = queries.iter().cloned();
        executor.run_timed(
            || Ok::<_, tierdex::Error>(source.next()),
            &search,
            |number, found| {
                let (found, took) = found?;
                measured.record(number, &found, took, search.count);
                Ok(())
            },
        )?;
        Ok(measured)
    };
    let first = first_repetition(&repetition)?;
    task.throttle.iter().try_for_each(|procs| join(procs))?;
    let (before, read, at) = (executor.stats(), executor.bytes_read(), fetched());
    let (second, counters) = measured_repetition(recorder, &repetition)?;
    let bytes_fetched = fetched().zip(at).map(|(now, at)| now - at);
    let after = executor.stats();
    let lists = before.as_ref().zip(after.as_ref()).map(|(before, after)| CacheCounters {
        hits: after.hits - before.hits,
        misses: after.misses - before.misses,
        streamed: after.streamed - before.streamed,
        evictions: after.evictions - before.evictions,
        waits: after.waits - before.waits,
        reads: after.reads - before.reads,
    });
    // The samples are of both repetitions; those of the first are dropped.
    let began = queries.len() as u64;
    let noted = executor.lookahead_samples().into_iter().filter(|sample| sample.ended > began);
    let mut samples: Vec<(u64, u64)> = noted.map(|sample| (sample.ended - began, sample.queries)).collect();
    samples.drain(..samples.len().saturating_sub(task.samples));
    Ok(CellMeasurement {
        bytes_read: executor.bytes_read() - read,
        bytes_fetched,
        lists,
        lookahead_max: after.map_or(0, |after| after.lookahead_max),
        samples,
        engine: executor.engine().to_string(),
        fallback: executor.fallback().map(str::to_string),
        planned: executor.memory().needed(),
        counters,
        ..Repetition::measurement(first, second)
    })
}

/// The first repetition. Callgrind collects events in this function only, so it is not inlined, and the call
/// in it is no tail call.
#[inline(never)]
fn first_repetition(repetition: &dyn Fn() -> Result<Repetition>) -> Result<Repetition> {
    black_box(repetition())
}

/// The second repetition, and the events that are counted in it.
fn measured_repetition(
    mut recorder: Option<Recorder>,
    repetition: &dyn Fn() -> Result<Repetition>,
) -> Result<(Repetition, Option<EventCounts>)> {
    recorder.as_mut().map_or(Ok(()), Recorder::start)?;
    let measured = repetition()?;
    let counts = recorder.as_mut().map(Recorder::stop).transpose()?;
    Ok((measured, counts))
}

/// Seconds that the queries in memory are measured, at least: they are repeated until then. A thousand of
/// them can take a millisecond, and the speed of a virtual machine changes from one to the next.
const MEASURED_SECONDS: f64 = 0.25;

/// The measurements of one repetition, or of several.
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
            return Err(Error::Failed(
                "two repetitions of the same queries have different answers".to_string(),
            ));
        }
        self.seconds += other.seconds;
        self.repetitions += 1;
        self.times.extend(other.times);
        Ok(())
    }

    /// Records the answer to a query.
    fn record(&mut self, number: usize, found: &SearchResult, took: Duration, counted: bool) {
        self.times.push(took.as_nanos() as u64);
        self.seconds = self.began.elapsed().as_secs_f64();
        let matches = if counted { found.total } else { 0 };
        self.matches += matches;
        self.hits += found.hits.len() as u64;
        let hits =
            found.hits.iter().map(|hit| u64::from(hit.document) << 32 | u64::from(hit.score.to_bits()));
        self.digests[number] = hits.fold(mix(1, matches), mix);
    }

    /// The figures that do not depend on the mode.
    fn measurement(first: Repetition, second: Repetition) -> CellMeasurement {
        let mut times = second.times;
        times.sort_unstable();
        let digests = first.digests.iter().chain(&second.digests);
        CellMeasurement {
            first_seconds: first.seconds,
            seconds: second.seconds / f64::from(second.repetitions),
            queries: second.digests.len() as u64,
            p50: quantile(&times, 0.50),
            p99: quantile(&times, 0.99),
            matches: second.matches,
            hits: second.hits,
            checksum: digests.fold(0, |sum, digest| mix(sum, *digest)),
            ..CellMeasurement::default()
        }
    }
}

/// The quantile `part` of sorted times, in microseconds.
fn quantile(sorted: &[u64], part: f64) -> f64 {
    let rank = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(rank.max(1) - 1).map_or(0.0, |nanoseconds| *nanoseconds as f64 / 1e3)
}

fn mix(sum: u64, number: u64) -> u64 {
    (sum.rotate_left(5) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Bytes that the kernel has read from devices for this process.
fn fetched() -> Option<u64> {
    number_of(&fs::read_to_string("/proc/self/io").ok()?, "read_bytes:")
}

/// A number from the status of this process.
fn status(name: &str) -> Option<u64> {
    number_of(&fs::read_to_string("/proc/self/status").ok()?, name)
}

/// The number that follows `name` at the beginning of a line.
fn number_of(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut words| (words.next()? == name).then(|| words.next()?.parse().ok())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_measured_values() {
        let times: Vec<u64> = (1..=200).map(|number| number * 1000).collect();
        assert_eq!((quantile(&times, 0.5), quantile(&times, 0.99)), (100.0, 198.0));
        assert_eq!((quantile(&times[..1], 0.99), quantile(&[], 0.5)), (1.0, 0.0));
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
        assert_eq!((measured.qps(), measured.p50, measured.p99), (4.0, 1.0, 3.0));
    }

    #[test]
    fn numbers_are_found_by_name() {
        assert_eq!(number_of("cache 5\nrss_huge 7\nrss 6\n", "rss"), Some(6));
        assert_eq!(number_of("VmHWM:\t  12 kB\n", "VmHWM:"), Some(12));
        assert_eq!(number_of("anon x\n", "anon"), None);
    }
}
