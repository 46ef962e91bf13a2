//! A read, from the question to the answer: what all ways of reading have in common.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::{Completion, Target};
use crate::disk::{ReadFile, ends_early};
use crate::error::{Error, ErrorKind, Result, panic_message};
use crate::memory::PAGE_LEN;
use crate::posix::PosixFile;

/// How often the system may say "again" to one read before that is an error.
const REPEATS_MAX: u32 = 1_000;

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
        Job { file: Arc::clone(file), offset, target, tag, wanted: len.min(left), done: 0, repeats: 0 }
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
        let bytes = &mut self.target.bytes_mut()[..wanted];
        // Whatever it leaves behind in them: after an error the bytes are unspecified.
        let read = catch_unwind(AssertUnwindSafe(|| file.read_at(offset, bytes)));
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
            let from = self.offset as usize;
            self.target.bytes_mut()[..self.wanted].copy_from_slice(&bytes[from..from + self.wanted]);
            self.wanted
        });
        self.end(copied)
    }

    /// Reads by system calls, one after the other until all is there.
    pub(super) fn pread(mut self, direct: bool) -> Completion {
        let file = Arc::clone(&self.file);
        let Some(posix) = file.posix() else { return self.read_at() };
        loop {
            let Rest { file, offset, from, len } = self.rest(posix, direct);
            let read = file.read_at(&mut self.target.bytes_mut()[from..from + len], offset);
            if let Some(result) = self.advance(read, direct) {
                return self.end(result);
            }
        }
    }

    /// What is still to be read, through the page cache or past it.
    pub(super) fn rest<'a>(&self, posix: &'a PosixFile, direct: bool) -> Rest<'a> {
        let from = self.done;
        let offset = self.offset + from as u64;
        match self.past_the_cache(posix, direct) {
            // Whole pages, also behind the end of the file.
            Some(file) => Rest { file, offset, from, len: self.target.range.len() - from },
            None => Rest { file: posix.buffered(), offset, from, len: self.wanted - from },
        }
    }

    /// The file to read past the page cache, if that is wanted and possible.
    fn past_the_cache<'a>(&self, posix: &'a PosixFile, direct: bool) -> Option<&'a File> {
        let memory = self.target.range.start | self.target.range.end;
        let aligned = memory.is_multiple_of(PAGE_LEN) && self.offset.is_multiple_of(PAGE_LEN as u64);
        if direct && aligned { posix.direct().ok() } else { None }
    }

    /// Takes note of what a system call gave. None: there is more to read.
    pub(super) fn advance(&mut self, read: io::Result<usize>, direct: bool) -> Option<Result<usize>> {
        match read {
            Ok(bytes) if self.done + bytes >= self.wanted => Some(Ok(self.wanted)),
            Ok(bytes) => {
                let past_the_cache =
                    self.posix().is_some_and(|posix| self.past_the_cache(posix, direct).is_some());
                // Past the page cache reads begin at pages: one that was cut short is read once more.
                let unit = if past_the_cache { PAGE_LEN } else { 1 };
                let done = (self.done + bytes) / unit * unit;
                let goes_on = done > self.done;
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

    fn ends_early(&self) -> Error {
        ends_early(self.name(), self.offset)
    }
}

/// Interrupted, out of resources for the moment, or given up because the thread that asked has ended.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::ECANCELED))
}
