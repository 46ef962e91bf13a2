//! A read from submission to completion: the state that all backends share.
//!
//! 1. [`InFlightRead::immediate_result`] ends reads of no bytes and reads outside the file.
//! 2. [`InFlightRead::choose_path`] decides between direct I/O and the page cache.
//! 3. Each system call reads [`InFlightRead::remaining`]; [`InFlightRead::advance`] takes its result. The
//!    two repeat until all bytes are read, the file ends, or an error is permanent.
//! 4. [`InFlightRead::complete`] makes the completion, with which the caller gets the target back.

use super::{preadv::read_vectored_at, target::ReadTarget};
use crate::disk::{ReadFile, end_of_file_error};
use crate::error::{Error, ErrorKind, Result, panic_message};
use crate::memory::PAGE_LEN;
use std::io::{self, IoSliceMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{os::fd::BorrowedFd, sync::Arc};

/// Maximum number of retries of a read after transient errors.
const RETRIES_MAX: u32 = 1_000;

/// After this number of direct reads that returned less than a page, a read goes through the page cache.
const SHORT_READS_MAX: u32 = 2;

/// A completed read.
#[derive(Debug)]
pub struct Completion {
    /// The number that the caller passed to [`ReadQueue::submit`](super::ReadQueue::submit).
    pub tag: u64,
    /// The target. After an error its content is unspecified.
    pub target: ReadTarget,
    /// Bytes read from the beginning of the target on: the length of the target, or fewer at the end of the
    /// file.
    pub result: Result<usize>,
    /// Whether direct I/O was requested, but the read went through the page cache: it was not aligned, the
    /// file could not be opened with O_DIRECT, or direct reads returned less than a page.
    pub fell_back: bool,
}

/// A read between its submission and its completion.
pub(super) struct InFlightRead {
    file: Arc<dyn ReadFile>,
    offset: u64,
    target: ReadTarget,
    tag: u64,
    /// Bytes to read: the length of the target, or fewer at the end of the file.
    requested: usize,
    /// Bytes read so far.
    done: usize,
    retries: u32,
    /// Number of direct reads that returned less than a page.
    short_reads: u32,
    path: ReadPath,
}

/// Whether a read uses direct I/O.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadPath {
    /// Through the page cache, as requested, or by [`ReadFile::read_at`].
    Buffered,
    /// Direct I/O.
    Direct,
    /// Through the page cache although direct I/O was requested.
    FellBack,
}

/// Arguments of the next system call of a read.
pub(super) struct RemainingRead<'a> {
    /// Opened with O_DIRECT only if offset, addresses and length are aligned.
    pub(super) file: BorrowedFd<'a>,
    pub(super) offset: u64,
    /// Offset in the target.
    pub(super) from: usize,
    pub(super) len: usize,
}

impl InFlightRead {
    pub(super) fn new(file: &Arc<dyn ReadFile>, offset: u64, target: ReadTarget, tag: u64) -> InFlightRead {
        let len = target.range().len();
        let left = usize::try_from(file.len().saturating_sub(offset)).unwrap_or(usize::MAX);
        InFlightRead {
            file: Arc::clone(file),
            offset,
            target,
            tag,
            requested: len.min(left),
            done: 0,
            retries: 0,
            short_reads: 0,
            path: ReadPath::Buffered,
        }
    }

    /// The result of a read that needs no I/O: it is empty, or not within the pages of the file.
    pub(super) fn immediate_result(&self) -> Option<Result<usize>> {
        let (file_len, len) = (self.file.len(), self.target.range().len());
        if len == 0 {
            return Some(Ok(0));
        }
        let last_page_end = file_len.checked_next_multiple_of(PAGE_LEN as u64).unwrap_or(u64::MAX);
        let end = self.offset.checked_add(len as u64);
        let within = self.offset < file_len && end.is_some_and(|end| end <= last_page_end);
        (!within).then(|| Err(self.too_short_error()))
    }

