//! Query evaluation of tierdex beside other engines: same tokens, same queries, same run.
//!
//! You have documents as JSON lines; you get a table of queries a second, by query set and command, of tierdex,
//! Tantivy, Lucene and PISA, and the ratio of tierdex to the best of the others.
//!
//! ```text
//! cd bench/peers/search
//! cargo run --release -- --input docs.jsonl.zst --work WORK --out OUT
//! ```
//!
//! sets up everything below WORK: it builds tierdex and the peers, cuts the text into tokens, indexes them, makes the
//! queries and measures. What is there already is used again. Rust is all that is needed for tierdex and Tantivy;
//! Lucene wants Maven and a JDK of version 25, PISA wants CPython 3.8 to 3.12 on x86-64. An engine whose tools are
//! missing is left out with one line that says what was missing. `--quick` takes few queries and rounds, `--queries
//! DIR` adds sets of real queries, `--threads 1,2` measures also on more threads, `--limit 50M` in so much memory.
//!
//! 1. [`tokens`]: the text as tokens, one document a line, which every engine splits at blanks;
//!    [`copies`] multiplies them;
//! 2. [`engine`]: for each engine how it is built, how it indexes, how it serves; [`usage`] sees what indexing takes;
//! 3. [`sets`]: query sets, drawn by document frequency, or real;
//! 4. [`server`]: an engine as a child process behind the line protocol of `tierdex bench serve`;
//! 5. [`check`]: whether numbers of matches agree, and how many of the best ten hits;
//! 6. [`rounds`]: engines take turns on each set and command, round after round;
//! 7. or [`limit`]: engines under a limit of memory, one at a time, from files;
//! 8. [`results`] and [`report`]: medians, ratios, tables, files.
//!
//! This program must not know how an engine evaluates a query.

#![forbid(unsafe_code)]

mod check;
mod copies;
mod engine;
mod flags;
mod indexing;
mod limit;
mod report;
mod results;
mod rounds;
mod server;
mod sets;
mod tokens;
mod tools;
mod usage;

use check::Check;
use clap::Parser;
use engine::Engine;
use flags::Flags;
use limit::Limited;
use results::{Results, Row};
use server::Server;
use sets::Set;
use std::io::{Write, stdout};
use std::process::ExitCode;
use tierdex_bench::{Error, Result};

fn main() -> ExitCode {
    if let Some(code) = usage::run_child().or_else(limit::run_child) {
        return code;
    }
    match run(&Flags::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(if matches!(error, Error::Usage(_)) { 2 } else { 1 })
        }
    }
}

fn run(flags: &Flags) -> Result<()> {
    flags.check()?;
    tools::make_folder(&flags.work)?;
    if let Some(dir) = &flags.out {
        tools::make_folder(dir)?;
    }
    let (engines, left_out) = engine::prepare(flags)?;
    let corpus = tokens::prepare(flags)?;
    let indexing = indexing::run(flags, &corpus, &engines)?;
    let sets = sets::make(flags, &corpus)?;
    let (checks, rows, limited) = match flags.limit {
        None => in_memory(flags, &engines, &sets)?,
        Some(limit) => (Vec::new(), Vec::new(), Some(limit::run(flags, limit, &engines, &sets)?)),
    };
    let results = Results { left_out, corpus, indexing, sets, checks, rows, limited };
    report::save(flags, &results)?;
    let text = report::text(flags, &results);
    let mut out = stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::Output)
}

/// Agreement and speeds of engines that have their indexes in memory side by side.
fn in_memory(
    flags: &Flags,
    engines: &[Engine],
    sets: &[Set],
) -> Result<(Vec<Check>, Vec<Row>, Option<Limited>)> {
    let mut servers =
        engines.iter().map(|engine| Server::start(flags, engine)).collect::<Result<Vec<_>>>()?;
    let checks = check::run(sets, &mut servers)?;
    Ok((checks, rounds::run(flags, sets, &mut servers)?, None))
}
