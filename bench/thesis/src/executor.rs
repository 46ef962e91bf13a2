//! Answers a sequence of queries in order, in one of the modes of the thesis.
//!
//! *Input*: an index on disk and a source of queries. *Output*: the results, in the order of the queries.
//!
//! 1. A query is planned when it enters the planning window of the query queue; the prefetch of its posting
//!    lists starts (thesis, section 7.2).
//! 2. Search threads take queries in queue order, one at a time. Each waits for the lists of its query,
//!    evaluates it, and delivers the result.
//!
//! A thread waits for nothing else while it holds the lists of a query. So the oldest unfinished query
//! always makes progress.

use crate::cache::{ListCacheStats, ListRequest, LookaheadSample};
use crate::delivery::{OnPanic, OrderedDelivery, RESULTS_AHEAD_PER_THREAD};
use crate::list_prefetch::{ListPrefetch, PrefetchState, ReadMethodName};
use crate::memory::{LIST_REQUEST_BYTES, memory_report, plans_bytes, thread_lists_bytes};
use crate::{mapped_files::MappedFiles, options::ListOptions, whole_lists::WholeLists};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::{collections::VecDeque, time::Duration, time::Instant};
use tierdex::internal::engine::part_sizes::{check_hits, check_query_memory};
use tierdex::internal::segment::read::{BlockSource, FILES, Files};
use tierdex::internal::{engine::load_metadata, eval::SearchPlan, index::Searcher};
use tierdex::{Error, Index, MemoryReport, Query, Result, SearchOptions, explain::SearchResult};

/// Planned queries in the queue, at most.
const PLANNED_QUERIES_MAX: usize = 1024;

/// Memory for the lists of a query without a budget: enough to read far ahead in a few lists.
const QUERY_LISTS_BYTES_UNLIMITED: u64 = 16 << 20;

/// Answers queries in order.
pub struct ListExecutor {
    searcher: Searcher,
    index: Index,
    prefetch: ListPrefetch,
    threads: usize,
    /// The files, if queries read mapped files.
    mapped: Option<MappedFiles>,
    /// Bytes that the queue of planned queries may take.
    plans_bytes: u64,
    /// Bytes for the query that a thread evaluates, if memory is bounded.
    lists_bytes: Option<u64>,
    /// Hits that a query may ask for, if memory is bounded.
    hits_max: Option<usize>,
    report: MemoryReport,
    read_method: ReadMethodName,
}

/// A planned query in the queue, with the prefetch of its lists.
struct PrefetchedQuery {
    plan: SearchPlan,
    requests: Vec<ListRequest>,
    bytes: u64,
    prefetch: PrefetchState,
}

/// A result, and the time that the query took.
pub type TimedResult = (SearchResult, Duration);

/// The query queue: planned queries in order, and the source of further ones.
struct PlannedQueries<S> {
    state: Mutex<PlannedQueriesState<S>>,
    changed: Condvar,
}

struct PlannedQueriesState<S> {
    /// `None` while a thread takes a query from it and plans it; other threads evaluate planned queries.
    source: Option<S>,
    /// The source has no more queries.
    ended: bool,
    planned: VecDeque<Result<PrefetchedQuery>>,
    bytes: u64,
    /// The number of the first planned query.
    next: usize,
    /// Number of sleeping threads.
    idle: usize,
}

