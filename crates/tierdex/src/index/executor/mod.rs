//! Queries that wait, and lists that are brought near ahead of them.
//!
//! *You have* an index on disk, and queries in a queue. *You get* their answers in order. Each is planned when it enters a
//! window of the queue; its lists are asked for at once, and workers fetch them while the queries before it are answered.
//! When its turn comes its lists are in the cache, or on their way (thesis, sections 7.2 and 7.3).
//!
//! Who needs how much memory is known before any is taken, and refused if it is too much ([`Accounts`]). `options` names the
//! modes, `supply` is what they do, `ids` brings the ids of hits near, `line` keeps the order when several threads answer.
//!
//! Why no thread waits for ever: threads take queries in the order of the queue, hold one at a time, and wait for nothing
//! else while they have its lists. So the oldest query that has not ended is one that a thread works on. What is asked for
//! in a second step, beside the queue, waits for nobody's room.

mod accounts;
mod ids;
mod line;
mod options;
mod supply;

pub use accounts::{Account, Accounts};
pub use options::{ExecutorOptions, MetaTier, Mode, PAGES_AHEAD};

use super::reader::Index;
use super::searcher::{Found, SearchHit, SearchOptions, Searcher};
use crate::error::{Error, Result};
use crate::eval::{ListSources, Scratch};
use crate::intersect::CostModel;
use crate::query::Query;
use crate::segment::read::{FieldReader, Segment};
use accounts::{Places, Shares};
use ids::Ids;
use line::Delivery;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use supply::{Place, Shape, Supply};
use tierdex_cache::{self as cache, Cache, Lookahead, PagePrefetcher, Prefetcher};
use tierdex_io::{Advice, Arena, Cells, Engine, EngineOptions, Region};

/// Queries that are planned ahead of the one that is answered, at most.
const AHEAD: usize = 1024;

/// The next queries whose second step is taken ahead of their turn, as soon as the first is done.
const PROMOTED: usize = 24;

/// Segments that a cache has at least.
const SEGMENTS_MIN: u64 = 2;

/// Answers queries in the order in which they wait, with lists that are brought near ahead of them.
pub struct Executor<'a> {
    searcher: Searcher<'a>,
    index: &'a Index,
    supply: Supply,
    threads: usize,
    /// Whether skip data is.
    resident: bool,
    cost: CostModel,
    /// Bytes for planned queries, and for the query that a thread answers, if that is bounded.
    waiting: u64,
    lists: Option<u64>,
    accounts: Accounts,
    ids: Option<Ids>,
    /// How files are read, and why not otherwise.
    engine: (String, Option<String>),
}

/// A query in the queue with its place there.
struct Waiting {
    plan: ListSources,
    place: Place,
    bytes: u64,
}

/// The queue.
struct Line<S> {
    source: S,
    ended: bool,
    waiting: VecDeque<Result<Waiting>>,
    bytes: u64,
    /// The number of the first that waits.
    next: usize,
    /// For planning.
    scratch: Scratch,
}

