//! Runs external programs, reads and writes files, and prints progress messages.

use std::{ffi::OsStr, fs, path::Path, process::Command};
use tierdex_bench::{Error, Result};

/// Creates a directory.
///
/// # Errors
/// If it cannot be created.
pub fn make_folder(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir)
        .map_err(|error| Error::Failed(format!("cannot create the directory {}: {error}", dir.display())))
}

/// Removes a directory if it exists.
///
/// # Errors
/// If it cannot be removed.
pub fn remove_folder(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::Failed(format!("cannot remove {}: {error}", dir.display())))
        }
        _ => Ok(()),
    }
}

/// Writes a file.
///
/// # Errors
/// If it cannot be written.
pub fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|error| Error::Failed(format!("cannot write {}: {error}", path.display())))
}

/// Text of a file.
///
/// # Errors
/// If it cannot be read.
pub fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path)
        .map_err(|error| Error::Failed(format!("cannot read {}: {error}", path.display())))
}

/// Runs a program and returns its standard output.
///
/// # Errors
/// One line, if it is missing or fails: an error line of its output, or the last line.
pub fn output(command: &mut Command) -> std::result::Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let found = command.output().map_err(|error| format!("cannot run {name}: {error}; is it installed?"))?;
    if found.status.success() {
        return Ok(String::from_utf8_lossy(&found.stdout).into_owned());
    }
    let said = [found.stdout, found.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let error = said.lines().find(|line| line.to_lowercase().contains("error"));
    let last = said.lines().rev().find(|line| !line.trim().is_empty());
    Err(format!("{name} failed: {}", error.or(last).unwrap_or("it said nothing").trim()))
}

/// A command from a program and its arguments.
pub fn command(words: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// Prints a progress message.
pub fn say(what: &str) {
    eprintln!("{what}");
}

/// The error of a file that cannot be read.
pub fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::Failed(format!("cannot read {}: {error}", path.display()))
}
