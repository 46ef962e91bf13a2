//! Answers a sequence of queries in order, by an [`Engine`] or in one of the modes of the thesis.
//!
//! *Input*: an index on disk and a source of queries. *Output*: the answers, in the order of the queries. In
//! the modes of the thesis a query is planned when it enters the planning window of the query queue; its
//! posting lists are fetched whole while earlier queries are answered (thesis, sections 7.2 and 7.3).
//! Threads take queries in queue order, one at a time, and wait for nothing else while they hold its lists.
//! So some thread is always working on the oldest unfinished query.

use super::budget::{MemoryReport, Shares, check_hits, check_query_memory};
use super::delivery::{self, Delivery, PendingAnswer};
use super::ids::Ids;
use super::options::{ExecutorOptions, Mode, PAGES_AHEAD};
use super::snapshot::keep;
use super::supply::{Fetched, LIST, Supply};
use super::whole_lists::WholeLists;
use super::{Engine, Hits, SearchRequest};
use crate::error::{Error, Result};
use crate::index::{Found, Index, SearchHit, SearchOptions, Searcher};
use crate::query::{Query, QueryPlan};
use crate::segment::read::{FILES, Files};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tierdex_cache::{
    self as cache, Cache, Frames, ListRequest, Lookahead, PagePrefetcher, PageReader, Prefetcher,
};
use tierdex_io::{Advice, Cells, EngineOptions, ReadEngine, Region};

/// Queries that are planned ahead of the one that is answered, at most.
const AHEAD: usize = 1024;

/// Memory for the lists of a query, in bytes, without a budget: enough to read far ahead in a few lists.
const LISTS_FREE: u64 = 16 << 20;

/// Segments that a cache has at least.
pub(super) const SEGMENTS_MIN: u64 = 2;

/// Answers queries in the order in which they wait.
pub struct Executor {
    searcher: Searcher,
    index: Index,
    reads: Reads,
    threads: usize,
    /// Bytes for planned queries, and for the query that a thread answers, if that is bounded.
    waiting: u64,
    lists: Option<u64>,
    /// Hits that a query may ask for, if memory is bounded.
    hits_max: Option<usize>,
    report: MemoryReport,
    ids: Option<Ids>,
    /// How files are read, and why not otherwise.
    read_engine: (String, Option<String>),
}

/// How postings get from the disk to evaluations.
enum Reads {
    /// Whole lists, or through the page cache.
    Supply(Supply),
    /// Pages, by the threads of an engine.
    Pages(Engine),
}

/// A query in the queue, and its lists.
struct Waiting {
    plan: QueryPlan,
    jobs: Vec<ListRequest>,
    bytes: u64,
    // Ends when nothing holds its lists.
    fetched: Fetched,
}

/// What was found, and how long it took.
type Timed = (Found, Duration);

/// Queries that have been planned, in their order, and the source of others.
struct PlannedQueries<S> {
    state: Mutex<PlannedState<S>>,
    changed: Condvar,
}

struct PlannedState<S> {
    /// None while a thread takes a query from it and plans it: others answer those that wait.
    source: Option<S>,
    /// There are no more queries.
    ended: bool,
    waiting: VecDeque<Result<Waiting>>,
    bytes: u64,
    /// The number of the first that waits.
    next: usize,
    /// Threads that sleep.
    idle: usize,
}

impl<S> PlannedQueries<S> {
    fn new(source: S) -> PlannedQueries<S> {
        let state = PlannedState {
            source: Some(source),
            ended: false,
            waiting: VecDeque::new(),
            bytes: 0,
            next: 0,
            idle: 0,
        };
        PlannedQueries { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, PlannedState<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes the threads that sleep.
    fn change(&self, change: impl FnOnce(&mut PlannedState<S>)) -> MutexGuard<'_, PlannedState<S>> {
        let mut state = self.lock();
        change(&mut state);
        if state.idle > 0 {
            self.changed.notify_all();
        }
        state
    }
}

/// A thread plans: if it panics, there are no more queries.
struct Planning<'l, S>(&'l PlannedQueries<S>);

impl<S> Drop for Planning<'_, S> {
    fn drop(&mut self) {
        drop(self.0.change(|state| state.ended = true));
    }
}

