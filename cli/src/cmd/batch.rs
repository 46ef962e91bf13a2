//! `tierdex batch`: a file of queries to a TREC run.

use super::search::{Ranking, Threads};
use crate::failure::{Failure, Outcome, output};
use crate::marks::printable;
use crate::near::{self, Near};
use crate::{open, size};
use clap::{Args, ValueEnum};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write, stdout};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tierdex::Error;
use tierdex::index::{CacheOptions, Executor, Found, Index, SearchOptions, Searcher};
use tierdex::query::Query;

#[derive(Args)]
pub struct Arguments {
    /// Directory of the index
    dir: PathBuf,
    /// Queries, one a line: id, tab, text
    #[arg(long)]
    queries: PathBuf,
    /// TREC run to write: query Q0 id rank score tag
    #[arg(long)]
    run: PathBuf,
    /// Hits for each query, at most
    #[arg(short, default_value_t = 1000)]
    k: usize,
    #[command(flatten)]
    ranking: Ranking,
    #[command(flatten)]
    threads: Threads,
    /// How queries are read: plain words that are alternatives, or the language of `tierdex search`
    #[arg(long, value_enum, default_value_t = Syntax::Plain)]
    syntax: Syntax,
    /// With --syntax query: leave out what cannot be read of a query, with a warning, and answer the rest
    #[arg(long)]
    lenient: bool,
    #[command(flatten)]
    near: Near,
    /// Last column of the run
    #[arg(long, default_value = "tierdex")]
    tag: String,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Syntax {
    /// Words; documents that hold any of them match.
    Plain,
    /// The query language.
    Query,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let options = arguments.ranking.options(arguments.k, arguments.threads.intra)?;
    if arguments.tag.is_empty() || arguments.tag.contains(char::is_whitespace) {
        return Err(Failure::Usage("--tag must be one word".to_string()));
    }
    if arguments.lenient && arguments.syntax == Syntax::Plain {
        return Err(Failure::Usage(
            "--lenient goes with --syntax query: plain words have no faults".to_string(),
        ));
    }
    let near = arguments.near.options()?;
    let queries = read_queries(&arguments.queries)?;
    let index = open::index(&arguments.dir)?;
    let temporary = arguments.run.with_added_extension("partial");
    let start = Instant::now();
    let written = write_run(&index, &queries, (&options, near.as_ref()), arguments, &temporary);
    let written = written.and_then(|matches| {
        std::fs::rename(&temporary, &arguments.run).map_err(|error| cannot_write(&arguments.run, &error))?;
        Ok(matches)
    });
    let matches = written.inspect_err(|_| {
        // The run is not whole; the error that is reported says why.
        let _ = std::fs::remove_file(&temporary);
    })?;
    let seconds = start.elapsed().as_secs_f64();
    writeln!(
        stdout(),
        "{} queries, {} matches, {:.2} s, {:.1} queries/s, {} read",
        size::group(queries.len() as u64),
        size::group(matches),
        seconds,
        queries.len() as f64 / seconds.max(1e-9),
        size::show(index.bytes_read())
    )
    .map_err(output)
}

fn write_run(
    index: &Index,
    queries: &[(String, String)],
    (options, near): (&SearchOptions, Option<&CacheOptions>),
    arguments: &Arguments,
    path: &Path,
) -> Outcome<u64> {
    let file = File::create(path).map_err(|error| cannot_write(path, &error))?;
    let mut out = BufWriter::new(file);
    let mut matches = 0;
    let named = |id: &str, error: &Error| {
        Failure::Failed(format!("{}, query {id}: {error}", arguments.queries.display()))
    };
    let parse = |(id, text): &(String, String)| {
        let query = match arguments.syntax {
            Syntax::Plain => Query::any_term(text, index.schema()),
            Syntax::Query if arguments.lenient => Ok(lenient(text, id, index, &arguments.queries)),
            Syntax::Query => Query::parse(text, index.schema()),
        };
        query.map_err(|error| named(id, &error))
    };
    let mut write = |searcher: &Searcher<'_>, id: &str, found: tierdex::Result<Found>| -> Outcome {
        let found = found.map_err(|error| named(id, &error))?;
        matches += found.total;
        let ids = searcher.ids(&found.hits)?;
        for (i, (hit, document)) in found.hits.iter().zip(ids).enumerate() {
            let document = document.replace(char::is_whitespace, "_");
            let (rank, score, tag) = (i + 1, hit.score, &arguments.tag);
            writeln!(out, "{id} Q0 {document} {rank} {score} {tag}").map_err(|e| cannot_write(path, &e))?;
        }
        Ok(())
    };
    if let Some(near) = near {
        let parsed = queries.iter().map(parse).collect::<Outcome<Vec<_>>>()?;
        let executor = Executor::new(index, near)?;
        if let Some(why) = executor.fallback() {
            eprintln!("tierdex: {why}");
        }
        executor
            .run(&parsed, options, |number, found| write(executor.searcher(), &queries[number].0, found))?;
        if arguments.near.stats {
            eprint!("{}", near::report(&executor));
        }
    } else {
        let searcher = index.searcher();
        for query in queries {
            write(&searcher, &query.0, searcher.search(&parse(query)?, options))?;
        }
    }
    out.flush().map_err(|error| cannot_write(path, &error))?;
    Ok(matches)
}

/// What can be read of a query; the rest is reported.
fn lenient(text: &str, id: &str, index: &Index, path: &Path) -> Query {
    let (query, warnings) = Query::parse_lenient(text, index.schema());
    for warning in warnings {
        eprintln!("tierdex: {}", printable(&format!("{}, query {id}: {warning}", path.display())));
    }
    query
}

fn read_queries(path: &Path) -> Outcome<Vec<(String, String)>> {
    let problem = |what: String| Failure::Failed(format!("{}: {what}", path.display()));
    let file = File::open(path).map_err(|error| problem(error.to_string()))?;
    let mut queries = Vec::new();
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let line = line.map_err(|error| problem(format!("line {}: {error}", number + 1)))?;
        if line.trim().is_empty() {
            continue;
        }
        let Some((id, text)) = line.split_once('\t') else {
            return Err(problem(format!("line {}: no tab between the query's id and its text", number + 1)));
        };
        if id.is_empty() || id.contains(char::is_whitespace) {
            return Err(problem(format!("line {}: the query's id is not one word", number + 1)));
        }
        queries.push((id.to_string(), text.to_string()));
    }
    Ok(queries)
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Failed(format!("cannot write {}: {error}", path.display()))
}
