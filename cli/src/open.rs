//! Opens index directories, with error messages for the command line.

use crate::failure::{Failure, Outcome};
use std::path::Path;
use std::sync::Arc;
use tierdex::index::Index;
use tierdex::io::{ErrorKind, PosixDisk};

/// Opens the directory of an existing index.
pub fn disk(dir: &Path) -> Outcome<Arc<PosixDisk>> {
    let disk = PosixDisk::open(dir).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::Failed(format!(
            "{}: no such directory; create an index with `tierdex index INPUT --out {}`",
            dir.display(),
            dir.display()
        )),
        _ => error.into(),
    })?;
    Ok(Arc::new(disk))
}

/// Opens the newest commit in a directory.
pub fn index(dir: &Path) -> Outcome<Index> {
    Index::open_on(disk(dir)?).map_err(usage_as_failure)
}

/// A directory without an index is a failure (exit code 1), not a usage error.
pub fn usage_as_failure(error: tierdex::Error) -> Failure {
    match error {
        tierdex::Error::Usage(message) => Failure::Failed(message),
        error => error.into(),
    }
}