impl<S> PlannedQueries<S> {
    fn new(source: S) -> PlannedQueries<S> {
        let state = PlannedQueriesState {
            source: Some(source),
            ended: false,
            planned: VecDeque::new(),
            bytes: 0,
            next: 0,
            idle: 0,
        };
        PlannedQueries { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, PlannedQueriesState<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes sleeping threads.
    fn change_state(
        &self,
        change: impl FnOnce(&mut PlannedQueriesState<S>),
    ) -> MutexGuard<'_, PlannedQueriesState<S>> {
        let mut state = self.lock();
        change(&mut state);
        if state.idle > 0 {
            self.changed.notify_all();
        }
        state
    }

    /// Ends the source: no more queries are taken from it.
    fn end(&self) {
        drop(self.change_state(|state| state.ended = true));
    }
}

impl ListExecutor {
    /// Loads the metadata of the segments into its memory tier, allocates the cache and starts the reader
    /// thread.
    ///
    /// # Errors
    /// [`Error::Usage`] when the budget ([`memory_report`]) or the cache is too small; [`Error::Storage`]
    /// when memory cannot be allocated or the files cannot be read in this mode.
    pub fn new(index: &Index, options: &ListOptions) -> Result<ListExecutor> {
        if options.threads == 0 {
            return Err(Error::Usage("an executor needs at least one search thread".to_string()));
        }
        let report = memory_report(index, options);
        report.check()?;
        load_metadata(index.segments(), &options.metadata_location())?;
        let files = index.segments().iter().flat_map(|segment| segment.files());
        let mapped = options.reads_mapped().then(|| MappedFiles::new(files));
        let (prefetch, read_method) = ListPrefetch::start(index, options, mapped.as_ref())?;
        // The unallocated rest of the budget goes to the lists.
        let rest = |dram| (dram - report.needed()) / options.threads as u64;
        Ok(ListExecutor {
            searcher: index.searcher(),
            index: index.clone(),
            prefetch,
            threads: options.threads,
            mapped,
            plans_bytes: plans_bytes(index, options.dram),
            lists_bytes: options.dram.map(|dram| thread_lists_bytes(index, options) + rest(dram)),
            hits_max: options.dram.map(|_| options.hits_max),
            report,
            read_method,
        })
    }

    /// Evaluates the queries of `source` until it returns `None`, on all search threads. Calls `answer` with
    /// the number of each query, its result, and the time from when a thread took it, in order. The error of
    /// a query goes to `answer` and affects no other query; with a budget, a query whose plan or lists exceed
    /// its share fails in this way. Several queries are taken before the first is answered; `source` must not
    /// wait for answers.
    ///
    /// # Errors
    /// The first error of `source` or of `answer`.
    pub fn run_timed<E: Send>(
        &self,
        source: impl FnMut() -> std::result::Result<Option<Query>, E> + Send,
        options: &SearchOptions,
        answer: impl FnMut(usize, Result<TimedResult>) -> std::result::Result<(), E> + Send,
    ) -> std::result::Result<(), E> {
        let (queries, delivery) = (
            PlannedQueries::new(source),
            OrderedDelivery::new(answer, RESULTS_AHEAD_PER_THREAD * self.threads),
        );
        self.run_on_search_threads(|| self.answer_queries(&queries, options, &delivery));
        delivery.into_result()
    }

    /// Runs `work` on each search thread, the calling thread included.
    fn run_on_search_threads(&self, work: impl Fn() + Sync) {
        std::thread::scope(|scope| {
            for _ in 1..self.threads {
                let thread = std::thread::Builder::new().name("search".to_string());
                // If the system starts no more threads, those that run answer all queries.
                let _ = thread.spawn_scoped(scope, &work);
            }
            work();
        });
    }

    /// Hits, reads and evictions of the cache so far; `None` without a cache.
    pub fn stats(&self) -> Option<ListCacheStats> {
        self.prefetch.stats()
    }

    /// Bytes read from the index's files so far, as whole pages.
    pub fn bytes_read(&self) -> u64 {
        let mapped = self.mapped.as_ref().map_or(0, MappedFiles::bytes_read);
        let into_cache = self.stats().map_or(0, |stats| stats.bytes_read);
        self.index.bytes_read() + mapped + into_cache + self.prefetch.page_cache_bytes_read()
    }

    /// The recorded lookahead samples, oldest first.
    pub fn lookahead_samples(&self) -> Vec<LookaheadSample> {
        self.prefetch.lookahead_samples()
    }

    /// Name of the read method.
    pub fn read_method(&self) -> &str {
        &self.read_method.0
    }

    /// Why a faster read method is not used, if that is so.
    pub fn fallback(&self) -> Option<&str> {
        self.read_method.1.as_deref()
    }

    /// The memory that the executor takes, by part.
    pub fn memory(&self) -> &MemoryReport {
        &self.report
    }

