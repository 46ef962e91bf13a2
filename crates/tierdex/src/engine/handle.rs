//! The handle of an engine: starts its search threads, and submits requests to them.

use super::part_sizes::{
    HIT_UNITS_BYTES, check_hits, check_query_memory, preview_bytes, result_bytes, result_with_ids_bytes,
};
use super::pool::{MemoryPool, PoolUse, Reservation};
use super::request::{Hits, SearchRequest};
use super::snapshot::{ResidentMemory, Snapshot, load_metadata};
use super::ticket::{CLOSED, Ticket};
use super::{
    attached_index::AttachedIndex, hot_pages::HotPages, hot_pages::HotPagesThread,
    memory_report::MemoryReport, metrics::EngineMetrics, options::EngineOptions, priority::Priority,
    queue::RequestQueue, queued_request::QueuedRequest, readers::PageReaders, readers::page_readers,
    settings::EngineSettings, shared::EngineShared, worker::SearchThread,
};
use crate::{Error, Result, index::Index, rank::Statistics};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{collections::VecDeque, path::Path, thread::JoinHandle};
use tierdex_cache::{CacheStats, PageCache, ReadCosts};
use tierdex_io::{PAGE, share_heap};

/// Requests that a batch has in progress for each concurrent evaluation: results are taken in order, so
/// threads must have others to evaluate while the oldest is slow. With 16 instead of 4, nine sets of queries
/// ran at 1.02 to 1.03 times the speed in 50 MB, and the slowest requests of some batches took twice as long.
const AHEAD: usize = 8;

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
/// # writer.add("1", [("title", "Disks"), ("text", "A solid state disk.")])?;
/// # writer.commit(Merge::Keep)?;
///
/// let engine = Engine::open(&dir, &EngineOptions::new())?;
/// let query = Query::parse("+solid +state", engine.snapshot().schema())?;
/// let hits = engine.search(SearchRequest::new(query).k(10))?;
/// assert_eq!(hits.ids()?, ["1"]);
/// # Ok::<(), tierdex::Error>(())
/// ```
#[derive(Clone)]
pub struct Engine(Arc<EngineOwner>);

/// Joins the threads when the last handle is dropped.
struct EngineOwner {
    shared: Arc<EngineShared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
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
    /// [`Error::Storage`] when memory or threads cannot be had, files cannot be read, or the file of
    /// [`EngineOptions::hot_pages`] cannot be written.
    pub fn new(index: &Index, options: &EngineOptions) -> Result<Engine> {
        Ok(Engine::start(index, &[], true, options)?.0)
    }

    /// Starts an engine for an index, and attaches others, with all of their metadata in DRAM if they
    /// `are_whole`.
    pub(super) fn start(
        index: &Index,
        others: &[&Index],
        are_whole: bool,
        options: &EngineOptions,
    ) -> Result<(Engine, Vec<AttachedIndex>)> {
        let settings = options.resolve(index);
        let report = settings.memory_report(index);
        report.check()?;
        if settings.dram.is_some() {
            share_heap();
        }
        let hot_pages = settings.hot_pages.as_deref().map(HotPages::new).transpose()?;
        let PageReaders { cache, search, caller, hot, method } = page_readers(index, &settings)?;
        let resized = cache.clone();
        let resize = move |bytes| resized.resize((bytes / PAGE) as usize) as u64 * PAGE;
        let pool = MemoryPool::new(settings.pool_sizes(index), Box::new(resize));
        let resident = ResidentMemory::new(&settings, &cache, &pool);
        if !settings.on_demand {
            load_metadata(index.segments(), &settings.metadata_location())?;
        }
        let snapshot = Snapshot::first(index, &settings, &resident)?;
        let shared = Arc::new(EngineShared {
            cache,
            pool,
            queue: Arc::new(RequestQueue::new(Box::new(caller))),
            current: AttachedIndex::new(snapshot),
            attached: Mutex::default(),
            rejected: AtomicU64::new(0),
            hits_max: settings.dram.map(|_| settings.hits_max),
            settings,
            report,
            read_method: method,
            hot_pages,
        });
        let attached = others.iter().map(|index| shared.attach(index, are_whole)).collect::<Result<_>>()?;
        let owner = EngineOwner { shared, threads: Mutex::default() };
        for (number, reader) in search.into_iter().enumerate() {
            owner.spawn(format!("search {number}"), move |shared| {
                // If this thread panics, queued requests fail instead of waiting for ever.
                let _close = CloseOnDrop(shared);
                // One thread runs one more evaluation, for interactive requests only.
                let running_max = SearchThread::in_flight(shared) + usize::from(number == 0);
                SearchThread::new(shared, Box::new(reader), running_max).run();
            })?;
        }
        if let Some(reader) = hot {
            owner.spawn("hot pages".to_string(), move |shared| {
                if let Some(hot) = &shared.hot_pages {
                    HotPagesThread::new(shared, hot).run(reader);
                }
            })?;
        }
        Ok((Engine(Arc::new(owner)), attached))
    }

