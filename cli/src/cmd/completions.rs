//! `tierdex completions`: writes the completion script of a shell.

use crate::failure::{Outcome, output_error};
use clap::{Args, Command};
use clap_complete::Shell;
use std::io::{Write, stdout};

#[derive(Args)]
pub struct CompletionsCommandArguments {
    /// Shell, whose script is written to standard output
    #[arg(value_enum)]
    shell: Shell,
}

/// Writes the script for `command`.
pub fn run_completions(arguments: &CompletionsCommandArguments, mut command: Command) -> Outcome {
    let (name, mut script) = (command.get_name().to_string(), Vec::new());
    clap_complete::generate(arguments.shell, &mut command, name, &mut script);
    stdout().write_all(&script).map_err(output_error)
}
