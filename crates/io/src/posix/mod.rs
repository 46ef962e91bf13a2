//! A disk that is a directory of a file system.
//!
//! Interrupted system calls (EINTR) are retried. After any other error, in particular of a sync, nothing is
//! retried. Descriptors are closed on exec.

mod directory;
mod file;
mod lock;
#[allow(unsafe_code, reason = "one system call, sync_file_range")]
mod write_back;

use crate::{Disk, DiskLock, Error, ErrorKind, ReadFile, Result, WriteFile, check_name};
use directory::OpenDirectory;
use file::PosixFile;
use lock::PosixLock;
use rustix::fs::{AtFlags, Dir, FileType, OFlags, RenameFlags};
use rustix::io::{Errno, retry_on_intr};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use write_back::WriteBack;

/// An index directory.
///
/// Symbolic links, FIFOs and subdirectories are neither listed nor opened: links are not followed, and the
/// type of a file is checked on the open descriptor.
#[derive(Debug)]
pub struct PosixDisk {
    directory: OpenDirectory,
    /// Directories that [`PosixDisk::create`] created, parents first.
    created: Vec<PathBuf>,
}

impl PosixDisk {
    /// Opens an existing directory.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when it does not exist, [`ErrorKind::Unsupported`] when the path is not a
    /// directory.
    pub fn open(dir: &Path) -> Result<PosixDisk> {
        Ok(PosixDisk { directory: OpenDirectory::open(dir)?, created: Vec::new() })
    }

