//! Opens index directories, with error messages for the command line.

use crate::failure::{Failure, Outcome};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tierdex::io::{Disk, ErrorKind, PosixDisk};
use tierdex::{Index, IndexWriter, OpenMode, Schema, StopSignal, WriterOptions};

/// Interval between attempts to lock an index.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Opens the directory of an existing index.
pub fn open_directory(dir: &Path) -> Outcome<Arc<PosixDisk>> {
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
    Index::open_on(open_directory(dir)?).map_err(usage_as_failure)
}

/// Opens the newest commits in several directories, to search them as one index.
pub fn indexes(dirs: &[PathBuf]) -> Outcome<Index> {
    let disks = dirs.iter().map(|dir| open_directory(dir).map(|disk| disk as Arc<dyn Disk>));
    Index::open_all_on(disks.collect::<Outcome<_>>()?).map_err(usage_as_failure)
}

/// The directories as one path, for messages about a file in one of them.
pub fn joined_path(dirs: &[PathBuf]) -> PathBuf {
    match dirs {
        [dir] => dir.clone(),
        dirs => {
            let names: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
            format!("{{{}}}", names.join(",")).into()
        }
    }
}

/// The schema for a writer.
pub struct WriterSchema {
    /// The schema of the next commit.
    pub schema: Schema,
    /// The schema of the index from which it was made, if documents are appended.
    pub existing: Option<Schema>,
}

impl WriterSchema {
    fn open(
        &self,
        disk: Arc<dyn Disk>,
        mode: OpenMode,
        options: WriterOptions,
    ) -> tierdex::Result<IndexWriter> {
        let Some(existing) = &self.existing else {
            return IndexWriter::open(disk, self.schema.clone(), mode, options);
        };
        IndexWriter::open_extended(disk, options, |newest| match newest == existing {
            true => Ok(self.schema.clone()),
            false => Err(tierdex::Error::Usage(
                "another writer has changed the fields or synonyms of the index; run the command again"
                    .to_string(),
            )),
        })
    }
}

/// Opens a writer, of an updatable index if the options say so. Waits up to `wait` while another one holds
/// the lock; `None` if the command has no flag for it.
pub fn open_writer(
    disk: Arc<dyn Disk>,
    schema: &WriterSchema,
    mode: OpenMode,
    options: &WriterOptions,
    wait: Option<Duration>,
) -> Outcome<IndexWriter> {
    let writer = wait_for_writer(&options.stop, wait, || schema.open(disk.clone(), mode, options.clone()))?;
    if options.updatable && !writer.is_updatable() {
        return Err(not_updatable(&disk.describe()));
    }
    Ok(writer)
}

/// The error of a command that needs an updatable index.
pub fn not_updatable(dir: &str) -> Failure {
    Failure::Usage(format!(
        "the index in {dir} is not updatable: its documents are not found by their ids; make it so with \
         `tierdex merge {dir} --updatable`"
    ))
}

/// Opens a writer by `open`, as [`open_writer`].
pub fn wait_for_writer(
    stop: &StopSignal,
    wait: Option<Duration>,
    open: impl Fn() -> tierdex::Result<IndexWriter>,
) -> Outcome<IndexWriter> {
    let start = Instant::now();
    loop {
        match open() {
            Err(tierdex::Error::Busy(_)) if wait.is_some_and(|wait| start.elapsed() < wait) => {
                stop.check()?;
                std::thread::sleep(LOCK_RETRY_INTERVAL);
            }
            Err(tierdex::Error::Busy(message)) if wait.is_some() => {
                let waited = wait.map_or(0, |wait| wait.as_secs());
                return Err(Failure::Busy(match waited {
                    0 => format!("{message}, or give --wait SECONDS"),
                    _ => format!("{message}; it was so for {waited} s"),
                }));
            }
            opened => return Ok(opened?),
        }
    }
}

/// The error of a writer that a signal stopped, if there was no commit before.
pub fn nothing_committed(failure: Failure) -> Failure {
    match failure {
        Failure::Interrupted(_) => Failure::Interrupted("interrupted; nothing was committed".to_string()),
        failure => failure,
    }
}

/// A directory without an index is a failure (exit code 1), not a usage error.
pub fn usage_as_failure(error: tierdex::Error) -> Failure {
    match error {
        tierdex::Error::Usage(message) => Failure::Failed(message),
        error => error.into(),
    }
}
