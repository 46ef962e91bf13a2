//! The directory that a run writes its results into.

use crate::{Error, Result};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Creates the directory. Called before anything is measured, so that a failure costs no run.
///
/// # Errors
/// One line that names the directory.
pub fn make(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir)
        .map_err(|error| Error::Failed(format!("cannot create the directory {}: {error}", dir.display())))
}

/// Writes a file into the directory.
///
/// # Errors
/// One line that names the file.
pub fn write(dir: &Path, name: &str, text: &str) -> Result<()> {
    let path = dir.join(name);
    fs::write(&path, text).map_err(|error| Error::Failed(format!("cannot write {}: {error}", path.display())))
}

/// A JSON array with one row per line.
pub fn json_lines(rows: &Value) -> String {
    let rows: Vec<String> = rows.as_array().into_iter().flatten().map(ToString::to_string).collect();
    format!("[\n{}\n]", rows.join(",\n"))
}
