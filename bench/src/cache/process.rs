//! A cell's process: joins its groups, answers the queries twice, and says what the second time took.
//!
//! 1. It writes its number into the groups that were made for it, so that all it takes from then on counts;
//! 2. opens the index and sets up who answers;
//! 3. answers all queries, and all of them again;
//! 4. says what the second repetition took, and a checksum of the hits of both.

use super::cell::Contender;
use super::measured::{Lists, Measured};
use super::task::Task;
use crate::{Error, Result};
use std::fs;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};
use tierdex::engine::Executor;
use tierdex::index::{Found, Index};
use tierdex::io::PosixDisk;
use tierdex::query::Query;

/// Runs the cell that stands on `input`, and writes what it found to `output`.
///
/// # Errors
/// Whatever keeps it from being measured.
pub fn run_cell(input: &mut dyn Read, output: &mut dyn Write) -> Result<()> {
    let mut text = String::new();
    let read = input.read_to_string(&mut text);
    read.map_err(|error| Error::Failed(format!("cannot read what to measure: {error}")))?;
    let value = serde_json::from_str(&text);
    let value = value.map_err(|error| Error::Usage(format!("what to measure is no JSON: {error}")))?;
    let measured = run(&Task::from_json(&value)?)?;
    writeln!(output, "{}", measured.to_json()).and_then(|()| output.flush()).map_err(Error::Output)
}

/// Joins the groups and measures.
pub(super) fn run(task: &Task) -> Result<Measured> {
    for procs in &task.join {
        fs::write(procs, std::process::id().to_string())
            .map_err(|error| Error::Failed(format!("cannot join {}: {error}", procs.display())))?;
    }
    let index = Index::open_on(Arc::new(PosixDisk::open(&task.index)?))?;
    let queries: Vec<Query> = task.queries.iter().map(|terms| task.shape.query(task.field, terms)).collect();
    let mut measured = match task.executor() {
        None => in_memory(task, &index, &queries)?,
        Some(_) => by_executor(task, &index, &queries)?,
    };
    measured.process_peak = status("VmHWM:").unwrap_or(0) << 10;
    if let Some(stat) = task.stat.as_ref().and_then(|path| fs::read_to_string(path).ok()) {
        // The first names are those of version 1, the second ones those of version 2.
        measured.own = member(&stat, "rss").or_else(|| member(&stat, "anon"));
        measured.page_cache = member(&stat, "cache").or_else(|| member(&stat, "file"));
    }
    Ok(measured)
}

fn in_memory(task: &Task, index: &Index, queries: &[Query]) -> Result<Measured> {
    assert_eq!(task.contender, Contender::Memory);
    index.keep_in_memory()?;
    let (searcher, options) = (index.searcher(), task.search());
    let repetition = || -> Result<Pass> {
        let (next, pass) = (AtomicUsize::new(0), Mutex::new(Pass::new(queries.len())));
        let work = || -> tierdex::Result<()> {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(query) = queries.get(number) else { return Ok(()) };
                let began = Instant::now();
                let found = searcher.search(query, &options)?;
                let took = began.elapsed();
                pass.lock().unwrap_or_else(PoisonError::into_inner).note(number, &found, took, options.count);
            }
        };
        std::thread::scope(|scope| {
            let start = |_| Builder::new().spawn_scoped(scope, work);
            let others = (1..task.threads).map(start).collect::<std::io::Result<Vec<_>>>();
            let others = others
                .map_err(|error| tierdex::io::Error::from_os("start", "a thread that answers", &error))?;
            let mine = work();
            let joined = others.into_iter().map(|thread| thread.join().expect("a thread does not panic"));
            std::iter::once(mine).chain(joined.collect::<Vec<_>>()).collect::<tierdex::Result<()>>()
        })?;
        Ok(pass.into_inner().unwrap_or_else(PoisonError::into_inner))
    };
    let first = repetition()?;
    let (before, at) = (index.bytes_read(), fetched());
    let second = repetition()?;
    let bytes_fetched = fetched().zip(at).map(|(now, at)| now - at);
    let engine = "nothing is read".to_string();
    Ok(Measured {
        bytes_read: index.bytes_read() - before,
        bytes_fetched,
        engine,
        ..Pass::measured(first, second)
    })
}