    /// The memory of an engine with these options, by part, without starting it.
    #[doc(hidden)]
    pub fn memory_report(index: &Index, options: &EngineOptions) -> MemoryReport {
        options.resolve(index).memory_report(index)
    }

    /// The newest commit that the engine has opened: requests without a snapshot of their own search it.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.shared().current.snapshot()
    }

    /// Opens the newest commit for later requests; requests in progress keep theirs. Returns whether there
    /// is a new commit. Only new segments are opened; cached pages of the others stay cached.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when dictionaries, skip data and norms of new segments exceed
    /// [`EngineOptions::growth`]; else as [`Index::open`]. Requests then search the old commit.
    pub fn refresh(&self) -> Result<bool> {
        self.shared().current.refresh()
    }

    /// Answers a request; the calling thread waits. While a search thread sleeps, the caller evaluates an
    /// interactive request itself: no thread has to be woken.
    ///
    /// # Errors
    /// As [`Engine::submit`] and [`Ticket::wait`].
    pub fn search(&self, request: SearchRequest) -> Result<Hits> {
        self.submit_here(request, || false)?.wait()
    }

    /// The statistics of this index that the scores of a request depend on: for an index that is one of
    /// several shards ([`Statistics`]). Dictionaries are read, and for [`Scorer::Dot`](crate::Scorer::Dot)
    /// skip data. Of the request the query, the scorer, the snapshot, deadline and priority are used, and the
    /// statistics: the question of [`Statistics::merge`] if there is one.
    ///
    /// # Errors
    /// As [`Engine::search`]; [`Error::Expired`] also when the deadline passes while dictionaries are read.
    pub fn statistics(&self, request: SearchRequest) -> Result<Statistics> {
        let hits = self.search(request.k(0).ids(false).collect_statistics())?;
        hits.statistics.map(|found| *found).ok_or(Error::Expired { queued: hits.queued })
    }

    /// As [`Engine::submit`]; but while a search thread sleeps, the calling thread evaluates an interactive
    /// request itself, and the ticket then usually has the result. `is_cancelled` is called after each time
    /// slice of 0.2 ms and after each wait for a read; if it returns true, the request is cancelled. A panic
    /// of `is_cancelled` also cancels the request, and goes on when the request has ended.
    ///
    /// # Errors
    /// As [`Engine::submit`].
    pub fn submit_here(
        &self,
        request: SearchRequest,
        mut is_cancelled: impl FnMut() -> bool,
    ) -> Result<Ticket> {
        let (ticket, mut queued) = self.try_queue(request)?;
        let (shared, mut panicked) = (self.shared(), None);
        let is_interactive = queued.priority() == Priority::Interactive;
        let Some(caller) = is_interactive.then(|| shared.queue.enter(&mut queued)).flatten() else {
            shared.queue.push(queued);
            return Ok(ticket);
        };
        let is_cancelled = || {
            // The reader must be returned, and the evaluation must end as others do.
            let called = catch_unwind(AssertUnwindSafe(&mut is_cancelled));
            called.unwrap_or_else(|panic| {
                panicked = Some(panic);
                true
            })
        };
        shared.queue.leave(SearchThread::answer(shared, caller, queued, is_cancelled));
        // The cache may have to shrink by the frames of reads that have completed.
        shared.pool.wake();
        match panicked {
            Some(panic) => resume_unwind(panic),
            None => Ok(ticket),
        }
    }

    /// Adds a request to the queue and returns at once.
    ///
    /// # Errors
    /// [`Error::Overloaded`] when the queue is full; [`Error::TooLarge`] when the budget never has enough
    /// memory for the request; [`Error::Usage`] when more hits are requested than
    /// [`EngineOptions::hits_max`] allows, the snapshot belongs to another engine, or the query was not
    /// parsed and is not within the limits of [`crate::limits`].
    pub fn submit(&self, request: SearchRequest) -> Result<Ticket> {
        let (ticket, queued) = self.try_queue(request)?;
        self.shared().queue.push(queued);
        Ok(ticket)
    }

    /// Checks a request, and reserves its memory.
    fn try_queue(&self, request: SearchRequest) -> Result<(Ticket, QueuedRequest)> {
        let shared = self.shared();
        let accepted = self.accept(request)?;
        match accepted.try_reserve(shared) {
            Some(reserved) => Ok(accepted.into_queued(reserved)),
            None => Err(shared.reject(shared.queue.overloaded(accepted.request.priority))),
        }
    }

    /// Checks a request, and computes its memory.
    fn accept(&self, request: SearchRequest) -> Result<AcceptedRequest> {
        self.try_accept(request).map_err(|error| self.shared().reject(error))
    }

    fn try_accept(&self, request: SearchRequest) -> Result<AcceptedRequest> {
        let shared = self.shared();
        let snapshot = request.snapshot.clone().unwrap_or_else(|| self.snapshot());
        if !snapshot.is_of(&shared.cache) {
            return Err(Error::Usage("the request has a snapshot of another engine".to_string()));
        }
        request.query.check(snapshot.schema())?;
        if let Some(given) = &request.statistics {
            snapshot.searcher().check_statistics(given, !request.collects)?;
        }
        check_hits(shared.hits_max, &request.options, snapshot.index())?;
        let hits = (request.options.k as u64).min(snapshot.index().documents());
        let own = request.memory(&snapshot);
        let units = if request.statistics.is_some() { HIT_UNITS_BYTES.saturating_mul(hits) } else { 0 };
        let result = if request.options.ids { result_with_ids_bytes(hits) } else { result_bytes(hits) };
        let previews = request.previews.map_or(0, |options| options.result_bytes().saturating_mul(hits));
        let explanation =
            if request.explains { request.explanation_memory(&snapshot) + result_bytes(hits) } else { 0 };
        let result = result.saturating_add(units).saturating_add(previews).saturating_add(explanation);
        if let Some(options) = request.previews {
            let (needed, evaluations) = (preview_bytes(options.bytes_read()), PoolUse::Evaluations);
            if !shared.pool.can_grant(evaluations, needed) {
                check_query_memory(
                    "showing the hits of",
                    needed,
                    shared.pool.sizes().of(evaluations).maximum,
                )?;
            }
        }
        let kind = PoolUse::of_requests(request.priority);
        if !shared.pool.can_grant(kind, own.saturating_add(result)) {
            let available = shared.pool.sizes().of(kind).maximum;
            check_query_memory("keeping", own.saturating_add(result), available)?;
        }
        Ok(AcceptedRequest { request, snapshot, own, result })
    }

    /// Answers a sequence of requests, all with [`Priority::Batch`]. `source` returns the next request, or
    /// `None` after the last; `answer` receives the number of each request, from 0, and its result, in the
    /// order of the requests. The error of a request goes to `answer`; the others are answered. Several
    /// requests are in progress at the same time; `source` must not wait for answers. While other callers
    /// have the memory of requests, the call waits; a request gets [`Error::Overloaded`] if that is the
    /// memory of results that they do not take.
    ///
    /// # Errors
    /// The first error of `answer`, or that of `source` after all requests before it were answered.
    pub fn run_ordered<E>(
        &self,
        mut source: impl FnMut() -> std::result::Result<Option<SearchRequest>, E>,
        mut answer: impl FnMut(usize, Result<Hits>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let ahead = self.requests_ahead();
        let (mut tickets, mut number, mut ended) = (VecDeque::with_capacity(ahead), 0, Ok(true));
        let mut next: Option<AcceptedRequest> = None;
        loop {
            while (next.is_some() || matches!(ended, Ok(true))) && tickets.len() < ahead {
                if next.is_none() {
                    match source() {
                        Ok(Some(request)) => match self.accept(request.priority(Priority::Batch)) {
                            Ok(accepted) => next = Some(accepted),
                            Err(error) => tickets.push_back(Err(error)),
                        },
                        Ok(None) => ended = Ok(false),
                        Err(error) => ended = Err(error),
                    }
                }
                let Some(accepted) = next.take() else { continue };
                let reserved = match accepted.try_reserve(self.shared()) {
                    Some(reserved) => Ok(reserved),
                    // None of the own results can be delivered first.
                    None if tickets.is_empty() => {
                        accepted.wait_to_reserve(self.shared()).map_err(|error| self.shared().reject(error))
                    }
                    None => {
                        next = Some(accepted);
                        break;
                    }
                };
                tickets.push_back(reserved.map(|reserved| {
                    let (ticket, queued) = accepted.into_queued(reserved);
                    self.shared().queue.push(queued);
                    ticket
                }));
            }
            // Wait for the middle request: one wake-up for half of the requests in progress instead of one
            // for each. A wake-up takes as long as a query whose pages are cached.
            if let Some(Ok(middle)) = tickets.get(tickets.len() / 2)
                && matches!(tickets.front(), Some(Ok(first)) if !first.is_ready())
            {
                middle.wait_until_ready();
            }
            let Some(ticket) = tickets.pop_front() else { return ended.map(drop) };
            // Dropped tickets cancel their requests.
            answer(number, ticket.and_then(Ticket::wait))?;
            number += 1;
        }
    }

    /// Counters of the cache: hits, reads, evictions.
    pub fn stats(&self) -> CacheStats {
        self.shared().cache.stats()
    }

    /// The cache of pages.
    #[doc(hidden)]
    pub fn page_cache(&self) -> &PageCache {
        &self.shared().cache
    }

    /// Number of requests that a caller with many should have in progress: enough for all threads to read and
    /// evaluate at the same time, while results are taken in order.
    pub fn requests_ahead(&self) -> usize {
        AHEAD * self.shared().settings.in_flight() * self.shared().settings.threads
    }

    /// What the engine does now, and has done since its start. Reads counters only.
    ///
    /// ```
    /// # use tierdex::{Engine, EngineOptions, IndexWriter, Merge, Schema, WriterOptions};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let dir = dir.path().join("index");
    /// # IndexWriter::create(&dir, Schema::default(), WriterOptions::default())?.commit(Merge::Keep)?;
    /// let engine = Engine::open(&dir, &EngineOptions::new())?;
    /// assert_eq!(engine.metrics().interactive.answered, 0);
    /// # Ok::<(), tierdex::Error>(())
    /// ```
    pub fn metrics(&self) -> EngineMetrics {
        self.shared().metrics()
    }

    /// The memory that the engine takes, by part.
    pub fn memory(&self) -> &MemoryReport {
        &self.shared().report
    }

    /// Bytes read from the files of the newest commit so far, as whole pages.
    pub fn bytes_read(&self) -> u64 {
        self.snapshot().index().bytes_read() + self.stats().bytes_read
    }

    /// The settings that were chosen for the first commit.
    pub fn settings(&self) -> &EngineSettings {
        &self.shared().settings
    }

    /// Name of the read method, such as io_uring.
    pub fn read_method(&self) -> &str {
        &self.shared().read_method.name
    }

    /// Why a faster read method is not used, if that is so.
    pub fn fallback(&self) -> Option<&str> {
        self.shared().read_method.fallback.as_deref()
    }

    /// What reads of the device cost, if the engine has measured it: a later engine can be given these
    /// costs ([`EngineOptions::read_costs`]) and then starts a tenth of a second faster.
    pub fn measured_read_costs(&self) -> Option<ReadCosts> {
        self.shared().read_method.measured
    }

    /// Why the file of [`EngineOptions::hot_pages`], or the rest of it, was not used. `None` if there is no
    /// file, and while its pages are read.
    pub fn hot_pages_error(&self) -> Option<&Error> {
        self.shared().hot_pages.as_ref()?.warmed.get()?.as_ref().err()
    }

    pub(super) fn shared(&self) -> &EngineShared {
        &self.0.shared
    }
}

