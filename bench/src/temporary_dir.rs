//! A directory of this process.

use crate::{Error, Result};
use std::{fs, path::Path, path::PathBuf};

/// A directory of this process, removed when it is dropped.
pub(crate) struct TemporaryDir(PathBuf);

impl TemporaryDir {
    /// Chooses a name in `parent`. The directory is created by its user.
    ///
    /// # Errors
    /// If it exists and cannot be removed.
    pub(crate) fn new(parent: &Path, name: &str) -> Result<TemporaryDir> {
        let path = parent.join(format!("{name}-{}.part", std::process::id()));
        remove_partial(&path)?;
        Ok(TemporaryDir(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDir {
    fn drop(&mut self) {
        // If this fails, the name of the directory says what it is.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes an incomplete directory that an interrupted run has left, if there is one.
pub(crate) fn remove_partial(part: &Path) -> Result<()> {
    if !part.exists() {
        return Ok(());
    }
    fs::remove_dir_all(part).map_err(Error::failed(format!("cannot remove {}", part.display())))
}
