//! Modules shared by the programs `tierdex` and `tierdex-bench`. Applications use the crate `tierdex`.

#![allow(missing_docs, reason = "internal to the two programs")]
#![deny(clippy::print_stderr, clippy::print_stdout)]

pub mod cmd;
mod columns;
mod effectiveness;
pub mod failure;
mod folder_update;
mod forecast_plot;
mod ids;
pub mod index_job;
mod index_size;
mod input;
pub mod interrupt;
mod line_reader;
pub mod memory_flags;
pub mod messages;
pub mod open;
mod panic_hook;
mod problem_file;
pub mod progress;
mod query_file;
mod query_source;
mod read_costs;
mod run_file;
mod run_ids;
pub mod schema_flags;
mod serve_settings;
pub mod size;
mod tally;
pub mod usage;
pub mod values;

use clap::Parser;
use failure::Outcome;
use std::process::ExitCode;
use tierdex::codec::Kernel;
use tierdex::io::{ignore_file_size_signal, share_heap};

/// Parses the arguments of the process and runs `command`. A failure is one line on standard error and the
/// exit code. If the arguments say that memory `is_bounded`, all threads share one heap.
pub fn run<A: Parser>(is_bounded: impl FnOnce(&A) -> bool, command: impl FnOnce(A) -> Outcome) -> ExitCode {
    panic_hook::exit_on_panic();
    ignore_file_size_signal();
    let outcome = usage::parse_arguments::<A>().and_then(|arguments| {
        if arguments.as_ref().is_some_and(is_bounded) {
            // Before the first thread starts.
            share_heap();
        }
        interrupt::install_handler()?;
        let Some(arguments) = arguments else { return Ok(()) };
        // An unknown TIERDEX_KERNEL is a usage error of every subcommand.
        Kernel::from_env().map_err(tierdex::Error::from)?;
        command(arguments)
    });
    outcome.map_or_else(|failure| failure.print_and_exit_code(), |()| ExitCode::SUCCESS)
}
