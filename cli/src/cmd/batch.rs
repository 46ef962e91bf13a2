//! `tierdex batch`: evaluates a file of queries and writes a TREC run.

use super::index::OnError;
use super::search::{QueryThreads, RankingArguments, parse_k};
use crate::failure::{Failure, Outcome, output_error, write_error};
use crate::memory_flags::{self, MemoryFlags};
use crate::query_source::{FailedQueries, QueryFileArguments, QueryParser, next_query};
use crate::run_file::{RunFile, are_same_file, is_in_directory};
use crate::{messages, open, query_file::QueryFile, run_ids::RunIds, size};
use clap::Args;
use std::cell::RefCell;
use std::fs;
use std::io::{BufWriter, ErrorKind, IntoInnerError, Write, stdout};
use std::path::PathBuf;
use std::{collections::VecDeque, time::Instant};
use tierdex::{Engine, EngineOptions, Error, Hits, Index, SearchOptions, SearchRequest, Snapshot};

#[derive(Args)]
pub struct BatchCommandArguments {
    /// Directory of the index; the indexes of several directories are searched as one
    #[arg(required = true)]
    pub dirs: Vec<PathBuf>,
    #[command(flatten)]
    queries: QueryFileArguments,
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

impl BatchCommandArguments {
    /// Rejects arguments by which one file would be written over another.
    fn check_file_names(&self) -> Outcome {
        let stdin = PathBuf::from("/dev/stdin");
        let queries = &self.queries.queries;
        let queries = if queries.as_os_str() == "-" { &stdin } else { queries };
        if are_same_file(&self.run, queries) {
            return Err(Failure::Usage("--queries and --run name the same file".to_string()));
        }
        if self.dirs.iter().any(|dir| is_in_directory(&self.run, dir)) {
            return Err(Failure::Usage("--run names a file in the directory of the index".to_string()));
        }
        let Some(hot_pages) = &self.hot_pages else { return Ok(()) };
        if are_same_file(hot_pages, queries) || are_same_file(hot_pages, &self.run) {
            return Err(Failure::Usage("--hot-pages names the file of --queries or --run".to_string()));
        }
        if self.dirs.iter().any(|dir| is_in_directory(hot_pages, dir)) {
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
    arguments.queries.check()?;
    arguments.check_file_names()?;
    let queries = QueryFile::open(&arguments.queries.queries)?;
    let index = open::indexes(&arguments.dirs)?;
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
        match self.arguments.queries.on_error {
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
    arguments.memory.engine(&arguments.dirs[0], index, &arguments.memory.options(options), arguments.stats)
}

fn write_run(
    index: &Index,
    mut queries: QueryFile,
    options: &SearchOptions,
    arguments: &BatchCommandArguments,
) -> Outcome<BatchSummary> {
    let engine = start_engine(index, arguments)?;
    let (path, file) = (&arguments.run, queries.name().to_string());
    let file = file.as_str();
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
    let dirs = open::joined_path(&arguments.dirs);
    let failed = FailedQueries::new(&arguments.queries, file, &dirs);
    let mut parser = QueryParser::new(&arguments.queries, file, index);
    // Ids of the queries in evaluation, in order.
    let query_ids = RefCell::new(VecDeque::new());
    let source = || {
        let Some((id, query)) = next_query(&mut queries, &mut parser, &failed)? else { return Ok(None) };
        query_ids.borrow_mut().push_back(id);
        Ok(Some(SearchRequest::new(query).options(*options)))
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
    let (skipped, unanswered) = failed.check_any_answered(run.done.queries)?;
    parser.operators.print_warning(file);
    Ok(BatchSummary { bytes_read: engine.bytes_read(), skipped, unanswered, ..run.complete_run()? })
}
