//! Queries that wait, and lists that are fetched ahead of them.
//!
//! *Input*: an index on disk, and queries in a queue. *Output*: their answers in order. In the mode `direct`
//! a thread answers several queries at the same time, each of which is suspended while the pages are read
//! that it needs (`interleave`, `paged`). In the modes of the thesis a query is planned when it enters a
//! window of the queue; its lists are fetched whole, while the queries before it are answered (`supply`,
//! `whole_lists`; thesis, sections 7.2 and 7.3).
//!
//! Who needs how much memory is known before any is taken, and rejected if it is too much ([`Accounts`]).
//! `options` names the modes, `ids` fetches the ids of hits, `line` keeps the order when several threads
//! answer.
//!
//! Why no thread waits for ever: threads take queries in the order of the queue. In the modes of the thesis
//! they hold one at a time, and wait for nothing else while they have its lists. So the oldest query that has
//! not ended is one that a thread works on. In `direct` an evaluation waits for reads, which end, and for
//! memory that others have which do not wait for memory.

mod accounts;
mod ids;
mod interleave;
mod line;
mod options;
mod paged;
mod supply;
mod whole_lists;

pub use accounts::{Account, Accounts};
pub use options::{ExecutorOptions, MetaTier, Mode, PAGES_AHEAD, THREADS_CHOSEN};

use super::reader::Index;
use super::searcher::{Found, SearchHit, SearchOptions, Searcher};
use crate::error::{Error, Result};
use crate::query::{Plan, Query};
use crate::segment::read::{FILES, Segment};
use accounts::{Places, Shares};
use ids::Ids;
use interleave::Thread;
use line::{Delivery, Owed, Queue};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use supply::{Fetched, LIST, Supply};
use tierdex_cache::{self as cache, Cache, Frames, Job, Lookahead, PagePrefetcher, PageReader, Prefetcher};
use tierdex_io::{Advice, Arena, Cells, Engine, EngineOptions, Region};
use whole_lists::WholeLists;

/// Queries that are planned ahead of the one that is answered, at most.
const AHEAD: usize = 1024;

/// Bytes that a query takes for its lists where there is no budget: as much as it pays to read ahead in a
/// few.
const LISTS_FREE: u64 = 16 << 20;

/// Segments that a cache has at least.
const SEGMENTS_MIN: u64 = 2;

/// Answers queries in the order in which they wait, with lists that are fetched ahead of them.
pub struct Executor {
    searcher: Arc<Searcher>,
    index: Index,
    reads: Reads,
    threads: usize,
    /// Evaluations at a time on each thread, at most.
    in_flight: usize,
    /// Held while queries are answered by these threads.
    running: Mutex<()>,
    /// Bytes for planned queries, and for the query that a thread answers, if that is bounded.
    waiting: u64,
    lists: Option<u64>,
    accounts: Accounts,
    ids: Option<Ids>,
    /// How files are read, and why not otherwise.
    engine: (String, Option<String>),
}

/// How postings get from the disk to evaluations.
enum Reads {
    /// Workers, or no one ahead of the queries.
    Supply(Supply),
    /// The threads themselves: each takes a reader while it answers.
    Pages { frames: Arc<Frames>, readers: Mutex<Vec<PageReader>> },
}

/// A query in the queue, and its lists.
struct Waiting {
    plan: Plan,
    jobs: Vec<Job>,
    bytes: u64,
    // Ends when nothing holds its lists.
    fetched: Fetched,
}

/// The queue.
struct Line<S> {
    source: S,
    ended: bool,
    waiting: VecDeque<Result<Waiting>>,
    bytes: u64,
    /// The number of the first that waits.
    next: usize,
}