impl Executor {
    /// Reads what is to be resident, and sets up the cache and its workers.
    ///
    /// # Errors
    /// [`Error::Usage`] when the budget is too small, as [`Executor::memory_report`] shows, or the cache; else
    /// when memory cannot be had, or the files not be read in that way.
    pub fn new(index: &Index, options: &ExecutorOptions) -> Result<Executor> {
        if options.threads == 0 || options.workers == 0 {
            return Err(Error::Usage(
                "an executor needs a thread that answers and one that reads".to_string(),
            ));
        }
        let report = Executor::memory_report(index, options);
        report.check()?;
        let (reads, read_engine) = if options.mode == Mode::Direct {
            let engine = Engine::with_options(index, options)?;
            let described = (engine.read_engine().to_string(), engine.fallback().map(str::to_string));
            (Reads::Pages(engine), described)
        } else {
            keep(index.segments(), &options.meta)?;
            let (supply, described) = supply(index, options)?;
            (Reads::Supply(supply), described)
        };
        let shares = Shares::of(index, options);
        // What is left of the budget has no other use.
        let lists = options.dram.map(|dram| shares.lists(Some(dram)) + shares.each(dram - report.needed()));
        let ids = if options.mode == Mode::Direct { Ids::new(index, &options.engine) } else { None };
        Ok(Executor {
            searcher: index.searcher(),
            index: index.clone(),
            reads,
            threads: options.threads,
            waiting: shares.waiting(options.dram),
            lists,
            hits_max: options.dram.map(|_| options.hits),
            report,
            ids,
            read_engine,
        })
    }

    /// What an executor with `options` takes of which memory.
    pub fn memory_report(index: &Index, options: &ExecutorOptions) -> MemoryReport {
        MemoryReport::of(index, options, cache_bytes(index, options))
    }

    /// Answers the queries that `source` gives until it gives none, on as many threads as there are: calls
    /// `answer` with the number of each, in order, and what was found. A query that fails is answered by its
    /// error, and harms no other: with a budget so does one whose plan or lists take more than there is for
    /// it. Several queries may be taken before the first is answered; `source` must not wait for answers.
    ///
    /// # Errors
    /// The first of `source` or of `answer`.
    pub fn run<E: Send>(
        &self,
        source: impl FnMut() -> std::result::Result<Option<Query>, E> + Send,
        options: &SearchOptions,
        mut answer: impl FnMut(usize, Result<Found>) -> std::result::Result<(), E> + Send,
    ) -> std::result::Result<(), E> {
        self.run_timed(source, options, |number, found| answer(number, found.map(|(found, _)| found)))
    }

    /// The same; `answer` is also told how long each query took, from when a thread began to answer it.
    ///
    /// # Errors
    /// The first of `source` or of `answer`.
    pub fn run_timed<E: Send>(
        &self,
        mut source: impl FnMut() -> std::result::Result<Option<Query>, E> + Send,
        options: &SearchOptions,
        mut answer: impl FnMut(usize, Result<Timed>) -> std::result::Result<(), E> + Send,
    ) -> std::result::Result<(), E> {
        if let Reads::Pages(engine) = &self.reads {
            let request = |query| SearchRequest::new(query).options(*options);
            let found = |Hits { hits, total, took, queued, .. }| {
                (Found { total: total.value(), hits }, took.saturating_sub(queued))
            };
            return engine
                .run_ordered(|| Ok(source()?.map(request)), |number, done| answer(number, done.map(found)));
        }
        let (queries, delivery) =
            (PlannedQueries::new(source), Delivery::new(answer, delivery::ANSWERS_AHEAD * self.threads));
        self.on_threads(|| self.work(&queries, options, &delivery));
        delivery.end()
    }

    /// Has each thread do the same.
    fn on_threads(&self, work: impl Fn() + Sync) {
        std::thread::scope(|scope| {
            for _ in 1..self.threads {
                let thread = std::thread::Builder::new().name("answer".to_string());
                // Where the system has no thread more, those that there are answer all.
                let _ = thread.spawn_scoped(scope, &work);
            }
            work();
        });
    }

    /// Hits, reads and evictions of the cache so far; `None` without a cache.
    pub fn stats(&self) -> Option<cache::CacheStats> {
        match &self.reads {
            Reads::Supply(supply) => supply.stats(),
            Reads::Pages(engine) => Some(engine.stats()),
        }
    }

    /// Bytes read from the index's files so far, as whole pages.
    pub fn bytes_read(&self) -> u64 {
        let into_page_cache = match &self.reads {
            Reads::Supply(supply) => supply.pages_read(),
            Reads::Pages(_) => 0,
        };
        let by_workers = self.stats().map_or(0, |stats| stats.bytes_read) + into_page_cache;
        self.index.bytes_read() + by_workers
    }

    /// What was noted of the lookahead, the oldest first.
    pub fn lookahead_samples(&self) -> Vec<cache::LookaheadSample> {
        match &self.reads {
            Reads::Supply(supply) => supply.lookahead_samples(),
            Reads::Pages(_) => Vec::new(),
        }
    }

    /// How files are read.
    pub fn engine(&self) -> &str {
        &self.read_engine.0
    }

    /// Why they are not read in the way that was hoped for.
    pub fn fallback(&self) -> Option<&str> {
        self.read_engine.1.as_deref()
    }

