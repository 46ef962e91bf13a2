//! The lock of a directory: an advisory lock (flock) on a file in it.
//!
//! The kernel frees the lock when the process ends, however it ends. The file is removed when the lock is
//! given back, so that no stale-looking file stays behind. Taking it therefore has three steps:
//! 1. open the file, creating it if it is missing;
//! 2. lock it, without waiting;
//! 3. look whether the name still means the locked file. The holder before may have removed it between 1 and
//!    2; then begin again.

use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

use rustix::fs::{AtFlags, OFlags, Stat};
use rustix::io::Errno;

use super::{PosixDisk, held};
use crate::disk::DiskLock;
use crate::error::{Error, ErrorKind, Result};

/// Attempts before the lock is reported as busy.
const ATTEMPTS: usize = 100;

pub(super) struct Lock {
    file: File,
    inode: u64,
    name: String,
    directory: File,
    /// Path of the directory, absolute.
    path: PathBuf,
    /// Path of the directory for messages.
    directory_name: String,
}

impl Lock {
    pub(super) fn take(disk: &PosixDisk, name: &str) -> Result<Lock> {
        let failed = |error: io::Error| Error::from_os("lock", name, &error);
        for _ in 0..ATTEMPTS {
            let file = disk.open_plain(OFlags::WRONLY | OFlags::CREATE, ("lock", name))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(held(name)),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            let lock = Lock {
                inode: rustix::fs::fstat(&file).map_err(|error| failed(error.into()))?.st_ino,
                file,
                name: name.to_owned(),
                directory: disk.directory.try_clone().map_err(failed)?,
                path: disk.path.clone(),
                directory_name: disk.name.clone(),
            };
            if lock.is_named().map_err(failed)? {
                return Ok(lock);
            }
        }
        Err(held(name))
    }

    /// Whether the name in the directory still means the locked file.
    fn is_named(&self) -> io::Result<bool> {
        let named = rustix::fs::statat(&self.directory, &*self.name, AtFlags::SYMLINK_NOFOLLOW);
        Ok(same(&rustix::fs::fstat(&self.file)?, named)?)
    }

    /// Whether the path still means the directory.
    fn is_at_path(&self) -> io::Result<bool> {
        Ok(same(&rustix::fs::fstat(self.directory.as_fd())?, rustix::fs::stat(&self.path))?)
    }
}

impl DiskLock for Lock {
    fn check(&self) -> Result<()> {
        let failed = |error: io::Error| Error::from_os("check the lock of", &*self.directory_name, &error);
        let lost = |what: String| {
            let what = format!("{what} while it was being written");
            Err(Error::new(ErrorKind::LockLost, "keep the lock of", &*self.directory_name, what))
        };
        if !self.is_at_path().map_err(failed)? {
            return lost("the directory was renamed or replaced".to_owned());
        }
        if !self.is_named().map_err(failed)? {
            return lost(format!("{} was removed or replaced", self.name));
        }
        Ok(())
    }

    /// The number of the file, which is given to no other as long as this one is open.
    fn id(&self) -> u64 {
        self.inode
    }
}

impl Drop for Lock {
    /// The file goes first and the lock with the descriptor: nobody can lock a file that has lost its name
    /// for long.
    fn drop(&mut self) {
        if self.is_named().unwrap_or(false) {
            // A file that stays behind is locked again by the next writer.
            let _ = rustix::fs::unlinkat(&self.directory, &*self.name, AtFlags::empty());
        }
    }
}

/// Whether both are the same file; one that is gone is not.
fn same(own: &Stat, other: rustix::io::Result<Stat>) -> rustix::io::Result<bool> {
    match other {
        Ok(other) => Ok((own.st_dev, own.st_ino) == (other.st_dev, other.st_ino)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(false),
        Err(error) => Err(error),
    }
}
