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

/// Where the bytes of a read go: a part of a cell, or several cells or parts of them one after the other. Its length is that
/// of the read.
#[derive(Debug)]
pub struct Target {
    first: CellMut,
    more: Vec<CellMut>,
    /// Of the bytes of all of them.
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
        Target { first: cell, more: Vec::new(), range }
    }

    /// All of some cells of one memory; none when there is none.
    ///
    /// # Panics
    /// When they are not all of one [`Cells`].
    pub fn across(cells: impl IntoIterator<Item = CellMut>) -> Option<Target> {
        let mut cells = cells.into_iter();
        let (first, more) = (cells.next()?, cells.collect::<Vec<_>>());
        assert!(
            more.iter().all(|cell| Arc::ptr_eq(cell.cells(), first.cells())),
            "cells of several memories"
        );
        let len = first.len() + more.iter().map(|cell| cell.len()).sum::<usize>();
        Some(Target { first, more, range: 0..len })
    }

    /// The cell; of several the first.
    pub fn into_cell(self) -> CellMut {
        self.first
    }

    /// Which part of the cell it is.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Its bytes, a slice for each cell.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let cells = std::iter::once(&self.first).chain(&self.more);
        clip(self.range(), cells, |cell| cell.len()).map(|(cell, range)| &cell[range])
    }

    /// Bytes `range` of it, a slice for each cell.
    fn pieces_mut(&mut self, range: Range<usize>) -> impl Iterator<Item = &mut [u8]> {
        self.cells_mut(range).map(|(cell, range)| &mut cell[range])
    }

    /// The cells in which bytes `range` of it are, and which bytes of each.
    fn cells_mut(&mut self, range: Range<usize>) -> impl Iterator<Item = (&mut CellMut, Range<usize>)> {
        let range = self.range.start + range.start..self.range.start + range.end;
        let cells = std::iter::once(&mut self.first).chain(&mut self.more);
        clip(range, cells, |cell| cell.len())
    }

    /// Where bytes `range` of it are, a place for each cell, and how far that is from the beginning of the region.
    fn places_mut(&mut self, range: Range<usize>) -> impl Iterator<Item = (*mut [u8], usize)> {
        self.cells_mut(range).map(|(cell, range)| {
            let start = cell.start().wrapping_add(range.start);
            (std::ptr::slice_from_raw_parts_mut(start, range.len()), cell.offset() + range.start)
        })
    }

    /// Whose cells they are.
    fn cells(&self) -> &Arc<Cells> {
        self.first.cells()
    }

    /// Its bytes, if it is in one cell; of several those in the first.
    pub fn bytes(&self) -> &[u8] {
        self.pieces().next().unwrap_or_default()
    }

    /// The same, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.pieces_mut(0..self.range.len()).next().unwrap_or_default()
    }
}

/// What of `range`, counted through all of `cells`, is in each of them.
fn clip<C>(
    range: Range<usize>,
    cells: impl Iterator<Item = C>,
    len: impl Fn(&C) -> usize,
) -> impl Iterator<Item = (C, Range<usize>)> {
    let mut before = 0;
    cells.filter_map(move |cell| {
        let (start, end) = (before, before + len(&cell));
        before = end;
        let within = range.start.max(start)..range.end.min(end);
        (!within.is_empty()).then(|| (cell, within.start - start..within.end - start))
    })
}

/// A whole cell.
impl From<CellMut> for Target {
    fn from(cell: CellMut) -> Target {
        let range = 0..cell.len();
        Target::new(cell, range)
    }
}
