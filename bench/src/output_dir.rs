//! The directory that a run writes its results into.

use crate::{Error, Result};
use serde_json::Value;
use std::{fs, path::Path};

/// Creates the directory, with its parents. Called before anything is measured, so that no measurements are
/// lost if it fails.
///
/// # Errors
/// One line that names the directory.
pub fn create(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).map_err(Error::failed(format!("cannot create the directory {}", dir.display())))
}

/// Writes a file into the directory.
///
/// # Errors
/// One line that names the file.
pub fn write_file(dir: &Path, name: &str, contents: impl AsRef<[u8]>) -> Result<()> {
    let path = dir.join(name);
    fs::write(&path, contents).map_err(Error::failed(format!("cannot write {}", path.display())))
}

/// A JSON array with one row per line.
pub fn json_lines(rows: &Value) -> String {
    let rows: Vec<String> = rows.as_array().into_iter().flatten().map(ToString::to_string).collect();
    format!("[\n{}\n]", rows.join(",\n"))
}
