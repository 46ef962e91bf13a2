//! Programs that are called while things are prepared, files and folders, and what is said on the way.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;
use tierdex_bench::{Error, Result};

/// Makes a directory.
///
/// # Errors
/// If that cannot be.
pub fn make_folder(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir)
        .map_err(|error| Error::Failed(format!("cannot make the directory {}: {error}", dir.display())))
}

/// Removes a directory, if it is there.
///
/// # Errors
/// If it is there and stays.
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
/// If that cannot be.
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

/// What a program printed.
///
/// # Errors
/// One line, if it is not there or failed: the last line of what it said.
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

/// A program and the words behind it.
pub fn command(words: &[impl AsRef<OsStr>]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// Says what is being done.
pub fn say(what: &str) {
    eprintln!("{what}");
}
