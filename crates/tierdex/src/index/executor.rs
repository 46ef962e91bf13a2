//! Queries that wait, and a cache that is filled ahead of them.
//!
//! *You have* an index on disk, and queries in a queue. *You get* their answers in order. Each is planned when it enters a
//! window of the queue; its lists are asked for at once, and workers fetch them while the queries before it are answered. When
//! its turn comes its lists are in the cache, or on their way (thesis, sections 7.2 and 7.3: `HybridPrefetch`).
//!
//! Terms, skip data and lengths stay in memory; of postings there is nothing in memory but the cache.

use super::reader::Index;
use super::searcher::{Found, SearchOptions, Searcher};
use crate::error::Result;
use crate::query::{Plan, Query};
use crate::segment::read::Segment;
use std::collections::VecDeque;
use tierdex_cache::{self as cache, Cache, Lookahead, PolicyKind, Prefetcher};
use tierdex_io::{Cells, Engine, EngineOptions, Region, RegionKind, Size};

/// Queries that are planned ahead of the one that is answered, at most.
const AHEAD: usize = 1024;

/// What an [`Executor`] reads with, and where to.
#[derive(Clone, Debug)]
pub struct CacheOptions {
    /// The memory that holds postings.
    pub region: RegionKind,
    /// How much of it; parts are those of all documents and frequencies of the index.
    pub size: Size,
    /// Bytes of a segment of the cache.
    pub segment: usize,
    /// What gives way.
    pub policy: PolicyKind,
    /// How far ahead lists are fetched.
    pub lookahead: Lookahead,
    /// How files are read.
    pub engine: EngineOptions,
    /// Threads that read.
    pub workers: usize,
}

/// Answers queries in the order in which they wait, out of a cache.
pub struct Executor<'a> {
    searcher: Searcher<'a>,
    segments: &'a [Segment],
    prefetcher: Prefetcher,
    /// How files are read, and why not otherwise.
    engine: (String, Option<String>),
}

/// A query in the queue with its place there.
struct Waiting<'q> {
    plan: Plan<'q>,
    lists: cache::Query,
}

impl<'a> Executor<'a> {
    /// Reads terms, skip data and lengths, and sets up the cache and its workers.
    ///
    /// # Errors
    /// When the memory cannot be had, or the files not be read in that way.
    pub fn new(index: &'a Index, options: &CacheOptions) -> Result<Executor<'a>> {
        index.keep_places()?;
        let region = Region::new(&options.region, options.size.of(index.postings_bytes()))?;
        let cells = Cells::new(region, options.segment)?;
        let engines = (0..options.workers)
            .map(|_| Engine::new(options.engine, index.disk(), std::slice::from_ref(&cells)))
            .collect::<std::result::Result<Vec<_>, _>>()?;
        let engine = engines.first().map_or_else(Default::default, |engine| {
            (engine.description().to_string(), engine.fallback().map(str::to_string))
        });
        let prefetcher = Prefetcher::start(&Cache::new(cells, options.policy)?, engines, options.lookahead)?;
        Ok(Executor { searcher: index.searcher(), segments: index.segments(), prefetcher, engine })
    }

    /// Answers `queries` one after the other: calls `answer` with the number of each and what was found. A query that
    /// fails is answered by its error, and harms no other.
    ///
    /// # Errors
    /// The first of `answer`.
    pub fn run<E>(
        &self,
        queries: &[Query],
        options: &SearchOptions,
        mut answer: impl FnMut(usize, Result<Found>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut waiting = VecDeque::with_capacity(AHEAD.min(queries.len()));
        let mut rest = queries.iter();
        for number in 0..queries.len() {
            let room = AHEAD - waiting.len();
            waiting.extend(rest.by_ref().take(room).map(|query| self.queue(query, options)));
            // The oldest of them: nothing that it waits for waits for a later one.
            let Some(next) = waiting.pop_front() else { break };
            answer(number, next.and_then(|next: Waiting<'_>| self.answer(next, options)))?;
        }
        Ok(())
    }

    /// How often lists were found, read and given up so far.
    pub fn stats(&self) -> cache::Stats {
        self.prefetcher.cache().stats()
    }

    /// How files are read.
    pub fn engine(&self) -> &str {
        &self.engine.0
    }

    /// Why they are not read in the way that was hoped for.
    pub fn fallback(&self) -> Option<&str> {
        self.engine.1.as_deref()
    }

    /// What was found is put into words by it.
    pub fn searcher(&self) -> &Searcher<'a> {
        &self.searcher
    }

    /// Plans a query, and has its lists fetched.
    fn queue<'q>(&self, query: &'q Query, options: &SearchOptions) -> Result<Waiting<'q>> {
        let mut plan = self.searcher.plan(query, options)?;
        let lists = self.prefetcher.push(plan.jobs(self.segments)?);
        Ok(Waiting { plan, lists })
    }

    fn answer(&self, waiting: Waiting<'_>, options: &SearchOptions) -> Result<Found> {
        let Waiting { mut plan, lists } = waiting;
        let mut numbers = 0..lists.lists();
        plan.attach(|| {
            let number = numbers.next().expect("a list for each job");
            Ok(lists.wait(number)?)
        })?;
        self.searcher.answer(&plan, options)
    }
}
