//! A memory mapping, unmapped on drop.

use std::io::{self, Read};
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::{self, NonNull};
use std::{fs::File, slice};

/// Mapped memory, aligned to a page. The owner of the mapping decides which threads read and write it.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping belongs to the process and not to a thread.
unsafe impl Send for Mapping {}
// SAFETY: a shared reference gives out no reference to the bytes; users of `start` say why they may access
// them.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Anonymous private memory, zeroed, writable. `flags` are additional `MAP_*` flags.
    pub(crate) fn anonymous(len: usize, flags: i32) -> io::Result<Mapping> {
        Mapping::new(len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags, -1)
    }

    /// The first `len` bytes of an unlinked file of this process, writable. `flags` are `MAP_*` flags.
    pub(crate) fn of_exclusive_file(file: &File, len: usize, flags: i32) -> io::Result<Mapping> {
        Mapping::new(len, flags, file.as_raw_fd())
    }

    fn new(len: usize, flags: i32, fd: RawFd) -> io::Result<Mapping> {
        if len == 0 {
            return Ok(Mapping { start: NonNull::dangling(), len });
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: without MAP_FIXED the kernel chooses unused addresses.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, protection, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Mapping { start, len })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The address of the first byte.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// All bytes, writable.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: mapped and initialized as long as `self` lives, which is borrowed mutably; a
        // mapping is of anonymous memory or of an unlinked file of this process.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// Allocates all pages now, by a read of zeros into them: so a failed allocation is an error of the
    /// system call and not a signal.
    pub(crate) fn populate(&mut self) -> io::Result<()> {
        File::open("/dev/zero")?.read_exact(self.bytes_mut())
    }

    /// Requests transparent huge pages, or pages of 4 KiB. Has no effect on a kernel without huge pages.
    pub(crate) fn set_huge_pages(&self, huge: bool) {
        let advice = if huge { libc::MADV_HUGEPAGE } else { libc::MADV_NOHUGEPAGE };
        // SAFETY: the call changes no byte.
        let _ = unsafe { libc::madvise(self.start.as_ptr().cast(), self.len, advice) };
    }

    /// Gives the memory of a range of whole pages back to the system. If it is anonymous, its bytes are zero
    /// from then on, and the next access allocates memory again.
    ///
    /// # Safety
    /// The range is within the mapping, and nobody else accesses its bytes during the call.
    pub(crate) unsafe fn discard(&self, offset: usize, len: usize) {
        let start = self.start.as_ptr().wrapping_add(offset);
        // SAFETY: the caller has the only access to these mapped bytes, which stay initialized.
        let _ = unsafe { libc::madvise(start.cast(), len, libc::MADV_DONTNEED) };
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
