//! Modules shared by the programs `tierdex` and `tierdex-bench`. Applications use the crate `tierdex`.

#![allow(missing_docs, reason = "internal to the two programs")]
#![deny(clippy::print_stderr, clippy::print_stdout)]

pub mod cmd;
mod columns;
mod effectiveness;
pub mod failure;
mod highlight;
pub mod index_job;
mod index_size;
mod input;
pub mod interrupt;
pub mod memory_flags;
pub mod messages;
pub mod open;
mod panic_hook;
mod problem_file;
pub mod progress;
mod query_file;
mod run_file;
mod run_ids;
pub mod size;
mod tally;
pub mod usage;
pub mod values;

use clap::Parser;
use failure::Outcome;
use std::process::ExitCode;
use tierdex::codec::Kernel;
use tierdex::io::ignore_file_size_signal;

/// Parses the arguments of the process and runs `command`. A failure is one line on standard error and the
/// exit code.
pub fn run<A: Parser>(command: impl FnOnce(A) -> Outcome) -> ExitCode {
    panic_hook::exit_on_panic();
    ignore_file_size_signal();
    let outcome = interrupt::install_handler().and_then(|()| {
        let Some(arguments) = usage::parse::<A>()? else { return Ok(()) };
        // An unknown TIERDEX_KERNEL is a usage error of every subcommand.
        Kernel::from_env().map_err(tierdex::Error::from)?;
        command(arguments)
    });
    outcome.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}
