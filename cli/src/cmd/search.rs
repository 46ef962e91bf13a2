//! `tierdex search`: answers one query. Also holds the arguments that several subcommands share.

use super::hits::{DisplayedHit, HitTable, HitsSummary, HitsWriter, JsonHits};
use crate::failure::{Failure, Outcome, output_error};
use crate::memory_flags::{self, MemoryFlags};
use crate::{messages, open};
use clap::{Args, ValueEnum};
use std::io::{BufWriter, Write, stdout};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tierdex::limits::{DEFAULT_B, DEFAULT_K1};
use tierdex::{
    Bm25, Engine, Hits, Index, Priority, Query, ReadCosts, Scorer, SearchOptions, SearchRequest, TotalHits,
};

/// Target length of a snippet, in bytes.
const SNIPPET_BYTES_TARGET: usize = 180;

#[derive(Args)]
pub struct SearchCommandArguments {
    #[command(flatten)]
    pub query: QueryArguments,
    #[command(flatten)]
    pub memory: MemoryFlags,
    /// Print the memory of each component, cache hits and reads on standard error
    #[arg(long)]
    stats: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    format: OutputFormat,
    /// Columns whose values are shown with each hit, separated by commas: year,price
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    show: Vec<String>,
}

/// SearchCommandArguments of `search` and `explain`.
#[derive(Args)]
pub struct QueryArguments {
    /// Directory of the index; with --query several directories, whose indexes are searched as one
    dir: PathBuf,
    /// Query: terms, AND, OR, NOT, +required, -excluded, #filter, "a phrase"~slop, prefix*, fuzzy~1,
    /// term^boost, (two of these)~2, field:term, column:[low TO high], column:>=value, as described in
    /// docs/query.md. Indexes of `tierdex index`
    /// have one field, text, which contains the titles. Several arguments are joined by blanks; put --
    /// before a query that begins with -
    #[arg(value_name = "QUERY", required_unless_present = "query")]
    words: Vec<String>,
    /// Query as one argument; all arguments before are then directories
    #[arg(long, value_name = "QUERY")]
    query: Option<String>,
    /// Ignore the parts of the query with syntax errors, with a warning
    #[arg(long)]
    lenient: bool,
    /// Maximum number of hits
    #[arg(short, default_value_t = 10, allow_negative_numbers = true, value_parser = parse_k)]
    k: usize,
    #[command(flatten)]
    ranking: RankingArguments,
    /// Count all matching documents; slower, as no matching document is skipped. Without it the number of
    /// matches is a lower bound
    #[arg(long)]
    count: bool,
}

/// The flag for the number of query threads of `tierdex batch`.
#[derive(Args, Clone, Copy)]
pub struct QueryThreads {
    /// Number of threads that evaluate queries; results do not depend on it [default: number of processors]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub threads: Option<usize>,
}

/// Parses a maximum number of hits.
pub fn parse_k(text: &str) -> Result<usize, String> {
    let is_negative = text.strip_prefix('-').is_some_and(|digits| digits.parse::<u64>().is_ok());
    text.parse().map_err(|_| match is_negative {
        true => "k must be at least 0".to_string(),
        false => "expected a number of hits".to_string(),
    })
}

/// Maximum number of threads that evaluate queries.
const QUERY_THREADS_MAX: usize = 1024;

pub fn parse_threads(text: &str) -> Result<usize, String> {
    let threads = text.parse().ok().filter(|threads| (1..=QUERY_THREADS_MAX).contains(threads));
    threads.ok_or_else(|| format!("expected a number from 1 to {QUERY_THREADS_MAX}"))
}

impl QueryArguments {
    /// The search options, validated.
    pub fn options(&self) -> Outcome<SearchOptions> {
        self.ranking.options(self.k, self.count)
    }

    /// The directories of the indexes that are searched as one.
    pub fn dirs(&self) -> Vec<PathBuf> {
        let others = self.words.iter().filter(|_| self.query.is_some()).map(PathBuf::from);
        [self.dir.clone()].into_iter().chain(others).collect()
    }

    /// Opens the index and parses the query with its schema.
    pub fn open_index(&self) -> Outcome<(Index, Query)> {
        let text = self.query.clone().unwrap_or_else(|| self.words.join(" "));
        if text.trim().is_empty() {
            let message = "the query is empty; give words to search for, or *:* for all documents";
            return Err(Failure::Usage(message.to_string()));
        }
        let index = open::indexes(&self.dirs())?;
        let (query, notes) = match self.lenient {
            true => Query::parse_lenient(&text, index.schema()),
            false => Query::parse_with_notes(&text, index.schema())?,
        };
        notes.iter().for_each(messages::print_message);
        Ok((index, query))
    }
}

