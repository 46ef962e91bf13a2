//! Memory of a file system, such as a tmpfs or a fast disk. The file is new, is preallocated, and loses its name before
//! anything can fail: whatever happens, nothing is left behind.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use super::mapping::Mapping;

pub(super) fn map(path: &Path, len: usize) -> io::Result<Mapping> {
    Mapping::of_own_file(&preallocated(path, len)?, len, libc::MAP_SHARED)
}

/// A new file without a name, `len` bytes of which the file system has set apart.
pub(super) fn preallocated(path: &Path, len: usize) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    fs::remove_file(path)?;
    allocate(&file, len)?;
    Ok(file)
}

fn allocate(file: &File, len: usize) -> io::Result<()> {
    let len = libc::off_t::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
    loop {
        // SAFETY: touches no memory of this process.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, len) } {
            0 => return Ok(()),
            libc::EINTR => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}