    pub(super) fn complete(self, result: Result<usize>) -> Completion {
        Completion {
            tag: self.tag,
            target: self.target,
            result: result.map_err(|error| error.at_offset(self.offset)),
            fell_back: self.path == ReadPath::FellBack,
        }
    }

    /// Whether system calls can read the file. All other files are read by [`ReadFile::read_at`].
    pub(super) fn has_descriptor(&self) -> bool {
        self.file.descriptor().is_some()
    }

    /// The file's name, for messages.
    pub(super) fn name(&self) -> &str {
        self.file.name()
    }

    pub(super) fn target_mut(&mut self) -> &mut ReadTarget {
        &mut self.target
    }

    /// Completes the read by blocking system calls, or by [`ReadFile::read_at`] if the file has no
    /// descriptor.
    pub(super) fn read_blocking(mut self) -> Completion {
        let file = Arc::clone(&self.file);
        loop {
            let Some(RemainingRead { file, offset, from, len }) = self.remaining(&*file) else {
                return self.read_with(|file, offset, bytes| file.read_at(offset, bytes));
            };
            let pieces = self.target.pieces_mut(from..from + len).map(IoSliceMut::new);
            let read = read_vectored_at(file, &mut pieces.collect::<Vec<_>>(), offset);
            if let Some(result) = self.advance(read) {
                return self.complete(result);
            }
        }
    }

    /// Completes the read by a method of the file, called for one cell of the target after the other. A panic
    /// of the method becomes an error of this read, so that the thread can go on with other reads.
    fn read_with(mut self, read: impl Fn(&dyn ReadFile, u64, &mut [u8]) -> Result<()>) -> Completion {
        let (requested, mut at, file) = (self.requested, self.offset, Arc::clone(&self.file));
        let target = &mut self.target;
        let mut read_all = || {
            target.pieces_mut(0..requested).try_for_each(|bytes| {
                let from = at;
                at += bytes.len() as u64;
                read(&*file, from, bytes)
            })
        };
        // Unwind safe: after an error the content of the target is unspecified anyway.
        let result = catch_unwind(AssertUnwindSafe(&mut read_all));
        let failed =
            |panic: Box<_>| Error::new(ErrorKind::Other, "read", self.name(), panic_message(&*panic));
        let result = result.unwrap_or_else(|panic| Err(failed(panic)));
        self.complete(result.map(|()| requested))
    }

    /// Chooses direct I/O if `direct` requests it and it is possible.
    pub(super) fn choose_path(&mut self, direct: bool) {
        if !(direct && self.has_descriptor()) {
            return;
        }
        // Addresses: a cell begins at a page.
        let mut memory = self.target.pieces().map(|piece| piece.as_ptr().addr() | piece.len());
        let aligned = memory.all(|bits| bits.is_multiple_of(PAGE_LEN));
        let aligned = aligned && self.offset.is_multiple_of(PAGE_LEN as u64);
        let possible = aligned && self.file.direct_descriptor().is_some();
        self.path = if possible { ReadPath::Direct } else { ReadPath::FellBack };
    }

