//! The storage interface.
//!
//! A [`Disk`] is a flat directory of files. Each file is written once, from front to end. Code that uses
//! only these traits runs on a directory, in memory and under injected faults.
//!
//! Durability: bytes are durable after [`WriteFile::sync`], names after [`Disk::sync_dir`]. Any other change
//! may or may not survive a crash.

use crate::error::{Error, ErrorKind, Result};
use std::{os::fd::BorrowedFd, sync::Arc};

/// Maximum length of a file name in bytes, as on the usual Linux file systems.
pub const NAME_BYTES_MAX: usize = 255;

/// A flat directory of files.
///
/// Every name is checked by [`check_name`]; a name that is not allowed gives [`ErrorKind::Denied`].
pub trait Disk: Send + Sync {
    /// Names of the regular files whose name [`check_name`] allows, in byte order. Other entries of a
    /// directory cannot belong to an index and are ignored.
    fn list(&self) -> Result<Vec<String>>;

    /// Opens a file for reading. [`ErrorKind::NotFound`] when it does not exist.
    ///
    /// The handle stays readable when the name is renamed, replaced or removed.
    fn open(&self, name: &str) -> Result<Box<dyn ReadFile>>;

    /// Creates an empty file. [`ErrorKind::Exists`] when the name is taken.
    fn create(&self, name: &str) -> Result<Box<dyn WriteFile>>;

    /// Renames `from` to `to` atomically. [`ErrorKind::Exists`] when `to` exists.
    fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// Removes a name. Open handles stay usable.
    fn remove(&self, name: &str) -> Result<()>;

    /// Makes all creations, renames and removals so far durable. After an error their durability is unknown.
    fn sync_dir(&self) -> Result<()>;

    /// Takes the exclusive lock `name`, or returns [`ErrorKind::Busy`] immediately when it is held, also by
    /// this process.
    ///
    /// Dropping the lock releases it; the kernel releases it when the process dies. A file of that name
    /// exists while the lock is held. A process that dies leaves the file behind, which does not prevent the
    /// next lock.
    fn lock(&self, name: &str) -> Result<Box<dyn DiskLock>>;

    /// The location, for messages: the path of the directory, or "memory".
    fn describe(&self) -> String;

    /// Whether files can be read with direct I/O (O_DIRECT). A disk without a page cache always succeeds.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] with the reason.
    fn check_direct(&self) -> Result<()> {
        Ok(())
    }

    /// Bytes that files can still take; `None` if no limit is known.
    fn available_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }
}

/// A file open for reading. Many threads may read concurrently.
pub trait ReadFile: Send + Sync {
    /// The name under which the file was opened, for messages.
    fn name(&self) -> &str;

    /// Length in bytes at the time of opening.
    fn len(&self) -> u64;

    /// Whether the file was empty at the time of opening.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buf` from byte `offset` on, or fails. Short reads are continued; a file that ends before `buf`
    /// is full is [`ErrorKind::Corrupt`]. After an error the content of `buf` is unspecified.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// A file descriptor that reads this file through the page cache. Read queues make their own system calls
    /// on it. It stays open, and the same, as long as this file is open.
    ///
    /// `None` unless the bytes of this file are exactly those of one file of the operating system. Read
    /// queues then use [`ReadFile::read_at`].
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// As [`ReadFile::descriptor`], opened with O_DIRECT: offsets, lengths and addresses are multiples of 4
    /// KiB.
    ///
    /// Opened on first use. `None` when the file cannot be opened with O_DIRECT; [`Disk::check_direct`]
    /// gives the reason.
    fn direct_descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A file being written, from front to end.
///
/// After any error the end of the file is unknown and the handle is unusable: remove the file and start
/// again.
pub trait WriteFile: Send {
    /// Appends all of `bytes`. After an error any prefix of them may have been written.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Makes the bytes appended so far durable; the name also needs [`Disk::sync_dir`].
    ///
    /// A failed sync must not be retried: the kernel may have dropped the dirty pages and report success
    /// next time.
    fn sync(&mut self) -> Result<()>;
}

/// A held lock. Dropping it releases it.
pub trait DiskLock: Send {
    /// Checks that the lock still excludes others: its file has not been removed or replaced, and the
    /// directory is still the one at the path by which it was opened.
    ///
    /// # Errors
    /// [`ErrorKind::LockLost`] when it does not: another writer may be active and own the files on the disk.
    fn check(&self) -> Result<()>;

