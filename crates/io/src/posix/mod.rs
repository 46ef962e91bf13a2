//! A disk that is a directory of the operating system's file system.
//!
//! The directory is held open, and every name is looked up in it and not by its path: a directory that is
//! renamed or replaced while it is in use is still the one that was opened. Interrupted calls (EINTR) are
//! repeated, no other error is, a failed sync least of all. Descriptors are closed on exec.

#[allow(unsafe_code, reason = "three system calls, posix_fadvise, fcntl and preadv")]
mod file;
mod lock;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::disk::{Disk, DiskLock, ReadFile, WriteFile, check_name};
use crate::error::{Error, ErrorKind, Result};
pub use file::{Advice, PosixFile};
pub(crate) use file::{PIECES_MAX, read_vectored_at};
use lock::Lock;

/// An index directory.
///
/// Symbolic links, pipes and folders inside it are not listed and not opened: links are not followed, and
/// what was opened is looked at before anything is done with it.
#[derive(Debug)]
pub struct PosixDisk {
    /// Absolute, so that it means the same when the process changes its current directory.
    path: PathBuf,
    /// The path as it was given, for messages.
    name: String,
    /// Held open also so that an error of the directory that the kernel has yet to report reaches the next
    /// sync.
    directory: File,
    /// Directories that [`PosixDisk::create`] has made, parents first.
    created: Vec<PathBuf>,
}

impl PosixDisk {
    /// Opens a directory that is there.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is none, [`ErrorKind::Unsupported`] when the path is no directory.
    pub fn open(dir: &Path) -> Result<PosixDisk> {
        let name = dir.display().to_string();
        let failed = |error: &io::Error| Error::from_os("open directory", &*name, error);
        let directory = File::open(dir).map_err(|error| failed(&error))?;
        if !directory.metadata().map_err(|error| failed(&error))?.is_dir() {
            return Err(no_directory(&name));
        }
        let path = std::path::absolute(dir).map_err(|error| failed(&error))?;
        Ok(PosixDisk { path, name, directory, created: Vec::new() })
    }

    /// Creates a directory and its missing parents durably, or opens it when it is there.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when something else has that path, [`ErrorKind::Denied`] when the system forbids it.
    pub fn create(dir: &Path) -> Result<PosixDisk> {
        let missing: Vec<&Path> = dir.ancestors().take_while(|path| is_missing(path)).collect();
        let mut created = Vec::new();
        for path in missing.iter().rev() {
            if create_one(path)? {
                created.push(path.to_path_buf());
            }
            sync_parent(path)?;
        }
        let disk = PosixDisk::open(dir)?;
        if missing.is_empty() {
            sync_parent_if_allowed(dir)?;
        }
        Ok(PosixDisk { created, ..disk })
    }

    /// Removes the directories that [`PosixDisk::create`] made for this disk, as far as they are empty: a
    /// failed first commit leaves nothing behind.
    pub fn remove_created(&self) {
        // A directory that is not empty is in use, and stays.
        let _ = self.created.iter().rev().try_for_each(fs::remove_dir);
    }

    /// Opens a plain file of the directory; `op` is a verb for messages. It follows no link, waits for nobody
    /// at a pipe, and looks at what it has opened and not at what had that name before.
    fn open_plain(&self, flags: OFlags, (op, name): (&'static str, &str)) -> Result<File> {
        check_name(name)?;
        let no_file = || Error::new(ErrorKind::Unsupported, op, name, "it is not a plain file");
        let failed = |error: io::Error| match error.raw_os_error() {
            Some(libc::ELOOP | libc::ENXIO | libc::EISDIR) => no_file(),
            _ => Error::from_os(op, name, &error),
        };
        let file = self.open_at(name, flags | OFlags::NOFOLLOW | OFlags::NONBLOCK).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(no_file());
        }
        file::wait_again(&file).map_err(failed)?;
        Ok(file)
    }

    fn open_at(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let mode = Mode::from_raw_mode(0o666);
        let opened =
            retry_on_intr(|| rustix::fs::openat(&self.directory, name, flags | OFlags::CLOEXEC, mode));
        Ok(File::from(opened?))
    }

    fn link_and_unlink(&self, from: &str, to: &str) -> rustix::io::Result<()> {
        let directory = &self.directory;
        retry_on_intr(|| rustix::fs::linkat(directory, from, directory, to, AtFlags::empty()))?;
        retry_on_intr(|| rustix::fs::unlinkat(directory, from, AtFlags::empty()))
    }

