//! Runs the lines of a file as a batch.

use super::server::{Backend, Server, answer};
use std::time::{Duration, Instant};
use tierdex::engine::Executor;
use tierdex::index::SearchResult;
use tierdex::query::Query;
use tierdex::{Error, Result};
use tierdex_bench_protocol::{Batch, Command, LineResult};

/// Runs `FILE<TAB>THREADS<TAB>LATENCIES` and returns its summary as a JSON object.
pub(super) fn run(server: &Server<'_>, batch: &str) -> Result<String> {
    let batch = Batch::read(batch).map_err(Error::Failed)?;
    let start = Instant::now();
    let results = match &server.backend {
        Backend::Memory(_) => {
            let answer = |line: &str| server.answer(line).map_err(|error| error.to_string());
            batch.answer(answer).map_err(Error::Failed)?
        }
        // The executor has its own threads.
        Backend::Executor(executor) => through_executor(server, executor, &batch.lines)?,
    };
    batch.finish(results, start.elapsed().as_nanos()).map_err(Error::Failed)
}

/// Runs the lines as the query queue of an executor. A line is timed from the start of its evaluation.
fn through_executor(server: &Server<'_>, executor: &Executor, lines: &[String]) -> Result<Vec<LineResult>> {
    let Some((command, _)) = lines.first().and_then(|line| Command::parse(line)) else {
        return Ok((0..lines.len()).map(|line| LineResult { line, nanoseconds: 0, value: None }).collect());
    };
    let mut rest = lines.iter();
    let next = || {
        let Some(line) = rest.next() else { return Ok(None) };
        match Command::parse(line) {
            Some((other, query)) if other == command => Query::parse(query, server.index.schema()).map(Some),
            _ => {
                let word = line.split('\t').next().unwrap_or_default();
                Err(Error::Usage(format!("`{word}` among lines of another command")))
            }
        }
    };
    let mut results = Vec::with_capacity(lines.len());
    let record = |line, found: Result<(SearchResult, Duration)>| {
        let (found, took) = found?;
        let value = answer(command, found).value();
        results.push(LineResult { line, nanoseconds: took.as_nanos() as u64, value });
        Ok(())
    };
    executor.run_timed(next, &server.options(command), record)?;
    Ok(results)
}
