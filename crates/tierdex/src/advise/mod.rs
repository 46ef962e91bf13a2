//! Advice on the size of the postings cache, from one pass over a log of queries.
//!
//! *Input*: an index, the queries of a log, and sizes of caches. *Output*: for each size the misses, the
//! queries a second and the 99th percentile of the latency that are to be expected ([`Advice`]).
//!
//! 1. [`Advisor::ask`] answers the queries one after the other. The requests for pages go to a ghost cache
//!    of each size ([`GhostCaches`]), so that the misses of each query are known for each size, and what
//!    their reads cost by the curve of the device. Queries that only warm the caches are not counted. An even
//!    sample of the counted ones is kept.
//! 2. [`Advisor::advice`] asks the sample of the index in memory, of a cache that holds all pages, and of a
//!    cache of one of the sizes (`timing`).
//! 3. The time of a query grows in proportion to the cost of its reads (`model`): by one factor for the
//!    throughput, and by one of each query for its latency, all from these measurements.

mod model;
mod timing;

use crate::engine::{Engine, EngineOptions, ResidentSizes};
use crate::{Error, Result, index::Index, index::SearchOptions, query::Query};
use model::{TimeLine, percentile};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tierdex_cache::{GhostCaches, GhostCounts, GhostMisses, ReadCosts};
use tierdex_io::{PAGE, RegionKind, Size, available_memory};
use timing::{Sample, request};

/// Bytes of all ghost caches, at most: all pages of 1.5 GB of postings with the default sizes. Of larger
/// indexes the ghosts see a sample of the pages.
const GHOST_BYTES_MAX: u64 = 64 << 20;

/// Queries in the sample, and bytes of them, at most.
const SAMPLE_QUERIES_MAX: u64 = 2048;
const SAMPLE_BYTES_MAX: usize = 4 << 20;

/// Seconds that the sample takes, about: of a slow one a part is measured, of at least `SLOW_QUERIES_MIN`.
const SAMPLE_SECONDS_MAX: f64 = 1.5;
const SLOW_QUERIES_MIN: usize = 64;

/// The smallest cache of an engine that is measured.
const CACHE_BYTES_MIN: u64 = 1 << 20;

/// The measured size has reads of about this part of the highest cost. With the smallest size, forecasts of a
/// log of a search engine were 17% too slow, as 1% of the postings were too few for its longest queries.
const MEASURED_COST: f64 = 0.75;

/// What an [`Advisor`] advises about.
#[derive(Clone, Debug)]
pub struct AdvisorOptions {
    /// Sizes of the cache; a part is that of all documents and frequencies.
    pub sizes: Vec<Size>,
    /// Threads that will answer queries; 0 is one for each processor.
    pub threads: usize,
    /// Options of the searches.
    pub search: SearchOptions,
    /// Number of queries that will be counted, at most, so that the sample is even.
    pub counted: u64,
    /// What reads of the device cost; measured if `None`.
    pub read_costs: Option<ReadCosts>,
    /// Memory in bytes for all that the advisor allocates; half of the available memory if `None`.
    pub memory: Option<u64>,
}

/// Passes queries to ghost caches, and forecasts the speed of caches of their sizes.
pub struct Advisor<'i> {
    index: &'i Index,
    options: AdvisorOptions,
    memory: AdvisorMemory,
    costs: ReadCosts,
    /// The sizes in bytes.
    bytes: Vec<u64>,
    engine: Engine,
    ghosts: Arc<Mutex<GhostCaches>>,
    /// Counts of the ghosts before the first counted query, and after the last.
    before: Option<GhostCounts>,
    after: GhostCounts,
    counted: u64,
    sample: Vec<SampledQuery>,
    sample_bytes: usize,
}

/// A counted query, and the cost of its reads by size.
struct SampledQuery {
    query: Query,
    costs: Vec<f64>,
    /// Time in the pass.
    seconds: f64,
}

/// The budget of the advisor, divided among what is in memory at the same time.
#[derive(Clone, Copy)]
struct AdvisorMemory {
    ghosts: u64,
    /// Cache of all pages, as far as they fit.
    full: u64,
    /// Cache of the size that is measured, at most.
    small: u64,
    /// Whether the index is held in memory too.
    holds: bool,
}

/// What is to be expected of caches of several sizes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Advice {
    /// Counted queries.
    pub queries: u64,
    /// Queries of the sample that was measured.
    pub sample: usize,
    /// Requested pages of a query.
    pub pages: f64,
    /// The share of the pages that the ghost caches saw; 1 if all.
    pub sampled_share: f64,
    /// Bytes of the ghost caches.
    pub ghost_bytes: u64,
    /// Queries a second of an index in memory.
    pub memory_rate: f64,
    /// Whether that was measured. Else the index does not fit, and it is the rate with all pages cached.
    pub memory_measured: bool,
    /// A forecast for each size, in the order of the options.
    pub sizes: Vec<CacheForecast>,
}

