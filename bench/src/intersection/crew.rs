//! Threads that wait for work, each with a reader of its own: so an intersection pays for its reads and not for threads
//! that start.

use super::fetch::Reader;
use super::reads::{Found, Reads};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};
use tierdex::error::{Error, Result};
use tierdex::io::{Disk, EngineOptions, panic_message};

type Job = Box<dyn FnOnce(&mut Reader) + Send>;

/// Threads with synchronous reads. They end when it is dropped.
pub struct Crew {
    workers: Vec<Worker>,
}

struct Worker {
    /// None only while it is dropped.
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Crew {
    /// The most threads.
    pub const THREADS_MAX: usize = 256;

    /// `threads` threads, from 1 to [`Crew::THREADS_MAX`], each with an engine. It reads a page at a time, and `bl` as many
    /// pieces of a list as `engine` is deep.
    ///
    /// # Errors
    /// When an engine or a thread cannot be had.
    pub fn new(disk: &dyn Disk, engine: EngineOptions, threads: usize) -> Result<Crew> {
        if !(1..=Crew::THREADS_MAX).contains(&threads) {
            return Err(Error::Usage(format!("threads are 1 to {}, not {threads}", Crew::THREADS_MAX)));
        }
        let mut crew = Crew { workers: Vec::new() };
        for number in 0..threads {
            let mut reader = Reader::new(disk, engine)?;
            let (sender, jobs) = channel::<Job>();
            let work = move || jobs.into_iter().for_each(|job| job(&mut reader));
            let thread = Builder::new().name(format!("intersect-{number}")).spawn(work);
            let thread = thread.map_err(|error| Error::Failed(format!("cannot start a thread: {error}")))?;
            crew.workers.push(Worker { jobs: Some(sender), thread: Some(thread) });
        }
        Ok(crew)
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.workers.len()
    }

    /// Runs tasks, the n-th on the n-th thread or, if there are not so many, after others on one. Gives what each found
    /// and what it read, in their order.
    ///
    /// # Errors
    /// The first of the tasks' errors; by then all have ended.
    pub(super) fn run<T: Send + 'static>(
        &self,
        tasks: impl IntoIterator<Item = impl FnOnce(&mut Reader) -> Result<T> + Send + 'static>,
    ) -> Result<Vec<(T, Reads)>> {
        let (sender, ended) = channel();
        let mut count = 0;
        for (number, task) in tasks.into_iter().enumerate() {
            let sender = sender.clone();
            let job = move |reader: &mut Reader| {
                reader.reads = Reads::default();
                let found = catch_unwind(AssertUnwindSafe(|| task(reader)))
                    .unwrap_or_else(|panic| Err(Error::Failed(panic_message(&*panic))));
                reader.settle();
                // Nobody waits any more only if the caller has panicked.
                let _ = sender.send((number, found, reader.reads));
            };
            let jobs = self.workers[number % self.workers.len()].jobs.as_ref();
            let sent = jobs.is_some_and(|jobs| jobs.send(Box::new(job)).is_ok());
            debug_assert!(sent, "a worker waits for as long as it has a sender");
            count += 1;
        }
        drop(sender);
        let mut all: Vec<_> = ended.into_iter().collect();
        all.sort_by_key(|(number, ..)| *number);
        if all.len() < count {
            return Err(Error::Failed("a thread of an intersection has gone".to_owned()));
        }
        all.into_iter().map(|(_, found, reads)| Ok((found?, reads))).collect()
    }

    /// As [`Crew::run`], for tasks that find ids.
    pub(super) fn find(
        &self,
        tasks: impl IntoIterator<Item = impl FnOnce(&mut Reader) -> Result<Vec<u32>> + Send + 'static>,
    ) -> Result<Vec<Found>> {
        let found = self.run(tasks)?;
        Ok(found.into_iter().map(|(ids, reads)| Found { ids, reads }).collect())
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.workers.iter_mut().for_each(|worker| worker.jobs = None);
        for worker in &mut self.workers {
            // It catches what its jobs throw.
            let _ = worker.thread.take().map(JoinHandle::join);
        }
    }
}
