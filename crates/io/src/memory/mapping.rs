//! A memory mapping, unmapped on drop.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::{self, NonNull};
use std::slice;

use super::page::PAGE_LEN;

/// Mapped bytes, aligned to a page. The owner decides which threads read and write them.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
    writable: bool,
}

// SAFETY: a mapping belongs to the process and not to a thread.
unsafe impl Send for Mapping {}
// SAFETY: a shared reference gives out no reference to the bytes; users of `start` say why they may access
// them.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Anonymous private memory, zeroed, writable. `flags` are additional `MAP_*` flags.
    pub(crate) fn anonymous(len: usize, flags: i32) -> io::Result<Mapping> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        Mapping::new(len, protection, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags, -1)
    }

    /// The first `len` bytes of an unlinked file of this process, writable. `flags` are `MAP_*` flags.
    pub(crate) fn of_exclusive_file(file: &File, len: usize, flags: i32) -> io::Result<Mapping> {
        Mapping::new(len, libc::PROT_READ | libc::PROT_WRITE, flags, file.as_raw_fd())
    }

    /// The first `len` bytes of a file that other processes may change or truncate, read-only: see
    /// [`Mapping::copy_to`].
    pub(crate) fn of_shared_file(file: &File, len: usize) -> io::Result<Mapping> {
        Mapping::new(len, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd())
    }

    fn new(len: usize, protection: i32, flags: i32, fd: RawFd) -> io::Result<Mapping> {
        let writable = protection & libc::PROT_WRITE != 0;
        if len == 0 {
            return Ok(Mapping { start: NonNull::dangling(), len, writable });
        }
        // SAFETY: without MAP_FIXED the kernel chooses unused addresses.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, protection, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, len, writable })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The address of the first byte.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Copies the bytes from `start` on into `buf`. `None` when they are not within the mapping.
    ///
    /// If the file was truncated since it was mapped, or the device fails, the process ends by SIGBUS.
    pub(crate) fn copy_to(&self, start: usize, buf: &mut [u8]) -> Option<()> {
        assert!(!self.writable, "only a shared file is copied from");
        start.checked_add(buf.len()).filter(|end| *end <= self.len)?;
        let from = self.start.as_ptr().wrapping_add(start);
        // SAFETY: the source is within the mapping, which lives as long as `self`, and does not overlap
        // `buf`. Other processes may write to the mapped file at any time: no reference to its bytes exists
        // that assumes they are stable, and torn bytes are valid `u8`s. If another process truncates the
        // file, the process ends by a signal; the copy returns no invalid value.
        unsafe { ptr::copy_nonoverlapping(from, buf.as_mut_ptr(), buf.len()) };
        Some(())
    }

    /// All bytes, writable.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        assert!(self.writable, "a shared file is mapped read-only");
        // SAFETY: mapped and initialized as long as `self` lives, which is borrowed mutably; a writable
        // mapping is of anonymous memory or of an unlinked file of this process.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// Allocates all pages now. The kernel writes them, so that a failed allocation is an error and not a
    /// signal.
    pub(crate) fn populate(&mut self) -> io::Result<()> {
        File::open("/dev/zero")?.read_exact(self.bytes_mut())
    }

    /// Requests huge pages; without effect where there are none.
    pub(crate) fn prefer_huge_pages(&self) {
        // SAFETY: the call changes no byte.
        let _ = unsafe { libc::madvise(self.start.as_ptr().cast(), self.len, libc::MADV_HUGEPAGE) };
    }

    /// Advises the kernel on the use of a mapped file. `advice` is one of
    /// `MADV_{NORMAL,RANDOM,SEQUENTIAL,WILLNEED,DONTNEED}`.
    pub(crate) fn advise_file(&self, range: Range<usize>, advice: i32) -> io::Result<()> {
        let range = range.start / PAGE_LEN * PAGE_LEN..range.end.min(self.len);
        if range.is_empty() {
            return Ok(());
        }
        let start = self.start.as_ptr().wrapping_add(range.start);
        // SAFETY: the call changes no byte: dropped pages of a shared file are read from it again.
        match unsafe { libc::madvise(start.cast(), range.len(), advice) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: exactly the mapped range; no borrow outlives the value that is dropped.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
        }
    }
}