    /// Creates a directory and its missing parents durably, or opens it when it exists.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when the path is not a directory, [`ErrorKind::Denied`] when the system
    /// forbids it.
    pub fn create(dir: &Path) -> Result<PosixDisk> {
        let missing: Vec<&Path> = dir.ancestors().take_while(|path| is_missing(path)).collect();
        let mut created = Vec::new();
        for path in missing.iter().rev() {
            if create_directory(path)? {
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

    /// Removes the directories that [`PosixDisk::create`] created for this disk, if they are empty: a failed
    /// first commit leaves nothing behind.
    pub fn remove_created(&self) {
        // A directory that is not empty is in use and stays.
        let _ = self.created.iter().rev().try_for_each(fs::remove_dir);
    }

    /// Renames `from` to `to` atomically. A file `to` is replaced.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when `from` does not exist; [`ErrorKind::Denied`] when a name is not allowed.
    pub fn replace(&self, from: &str, to: &str) -> Result<()> {
        check_name(from)?;
        check_name(to)?;
        let directory = &self.directory.handle;
        let renamed = retry_on_intr(|| rustix::fs::renameat(directory, from, directory, to));
        renamed.map_err(|error| Error::from_os("rename", from, &error.into()))
    }

    /// Renames a file by a hard link with the new name.
    fn rename_by_link(&self, from: &str, to: &str) -> rustix::io::Result<()> {
        let directory = &self.directory.handle;
        retry_on_intr(|| rustix::fs::linkat(directory, from, directory, to, AtFlags::empty()))?;
        retry_on_intr(|| rustix::fs::unlinkat(directory, from, AtFlags::empty()))
    }

    fn open_file(&self, name: &str) -> Result<PosixFile> {
        let file = self.directory.open_regular(OFlags::RDONLY, "open", name)?;
        PosixFile::new(file, name).map_err(|error| Error::from_os("open", name, &error))
    }

    fn list_names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.directory.handle)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if check_name(name).is_ok() && self.is_file(name, entry.file_type())? {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Whether a directory entry is a regular file. Not every file system stores the type in the directory.
    fn is_file(&self, name: &str, listed: FileType) -> io::Result<bool> {
        if listed != FileType::Unknown {
            return Ok(listed.is_file());
        }
        match rustix::fs::statat(&self.directory.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(FileType::from_raw_mode(stat.st_mode).is_file()),
            // Removed after it was listed.
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
        Ok(Box::new(self.open_file(name)?))
    }

    fn create(&self, name: &str) -> Result<Box<dyn WriteFile>> {
        check_name(name)?;
        let opened = self.directory.open_at(name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL);
        let file = opened.map_err(|error| Error::from_os("create", name, &error))?;
        Ok(Box::new(PosixWriter { file, name: name.to_owned(), write_back: WriteBack::default() }))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        check_name(from)?;
        check_name(to)?;
        let directory = &self.directory.handle;
        let flags = RenameFlags::NOREPLACE;
        let renamed = retry_on_intr(|| rustix::fs::renameat_with(directory, from, directory, to, flags));
        let renamed = match renamed {
            // Not every file system supports the flag. A hard link never replaces a file either.
            Err(Errno::INVAL | Errno::NOSYS) => self.rename_by_link(from, to),
            other => other,
        };
        renamed.map_err(|error| Error::from_os("rename", from, &error.into()))
    }

    fn remove(&self, name: &str) -> Result<()> {
        check_name(name)?;
        let removed = retry_on_intr(|| rustix::fs::unlinkat(&self.directory.handle, name, AtFlags::empty()));
        removed.map_err(|error| Error::from_os("remove", name, &error.into()))
    }

    fn sync_dir(&self) -> Result<()> {
        self.directory
            .handle
            .sync_all()
            .map_err(|error| Error::from_os("sync directory", self.describe(), &error))
    }

    fn lock(&self, name: &str) -> Result<Box<dyn DiskLock>> {
        Ok(Box::new(PosixLock::take(&self.directory, name)?))
    }

    fn describe(&self) -> String {
        self.directory.name.clone()
    }

    /// Tries the first file of the directory. An empty directory always succeeds.
    fn check_direct(&self) -> Result<()> {
        let Some(name) = self.list()?.into_iter().next() else { return Ok(()) };
        self.open_file(&name)?.direct_file().map(drop)
    }

    /// Blocks that an unprivileged process can use.
    fn available_bytes(&self) -> Result<Option<u64>> {
        let stats = retry_on_intr(|| rustix::fs::fstatvfs(&self.directory.handle));
        let failed =
            |error: Errno| Error::from_os("measure the free space of", self.describe(), &error.into());
        let stats = stats.map_err(failed)?;
        Ok(Some(stats.f_bavail.saturating_mul(stats.f_frsize)))
    }
}

struct PosixWriter {
    file: File,
    name: String,
    write_back: WriteBack,
}

impl WriteFile for PosixWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let written =
            self.file.write_all(bytes).and_then(|()| self.write_back.advance(&self.file, bytes.len()));
        written.map_err(|error| Error::from_os("write", &*self.name, &error))
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync_data().map_err(|error| Error::from_os("sync", &*self.name, &error))
    }
}

/// Whether `path` does not exist. The empty path, which is the parent of a relative name, exists.
fn is_missing(path: &Path) -> bool {
    let missing = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
    !path.as_os_str().is_empty() && fs::symlink_metadata(path).is_err_and(missing)
}

/// Creates a directory. Returns false when the path exists because another process was faster; whether it is
/// a directory is checked by [`PosixDisk::open`].
fn create_directory(path: &Path) -> Result<bool> {
    match fs::create_dir(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(Error::from_os("create directory", path.display().to_string(), &error)),
    }
}

/// Makes the name of `path` durable by a sync of its directory.
fn sync_parent(path: &Path) -> Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let synced = File::open(parent).and_then(|directory| directory.sync_all());
    synced.map_err(|error| Error::from_os("sync directory", parent.display().to_string(), &error))
}

/// Makes the name of an existing directory durable, as the process that created it may have died before it
/// did so. Does nothing if the parent may not be opened: then this program cannot have created the directory.
fn sync_parent_if_allowed(path: &Path) -> Result<()> {
    match sync_parent(path) {
        Err(error) if error.kind() == ErrorKind::Denied => Ok(()),
        other => other,
    }
}
