//! The lock of a directory: an advisory lock (flock) on a file in it.
//!
//! The kernel releases the lock when the process ends for any reason. The file is removed when the lock is
//! released, so that no file remains which looks like a stale lock. Taking the lock therefore has three
//! steps:
//!
//! 1. Open the file; create it if it is missing.
//! 2. Lock it without waiting.
//! 3. Check that the name still refers to the locked file. The previous holder may have removed it between
//!    steps 1 and 2; then start again.

use super::directory::OpenDirectory;
use crate::{DiskLock, Error, ErrorKind, Result, lock_held_error};
use rustix::fs::{AtFlags, OFlags, Stat};
use rustix::io::Errno;
use std::fs::{File, TryLockError};
use std::{io, os::fd::AsFd, path::PathBuf};

/// Maximum number of attempts to take a lock, before it is reported as busy.
const ATTEMPTS_MAX: usize = 100;

/// A held lock: the locked file and its directory.
pub(super) struct PosixLock {
    file: File,
    inode: u64,
    name: String,
    directory: File,
    /// Absolute path of the directory.
    path: PathBuf,
    /// Path of the directory for messages.
    directory_name: String,
}

impl PosixLock {
    /// Takes the lock as described above, or fails if another process holds it.
    pub(super) fn take(directory: &OpenDirectory, name: &str) -> Result<PosixLock> {
        let failed = |error: io::Error| Error::from_os("lock", name, &error);
        for _ in 0..ATTEMPTS_MAX {
            let file = directory.open_regular(OFlags::WRONLY | OFlags::CREATE, "lock", name)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(lock_held_error(name)),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            let lock = PosixLock {
                inode: rustix::fs::fstat(&file).map_err(|error| failed(error.into()))?.st_ino,
                file,
                name: name.to_owned(),
                directory: directory.handle.try_clone().map_err(failed)?,
                path: directory.path.clone(),
                directory_name: directory.name.clone(),
            };
            if lock.is_named().map_err(failed)? {
                return Ok(lock);
            }
        }
        Err(lock_held_error(name))
    }

    /// Whether the name in the directory still refers to the locked file.
    fn is_named(&self) -> io::Result<bool> {
        let named = rustix::fs::statat(&self.directory, &*self.name, AtFlags::SYMLINK_NOFOLLOW);
        Ok(is_same_file(&rustix::fs::fstat(&self.file)?, named)?)
    }

    /// Whether the path still refers to the open directory.
    fn is_at_path(&self) -> io::Result<bool> {
        Ok(is_same_file(&rustix::fs::fstat(self.directory.as_fd())?, rustix::fs::stat(&self.path))?)
    }
}

impl DiskLock for PosixLock {
    fn check(&self) -> Result<()> {
        let failed = |error: io::Error| Error::from_os("check the lock of", &*self.directory_name, &error);
        let lost = |why: String| {
            let why = format!("{why} while it was being written");
            Err(Error::new(ErrorKind::LockLost, "keep the lock of", &*self.directory_name, why))
        };
        if !self.is_at_path().map_err(failed)? {
            return lost("the directory was renamed or replaced".to_owned());
        }
        if !self.is_named().map_err(failed)? {
            return lost(format!("{} was removed or replaced", self.name));
        }
        Ok(())
    }

    /// The inode number, which is not reused while the file is open.
    fn id(&self) -> u64 {
        self.inode
    }
}

impl Drop for PosixLock {
    /// Removes the file, and then releases the lock by closing its descriptor. A process that has opened the
    /// file before notices in [`PosixLock::take`] that it has no name any more.
    fn drop(&mut self) {
        if self.is_named().unwrap_or(false) {
            // If the file cannot be removed, the next writer locks it again.
            let _ = rustix::fs::unlinkat(&self.directory, &*self.name, AtFlags::empty());
        }
    }
}

/// Whether both are the same file; false when `other` does not exist.
fn is_same_file(own: &Stat, other: rustix::io::Result<Stat>) -> rustix::io::Result<bool> {
    match other {
        Ok(other) => Ok((own.st_dev, own.st_ino) == (other.st_dev, other.st_ino)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(false),
        Err(error) => Err(error),
    }
}