impl Executor {
    /// Reads what is to be resident, and sets up the cache and its workers.
    ///
    /// # Errors
    /// [`Error::Usage`] when the budget is too small, as [`Executor::accounts`] shows, or the cache; else when memory
    /// cannot be had, or the files not be read in that way.
    pub fn new(index: &Index, options: &ExecutorOptions) -> Result<Executor> {
        if options.threads == 0 || options.workers == 0 {
            return Err(Error::Usage(
                "an executor needs a thread that answers and one that reads".to_string(),
            ));
        }
        let accounts = Executor::accounts(index, options);
        accounts.check()?;
        keep(index, &options.meta)?;
        let (reads, engine) = reads(index, options)?;
        let shares = Shares::of(index, options);
        // What is left of the budget has no other use.
        let lists = options.dram.map(|dram| shares.lists(Some(dram)) + shares.each(dram - accounts.needed()));
        let ids = if options.mode == Mode::Direct { Ids::new(index, &options.engine) } else { None };
        Ok(Executor {
            searcher: Arc::new(index.searcher()),
            index: index.clone(),
            reads,
            threads: options.threads,
            in_flight: options.in_flight(),
            running: Mutex::new(()),
            waiting: shares.waiting(options.dram),
            lists,
            accounts,
            ids,
            engine,
        })
    }

    /// What an executor with `options` takes of which memory.
    pub fn accounts(index: &Index, options: &ExecutorOptions) -> Accounts {
        Accounts::of(index, options, cache_bytes(index, options))
    }

    /// Answers the queries that `source` gives until it gives none, on as many threads as there are: calls `answer` with the
    /// number of each, in order, and what was found. A query that fails is answered by its error, and harms no other: with a
    /// budget so does one whose plan or lists take more than there is for it. Several queries may be taken before
    /// the first is answered; `source` must not wait for answers.
    ///
    /// # Errors
    /// The first of `source` or of `answer`.
    pub fn run<E: Send>(
        &self,
        source: impl FnMut() -> std::result::Result<Option<Query>, E> + Send,
        options: &SearchOptions,
        answer: impl FnMut(usize, Result<Found>) -> std::result::Result<(), E> + Send,
    ) -> std::result::Result<(), E> {
        if let Reads::Pages { frames, readers } = &self.reads {
            let delivery = Delivery::new(answer, 2 * self.in_flight * self.threads);
            let queue = Queue::new(source);
            // One run after the other: each has all readers.
            let _running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            if readers.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
                // Those of threads that panicked are gone.
                while let Some((number, _)) = queue.next(&delivery, true) {
                    delivery.give(number, Err(stopped()));
                }
                return delivery.end();
            }
            self.on_threads(|| {
                let reader = readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
                let Some(reader) = reader else { return };
                let allowance = self.lists.unwrap_or(u64::MAX);
                let reader = Thread::new(self, frames, reader, allowance).run(&queue, options, &delivery);
                readers.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
            });
            return delivery.end();
        }
        let line = Line { source, ended: false, waiting: VecDeque::new(), bytes: 0, next: 0 };
        let (line, delivery) = (Mutex::new(line), Delivery::new(answer, line::ANSWERS_AHEAD * self.threads));
        self.on_threads(|| self.work(&line, options, &delivery));
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

    /// How often lists were found, read and given up so far; none without a cache.
    pub fn stats(&self) -> Option<cache::Stats> {
        match &self.reads {
            Reads::Supply(supply) => supply.stats(),
            Reads::Pages { frames, .. } => Some(frames.stats()),
        }
    }

    /// Bytes read from the index's files so far, as whole pages.
    pub fn bytes_read(&self) -> u64 {
        let into_page_cache = match &self.reads {
            Reads::Supply(supply) => supply.pages_read(),
            Reads::Pages { .. } => 0,
        };
        let by_workers = self.stats().map_or(0, |stats| stats.bytes_read) + into_page_cache;
        self.index.bytes_read() + by_workers
    }

    /// What was noted of the lookahead, the oldest first.
    pub fn lookahead_samples(&self) -> Vec<cache::Sample> {
        match &self.reads {
            Reads::Supply(supply) => supply.lookahead_samples(),
            Reads::Pages { .. } => Vec::new(),
        }
    }

    /// How files are read.
    pub fn engine(&self) -> &str {
        &self.engine.0
    }

    /// Why they are not read in the way that was hoped for.
    pub fn fallback(&self) -> Option<&str> {
        self.engine.1.as_deref()
    }

    /// What it takes of which memory.
    pub fn memory(&self) -> &Accounts {
        &self.accounts
    }

    /// Begins to read the ids of hits, for which [`Executor::searcher`] will be asked later.
    pub fn expect_ids(&self, hits: &[SearchHit]) {
        if let Some(ids) = &self.ids {
            ids.expect(&self.searcher, hits);
        }
    }