impl<'a> Executor<'a> {
    /// Reads what is to be resident, and sets up the cache and its workers.
    ///
    /// # Errors
    /// [`Error::Usage`] when the budget is too small, as [`Executor::accounts`] shows, or the cache; else when memory
    /// cannot be had, or the files not be read in that way.
    pub fn new(index: &'a Index, options: &ExecutorOptions) -> Result<Executor<'a>> {
        if options.threads == 0 || options.workers == 0 {
            return Err(Error::Usage(
                "an executor needs a thread that answers and one that reads".to_string(),
            ));
        }
        let accounts = Executor::accounts(index, options);
        accounts.check()?;
        keep(index, &options.meta)?;
        let (supply, engine) = supply(index, options)?;
        let (searcher, shares) = (index.searcher(), Shares::of(index, options));
        let waiting = shares.waiting(options.dram);
        // What is left of the budget has no other use.
        let lists = options.dram.map(|dram| shares.lists(Some(dram)) + shares.each(dram - accounts.needed()));
        let resident = options.meta.keeps_skips();
        let ids = if options.mode == Mode::Direct { Ids::new(index, &options.engine) } else { None };
        let (threads, cost) = (options.threads, options.cost);
        Ok(Executor {
            searcher,
            index,
            supply,
            threads,
            resident,
            cost,
            waiting,
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
    /// budget so does one whose plan or lists take more than there is for it.
    ///
    /// # Errors
    /// The first of `source` or of `answer`.
    pub fn run<E: Send>(
        &self,
        source: impl FnMut() -> std::result::Result<Option<Query>, E> + Send,
        options: &SearchOptions,
        answer: impl FnMut(usize, Result<Found>) -> std::result::Result<(), E> + Send,
    ) -> std::result::Result<(), E> {
        let line = Line {
            source,
            ended: false,
            waiting: VecDeque::new(),
            bytes: 0,
            next: 0,
            scratch: Scratch::default(),
        };
        let (line, delivery) = (Mutex::new(line), Delivery::new(answer, self.threads));
        std::thread::scope(|scope| {
            for _ in 1..self.threads {
                let thread = std::thread::Builder::new().name("answer".to_string());
                // Where the system has no thread more, those that there are answer all.
                let _ = thread.spawn_scoped(scope, || self.work(&line, options, &delivery));
            }
            self.work(&line, options, &delivery);
        });
        delivery.end()
    }

    /// How often lists were found, read and given up so far; none without a cache.
    pub fn stats(&self) -> Option<cache::Stats> {
        self.supply.stats()
    }

    /// Bytes read from the index's files so far, as whole pages.
    pub fn bytes_read(&self) -> u64 {
        let by_workers = self.stats().map_or(0, |stats| stats.bytes_read) + self.supply.pages_read();
        self.index.bytes_read() + by_workers
    }

    /// What was noted of the lookahead, the oldest first.
    pub fn lookahead_samples(&self) -> Vec<cache::Sample> {
        self.supply.lookahead_samples()
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

    /// Begins to bring near the ids of hits, for which [`Executor::searcher`] will be asked later.
    pub fn expect_ids(&self, hits: &[SearchHit]) {
        if let Some(ids) = &self.ids {
            ids.expect(&self.searcher, hits);
        }
    }

    /// What was found is put into words by it.
    pub fn searcher(&self) -> &Searcher<'a> {
        &self.searcher
    }

    /// Answers queries until there are none.
    fn work<S, A, E>(&self, line: &Mutex<Line<S>>, options: &SearchOptions, delivery: &Delivery<Found, A, E>)
    where
        S: FnMut() -> std::result::Result<Option<Query>, E>,
        A: FnMut(usize, Result<Found>) -> std::result::Result<(), E>,
    {
        let mut scratch = Scratch::default();
        loop {
            let mut queue = lock(line);
            let filled = self.fill(&mut queue, options);
            let next = queue.waiting.pop_front();
            self.promote(&mut queue, options);
            let number = queue.next;
            queue.next += 1;
            queue.bytes -= next.as_ref().map_or(0, |next| next.as_ref().map_or(0, |next| next.bytes));
            drop(queue);
            if let Err(error) = filled {
                return delivery.fail(error);
            }
            let Some(next) = next else { return };
            let owed = Owed { delivery, number };
            let found = next.and_then(|next| self.answer(next, options, &mut scratch));
            std::mem::forget(owed);
            if !delivery.give(number, found) {
                lock(line).ended = true;
                return;
            }
        }
    }

    /// Plans queries until the window is full: half of the bytes for them, so that there is room for the last, and for what is
    /// known of them later.
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
                    let waiting = self.queue(&query, options, &mut line.scratch);
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
    fn queue(&self, query: &Query, options: &SearchOptions, scratch: &mut Scratch) -> Result<Waiting> {
        let mut plan = self.searcher.plan(query, options)?;
        // The dictionary knows how many documents hold a term.
        let place = if options.k == 0 && plan.is_of_one_term() {
            Place::Base
        } else {
            self.supply.push(&mut plan, &self.shape(options), scratch)?
        };
        let bytes = memory(&place, &mut plan);
        if self.lists.is_some() {
            refuse("planning", bytes, self.waiting / 2)?;
        }
        self.fit(bytes, &mut plan)?;
        Ok(Waiting { plan, place, bytes })
    }

    /// Goes on with the first of those that wait, as long as there is room. One that fails waits as its error.
    fn promote<S>(&self, line: &mut Line<S>, options: &SearchOptions) {
        let Line { waiting, scratch, bytes, .. } = line;
        for waiting in waiting.iter_mut().take(PROMOTED) {
            if *bytes >= self.waiting {
                break;
            }
            let Ok(Waiting { plan, place, bytes: own }) = waiting else { continue };
            let promoted = self.supply.promote(place, plan, &self.shape(options), scratch);
            *bytes -= *own;
            match promoted {
                Ok(()) => {
                    *own = memory(place, plan);
                    *bytes += *own;
                }
                Err(error) => *waiting = Err(error),
            }
        }
    }

    fn answer(&self, waiting: Waiting, options: &SearchOptions, scratch: &mut Scratch) -> Result<Found> {
        // What is declared first is dropped last: the query ends when its plan holds none of its lists.
        let Waiting { mut place, mut plan, .. } = waiting;
        self.supply.attach(&mut place, &mut plan, &self.shape(options), scratch)?;
        self.fit(memory(&place, &mut plan), &mut plan)?;
        self.searcher.answer(&plan, options)
    }

    /// Has the lists of a query that takes `own` bytes read ahead as far as there is room; an error if there is too little.
    fn fit(&self, own: u64, plan: &mut ListSources) -> Result<()> {
        let Some(room) = self.lists else { return Ok(()) };
        refuse("answering", own + plan.keep_within(self.index.segments(), room.saturating_sub(own)), room)
    }

    fn shape(&self, options: &SearchOptions) -> Shape<'a> {
        let best = Some(options.k).filter(|k| *k > 0 && !options.exhaustive);
        // Candidates are found while the queue is held: other threads would wait for it.
        let steps = !options.count && self.threads == 1;
        Shape { segments: self.index.segments(), best, steps, resident: self.resident, cost: self.cost }
    }
}

/// An answer that a thread owes; one that panics gives it up, so that nobody waits for it.
struct Owed<'d, A, E>
where
    A: FnMut(usize, Result<Found>) -> std::result::Result<(), E>,
{
    delivery: &'d Delivery<Found, A, E>,
    number: usize,
}

impl<A, E> Drop for Owed<'_, A, E>
where
    A: FnMut(usize, Result<Found>) -> std::result::Result<(), E>,
{
    fn drop(&mut self) {
        self.delivery.give_up(self.number);
    }
}

/// Bytes that a query takes while it waits, about.
fn memory(place: &Place, plan: &mut ListSources) -> u64 {
    (place.memory() + plan.memory()) as u64
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

/// Sets up who brings lists near; says how files are read, and why not otherwise.
fn supply(index: &Index, options: &ExecutorOptions) -> Result<(Supply, (String, Option<String>))> {
    let through_pages = || ("pread through the page cache".to_string(), None);
    match options.mode {
        Mode::Base => return Ok((Supply::Base, through_pages())),
        Mode::BasePrefetch => {
            let ahead = match options.lookahead {
                Lookahead::Queries(queries) => queries,
                Lookahead::Adaptive | Lookahead::Pins => PAGES_AHEAD,
            };
            return Ok((Supply::Pages(PagePrefetcher::start(ahead, options.samples)?), through_pages()));
        }
        Mode::Hybrid | Mode::HybridPrefetch | Mode::Direct => {}
    }
    let bytes = cache_bytes(index, options);
    if bytes < SEGMENTS_MIN * options.segment as u64 {
        return Err(Error::Usage(format!(
            "a cache of {bytes} bytes has no room for {SEGMENTS_MIN} segments of {} bytes; make it larger, or them smaller",
            options.segment
        )));
    }
    let region = Region::new(&options.region, bytes)?;
    let cells = Cells::new(region, options.segment)?;
    if options.mode == Mode::HybridPrefetch {
        without_read_ahead(index);
    }
    let engine = EngineOptions { direct: options.mode == Mode::Direct, ..options.engine };
    let engines = (0..options.workers)
        .map(|_| Engine::new(engine, index.disk(), std::slice::from_ref(&cells)))
        .collect::<std::result::Result<Vec<_>, _>>()?;
    let described = engines.first().map_or_else(Default::default, |engine| {
        (engine.description().to_string(), engine.fallback().map(str::to_string))
    });
    let cache = Cache::new(cells, options.policy)?;
    if options.samples > 0 {
        cache.record_lookahead(options.samples);
    }
    let prefetcher = Prefetcher::start(&cache, engines, options.lookahead)?;
    let supply =
        if options.mode == Mode::Hybrid { Supply::Behind(prefetcher) } else { Supply::Ahead(prefetcher) };
    Ok((supply, described))
}

/// Has the system read no more than lists: they are asked for in pieces as large as it pays, and what stands behind them is
/// mostly another query's. That holds for as long as the index is open. That the system refuses does no harm.
fn without_read_ahead(index: &Index) {
    let fields = index.segments().iter().flat_map(Segment::fields);
    for file in fields.flat_map(FieldReader::shared) {
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
        tierdex_io::Size::Part(_) => bytes.max(SEGMENTS_MIN * options.segment as u64),
        tierdex_io::Size::Bytes(_) => bytes,
    }
}
