//! Modules that the programs `tierdex` and `tierdex-bench` share. Applications use the crate `tierdex`.

#![allow(missing_docs, reason = "no other program uses it")]
#![deny(clippy::print_stderr, clippy::print_stdout)]

pub mod cmd;
mod columns;
pub mod defect;
pub mod failure;
mod input;
pub mod interrupt;
pub mod job;
mod marks;
pub mod memory_flags;
pub mod messages;
pub mod open;
pub mod progress;
mod queries;
mod run_file;
pub mod size;
mod tally;
pub mod usage;
pub mod values;

use clap::Parser;
use failure::Outcome;
use std::process::ExitCode;
use tierdex::codec::Kernel;
use tierdex::io::ignore_file_size_signal;

/// Runs a program: reads its arguments, and reports what failed by one line and the exit code.
pub fn run<A: Parser>(command: impl FnOnce(A) -> Outcome) -> ExitCode {
    defect::exit_on_panic();
    ignore_file_size_signal();
    let outcome = interrupt::watch().and_then(|()| {
        let Some(arguments) = usage::parse::<A>()? else { return Ok(()) };
        // A wrong name in the environment is wrong usage, whatever the subcommand.
        Kernel::from_env().map_err(tierdex::Error::from)?;
        command(arguments)
    });
    outcome.map_or_else(|failure| failure.report(), |()| ExitCode::SUCCESS)
}
