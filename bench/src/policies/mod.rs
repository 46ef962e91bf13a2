//! Hit rates of eviction policies beside the best possible ones.
//!
//! *Input*: an index and a set of queries. *Output*: for each workload, cache size and policy the hit rate
//! of the cache of pages, that of Belady's rule for the same requests, queries per second and bytes read.
//!
//! 1. The set is run once in a cache that holds everything: its distinct pages are the working set.
//! 2. A cache has the working set divided by a ratio: with ratio 2 the working set is twice the cache.
//! 3. Each policy runs the same queries on one thread and starts with an empty cache. The hits of all
//!    policies must be equal.
//! 4. Belady's rule is computed from the pages that this run requested. A request is a lookup in the page
//!    table: a query that needs a page again after it released it makes another request.

mod belady;
mod workload;

use crate::{Error, Random, Result, query_lines};
use clap::Args;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{collections::HashSet, path::PathBuf, time::Instant};
use tierdex::internal::{cache::PolicyKind, engine::MetaTier};
use tierdex::io::{PAGE, PosixDisk, RegionKind, Size};
use tierdex::{Engine, EngineOptions, Index, Query, SearchHit, SearchRequest, StopSignal};
pub use workload::Workload;

/// Flags of the experiment.
#[derive(Args, Clone, Debug)]
pub struct Flags {
    /// Directory of the index
    #[arg(long)]
    pub index: PathBuf,
    /// File of queries in the query language, one per line
    #[arg(long)]
    pub queries: PathBuf,
    /// Queries of the file that are used, the first ones
    #[arg(long, default_value_t = 300)]
    pub count: usize,
    /// Sequences of queries
    #[arg(long, value_delimiter = ',', default_value = "cyclic,rp25,rp50,zipf,scan")]
    pub workloads: Vec<Workload>,
    /// Working set divided by the size of the cache
    #[arg(long, value_delimiter = ',', default_value = "0.5,0.9,1.1,2")]
    pub ratios: Vec<f64>,
    /// Eviction policies
    #[arg(long, value_delimiter = ',', default_value = "lru,s3-fifo,sieve")]
    pub policies: Vec<PolicyKind>,
    /// Hits per query
    #[arg(long, default_value_t = 10)]
    pub k: usize,
    /// Count all matching documents
    #[arg(long)]
    pub matches: bool,
}

/// Smallest cache, in pages: those that one query pins at a time.
const CACHE_PAGES_MIN: usize = 512;

/// What one policy did with one workload.
struct PolicyFigures {
    /// Hits and requests of the cache in the measured part.
    hits: u64,
    requests: u64,
    belady_hits: u64,
    bytes: u64,
    seconds: f64,
    found: Vec<Vec<SearchHit>>,
}

/// A row for each workload, ratio and policy.
///
/// # Errors
/// If flags are invalid, if the queries or the index cannot be read, or after an interruption.
pub fn run(flags: &Flags, stop: &StopSignal) -> Result<Vec<Value>> {
    if let Some(ratio) = flags.ratios.iter().find(|ratio| !(0.01..=100.0).contains(*ratio)) {
        return Err(Error::Usage(format!("--ratios {ratio}: a ratio lies between 0.01 and 100")));
    }
    let index = Index::open_on(Arc::new(PosixDisk::open(&flags.index)?))?;
    let mut set = query_lines::read_queries(&flags.queries, &index)?;
    set.truncate(flags.count.max(1));
    let all: u64 = index.segments().iter().flat_map(|segment| segment.fields()).map(postings_bytes).sum();
    let whole = (all / PAGE) as usize + CACHE_PAGES_MIN;
    let order: Vec<usize> = (0..set.len()).collect();
    let mut working_set = HashSet::new();
    let source = PolicyRun { index: &index, flags, stop, set: &set };
    let all = DrawnWorkload { queries: &order, warm: 0 };
    source.measure(all, PolicyKind::Lru, whole, |requests| {
        working_set.extend(requests.iter().copied());
    })?;
    let mut rows = Vec::new();
    for workload in &flags.workloads {
        let (drawn, warm) = workload.draw(set.len(), &mut Random::new(1));
        for ratio in &flags.ratios {
            let pages = ((working_set.len() as f64 / ratio) as usize).max(CACHE_PAGES_MIN);
            let mut first: Option<Vec<Vec<SearchHit>>> = None;
            for policy in &flags.policies {
                let sample = DrawnWorkload { queries: &drawn, warm };
                let run = source.measure(sample, *policy, pages, |_| {})?;
                if first.get_or_insert_with(|| run.found.clone()) != &run.found {
                    return Err(Error::Failed(format!("{policy} changed the hits of {workload}")));
                }
                let queries = (drawn.len() - warm) as f64;
                rows.push(json!({
                    "workload": workload.to_string(),
                    "ratio": ratio,
                    "set_pages": working_set.len(),
                    "cache_pages": pages,
                    "policy": policy.to_string(),
                    "hit_rate": run.hits as f64 / run.requests.max(1) as f64,
                    "belady_hit_rate": run.belady_hits as f64 / run.requests.max(1) as f64,
                    "qps": queries / run.seconds,
                    "bytes_read": run.bytes as f64 / queries,
                }));
            }
        }
    }
    Ok(rows)
}