    /// Evaluates queries until the queue ends.
    fn answer_queries<S, A, E>(
        &self,
        queries: &PlannedQueries<S>,
        options: &SearchOptions,
        delivery: &OrderedDelivery<TimedResult, A, E>,
    ) where
        S: FnMut() -> std::result::Result<Option<Query>, E>,
        A: FnMut(usize, Result<TimedResult>) -> std::result::Result<(), E>,
    {
        loop {
            let (number, next) = match self.next_planned(queries, options) {
                Ok(Some(next)) => next,
                Ok(None) => return,
                Err(error) => return delivery.end_with_error(error),
            };
            // If this thread panics, the others do not wait for its result.
            let guard = OnPanic(|| {
                delivery.deliver(number, Err(Error::Failed("the thread of the query panicked".to_string())));
            });
            let timed = next.and_then(|next| {
                let began = Instant::now();
                Ok((self.evaluate(next, options)?, began.elapsed()))
            });
            std::mem::forget(guard);
            if !delivery.deliver(number, timed) {
                return queries.end();
            }
        }
    }

    /// Takes the first planned query and its number; `None` if there are no more. Before that it plans more
    /// queries, unless another thread does, until half of their memory is used, so that the last one fits.
    #[allow(clippy::type_complexity, reason = "a number, and a planned query or its error")]
    fn next_planned<S, E>(
        &self,
        queries: &PlannedQueries<S>,
        options: &SearchOptions,
    ) -> std::result::Result<Option<(usize, Result<PrefetchedQuery>)>, E>
    where
        S: FnMut() -> std::result::Result<Option<Query>, E>,
    {
        let mut state = queries.lock();
        loop {
            let plans_more = state.planned.len() < PLANNED_QUERIES_MAX
                && (state.bytes < self.plans_bytes / 2 || state.planned.is_empty());
            let source = if plans_more && !state.ended { state.source.take() } else { None };
            if let Some(mut source) = source {
                drop(state);
                let guard = OnPanic(|| queries.end());
                let planned = source().map(|query| query.map(|query| self.plan(&query, options)));
                std::mem::forget(guard);
                state = queries.change_state(|state| {
                    state.source = Some(source);
                    match &planned {
                        Ok(Some(planned)) => {
                            state.bytes += planned.as_ref().map_or(0, |planned| planned.bytes)
                        }
                        Ok(None) | Err(_) => state.ended = true,
                    }
                });
                state.planned.extend(planned?);
                continue;
            }
            if let Some(next) = state.planned.pop_front() {
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

    /// Plans a query, and starts the prefetch of its lists.
    fn plan(&self, query: &Query, options: &SearchOptions) -> Result<PrefetchedQuery> {
        check_hits(self.hits_max, options, &self.index)?;
        let source = self.mapped.as_ref().map_or(&FILES as &dyn BlockSource, |mapped| mapped);
        let plan = self.searcher.plan(query, options, source)?;
        // A count of one term is its document frequency, which is in the dictionary.
        let (prefetch, requests) = match options.k == 0 && plan.is_one_term() {
            true => (PrefetchState::None, Vec::new()),
            false => self.prefetch.push(&plan, &self.index)?,
        };
        let bytes = (plan.memory() + requests.len() * LIST_REQUEST_BYTES) as u64;
        if self.lists_bytes.is_some() {
            check_query_memory("planning", bytes, self.plans_bytes / 2)?;
        }
        self.read_ahead(bytes, &plan)?;
        Ok(PrefetchedQuery { plan, requests, bytes, prefetch })
    }

    fn evaluate(&self, planned: PrefetchedQuery, options: &SearchOptions) -> Result<SearchResult> {
        let PrefetchedQuery { plan, requests, bytes, prefetch } = &planned;
        let read_ahead = self.read_ahead(*bytes, plan)?;
        let lists = self.prefetch.wait(prefetch, requests)?;
        if let Some(mapped) = &self.mapped {
            return self.searcher.answer(plan, options, mapped);
        }
        if lists.iter().all(Option::is_none) {
            return self.searcher.answer(plan, options, &Files::new(read_ahead));
        }
        self.searcher.answer(plan, options, &WholeLists::new(requests, &lists, read_ahead))
    }

    /// Read-ahead bytes for each part of a list, for a query whose plan and list requests take `own` bytes;
    /// an error if the query does not fit into its memory budget.
    fn read_ahead(&self, own: u64, plan: &SearchPlan) -> Result<usize> {
        let allowance =
            self.lists_bytes.map_or(QUERY_LISTS_BYTES_UNLIMITED, |bytes| bytes.saturating_sub(own));
        let memory = plan.working_memory(self.index.segments(), allowance);
        if let Some(available) = self.lists_bytes {
            check_query_memory("answering", own + memory.bytes, available)?;
        }
        Ok(memory.read_ahead)
    }
}
