//! The folder that what a run found goes into.

use crate::{Error, Result};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Makes a directory before anything is measured, so that no run is lost by its being impossible.
///
/// # Errors
/// One line that names it.
pub fn make(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir)
        .map_err(|error| Error::Failed(format!("cannot make the directory {}: {error}", dir.display())))
}

/// Writes a file of it.
///
/// # Errors
/// One line that names the file.
pub fn write(dir: &Path, name: &str, text: &str) -> Result<()> {
    let path = dir.join(name);
    fs::write(&path, text).map_err(|error| Error::Failed(format!("cannot write {}: {error}", path.display())))
}

/// An array in JSON, a row a line.
pub fn lines(rows: &Value) -> String {
    let rows: Vec<String> = rows.as_array().into_iter().flatten().map(ToString::to_string).collect();
    format!("[\n{}\n]", rows.join(",\n"))
}