    /// A number that differs from that of every other held lock of this disk, also of locks that lost their
    /// file and are still held.
    fn id(&self) -> u64;
}

/// Rejects names that could leave the directory or differ between file systems.
///
/// Allowed are 1 to [`NAME_BYTES_MAX`] bytes of `A-Z a-z 0-9 . _ -`, except `.` and names that contain `..`.
///
/// # Errors
/// [`ErrorKind::Denied`].
pub fn check_name(name: &str) -> Result<()> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let problem = if name.is_empty() {
        "the name is empty"
    } else if name.len() > NAME_BYTES_MAX {
        "the name is longer than 255 bytes"
    } else if !name.bytes().all(allowed) {
        "a name has only ASCII letters, digits and . _ -"
    } else if name == "." || name.contains("..") {
        "the name could mean a directory"
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::Denied, "use", format!("file name {name:?}"), problem))
}

/// The error of a read beyond the end of the file.
pub(crate) fn end_of_file_error(name: &str, offset: u64) -> Error {
    Error::corrupt(name, offset, "the file ends early")
}

/// The error of a request for a lock that is held already.
pub(crate) fn lock_held_error(name: &str) -> Error {
    Error::new(ErrorKind::Busy, "lock", name, "it is held by another writer")
}

/// Implements the listed methods of [`Disk`] by calls of the same methods of an inner disk. For the tests of
/// the project, not a part of the interface.
#[doc(hidden)]
#[macro_export]
macro_rules! forward_disk {
    ($self:ident, $disk:expr; $($method:ident)*) => { $($crate::forward_disk!(@$method $self, $disk);)* };
    (@list $self:ident, $disk:expr) => {
        fn list(&$self) -> $crate::Result<Vec<String>> { $disk.list() }
    };
    (@open $self:ident, $disk:expr) => {
        fn open(&$self, name: &str) -> $crate::Result<Box<dyn $crate::ReadFile>> { $disk.open(name) }
    };
    (@create $self:ident, $disk:expr) => {
        fn create(&$self, name: &str) -> $crate::Result<Box<dyn $crate::WriteFile>> { $disk.create(name) }
    };
    (@rename $self:ident, $disk:expr) => {
        fn rename(&$self, from: &str, to: &str) -> $crate::Result<()> { $disk.rename(from, to) }
    };
    (@remove $self:ident, $disk:expr) => {
        fn remove(&$self, name: &str) -> $crate::Result<()> { $disk.remove(name) }
    };
    (@sync_dir $self:ident, $disk:expr) => {
        fn sync_dir(&$self) -> $crate::Result<()> { $disk.sync_dir() }
    };
    (@lock $self:ident, $disk:expr) => {
        fn lock(&$self, name: &str) -> $crate::Result<Box<dyn $crate::DiskLock>> { $disk.lock(name) }
    };
    (@describe $self:ident, $disk:expr) => {
        fn describe(&$self) -> String { $disk.describe() }
    };
    (@check_direct $self:ident, $disk:expr) => {
        fn check_direct(&$self) -> $crate::Result<()> { $disk.check_direct() }
    };
    (@available_bytes $self:ident, $disk:expr) => {
        fn available_bytes(&$self) -> $crate::Result<Option<u64>> { $disk.available_bytes() }
    };
}

impl<D: Disk + ?Sized> Disk for Arc<D> {
    forward_disk!(self, (**self); list open create rename remove sync_dir lock describe check_direct available_bytes);
}

impl<D: Disk + ?Sized> Disk for Box<D> {
    forward_disk!(self, (**self); list open create rename remove sync_dir lock describe check_direct available_bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_leave_the_directory_are_denied() {
        let longest = "a".repeat(NAME_BYTES_MAX);
        for good in ["a", "0000000000000001.0.docs", "manifest-1.tmp", "A_b", ".hidden", "-", &longest] {
            assert!(check_name(good).is_ok(), "{good:?}");
        }
        let too_long = "a".repeat(NAME_BYTES_MAX + 1);
        for bad in ["", ".", "..", "a..b", "a/b", "/", "a\0", "a b", "é", "a\n", "a\\b", "%2e", &too_long] {
            assert_eq!(check_name(bad).map_err(|error| error.kind()), Err(ErrorKind::Denied), "{bad:?}");
        }
    }
}
