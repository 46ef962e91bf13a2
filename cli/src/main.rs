//! The `tierdex` command. Each subcommand has its own file in `cmd`. Exit codes: 0, 1 for a failure, 2 for a
//! usage error, 75 if another writer is at work, 130 for SIGINT, SIGTERM and SIGHUP.

use clap::{CommandFactory, Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use tierdex::io::ExitOutOfMemory;
use tierdex_cli::{cmd, failure::Outcome, open};

#[global_allocator]
static ALLOCATOR: ExitOutOfMemory = ExitOutOfMemory;

/// Full-text search for indexes larger than memory
#[derive(Parser)]
#[command(name = "tierdex", version, max_term_width = 110)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Index JSON lines, TSV files, text files, folders, or standard input (-)
    Index(cmd::index::IndexCommandArguments),
    /// Delete documents by their ids, or all that match a query
    Delete(cmd::delete::DeleteCommandArguments),
    /// Print stored documents by their ids, as JSON lines
    Get(cmd::get::GetCommandArguments),
    /// Answer one query; without --dram, --cache and --stats it reads through the page cache
    Search(cmd::search::SearchCommandArguments),
    /// Answer one query and report the strategy, and the blocks and reads of each posting list
    Explain(cmd::explain::ExplainCommandArguments),
    /// Complete the last word of a query, and correct words that no document contains
    Suggest(cmd::suggest::SuggestCommandArguments),
    /// Answer searches over HTTP, with a page to search and to see the server work
    Serve(cmd::serve::ServeCommandArguments),
    /// Answer a file of queries and write a TREC run
    Batch(cmd::batch::BatchCommandArguments),
    /// Forecast speed and latency of caches of several sizes, by a log of queries
    Advise(cmd::advise::AdviseCommandArguments),
    /// Describe an index: fields, segments and the size of each file kind
    Info(cmd::info::InfoCommandArguments),
    /// Report the memory that searching an index needs, by component
    Stats(cmd::stats::StatsCommandArguments),
    /// Verify checksums and invariants of all files of an index
    Check(cmd::check::CheckCommandArguments),
    /// Merge segments of an index, those of similar size or all
    Merge(cmd::merge::MergeCommandArguments),
    /// Copy an index to another directory, also while a writer is at work
    Copy(cmd::copy::CopyCommandArguments),
    /// Exchange indexes with other search engines by files in the Common Index File Format
    Ciff(cmd::ciff::CiffCommandArguments),
    /// Compute measures of a TREC run, such as nDCG@10, from relevance judgments, or compare two runs
    Eval(cmd::eval::EvalCommandArguments),
    /// Index text files of this machine and answer a few sample queries
    Demo(cmd::demo::DemoCommandArguments),
    /// Write the completion script of a shell to standard output
    Completions(cmd::completions::CompletionsCommandArguments),
    /// Write manual pages to a directory
    Man(cmd::man::ManCommandArguments),
}

impl Command {
    /// Whether the memory of a search is bounded.
    fn has_budget(&self) -> bool {
        match self {
            Command::Search(arguments) => arguments.memory.dram.is_some(),
            Command::Batch(arguments) => arguments.memory.dram.is_some(),
            Command::Serve(_) => true,
            _ => false,
        }
    }
}

fn main() -> ExitCode {
    tierdex_cli::run(
        |arguments: &Arguments| arguments.command.has_budget(),
        |arguments| run_command(arguments.command),
    )
}

fn run_command(command: Command) -> Outcome {
    let one = |dir: &PathBuf| Some(dir.clone());
    let (outcome, index) = match &command {
        Command::Index(arguments) => (cmd::index::run_index(arguments), one(&arguments.out)),
        Command::Delete(arguments) => (cmd::delete::run_delete(arguments), one(&arguments.dir)),
        Command::Get(arguments) => (cmd::get::run_get(arguments), one(&arguments.dir)),
        Command::Search(arguments) => {
            (cmd::search::run_search(arguments), Some(open::joined_path(&arguments.query.dirs())))
        }
        Command::Explain(arguments) => {
            (cmd::explain::run_explain(arguments), Some(open::joined_path(&arguments.query.dirs())))
        }
        Command::Suggest(arguments) => (cmd::suggest::run_suggest(arguments), one(&arguments.dir)),
        Command::Serve(arguments) => {
            (cmd::serve::run_serve(arguments), Some(open::joined_path(arguments.dirs())))
        }
        Command::Batch(arguments) => {
            (cmd::batch::run_batch(arguments), Some(open::joined_path(&arguments.dirs)))
        }
        Command::Advise(arguments) => (cmd::advise::run_advise(arguments), one(&arguments.dir)),
        Command::Info(arguments) => (cmd::info::run_info(arguments), one(&arguments.dir)),
        Command::Stats(arguments) => (cmd::stats::run_stats(arguments), one(&arguments.dir)),
        Command::Check(arguments) => (cmd::check::run_check(arguments), one(&arguments.dir)),
        Command::Merge(arguments) => (cmd::merge::run_merge(arguments), one(&arguments.dir)),
        Command::Copy(arguments) => (cmd::copy::run_copy(arguments), one(&arguments.dir)),
        Command::Ciff(arguments) => (cmd::ciff::run_ciff(arguments), one(arguments.index_directory())),
        Command::Eval(arguments) => (cmd::eval::run_eval(arguments), None),
        Command::Demo(arguments) => (cmd::demo::run_demo(arguments), None),
        Command::Completions(arguments) => {
            (cmd::completions::run_completions(arguments, Arguments::command()), None)
        }
        Command::Man(arguments) => (cmd::man::run_man(arguments, Arguments::command()), None),
    };
    outcome.map_err(|failure| index.into_iter().fold(failure, |failure, index| failure.in_folder(&index)))
}