    /// What it takes of which memory.
    pub fn memory(&self) -> &MemoryReport {
        &self.report
    }

    /// Begins to read the ids of hits, for which [`Executor::searcher`] will be asked later.
    pub fn prefetch_ids(&self, hits: &[SearchHit]) {
        if let Some(ids) = &self.ids {
            ids.prefetch(&self.searcher, hits);
        }
    }

    /// Gives ids, titles and texts of hits.
    pub fn searcher(&self) -> &Searcher {
        &self.searcher
    }

    /// Answers queries until there are none.
    fn work<S, A, E>(
        &self,
        queries: &PlannedQueries<S>,
        options: &SearchOptions,
        delivery: &Delivery<Timed, A, E>,
    ) where
        S: FnMut() -> std::result::Result<Option<Query>, E>,
        A: FnMut(usize, Result<Timed>) -> std::result::Result<(), E>,
    {
        loop {
            let (number, next) = match self.next(queries, options) {
                Ok(Some(next)) => next,
                Ok(None) => return,
                Err(error) => return delivery.fail(error),
            };
            let pending = PendingAnswer::new(delivery, number);
            let found = next.and_then(|next| {
                let began = Instant::now();
                Ok((self.answer(next, options)?, began.elapsed()))
            });
            pending.disarm();
            if !delivery.deliver(number, found) {
                drop(queries.change(|state| state.ended = true));
                return;
            }
        }
    }

