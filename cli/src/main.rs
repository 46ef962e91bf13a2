//! The `tierdex` command. One file a subcommand; exit code 2 for usage, 1 for failure, 130 for Ctrl-C.

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use tierdex::engine::ExecutorOptions;
use tierdex::io::ExitOutOfMemory;
use tierdex_cli::cmd;
use tierdex_cli::failure::Outcome;

#[global_allocator]
static ALLOCATOR: ExitOutOfMemory = ExitOutOfMemory;

/// Full-text search for indexes larger than memory.
#[derive(Parser)]
#[command(name = "tierdex", version, max_term_width = 110)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Index documents: JSON lines, TSV, text files and folders, or standard input (-)
    Index(cmd::index::Arguments),
    /// Answer one query
    Search(cmd::search::Arguments),
    /// Answer one query, and report strategy, blocks and reads for each posting list
    Explain(cmd::explain::Arguments),
    /// Answer a file of queries and write a TREC run
    Batch(cmd::batch::Arguments),
    /// Describe an index: fields, segments, size of each part
    Info(cmd::info::Arguments),
    /// Report the memory that searching an index would take, by part
    Stats(cmd::stats::Arguments),
    /// Verify every byte and every invariant of an index
    Check(cmd::check::Arguments),
    /// Measure a TREC run against relevance judgments
    Eval(cmd::eval::Arguments),
    /// Index the text files of this machine, and answer a few queries
    Demo(cmd::demo::Arguments),
}

fn main() -> ExitCode {
    tierdex_cli::run(|arguments: Arguments| run(arguments.command))
}

fn run(command: Command) -> Outcome {
    let (outcome, index) = match &command {
        Command::Index(arguments) => (cmd::index::run(arguments), Some(&arguments.out)),
        Command::Search(arguments) => (cmd::search::run(arguments), Some(&arguments.asked.dir)),
        Command::Explain(arguments) => (cmd::explain::run(arguments), Some(&arguments.asked.dir)),
        Command::Batch(arguments) => {
            (cmd::batch::run(arguments, &cmd::batch::Experiment::default()), Some(&arguments.dir))
        }
        Command::Info(arguments) => (cmd::info::run(arguments), Some(&arguments.dir)),
        Command::Stats(arguments) => {
            (cmd::stats::run(arguments, ExecutorOptions::default(), None), Some(&arguments.dir))
        }
        Command::Check(arguments) => (cmd::check::run(arguments), Some(&arguments.dir)),
        Command::Eval(arguments) => (cmd::eval::run(arguments), None),
        Command::Demo(arguments) => (cmd::demo::run(arguments), None),
    };
    outcome.map_err(|failure| index.into_iter().fold(failure, |failure, index| failure.within(index)))
}
