//! The system call `preadv`: one read into several buffers.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Maximum number of buffers that one system call accepts.
pub(super) const IOVECS_MAX: usize = libc::UIO_MAXIOV as usize;

/// Reads from `offset` on into one buffer after the other, at most [`IOVECS_MAX`] of them. Returns the
/// number of bytes.
pub(super) fn read_vectored_at(
    file: BorrowedFd<'_>,
    buffers: &mut [IoSliceMut],
    offset: u64,
) -> io::Result<usize> {
    let count = buffers.len().min(IOVECS_MAX) as libc::c_int;
    // SAFETY: `IoSliceMut` has the layout of an iovec, and each is memory that only this call has.
    let read =
        unsafe { libc::preadv(file.as_raw_fd(), buffers.as_mut_ptr().cast(), count, offset as libc::off_t) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}
