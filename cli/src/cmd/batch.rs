//! `tierdex batch`: a file of queries to a TREC run.

use super::index::OnError;
use super::search::{QueryThreads, Ranking};
use crate::failure::{Failure, Outcome, output};
use crate::memory_flags::{self, MemoryFlags};
use crate::messages;
use crate::queries::Queries;
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
use tierdex::engine::{ExecutorOptions, MetaTier, THREADS_CHOSEN};
use tierdex::index::{Found, Index, SearchOptions};
use tierdex::query::Query;

/// Characters of a query that is shown as an example.
const EXAMPLE_CHARS_MAX: usize = 60;

#[derive(Args)]
pub struct Arguments {
    /// Directory of the index
    pub dir: PathBuf,
    /// Queries, one a line: id, tab, text; - for standard input. .gz and .zst are recognised by content
    #[arg(long)]
    queries: PathBuf,
    /// TREC run to write: query Q0 id rank score tag
    #[arg(long)]
    run: PathBuf,
    /// Number of hits for each query, at most
    #[arg(short, default_value_t = 1000)]
    k: usize,
    #[command(flatten)]
    ranking: Ranking,
    #[command(flatten)]
    threads: QueryThreads,
    /// Syntax of the queries [default: query]
    #[arg(long, value_enum)]
    syntax: Option<Syntax>,
    /// Leave out parts of queries with syntax errors, with a warning, and answer the rest
    #[arg(long)]
    lenient: bool,
    /// What to do about a query with a syntax error, or one that cannot be answered
    #[arg(long, value_enum, default_value_t = OnError::Fail)]
    on_error: OnError,
    /// Count all matching documents of each query, and report their sum; queries then take longer
    #[arg(long)]
    count: bool,
    #[command(flatten)]
    pub memory: MemoryFlags,
    /// Last column of the run
    #[arg(long, default_value = "tierdex")]
    tag: String,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Syntax {
    /// The query language of `tierdex search`.
    Query,
    /// Bags of words: documents with any of the words match; no character is an operator.
    Terms,
}

/// Options of experiments, beyond those of the command `tierdex batch`.
#[derive(Default)]
pub struct Experiment {
    /// Options for what no flag chooses.
    pub defaults: ExecutorOptions,
    /// Memory tier of dictionary, skip data and norms; chosen by the memory budget by default.
    pub meta_tier: Option<MetaTier>,
    /// Whether every matching document is scored.
    pub exhaustive: bool,
    /// File to which samples of the lookahead are written.
    pub lookahead_log: Option<PathBuf>,
}

impl Arguments {
    /// None of the files may be written over another.
    fn check_files(&self, lookahead_log: Option<&PathBuf>) -> Outcome {
        let stdin = PathBuf::from("/dev/stdin");
        let queries = if self.queries.as_os_str() == "-" { &stdin } else { &self.queries };
        let files =
            [("--queries", Some(queries)), ("--run", Some(&self.run)), ("--lookahead-log", lookahead_log)];
        for (at, (flag, file)) in files.iter().enumerate() {
            for (other_flag, other) in &files[..at] {
                if file.zip(*other).is_some_and(|(file, other)| are_same(file, other)) {
                    return Err(Failure::Usage(format!("{other_flag} and {flag} name the same file")));
                }
            }
            if at > 0 && file.is_some_and(|file| is_in(file, &self.dir)) {
                return Err(Failure::Usage(format!("{flag} names a file in the folder of the index")));
            }
        }
        Ok(())
    }
}

pub fn run(arguments: &Arguments, experiment: &Experiment) -> Outcome {
    let mut options = arguments.ranking.options(arguments.k, arguments.count)?;
    options.exhaustive = experiment.exhaustive;
    if arguments.tag.is_empty() || arguments.tag.contains(char::is_whitespace) {
        return Err(Failure::Usage("--tag must be one word".to_string()));
    }
    if arguments.lenient && arguments.syntax == Some(Syntax::Terms) {
        return Err(Failure::Usage(
            "--lenient goes with --syntax query: words have no syntax errors".to_string(),
        ));
    }
    arguments.check_files(experiment.lookahead_log.as_ref())?;
    let queries = Queries::open(&arguments.queries)?;
    let index = open::index(&arguments.dir)?;
    let defaults = ExecutorOptions {
        threads: arguments.threads.threads.unwrap_or(THREADS_CHOSEN),
        hits: options.k,
        ..experiment.defaults.clone()
    };
    let executor_options = arguments.memory.options(&index, defaults, experiment.meta_tier.clone());
    let start = Instant::now();
    let done = write_run(&index, queries, (&options, &executor_options), (arguments, experiment))?;
    let (one, many) = if arguments.count { ("match", "matches") } else { ("hit", "hits") };
    let left_out = match done.left_out {
        0 => String::new(),
        queries => format!("; {} failed and left out", size::group(queries)),
    };
    let seconds = start.elapsed().as_secs_f64();
    writeln!(
        stdout(),
        "{}, {}, {:.2} s, {:.1} queries/s, {} read{left_out}",
        size::count(done.queries, "query", "queries"),
        size::count(done.found, one, many),
        seconds,
        done.queries as f64 / seconds.max(1e-9),
        size::show(done.read)
    )
    .map_err(output)
}

/// Answers that are written some later, when their ids have been read.
const ANSWERS_KEPT: usize = 4;

/// What was done.
#[derive(Default)]
struct Done {
    /// Those that were answered.
    queries: u64,
    left_out: u64,
    /// Matches if they are counted, else hits.
    found: u64,
    /// Bytes.
    read: u64,
}

fn write_run(
    index: &Index,
    mut queries: Queries,
    (options, executor_options): (&SearchOptions, &ExecutorOptions),
    (arguments, experiment): (&Arguments, &Experiment),
) -> Outcome<Done> {
    let executor = arguments.memory.executor(index, executor_options)?;
    let (path, file) = (&arguments.run, queries.name().to_string());
    let run_file = RunFile::create(path).map_err(|error| cannot_write(path, &error))?;
    let mut out = BufWriter::new(run_file);
    let mut done = Done::default();
    let named = |id: &str, error: Error| {
        let why = Failure::from(error).within(&arguments.dir);
        Failure::Failed(format!("{file}, query {id}: {why}"))
    };
    let mut operators = Operators::default();
    // Whether all ends, or only the query is left out.
    let left_out = AtomicU64::new(0);
    let pass_over = |failure: Failure| {
        let (Failure::Failed(what), OnError::Skip) = (&failure, arguments.on_error) else {
            return Err(failure);
        };
        messages::say(format_args!("{what}; left out"));
        left_out.fetch_add(1, Ordering::Relaxed);
        Ok(())
    };
    let mut parse = |id: &str, text: &str| {
        let query = match arguments.syntax {
            Some(Syntax::Terms) => Query::any_term(text, index.schema()),
            _ if arguments.lenient => Ok(lenient(text, id, index, &file)),
            _ => Query::parse(text, index.schema()),
        };
        if arguments.syntax.is_none() {
            operators.note(text, query.as_ref(), index);
        }
        query.map_err(|error| match named(id, error) {
            Failure::Failed(what) if arguments.syntax.is_none() => {
                Failure::Failed(format!("{what}; --syntax terms takes queries as plain words"))
            }
            failure => failure,
        })
    };
    // Ids of the queries that were read and not answered.
    let ids = Mutex::new(VecDeque::new());
    let ids = || ids.lock().unwrap_or_else(PoisonError::into_inner);
    let source = || {
        while let Some(line) = queries.next()? {
            match line.and_then(|(id, text)| Ok((parse(&id, &text)?, id))) {
                Ok((query, id)) => {
                    ids().push_back(id);
                    return Ok(Some(query));
                }
                Err(failure) => pass_over(failure)?,
            }
        }
        Ok(None)
    };
    let searcher = executor.searcher();
    let mut write = |(id, found): (String, Found)| -> Outcome {
        // Of a query that is left out not a line is written, so its ids are read before.
        let read = match arguments.on_error {
            OnError::Skip => searcher.for_each_id(&found.hits, |_, _| Ok(())),
            OnError::Fail => Ok(()),
        };
        if let Err(error) = read {
            return pass_over(named(&id, error));
        }
        done.queries += 1;
        done.found += if arguments.count { found.total } else { found.hits.len() as u64 };
        let (mut rank, mut written) = (0, Ok(()));
        let read = searcher.for_each_id(&found.hits, |hit, document| {
            rank += 1;
            let document = document.replace(char::is_whitespace, "_");
            let (score, tag) = (hit.score, &arguments.tag);
            written = writeln!(out, "{id} Q0 {document} {rank} {score} {tag}");
            if written.is_ok() { Ok(()) } else { Err(Error::Interrupted) }
        });
        written.map_err(|error| cannot_write(path, &error))?;
        read.map_err(|error| named(&id, error))
    };
    // Those whose ids are on their way.
    let mut found_before = VecDeque::new();
    let answer = |_, found: tierdex::Result<Found>| -> Outcome {
        let id = ids().pop_front().unwrap_or_default();
        let found = match found {
            Ok(found) => found,
            Err(error) => return pass_over(named(&id, error)),
        };
        executor.prefetch_ids(&found.hits);
        found_before.push_back((id, found));
        let next = if found_before.len() > ANSWERS_KEPT { found_before.pop_front() } else { None };
        next.map_or(Ok(()), &mut write)
    };
    let run = executor.run(source, options, answer);
    // Also those before a query that failed.
    found_before.into_iter().try_for_each(write)?;
    run?;
    if arguments.memory.stats {
        messages::report(&memory_flags::report(&executor, executor_options));
    }
    if let Some(path) = &experiment.lookahead_log {
        log_lookahead(path, &executor.lookahead_samples()).map_err(|error| cannot_write(path, &error))?;
    }
    let left_out = left_out.into_inner();
    if done.queries == 0 && left_out > 0 {
        return Err(Failure::Failed(format!("{file}: no query was answered; {left_out} failed")));
    }
    operators.warn(&file);
    let written = out.into_inner().map_err(IntoInnerError::into_error).and_then(RunFile::finish);
    written.map_err(|error| cannot_write(path, &error))?;
    Ok(Done { read: executor.bytes_read(), left_out, ..done })
}

/// Queries in the query language that mean something else than their words as alternatives.
#[derive(Default)]
struct Operators {
    queries: u64,
    example: String,
}

impl Operators {
    /// Notes a query text and the query that it was parsed to.
    fn note(&mut self, text: &str, parsed: Result<&Query, &Error>, index: &Index) {
        let may = text.contains(['+', '-', '#', '"', '*', '~', '^', ':', '(', '\\'])
            || text.split_whitespace().any(|word| matches!(word, "AND" | "OR" | "NOT"));
        if may && Query::any_term(text, index.schema()).ok().as_ref() != parsed.ok() {
            if self.queries == 0 {
                self.example = text.chars().take(EXAMPLE_CHARS_MAX).collect();
            }
            self.queries += 1;
        }
    }

    fn warn(&self, file: &str) {
        if self.queries > 0 {
            let queries = size::count(self.queries, "query", "queries");
            messages::say(format_args!(
                "{file}: {queries} with operators, such as `{}`, parsed in the query language; --syntax terms takes \
                 them as plain words, --syntax query as they are, without this warning",
                self.example
            ));
        }
    }
}

/// Writes the number of queries and cells that were prefetched, each time a query ended.
fn log_lookahead(path: &Path, samples: &[LookaheadSample]) -> std::io::Result<()> {
    let mut out = BufWriter::new(descriptor(path).unwrap_or_else(|| File::create(path))?);
    writeln!(out, "ended\tqueries ahead\tsegments")?;
    for LookaheadSample { ended, queries, cells } in samples {
        writeln!(out, "{ended}\t{queries}\t{cells}")?;
    }
    out.flush()
}

/// Parses a query and reports its syntax errors as warnings.
fn lenient(text: &str, id: &str, index: &Index, file: &str) -> Query {
    let (query, warnings) = Query::parse_lenient(text, index.schema());
    for warning in warnings {
        messages::say(format_args!("{file}, query {id}: {warning}"));
    }
    query
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Failed(format!("cannot write {}: {error}", path.display()))
}
