//! Asynchronous reads into cells, many in flight at once. The queue owns the memory of a read until it has
//! completed.
//!
//! Input: files, offsets and targets (cells). Output: the filled targets, in any order. A queue is used by
//! one thread at a time.
//!
//! 1. [`ReadQueue::submit`] takes a [`ReadTarget`] and a tag chosen by the caller. A read beyond the end of
//!    the file completes immediately with an error.
//! 2. When `depth` reads are in flight, `submit` first waits until one completes and queues that completion.
//!    So it never fails and never returns the target; a caller that must not wait checks
//!    [`ReadQueue::is_full`] first.
//! 3. [`ReadQueue::next`] submits queued reads to the system and returns the next [`Completion`]: tag,
//!    target, and number of bytes or error.
//! 4. Dropping a queue waits for the reads in flight; only then are their cells released. No memory is
//!    written after it has a new owner.
//!
//! There are two backends: `pread` is a thread pool, `uring` uses io_uring. They make their own system calls
//! on files that have a [`ReadFile::descriptor`]. All other files are read by [`ReadFile::read_at`], so that
//! a queue works on every [`Disk`], also on one with injected faults.

mod backend;
mod in_flight;
mod open;
mod options;
mod pread;
#[allow(unsafe_code, reason = "one system call, preadv")]
mod preadv;
mod target;
#[allow(unsafe_code, reason = "passes buffer addresses to the kernel; each block says why it is sound")]
mod uring;

use crate::disk::{Disk, ReadFile};
use crate::{error::Result, memory::Cells};
use backend::Backend;
pub use in_flight::Completion;
use in_flight::InFlightRead;
use open::OpenBackend;
pub use options::{ReadKind, ReadOptions};
use std::{collections::VecDeque, sync::Arc};
pub use target::ReadTarget;

/// A queue of reads, at most `depth` of them in flight.
pub struct ReadQueue {
    backend: Box<dyn Backend>,
    depth: usize,
    in_flight: usize,
    /// Completions that [`ReadQueue::next`] has not returned yet.
    completed: VecDeque<Completion>,
    description: String,
    fallback: Option<String>,
}

impl ReadQueue {
    /// Maximum number of threads that a queue with these options starts for files of `disk`. `uring` starts
    /// none.
    pub fn threads(options: ReadOptions, disk: &dyn Disk) -> usize {
        match options.kind {
            ReadKind::Uring => 0,
            ReadKind::Auto if open::is_uring_available(options, disk) => 0,
            ReadKind::Pread | ReadKind::Auto => options.depth.min(ReadOptions::THREADS_MAX),
        }
    }

    /// A queue for the files of `disk`. The memory of `cells` is registered with the kernel if the backend
    /// supports it, which saves work at each read; reads may go into other cells as well.
    ///
    /// # Errors
    /// When the requested method, or direct I/O, is not available. `auto` takes another method instead; see
    /// [`ReadQueue::fallback`].
    pub fn new(options: ReadOptions, disk: &dyn Disk, cells: &[Arc<Cells>]) -> Result<ReadQueue> {
        let OpenBackend { backend, description, fallback } = open::open_backend(options, disk, cells)?;
        let completed = VecDeque::new();
        Ok(ReadQueue { backend, depth: options.depth, in_flight: 0, completed, description, fallback })
    }

    /// One line on the backend and its settings, for statistics.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// One line on why `auto` did not take `uring`; `None` if it did.
    pub fn fallback(&self) -> Option<&str> {
        self.fallback.as_deref()
    }

    /// Maximum reads in flight.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Targets that the queue holds: reads in flight, and completions that wait for [`ReadQueue::next`].
    pub fn pending(&self) -> usize {
        self.in_flight + self.completed.len()
    }

    /// Whether the next [`ReadQueue::submit`] would wait.
    pub fn is_full(&self) -> bool {
        self.in_flight == self.depth
    }

    /// Reads from file offset `offset` on into `target`. A read that begins before the end of the file and
    /// ends after it, within its last page of 4 KiB, returns the bytes up to the end. The end is the length
    /// at the time of opening.
    ///
    /// Direct I/O needs `offset` and both ends of the target to be multiples of 4 KiB; other reads go
    /// through the page cache.
    pub fn submit(&mut self, file: &Arc<dyn ReadFile>, offset: u64, target: ReadTarget, tag: u64) {
        let read = InFlightRead::new(file, offset, target, tag);
        if let Some(result) = read.immediate_result() {
            return self.completed.push_back(read.complete(result));
        }
        while self.is_full() {
            if let Some(completion) = self.backend.next_completion(true) {
                self.in_flight -= 1;
                self.completed.push_back(completion);
            }
        }
        match self.backend.start(read) {
            Some(completion) => self.completed.push_back(completion),
            None => self.in_flight += 1,
        }
    }

    /// Submits queued reads to the system without waiting.
    pub fn flush(&mut self) {
        self.backend.flush();
    }

    /// A completed read; with `block`, waits for one. `None` when no read has completed and `block` is
    /// false, or when no read is [pending](ReadQueue::pending).
    pub fn next(&mut self, block: bool) -> Option<Completion> {
        // Not for a single read, which is then submitted and awaited by one system call.
        if !block || self.in_flight != 1 || !self.completed.is_empty() {
            self.flush();
        }
        if let Some(completion) = self.completed.pop_front() {
            return Some(completion);
        }
        if self.in_flight == 0 {
            return None;
        }
        let completion = self.backend.next_completion(block)?;
        self.in_flight -= 1;
        Some(completion)
    }
}
