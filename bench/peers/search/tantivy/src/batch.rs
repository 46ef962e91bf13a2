//! A batch: threads take the lines of a file from a shared counter; each line is timed.

use crate::serve::Server;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tierdex_peer_protocol::{Batch, LineResult, Result};

/// Runs a batch and returns its summary as a JSON object.
pub fn run(server: &Server, batch: &str) -> Result<String> {
    let batch = Batch::read(batch)?;
    let next = AtomicUsize::new(0);
    let start = Instant::now();
    let results = std::thread::scope(|scope| {
        let workers: Vec<_> =
            (0..batch.threads).map(|_| scope.spawn(|| work(server, &batch.lines, &next))).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().map_err(|_| "a worker stopped".to_string())?)
            .collect::<Result<Vec<_>>>()
    })?;
    let wall = start.elapsed().as_nanos();
    batch.finish(results.into_iter().flatten().collect(), wall)
}

/// Takes and answers lines until none is left.
fn work(server: &Server, lines: &[String], next: &AtomicUsize) -> Result<Vec<LineResult>> {
    let mut results = Vec::with_capacity(lines.len());
    loop {
        let line = next.fetch_add(1, Ordering::Relaxed);
        let Some(text) = lines.get(line) else { return Ok(results) };
        let start = Instant::now();
        let answer = server.answer(text)?;
        let nanoseconds = start.elapsed().as_nanos() as u64;
        results.push(LineResult { line, nanoseconds, value: answer.value() });
    }
}
