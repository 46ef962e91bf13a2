//! `tierdex batch`: evaluates a file of queries and writes a TREC run.

use super::index::OnError;
use super::search::{QueryThreads, RankingArguments, parse_k};
use crate::failure::{Failure, Outcome, output_error, write_error};
use crate::memory_flags::{self, MemoryFlags};
use crate::run_file::{RunFile, are_same_file, is_in_directory};
use crate::{messages, open, query_file::QueryFile, run_ids::RunIds, size};
use clap::{Args, ValueEnum};
use std::cell::{Cell, RefCell};
use std::fs;
use std::io::{BufWriter, ErrorKind, IntoInnerError, Write, stdout};
use std::path::{Path, PathBuf};
use std::{collections::VecDeque, time::Instant};
use tierdex::{Engine, EngineOptions, Error, Hits, Index, Query, SearchOptions, SearchRequest, Snapshot};

/// Maximum length of the example query in a warning, in characters.
const EXAMPLE_QUERY_CHARS_MAX: usize = 60;

/// Advice for queries that are not in the query language, or need what the index does not have.
const SYNTAX_ADVICE: &str = "; with --syntax terms queries are bags of words";

#[derive(Args)]
pub struct BatchCommandArguments {
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
    /// File that keeps which pages are in the postings cache: the next batch reads them while its first
    /// queries are evaluated. It is replaced each minute and at the end
    #[arg(long, value_name = "FILE")]
    hot_pages: Option<PathBuf>,
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

impl BatchCommandArguments {
    /// Rejects arguments by which one file would be written over another.
    fn check_file_names(&self) -> Outcome {
        let stdin = PathBuf::from("/dev/stdin");
        let queries = if self.queries.as_os_str() == "-" { &stdin } else { &self.queries };
        if are_same_file(&self.run, queries) {
            return Err(Failure::Usage("--queries and --run name the same file".to_string()));
        }
        if is_in_directory(&self.run, &self.dir) {
            return Err(Failure::Usage("--run names a file in the directory of the index".to_string()));
        }
        let Some(hot_pages) = &self.hot_pages else { return Ok(()) };
        if are_same_file(hot_pages, queries) || are_same_file(hot_pages, &self.run) {
            return Err(Failure::Usage("--hot-pages names the file of --queries or --run".to_string()));
        }
        if is_in_directory(hot_pages, &self.dir) {
            return Err(Failure::Usage("--hot-pages names a file in the directory of the index".to_string()));
        }
        match fs::metadata(hot_pages) {
            Ok(file) if file.permissions().readonly() => {
                Err(write_error(hot_pages, &ErrorKind::PermissionDenied.into()))
            }
            _ => Ok(()),
        }
    }
}

pub fn run_batch(arguments: &BatchCommandArguments) -> Outcome {
    let options = arguments.ranking.options(arguments.k, arguments.count)?;
    if arguments.tag.is_empty() || arguments.tag.contains(char::is_whitespace) {
        return Err(Failure::Usage("--tag must be one word".to_string()));
    }
    if arguments.lenient && arguments.syntax == Some(QuerySyntax::Terms) {
        return Err(Failure::Usage(
            "--lenient needs --syntax query: bags of words have no syntax errors".to_string(),
        ));
    }
    arguments.check_file_names()?;
    let queries = QueryFile::open(&arguments.queries)?;
    let index = open::index(&arguments.dir)?;
    let start = Instant::now();
    let file = queries.name().to_string();
    let done = write_run(&index, queries, &options, arguments)?;
    let (one, many) = if arguments.count { ("match", "matches") } else { ("hit", "hits") };
    let skipped = match done.skipped {
        0 => String::new(),
        queries => format!("; {} with an error and skipped", size::show_number(queries)),
    };
    let seconds = start.elapsed().as_secs_f64();
    writeln!(
        stdout(),
        "{}, {}, {:.2} s, {:.1} queries/s, {} read{skipped}",
        size::show_count(done.queries, "query", "queries"),
        size::show_count(done.found, one, many),
        seconds,
        done.queries as f64 / seconds.max(1e-9),
        size::show_bytes(done.bytes_read)
    )
    .map_err(output_error)?;
    if done.unanswered > 0 {
        let all = size::show_count(done.queries + done.unanswered, "query", "queries");
        return Err(Failure::Failed(format!(
            "{file}: {} of {all} without an answer, as the index is damaged or cannot be read; the run has the others",
            size::show_number(done.unanswered)
        )));
    }
    Ok(())
}

/// Numbers of the summary line of a batch.
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

/// Handles queries without a result: with `--on-error skip` each is printed and counted, without it the first
/// one ends the batch.
struct FailedQueries<'b> {
    file: &'b str,
    dir: &'b Path,
    on_error: OnError,
    /// Whether `--syntax` is not given; error messages then suggest it.
    any_syntax: bool,
    skipped: Cell<u64>,
    unanswered: Cell<u64>,
}