    /// The next system call of this read. `file` is its file. `None` when the file has no descriptor.
    pub(super) fn remaining<'a>(&self, file: &'a dyn ReadFile) -> Option<RemainingRead<'a>> {
        let from = self.done;
        let offset = self.offset + from as u64;
        let direct = if self.path == ReadPath::Direct { file.direct_descriptor() } else { None };
        Some(match direct {
            // Whole pages, also beyond the end of the file.
            Some(file) => RemainingRead { file, offset, from, len: self.target.range().len() - from },
            None => RemainingRead { file: file.descriptor()?, offset, from, len: self.requested - from },
        })
    }

    /// The file of this read, for [`InFlightRead::remaining`].
    pub(super) fn file(&self) -> &dyn ReadFile {
        &*self.file
    }

    /// Records the result of a system call. Returns the result of the read; `None` when bytes are still to be
    /// read.
    pub(super) fn advance(&mut self, read: io::Result<usize>) -> Option<Result<usize>> {
        match read {
            Ok(bytes) if self.done + bytes >= self.requested => Some(Ok(self.requested)),
            Ok(bytes) => {
                // A direct read begins at a page, so a page that was read in part is read again.
                let unit = if self.path == ReadPath::Direct { PAGE_LEN } else { 1 };
                let done = (self.done + bytes) / unit * unit;
                let continues = done > self.done || self.count_short_read(bytes);
                self.done = done;
                (!continues).then(|| Err(self.too_short_error()))
            }
            Err(error) if is_transient(&error) && self.retries < RETRIES_MAX => {
                self.retries += 1;
                None
            }
            Err(error) => Some(Err(Error::from_os("read", self.name(), &error))),
        }
    }

    /// Counts a system call that has returned less than a page, and returns whether the read goes on: if it
    /// is a direct read that returned some bytes. The cause may be the device and not the end of the file.
    /// After [`SHORT_READS_MAX`] of them the read goes through the page cache, which knows the end of the
    /// file.
    fn count_short_read(&mut self, bytes: usize) -> bool {
        let short = self.path == ReadPath::Direct && bytes > 0;
        self.short_reads += u32::from(short);
        if self.short_reads >= SHORT_READS_MAX {
            self.path = ReadPath::FellBack;
        }
        short
    }

    fn too_short_error(&self) -> Error {
        end_of_file_error(self.name(), self.offset)
    }
}

/// Whether a retry may succeed: the call was interrupted, resources were short, or it was cancelled because
/// the thread that submitted it has ended.
fn is_transient(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::ECANCELED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Cells, Region, RegionKind};
    use crate::{disk::Disk, posix::PosixDisk};
    use std::os::fd::AsRawFd;

    /// In a read of two pages, two direct reads return less than a page.
    #[test]
    fn short_direct_reads_are_not_damage() {
        let directory = tempfile::TempDir::new().unwrap();
        let disk = PosixDisk::open(directory.path()).unwrap();
        disk.create("a").unwrap().append(&[7; 3 * PAGE_LEN]).unwrap();
        let file: Arc<dyn ReadFile> = Arc::from(disk.open("a").unwrap());
        if let Err(error) = disk.check_direct() {
            return println!("not run: {error}");
        }
        let buffered = file.descriptor().unwrap().as_raw_fd();
        let cells = Cells::new(Region::new(&RegionKind::Dram, 8192).unwrap(), 8192).unwrap();
        let direct_read = || {
            let target = ReadTarget::from(cells.write(0).unwrap());
            let mut read = InFlightRead::new(&file, 4096, target, 1);
            read.choose_path(true);
            read
        };
        let remaining = |read: &InFlightRead| {
            let RemainingRead { file, offset, from, len } = read.remaining(&*file).unwrap();
            (file.as_raw_fd() == buffered, offset, from, len)
        };
        let mut short = direct_read();
        assert!(short.advance(Ok(5000)).is_none());
        assert_eq!(remaining(&short), (false, 8192, 4096, 4096), "from the start of the short page");
        assert!(short.advance(Ok(4095)).is_none());
        assert_eq!(remaining(&short), (false, 8192, 4096, 4096), "retried");
        assert!(short.advance(Ok(1)).is_none());
        assert_eq!(remaining(&short), (true, 8192, 4096, 4096), "through the page cache");
        assert!(short.advance(Ok(96)).is_none());
        assert_eq!(remaining(&short), (true, 8288, 4192, 4000));
        let Completion { result, fell_back, .. } = short.read_blocking();
        assert_eq!((result.unwrap(), fell_back), (8192, true));
        // The end of the file is reported on both paths.
        for returned in [&[0][..], &[904, 904, 904, 0]] {
            let mut ends = direct_read();
            let ended = returned.iter().find_map(|bytes| ends.advance(Ok(*bytes)));
            let error = ended.unwrap().unwrap_err();
            assert_eq!(error.to_string(), "a is damaged at byte 4096: the file ends early");
        }
    }
}
