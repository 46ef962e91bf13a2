//! The `tierdex-bench` command: one subcommand per experiment. The crate `tierdex-bench` implements them.

#![deny(clippy::print_stderr, clippy::print_stdout)]

mod engine_flags;
mod generate;

use clap::{Args, Parser, Subcommand};
use engine_flags::EngineFlags;
use std::{io::stdin, io::stdout, num::NonZero, process::ExitCode};
use tierdex::{EngineOptions, StopSignal, io::ExitOutOfMemory};
use tierdex_bench::{Error, driver, generate as generator, latency, request, seek_disk, serve};
use tierdex_cli::failure::{Failure, Outcome, output_error};
use tierdex_cli::{interrupt, open};

#[global_allocator]
static ALLOCATOR: ExitOutOfMemory = ExitOutOfMemory;

/// Run an experiment and report its measurements
#[derive(Parser)]
#[command(name = "tierdex-bench", version, max_term_width = 110)]
struct Arguments {
    #[command(subcommand)]
    experiment: ExperimentCommand,
}

#[derive(Subcommand)]
enum ExperimentCommand {
    /// Run the experiment that is described as JSON on standard input, and print one row of JSON
    Cell,
    /// Compare two builds by measurements that alternate (starts the driver of experiments)
    Compare(driver::DriverArguments),
    /// Generate an index of any size without text; its posting lists resemble those of English documents of
    /// 1 KB
    Generate(generator::Flags),
    /// Latency of single requests, alone and beside an endless batch
    Latency(LatencyArguments),
    /// Measure tables and figures of five papers, and judge what the papers found (starts the driver of
    /// experiments)
    Paper(driver::DriverArguments),
    /// Mount directories of indexes as a hard disk that seeks, emulated by a file system in user space, until
    /// standard input ends; prints their paths, and that of a file that starts the delays when it is written
    /// to
    SeekDisk(seek_disk::SeekDiskFlags),
    /// Answer lines of COMMAND<TAB>QUERY on standard input; the index is in memory, or on disk with any flag
    /// for memory or reads
    Serve(ServeArguments),
}

#[derive(Args)]
struct LatencyArguments {
    #[command(flatten)]
    flags: latency::Flags,
    #[command(flatten)]
    engine: EngineFlags,
}

#[derive(Args)]
struct ServeArguments {
    #[command(flatten)]
    flags: serve::Flags,
    /// Number of threads that evaluate queries from disk. For an index in memory, each batch names its number
    /// [default: number of processors]
    #[arg(long, value_name = "N")]
    threads: Option<NonZero<usize>>,
    #[command(flatten)]
    engine: EngineFlags,
}

/// Hits of a served query, at most, within a memory budget.
const SERVED_HITS_MAX: usize = 1024;

fn main() -> ExitCode {
    tierdex_cli::run(|_| false, |arguments: Arguments| run_experiment(&arguments.experiment))
}

/// Runs a command of the driver in place of this process.
fn start_driver(command: &str, arguments: &driver::DriverArguments) -> Outcome {
    match driver::run(command, arguments).map_err(command_failure)? {}
}

fn run_experiment(experiment: &ExperimentCommand) -> Outcome {
    match experiment {
        ExperimentCommand::Cell => run_cell(),
        ExperimentCommand::Compare(arguments) => start_driver("compare", arguments),
        ExperimentCommand::Generate(flags) => generate::run_generate(flags),
        ExperimentCommand::Paper(arguments) => start_driver("paper", arguments),
        ExperimentCommand::SeekDisk(flags) => run_seek_disk(flags),
        ExperimentCommand::Latency(arguments) => run_latency(arguments),
        ExperimentCommand::Serve(arguments) => run_serve(arguments),
    }
}

/// Answers the request on standard input.
fn run_cell() -> Outcome {
    let request = request::read_request(&mut stdin().lock()).map_err(command_failure)?;
    let stop = StopSignal::default();
    // Without temporary files a signal ends the process at once.
    let _watched = request.has_temporary_files().then(|| interrupt::raise_on_signal(stop.clone()));
    request::answer_request(request.as_ref(), &stop, &mut stdout().lock()).map_err(command_failure)
}

/// Mounts the disk until standard input ends.
fn run_seek_disk(flags: &seek_disk::SeekDiskFlags) -> Outcome {
    let stop = StopSignal::default();
    let _watched = interrupt::raise_on_signal(stop.clone());
    seek_disk::run(flags, stdin(), &stop, &mut stdout().lock()).map_err(command_failure)
}

/// Converts the error of an experiment into that of the command.
fn command_failure(error: Error) -> Failure {
    match error {
        Error::Usage(message) => Failure::Usage(message),
        Error::Failed(message) => Failure::Failed(message),
        Error::Output(error) => output_error(error),
        Error::Interrupted => Failure::Interrupted("interrupted".to_string()),
    }
}

fn run_latency(arguments: &LatencyArguments) -> Outcome {
    let LatencyArguments { flags, engine } = arguments;
    let index = open::index(&flags.dir)?;
    let defaults = EngineOptions::new().threads(flags.threads.map_or(0, NonZero::get)).hits_max(flags.k);
    latency::run(&index, &engine.options(defaults), flags, &mut stdout().lock()).map_err(command_failure)
}

fn run_serve(arguments: &ServeArguments) -> Outcome {
    let ServeArguments { flags, threads, engine } = arguments;
    let index = open::index(&flags.dir)?;
    let in_memory = engine.is_default();
    if in_memory && threads.is_some() {
        let why =
            "--threads needs an index on disk, such as by --dram; in memory each batch names its threads";
        return Err(command_failure(Error::Usage(why.to_string())));
    }
    let defaults = EngineOptions::new().threads(threads.map_or(0, NonZero::get)).hits_max(SERVED_HITS_MAX);
    let options = (!in_memory).then(|| engine.options(defaults));
    serve::run(&index, options.as_ref(), flags, &mut stdin().lock(), &mut stdout().lock())
        .map_err(command_failure)
}
