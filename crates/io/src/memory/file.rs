//! Memory of a mapped file on an in-memory file system: a tmpfs, such as `/dev/shm`, a ramfs, or a hugetlbfs.
//! The file is new and preallocated. It is unlinked right after its creation, so that no file is left behind
//! after any failure.
//!
//! Files on a device are rejected: the system could write pages out and read them back at any time,
//! unchecked, and a device error would then end the process by a signal (SIGBUS).

use super::mapping::Mapping;
use std::fs::{self, File, OpenOptions};
use std::{io, mem::MaybeUninit, os::fd::AsRawFd, path::Path};

/// Maps a new file of `len` bytes at `path`.
pub(super) fn map_memory_file(path: &Path, len: usize) -> io::Result<Mapping> {
    let file = unlinked_file(path)?;
    if !is_in_memory(&file)? {
        let why =
            "its file system is on a disk, which may fail unseen; take a path on a tmpfs, such as /dev/shm";
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    preallocate(&file, len)?;
    Mapping::of_exclusive_file(&file, len, libc::MAP_SHARED)
}

/// Creates a file at `path` with `len` bytes allocated, and unlinks it.
pub(super) fn preallocated_file(path: &Path, len: usize) -> io::Result<File> {
    let file = unlinked_file(path)?;
    preallocate(&file, len)?;
    Ok(file)
}

/// Creates a file at `path` and unlinks it.
fn unlinked_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    fs::remove_file(path)?;
    Ok(file)
}

/// Whether the file system keeps its files in memory only.
fn is_in_memory(file: &File) -> io::Result<bool> {
    /// From `linux/magic.h`; libc does not define it.
    const RAMFS_MAGIC: u32 = 0x8584_58F6;
    let mut stats = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the call writes one `statfs`, for which there is memory.
    if unsafe { libc::fstatfs(file.as_raw_fd(), stats.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the successful call has written it.
    let stats = unsafe { stats.assume_init() };
    // The type of the field differs between architectures; the numbers have 32 bits.
    let magic = stats.f_type as u32;
    Ok([libc::TMPFS_MAGIC as u32, libc::HUGETLBFS_MAGIC as u32, RAMFS_MAGIC].contains(&magic))
}

/// Allocates the first `len` bytes of a file, so that no later write fails for lack of space.
fn preallocate(file: &File, len: usize) -> io::Result<()> {
    let len = libc::off_t::try_from(len).map_err(|_| io::ErrorKind::FileTooLarge)?;
    loop {
        // SAFETY: the call accesses no memory of this process.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, len) } {
            0 => return Ok(()),
            libc::EINTR => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}