/// What is to be expected of a cache of one size.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CacheForecast {
    /// The size as it was given.
    pub size: Size,
    /// Bytes of the cache; not more than those of all pages that it can hold.
    pub cache_bytes: u64,
    /// Bytes of the engine with this cache, all parts together.
    pub engine_bytes: u64,
    /// Pages that a query misses, their reads, and what these cost.
    pub misses: GhostMisses,
    /// Queries a second of all threads.
    pub rate: f64,
    /// `rate`, divided by that of an index in memory.
    pub share: f64,
    /// The 99th percentile of the latency of queries that are asked one after the other.
    pub p99: Duration,
}

impl<'i> Advisor<'i> {
    /// Starts an engine of one thread, with a cache of all pages or of as many as the memory has.
    ///
    /// # Errors
    /// [`Error::Usage`] if the memory is too little; else as [`Engine::new`].
    pub fn new(index: &'i Index, options: AdvisorOptions) -> Result<Advisor<'i>> {
        let bytes: Vec<u64> = options.sizes.iter().map(|size| size_bytes(*size, index)).collect();
        let memory = AdvisorMemory::of(index, &options)?;
        let pass = engine_options(&options, 1, options.read_costs).cache(RegionKind::Dram, memory.full);
        let engine = Engine::new(index, &pass)?;
        let costs = options.read_costs.or(engine.measured_read_costs()).unwrap_or_default();
        let frames: Vec<u64> = bytes.iter().map(|bytes| bytes / PAGE).collect();
        let ghosts = GhostCaches::new(&frames, engine.settings().policy, costs, memory.ghosts);
        let ghosts = Arc::new(Mutex::new(ghosts));
        let requested = ghosts.clone();
        engine.page_cache().observe_requests(move |page| lock(&requested).request(page));
        Ok(Advisor {
            index,
            options,
            memory,
            costs,
            bytes,
            engine,
            ghosts,
            before: None,
            after: GhostCounts::default(),
            counted: 0,
            sample: Vec::new(),
            sample_bytes: 0,
        })
    }

    /// What reads of the device cost, if it was measured.
    pub fn measured_read_costs(&self) -> Option<ReadCosts> {
        self.engine.measured_read_costs()
    }

    /// Answers a query. Its misses count if `counted`; else it only warms the caches.
    ///
    /// # Errors
    /// As [`Engine::search`].
    pub fn ask(&mut self, query: &Query, counted: bool) -> Result<()> {
        let before = if counted { lock(&self.ghosts).counts() } else { GhostCounts::default() };
        let answered = self.engine.search(request(query, &self.options.search));
        lock(&self.ghosts).end_query();
        let seconds = answered?.took.as_secs_f64();
        if !counted {
            return Ok(());
        }
        self.after = lock(&self.ghosts).counts();
        let number_in_sample = |number: u64| number * SAMPLE_QUERIES_MAX / self.options.counted.max(1);
        let is_sampled = self.options.counted <= SAMPLE_QUERIES_MAX
            || number_in_sample(self.counted) != number_in_sample(self.counted + 1);
        if is_sampled && self.sample_bytes + query.memory() <= SAMPLE_BYTES_MAX {
            self.sample_bytes += query.memory();
            let sizes = self.after.sizes.iter().zip(&before.sizes);
            let costs = sizes.map(|(after, before)| after.cost - before.cost).collect();
            self.sample.push(SampledQuery { query: query.clone(), costs, seconds });
        }
        self.before.get_or_insert(before);
        self.counted += 1;
        Ok(())
    }

    /// Measures the sample, and forecasts. `progress` is called with the share of the measurements that are
    /// done.
    ///
    /// # Errors
    /// [`Error::Failed`] if no query was counted, or no size fits into the memory; else as [`Engine::new`]
    /// and [`Engine::search`].
    pub fn advice(mut self, progress: impl Fn(f64)) -> Result<Advice> {
        let Some(before) = &self.before else {
            return Err(Error::Failed("no query was counted: the log is too short".to_string()));
        };
        let misses = self.mean_misses(before);
        let small = self.measured_size(&misses)?;
        let cache_bytes = [self.memory.full, self.bytes[small]];
        let pages = (self.after.requests - before.requests) as f64 / self.counted as f64;
        let (sampled_share, ghost_bytes) = {
            let ghosts = lock(&self.ghosts);
            (ghosts.sampled_share(), ghosts.bytes())
        };
        let engines = engine_options(&self.options, self.options.threads, Some(self.costs));
        let mut sampled = std::mem::take(&mut self.sample);
        reduce(&mut sampled, engines.resolve(self.index).threads);
        let queries = sampled.iter().map(|sampled| sampled.query.clone()).collect();
        let sample = Sample { queries, search: self.options.search };
        let costs = self.sample_costs(&sample, cache_bytes)?;
        let Advisor { index, options, memory, engine, ghosts, bytes, counted, .. } = self;
        // Their memory is that of the engines which are measured.
        drop((engine, ghosts));
        let times = sample.measure(index, &engines, cache_bytes, memory.holds, progress)?;
        let mean = |seconds: &Vec<f64>| seconds.iter().sum::<f64>() / seconds.len().max(1) as f64;
        let alone = TimeLine::through(costs, times.alone.each_ref().map(mean));
        let times_alone = |query: usize| times.alone.each_ref().map(|seconds| seconds[query]);
        let batches = TimeLine::through(costs, times.batch);
        let memory_seconds = times.memory.unwrap_or(batches.seconds(0.0));
        let forecast = |number: usize| {
            let latency = |(query, sampled): (usize, &SampledQuery)| {
                // Of a sample of pages, the reads of a single query are unknown: as those of all queries.
                let costs = [small, number].map(|size| match sampled_share < 1.0 {
                    true => misses[size].cost,
                    false => sampled.costs[size],
                });
                let own = TimeLine::through([0.0, costs[0]], times_alone(query));
                own.seconds(costs[1].min(costs[0])) + alone.slope * (costs[1] - costs[0]).max(0.0)
            };
            let latencies = sampled.iter().enumerate().map(latency);
            let (rate, cache_bytes) = (1.0 / batches.seconds(misses[number].cost), bytes[number]);
            let cache = engines.clone().cache(RegionKind::Dram, cache_bytes).resolve(index);
            CacheForecast {
                size: options.sizes[number],
                cache_bytes,
                engine_bytes: cache.memory_report(index).needed() + cache_bytes,
                misses: misses[number],
                rate,
                share: rate * memory_seconds,
                p99: Duration::from_secs_f64(percentile(latencies.collect(), 0.99)),
            }
        };
        Ok(Advice {
            queries: counted,
            sample: sampled.len(),
            pages,
            sampled_share,
            ghost_bytes,
            memory_rate: 1.0 / memory_seconds,
            memory_measured: memory.holds,
            sizes: (0..bytes.len()).map(forecast).collect(),
        })
    }
}

impl Advisor<'_> {
    /// What a counted query has missed, by size.
    fn mean_misses(&self, before: &GhostCounts) -> Vec<GhostMisses> {
        let counted = self.counted as f64;
        let mean = |(after, before): (&GhostMisses, &GhostMisses)| GhostMisses {
            misses: (after.misses - before.misses) / counted,
            reads: (after.reads - before.reads) / counted,
            cost: (after.cost - before.cost) / counted,
        };
        self.after.sizes.iter().zip(&before.sizes).map(mean).collect()
    }

