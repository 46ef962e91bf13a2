//! `tierdex batch`: evaluates a file of queries and writes a TREC run.

use super::index::OnError;
use super::search::{QueryThreads, RankingArguments, parse_k};
use crate::failure::{Failure, Outcome, output_error};
use crate::memory_flags::{self, MemoryFlags};
use crate::run_file::{RunFile, are_same, is_in};
use crate::{messages, open, query_file::QueryFile, run_ids::RunIds, size};
use clap::{Args, ValueEnum};
use std::cell::{Cell, RefCell};
use std::io::{BufWriter, IntoInnerError, Write, stdout};
use std::path::{Path, PathBuf};
use std::{collections::VecDeque, time::Instant};
use tierdex::{Engine, EngineOptions, Error, Hits, Index, Query, SearchOptions, SearchRequest, Snapshot};

/// Maximum length of the example query in a warning, in characters.
const EXAMPLE_CHARS_MAX: usize = 60;

/// Advice for queries that are not in the query language, or need what the index does not have.
const TERMS_ADVICE: &str = "; with --syntax terms queries are bags of words";

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
    #[arg(short, default_value_t = 1000, allow_negative_numbers = true, value_parser = parse_k)]
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
    /// Action for a query with a syntax error or above a limit. A damaged index gives exit code 1 in any case
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

impl Arguments {
    /// Rejects arguments by which one file would be written over another.
    fn check_files(&self) -> Outcome {
        let stdin = PathBuf::from("/dev/stdin");
        let queries = if self.queries.as_os_str() == "-" { &stdin } else { &self.queries };
        if are_same(&self.run, queries) {
            return Err(Failure::Usage("--queries and --run name the same file".to_string()));
        }
        if is_in(&self.run, &self.dir) {
            return Err(Failure::Usage("--run names a file in the directory of the index".to_string()));
        }
        Ok(())
    }
}

pub fn run(arguments: &Arguments) -> Outcome {
    let options = arguments.ranking.options(arguments.k, arguments.count)?;
    if arguments.tag.is_empty() || arguments.tag.contains(char::is_whitespace) {
        return Err(Failure::Usage("--tag must be one word".to_string()));
    }
    if arguments.lenient && arguments.syntax == Some(QuerySyntax::Terms) {
        return Err(Failure::Usage(
            "--lenient needs --syntax query: bags of words have no syntax errors".to_string(),
        ));
    }
    arguments.check_files()?;
    let queries = QueryFile::open(&arguments.queries)?;
    let index = open::index(&arguments.dir)?;
    let start = Instant::now();
    let file = queries.name().to_string();
    let done = write_run(&index, queries, &options, arguments)?;
    let (one, many) = if arguments.count { ("match", "matches") } else { ("hit", "hits") };
    let skipped = match done.skipped {
        0 => String::new(),
        queries => format!("; {} with an error and skipped", size::group(queries)),
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
    .map_err(output_error)?;
    if done.unanswered > 0 {
        let all = size::count(done.queries + done.unanswered, "query", "queries");
        return Err(Failure::Failed(format!(
            "{file}: {} of {all} without an answer, as the index is damaged or cannot be read; the run has the others",
            size::group(done.unanswered)
        )));
    }
    Ok(())
}

/// Totals of a batch.
#[derive(Default)]
struct BatchSummary {
    /// Queries that were answered.
    queries: u64,
    /// Lines with an error that were skipped.
    skipped: u64,
    /// Queries without an answer, as the index is damaged or cannot be read.
    unanswered: u64,
    /// Matches if they are counted, otherwise hits.
    found: u64,
    /// Bytes read from the index.
    bytes_read: u64,
}

/// Queries that fail with `--on-error skip`. Without it the first one ends the batch.
struct FailedQueries<'b> {
    file: &'b str,
    dir: &'b Path,
    on_error: OnError,
    /// Whether `--syntax` is not given, which messages then advise.
    any_syntax: bool,
    skipped: Cell<u64>,
    unanswered: Cell<u64>,
}

