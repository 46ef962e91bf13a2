//! `tierdex batch`: evaluates a file of queries and writes a TREC run.

use super::index::OnError;
use super::search::{QueryThreads, RankingArguments};
use crate::failure::{Failure, Outcome, output_error};
use crate::memory_flags::{self, MemoryFlags};
use crate::messages;
use crate::query_file::QueryFile;
use crate::run_file::{RunFile, are_same, descriptor, is_in};
use crate::{open, size};
use clap::{Args, ValueEnum};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufWriter, IntoInnerError, Write, stdout};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tierdex::Error;
use tierdex::cache::LookaheadSample;
use tierdex::engine::{ExecutorOptions, MetaTier, THREADS_AUTO};
use tierdex::index::{Index, SearchOptions, SearchResult};
use tierdex::io::{ReadDelay, RegionKind};
use tierdex::query::Query;

/// Maximum length of the example query in a warning, in characters.
const EXAMPLE_CHARS_MAX: usize = 60;

#[derive(Args)]
pub struct Arguments {
    /// Directory of the index
    pub dir: PathBuf,
    /// File of queries, or - for standard input; each line is an id, a tab and the query. gzip and zstd are
    /// detected by content
    #[arg(long)]
    queries: PathBuf,
    /// TREC run to write; each line is: query Q0 id rank score tag
    #[arg(long)]
    run: PathBuf,
    /// Maximum number of hits per query
    #[arg(short, default_value_t = 1000)]
    k: usize,
    #[command(flatten)]
    ranking: RankingArguments,
    #[command(flatten)]
    threads: QueryThreads,
    /// Syntax of the queries [default: query, with a warning if queries contain operators]
    #[arg(long, value_enum)]
    syntax: Option<QuerySyntax>,
    /// Ignore the parts of a query with syntax errors, with a warning
    #[arg(long)]
    lenient: bool,
    /// Action for a query that has a syntax error or fails
    #[arg(long, value_enum, default_value_t = OnError::Fail)]
    on_error: OnError,
    /// Count all matching documents of each query and print their sum; slower, as no matching document is
    /// skipped
    #[arg(long)]
    count: bool,
    #[command(flatten)]
    pub memory: MemoryFlags,
    /// Print the memory of each component, cache hits and reads on standard error
    #[arg(long)]
    stats: bool,
    /// Tag: last column of the run, one word
    #[arg(long, default_value = "tierdex")]
    tag: String,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum QuerySyntax {
    /// Query language of `tierdex search`
    Query,
    /// Bag of words: a disjunction of all terms; no character is an operator
    Terms,
}

/// Additional options of `tierdex-bench batch`.
#[derive(Default)]
pub struct ExperimentOptions {
    /// Executor options where no flag is given.
    pub defaults: ExecutorOptions,
    /// Memory tier of dictionary, skip data and norms. By default the memory budget decides.
    pub meta_tier: Option<MetaTier>,
    /// Region of the index if it is held in memory as a whole, and a delay of its reads.
    pub held: Option<(RegionKind, Option<ReadDelay>)>,
    /// Whether every matching document is scored.
    pub exhaustive: bool,
    /// File for samples of the lookahead.
    pub lookahead_log: Option<PathBuf>,
}

impl Arguments {
    /// Rejects arguments by which one file would be written over another.
    fn check_files(&self, lookahead_log: Option<&PathBuf>) -> Outcome {
        let stdin = PathBuf::from("/dev/stdin");
        let queries = if self.queries.as_os_str() == "-" { &stdin } else { &self.queries };
        let files =
            [("--queries", Some(queries)), ("--run", Some(&self.run)), ("--lookahead-log", lookahead_log)];
        for (i, (flag, file)) in files.iter().enumerate() {
            for (other_flag, other) in &files[..i] {
                if file.zip(*other).is_some_and(|(file, other)| are_same(file, other)) {
                    return Err(Failure::Usage(format!("{other_flag} and {flag} name the same file")));
                }
            }
            if i > 0 && file.is_some_and(|file| is_in(file, &self.dir)) {
                return Err(Failure::Usage(format!("{flag} names a file in the directory of the index")));
            }
        }
        Ok(())
    }
}

pub fn run(arguments: &Arguments, experiment: &ExperimentOptions) -> Outcome {
    let mut options = arguments.ranking.options(arguments.k, arguments.count)?;
    options.exhaustive = experiment.exhaustive;
    if arguments.tag.is_empty() || arguments.tag.contains(char::is_whitespace) {
        return Err(Failure::Usage("--tag must be one word".to_string()));
    }
    if arguments.lenient && arguments.syntax == Some(QuerySyntax::Terms) {
        return Err(Failure::Usage(
            "--lenient needs --syntax query: bags of words have no syntax errors".to_string(),
        ));
    }
    arguments.check_files(experiment.lookahead_log.as_ref())?;
    let queries = QueryFile::open(&arguments.queries)?;
    let index = open::index(&arguments.dir)?;
    if let Some((region, delay)) = &experiment.held {
        let bytes = size::show(index.kept_bytes());
        index.keep_in(region, *delay)?;
        if arguments.stats {
            let delay = delay.map_or(String::new(), |delay| format!(", slow tier {delay} (emulated)"));
            messages::print(format_args!("the index is held in {region}, {bytes}{delay}"));
        }
    }
    let defaults = ExecutorOptions {
        threads: arguments.threads.threads.unwrap_or(THREADS_AUTO),
        hits_max: options.k,
        ..experiment.defaults.clone()
    };
    let executor_options = arguments.memory.options(&index, defaults, experiment.meta_tier.clone());
    let start = Instant::now();
    let done = write_run(&index, queries, (&options, &executor_options), (arguments, experiment))?;
    let (one, many) = if arguments.count { ("match", "matches") } else { ("hit", "hits") };
    let skipped = match done.skipped {
        0 => String::new(),
        queries => format!("; {} failed and skipped", size::group(queries)),
    };
    let seconds = start.elapsed().as_secs_f64();
    writeln!(
        stdout(),
        "{}, {}, {:.2} s, {:.1} queries/s, {} read{skipped}",
        size::count(done.queries, "query", "queries"),
        size::count(done.found, one, many),
        seconds,
        done.queries as f64 / seconds.max(1e-9),
        size::show(done.bytes_read)
    )
    .map_err(output_error)
}

/// Totals of a batch.
#[derive(Default)]
struct BatchSummary {
    /// Queries that were answered.
    queries: u64,
    /// Queries that failed and were skipped.
    skipped: u64,
    /// Matches if they are counted, otherwise hits.
    found: u64,
    /// Bytes read from the index.
    bytes_read: u64,
}

fn write_run(
    index: &Index,
    mut queries: QueryFile,
    (options, executor_options): (&SearchOptions, &ExecutorOptions),
    (arguments, experiment): (&Arguments, &ExperimentOptions),
) -> Outcome<BatchSummary> {
    let executor = arguments.memory.executor(index, executor_options, arguments.stats)?;
    let (path, file) = (&arguments.run, queries.name().to_string());
    let run_file = RunFile::create(path).map_err(|error| cannot_write(path, &error))?;
    let mut out = BufWriter::new(run_file);
    let mut done = BatchSummary::default();
    let query_failure = |id: &str, error: Error| {
        let reason = Failure::from(error).in_folder(&arguments.dir);
        Failure::Failed(format!("{file}, query {id}: {reason}"))
    };
    let mut operators = OperatorCheck::default();
    // With --on-error skip a failed query is skipped, otherwise it ends the batch.
    let skipped = AtomicU64::new(0);
    let skip_or_fail = |failure: Failure| {
        let (Failure::Failed(error), OnError::Skip) = (&failure, arguments.on_error) else {
            return Err(failure);
        };
        messages::print(format_args!("{error}; skipped"));
        skipped.fetch_add(1, Ordering::Relaxed);
        Ok(())
    };
    let mut parse = |id: &str, text: &str| {
        let query = match arguments.syntax {
            Some(QuerySyntax::Terms) => Query::any_term(text, index.schema()),
            _ if arguments.lenient => Ok(parse_lenient(text, id, index, &file)),
            _ => Query::parse(text, index.schema()),
        };
        if arguments.syntax.is_none() {
            operators.add(text, query.as_ref(), index);
        }
        let is_query_error = matches!(query, Err(Error::Query { .. }));
        query.map_err(|error| match query_failure(id, error) {
            Failure::Failed(error) if arguments.syntax.is_none() && is_query_error => {
                Failure::Failed(format!("{error}; with --syntax terms queries are bags of words"))
            }
            failure => failure,
        })
    };
    // Ids of the queries in evaluation, in order.
    let query_ids = Mutex::new(VecDeque::new());
    let query_ids = || query_ids.lock().unwrap_or_else(PoisonError::into_inner);
    let source = || {
        while let Some(line) = queries.next()? {
            match line.and_then(|(id, text)| Ok((parse(&id, &text)?, id))) {
                Ok((query, id)) => {
                    query_ids().push_back(id);
                    return Ok(Some(query));
                }
                Err(failure) => skip_or_fail(failure)?,
            }
        }
        Ok(None)
    };
    let searcher = executor.searcher();
    let mut write = |id: String, found: SearchResult| -> Outcome {
        // With --on-error skip all ids are read first: a skipped query must not leave lines in the run.
        let read = match arguments.on_error {
            OnError::Skip => searcher.for_each_id(&found.hits, &found.ids, |_, _| Ok(())),
            OnError::Fail => Ok(()),
        };
        if let Err(error) = read {
            return skip_or_fail(query_failure(&id, error));
        }
        done.queries += 1;
        done.found += if arguments.count { found.total } else { found.hits.len() as u64 };
        let (mut rank, mut written) = (0, Ok(()));
        let read = searcher.for_each_id(&found.hits, &found.ids, |hit, document| {
            rank += 1;
            let document = document.replace(char::is_whitespace, "_");
            let (score, tag) = (hit.score, &arguments.tag);
            written = writeln!(out, "{id} Q0 {document} {rank} {score} {tag}");
            if written.is_ok() { Ok(()) } else { Err(Error::Interrupted) }
        });
        written.map_err(|error| cannot_write(path, &error))?;
        read.map_err(|error| query_failure(&id, error))
    };
    let answer = |_, found: tierdex::Result<SearchResult>| -> Outcome {
        let id = query_ids().pop_front().unwrap_or_default();
        match found {
            Ok(found) => write(id, found),
            Err(error) => skip_or_fail(query_failure(&id, error)),
        }
    };
    executor.run(source, options, answer)?;
    if arguments.stats && experiment.held.is_none() {
        messages::print_lines(&memory_flags::report(&executor, executor_options));
    }
    if let Some(path) = &experiment.lookahead_log {
        log_lookahead(path, &executor.lookahead_samples()).map_err(|error| cannot_write(path, &error))?;
    }
    let skipped = skipped.into_inner();
    if done.queries == 0 && skipped > 0 {
        return Err(Failure::Failed(format!("{file}: no query was answered; {skipped} failed")));
    }
    operators.warn(&file);
    let written = out.into_inner().map_err(IntoInnerError::into_error).and_then(RunFile::finish);
    written.map_err(|error| cannot_write(path, &error))?;
    Ok(BatchSummary { bytes_read: executor.bytes_read(), skipped, ..done })
}

/// Counts queries with operators: those whose parse differs from the disjunction of their words.
#[derive(Default)]
struct OperatorCheck {
    queries: u64,
    example: String,
}

impl OperatorCheck {
    /// Adds a query text and its parsed query.
    fn add(&mut self, text: &str, parsed: Result<&Query, &Error>, index: &Index) {
        let may_differ = text.contains(['+', '-', '#', '"', '*', '~', '^', ':', '(', ')', '\\'])
            || text.split_whitespace().any(|word| matches!(word, "AND" | "OR" | "NOT"));
        if may_differ && Query::any_term(text, index.schema()).ok().as_ref() != parsed.ok() {
            if self.queries == 0 {
                self.example = text.chars().take(EXAMPLE_CHARS_MAX).collect();
            }
            self.queries += 1;
        }
    }

    fn warn(&self, file: &str) {
        if self.queries > 0 {
            let queries = size::count(self.queries, "query", "queries");
            messages::print(format_args!(
                "{file}: {queries} with operators, such as `{}`, parsed as query language; give --syntax query, or --syntax \
                 terms for bags of words",
                self.example
            ));
        }
    }
}

/// Writes the number of prefetched queries and cells at the end of each query.
fn log_lookahead(path: &Path, samples: &[LookaheadSample]) -> std::io::Result<()> {
    let mut out = BufWriter::new(descriptor(path).unwrap_or_else(|| File::create(path))?);
    writeln!(out, "ended\tqueries ahead\tsegments")?;
    for LookaheadSample { ended, queries, cells } in samples {
        writeln!(out, "{ended}\t{queries}\t{cells}")?;
    }
    out.flush()
}

/// Parses a query and prints its syntax errors as warnings.
fn parse_lenient(text: &str, id: &str, index: &Index, file: &str) -> Query {
    let (query, warnings) = Query::parse_lenient(text, index.schema());
    for warning in warnings {
        messages::print(format_args!("{file}, query {id}: {warning}"));
    }
    query
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Failed(format!("cannot write {}: {error}", path.display()))
}
