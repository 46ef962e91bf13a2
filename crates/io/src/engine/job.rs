//! A read, from the question to the answer: what all ways of reading have in common.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{Completion, Target};
use crate::disk::{ReadFile, ends_early};
use crate::error::{Error, ErrorKind, Result, panic_message};
use crate::memory::PAGE_LEN;
use crate::posix::{PosixFile, read_vectored_at};

/// How often the system may say "again" to one read before that is an error.
const REPEATS_MAX: u32 = 1_000;

/// How often a read past the page cache may give less than a page, though more was wanted.
const SHORT_MAX: u32 = 2;

/// A read that has begun.
pub(super) struct Job {
    file: Arc<dyn ReadFile>,
    offset: u64,
    target: Target,
    tag: u64,
    /// How many bytes are wanted: the target's length, or as many as the file has.
    wanted: usize,
    /// How many of them there are already.
    done: usize,
    repeats: u32,
    /// How often it gave less than a page past the page cache.
    short: u32,
    way: Way,
}

/// Where it is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Through the page cache, as was asked, or as is not known here.
    Buffered,
    /// Past it.
    Direct,
    /// Through it, though past it was asked.
    FellBack,
}

/// The rest of a job, for the system.
pub(super) struct Rest<'a> {
    /// Open so that the offset, the address and the length suit it.
    pub(super) file: &'a File,
    pub(super) offset: u64,
    /// Where in the target it goes on.
    pub(super) from: usize,
    pub(super) len: usize,
}

impl Job {
    pub(super) fn new(file: &Arc<dyn ReadFile>, offset: u64, target: Target, tag: u64) -> Job {
        let len = target.range.len();
        let left = usize::try_from(file.len().saturating_sub(offset)).unwrap_or(usize::MAX);
        Job {
            file: Arc::clone(file),
            offset,
            target,
            tag,
            wanted: len.min(left),
            done: 0,
            repeats: 0,
            short: 0,
            way: Way::Buffered,
        }
    }

    /// What it gives if there is nothing to read: no bytes are wanted, or those that the file cannot have.
    pub(super) fn at_once(&self) -> Option<Result<usize>> {
        let (file_len, len) = (self.file.len(), self.target.range.len());
        if len == 0 {
            return Some(Ok(0));
        }
        let last_page_end = file_len.checked_next_multiple_of(PAGE_LEN as u64).unwrap_or(u64::MAX);
        let end = self.offset.checked_add(len as u64);
        let within = self.offset < file_len && end.is_some_and(|end| end <= last_page_end);
        (!within).then(|| Err(self.ends_early()))
    }

    pub(super) fn end(self, result: Result<usize>) -> Completion {
        Completion {
            tag: self.tag,
            target: self.target,
            result: result.map_err(|error| error.at(self.offset)),
            fell_back: self.way == Way::FellBack,
        }
    }

    /// The file, if it is no more than one of the system's.
    pub(super) fn posix(&self) -> Option<&PosixFile> {
        self.file.posix()
    }

    /// The file's name, for messages.
    pub(super) fn name(&self) -> &str {
        self.file.name()
    }

    pub(super) fn target_mut(&mut self) -> &mut Target {
        &mut self.target
    }

    /// Reads by [`ReadFile::read_at`]. It is others' code: if it panics, the read has failed, and the thread and all that
    /// it has in flight go on.
    pub(super) fn read_at(mut self) -> Completion {
        let (wanted, offset, file) = (self.wanted, self.offset, Arc::clone(&self.file));
        let target = &mut self.target;
        let mut at = offset;
        let mut read = || {
            target.pieces_mut(0..wanted).try_for_each(|bytes| {
                let from = at;
                at += bytes.len() as u64;
                file.read_at(from, bytes)
            })
        };
        // Whatever it leaves behind in them: after an error the bytes are unspecified.
        let read = catch_unwind(AssertUnwindSafe(&mut read));
        let failed =
            |panic: Box<_>| Error::new(ErrorKind::Other, "read", self.name(), panic_message(&*panic));
        let read = read.unwrap_or_else(|panic| Err(failed(panic)));
        self.end(read.map(|()| wanted))
    }

    /// Copies from the mapped file.
    pub(super) fn copy(mut self) -> Completion {
        let file = Arc::clone(&self.file);
        let Some(posix) = file.posix() else { return self.read_at() };
        let copied = posix.mapped().map(|bytes| {
            // Within the file, as was checked, and a mapped file fits the address space.
            let mut rest = &bytes[self.offset as usize..];
            for piece in self.target.pieces_mut(0..self.wanted) {
                let (bytes, behind) = rest.split_at(piece.len());
                piece.copy_from_slice(bytes);
                rest = behind;
            }
            self.wanted
        });
        self.end(copied)
    }

    /// Decides where it is read: past the page cache, if that is wanted and possible.
    pub(super) fn decide(&mut self, direct: bool) {
        let Some(posix) = self.file.posix().filter(|_| direct) else { return };
        // A cell begins at a page.
        let mut memory = self.target.pieces().map(|piece| piece.as_ptr().addr() | piece.len());
        let aligned = memory.all(|bits| bits.is_multiple_of(PAGE_LEN));
        let aligned = aligned && self.offset.is_multiple_of(PAGE_LEN as u64);
        self.way = if aligned && posix.direct().is_ok() { Way::Direct } else { Way::FellBack };
    }

