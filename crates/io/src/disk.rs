//! The one door to storage.
//!
//! A [`Disk`] is a flat directory of files that are written once, from front to end. An engine that keeps to these
//! verbs can be run on a directory, in memory, under injected faults, and later on other devices.
//!
//! What is durable: bytes after [`WriteFile::sync`], names after [`Disk::sync_dir`]. Nothing else may be relied on after
//! a crash, in either direction.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::posix::PosixFile;

/// The longest file name, in bytes, as on the usual Linux file systems.
pub const NAME_BYTES_MAX: usize = 255;

/// A flat directory of files.
///
/// Every name is checked by [`check_name`]; a refused one gives [`ErrorKind::Denied`].
pub trait Disk: Send + Sync {
    /// The names of the plain files with an allowed name, sorted by byte. Other entries are not the index's own.
    fn list(&self) -> Result<Vec<String>>;

    /// Opens a file for reading. [`ErrorKind::NotFound`] when there is none.
    ///
    /// The handle stays readable when the name is renamed, replaced or removed.
    fn open(&self, name: &str) -> Result<Box<dyn ReadFile>>;

    /// Creates an empty file. [`ErrorKind::Exists`] when there is one.
    fn create(&self, name: &str) -> Result<Box<dyn WriteFile>>;

    /// Gives the file `from` the name `to`, in one step. [`ErrorKind::Exists`] when there is such a file.
    fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// Removes a name. Open handles stay usable.
    fn remove(&self, name: &str) -> Result<()>;

    /// Makes all creations, renames and removals so far durable. After an error nothing is known about them.
    fn sync_dir(&self) -> Result<()>;

    /// Takes the exclusive lock `name`, or gives [`ErrorKind::Busy`] at once when it is held, by this process too.
    ///
    /// It is freed when dropped, and by the kernel when the process dies. A file of that name exists while it
    /// is held; a process that dies leaves it behind, and that file does not keep anybody from locking again.
    fn lock(&self, name: &str) -> Result<Box<dyn DiskLock>>;

    /// Where this is, for messages: the path of the directory, or "memory".
    fn describe(&self) -> String;

    /// Whether files here can be read past the system's page cache; those that are not the system's always are.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] with the reason.
    fn check_direct(&self) -> Result<()> {
        Ok(())
    }
}

/// A file open for reading. Many threads may read at once.
pub trait ReadFile: Send + Sync {
    /// The name under which it was opened, for messages.
    fn name(&self) -> &str;

    /// The length in bytes at the time of opening.
    fn len(&self) -> u64;

    /// Whether the file had no bytes at the time of opening.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buf` from byte `offset` on, or fails: short reads are continued, and a file that ends before `buf` is
    /// full is [`ErrorKind::Corrupt`]. After an error the content of `buf` is unspecified.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// The file of the operating system that this is, if it is no more than that: engines may then read it in ways of
    /// their own. Of any other they get the bytes by [`ReadFile::read_at`].
    fn posix(&self) -> Option<&PosixFile> {
        None
    }
}

/// A file being written, from front to end.
///
/// After any error the end of the file is unknown and the handle is of no more use: remove the file and start anew.
pub trait WriteFile: Send {
    /// Appends all of `bytes`. After an error any prefix of them may have been written.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Makes the bytes appended so far durable; the name needs [`Disk::sync_dir`] as well.
    ///
    /// A failed sync must not be repeated: the kernel may have dropped the unwritten pages and report success next time.
    fn sync(&mut self) -> Result<()>;
}

/// A held lock. Drop it to free it.
pub trait DiskLock: Send {
    /// Checks that the lock still keeps others out: that its file has not been removed or replaced, and that
    /// the directory is still the one at the path by which it was opened.
    ///
    /// # Errors
    /// [`ErrorKind::LockLost`] when it is not: another writer may be at work, and what is on the disk may be
    /// its own.
    fn check(&self) -> Result<()>;

    /// A number that no other held lock of this disk has, nor one that lost its file and is still held.
    fn id(&self) -> u64;
}

/// Refuses names that could leave the directory or differ between file systems.
///
/// Allowed are 1 to [`NAME_BYTES_MAX`] bytes of `A-Z a-z 0-9 . _ -`, but not `.` and nothing with `..` in it.
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

/// The error of a read that meets the end of the file.
pub(crate) fn ends_early(name: &str, offset: u64) -> Error {
    Error::corrupt(name, offset, "the file ends early")
}

/// Lets an owning pointer to a disk, also to `dyn Disk`, be used as a disk.
macro_rules! forward_disk {
    ($pointer:ident) => {
        impl<D: Disk + ?Sized> Disk for $pointer<D> {
            fn list(&self) -> Result<Vec<String>> {
                (**self).list()
            }
            fn open(&self, name: &str) -> Result<Box<dyn ReadFile>> {
                (**self).open(name)
            }
            fn create(&self, name: &str) -> Result<Box<dyn WriteFile>> {
                (**self).create(name)
            }
            fn rename(&self, from: &str, to: &str) -> Result<()> {
                (**self).rename(from, to)
            }
            fn remove(&self, name: &str) -> Result<()> {
                (**self).remove(name)
            }
            fn sync_dir(&self) -> Result<()> {
                (**self).sync_dir()
            }
            fn lock(&self, name: &str) -> Result<Box<dyn DiskLock>> {
                (**self).lock(name)
            }
            fn describe(&self) -> String {
                (**self).describe()
            }
            fn check_direct(&self) -> Result<()> {
                (**self).check_direct()
            }
        }
    };
}

forward_disk!(Arc);
forward_disk!(Box);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
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
