//! Runs the lines of a file as a batch.

use super::server::{ServedBackend, Server, answer_of};
use std::time::Instant;
use tierdex::{Engine, Error, Hits, Query, Result, SearchRequest};
use tierdex_bench_protocol::{Batch, LineCommand, LineResult};

/// Runs `FILE<TAB>THREADS<TAB>LATENCIES` and returns its summary as a JSON object.
pub(super) fn run_batch(server: &Server<'_>, batch: &str) -> Result<String> {
    let batch = Batch::read(batch).map_err(Error::Failed)?;
    let start = Instant::now();
    let results = match &server.backend {
        ServedBackend::Memory(_) => {
            let answer = |line: &str| server.answer(line).map_err(|error| error.to_string());
            batch.answer(answer).map_err(Error::Failed)?
        }
        // The engine has its own threads.
        ServedBackend::Engine(engine) => run_through_engine(server, engine, &batch.lines)?,
    };
    batch.finish(results, start.elapsed().as_nanos()).map_err(Error::Failed)
}

/// Runs the lines as a batch of an engine. A line is timed from the start of its evaluation.
fn run_through_engine(server: &Server<'_>, engine: &Engine, lines: &[String]) -> Result<Vec<LineResult>> {
    let Some((command, _)) = lines.first().and_then(|line| LineCommand::parse(line)) else {
        return Ok((0..lines.len()).map(|line| LineResult { line, nanoseconds: 0, value: None }).collect());
    };
    let options = server.options(command);
    let mut rest = lines.iter();
    let next = || {
        let Some(line) = rest.next() else { return Ok(None) };
        match LineCommand::parse(line) {
            Some((other, query)) if other == command => {
                let query = Query::parse(query, server.index.schema())?;
                Ok(Some(SearchRequest::new(query).options(options)))
            }
            _ => {
                let word = line.split('\t').next().unwrap_or_default();
                Err(Error::Usage(format!("`{word}` among lines of another command")))
            }
        }
    };
    let mut results = Vec::with_capacity(lines.len());
    let record = |line, hits: Result<Hits>| {
        let hits = hits?;
        let nanoseconds = hits.took.saturating_sub(hits.queued).as_nanos() as u64;
        let value = answer_of(command, hits.into_result()).value();
        results.push(LineResult { line, nanoseconds, value });
        Ok(())
    };
    engine.run_ordered(next, record)?;
    Ok(results)
}
