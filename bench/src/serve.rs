//! A line protocol, so that any harness can drive the engine in a process of its own.
//!
//! For each input line `COMMAND<TAB>QUERY` the server prints one line:
//!
//! | command | answer |
//! |---|---|
//! | `COUNT` | number of matches |
//! | `TOP_k` | number of hits, at most k |
//! | `TOP_k_COUNT` | number of matches; the k best hits are computed too |
//! | `DOCS_k` | `document:score` of the k best hits, best first, separated by spaces |
//! | `!BATCH<TAB>FILE<TAB>THREADS<TAB>LATENCIES` | a JSON object with the times of the lines of FILE |
//!
//! An unknown command is answered by `UNSUPPORTED`, a failure by `ERROR` and the reason. The first line of
//! output is `READY`. By default the whole index is in memory before that line. With options of an engine,
//! queries go through an engine that reads and caches postings; the lines of a batch are then its requests,
//! and all of them must have the same command.

use crate::{Error, Result, held_index::load_index};
use clap::Args;
use std::{io::BufRead, io::Write, path::PathBuf};
use tierdex::limits::{DEFAULT_B, DEFAULT_K1};
use tierdex::{
    Bm25, Engine, EngineOptions, Hits, Index, Priority, Query, SearchOptions, SearchRequest,
    explain::SearchResult, internal::index::Searcher, io::RegionKind,
};
use tierdex_bench_protocol::{Answer, Batch, LineCommand, LineResult, LineServer, ServeError, serve};

/// Flags of the server.
#[derive(Args, Clone, Debug)]
pub struct Flags {
    /// Directory of the index
    pub dir: PathBuf,
    /// Score every matching document, without pruning
    #[arg(long)]
    pub exhaustive: bool,
    /// BM25 k1: saturation of the term frequency
    #[arg(long, default_value_t = DEFAULT_K1, allow_negative_numbers = true)]
    pub k1: f64,
    /// BM25 b: weight of the document length, 0 to 1
    #[arg(long, default_value_t = DEFAULT_B, allow_negative_numbers = true)]
    pub b: f64,
}

/// Answers the lines of `input` until it ends: from memory, or through an engine if `engine` has its options.
///
/// # Errors
/// If the index cannot be read, or if input or output fail.
pub fn run(
    index: &Index,
    engine: Option<&EngineOptions>,
    flags: &Flags,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> Result<()> {
    let bm25 = Bm25::new(flags.k1, flags.b)?;
    let backend = match engine {
        Some(options) => ServedBackend::Engine(Engine::new(index, options)?),
        None => ServedBackend::Memory(Box::new(load_index(index, &RegionKind::Dram)?)),
    };
    let server = Server { index, backend, exhaustive: flags.exhaustive, bm25 };
    serve(&server, input, output).map_err(|error| match error {
        ServeError::Output(error) => Error::Output(error),
        error => Error::Failed(error.to_string()),
    })
}

/// The index behind the protocol, and how its queries are evaluated.
struct Server<'a> {
    index: &'a Index,
    backend: ServedBackend,
    exhaustive: bool,
    bm25: Bm25,
}

/// What evaluates the queries: a searcher over an index in memory, or an engine that reads postings.
enum ServedBackend {
    Memory(Box<Searcher>),
    Engine(Engine),
}

impl LineServer for Server<'_> {
    fn answer(&self, line: &str) -> std::result::Result<Answer, String> {
        self.answer_line(line).map_err(|error| error.to_string())
    }

    fn answer_batch(&self, batch: &Batch) -> std::result::Result<Vec<LineResult>, String> {
        match (&self.backend, batch.lines.first().and_then(|line| LineCommand::parse(line))) {
            // The engine has its own threads.
            (ServedBackend::Engine(engine), Some((command, _))) => {
                self.run_through_engine(engine, command, &batch.lines).map_err(|error| error.to_string())
            }
            _ => batch.answer(|line| self.answer(line)),
        }
    }
}

impl Server<'_> {
    fn answer_line(&self, line: &str) -> tierdex::Result<Answer> {
        let Some((command, query)) = LineCommand::parse(line) else { return Ok(Answer::Unsupported) };
        let query = Query::parse(query, self.index.schema())?;
        let options = self.options(command);
        let found = match &self.backend {
            ServedBackend::Memory(searcher) => searcher.search(&query, &options)?,
            ServedBackend::Engine(engine) => {
                let request = SearchRequest::new(query).options(options).priority(Priority::Batch);
                engine.search(request)?.into_result()
            }
        };
        Ok(answer_of(command, found))
    }

    /// Runs lines of one command as a batch of an engine. A line is timed from the start of its evaluation.
    fn run_through_engine(
        &self,
        engine: &Engine,
        command: LineCommand,
        lines: &[String],
    ) -> tierdex::Result<Vec<LineResult>> {
        let options = self.options(command);
        let mut rest = lines.iter();
        let next = || {
            let Some(line) = rest.next() else { return Ok(None) };
            match LineCommand::parse(line) {
                Some((other, query)) if other == command => {
                    let query = Query::parse(query, self.index.schema())?;
                    Ok(Some(SearchRequest::new(query).options(options)))
                }
                _ => {
                    let word = line.split('\t').next().unwrap_or_default();
                    Err(tierdex::Error::Usage(format!("`{word}` among lines of another command")))
                }
            }
        };
        let mut results = Vec::with_capacity(lines.len());
        let record = |line, hits: tierdex::Result<Hits>| {
            let hits = hits?;
            let nanoseconds = hits.took.saturating_sub(hits.queued).as_nanos() as u64;
            let value = answer_of(command, hits.into_result()).value();
            results.push(LineResult { line, nanoseconds, value });
            Ok(())
        };
        engine.run_ordered(next, record)?;
        Ok(results)
    }

    /// The search options of a command.
    fn options(&self, command: LineCommand) -> SearchOptions {
        let (k, count) = match command {
            LineCommand::Count => (0, true),
            LineCommand::Top(k) | LineCommand::Docs(k) => (k, false),
            LineCommand::TopCount(k) => (k, true),
        };
        let (exhaustive, scorer) = (self.exhaustive, self.bm25.into());
        SearchOptions { k, count, exhaustive, scorer, ..SearchOptions::default() }
    }
}

/// The answer to a command, from the result of its query.
fn answer_of(command: LineCommand, found: SearchResult) -> Answer {
    match command {
        LineCommand::Count | LineCommand::TopCount(_) => Answer::Number(found.total),
        LineCommand::Top(_) => Answer::Number(found.hits.len() as u64),
        LineCommand::Docs(_) => {
            Answer::Documents(found.hits.iter().map(|hit| (u64::from(hit.document), hit.score)).collect())
        }
    }
}
