//! A disk that is a directory of the operating system's file system.
//!
//! Interrupted calls (EINTR) are repeated, as the standard library does for all calls used here. No other error is
//! repeated, a failed sync least of all. Descriptors are closed on exec.

#[allow(unsafe_code, reason = "three system calls, posix_fadvise, fcntl and preadv")]
mod file;

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, DiskLock, ReadFile, WriteFile, check_name};
use crate::error::{Error, ErrorKind, Result};
pub use file::{Advice, PosixFile};
pub(crate) use file::{PIECES_MAX, read_vectored_at};

/// An index directory.
///
/// Symbolic links, pipes and folders inside it are not listed and not opened: links are not followed, and what was opened
/// is looked at before anything is done with it.
#[derive(Debug)]
pub struct PosixDisk {
    path: PathBuf,
    /// Held open, so that an error of the directory that the kernel has yet to report reaches the next sync.
    directory: File,
}

impl PosixDisk {
    /// Opens a directory that is there.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is none, [`ErrorKind::Unsupported`] when the path is no directory.
    pub fn open(dir: &Path) -> Result<PosixDisk> {
        let failed = |error: &io::Error| Error::from_os("open directory", dir.display().to_string(), error);
        let directory = File::open(dir).map_err(|error| failed(&error))?;
        if !directory.metadata().map_err(|error| failed(&error))?.is_dir() {
            return Err(no_directory(dir));
        }
        Ok(PosixDisk { path: dir.to_path_buf(), directory })
    }

    /// Creates a directory and its missing parents durably, or opens it when it is there.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when something else has that path, [`ErrorKind::Denied`] when the system forbids it.
    pub fn create(dir: &Path) -> Result<PosixDisk> {
        let missing: Vec<&Path> = dir.ancestors().take_while(|path| is_missing(path)).collect();
        for path in missing.iter().rev() {
            create_one(path)?;
            sync_parent(path)?;
        }
        let disk = PosixDisk::open(dir)?;
        if missing.is_empty() {
            sync_parent_if_allowed(dir)?;
        }
        Ok(disk)
    }

    fn path_of(&self, name: &str) -> Result<PathBuf> {
        check_name(name)?;
        Ok(self.path.join(name))
    }
}

impl Disk for PosixDisk {
    fn list(&self) -> Result<Vec<String>> {
        let failed = |error: io::Error| Error::from_os("list", self.describe(), &error);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if check_name(&name).is_ok() && entry.file_type().map_err(failed)?.is_file() {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn open(&self, name: &str) -> Result<Box<dyn ReadFile>> {
        let path = self.path_of(name)?;
        let file = open_plain(OpenOptions::new().read(true), &path, ("open", name))?;
        let file = PosixFile::new(file, name).map_err(|error| Error::from_os("open", name, &error))?;
        Ok(Box::new(file))
    }

    fn create(&self, name: &str) -> Result<Box<dyn WriteFile>> {
        let path = self.path_of(name)?;
        let opened = OpenOptions::new().write(true).create_new(true).open(path);
        let file = opened.map_err(|error| Error::from_os("create", name, &error))?;
        Ok(Box::new(Writer { file, name: name.to_owned() }))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (old, new) = (self.path_of(from)?, self.path_of(to)?);
        fs::rename(old, new).map_err(|error| Error::from_os("rename", from, &error))
    }

    fn remove(&self, name: &str) -> Result<()> {
        fs::remove_file(self.path_of(name)?).map_err(|error| Error::from_os("remove", name, &error))
    }

    fn sync_dir(&self) -> Result<()> {
        self.directory.sync_all().map_err(|error| Error::from_os("sync directory", self.describe(), &error))
    }

    fn lock(&self, name: &str) -> Result<Box<dyn DiskLock>> {
        let path = self.path_of(name)?;
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false);
        let file = open_plain(options, &path, ("lock", name))?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(Lock { _file: file })),
            Err(TryLockError::WouldBlock) => Err(held(name)),
            Err(TryLockError::Error(error)) => Err(Error::from_os("lock", name, &error)),
        }
    }

    fn describe(&self) -> String {
        self.path.display().to_string()
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

/// The lock belongs to the open file and goes with it.
struct Lock {
    _file: File,
}

impl DiskLock for Lock {}

/// Opens a plain file; `what` is a verb and a name. It follows no link, waits for nobody at a pipe, and looks at what it has
/// opened and not at what had that name before.
fn open_plain(options: &mut OpenOptions, path: &Path, what: (&'static str, &str)) -> Result<File> {
    let (op, name) = what;
    let no_file = || Error::new(ErrorKind::Unsupported, op, name, "it is not a plain file");
    let failed = |error: io::Error| match error.raw_os_error() {
        Some(libc::ELOOP | libc::ENXIO | libc::EISDIR) => no_file(),
        _ => Error::from_os(op, name, &error),
    };
    let opened = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC).open(path);
    let file = opened.map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(no_file());
    }
    file::wait_again(&file).map_err(failed)?;
    Ok(file)
}

/// The error of a lock that somebody has.
pub(crate) fn held(name: &str) -> Error {
    Error::new(ErrorKind::Busy, "lock", name, "it is held by another writer")
}

fn no_directory(path: &Path) -> Error {
    Error::new(ErrorKind::Unsupported, "open directory", path.display().to_string(), "it is not a directory")
}

/// Whether there is nothing at `path`. The parent of a bare name is the empty path, which is the current directory.
fn is_missing(path: &Path) -> bool {
    let missing = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
    !path.as_os_str().is_empty() && fs::symlink_metadata(path).is_err_and(missing)
}

fn create_one(path: &Path) -> Result<()> {
    match fs::create_dir(path) {
        // Another process was faster; what it made is looked at when the directory is opened.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => {
            other.map_err(|error| Error::from_os("create directory", path.display().to_string(), &error))
        }
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
