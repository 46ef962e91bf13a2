//! How and when the lists of a query are fetched in the modes of the thesis.

use super::whole_lists::jobs;
use crate::error::Result;
use crate::index::Index;
use crate::query::QueryPlan;
use tierdex_cache::{
    CacheStats, FetchedList, ListRequest, LookaheadSample, PagePrefetcher, PageQuery, Prefetcher, QueuedQuery,
};

/// Bytes for each list that was requested: its job of two or three parts, and its entries in queues.
pub(super) const LIST: usize = 256;

/// The way in which lists are fetched.
pub(super) enum Supply {
    /// Evaluation reads them itself.
    Base,
    /// A worker reads them into the page cache.
    Pages(PagePrefetcher),
    /// Workers, into the cache, for queries to come.
    Behind(Prefetcher),
    /// Workers, into the cache, ahead of the queries.
    Ahead(Prefetcher),
}

/// How far a query's lists are.
pub(super) enum Fetched {
    /// They stay where they are.
    Nothing,
    /// In the queue of the page cache.
    Pages(PageQuery),
    /// They will be looked for in the cache.
    Behind,
    /// In the queue of the cache.
    Ahead(QueuedQuery),
}

impl Supply {
    /// Puts a query into the queue; `jobs` are its lists then, if they are fetched one by one.
    pub(super) fn push(&self, plan: &QueryPlan, index: &Index) -> Result<(Fetched, Vec<ListRequest>)> {
        Ok(match self {
            Supply::Base => (Fetched::Nothing, Vec::new()),
            Supply::Pages(worker) => (Fetched::Pages(worker.push(jobs(plan, index)?)), Vec::new()),
            Supply::Behind(_) => (Fetched::Behind, jobs(plan, index)?),
            Supply::Ahead(prefetcher) => {
                let jobs = jobs(plan, index)?;
                (Fetched::Ahead(prefetcher.push(jobs.clone())), jobs)
            }
        })
    }

    /// Waits for the lists of a query, in the order of their jobs; `None` for those that are to be read from
    /// their files.
    pub(super) fn wait(&self, fetched: &Fetched, jobs: &[ListRequest]) -> Result<Vec<Option<FetchedList>>> {
        match (self, fetched) {
            (_, Fetched::Pages(query)) => {
                query.wait()?;
                Ok(Vec::new())
            }
            (Supply::Behind(prefetcher), Fetched::Behind) => {
                let look_up = |job: &ListRequest| {
                    let found = prefetcher.cache().lookup(job)?;
                    if found.is_none() {
                        prefetcher.fetch_detached(job.clone());
                    }
                    Ok(found.map(FetchedList::Pinned))
                };
                jobs.iter().map(look_up).collect()
            }
            (_, Fetched::Ahead(query)) => {
                (0..query.lists()).map(|list| Ok(Some(query.wait(list)?))).collect()
            }
            _ => Ok(Vec::new()),
        }
    }

    /// What the cache did; none without one.
    pub(super) fn stats(&self) -> Option<CacheStats> {
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

    /// What was noted.
    pub(super) fn lookahead_samples(&self) -> Vec<LookaheadSample> {
        match self {
            Supply::Base => Vec::new(),
            Supply::Pages(worker) => worker.lookahead_samples(),
            Supply::Behind(prefetcher) | Supply::Ahead(prefetcher) => prefetcher.cache().lookahead_samples(),
        }
    }
}
