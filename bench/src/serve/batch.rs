//! Runs the lines of a file as a batch: threads take the lines in order from a shared counter, and each line
//! is timed.

use super::server::{Backend, Command, Server};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;
use std::time::{Duration, Instant};
use tierdex::engine::Executor;
use tierdex::index::SearchResult;
use tierdex::query::Query;
use tierdex::{Error, Result};

/// The time and the answer of one line.
struct LineResult {
    line: usize,
    nanoseconds: u64,
    /// The number in the answer; `None` if the command is unknown.
    value: Option<u64>,
}

/// Runs `FILE<TAB>THREADS<TAB>LATENCIES`.
pub(super) fn run(server: &Server<'_>, batch: &str) -> Result<String> {
    let parts: Vec<&str> = batch.split('\t').collect();
    let [file, threads, latencies] = parts[..] else {
        return Err(Error::Usage(
            "!BATCH needs a file, a number of threads, and a file for latencies or -".into(),
        ));
    };
    let threads: usize = threads
        .parse()
        .ok()
        .filter(|threads| (1..=1024).contains(threads))
        .ok_or_else(|| Error::Usage(format!("`{threads}` is no number of threads from 1 to 1024")))?;
    let text =
        fs::read_to_string(file).map_err(|error| Error::Failed(format!("cannot read {file}: {error}")))?;
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let start = Instant::now();
    let mut done = match &server.backend {
        Backend::Memory(_) => from_memory(server, &lines, threads)?,
        // The executor has its own threads.
        Backend::Executor(executor) => through_executor(server, executor, &lines)?,
    };
    let wall = start.elapsed().as_nanos();
    done.sort_unstable_by_key(|done| done.line);
    if latencies != "-" {
        let text: String = done.iter().map(|done| format!("{}\n", done.nanoseconds)).collect();
        fs::write(latencies, text)
            .map_err(|error| Error::Failed(format!("cannot write {latencies}: {error}")))?;
    }
    Ok(summary(&done, wall))
}

fn from_memory(server: &Server<'_>, lines: &[&str], threads: usize) -> Result<Vec<LineResult>> {
    let next = AtomicUsize::new(0);
    let done = std::thread::scope(|scope| {
        let start = |_| Builder::new().spawn_scoped(scope, || work(server, lines, &next));
        let workers = (0..threads).map(start).collect::<std::io::Result<Vec<_>>>();
        let workers =
            workers.map_err(|error| tierdex::io::Error::from_os("start", "a thread that answers", &error))?;
        let results = workers.into_iter().map(|worker| worker.join().expect("a worker does not panic"));
        results.collect::<Result<Vec<_>>>()
    })?;
    Ok(done.into_iter().flatten().collect())
}

/// Runs the lines as the query queue of an executor. A line is timed from the start of its evaluation.
fn through_executor(server: &Server<'_>, executor: &Executor, lines: &[&str]) -> Result<Vec<LineResult>> {
    let command = lines.first().and_then(|line| Command::parse(line.split_once('\t')?.0));
    let Some(command) = command else {
        return Ok((0..lines.len()).map(|line| LineResult { line, nanoseconds: 0, value: None }).collect());
    };
    let mut rest = lines.iter();
    let next = || {
        let Some(line) = rest.next() else { return Ok(None) };
        let (word, query) = line.split_once('\t').unwrap_or((line, ""));
        if Command::parse(word) != Some(command) {
            return Err(Error::Usage(format!("`{word}` among lines of another command")));
        }
        Query::parse(query, server.index.schema()).map(Some)
    };
    let mut done = Vec::with_capacity(lines.len());
    let answer = |line, found: Result<(SearchResult, Duration)>| {
        let (found, took) = found?;
        let value = command.answer(found).value();
        done.push(LineResult { line, nanoseconds: took.as_nanos() as u64, value });
        Ok(())
    };
    executor.run_timed(next, &server.options(command), answer)?;
    Ok(done)
}

/// Takes and answers lines until none is left.
fn work(server: &Server<'_>, lines: &[&str], next: &AtomicUsize) -> Result<Vec<LineResult>> {
    let mut done = Vec::with_capacity(lines.len());
    loop {
        let line = next.fetch_add(1, Ordering::Relaxed);
        let Some(text) = lines.get(line) else { return Ok(done) };
        let start = Instant::now();
        let answer = server.answer(text)?;
        let nanoseconds = start.elapsed().as_nanos() as u64;
        done.push(LineResult { line, nanoseconds, value: answer.value() });
    }
}

fn summary(done: &[LineResult], wall: u128) -> String {
    let mut times: Vec<u64> = done.iter().map(|done| done.nanoseconds).collect();
    times.sort_unstable();
    let at = |share: usize| {
        times.get((times.len() * share / 100).min(times.len().saturating_sub(1))).copied().unwrap_or(0)
    };
    let sum: u64 = done.iter().filter_map(|done| done.value).sum();
    let unsupported = done.iter().filter(|done| done.value.is_none()).count();
    let (n, p50, p99, max) = (done.len(), at(50), at(99), at(100));
    format!(
        "{{\"n\":{n},\"wall_ns\":{wall},\"p50_ns\":{p50},\"p99_ns\":{p99},\"max_ns\":{max},\"sum\":{sum},\"unsupported\":{unsupported}}}"
    )
}
