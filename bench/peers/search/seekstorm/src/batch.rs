//! A batch, `FILE<TAB>THREADS<TAB>LATENCIES`: tasks take the lines of a file from a shared counter; each
//! line is timed.

use crate::Result;
use crate::serve::{Answer, Server};
use seekstorm::INDEX_RUNTIME;
use std::fs;
use std::sync::Arc;
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
pub fn run(server: &Arc<Server>, batch: &str) -> Result<String> {
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
    let lines: Vec<String> = text.lines().filter(|line| !line.is_empty()).map(str::to_string).collect();
    let (lines, next) = (Arc::new(lines), Arc::new(AtomicUsize::new(0)));
    let start = Instant::now();
    let workers: Vec<_> = (0..threads)
        .map(|_| INDEX_RUNTIME.spawn(work(server.clone(), lines.clone(), next.clone())))
        .collect();
    let mut done = Vec::new();
    for worker in workers {
        done.extend(INDEX_RUNTIME.block_on(worker).map_err(|_| "a worker stopped".to_string())?);
    }
    let wall = start.elapsed().as_nanos();
    done.sort_unstable_by_key(|done| done.line);
    if latencies != "-" {
        let text: String = done.iter().map(|done| format!("{}\n", done.nanoseconds)).collect();
        fs::write(latencies, text).map_err(|error| format!("cannot write {latencies}: {error}"))?;
    }
    Ok(summary(&done, wall))
}

/// Takes and answers lines until none is left.
async fn work(server: Arc<Server>, lines: Arc<Vec<String>>, next: Arc<AtomicUsize>) -> Vec<LineResult> {
    let mut done = Vec::with_capacity(lines.len());
    loop {
        let line = next.fetch_add(1, Ordering::Relaxed);
        let Some(text) = lines.get(line) else { return done };
        let start = Instant::now();
        let answer = server.answer(text).await;
        let nanoseconds = start.elapsed().as_nanos() as u64;
        let value = match answer {
            Answer::Number(number) => Some(number),
            Answer::Documents(hits) => Some(hits.len() as u64),
            Answer::Unsupported => None,
        };
        done.push(LineResult { line, nanoseconds, value });
    }
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
