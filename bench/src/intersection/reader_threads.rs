//! A pool of threads with synchronous reads, each with a reader of its own. The pool outlives an
//! intersection, so that the time of an intersection does not include the start of threads.

use crate::intersection::{page_reader::ListPageReader, reads::ReadStats};
use std::sync::mpsc::{Sender, channel};
use std::{panic::AssertUnwindSafe, panic::catch_unwind, thread::Builder, thread::JoinHandle};
use tierdex::{Error, Result, io::Disk, io::ReadOptions, io::panic_message};

type ReaderJob = Box<dyn FnOnce(&mut ListPageReader) + Send>;

/// A pool of threads with synchronous reads. Dropping it joins the threads.
pub struct ReaderThreads {
    /// Sends jobs to each thread.
    jobs: Vec<Sender<ReaderJob>>,
    threads: Vec<JoinHandle<()>>,
}

impl ReaderThreads {
    /// Starts `threads` threads, at least one, each with a read queue. A thread reads one page at a time; for
    /// `bl` it has as many reads in flight as the depth of `reads`.
    ///
    /// # Errors
    /// When a read queue or a thread cannot be created.
    pub fn new(disk: &dyn Disk, reads: ReadOptions, threads: usize) -> Result<ReaderThreads> {
        let mut readers = ReaderThreads { jobs: Vec::new(), threads: Vec::new() };
        for number in 0..threads {
            let mut reader = ListPageReader::new(disk, reads)?;
            let (sender, jobs) = channel::<ReaderJob>();
            let work = move || jobs.into_iter().for_each(|job| job(&mut reader));
            let thread = Builder::new().name(format!("intersect-{number}")).spawn(work);
            let thread = thread.map_err(|why| Error::Failed(format!("cannot start a thread: {why}")))?;
            readers.jobs.push(sender);
            readers.threads.push(thread);
        }
        Ok(readers)
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Runs tasks, assigned to the threads round-robin. Returns the result and the reads of each task, in
    /// their order.
    ///
    /// # Errors
    /// The error of the first failed task, after all tasks have ended.
    pub(super) fn run<T: Send + 'static>(
        &self,
        tasks: impl IntoIterator<Item = impl FnOnce(&mut ListPageReader) -> Result<T> + Send + 'static>,
    ) -> Result<Vec<(T, ReadStats)>> {
        let (sender, ended) = channel();
        let mut count = 0;
        for (number, task) in tasks.into_iter().enumerate() {
            let sender = sender.clone();
            let job = move |reader: &mut ListPageReader| {
                reader.reads = ReadStats::default();
                let found = catch_unwind(AssertUnwindSafe(|| task(reader)))
                    .unwrap_or_else(|panic| Err(Error::Failed(panic_message(&*panic))));
                reader.drain_reads();
                // The receiver is gone only if the caller has panicked.
                let _ = sender.send((number, found, reader.reads));
            };
            let sent = self.jobs[number % self.jobs.len()].send(Box::new(job));
            debug_assert!(sent.is_ok(), "a thread runs as long as it has a sender");
            count += 1;
        }
        drop(sender);
        let mut all: Vec<_> = ended.into_iter().collect();
        all.sort_by_key(|(number, ..)| *number);
        if all.len() < count {
            return Err(Error::Failed("a thread of an intersection has ended".to_owned()));
        }
        all.into_iter().map(|(_, found, reads)| Ok((found?, reads))).collect()
    }
}

impl Drop for ReaderThreads {
    fn drop(&mut self) {
        // The threads end with their senders.
        self.jobs.clear();
        for thread in self.threads.drain(..) {
            // Never fails, because the thread catches panics of its jobs.
            let _ = thread.join();
        }
    }
}