    /// The first planned query and its number; none if there are no more. Plans more queries before, unless
    /// another thread does, until half of the bytes for them are taken, so that the last fits.
    #[allow(clippy::type_complexity, reason = "a number, and a query or why it cannot be planned")]
    fn next<S, E>(
        &self,
        queries: &PlannedQueries<S>,
        options: &SearchOptions,
    ) -> std::result::Result<Option<(usize, Result<Waiting>)>, E>
    where
        S: FnMut() -> std::result::Result<Option<Query>, E>,
    {
        let mut state = queries.lock();
        loop {
            let takes =
                state.waiting.len() < AHEAD && (state.bytes < self.waiting / 2 || state.waiting.is_empty());
            let source = if takes && !state.ended { state.source.take() } else { None };
            if let Some(mut source) = source {
                drop(state);
                let planning = Planning(queries);
                let planned = source().map(|query| query.map(|query| self.queue(&query, options)));
                std::mem::forget(planning);
                state = queries.change(|state| {
                    state.source = Some(source);
                    match &planned {
                        Ok(Some(waiting)) => {
                            state.bytes += waiting.as_ref().map_or(0, |waiting| waiting.bytes)
                        }
                        Ok(None) | Err(_) => state.ended = true,
                    }
                });
                state.waiting.extend(planned?);
                continue;
            }
            if let Some(next) = state.waiting.pop_front() {
                state.bytes -= next.as_ref().map_or(0, |next| next.bytes);
                state.next += 1;
                return Ok(Some((state.next - 1, next)));
            }
            if state.ended {
                return Ok(None);
            }
            state.idle += 1;
            state = queries.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    /// Plans a query, and has its lists fetched.
    fn queue(&self, query: &Query, options: &SearchOptions) -> Result<Waiting> {
        check_hits(self.hits_max, options, &self.index)?;
        let plan = self.searcher.plan(query, options, &FILES)?;
        let (fetched, jobs) = match &self.reads {
            // The dictionary knows how many documents hold a term.
            Reads::Supply(supply) if !(options.k == 0 && plan.is_one_term()) => {
                supply.push(&plan, &self.index)?
            }
            _ => (Fetched::Nothing, Vec::new()),
        };
        let bytes = (plan.memory() + jobs.len() * LIST) as u64;
        if self.lists.is_some() {
            check_query_memory("planning", bytes, self.waiting / 2)?;
        }
        self.read_ahead(bytes, &plan)?;
        Ok(Waiting { plan, jobs, bytes, fetched })
    }

    fn answer(&self, waiting: Waiting, options: &SearchOptions) -> Result<Found> {
        let Waiting { plan, jobs, bytes, fetched, .. } = &waiting;
        let read_ahead = self.read_ahead(*bytes, plan)?;
        let Reads::Supply(supply) = &self.reads else { return Err(stopped()) };
        let lists = supply.wait(fetched, jobs)?;
        if lists.iter().all(Option::is_none) {
            return self.searcher.answer(plan, options, &Files::new(read_ahead));
        }
        self.searcher.answer(plan, options, &WholeLists::new(jobs, &lists, read_ahead))
    }

    /// Read-ahead bytes for each part of a list, for a query whose plan and jobs take `own` bytes; an error
    /// if the query does not fit into its memory budget.
    fn read_ahead(&self, own: u64, plan: &QueryPlan) -> Result<usize> {
        let allowance = self.lists.map_or(LISTS_FREE, |lists| lists.saturating_sub(own));
        let memory = plan.working_memory(self.index.segments(), allowance);
        if let Some(lists) = self.lists {
            check_query_memory("answering", own + memory.bytes, lists)?;
        }
        Ok(memory.read_ahead)
    }
}

/// Error of a query thread without a prefetch strategy. Unreachable: [`Reads::Pages`] answers by its engine.
fn stopped() -> Error {
    Error::Failed("a thread that answered has stopped".to_string())
}

/// Starts the workers of a mode of the thesis. Also returns the name of the read engine, and why it was
/// chosen instead of a faster one.
fn supply(index: &Index, options: &ExecutorOptions) -> Result<(Supply, Described)> {
    let through_pages = || ("pread through the page cache".to_string(), None);
    match options.mode {
        Mode::Base => return Ok((Supply::Base, through_pages())),
        Mode::BasePrefetch => {
            let ahead = match options.lookahead {
                Lookahead::Queries(queries) => queries,
                Lookahead::Adaptive | Lookahead::Pins => PAGES_AHEAD,
            };
            let worker = PagePrefetcher::start(ahead, options.samples)?;
            return Ok((Supply::Pages(worker), through_pages()));
        }
        Mode::Hybrid | Mode::HybridPrefetch | Mode::Direct => {}
    }
    if options.mode == Mode::HybridPrefetch {
        without_read_ahead(index);
    }
    let (cells, engines, described) = read_engines(index, options, options.workers)?;
    let cache = Cache::new(cells, options.policy)?;
    if options.samples > 0 {
        cache.record_lookahead(options.samples);
    }
    let prefetcher = Prefetcher::start(&cache, engines, options.lookahead)?;
    let supply =
        if options.mode == Mode::Hybrid { Supply::Behind(prefetcher) } else { Supply::Ahead(prefetcher) };
    Ok((supply, described))
}

/// The name of a read engine, and why it was chosen instead of a faster one.
type Described = (String, Option<String>);

/// The cache of pages, and a reader for each thread.
pub(super) fn page_readers(
    index: &Index,
    options: &ExecutorOptions,
) -> Result<(Arc<Frames>, Vec<PageReader>, Described)> {
    let (cells, engines, described) = read_engines(index, options, options.threads)?;
    let frames = Frames::new(cells, options.policy)?;
    let readers = engines.into_iter().map(|engine| PageReader::new(frames.clone(), engine)).collect();
    Ok((frames, readers, described))
}

/// The memory of the cache, and read engines for it.
fn read_engines(
    index: &Index,
    options: &ExecutorOptions,
    count: usize,
) -> Result<(Arc<Cells>, Vec<ReadEngine>, Described)> {
    let bytes = cache_bytes(index, options);
    let cell = options.cell_bytes();
    if bytes < SEGMENTS_MIN * cell as u64 {
        return Err(Error::Usage(format!(
            "a cache of {bytes} bytes is smaller than {SEGMENTS_MIN} segments of {cell} bytes; make it larger, or them \
             smaller"
        )));
    }
    let cells = Cells::new(Region::new(&options.region, bytes)?, cell)?;
    let engine =
        EngineOptions { direct: options.mode == Mode::Direct, depth: options.depth(), ..options.engine };
    let engines = (0..count)
        .map(|_| ReadEngine::new(engine, index.disk(), std::slice::from_ref(&cells)))
        .collect::<std::result::Result<Vec<_>, _>>()?;
    let described = engines.first().map_or_else(Default::default, |engine| {
        (engine.description().to_string(), engine.fallback().map(str::to_string))
    });
    Ok((cells, engines, described))
}

/// Turns off the read-ahead of the system for postings files, as long as the index is open: lists are read
/// in large pieces, and what follows a list is seldom needed. Without effect where the system rejects it.
fn without_read_ahead(index: &Index) {
    let fields = index.segments().iter().flat_map(|segment| segment.fields());
    for file in fields.flat_map(|field| [field.skips(), field.docs(), field.freqs()]) {
        let _ = file.file().advise(0..u64::MAX, Advice::Random);
    }
}

/// Size of the cache in bytes; 0 without one. A size relative to the index is at least `SEGMENTS_MIN` cells.
fn cache_bytes(index: &Index, options: &ExecutorOptions) -> u64 {
    let bytes = options.size.of(index.postings_bytes());
    match options.size {
        _ if !options.mode.has_cache() => 0,
        tierdex_io::Size::BasisPoints(_) => bytes.max(SEGMENTS_MIN * options.cell_bytes() as u64),
        tierdex_io::Size::Bytes(_) => bytes,
    }
}
