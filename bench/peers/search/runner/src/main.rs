//! Query evaluation of tierdex beside other engines: same tokens, same queries, same run.
//!
//! *Input*: documents as JSON lines. *Output*: queries per second by query set and command, of tierdex,
//! Tantivy, Lucene, PISA and SeekStorm, and the ratio of tierdex to the best of the others.
//!
//! ```text
//! cd bench/peers/search
//! cargo run --release -- --input docs.jsonl.zst --work WORK --out OUT
//! ```
//!
//! builds tierdex and the peers, tokenizes the text, indexes it, generates the queries and measures.
//! Everything is stored below WORK and reused by the next run. tierdex, Tantivy and SeekStorm need only
//! Rust; Lucene needs Maven and a JDK of version 25, PISA needs CPython 3.8 to 3.12 on x86-64. An engine
//! whose tools are missing is skipped with a one-line message. `--quick` uses fewer queries and rounds,
//! `--queries DIR` adds sets of real queries, `--threads 1,2` also measures with more threads, `--limit 50M`
//! measures under a memory limit.
//!
//! 1. [`tokens`]: the text as tokens separated by spaces, one document per line; [`copies`] multiplies the
//!    documents.
//! 2. [`engine`]: how each engine is built, indexes and serves; [`usage`] measures the resources of
//!    indexing.
//! 3. [`sets`]: query sets, drawn by document frequency, taken from the text, or real. Phrases use indexes
//!    with positions, the others indexes without.
//! 4. [`server`]: an engine as a child process behind the line protocol of `tierdex-bench serve`;
//! 5. [`check`]: whether the numbers of matches agree, and the overlap of the ten best hits.
//! 6. [`rounds`]: the engines alternate on each set and command, round after round.
//! 7. Or [`limit`]: engines under a memory limit, one at a time, from files.
//! 8. [`results`] and [`report`]: medians, ratios, tables, files.
//!
//! The program does not depend on how an engine evaluates a query.

#![forbid(unsafe_code)]

mod check;
mod copies;
mod engine;
mod flags;
mod indexing;
mod limit;
mod mean;
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
use engine::Contender;
use flags::Flags;
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
    let (engines, mut left_out) = engine::prepare(flags)?;
    let corpus = tokens::prepare(flags)?;
    let sets = sets::make(flags, &corpus)?;
    let (phrases, plain): (Vec<Set>, Vec<Set>) = sets.into_iter().partition(|set| set.recipe.has_positions());
    let mut parties = Vec::new();
    for (positions, sets) in [(false, plain), (true, phrases)] {
        if !sets.is_empty() {
            let (contenders, lines) = Contender::all(flags, &engines, positions);
            left_out.extend(lines);
            parties.push(Party { contenders, sets });
        }
    }
    let contenders: Vec<Contender> = parties.iter().flat_map(|party| &party.contenders).cloned().collect();
    let indexing = indexing::run(flags, &corpus, &contenders)?;
    let (mut checks, mut rows, mut limited) = (Vec::new(), Vec::new(), None);
    for party in &parties {
        match flags.limit {
            None => party.run(flags, &mut checks, &mut rows)?,
            Some(limit) => limited = Some(limit::run(flags, limit, &engines, &party.sets)?),
        }
    }
    let sets = parties.into_iter().flat_map(|party| party.sets).collect();
    let results = Results { left_out, corpus, indexing, sets, checks, rows, limited };
    report::save(flags, &results)?;
    let text = report::text(flags, &results);
    let mut out = stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::Output)
}

/// Query sets, and the contenders that run them.
struct Party {
    contenders: Vec<Contender>,
    sets: Vec<Set>,
}

impl Party {
    /// Checks and measures engines that have their indexes in memory at the same time.
    fn run(&self, flags: &Flags, checks: &mut Vec<Check>, rows: &mut Vec<Row>) -> Result<()> {
        let start = |contender| Server::start(flags, contender);
        let mut servers = self.contenders.iter().map(start).collect::<Result<Vec<_>>>()?;
        let found = check::run(&self.sets, &mut servers)?;
        let mut measured = rounds::run(flags, &self.sets, &mut servers)?;
        for row in &mut measured {
            for cell in &mut row.cells {
                let of_cell = |check: &&Check| check.set == row.set && check.name == cell.name;
                cell.differs = found.iter().find(of_cell).is_some_and(|check| check.differ > 0);
            }
        }
        checks.extend(found);
        rows.extend(measured);
        Ok(())
    }
}