    /// Gives ids, titles and texts of hits.
    pub fn searcher(&self) -> &Searcher {
        &self.searcher
    }

    /// Answers queries until there are none.
    fn work<S, A, E>(&self, line: &Mutex<Line<S>>, options: &SearchOptions, delivery: &Delivery<Found, A, E>)
    where
        S: FnMut() -> std::result::Result<Option<Query>, E>,
        A: FnMut(usize, Result<Found>) -> std::result::Result<(), E>,
    {
        loop {
            let mut queue = lock(line);
            let filled = self.fill(&mut queue, options);
            let next = queue.waiting.pop_front();
            let number = queue.next;
            queue.next += 1;
            queue.bytes -= next.as_ref().map_or(0, |next| next.as_ref().map_or(0, |next| next.bytes));
            drop(queue);
            if let Err(error) = filled {
                return delivery.fail(error);
            }
            let Some(next) = next else { return };
            let owed = Owed::new(delivery, number);
            let found = next.and_then(|next| self.answer(next, options));
            owed.paid();
            if !delivery.give(number, found) {
                lock(line).ended = true;
                return;
            }
        }
    }

    /// Plans queries until the window is full: half of the bytes for them, so that the last fits.
    fn fill<S, E>(&self, line: &mut Line<S>, options: &SearchOptions) -> std::result::Result<(), E>
    where
        S: FnMut() -> std::result::Result<Option<Query>, E>,
    {
        while !line.ended
            && line.waiting.len() < AHEAD
            && (line.bytes < self.waiting / 2 || line.waiting.is_empty())
        {
            match (line.source)() {
                Ok(Some(query)) => {
                    let waiting = self.queue(&query, options);
                    line.bytes += waiting.as_ref().map_or(0, |waiting| waiting.bytes);
                    line.waiting.push_back(waiting);
                }
                Ok(None) => line.ended = true,
                Err(error) => {
                    line.ended = true;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Plans a query, and has its lists fetched.
    fn queue(&self, query: &Query, options: &SearchOptions) -> Result<Waiting> {
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
            refuse("planning", bytes, self.waiting / 2)?;
        }
        self.read_ahead(bytes, &plan)?;
        Ok(Waiting { plan, jobs, bytes, fetched })
    }

    fn answer(&self, waiting: Waiting, options: &SearchOptions) -> Result<Found> {
        let Waiting { plan, jobs, bytes, fetched } = &waiting;
        let read_ahead = self.read_ahead(*bytes, plan)?;
        let Reads::Supply(supply) = &self.reads else { return Err(stopped()) };
        let lists = supply.wait(fetched, jobs)?;
        if lists.iter().all(Option::is_none) {
            return self.searcher.answer_from_files(plan, options, read_ahead);
        }
        self.searcher.answer(plan, options, &WholeLists::new(jobs, &lists, read_ahead))
    }

    /// Bytes that a query which takes `own` bytes may read ahead of each part of a list; an error if there is
    /// too little.
    fn read_ahead(&self, own: u64, plan: &Plan) -> Result<usize> {
        let allowance = self.lists.map_or(LISTS_FREE, |lists| lists.saturating_sub(own));
        let memory = plan.working_memory(self.index.segments(), allowance);
        if let Some(lists) = self.lists {
            refuse("answering", own + memory.bytes, lists)?;
        }
        Ok(memory.read_ahead)
    }
}

/// An error for a query that takes more than it may.
fn refuse(what: &str, takes: u64, may: u64) -> Result<()> {
    if takes <= may {
        return Ok(());
    }
    Err(Error::Limit(format!(
        "{what} this query takes {takes} bytes of DRAM, and the budget leaves {may} for it; make it larger, or ask for \
         fewer terms"
    )))
}

/// No reader is there for this thread.
fn stopped() -> Error {
    Error::Failed("a thread that answered has stopped".to_string())
}

fn lock<S>(line: &Mutex<Line<S>>) -> MutexGuard<'_, Line<S>> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has terms, skip data and lengths where they are to be.
fn keep(index: &Index, tier: &MetaTier) -> Result<()> {
    let mut arena = match tier {
        MetaTier::Disk | MetaTier::Terms | MetaTier::Dram => None,
        MetaTier::Region(kind) => {
            let bytes = Places::of(index).all().max(1);
            Some(Arena::new(Region::new(kind, bytes)?))
        }
    };
    for segment in index.segments() {
        if *tier != MetaTier::Disk {
            segment.keep_terms(arena.as_mut())?;
        }
        if tier.keeps_skips() {
            segment.keep_skips(arena.as_mut())?;
        }
        segment.prepare(arena.as_mut())?;
    }
    Ok(())
}

/// Starts the workers or read engines of a mode. Also returns the name of the read engine, and why it was
/// chosen instead of a faster one.
fn reads(index: &Index, options: &ExecutorOptions) -> Result<(Reads, (String, Option<String>))> {
    let through_pages = || ("pread through the page cache".to_string(), None);
    match options.mode {
        Mode::Base => return Ok((Reads::Supply(Supply::Base), through_pages())),
        Mode::BasePrefetch => {
            let ahead = match options.lookahead {
                Lookahead::Queries(queries) => queries,
                Lookahead::Adaptive | Lookahead::Pins => PAGES_AHEAD,
            };
            let worker = PagePrefetcher::start(ahead, options.samples)?;
            return Ok((Reads::Supply(Supply::Pages(worker)), through_pages()));
        }
        Mode::Hybrid | Mode::HybridPrefetch | Mode::Direct => {}
    }
    let bytes = cache_bytes(index, options);
    let cell = options.cell_bytes();
    if bytes < SEGMENTS_MIN * cell as u64 {
        return Err(Error::Usage(format!(
            "a cache of {bytes} bytes has no room for {SEGMENTS_MIN} segments of {} bytes; make it larger, or them smaller",
            cell
        )));
    }
    let region = Region::new(&options.region, bytes)?;
    let cells = Cells::new(region, cell)?;
    if options.mode == Mode::HybridPrefetch {
        without_read_ahead(index);
    }
    let engine =
        EngineOptions { direct: options.mode == Mode::Direct, depth: options.depth(), ..options.engine };
    let engines = if options.mode == Mode::Direct { options.threads } else { options.workers };
    let engines = (0..engines)
        .map(|_| Engine::new(engine, index.disk(), std::slice::from_ref(&cells)))
        .collect::<std::result::Result<Vec<_>, _>>()?;
    let described = engines.first().map_or_else(Default::default, |engine| {
        (engine.description().to_string(), engine.fallback().map(str::to_string))
    });
    if options.mode == Mode::Direct {
        let frames = Frames::new(cells, options.policy)?;
        let readers = engines.into_iter().map(|engine| PageReader::new(frames.clone(), engine)).collect();
        return Ok((Reads::Pages { frames, readers: Mutex::new(readers) }, described));
    }
    let cache = Cache::new(cells, options.policy)?;
    if options.samples > 0 {
        cache.record_lookahead(options.samples);
    }
    let prefetcher = Prefetcher::start(&cache, engines, options.lookahead)?;
    let supply =
        if options.mode == Mode::Hybrid { Supply::Behind(prefetcher) } else { Supply::Ahead(prefetcher) };
    Ok((Reads::Supply(supply), described))
}

/// Has the system read no more than lists: they are asked for in pieces as large as it pays, and what stands behind them is
/// mostly another query's. That holds for as long as the index is open. That the system refuses does no harm.
fn without_read_ahead(index: &Index) {
    let fields = index.segments().iter().flat_map(Segment::fields);
    for file in fields.flat_map(|field| [field.skips(), field.docs(), field.freqs()]) {
        if let Some(file) = file.file().posix() {
            let _ = file.advise(0..u64::MAX, Advice::Random);
        }
    }
}

/// Bytes of the cache: a part of the index is at least so much that there can be a cache.
fn cache_bytes(index: &Index, options: &ExecutorOptions) -> u64 {
    let bytes = options.size.of(index.postings_bytes());
    match options.size {
        _ if !options.mode.has_cache() => 0,
        tierdex_io::Size::Part(_) => bytes.max(SEGMENTS_MIN * options.cell_bytes() as u64),
        tierdex_io::Size::Bytes(_) => bytes,
    }
}