impl FailedQueries<'_> {
    /// Skips a line of the file, or returns its error.
    fn skip_line(&self, failure: Failure) -> Outcome {
        self.skip(failure, "skipped", &self.skipped)
    }

    /// Skips a query, or returns its error. An error of the query itself is what `skip` means: its syntax,
    /// its size, or a clause that the index does not support. Any other, such as damage, leaves it without
    /// an answer.
    fn skip_query(&self, id: &str, error: Error) -> Outcome {
        let (word, count) = match error {
            Error::Query { .. } | Error::TooLarge(_) | Error::Usage(_) => ("skipped", &self.skipped),
            _ => ("no answer", &self.unanswered),
        };
        self.skip(self.failure(id, error), word, count)
    }

    fn skip(&self, failure: Failure, word: &str, count: &Cell<u64>) -> Outcome {
        let (Failure::Failed(error), OnError::Skip) = (&failure, self.on_error) else {
            return Err(failure);
        };
        messages::print(format_args!("{error}; {word}"));
        count.set(count.get() + 1);
        Ok(())
    }

    fn failure(&self, id: &str, error: Error) -> Failure {
        let of_query = matches!(error, Error::Query { .. } | Error::Usage(_));
        let advice = if of_query && self.any_syntax { TERMS_ADVICE } else { "" };
        let reason = Failure::from(error).in_folder(self.dir);
        Failure::Failed(format!("{}, query {id}: {reason}{advice}", self.file))
    }
}

/// Parses the queries of a file.
struct QueryParser<'b> {
    index: &'b Index,
    file: &'b str,
    syntax: Option<QuerySyntax>,
    lenient: bool,
    operators: OperatorCheck,
}

impl QueryParser<'_> {
    fn parse(&mut self, id: &str, text: &str) -> tierdex::Result<Query> {
        let schema = self.index.schema();
        let query = match self.syntax {
            Some(QuerySyntax::Terms) => Query::any_term(text, schema),
            _ => {
                let parsed = match self.lenient {
                    true => Ok(Query::parse_lenient(text, schema)),
                    false => Query::parse_with_notes(text, schema),
                };
                parsed.map(|(query, notes)| {
                    for note in notes {
                        messages::print(format_args!("{}, query {id}: {note}", self.file));
                    }
                    query
                })
            }
        };
        if self.syntax.is_none() {
            self.operators.add(text, query.as_ref(), self.index);
        }
        query
    }
}

/// Writes the hits of queries as a TREC run.
struct TrecRunWriter<'b> {
    arguments: &'b Arguments,
    snapshot: &'b Snapshot,
    out: BufWriter<RunFile>,
    ids: RunIds,
    done: BatchSummary,
}

impl TrecRunWriter<'_> {
    /// Whether the ids of all hits can be read. With `--on-error skip` they are read first: a query without
    /// an answer must not leave lines in the run.
    fn check_ids(&self, found: &Hits) -> tierdex::Result<()> {
        match self.arguments.on_error {
            OnError::Skip => found.for_each_id(|_, _| Ok(())),
            OnError::Fail => Ok(()),
        }
    }

    fn write(&mut self, query: &str, found: &Hits, failed: &FailedQueries<'_>) -> Outcome {
        self.done.queries += 1;
        self.done.found += if self.arguments.count { found.total.value() } else { found.hits.len() as u64 };
        let (mut rank, mut written) = (0, Ok(()));
        let read = found.for_each_id(|hit, document| {
            rank += 1;
            let document = self.ids.written(document);
            let (score, tag) = (hit.score, &self.arguments.tag);
            written = writeln!(self.out, "{query} Q0 {document} {rank} {score} {tag}");
            if written.is_ok() { Ok(()) } else { Err(Error::Interrupted) }
        });
        written.map_err(|error| cannot_write(&self.arguments.run, &error))?;
        read.map_err(|error| failed.failure(query, error))?;
        self.ids.check_if_full(self.snapshot)
    }

    /// Completes the run.
    fn finish(mut self) -> Outcome<BatchSummary> {
        self.ids.check(self.snapshot)?;
        self.ids.warn();
        let written = self.out.into_inner().map_err(IntoInnerError::into_error).and_then(RunFile::finish);
        written.map_err(|error| cannot_write(&self.arguments.run, &error))?;
        Ok(self.done)
    }
}

