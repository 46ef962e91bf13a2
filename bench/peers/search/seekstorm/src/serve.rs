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
use std::net::SocketAddr;
use std::sync::{Arc, atomic::AtomicUsize, atomic::Ordering};
use std::{fs::File, io::BufRead, io::stderr, io::stdout, os::fd::AsFd, path::Path, time::Instant};
use tierdex_bench_protocol::{Answer, Batch, LineCommand, LineResult, LineServer, Result, serve};
use tierdex_peer_http::serve_http;

/// The index behind the protocol.
#[derive(Clone)]
struct Server {
    index: IndexArc,
}

/// Answers the lines of `input` until it ends.
pub fn run(dir: &Path, input: &mut dyn BufRead) -> Result<()> {
    let mut output = quiet().map_err(|error| format!("cannot take the output: {error}"))?;
    serve(&Server::open(dir)?, input, &mut output).map_err(|error| error.to_string())
}

/// Answers requests at `address`.
pub fn run_http(dir: &Path, address: SocketAddr) -> Result<()> {
    serve_http(Server::open(dir)?, address)
}

/// Standard output. Output of the library itself is redirected to standard error.
fn quiet() -> std::io::Result<File> {
    let output = stdout().as_fd().try_clone_to_owned()?;
    dup2_stdout(stderr())?;
    Ok(File::from(output))
}

impl LineServer for Server {
    fn answer(&self, line: &str) -> Result<Answer> {
        Ok(INDEX_RUNTIME.block_on(self.find(line)))
    }

    /// Tasks take the lines from a shared counter.
    fn answer_batch(&self, batch: &Batch) -> Result<Vec<LineResult>> {
        let next = Arc::new(AtomicUsize::new(0));
        let start = |_| INDEX_RUNTIME.spawn(work(self.clone(), batch.lines.clone(), next.clone()));
        let workers: Vec<_> = (0..batch.threads).map(start).collect();
        let mut results = Vec::new();
        for worker in workers {
            results.extend(INDEX_RUNTIME.block_on(worker).map_err(|_| "a worker stopped".to_string())?);
        }
        Ok(results)
    }
}

/// Takes and answers lines until none is left.
async fn work(server: Server, lines: Arc<[String]>, next: Arc<AtomicUsize>) -> Vec<LineResult> {
    let mut results = Vec::with_capacity(lines.len());
    loop {
        let line = next.fetch_add(1, Ordering::Relaxed);
        let Some(text) = lines.get(line) else { return results };
        let start = Instant::now();
        let answer = server.find(text).await;
        let nanoseconds = start.elapsed().as_nanos() as u64;
        results.push(LineResult { line, nanoseconds, value: answer.value() });
    }
}

impl Server {
    fn open(dir: &Path) -> Result<Server> {
        let index = INDEX_RUNTIME.block_on(open_index(dir));
        let index = index.map_err(|error| format!("cannot open {}: {error}", dir.display()))?;
        Ok(Server { index })
    }

    /// The answer to `COMMAND<TAB>QUERY`.
    async fn find(&self, line: &str) -> Answer {
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
