//! An engine that lives as long as the process: one cache, threads that answer, and a memory budget, shared
//! by all callers.
//!
//! *Input*: requests, each with a query and a commit ([`Snapshot`]). *Output*: tickets, which have the
//! answers in the order in which they are ready.
//!
//! 1. [`Engine::submit`] puts a request into one of two queues: interactive requests are taken first.
//! 2. A thread takes requests, plans them and evaluates several at the same time (`worker`). An evaluation
//!    that needs pages which are not in the cache is suspended while they are read (`paged`); one that has
//!    worked for a while lets others go on.
//! 3. The answer goes to the ticket (`ticket`). A request that is cancelled, or whose deadline passes, ends
//!    at the next page that it waits for, or after some blocks or windows of documents.
//! 4. [`Engine::refresh`] opens the newest commit. Segments that both commits have are shared, with their
//!    entries in the cache; what the new ones keep in memory is counted ([`Snapshot`]).
//!
//! [`Executor`] answers files of queries in order, in this way or in the modes of the thesis (`executor`,
//! `supply`, `whole_lists`, `line`).
//!
//! Why no thread waits for ever: an evaluation waits for reads, which end, and for memory of evaluations
//! that do not wait for memory. A thread that sleeps because it has nothing to evaluate has no read under
//! way; callbacks must not block.

mod active;
mod budget;
mod current;
mod delivery;
mod executor;
mod ids;
mod options;
mod paged;
mod queue;
mod request;
mod reservations;
mod settings;
mod snapshot;
mod supply;
mod sync;
mod ticket;
mod whole_lists;
mod worker;

pub use budget::{MemoryReport, MemoryUse};
pub use executor::Executor;
pub use options::{ExecutorOptions, MetaTier, Mode, PAGES_AHEAD, THREADS_CHOSEN};
pub use request::{Hits, Priority, SearchRequest, TotalHits};
pub use settings::EngineOptions;
pub use snapshot::Snapshot;
pub use ticket::{CancelHandle, Ticket};

use crate::error::{Error, Result};
use crate::index::Index;
use budget::{Shares, check_hits};
use current::Current;
use executor::page_readers;
use queue::{Job, Queue};
use snapshot::ResidentBudget;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;
use tierdex_cache::{self as cache, Frames};
use worker::Worker;

/// Searches an index from any number of threads, within a memory budget.
///
/// An engine has a cache of index pages and threads that evaluate requests. Clones are handles of the same
/// engine; when the last is dropped, waiting requests fail and the threads end.
///
/// ```
/// use tierdex::{Engine, EngineOptions, Query, SearchRequest};
/// # use tierdex::{IndexWriter, Merge, Schema, WriterOptions};
/// # let dir = tempfile::tempdir().unwrap();
/// # let dir = dir.path().join("index");
/// # let mut writer = IndexWriter::create(&dir, Schema::default(), WriterOptions::default())?;
/// # writer.add("1", "Disks", "A solid state disk.")?;
/// # writer.commit(Merge::Keep)?;
///
/// let engine = Engine::open(&dir, &EngineOptions::new())?;
/// let query = Query::parse("+solid +state", engine.snapshot().schema())?;
/// let hits = engine.search(SearchRequest::new(query).k(10))?;
/// assert_eq!(hits.ids()?, ["1"]);
/// # Ok::<(), tierdex::Error>(())
/// ```
#[derive(Clone)]
pub struct Engine(Arc<Owner>);

/// Ends the threads when the last handle is gone.
struct Owner {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What callers and threads share.
struct Shared {
    frames: Arc<Frames>,
    queue: Arc<Queue>,
    current: Current<Snapshot>,
    resident: Arc<ResidentBudget>,
    threads: usize,
    /// Interactive evaluations that run.
    interactive: AtomicUsize,
    /// Evaluations of a thread at the same time, at most.
    in_flight: usize,
    /// Bytes for the plans and lists of all evaluations of a thread.
    lists: u64,
    /// Hits that a request may ask for, if memory is bounded.
    hits_max: Option<usize>,
    report: MemoryReport,
    /// Name of the read engine, and why it was chosen instead of a faster one, if it was.
    read_engine: (String, Option<String>),
}

impl Engine {
    /// Opens the newest commit of the index in a directory.
    ///
    /// # Errors
    /// As [`Index::open`] and [`Engine::new`].
    pub fn open(dir: impl AsRef<Path>, options: &EngineOptions) -> Result<Engine> {
        Engine::new(&Index::open(dir)?, options)
    }

    /// Starts an engine for an index: allocates the cache, loads dictionaries and skip data into the memory
    /// that is left for them, and starts the threads.
    ///
    /// # Errors
    /// [`Error::Usage`] when the memory budget is too small: the message says how many bytes are needed;
    /// [`Error::Storage`] when memory or threads cannot be had or files cannot be read.
    pub fn new(index: &Index, options: &EngineOptions) -> Result<Engine> {
        Engine::with_options(index, &options.resolve(index))
    }

