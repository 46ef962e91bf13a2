//! What a writer does when it starts: it chooses the commit to build on, and removes files that a crash left.
//!
//! 1. Read the newest manifest. A damaged one is an error, unless the index is to be replaced anyway.
//! 2. Without a manifest the disk is empty, or the manifest was lost: sealed segment files are never taken
//!    for files that a crash left.
//! 3. If the newest commit is known, files that it does not name were left by a crash: sync the directory,
//!    which makes this commit durable, and remove them. If it is not known, no segment is removed before the
//!    next commit.

use super::manifest::{LOCK_FILE, Manifest, NUMBER_MAX, is_temporary, parse_generation};
use crate::segment::layout::{identity, parse_file_name};
use crate::{Error, Result, schema::Schema};
use tierdex_io::{Disk, DiskLock, ErrorKind, SealedFile};

/// How a writer treats an existing index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// There must be no index.
    New,
    /// Add documents to the index. The schema is that of the index, or begins with its fields and members.
    Append,
    /// The next commit replaces documents and schema of the index. There may be no index, or a damaged one.
    Replace,
}

/// Locks the index on a disk for a writer.
pub(super) fn lock_index(disk: &dyn Disk) -> Result<Box<dyn DiskLock>> {
    disk.lock(LOCK_FILE).map_err(|error| match error.kind() {
        ErrorKind::Busy => {
            Error::Busy(format!("another writer is at work on {}; try again later", disk.describe()))
        }
        _ => Error::Storage(error),
    })
}

/// The commit on which a writer builds; generation 0 if there is none.
pub(super) fn choose_base(disk: &dyn Disk, schema: &Schema, mode: OpenMode) -> Result<Manifest> {
    let manifest = match Manifest::read_newest(disk) {
        Err(Error::Storage(error)) if mode == OpenMode::Replace && is_unreadable(error.kind()) => {
            return base_above_existing(disk, schema);
        }
        read => read?,
    };
    let manifest = match manifest {
        Some(manifest) => manifest,
        None => match (find_sealed_file(disk)?, mode) {
            (Some(_), OpenMode::Replace) => return base_above_existing(disk, schema),
            (Some(name), _) => return Err(lost_manifest(disk, &name)),
            (None, OpenMode::Append) => {
                return Err(Error::Usage(format!("{} holds no index to append to", disk.describe())));
            }
            (None, _) => Manifest::empty(schema.clone()),
        },
    };
    if manifest.generation > 0 {
        check_mode(disk, &manifest, schema, mode)?;
    }
    if mode == OpenMode::Append {
        check_seals(disk, &manifest)?;
    }
    remove_leftovers(disk, &manifest)?;
    Ok(manifest)
}

/// Checks that a writer of this mode may use an existing index.
fn check_mode(disk: &dyn Disk, manifest: &Manifest, schema: &Schema, mode: OpenMode) -> Result<()> {
    match mode {
        OpenMode::New => Err(Error::Usage(format!(
            "{} holds an index already (documents: {})",
            disk.describe(),
            manifest.live_documents()
        ))),
        OpenMode::Append if !schema.extends(&manifest.schema) => Err(Error::Usage(format!(
            "the index in {} was made with other settings: {}; append with its settings, to which members and \
             fields may be added at the end",
            disk.describe(),
            manifest.schema.differences(schema)
        ))),
        _ => Ok(()),
    }
}

/// Checks that all files of the commit exist, with the lengths and checksums of the manifest: nothing is
/// appended to a damaged index.
fn check_seals(disk: &dyn Disk, manifest: &Manifest) -> Result<()> {
    manifest.named_files().try_for_each(|file| file.open(disk).map(drop))
}

fn is_unreadable(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Corrupt | ErrorKind::Unsupported)
}

/// An empty commit to build on, with numbers above those of all existing files, so that none is overwritten.
/// Removes only temporary manifests.
fn base_above_existing(disk: &dyn Disk, schema: &Schema) -> Result<Manifest> {
    let names = disk.list()?;
    let number = |name: &String| parse_generation(name).or(parse_file_name(name).map(|(number, ..)| number));
    if let Some(name) = names.iter().find(|name| number(name).is_some_and(|number| number >= NUMBER_MAX - 1))
    {
        return Err(Error::Failed(format!(
            "{} holds {name}, which no index has: remove this file",
            disk.describe()
        )));
    }
    for name in names.iter().filter(|name| is_temporary(name)) {
        disk.remove(name)?;
    }
    let generation = names.iter().filter_map(|name| parse_generation(name)).max().unwrap_or(0);
    let last = names.iter().filter_map(|name| parse_file_name(name)).map(|(number, ..)| number).max();
    let next_file = last.map_or(1, |number| number + 1);
    Ok(Manifest { generation, next_file, ..Manifest::empty(schema.clone()) })
}

/// Finds a sealed segment file on a disk without a manifest: a writer finished it, so the manifest may have
/// been lost. Files that a crash left unfinished are not sealed.
fn find_sealed_file(disk: &dyn Disk) -> Result<Option<String>> {
    for name in disk.list()? {
        let Some((number, field, kind)) = parse_file_name(&name) else { continue };
        match SealedFile::open_unsealed(disk, &name, identity(number, field, kind)) {
            Ok(_) => return Ok(Some(name)),
            Err(error) if error.kind() == ErrorKind::Corrupt => {}
            // A sealed file of another format version.
            Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(Some(name)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// The error of a reader that finds no manifest.
pub(super) fn no_index(disk: &dyn Disk) -> Error {
    let names = disk.list().unwrap_or_default();
    // The lock file exists while a writer holds the lock, and after that writer was killed.
    if names.iter().any(|name| name == LOCK_FILE) {
        let what = "holds no tierdex index yet: the first writer is at work or was cut off, and has committed nothing";
        return Error::Usage(format!("{} {what} (no manifest)", disk.describe()));
    }
    let lost = names.iter().find(|name| parse_file_name(name).is_some());
    let lost = lost.map(|name| format!(": it has files of one, such as {name}, but no manifest"));
    Error::Usage(format!("{} holds no tierdex index{}", disk.describe(), lost.unwrap_or_default()))
}

fn lost_manifest(disk: &dyn Disk, name: &str) -> Error {
    Error::Failed(format!(
        "{} holds files of an index, such as {name}, but no manifest: copy the manifest back if it was lost, or, \
         if the first run was cut off, replace the index to start anew (`tierdex index --replace`)",
        disk.describe()
    ))
}

/// Removes the files that the newest commit does not name. Temporary manifests are removed first, so that a
/// writer that has just lost its lock cannot publish a commit whose segments are removed here.
fn remove_leftovers(disk: &dyn Disk, newest: &Manifest) -> Result<()> {
    let leftovers = newest.orphans(disk)?;
    if leftovers.is_empty() {
        return Ok(());
    }
    disk.sync_dir()?;
    let (manifests, files): (Vec<_>, Vec<_>) = leftovers.iter().partition(|name| is_temporary(name));
    manifests.into_iter().try_for_each(|name| disk.remove(name))?;
    if Manifest::newest(disk)?.unwrap_or(0) != newest.generation {
        return Err(Error::Failed(format!(
            "another writer has just committed to {}; try again",
            disk.describe()
        )));
    }
    Ok(files.into_iter().try_for_each(|name| disk.remove(name))?)
}
