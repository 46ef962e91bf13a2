//! Writes a file back while it is written: so dirty pages do not accumulate until its sync, and a large file
//! does not fill the page cache. As `bytes_per_sync` of RocksDB with `strict_bytes_per_sync`.
//!
//! At each full step of a file that is written from front to end:
//!
//! 1. Starts to write back the step.
//! 2. Waits until the step before is written back, and drops it from the page cache.
//!
//! The last full step and what follows it stay in the page cache: a reader opens a file by its end. A file
//! of less than a step is left to its sync.

use rustix::fs::{Advice, fadvise};
use std::os::fd::{AsFd, AsRawFd};
use std::{fs::File, io, num::NonZeroU64, ops::Range};

/// Bytes of a step. Merging is not slower with it than without, at about 5 MB of dirty pages instead of
/// 240 MB.
const STEP_BYTES: u64 = 1 << 20;

/// How far a file was written, and written back.
#[derive(Default)]
pub(super) struct WriteBack {
    /// Bytes written so far.
    written: u64,
    /// The step whose write-back was started last.
    started: Range<u64>,
    /// Whether the system does not have the call: the sync of the file then does all.
    is_unsupported: bool,
}

impl WriteBack {
    /// Records that `bytes` were appended to `file`, which is not written in another way.
    ///
    /// # Errors
    /// If bytes cannot be written back: a later sync may not report that again.
    pub(super) fn advance(&mut self, file: &File, bytes: usize) -> io::Result<()> {
        self.written += bytes as u64;
        if self.is_unsupported || self.written - self.started.end < STEP_BYTES {
            return Ok(());
        }
        let step = self.started.end..self.written;
        if let Err(error) = sync_range(file, &step, libc::SYNC_FILE_RANGE_WRITE) {
            // The first call of a file does not wait for writes of it, whose errors these may be later.
            self.is_unsupported = step.start == 0 && is_unsupported(&error);
            return if self.is_unsupported { Ok(()) } else { Err(error) };
        }
        let before = std::mem::replace(&mut self.started, step);
        if let Some(len) = NonZeroU64::new(before.end - before.start) {
            let wait = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
            sync_range(file, &before, wait | libc::SYNC_FILE_RANGE_WRITE)?;
            // A hint: a page that stays costs memory that the system can take back.
            let _ = fadvise(file.as_fd(), before.start, Some(len), Advice::DontNeed);
        }
        Ok(())
    }
}

/// Writes back a range of a file as `flags` say.
fn sync_range(file: &File, range: &Range<u64>, flags: libc::c_uint) -> io::Result<()> {
    let (offset, len) = (range.start as libc::off64_t, (range.end - range.start) as libc::off64_t);
    // SAFETY: the call takes numbers only, and the descriptor is open.
    match unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether an error says that the system, a filter of its calls or the file system does not have the call.
fn is_unsupported(error: &io::Error) -> bool {
    let errors = [libc::ENOSYS, libc::EPERM, libc::EINVAL, libc::ESPIPE, libc::EOPNOTSUPP];
    error.raw_os_error().is_some_and(|error| errors.contains(&error))
}

#[cfg(test)]
mod tests {
    use crate::{Disk, PosixDisk};
    use rustix::fs::statfs;
    use rustix::io::{ReadWriteFlags, preadv2};
    use std::io::IoSliceMut;

    const PAGE_LEN: usize = 4096;

    #[test]
    fn a_large_file_is_written_whole_and_leaves_the_page_cache() {
        let directory = tempfile::TempDir::new().unwrap();
        let disk = PosixDisk::open(directory.path()).unwrap();
        let bytes: Vec<u8> = (0..9_000_001_u32).map(|at| (at * 7 + at / 256) as u8).collect();
        let mut writer = disk.create("a").unwrap();
        bytes.chunks(100_003).for_each(|piece| writer.append(piece).unwrap());
        writer.sync().unwrap();
        let file = disk.open("a").unwrap();
        let is_cached = |page: &usize| {
            let mut read = [0; PAGE_LEN];
            let offset = (page * PAGE_LEN) as u64;
            let buffers = &mut [IoSliceMut::new(&mut read)];
            preadv2(file.descriptor().unwrap(), buffers, offset, ReadWriteFlags::NOWAIT).is_ok()
        };
        // From the end on, as a read may cache the pages after it.
        let pages = bytes.len() / PAGE_LEN;
        let cached = (0..pages).rev().filter(is_cached).count();
        let mut read = vec![0; bytes.len()];
        file.read_at(0, &mut read).unwrap();
        assert!(read == bytes);
        // The last step, and what follows it; a file system in memory has no other copy.
        let in_memory = statfs(directory.path()).unwrap().f_type == libc::TMPFS_MAGIC;
        assert!(in_memory || cached < pages / 2, "{cached} of {pages} pages are cached");
    }
}
