//! `tierdex search`: one query.

use super::hits::{HitsWriter, Json, Shown, Summary, Table};
use crate::failure::{Failure, Outcome, output};
use crate::memory_flags::{self, MemoryFlags};
use crate::messages;
use crate::open;
use clap::{Args, ValueEnum};
use std::io::{BufWriter, Write, stdout};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tierdex::engine::ExecutorOptions;
use tierdex::index::{Found, Index, SearchOptions, Searcher};
use tierdex::limits::{DEFAULT_B, DEFAULT_K1};
use tierdex::query::Query;
use tierdex::rank::Bm25;
use tierdex::text::{Analyzer, snippet};

/// Length of a snippet in bytes, about.
const SNIPPET_BYTES: usize = 180;

#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    pub asked: Asked,
    #[command(flatten)]
    memory: MemoryFlags,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// One query and its index, shared by the commands that answer one query.
#[derive(Args)]
pub struct Asked {
    /// Directory of the index
    pub dir: PathBuf,
    /// Terms, AND, OR, NOT, +required, -excluded, #filter, "a phrase"~slop, begin*, fuzzy~1, term^boost, (of
    /// these)~2, field:term; docs/query.md describes it all. An index made by `tierdex index` has one field,
    /// text, which holds titles too. Several arguments are one query; if it begins with -, put -- before
    #[arg(required = true)]
    query: Vec<String>,
    /// Leave out parts of the query with syntax errors, with a warning, and answer the rest
    #[arg(long)]
    lenient: bool,
    /// Number of hits to show, at most
    #[arg(short, default_value_t = 10)]
    k: usize,
    #[command(flatten)]
    ranking: Ranking,
    /// Count all matching documents; otherwise those that cannot be among the best are skipped, and the number of
    /// matches is a lower bound
    #[arg(long)]
    count: bool,
}

/// Threads of many queries.
#[derive(Args, Clone, Copy)]
pub struct QueryThreads {
    /// Number of threads that evaluate queries; the results do not depend on it [default: number of processors]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
}

/// Most threads that a query may use.
const THREADS_MAX: usize = 1024;

pub fn threads(text: &str) -> Result<usize, String> {
    let threads = text.parse().ok().filter(|threads| (1..=THREADS_MAX).contains(threads));
    threads.ok_or_else(|| format!("it must be a number from 1 to {THREADS_MAX}"))
}

impl Asked {
    /// The options of the search, checked.
    pub fn options(&self) -> Outcome<SearchOptions> {
        self.ranking.options(self.k, self.count)
    }

    /// The index, and the query parsed by its schema.
    pub fn open(&self) -> Outcome<(Index, Query)> {
        let text = self.query.join(" ");
        if text.trim().is_empty() {
            let what = "the query is empty; give words to search for, or *:* for all documents";
            return Err(Failure::Usage(what.to_string()));
        }
        let index = open::index(&self.dir)?;
        let query = if self.lenient {
            let (query, warnings) = Query::parse_lenient(&text, index.schema());
            warnings.iter().for_each(messages::say);
            query
        } else {
            Query::parse(&text, index.schema())?
        };
        Ok((index, query))
    }
}

/// Parameters of BM25, shared by the commands that rank.
#[derive(Args, Clone, Copy)]
pub struct Ranking {
    /// BM25: saturation of the term frequency, 0 to 1000
    #[arg(long, default_value_t = DEFAULT_K1, allow_negative_numbers = true)]
    k1: f64,
    /// BM25: normalization by document length, 0 to 1
    #[arg(long, default_value_t = DEFAULT_B, allow_negative_numbers = true)]
    b: f64,
}

impl Ranking {
    /// Options of a search for the best `k`, which counts matches if `count` is set; checked.
    pub fn options(self, k: usize, count: bool) -> Outcome<SearchOptions> {
        let bm25 = Bm25::new(self.k1, self.b)?;
        Ok(SearchOptions { k, bm25, exhaustive: false, count })
    }
}

/// Output format.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// One object.
    Json,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let options = arguments.asked.options()?;
    let (index, query) = arguments.asked.open()?;
    if arguments.memory.is_default() {
        return answer(&index, &query, &options, arguments.format);
    }
    let defaults = ExecutorOptions { hits: options.k, previews: true, ..ExecutorOptions::default() };
    let executor_options = arguments.memory.options(&index, defaults, None);
    let executor = arguments.memory.executor(&index, &executor_options)?;
    let start = Instant::now();
    let (mut query, mut answered) = (Some(query), Ok(()));
    let asked = query.clone();
    executor.run(
        || Ok(query.take()),
        &options,
        |_, found| {
            answered = asked.as_ref().map_or(Ok(()), |query| {
                write(
                    &index,
                    (executor.searcher(), query),
                    (&found?, &options, start.elapsed()),
                    arguments.format,
                )
            });
            Ok::<(), Failure>(())
        },
    )?;
    if arguments.memory.stats {
        messages::report(&memory_flags::report(&executor, &executor_options));
    }
    answered
}

/// Answers a query on standard output.
pub fn answer(index: &Index, query: &Query, options: &SearchOptions, format: Format) -> Outcome {
    let searcher = index.searcher();
    let start = Instant::now();
    let found = searcher.search(query, options)?;
    write(index, (&searcher, query), (&found, options, start.elapsed()), format)
}

/// Writes what was found on standard output, hit by hit: memory does not grow with what is shown of them.
fn write(
    index: &Index,
    (searcher, query): (&Searcher, &Query),
    (found, options, took): (&Found, &SearchOptions, Duration),
    format: Format,
) -> Outcome {
    let marks = searcher.marks(query, 0)?;
    let mut analyzer = Analyzer::new(&index.schema().fields[0].analysis);
    let mut out = BufWriter::new(stdout().lock());
    let writer: &mut dyn HitsWriter = match format {
        Format::Json => &mut Json::default(),
        Format::Table => &mut Table::new(searcher, found)?,
    };
    let summary = Summary { total: found.total, counted: options.is_exact(found.hits.len()), took };
    writer.begin(&mut out, &summary).map_err(output)?;
    searcher.for_each_id(&found.hits, |hit, id| {
        let stored = searcher.preview(hit.document)?;
        let find = |term: &str| marks.find(term);
        let part = stored.as_ref().map(|stored| snippet(&stored.text, &mut analyzer, find, SNIPPET_BYTES));
        let title = stored.map(|stored| stored.title);
        let shown = Shown { score: hit.score, id, title, snippet: part };
        writer.hit(&mut out, &shown).map_err(output)
    })?;
    writer.end(&mut out, &summary).and_then(|()| out.flush()).map_err(output)
}

/// The number that is written with the fewest digits that mean the score: `0.1`, not `0.10000000149011612`.
pub fn shortest(score: f32) -> f64 {
    score.to_string().parse().unwrap_or(f64::from(score))
}
