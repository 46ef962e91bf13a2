//! The five modes: who brings a query's lists near, and when.

use crate::error::Result;
use crate::query::Plan;
use crate::segment::read::Segment;
use tierdex_cache::{Job, PagePrefetcher, PageQuery, Prefetcher, Query, Sample, Stats};

/// Who brings lists near.
pub(super) enum Supply {
    /// Nobody.
    Base,
    /// A worker, into the page cache.
    Pages(PagePrefetcher),
    /// Workers, into the cache, for queries to come.
    Behind(Prefetcher),
    /// Workers, into the cache, ahead of the queries.
    Ahead(Prefetcher),
}

/// A query's place in the queue of who brings its lists near.
pub(super) enum Place {
    Base,
    Pages(PageQuery),
    Behind(Vec<Job>),
    Ahead(Query),
}

impl Supply {
    /// Puts a query into the queue.
    pub(super) fn push(&self, jobs: Vec<Job>) -> Place {
        match self {
            Supply::Base => Place::Base,
            Supply::Pages(worker) => Place::Pages(worker.push(jobs)),
            Supply::Behind(_) => Place::Behind(jobs),
            Supply::Ahead(prefetcher) => Place::Ahead(prefetcher.push(jobs)),
        }
    }

    /// Waits for the lists of a query, and has its plan read them from where they are. The place is to be dropped behind the plan.
    pub(super) fn attach(&self, place: &mut Place, plan: &mut Plan<'_>, segments: &[Segment]) -> Result<()> {
        match (self, place) {
            (Supply::Pages(_), Place::Pages(query)) => Ok(query.wait()?),
            (Supply::Behind(prefetcher), Place::Behind(jobs)) => {
                let mut jobs = jobs.drain(..);
                plan.attach(segments, || {
                    let Some(job) = jobs.next() else { return Ok(None) };
                    let found = prefetcher.cache().lookup(&job)?;
                    if found.is_none() {
                        prefetcher.request(job);
                    }
                    Ok(found.map(tierdex_cache::List::Pinned))
                })
            }
            (Supply::Ahead(_), Place::Ahead(query)) => {
                let mut lists = 0..query.lists();
                plan.attach(segments, || Ok(lists.next().map(|list| query.wait(list)).transpose()?))
            }
            _ => Ok(()),
        }
    }

    /// What the cache did; none without one.
    pub(super) fn stats(&self) -> Option<Stats> {
        match self {
            Supply::Base | Supply::Pages(_) => None,
            Supply::Behind(prefetcher) | Supply::Ahead(prefetcher) => Some(prefetcher.cache().stats()),
        }
    }

    /// Bytes that the worker of the page cache read.
    pub(super) fn pages_read(&self) -> u64 {
        match self {
            Supply::Pages(worker) => worker.bytes_read(),
            _ => 0,
        }
    }

    /// Begins to note the lookahead; that of the page cache has done so from its start.
    pub(super) fn record_lookahead(&self, samples: usize) {
        if let Supply::Behind(prefetcher) | Supply::Ahead(prefetcher) = self {
            prefetcher.cache().record_lookahead(samples);
        }
    }

    /// What was noted.
    pub(super) fn lookahead_samples(&self) -> Vec<Sample> {
        match self {
            Supply::Base => Vec::new(),
            Supply::Pages(worker) => worker.lookahead_samples(),
            Supply::Behind(prefetcher) | Supply::Ahead(prefetcher) => prefetcher.cache().lookahead_samples(),
        }
    }
}
