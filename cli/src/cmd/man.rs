//! `tierdex man`: writes manual pages.

use crate::failure::{Failure, Outcome};
use clap::{Args, Command};
use std::{fs::create_dir_all, path::PathBuf};

#[derive(Args)]
pub struct ManCommandArguments {
    /// Directory for the pages, one for each subcommand, such as ~/.local/share/man/man1
    dir: PathBuf,
}

/// Writes a manual page for `command` and for each of its subcommands.
pub fn run_man(arguments: &ManCommandArguments, command: Command) -> Outcome {
    let dir = &arguments.dir;
    let written = create_dir_all(dir).and_then(|()| clap_mangen::generate_to(command, dir));
    written.map_err(|error| Failure::Failed(format!("cannot write pages to {}: {error}", dir.display())))
}