    /// The number of the size that is measured: of those that fit, the one whose reads cost about three
    /// quarters of the most expensive. Evaluations in a tiny cache pin most of it, and where little is missed
    /// the cost of reads cannot be measured.
    fn measured_size(&self, misses: &[GhostMisses]) -> Result<usize> {
        let cost = misses.iter().map(|misses| misses.cost).fold(0.0, f64::max) * MEASURED_COST;
        let distance = |size: &usize| (misses[*size].cost - cost).abs();
        let fitting = (0..misses.len()).filter(|size| self.bytes[*size] <= self.memory.small);
        fitting.min_by(|one, other| distance(one).total_cmp(&distance(other))).ok_or_else(|| {
            let why = "all sizes are too large to be measured with this memory: one of at most";
            Error::Failed(format!("{why} {} bytes is needed", self.memory.small))
        })
    }

    /// What the reads of a query of the sample cost in ghost caches of these sizes, if it is asked again.
    /// The ghosts, not the reads of the caches themselves, because forecasts are from ghosts too: in both a
    /// query that reads in several rounds has too few reads.
    fn sample_costs(&self, sample: &Sample, bytes: [u64; 2]) -> Result<[f64; 2]> {
        let (frames, policy) = (bytes.map(|bytes| bytes / PAGE), self.engine.settings().policy);
        *lock(&self.ghosts) = GhostCaches::new(&frames, policy, self.costs, self.memory.ghosts);
        let mut counts = GhostCounts::default();
        for _ in 0..2 {
            counts = lock(&self.ghosts).counts();
            for query in &sample.queries {
                self.engine.search(request(query, &sample.search))?;
                lock(&self.ghosts).end_query();
            }
        }
        let after = lock(&self.ghosts).counts();
        let cost = |size: usize| after.sizes[size].cost - counts.sizes[size].cost;
        Ok([0, 1].map(|size| cost(size) / sample.queries.len().max(1) as f64))
    }
}

