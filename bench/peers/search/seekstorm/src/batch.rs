//! A batch: tasks take the lines of a file from a shared counter; each line is timed.

use crate::serve::Server;
use seekstorm::INDEX_RUNTIME;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tierdex_bench_protocol::{Batch, LineResult, Result};

/// Runs a batch and returns its summary as a JSON object.
pub fn run(server: &Arc<Server>, batch: &str) -> Result<String> {
    let (batch, next) = (Arc::new(Batch::read(batch)?), Arc::new(AtomicUsize::new(0)));
    let start = Instant::now();
    let workers: Vec<_> = (0..batch.threads)
        .map(|_| INDEX_RUNTIME.spawn(work(server.clone(), batch.clone(), next.clone())))
        .collect();
    let mut results = Vec::new();
    for worker in workers {
        results.extend(INDEX_RUNTIME.block_on(worker).map_err(|_| "a worker stopped".to_string())?);
    }
    let wall = start.elapsed().as_nanos();
    batch.finish(results, wall)
}

/// Takes and answers lines until none is left.
async fn work(server: Arc<Server>, batch: Arc<Batch>, next: Arc<AtomicUsize>) -> Vec<LineResult> {
    let mut results = Vec::with_capacity(batch.lines.len());
    loop {
        let line = next.fetch_add(1, Ordering::Relaxed);
        let Some(text) = batch.lines.get(line) else { return results };
        let start = Instant::now();
        let answer = server.answer(text).await;
        let nanoseconds = start.elapsed().as_nanos() as u64;
        results.push(LineResult { line, nanoseconds, value: answer.value() });
    }
}