fn by_executor(task: &Task, index: &Index, queries: &[Query]) -> Result<Measured> {
    let Some(options) = task.executor() else { return in_memory(task, index, queries) };
    let (executor, search) = (Executor::new(index, &options)?, task.search());
    let repetition = || -> Result<Pass> {
        let mut pass = Pass::new(queries.len());
        let mut source = queries.iter().cloned();
        executor.run_timed(
            || Ok::<_, tierdex::Error>(source.next()),
            &search,
            |number, found| {
                let (found, took) = found?;
                pass.note(number, &found, took, search.count);
                Ok(())
            },
        )?;
        Ok(pass)
    };
    let first = repetition()?;
    let (before, read, at) = (executor.stats(), executor.bytes_read(), fetched());
    let second = repetition()?;
    let bytes_fetched = fetched().zip(at).map(|(now, at)| now - at);
    let after = executor.stats();
    let lists = before.as_ref().zip(after.as_ref()).map(|(before, after)| Lists {
        hits: after.hits - before.hits,
        misses: after.misses - before.misses,
        streamed: after.streamed - before.streamed,
        evictions: after.evictions - before.evictions,
        waits: after.waits - before.waits,
        reads: after.reads - before.reads,
    });
    // Both repetitions were noted.
    let began = queries.len() as u64;
    let noted = executor.lookahead_samples().into_iter().filter(|sample| sample.ended > began);
    let mut samples: Vec<(u64, u64)> = noted.map(|sample| (sample.ended - began, sample.queries)).collect();
    samples.drain(..samples.len().saturating_sub(task.samples));
    Ok(Measured {
        bytes_read: executor.bytes_read() - read,
        bytes_fetched,
        lists,
        lookahead_max: after.map_or(0, |after| after.lookahead_max),
        samples,
        engine: executor.engine().to_string(),
        fallback: executor.fallback().map(str::to_string),
        planned: executor.memory().needed(),
        ..Pass::measured(first, second)
    })
}

/// One repetition: its answers as they come.
struct Pass {
    began: Instant,
    last: Instant,
    /// Nanoseconds of each query, from when a thread began to answer it.
    times: Vec<u64>,
    /// A digest of the answer to each query.
    digests: Vec<u64>,
    matches: u64,
    hits: u64,
}

impl Pass {
    fn new(queries: usize) -> Pass {
        let (times, digests) = (Vec::with_capacity(queries), vec![0; queries]);
        let now = Instant::now();
        Pass { began: now, last: now, times, digests, matches: 0, hits: 0 }
    }

    fn note(&mut self, number: usize, found: &Found, took: Duration, counted: bool) {
        self.times.push(took.as_nanos() as u64);
        self.last = Instant::now();
        let matches = if counted { found.total } else { 0 };
        self.matches += matches;
        self.hits += found.hits.len() as u64;
        let hits =
            found.hits.iter().map(|hit| u64::from(hit.document) << 32 | u64::from(hit.score.to_bits()));
        self.digests[number] = hits.fold(mix(1, matches), mix);
    }

    /// Whatever is known without knowing who answered.
    fn measured(first: Pass, second: Pass) -> Measured {
        let mut times = second.times;
        times.sort_unstable();
        let digests = first.digests.iter().chain(&second.digests);
        Measured {
            first_seconds: (first.last - first.began).as_secs_f64(),
            seconds: (second.last - second.began).as_secs_f64(),
            queries: times.len() as u64,
            p50: quantile(&times, 0.50),
            p99: quantile(&times, 0.99),
            matches: second.matches,
            hits: second.hits,
            checksum: digests.fold(0, |sum, digest| mix(sum, *digest)),
            ..Measured::default()
        }
    }
}

/// The smallest time that so large a part of them does not exceed, in microseconds.
fn quantile(sorted: &[u64], part: f64) -> f64 {
    let rank = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(rank.max(1) - 1).map_or(0.0, |nanoseconds| *nanoseconds as f64 / 1e3)
}

fn mix(sum: u64, number: u64) -> u64 {
    (sum.rotate_left(5) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Bytes that the system has fetched from devices for this process.
fn fetched() -> Option<u64> {
    member(&fs::read_to_string("/proc/self/io").ok()?, "read_bytes:")
}

/// A number of the process's status.
fn status(name: &str) -> Option<u64> {
    member(&fs::read_to_string("/proc/self/status").ok()?, name)
}

/// The number behind a name at the beginning of a line.
fn member(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut words| (words.next()? == name).then(|| words.next()?.parse().ok())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_those_that_there_are() {
        let times: Vec<u64> = (1..=200).map(|number| number * 1000).collect();
        assert_eq!((quantile(&times, 0.5), quantile(&times, 0.99)), (100.0, 198.0));
        assert_eq!((quantile(&times[..1], 0.99), quantile(&[], 0.5)), (1.0, 0.0));
    }

    #[test]
    fn members_are_found() {
        assert_eq!(member("cache 5\nrss_huge 7\nrss 6\n", "rss"), Some(6));
        assert_eq!(member("VmHWM:\t  12 kB\n", "VmHWM:"), Some(12));
        assert_eq!(member("anon x\n", "anon"), None);
    }
}
