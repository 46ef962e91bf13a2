//! Hit rates of eviction policies beside the best possible ones.
//!
//! *Input*: an index, a set of queries, a workload and a cache size. *Output*: for each policy the hit rate
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

use crate::{Error, Random, Result, held_index::open_index, query_lines, request::ExperimentRequest};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{collections::HashSet, path::PathBuf, time::Instant};
use tierdex::internal::{cache::PolicyKind, engine::MetaTier};
use tierdex::io::{PAGE, RegionKind, Size};
use tierdex::{Engine, EngineOptions, Index, Query, SearchHit, SearchRequest, StopSignal};
pub use workload::Workload;

/// Parameters of the experiment.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoliciesRequest {
    /// Directory of the index.
    index: PathBuf,
    /// File of queries in the query language, one per line.
    queries: PathBuf,
    /// Queries of the file that are used, the first ones.
    #[serde(default = "default_count")]
    count: usize,
    /// Sequence of queries.
    workload: Workload,
    /// Working set divided by the size of the cache.
    ratio: f64,
}

fn default_count() -> usize {
    300
}

/// Smallest cache, in pages: those that one query pins at a time.
const CACHE_PAGES_MIN: usize = 512;

/// Hits of a query.
const HITS: usize = 10;

/// What one policy did with one workload.
struct PolicyFigures {
    /// Numbers of all requested pages.
    requests: Vec<u64>,
    /// Hits and requests of the cache in the measured part.
    hits: u64,
    measured: u64,
    belady_hits: u64,
    bytes: u64,
    seconds: f64,
    found: Vec<Vec<SearchHit>>,
}

impl ExperimentRequest for PoliciesRequest {
    /// A row for each policy.
    fn answer(&self, stop: &StopSignal) -> Result<Value> {
        if !(0.01..=100.0).contains(&self.ratio) {
            return Err(Error::Usage(format!("`ratio` is {}, and must be from 0.01 to 100", self.ratio)));
        }
        let index = open_index(&self.index)?;
        let mut set = query_lines::read_queries(&self.queries, &index)?;
        set.truncate(self.count.max(1));
        let run = PolicyRun { index: &index, stop, set: &set };
        let fields = index.segments().iter().flat_map(|segment| segment.fields());
        let postings: u64 = fields.map(|field| field.postings_file().payload().end).sum();
        let order: Vec<usize> = (0..set.len()).collect();
        let once = run.measure(&order, 0, PolicyKind::Lru, (postings / PAGE) as usize + CACHE_PAGES_MIN)?;
        let set_pages = once.requests.into_iter().collect::<HashSet<u64>>().len();
        let pages = ((set_pages as f64 / self.ratio) as usize).max(CACHE_PAGES_MIN);
        let (drawn, warm) = self.workload.draw(set.len(), &mut Random::new(1));
        let queries = (drawn.len() - warm) as f64;
        let (mut rows, mut first) = (Vec::new(), None);
        for policy in PolicyKind::ALL {
            let figures = run.measure(&drawn, warm, policy, pages)?;
            if *first.get_or_insert_with(|| figures.found.clone()) != figures.found {
                return Err(Error::Failed(format!("{policy} changed the hits")));
            }
            rows.push(json!({
                "workload": self.workload,
                "ratio": self.ratio,
                "set_pages": set_pages,
                "cache_pages": pages,
                "policy": policy.to_string(),
                "hit_rate": figures.hits as f64 / figures.measured.max(1) as f64,
                "belady_hit_rate": figures.belady_hits as f64 / figures.measured.max(1) as f64,
                "qps": queries / figures.seconds,
                "bytes_read": figures.bytes as f64 / queries,
            }));
        }
        Ok(json!({ "rows": rows }))
    }
}

/// The input of all measurements.
struct PolicyRun<'a> {
    index: &'a Index,
    stop: &'a StopSignal,
    set: &'a [Query],
}

impl PolicyRun<'_> {
    /// Answers queries, by their numbers in the set, with a cache of `pages` pages, and measures hits and
    /// times. The first `warm` queries fill the cache and are not measured.
    fn measure(
        &self,
        queries: &[usize],
        warm: usize,
        policy: PolicyKind,
        pages: usize,
    ) -> Result<PolicyFigures> {
        let options = EngineOptions::new()
            .cache_size(RegionKind::Dram, Size::Bytes(pages as u64 * PAGE))
            .policy(policy)
            .meta_tier(MetaTier::Dram)
            .threads(1)
            // Reads no pages between requested ones: they are not requests, but would evict others.
            .read_costs(tierdex::ReadCosts::of_gap(0))
            .hits_max(HITS);
        let engine = Engine::new(self.index, &options)?;
        let cache = engine.page_cache();
        let recorded = Arc::new(Mutex::new(Vec::new()));
        let requests = recorded.clone();
        cache.observe_requests(move |page| lock(&requests).push(page));
        // The workload is the pages of lists: external ids are not read.
        let request = |query: &Query| SearchRequest::new(query.clone()).k(HITS).ids(false);
        let mut found = Vec::with_capacity(queries.len());
        let mut pass = |numbers: &[usize]| -> Result<()> {
            let mut rest = numbers.iter();
            let next = || {
                self.stop.check()?;
                Ok(rest.next().map(|number| request(&self.set[*number])))
            };
            engine.run_ordered(next, |_, answer| {
                found.push(answer?.hits);
                Ok(())
            })
        };
        let (warming, measured) = queries.split_at(warm);
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
        Ok(PolicyFigures {
            hits: after.hits - before.hits,
            measured: (after.hits + after.misses) - (before.hits + before.misses),
            belady_hits: belady::belady_hits(&requests, warm_requests, cache.frames()),
            bytes: after.bytes_read - before.bytes_read,
            seconds,
            found,
            requests,
        })
    }
}

fn lock(requests: &Mutex<Vec<u64>>) -> MutexGuard<'_, Vec<u64>> {
    requests.lock().unwrap_or_else(PoisonError::into_inner)
}
