//! The line protocol: one line of answer per line `COMMAND<TAB>QUERY`.
//!
//! | command | how it is answered |
//! |---|---|
//! | `COUNT` | `ResultType::Count` |
//! | `TOP_k`, `DOCS_k` | `ResultType::Topk` |
//! | `TOP_k_COUNT` | `ResultType::TopkCount` |
//!
//! Release 4.0.1 panics with an index out of bounds when it only counts and the query excludes words. Such
//! queries are counted by `TopkCount` with one hit.

use crate::query;
use nix::unistd::dup2_stdout;
use seekstorm::INDEX_RUNTIME;
use seekstorm::index::{IndexArc, open_index};
use seekstorm::search::{QueryRewriting, QueryType, ResultObject, ResultType, Search, SearchMode};
use std::{fs::File, os::fd::AsFd, path::Path, sync::Arc, time::Instant};
use std::io::{BufRead, Write, stderr, stdout};
use std::sync::atomic::{AtomicUsize, Ordering};
use tierdex_bench_protocol::{Answer, Batch, LineCommand, LineResult, Result};

/// The index behind the protocol.
struct Server {
    index: IndexArc,
}

/// Answers the lines of `input` until it ends.
pub fn run(dir: &Path, input: &mut dyn BufRead) -> Result<()> {
    let mut output = quiet().map_err(|error| format!("cannot take the output: {error}"))?;
    let index = INDEX_RUNTIME.block_on(open_index(dir));
    let index = index.map_err(|error| format!("cannot open {}: {error}", dir.display()))?;
    let server = Arc::new(Server { index });
    say(&mut output, "READY")?;
    let mut line = String::new();
    while input.read_line(&mut line).map_err(|error| format!("cannot read a line: {error}"))? > 0 {
        say(&mut output, &reply(&server, line.trim_end()))?;
        line.clear();
    }
    Ok(())
}

/// Standard output. Output of the library itself is redirected to standard error.
fn quiet() -> std::io::Result<File> {
    let output = stdout().as_fd().try_clone_to_owned()?;
    dup2_stdout(stderr())?;
    Ok(File::from(output))
}

fn say(output: &mut dyn Write, line: &str) -> Result<()> {
    output
        .write_all(format!("{line}\n").as_bytes())
        .and_then(|()| output.flush())
        .map_err(|error| format!("cannot write the output: {error}"))
}

fn reply(server: &Arc<Server>, line: &str) -> String {
    match line.strip_prefix("!BATCH\t") {
        Some(batch) => run_batch(server, batch).unwrap_or_else(|error| format!("ERROR {error}")),
        None => INDEX_RUNTIME.block_on(server.answer(line)).to_string(),
    }
}

/// Runs a batch and returns its summary as a JSON object: tasks take the lines of a file from a shared
/// counter, and each line is timed.
fn run_batch(server: &Arc<Server>, batch: &str) -> Result<String> {
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

impl Server {
    /// The answer to `COMMAND<TAB>QUERY`.
    async fn answer(&self, line: &str) -> Answer {
        let Some((command, text)) = LineCommand::parse(line) else { return Answer::Unsupported };
        if !query::is_known(text) {
            return Answer::Unsupported;
        }
        match command {
            LineCommand::Count => {
                let (k, wanted) = match query::excludes(text) {
                    true => (1, ResultType::TopkCount),
                    false => (0, ResultType::Count),
                };
                Answer::Number(self.search(text, k, wanted).await.result_count_total as u64)
            }
            LineCommand::Top(k) => {
                Answer::Number(self.search(text, k, ResultType::Topk).await.results.len() as u64)
            }
            LineCommand::TopCount(k) => {
                Answer::Number(self.search(text, k, ResultType::TopkCount).await.result_count_total as u64)
            }
            LineCommand::Docs(k) => {
                let found = self.search(text, k, ResultType::Topk).await;
                Answer::Documents(found.results.iter().map(|hit| (hit.doc_id as u64, hit.score)).collect())
            }
        }
    }

    async fn search(&self, text: &str, k: usize, wanted: ResultType) -> ResultObject {
        let search = self.index.search(
            text.to_string(),
            None,
            QueryType::Union,
            SearchMode::Lexical,
            false,
            0,
            k,
            wanted,
            false,
            Vec::new(),
            Vec::new(),
            Vec::new(),
            Vec::new(),
            QueryRewriting::SearchOnly,
        );
        search.await
    }
}