impl EngineOwner {
    /// Starts a thread.
    fn spawn(&self, name: String, run: impl FnOnce(&EngineShared) + Send + 'static) -> Result<()> {
        let shared = self.shared.clone();
        let spawned = std::thread::Builder::new().name(name).spawn(move || run(&shared));
        let thread = spawned.map_err(|error| tierdex_io::Error::from_os("start", "a thread", &error))?;
        self.threads().push(thread);
        Ok(())
    }

    fn threads(&self) -> std::sync::MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for EngineOwner {
    fn drop(&mut self) {
        self.shared.close();
        let own = std::thread::current().id();
        let threads = std::mem::take(&mut *self.threads());
        // If a callback dropped the last handle, this is a search thread: it cannot join itself, and the
        // other threads may wait for pages that it reads.
        if threads.iter().all(|thread| thread.thread().id() != own) {
            threads.into_iter().for_each(|thread| drop(thread.join()));
        }
    }
}

/// A request that was checked.
struct AcceptedRequest {
    request: SearchRequest,
    snapshot: Arc<Snapshot>,
    /// Bytes of the request and its plan, and of its result.
    own: u64,
    result: u64,
}

impl AcceptedRequest {
    /// Reserves the memory of the request; removes requests that are due if it is not available.
    fn try_reserve(&self, shared: &EngineShared) -> Option<Reservation> {
        let reserve =
            || shared.pool.try_reserve(PoolUse::of_requests(self.request.priority), self.own + self.result);
        reserve().or_else(|| {
            shared.queue.remove_due();
            reserve()
        })
    }