    /// Reads by system calls, one after the other until all is there.
    pub(super) fn pread(mut self) -> Completion {
        let file = Arc::clone(&self.file);
        let Some(posix) = file.posix() else { return self.read_at() };
        loop {
            let Rest { file, offset, from, len } = self.rest(posix);
            let pieces = self.target.pieces_mut(from..from + len).map(IoSliceMut::new);
            let read = read_vectored_at(file, &mut pieces.collect::<Vec<_>>(), offset);
            if let Some(result) = self.advance(read) {
                return self.end(result);
            }
        }
    }

    /// What is still to be read, through the page cache or past it.
    pub(super) fn rest<'a>(&self, posix: &'a PosixFile) -> Rest<'a> {
        let from = self.done;
        let offset = self.offset + from as u64;
        let direct = if self.way == Way::Direct { posix.direct().ok() } else { None };
        match direct {
            // Whole pages, also behind the end of the file.
            Some(file) => Rest { file, offset, from, len: self.target.range.len() - from },
            None => Rest { file: posix.buffered(), offset, from, len: self.wanted - from },
        }
    }

    /// Takes note of what a system call gave. None: there is more to read.
    pub(super) fn advance(&mut self, read: io::Result<usize>) -> Option<Result<usize>> {
        match read {
            Ok(bytes) if self.done + bytes >= self.wanted => Some(Ok(self.wanted)),
            Ok(bytes) => {
                // Past the page cache reads begin at pages: one that was cut short is read once more.
                let unit = if self.way == Way::Direct { PAGE_LEN } else { 1 };
                let done = (self.done + bytes) / unit * unit;
                let goes_on = done > self.done || self.is_cut_short(bytes);
                self.done = done;
                (!goes_on).then(|| Err(self.ends_early()))
            }
            Err(error) if is_passing(&error) && self.repeats < REPEATS_MAX => {
                self.repeats += 1;
                None
            }
            Err(error) => Some(Err(Error::from_os("read", self.name(), &error))),
        }
    }

    /// Whether a read that gave less than a page was one past the page cache, which may be of the device's making and not
    /// the end of the file: then it is tried again, and at last through the page cache, which knows the end to the byte.
    fn is_cut_short(&mut self, bytes: usize) -> bool {
        let cut_short = self.way == Way::Direct && bytes > 0;
        self.short += u32::from(cut_short);
        if self.short >= SHORT_MAX {
            self.way = Way::FellBack;
        }
        cut_short
    }

    fn ends_early(&self) -> Error {
        ends_early(self.name(), self.offset)
    }
}

/// Interrupted, out of resources for the moment, or given up because the thread that asked has ended.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::ECANCELED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;
    use crate::memory::{Cells, Region, RegionKind};
    use crate::posix::PosixDisk;

    /// Of two pages the device gives less than a whole one, twice.
    #[test]
    fn a_read_that_is_cut_short_past_the_page_cache_is_no_damage() {
        let directory = tempfile::TempDir::new().unwrap();
        let disk = PosixDisk::open(directory.path()).unwrap();
        disk.create("a").unwrap().append(&[7; 3 * PAGE_LEN]).unwrap();
        let file: Arc<dyn ReadFile> = Arc::from(disk.open("a").unwrap());
        let posix = file.posix().unwrap();
        if let Err(error) = posix.check_direct() {
            return println!("not run: {error}");
        }
        let cells = Cells::new(Region::new(&RegionKind::Dram, 8192).unwrap(), 8192).unwrap();
        let job = || {
            let mut job = Job::new(&file, 4096, Target::from(cells.write(0).unwrap()), 1);
            job.decide(true);
            job
        };
        let rest = |job: &Job| {
            let Rest { file, offset, from, len } = job.rest(posix);
            (std::ptr::eq(file, posix.buffered()), offset, from, len)
        };
        let mut short = job();
        assert!(short.advance(Ok(5000)).is_none());
        assert_eq!(rest(&short), (false, 8192, 4096, 4096), "from the page that was cut on");
        assert!(short.advance(Ok(4095)).is_none());
        assert_eq!(rest(&short), (false, 8192, 4096, 4096), "once more");
        assert!(short.advance(Ok(1)).is_none());
        assert_eq!(rest(&short), (true, 8192, 4096, 4096), "through the page cache");
        assert!(short.advance(Ok(96)).is_none());
        assert_eq!(rest(&short), (true, 8288, 4192, 4000));
        let Completion { result, fell_back, .. } = short.pread();
        assert_eq!((result.unwrap(), fell_back), (8192, true));
        // What has an end has it in both ways.
        for gives in [&[0][..], &[904, 904, 904, 0]] {
            let mut ends = job();
            let ended = gives.iter().find_map(|bytes| ends.advance(Ok(*bytes)));
            let error = ended.unwrap().unwrap_err();
            assert_eq!(error.to_string(), "a is damaged at byte 4096: the file ends early");
        }
    }
}