fn postings_bytes(field: &tierdex::internal::segment::read::FieldReader) -> u64 {
    field.postings_file().payload().end
}

/// The input of all measurements.
#[derive(Clone, Copy)]
struct PolicyRun<'a> {
    index: &'a Index,
    flags: &'a Flags,
    stop: &'a StopSignal,
    set: &'a [Query],
}

/// A sequence of queries, by their numbers in the set. The first `warm` fill the cache and are not measured.
#[derive(Clone, Copy)]
struct DrawnWorkload<'a> {
    queries: &'a [usize],
    warm: usize,
}

impl PolicyRun<'_> {
    /// Answers the queries with a cache of `pages` pages, and measures hits and times. Passes the numbers
    /// of all requested pages to `see`.
    fn measure(
        self,
        drawn: DrawnWorkload<'_>,
        policy: PolicyKind,
        pages: usize,
        mut see: impl FnMut(&[u64]),
    ) -> Result<PolicyFigures> {
        let PolicyRun { index, flags, stop, set } = self;
        let options = EngineOptions::new()
            .cache_size(RegionKind::Dram, Size::Bytes(pages as u64 * PAGE))
            .policy(policy)
            .meta_tier(MetaTier::Dram)
            .threads(1)
            // Reads no pages between requested ones: they are not requests, but would evict others.
            .read_costs(tierdex::ReadCosts::of_gap(0))
            .hits_max(flags.k);
        let engine = Engine::new(index, &options)?;
        let cache = engine.page_cache();
        let recorded = Arc::new(Mutex::new(Vec::new()));
        let requests = recorded.clone();
        cache.observe_requests(move |page| lock(&requests).push(page));
        // The workload is the pages of lists: external ids are not read.
        let request =
            |query: &Query| SearchRequest::new(query.clone()).k(flags.k).count(flags.matches).ids(false);
        let mut found = Vec::with_capacity(drawn.queries.len());
        let mut pass = |numbers: &[usize]| -> Result<()> {
            let mut rest = numbers.iter();
            let next = || {
                stop.check().map_err(|_| Error::Interrupted)?;
                Ok(rest.next().map(|number| request(&set[*number])))
            };
            engine.run_ordered(next, |_, answer| {
                found.push(answer?.hits);
                Ok(())
            })
        };
        let (warming, measured) = drawn.queries.split_at(drawn.warm);
        pass(warming)?;
        let mut requests = std::mem::take(&mut *lock(&recorded));
        let warm_requests = requests.len();
        let (before, start) = (cache.stats(), Instant::now());
        pass(measured)?;
        let (after, seconds) = (cache.stats(), start.elapsed().as_secs_f64());
        requests.extend(std::mem::take(&mut *lock(&recorded)));
        // A lookup for which all frames are pinned gives the policy no page.
        let lookups = (after.hits + after.misses) - after.no_frame;
        if requests.len() as u64 != lookups {
            return Err(Error::Failed(format!("{} of {lookups} requests were recorded", requests.len())));
        }
        see(&requests);
        Ok(PolicyFigures {
            hits: after.hits - before.hits,
            requests: (after.hits + after.misses) - (before.hits + before.misses),
            belady_hits: belady::belady_hits(&requests, warm_requests, cache.frames()),
            bytes: after.bytes_read - before.bytes_read,
            seconds,
            found,
        })
    }
}
fn lock(requests: &Mutex<Vec<u64>>) -> MutexGuard<'_, Vec<u64>> {
    requests.lock().unwrap_or_else(PoisonError::into_inner)
}