impl FailedQueries<'_> {
    /// Skips a line of the file, or returns its error.
    fn skip_line(&self, failure: Failure) -> Outcome {
        self.skip_or_fail(failure, "skipped", &self.skipped)
    }

    /// Skips a query, or returns its error. An error of the query itself is what `skip` means: its syntax,
    /// its size, or a clause that the index does not support. Any other, such as damage, leaves it without
    /// an answer.
    fn skip_query(&self, id: &str, error: Error) -> Outcome {
        let (word, count) = match error {
            Error::Query { .. } | Error::TooLarge(_) | Error::Usage(_) => ("skipped", &self.skipped),
            _ => ("no answer", &self.unanswered),
        };
        self.skip_or_fail(self.query_failure(id, error), word, count)
    }

    fn skip_or_fail(&self, failure: Failure, word: &str, count: &Cell<u64>) -> Outcome {
        let (Failure::Failed(error), OnError::Skip) = (&failure, self.on_error) else {
            return Err(failure);
        };
        messages::print_message(format_args!("{error}; {word}"));
        count.set(count.get() + 1);
        Ok(())
    }

    fn query_failure(&self, id: &str, error: Error) -> Failure {
        let of_query = matches!(error, Error::Query { .. } | Error::Usage(_));
        let advice = if of_query && self.any_syntax { SYNTAX_ADVICE } else { "" };
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
    operators: OperatorQueries,
}

impl QueryParser<'_> {
    fn parse_query(&mut self, id: &str, text: &str) -> tierdex::Result<Query> {
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
                        messages::print_message(format_args!("{}, query {id}: {note}", self.file));
                    }
                    query
                })
            }
        };
        if self.syntax.is_none() {
            self.operators.count_query(text, query.as_ref(), self.index);
        }
        query
    }
}

/// Writes the hits of queries as a TREC run.
struct TrecRunWriter<'b> {
    arguments: &'b BatchCommandArguments,
    snapshot: &'b Snapshot,
    out: BufWriter<RunFile>,
    ids: RunIds,
    done: BatchSummary,
}

impl TrecRunWriter<'_> {
    /// With `--on-error skip`, reads the ids of all hits before a line is written: a query whose ids cannot
    /// be read must not leave lines in the run.
    fn check_ids(&self, found: &Hits) -> tierdex::Result<()> {
        match self.arguments.on_error {
            OnError::Skip => found.for_each_id(|_, _| Ok(())),
            OnError::Fail => Ok(()),
        }
    }

    fn write_hits(&mut self, query: &str, found: &Hits, failed: &FailedQueries<'_>) -> Outcome {
        self.done.queries += 1;
        self.done.found += if self.arguments.count { found.total.value() } else { found.hits.len() as u64 };
        let (mut rank, mut written) = (0, Ok(()));
        let read = found.for_each_id(|hit, document| {
            rank += 1;
            let document = self.ids.encode_id(document);
            let (score, tag) = (hit.score, &self.arguments.tag);
            written = writeln!(self.out, "{query} Q0 {document} {rank} {score} {tag}");
            if written.is_ok() { Ok(()) } else { Err(Error::Interrupted) }
        });
        written.map_err(|error| write_error(&self.arguments.run, &error))?;
        read.map_err(|error| failed.query_failure(query, error))?;
        self.ids.check_clashes_if_full(self.snapshot)
    }

    /// Writes the rest of the run and renames it to its final name.
    fn complete_run(mut self) -> Outcome<BatchSummary> {
        self.ids.check_clashes(self.snapshot)?;
        self.ids.print_warning();
        let written = self.out.into_inner().map_err(IntoInnerError::into_error).and_then(RunFile::finish);
        written.map_err(|error| write_error(&self.arguments.run, &error))?;
        Ok(self.done)
    }
}

