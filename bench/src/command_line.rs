//! Parses flags of an experiment without the program.

use clap::{Args, Command, error::Result};
use std::ffi::OsString;

/// Parses the words of a command line, the first of which is the name of the command.
///
/// # Errors
/// If a flag is unknown, missing or invalid.
pub fn parse_flags<F: Args>(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<F> {
    let command = F::augment_args(Command::new("tierdex-bench"));
    F::from_arg_matches(&command.try_get_matches_from(words)?)
}