/// Scorer and its parameters.
#[derive(Args, Clone, Copy)]
pub struct RankingArguments {
    /// BM25 k1: saturation of the term frequency, 0 to 1000
    #[arg(long, default_value_t = DEFAULT_K1, allow_negative_numbers = true)]
    k1: f64,
    /// BM25 b: normalization by document length, 0 to 1
    #[arg(long, default_value_t = DEFAULT_B, allow_negative_numbers = true)]
    b: f64,
    /// Score by the sum of boost times frequency in place of BM25, for indexes of learned sparse models and
    /// of quantised impacts
    #[arg(long, conflicts_with_all = ["k1", "b"])]
    dot: bool,
}

impl RankingArguments {
    /// Validated options of a search for `k` hits. `count` requests the exact number of matches.
    pub fn options(self, k: usize, count: bool) -> Outcome<SearchOptions> {
        let scorer = if self.dot { Scorer::Dot } else { Bm25::new(self.k1, self.b)?.into() };
        Ok(SearchOptions { k, scorer, count, ids: true, ..SearchOptions::default() })
    }
}

/// Value of `--format`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// Text for a terminal
    Table,
    /// One JSON object
    Json,
}

pub fn run_search(arguments: &SearchCommandArguments) -> Outcome {
    let options = arguments.query.options()?;
    let (index, query) = arguments.query.open_index()?;
    let engine_options = match arguments.memory.is_default() {
        true => memory_flags::one_query_options(options.k),
        // Costs are not measured for one query.
        false => {
            arguments.memory.options(memory_flags::search_options(options.k)).read_costs(ReadCosts::default())
        }
    };
    let dirs = arguments.query.dirs();
    let engine = arguments.memory.engine(&dirs[0], &index, &engine_options, arguments.stats)?;
    let written = answer_query(&engine, &dirs, &query, &options, arguments.format, &arguments.show);
    if arguments.stats {
        messages::print_lines(&memory_flags::memory_report(&engine));
    }
    written
}

/// Answers a query and writes the hits to standard output. Of several directories each hit names its own.
pub fn answer_query(
    engine: &Engine,
    dirs: &[PathBuf],
    query: &Query,
    options: &SearchOptions,
    format: OutputFormat,
    show: &[String],
) -> Outcome {
    show.iter().try_for_each(|name| engine.snapshot().schema().column_named(name).map(|_| ()))?;
    let start = Instant::now();
    let request = SearchRequest::new(query.clone()).options(*options).priority(Priority::Batch);
    let hits = engine.search(request)?;
    write_hits(query, &hits, dirs, start.elapsed(), format, show)
}

/// Writes the hits to standard output one by one, so that ids, titles and snippets of one hit are in memory.
fn write_hits(
    query: &Query,
    hits: &Hits,
    dirs: &[PathBuf],
    elapsed: Duration,
    format: OutputFormat,
    show: &[String],
) -> Outcome {
    let mut highlighter = hits.snapshot.highlighter(query)?;
    let _memory = hits.snapshot.reserve_all_output();
    let mut out = BufWriter::new(stdout().lock());
    let writer: &mut dyn HitsWriter = match format {
        OutputFormat::Json => &mut JsonHits::default(),
        OutputFormat::Table => &mut HitTable::new(&mut highlighter, hits)?,
    };
    let counted = matches!(hits.total, TotalHits::Exact(_));
    let summary = HitsSummary { total: hits.total.value(), counted, elapsed };
    writer.write_start(&mut out, &summary).map_err(output_error)?;
    hits.for_each_id(|hit, id| {
        let preview = highlighter.preview(hit.document, SNIPPET_BYTES_TARGET)?;
        let (title, snippet) = preview.map(|preview| (preview.title, preview.snippet)).unzip();
        let dir = &dirs[hits.snapshot.index().part_of(hit.document)];
        let index = (dirs.len() > 1).then(|| dir.display().to_string());
        let searcher = hits.snapshot.searcher();
        let values = show.iter().map(|name| Ok((name.clone(), searcher.values_named(hit.document, name)?)));
        let values = values.collect::<tierdex::Result<Vec<_>>>()?;
        let shown = DisplayedHit { score: hit.score, index, id, title, snippet, values: &values };
        writer.write_hit(&mut out, &shown).map_err(output_error)
    })?;
    writer.write_end(&mut out, &summary).and_then(|()| out.flush()).map_err(output_error)
}