/// The engine that answers the queries.
fn start_engine(index: &Index, arguments: &BatchCommandArguments) -> Outcome<Engine> {
    let options = EngineOptions::new().hits_max(arguments.k).previews(false);
    let options = arguments.hot_pages.iter().fold(options, |options, file| options.hot_pages(file));
    // Without the flag there is a thread for each processor.
    let options = options.threads(arguments.threads.threads.unwrap_or(0));
    arguments.memory.engine(&arguments.dir, index, &arguments.memory.options(options), arguments.stats)
}

fn write_run(
    index: &Index,
    mut queries: QueryFile,
    options: &SearchOptions,
    arguments: &BatchCommandArguments,
) -> Outcome<BatchSummary> {
    let engine = start_engine(index, arguments)?;
    let (path, file) = (&arguments.run, queries.name().to_string());
    let (file, on_error) = (file.as_str(), arguments.on_error);
    let run_file = RunFile::create(path).map_err(|error| write_error(path, &error))?;
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
    let (syntax, lenient, operators) = (arguments.syntax, arguments.lenient, OperatorQueries::default());
    let (dir, any_syntax) = (arguments.dir.as_path(), syntax.is_none());
    let failed = FailedQueries { file, dir, on_error, any_syntax, skipped, unanswered };
    let mut parser = QueryParser { index, file, syntax, lenient, operators };
    // Ids of the queries in evaluation, in order.
    let query_ids = RefCell::new(VecDeque::new());
    let source = || {
        while let Some(line) = queries.next()? {
            match line.map(|(id, text)| (parser.parse_query(&id, &text), id)) {
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
            Ok(found) => run.write_hits(&id, &found, &failed),
            Err(error) => failed.skip_query(&id, error),
        }
    };
    engine.run_ordered(source, answer)?;
    if let (Some(error), Some(file)) = (engine.hot_pages_error(), &arguments.hot_pages) {
        messages::print_message(format_args!("{}: not used as hot pages: {error}", file.display()));
    }
    if arguments.stats {
        messages::print_lines(&memory_flags::memory_report(&engine));
    }
    let (skipped, unanswered) = (failed.skipped.into_inner(), failed.unanswered.into_inner());
    if run.done.queries == 0 && skipped + unanswered > 0 {
        let failed = skipped + unanswered;
        return Err(Failure::Failed(format!("{file}: no query was answered; {failed} failed")));
    }
    parser.operators.print_warning(file);
    Ok(BatchSummary { bytes_read: engine.bytes_read(), skipped, unanswered, ..run.complete_run()? })
}

/// Counts queries with operators: those whose parse differs from the disjunction of their words.
#[derive(Default)]
struct OperatorQueries {
    queries: u64,
    example: String,
}

impl OperatorQueries {
    /// Counts the query if its text has operators.
    fn count_query(&mut self, text: &str, parsed: Result<&Query, &Error>, index: &Index) {
        let may_differ = text
            .contains(['+', '-', '!', '#', '"', '*', '~', '^', ':', '(', ')', '\\', '&', '|', '/'])
            || text.split_whitespace().any(|word| matches!(word, "AND" | "OR" | "NOT"));
        let words = Query::any_term(text, index.schema());
        if may_differ && words.ok().as_ref().map(flat_alternatives) != parsed.ok().map(flat_alternatives) {
            if self.queries == 0 {
                self.example = text.chars().take(EXAMPLE_QUERY_CHARS_MAX).collect();
            }
            self.queries += 1;
        }
    }

    fn print_warning(&self, file: &str) {
        if self.queries > 0 {
            let queries = size::show_count(self.queries, "query", "queries");
            messages::print_message(format_args!(
                "{file}: {queries} with operators, such as `{}`, parsed as query language; give --syntax query, or --syntax \
                 terms for bags of words",
                self.example
            ));
        }
    }
}

/// The clauses of a disjunction, with those of nested disjunctions; any other query is its own single clause.
fn flat_alternatives(query: &Query) -> Vec<&Query> {
    match query {
        Query::Bool { must, filter, should, must_not, minimum: 0 }
            if must.is_empty() && filter.is_empty() && must_not.is_empty() =>
        {
            should.iter().flat_map(flat_alternatives).collect()
        }
        other => vec![other],
    }
}
