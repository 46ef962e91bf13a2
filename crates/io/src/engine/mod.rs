//! How reads are done: many at once, each into memory that the engine owns until it has ended.
//!
//! *You have* files, offsets and cells. *You get* the cells back, filled, in any order. One thread has an engine to
//! itself; it must know nothing of what the bytes mean.
//!
//! 1. [`Engine::submit`] takes a [`Target`] with a number of the caller's, its tag. A read that cannot be one (past the
//!    end of the file) has ended at once, with its error.
//! 2. When as many reads are in flight as the engine is deep, `submit` first waits until one has ended, and keeps that
//!    completion for later. So it never fails and never gives the target back; who does not want to wait asks
//!    [`Engine::is_full`] first.
//! 3. [`Engine::next`] hands queued reads to the system and gives the next [`Completion`]: tag, target, and bytes or error.
//! 4. An engine that is dropped waits for what is in flight; only then are its cells free. Nothing is ever written
//!    into memory that somebody else may have.
//!
//! One file an engine: `mmap` copies from mapped pages, `pread` has threads, `uring` has the kernel's queue. Files that
//! are no more than the system's ([`ReadFile::posix`]) are read by these means; all others by [`ReadFile::read_at`], so
//! that an engine works on any [`Disk`] and injected faults reach it.

mod job;
mod kind;
mod mmap;
mod pread;
#[allow(unsafe_code, reason = "tells the kernel where to write; each block says why it is sound")]
mod uring;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use crate::disk::{Disk, ReadFile};
use crate::error::Result;
use crate::memory::{CellMut, Cells};
use job::Job;
pub use kind::{EngineKind, EngineOptions};

/// Reads in flight, at most `depth` at once.
pub struct Engine {
    method: Box<dyn Method>,
    depth: usize,
    in_flight: usize,
    /// Ended, and not yet asked for.
    ended: VecDeque<Completion>,
    description: String,
    fallback: Option<String>,
}

/// Where the bytes of a read go: a part of a cell. Its length is that of the read.
#[derive(Debug)]
pub struct Target {
    cell: CellMut,
    range: Range<usize>,
}

/// A read that has ended.
#[derive(Debug)]
pub struct Completion {
    /// The caller's number.
    pub tag: u64,
    /// The target. After an error its content is unspecified.
    pub target: Target,
    /// How many bytes from the beginning of the target on were read: all, or as many as the file has.
    pub result: Result<usize>,
    /// It went through the page cache, though past it was asked: the file could not be opened so, or not then, or the read
    /// was cut short.
    pub fell_back: bool,
}

/// A way to read. It is given no more than `depth` jobs at a time.
trait Method: Send {
    /// Begins to read, or reads.
    fn start(&mut self, job: Job) -> Option<Completion>;

    /// Hands what was begun to the system, if that was put off.
    fn flush(&mut self) {}

    /// One of the jobs in flight, of which there is at least one, that has ended. None only if it need not wait.
    fn finish(&mut self, wait: bool) -> Option<Completion>;
}

impl Engine {
    /// An engine for the files of `disk`. Those `cells` whose memory the kernel may know beforehand are registered with
    /// it, which saves work at each read; reads may go into any others as well.
    ///
    /// # Errors
    /// When the engine that was asked for cannot be had, or past the page cache as asked; `auto` takes another one and
    /// says why in [`Engine::fallback`].
    pub fn new(options: EngineOptions, disk: &dyn Disk, cells: &[Arc<Cells>]) -> Result<Engine> {
        kind::open(options, disk, cells)
    }

    /// One line on what reads, and how: for statistics.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// One line on why `auto` did not take `uring`, if it did not.
    pub fn fallback(&self) -> Option<&str> {
        self.fallback.as_deref()
    }

    /// How many reads can be in flight.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// How many targets this engine has: those in flight, and those that wait for [`Engine::next`].
    pub fn pending(&self) -> usize {
        self.in_flight + self.ended.len()
    }

    /// Whether the next [`Engine::submit`] would wait.
    pub fn is_full(&self) -> bool {
        self.in_flight == self.depth
    }

    /// Reads from file offset `offset` on into `target`. A read that begins before the end of the file and ends after
    /// it, in its last page of 4 KiB, gives what there is; the end is where it was when the file was opened.
    ///
    /// A read past the page cache goes through it all the same unless `offset` and both ends of the target are multiples
    /// of 4 KiB.
    pub fn submit(&mut self, file: &Arc<dyn ReadFile>, offset: u64, target: Target, tag: u64) {
        let job = Job::new(file, offset, target, tag);
        if let Some(result) = job.at_once() {
            return self.ended.push_back(job.end(result));
        }
        while self.is_full() {
            if let Some(ended) = self.method.finish(true) {
                self.in_flight -= 1;
                self.ended.push_back(ended);
            }
        }
        match self.method.start(job) {
            Some(ended) => self.ended.push_back(ended),
            None => self.in_flight += 1,
        }
    }

    /// Hands the reads that were queued to the system, without waiting.
    pub fn flush(&mut self) {
        self.method.flush();
    }

    /// A read that has ended; with `block`, waits for one. None when none has ended and `block` is false, or when
    /// nothing is [`Engine::pending`].
    pub fn next(&mut self, block: bool) -> Option<Completion> {
        // A single read is handed over when it is waited for, in one call to the system.
        if !block || self.in_flight != 1 || !self.ended.is_empty() {
            self.flush();
        }
        if let Some(ended) = self.ended.pop_front() {
            return Some(ended);
        }
        if self.in_flight == 0 {
            return None;
        }
        let ended = self.method.finish(block)?;
        self.in_flight -= 1;
        Some(ended)
    }
}

impl Target {
    /// Bytes `range` of a cell.
    ///
    /// # Panics
    /// When the cell has no such bytes.
    pub fn new(cell: CellMut, range: Range<usize>) -> Target {
        let bytes = cell.len();
        assert!(range.start <= range.end && range.end <= bytes, "{range:?} of a cell of {bytes} bytes");
        Target { cell, range }
    }

    /// The cell.
    pub fn into_cell(self) -> CellMut {
        self.cell
    }

    /// Which part of the cell it is.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.cell[self.range.clone()]
    }

    /// The bytes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.cell[self.range.clone()]
    }
}

/// A whole cell.
impl From<CellMut> for Target {
    fn from(cell: CellMut) -> Target {
        let range = 0..cell.len();
        Target { cell, range }
    }
}
