//! Parses flags of an experiment without the program, and shows paths as reports publish them.

use clap::{Args, Command, error::Result};
use std::{ffi::OsString, path::Path};

/// Parses the words of a command line, the first of which is the name of the command.
///
/// # Errors
/// If a flag is unknown, missing or invalid.
pub fn parse_flags<F: Args>(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<F> {
    let command = F::augment_args(Command::new("tierdex-bench"));
    F::from_arg_matches(&command.try_get_matches_from(words)?)
}

/// A path for a report. Of an absolute path only the last component, because reports are published.
pub(crate) fn published_path(path: &Path) -> String {
    let name = path.file_name().filter(|_| path.is_absolute()).unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}