    /// As [`AcceptedRequest::try_reserve`]; waits until the memory is available.
    ///
    /// # Errors
    /// [`Error::Failed`] when the engine was closed; [`Error::Overloaded`] when the memory belongs to results
    /// that nobody takes: no request is queued or evaluated.
    fn wait_to_reserve(&self, shared: &EngineShared) -> Result<Reservation> {
        let gives_up = |has_changed: bool| shared.queue.is_closed() || !has_changed && !shared.has_requests();
        let kind = PoolUse::of_requests(self.request.priority);
        shared.pool.reserve(kind, self.own + self.result, gives_up).ok_or_else(|| {
            if shared.queue.is_closed() {
                return Error::Failed(CLOSED.to_string());
            }
            let message = "no request is in progress, but results that were not taken have the memory of all \
                           requests; take them or drop their tickets";
            Error::Overloaded { message: message.to_string(), retry_after: Duration::from_secs(1) }
        })
    }

    fn into_queued(self, mut reserved: Reservation) -> (Ticket, QueuedRequest) {
        let AcceptedRequest { request, snapshot, result, .. } = self;
        let (ticket, reply) = Ticket::new(Some(reserved.split(result)));
        let arrived = Instant::now();
        (ticket, QueuedRequest { request, snapshot, reply, arrived, number: 0, reserved })
    }
}

impl EngineShared {
    /// Counts a request that is not accepted.
    fn reject(&self, error: Error) -> Error {
        self.rejected.fetch_add(1, Ordering::Relaxed);
        error
    }

    /// Whether requests are queued or evaluated.
    fn has_requests(&self) -> bool {
        [Priority::Interactive, Priority::Batch].into_iter().any(|priority| {
            let running = self.queue.counters(priority).running.load(Ordering::Relaxed);
            running > 0 || self.queue.length(priority).0 > 0
        })
    }

    /// Closes the queue, wakes those that wait for memory, and ends the thread of hot pages.
    fn close(&self) {
        self.queue.close();
        self.pool.wake();
        self.hot_pages.iter().for_each(HotPages::close);
    }
}

/// Closes the queue when dropped, also by a panic.
struct CloseOnDrop<'s>(&'s EngineShared);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}
