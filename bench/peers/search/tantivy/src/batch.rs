//! Batches of lines.

use crate::serve::Server;
use std::time::Instant;
use tierdex_bench_protocol::{Batch, Result};

/// Runs a batch and returns its summary as a JSON object.
pub fn run(server: &Server, batch: &str) -> Result<String> {
    let batch = Batch::read(batch)?;
    let start = Instant::now();
    let results = batch.answer(|line| server.answer(line))?;
    batch.finish(results, start.elapsed().as_nanos())
}
