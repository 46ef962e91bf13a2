//! A batch, `FILE<TAB>THREADS<TAB>LATENCIES`: threads take the lines of a file from a shared counter; each
//! line is timed.

use crate::Result;
use crate::serve::{Answer, Server};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// The time and the answer of one line.
struct LineResult {
    line: usize,
    nanoseconds: u64,
    /// The number in the answer, the number of hits of a list, or `None` if the line is not supported.
    value: Option<u64>,
}

/// Runs a batch and returns its summary as a JSON object.
pub fn run(server: &Server, batch: &str) -> Result<String> {
    let parts: Vec<&str> = batch.split('\t').collect();
    let [file, threads, latencies] = parts[..] else {
        return Err("!BATCH needs a file, a number of threads, and a file for latencies or -".to_string());
    };
    let threads: usize = threads
        .parse()
        .ok()
        .filter(|threads| (1..=1024).contains(threads))
        .ok_or_else(|| format!("`{threads}` is no number of threads from 1 to 1024"))?;
    let text = fs::read_to_string(file).map_err(|error| format!("cannot read {file}: {error}"))?;
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let next = AtomicUsize::new(0);
    let start = Instant::now();
    let done = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| work(server, &lines, &next))).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().map_err(|_| "a worker stopped".to_string())?)
            .collect::<Result<Vec<_>>>()
    })?;
    let wall = start.elapsed().as_nanos();
    let mut done: Vec<LineResult> = done.into_iter().flatten().collect();
    done.sort_unstable_by_key(|done| done.line);
    if latencies != "-" {
        let text: String = done.iter().map(|done| format!("{}\n", done.nanoseconds)).collect();
        fs::write(latencies, text).map_err(|error| format!("cannot write {latencies}: {error}"))?;
    }
    Ok(summary(&done, wall))
}

/// Takes and answers lines until none is left.
fn work(server: &Server, lines: &[&str], next: &AtomicUsize) -> Result<Vec<LineResult>> {
    let mut done = Vec::with_capacity(lines.len());
    while let (line, Some(text)) = take(lines, next) {
        let start = Instant::now();
        let answer = server.answer(text)?;
        let nanoseconds = start.elapsed().as_nanos() as u64;
        let value = match answer {
            Answer::Number(number) => Some(number),
            Answer::Documents(hits) => Some(hits.len() as u64),
            Answer::Unsupported => None,
        };
        done.push(LineResult { line, nanoseconds, value });
    }
    Ok(done)
}

fn take<'a>(lines: &[&'a str], next: &AtomicUsize) -> (usize, Option<&'a str>) {
    let line = next.fetch_add(1, Ordering::Relaxed);
    (line, lines.get(line).copied())
}

fn summary(done: &[LineResult], wall: u128) -> String {
    let mut times: Vec<u64> = done.iter().map(|done| done.nanoseconds).collect();
    times.sort_unstable();
    let at = |percent: usize| {
        times.get((times.len() * percent / 100).min(times.len().saturating_sub(1))).copied().unwrap_or(0)
    };
    let sum: u64 = done.iter().filter_map(|done| done.value).sum();
    let unsupported = done.iter().filter(|done| done.value.is_none()).count();
    format!(
        "{{\"n\":{},\"wall_ns\":{wall},\"p50_ns\":{},\"p99_ns\":{},\"max_ns\":{},\"sum\":{sum},\
         \"unsupported\":{unsupported}}}",
        done.len(),
        at(50),
        at(99),
        at(100)
    )
}