    fn list_names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.directory)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if check_name(name).is_ok() && self.is_file(name, entry.file_type())? {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Whether an entry of the directory is a plain file. Not every file system says so in the directory.
    fn is_file(&self, name: &str, listed: FileType) -> io::Result<bool> {
        if listed != FileType::Unknown {
            return Ok(listed.is_file());
        }
        match rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(FileType::from_raw_mode(stat.st_mode).is_file()),
            // Removed since it was listed.
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl Disk for PosixDisk {
    fn list(&self) -> Result<Vec<String>> {
        self.list_names().map_err(|error| Error::from_os("list", self.describe(), &error))
    }

    fn open(&self, name: &str) -> Result<Box<dyn ReadFile>> {
        let file = self.open_plain(OFlags::RDONLY, ("open", name))?;
        let file = PosixFile::new(file, name).map_err(|error| Error::from_os("open", name, &error))?;
        Ok(Box::new(file))
    }

    fn create(&self, name: &str) -> Result<Box<dyn WriteFile>> {
        check_name(name)?;
        let opened = self.open_at(name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL);
        let file = opened.map_err(|error| Error::from_os("create", name, &error))?;
        Ok(Box::new(Writer { file, name: name.to_owned() }))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        check_name(from)?;
        check_name(to)?;
        let directory = &self.directory;
        let flags = RenameFlags::NOREPLACE;
        let renamed = retry_on_intr(|| rustix::fs::renameat_with(directory, from, directory, to, flags));
        let renamed = match renamed {
            // Not every file system knows the flag. A second name is never given over another file either.
            Err(Errno::INVAL | Errno::NOSYS) => self.link_and_unlink(from, to),
            other => other,
        };
        renamed.map_err(|error| Error::from_os("rename", from, &error.into()))
    }

    fn remove(&self, name: &str) -> Result<()> {
        check_name(name)?;
        let removed = retry_on_intr(|| rustix::fs::unlinkat(&self.directory, name, AtFlags::empty()));
        removed.map_err(|error| Error::from_os("remove", name, &error.into()))
    }

    fn sync_dir(&self) -> Result<()> {
        self.directory.sync_all().map_err(|error| Error::from_os("sync directory", self.describe(), &error))
    }

    fn lock(&self, name: &str) -> Result<Box<dyn DiskLock>> {
        Ok(Box::new(Lock::take(self, name)?))
    }

    fn describe(&self) -> String {
        self.name.clone()
    }

    /// Tried on the first file; an empty directory has nothing to read.
    fn check_direct(&self) -> Result<()> {
        let Some(name) = self.list()?.into_iter().next() else { return Ok(()) };
        self.open(&name)?.posix().map_or(Ok(()), PosixFile::check_direct)
    }
}

struct Writer {
    file: File,
    name: String,
}

impl WriteFile for Writer {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|error| Error::from_os("write", &*self.name, &error))
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync_data().map_err(|error| Error::from_os("sync", &*self.name, &error))
    }
}

/// The error of a lock that somebody has.
pub(crate) fn held(name: &str) -> Error {
    Error::new(ErrorKind::Busy, "lock", name, "it is held by another writer")
}

fn no_directory(name: &str) -> Error {
    Error::new(ErrorKind::Unsupported, "open directory", name, "it is not a directory")
}

/// Whether there is nothing at `path`. The parent of a bare name is the empty path, which is the current directory.
fn is_missing(path: &Path) -> bool {
    let missing = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
    !path.as_os_str().is_empty() && fs::symlink_metadata(path).is_err_and(missing)
}

/// Whether it was made here, and not by another process that was faster. What that one made is looked at when
/// the directory is opened.
fn create_one(path: &Path) -> Result<bool> {
    match fs::create_dir(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(Error::from_os("create directory", path.display().to_string(), &error)),
    }
}

fn sync_parent(path: &Path) -> Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let synced = File::open(parent).and_then(|directory| directory.sync_all());
    synced.map_err(|error| Error::from_os("sync directory", parent.display().to_string(), &error))
}

/// For a directory that was there: an earlier process may have died between creating it and making it durable. When the
/// parent may not be opened, this program cannot have created anything in it.
fn sync_parent_if_allowed(path: &Path) -> Result<()> {
    match sync_parent(path) {
        Err(error) if error.kind() == ErrorKind::Denied => Ok(()),
        other => other,
    }
}