    /// The same with options of an [`Executor`], in [`Mode::Direct`]. A cache size that is a part of the
    /// index is a part of this commit.
    #[doc(hidden)]
    pub fn with_options(index: &Index, options: &ExecutorOptions) -> Result<Engine> {
        let options = &ExecutorOptions { mode: Mode::Direct, ..options.clone() }.with_threads();
        let report = Executor::memory_report(index, options);
        report.check()?;
        let (frames, readers, read_engine) = page_readers(index, options)?;
        let resident = Arc::new(ResidentBudget::new(options));
        let snapshot = Snapshot::first(index, &frames, &resident)?;
        let shares = Shares::of(index, options);
        // What is left of the budget has no other use.
        let lists = options.dram.map(|dram| shares.lists(Some(dram)) + shares.each(dram - report.needed()));
        let shared = Arc::new(Shared {
            frames,
            queue: Arc::new(Queue::new(budget::queue_bytes(options.dram) / 2)),
            current: Current::new(snapshot),
            resident,
            threads: options.threads,
            interactive: AtomicUsize::new(0),
            in_flight: options.in_flight(),
            lists: lists.unwrap_or(u64::MAX),
            hits_max: options.dram.map(|_| options.hits),
            report,
            read_engine,
        });
        let owner = Owner { shared, threads: Mutex::default() };
        for (number, reader) in readers.into_iter().enumerate() {
            let shared = owner.shared.clone();
            let thread = std::thread::Builder::new().name(format!("answer {number}"));
            let run = move || {
                // A thread that panics would leave requests without answers.
                let _close = CloseOnDrop(&shared.queue);
                Worker::new(&shared, reader, number == 0).run();
            };
            let thread = thread.spawn(run);
            let thread = thread.map_err(|error| tierdex_io::Error::from_os("start", "a thread", &error))?;
            owner.threads().push(thread);
        }
        Ok(Engine(Arc::new(owner)))
    }

    /// The newest commit that the engine has opened: requests without a snapshot of their own search it.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.shared().current.get()
    }

    /// Opens the newest commit for later requests; those in progress keep theirs. Returns whether there is a
    /// new commit. Only new segments are opened; cached pages of the others stay cached.
    ///
    /// # Errors
    /// [`Error::Limit`] when dictionaries, skip data and norms of new segments exceed
    /// [`EngineOptions::growth`]; else as [`Index::open`]. Requests then search the old commit.
    pub fn refresh(&self) -> Result<bool> {
        let shared = self.shared();
        shared.current.replace(|old| old.newest(&shared.frames, &shared.resident))
    }

    /// Answers a request; the calling thread waits.
    ///
    /// # Errors
    /// As [`Engine::submit`] and [`Ticket::wait`].
    pub fn search(&self, request: SearchRequest) -> Result<Hits> {
        self.submit(request)?.wait()
    }

    /// Adds a request to the queue and returns at once.
    ///
    /// # Errors
    /// [`Error::Limit`] when the queue is full; [`Error::Usage`] when more hits are requested than
    /// [`EngineOptions::hits_max`] allows, or the snapshot belongs to another engine.
    pub fn submit(&self, request: SearchRequest) -> Result<Ticket> {
        let (job, ticket) = self.job(request)?;
        self.shared().queue.push(job)?;
        Ok(ticket)
    }

    fn job(&self, request: SearchRequest) -> Result<(Job, Ticket)> {
        let snapshot = request.snapshot.clone().unwrap_or_else(|| self.snapshot());
        if !snapshot.is_of(&self.shared().frames) {
            return Err(Error::Usage("the request has a snapshot of another engine".to_string()));
        }
        check_hits(self.shared().hits_max, &request.options, snapshot.index())?;
        let (ticket, reply) = Ticket::new();
        Ok((Job { request, snapshot, reply, arrived: Instant::now() }, ticket))
    }

    /// Answers a sequence of requests, all with [`Priority::Batch`]. `source` returns the next request, or
    /// `None` after the last; `answer` receives the number of each request, from 0, and its result, in the
    /// order of the requests. The error of a request goes to `answer`; the others are answered. Several
    /// requests are in progress at the same time; `source` must not wait for answers.
    ///
    /// # Errors
    /// The first error of `answer`, or that of `source` after all requests before it were answered.
    pub fn run_ordered<E>(
        &self,
        mut source: impl FnMut() -> std::result::Result<Option<SearchRequest>, E>,
        mut answer: impl FnMut(usize, Result<Hits>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let ahead = 2 * self.shared().in_flight * self.shared().threads;
        let (mut tickets, mut number, mut ended) = (VecDeque::with_capacity(ahead), 0, Ok(true));
        loop {
            while matches!(ended, Ok(true)) && tickets.len() < ahead {
                match source() {
                    Ok(Some(request)) => {
                        let job = self.job(request.priority(Priority::Batch));
                        tickets.push_back(job.map(|(job, ticket)| {
                            self.shared().queue.push_waiting(job);
                            ticket
                        }));
                    }
                    Ok(None) => ended = Ok(false),
                    Err(error) => ended = Err(error),
                }
            }
            let Some(ticket) = tickets.pop_front() else { return ended.map(drop) };
            // Dropped tickets cancel their requests.
            answer(number, ticket.and_then(Ticket::wait))?;
            number += 1;
        }
    }

    /// Counters of the cache: hits, reads, evictions.
    #[doc(hidden)]
    pub fn stats(&self) -> cache::CacheStats {
        self.shared().frames.stats()
    }

    /// The memory that the engine takes, by part.
    pub fn memory(&self) -> &MemoryReport {
        &self.shared().report
    }

    /// Name of the system interface by which files are read.
    #[doc(hidden)]
    pub fn read_engine(&self) -> &str {
        &self.shared().read_engine.0
    }

    /// Why a faster interface is not used, if that is so.
    #[doc(hidden)]
    pub fn fallback(&self) -> Option<&str> {
        self.shared().read_engine.1.as_deref()
    }

    fn shared(&self) -> &Shared {
        &self.0.shared
    }
}

impl Owner {
    fn threads(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.queue.close();
        let own = std::thread::current().id();
        let threads = std::mem::take(&mut *self.threads());
        // A callback may have held the last handle. Others may wait for pages that its thread reads.
        if threads.iter().all(|thread| thread.thread().id() != own) {
            threads.into_iter().for_each(|thread| drop(thread.join()));
        }
    }
}

/// Closes the queue when it is dropped, also by a panic.
struct CloseOnDrop<'q>(&'q Queue);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}
