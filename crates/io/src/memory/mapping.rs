//! A stretch of the address space that this process asked for, and gives back when dropped.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::{self, NonNull};
use std::slice;

/// Mapped bytes, aligned to a page. Its owner decides who may look at them and who may write.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
    writable: bool,
}

// SAFETY: a mapping belongs to the process and not to a thread.
unsafe impl Send for Mapping {}
// SAFETY: through a shared mapping bytes are only read, except by `start`, whose users say why they may write.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Memory of the process's own, zeroed, writable. `flags` are further `MAP_*` flags.
    pub(crate) fn anonymous(len: usize, flags: i32) -> io::Result<Mapping> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        Mapping::new(len, protection, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags, -1)
    }

    /// The first `len` bytes of a file that nobody else has, writable. `flags` say how it is shared.
    pub(crate) fn of_own_file(file: &File, len: usize, flags: i32) -> io::Result<Mapping> {
        Mapping::new(len, libc::PROT_READ | libc::PROT_WRITE, flags, file.as_raw_fd())
    }

    /// The first `len` bytes of a file whose bytes do not change any more, to be read.
    pub(crate) fn of_file(file: &File, len: usize) -> io::Result<Mapping> {
        Mapping::new(len, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd())
    }

    fn new(len: usize, protection: i32, flags: i32, fd: RawFd) -> io::Result<Mapping> {
        let writable = protection & libc::PROT_WRITE != 0;
        if len == 0 {
            return Ok(Mapping { start: NonNull::dangling(), len, writable });
        }
        // SAFETY: without MAP_FIXED the kernel chooses addresses that nothing else uses.
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

    /// All bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: mapped and initialised for as long as `self` lives; written only through `&mut self`, or through
        // `start` by an owner that then does not use this method.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// All bytes, to be written.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        assert!(self.writable, "a mapped file of others is not written");
        // SAFETY: as in `bytes`, and borrowed from nobody else.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// Has all pages given now. The kernel writes them, so that one that it cannot give is an error and not a signal.
    pub(crate) fn populate(&mut self) -> io::Result<()> {
        File::open("/dev/zero")?.read_exact(self.bytes_mut())
    }

    /// Asks for huge pages; ordinary ones do as well.
    pub(crate) fn prefer_huge_pages(&self) {
        // SAFETY: changes no byte.
        let _ = unsafe { libc::madvise(self.start.as_ptr().cast(), self.len, libc::MADV_HUGEPAGE) };
    }

    /// Tells how a mapped file will be used. `advice` is one of `MADV_{NORMAL,RANDOM,SEQUENTIAL,WILLNEED,DONTNEED}`.
    pub(crate) fn advise_file(&self, range: Range<usize>, advice: i32) -> io::Result<()> {
        let range = range.start / super::PAGE_LEN * super::PAGE_LEN..range.end.min(self.len);
        if range.is_empty() {
            return Ok(());
        }
        let start = self.start.as_ptr().wrapping_add(range.start);
        // SAFETY: changes no byte: pages of a shared file that are given up are read from it again.
        match unsafe { libc::madvise(start.cast(), range.len(), advice) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: exactly what was mapped; nobody borrows from a value that is dropped.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
        }
    }
}