/// The engine that answers the queries.
fn engine(index: &Index, arguments: &Arguments) -> Outcome<Engine> {
    let options = EngineOptions::new().hits_max(arguments.k).previews(false);
    // Without the flag there is a thread for each processor.
    let options = options.threads(arguments.threads.threads.unwrap_or(0));
    arguments.memory.engine(index, &arguments.memory.options(options), arguments.stats)
}

fn write_run(
    index: &Index,
    mut queries: QueryFile,
    options: &SearchOptions,
    arguments: &Arguments,
) -> Outcome<BatchSummary> {
    let engine = engine(index, arguments)?;
    let (path, file) = (&arguments.run, queries.name().to_string());
    let (file, on_error) = (file.as_str(), arguments.on_error);
    let run_file = RunFile::create(path).map_err(|error| cannot_write(path, &error))?;
    let snapshot = engine.snapshot();
    let _memory = snapshot.reserve_all_output();
    let mut run = TrecRunWriter {
        arguments,
        snapshot: &snapshot,
        out: BufWriter::new(run_file),
        ids: RunIds::default(),
        done: BatchSummary::default(),
    };
    let (skipped, unanswered) = (Cell::new(0), Cell::new(0));
    let (syntax, lenient, operators) = (arguments.syntax, arguments.lenient, OperatorCheck::default());
    let (dir, any_syntax) = (arguments.dir.as_path(), syntax.is_none());
    let failed = FailedQueries { file, dir, on_error, any_syntax, skipped, unanswered };
    let mut parser = QueryParser { index, file, syntax, lenient, operators };
    // Ids of the queries in evaluation, in order.
    let query_ids = RefCell::new(VecDeque::new());
    let source = || {
        while let Some(line) = queries.next()? {
            match line.map(|(id, text)| (parser.parse(&id, &text), id)) {
                Ok((Ok(query), id)) => {
                    query_ids.borrow_mut().push_back(id);
                    return Ok(Some(SearchRequest::new(query).options(*options)));
                }
                Ok((Err(error), id)) => failed.skip_query(&id, error)?,
                Err(failure) => failed.skip_line(failure)?,
            }
        }
        Ok(None)
    };
    let answer = |_, hits: tierdex::Result<Hits>| -> Outcome {
        let id = query_ids.borrow_mut().pop_front().unwrap_or_default();
        match hits.and_then(|found| run.check_ids(&found).map(|()| found)) {
            Ok(found) => run.write(&id, &found, &failed),
            Err(error) => failed.skip_query(&id, error),
        }
    };
    engine.run_ordered(source, answer)?;
    if arguments.stats {
        messages::print_lines(&memory_flags::report(&engine));
    }
    let (skipped, unanswered) = (failed.skipped.into_inner(), failed.unanswered.into_inner());
    if run.done.queries == 0 && skipped + unanswered > 0 {
        let failed = skipped + unanswered;
        return Err(Failure::Failed(format!("{file}: no query was answered; {failed} failed")));
    }
    parser.operators.warn(file);
    Ok(BatchSummary { bytes_read: engine.bytes_read(), skipped, unanswered, ..run.finish()? })
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
        let may_differ = text
            .contains(['+', '-', '!', '#', '"', '*', '~', '^', ':', '(', ')', '\\', '&', '|', '/'])
            || text.split_whitespace().any(|word| matches!(word, "AND" | "OR" | "NOT"));
        let words = Query::any_term(text, index.schema());
        if may_differ && words.ok().as_ref().map(alternatives) != parsed.ok().map(alternatives) {
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

/// The alternatives of a query, with those of the groups in it.
fn alternatives(query: &Query) -> Vec<&Query> {
    match query {
        Query::Bool { must, filter, should, must_not, minimum: 0 }
            if must.is_empty() && filter.is_empty() && must_not.is_empty() =>
        {
            should.iter().flat_map(alternatives).collect()
        }
        other => vec![other],
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Failed(format!("cannot write {}: {error}", path.display()))
}