impl AdvisorMemory {
    /// Divides the budget. Two engines, which share the metadata of the index, and the sample have what they
    /// need beside their caches. Of the rest three eighths are for all pages in a cache, three for the index
    /// in memory, and one each for the ghosts and the cache of the measured size.
    fn of(index: &Index, options: &AdvisorOptions) -> Result<AdvisorMemory> {
        let memory = options.memory.unwrap_or_else(|| available_memory().unwrap_or(u64::MAX) / 2);
        let engine = |options: EngineOptions| options.resolve(index).memory_report(index).needed();
        let engines = || engine_options(options, options.threads, None);
        let small = engines().cache(RegionKind::Dram, CACHE_BYTES_MIN);
        let shared = ResidentSizes::of(index).in_dram(&small.resolve(index).metadata_location());
        let fixed = 2 * engine(small) - shared + 2 * SAMPLE_BYTES_MAX as u64;
        let least = fixed + 8 * CACHE_BYTES_MIN;
        if memory < least {
            let why = "memory is too little for this index: at least";
            return Err(Error::Usage(format!("{memory} bytes of {why} {least} bytes are needed")));
        }
        // A page in the cache has metadata too.
        let eighth = (memory - fixed) / 8;
        let eighth = eighth - eighth / 32;
        Ok(AdvisorMemory {
            ghosts: eighth.min(GHOST_BYTES_MAX),
            full: (3 * eighth).min(all_bytes(index)) / PAGE * PAGE,
            small: eighth,
            holds: engine(engines().keep_in(RegionKind::Dram)) <= 3 * eighth,
        })
    }
}

/// Keeps a part of the sample, evenly, if it takes `threads` threads too long.
fn reduce(sample: &mut Vec<SampledQuery>, threads: usize) {
    let seconds = sample.iter().map(|sampled| sampled.seconds).sum::<f64>() / threads as f64;
    let (all, mut number) = (sample.len(), 0);
    let kept = ((all as f64 * SAMPLE_SECONDS_MAX / seconds.max(1e-9)) as usize).max(SLOW_QUERIES_MIN);
    sample.retain(|_| {
        number += 1;
        kept >= all || (number - 1) * kept / all != number * kept / all
    });
}

fn engine_options(options: &AdvisorOptions, threads: usize, costs: Option<ReadCosts>) -> EngineOptions {
    let engine = EngineOptions::new().threads(threads).hits_max(options.search.k).previews(false).growth(0);
    costs.into_iter().fold(engine, EngineOptions::read_costs)
}

/// The size of a cache in bytes, of at least two pages, and at most as many as it can use.
fn size_bytes(size: Size, index: &Index) -> u64 {
    (size.of(index.postings_bytes()).min(all_bytes(index)) / PAGE).max(2) * PAGE
}

/// Bytes of a cache that holds all pages which are read through it. A quarter more than these, because
/// shards have unequal shares.
fn all_bytes(index: &Index) -> u64 {
    let ids: u64 = index.segments().iter().map(|segment| segment.ids().file().payload().end).sum();
    let sizes = ResidentSizes::of(index);
    let pages = (sizes.terms + sizes.skips + sizes.lists + ids) / PAGE + 256;
    (pages + pages / 4) * PAGE
}

fn lock(ghosts: &Mutex<GhostCaches>) -> MutexGuard<'_, GhostCaches> {
    ghosts.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_sample_is_reduced_evenly() {
        let number = |number: f64| {
            let query = Query::All { boost: 1.0 };
            SampledQuery { query, costs: vec![number], seconds: 3.9999e-3 * SAMPLE_SECONDS_MAX }
        };
        let mut sample: Vec<SampledQuery> = (0..1000).map(f64::from).map(number).collect();
        reduce(&mut sample, 4);
        assert_eq!(sample.len(), 1000);
        reduce(&mut sample, 1);
        assert!(sample.iter().map(|sampled| sampled.costs[0]).eq((3..1000).step_by(4).map(f64::from)));
        sample.iter_mut().for_each(|sampled| sampled.seconds = 10.0);
        reduce(&mut sample, 1);
        assert_eq!(sample.len(), SLOW_QUERIES_MIN);
    }
}
