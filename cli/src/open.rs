//! Opening index directories.

use crate::failure::{Failure, Outcome};
use std::path::Path;
use std::sync::Arc;
use tierdex::index::Index;
use tierdex::io::{ErrorKind, PosixDisk};

/// The directory of an existing index.
pub fn disk(dir: &Path) -> Outcome<Arc<PosixDisk>> {
    let disk = PosixDisk::open(dir).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Failure::Failed(format!(
            "{}: no such directory; make an index with `tierdex index INPUT --out {}`",
            dir.display(),
            dir.display()
        )),
        _ => error.into(),
    })?;
    Ok(Arc::new(disk))
}

/// The newest commit in a directory.
pub fn index(dir: &Path) -> Outcome<Index> {
    Index::open_on(disk(dir)?).map_err(not_usage)
}

/// A folder without an index is a failure, and no wrong usage.
pub fn not_usage(error: tierdex::Error) -> Failure {
    match error {
        tierdex::Error::Usage(message) => Failure::Failed(message),
        error => error.into(),
    }
}
