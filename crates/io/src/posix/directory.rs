//! An open directory and the files in it.
//!
//! Every name is looked up relative to the open directory, not by path: a directory that is renamed or
//! replaced while it is in use is still the one that was opened.

use crate::{Error, ErrorKind, Result, check_name};
use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;
use std::path::{Path, PathBuf};
use std::{fs::File, io};

/// An open directory.
#[derive(Debug)]
pub(super) struct OpenDirectory {
    /// Absolute, so that it stays valid when the process changes its current directory.
    pub(super) path: PathBuf,
    /// The path as it was given, for messages.
    pub(super) name: String,
    /// The open directory. It stays open, so that the next sync reports errors that have occurred since.
    pub(super) handle: File,
}

impl OpenDirectory {
    /// Opens the directory at `path`.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when it does not exist, [`ErrorKind::Unsupported`] when it is not a
    /// directory.
    pub(super) fn open(path: &Path) -> Result<OpenDirectory> {
        let name = path.display().to_string();
        let failed = |error: &io::Error| Error::from_os("open directory", &*name, error);
        let handle = File::open(path).map_err(|error| failed(&error))?;
        if !handle.metadata().map_err(|error| failed(&error))?.is_dir() {
            let why = "it is not a directory";
            return Err(Error::new(ErrorKind::Unsupported, "open directory", &*name, why));
        }
        let path = std::path::absolute(path).map_err(|error| failed(&error))?;
        Ok(OpenDirectory { path, name, handle })
    }

    /// Opens a regular file; `op` is a verb for messages. Does not follow symbolic links and does not block
    /// on a FIFO. The file type is checked after opening, on the open descriptor.
    pub(super) fn open_regular(&self, flags: OFlags, op: &'static str, name: &str) -> Result<File> {
        check_name(name)?;
        let not_regular = || Error::new(ErrorKind::Unsupported, op, name, "it is not a plain file");
        let failed = |error: io::Error| match error.raw_os_error() {
            Some(libc::ELOOP | libc::ENXIO | libc::EISDIR) => not_regular(),
            _ => Error::from_os(op, name, &error),
        };
        let file = self.open_at(name, flags | OFlags::NOFOLLOW | OFlags::NONBLOCK).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(not_regular());
        }
        // Clear O_NONBLOCK, the only status flag that was set: on some file systems io_uring reads would
        // fail with EAGAIN instead of blocking.
        rustix::fs::fcntl_setfl(&file, OFlags::empty()).map_err(|error| failed(error.into()))?;
        Ok(file)
    }

    /// Opens or creates a file of this directory, as the flags say.
    pub(super) fn open_at(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let mode = Mode::from_raw_mode(0o666);
        let opened = retry_on_intr(|| rustix::fs::openat(&self.handle, name, flags | OFlags::CLOEXEC, mode));
        Ok(File::from(opened?))
    }
}
