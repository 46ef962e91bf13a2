//! A request under evaluation, by one evaluation or by several in parallel.
//!
//! Each evaluation covers one contiguous range of documents, like a slice of Lucene's `IndexSearcher`. Once
//! it has run for a while and another thread is idle, it hands the second half of its remaining documents to
//! that thread as a task. All evaluations share one top-k threshold. The last one to finish sends the
//! answer.

use super::paged::Stop;
use super::queue::Job;
use super::request::{Hits, Priority, SearchRequest, TotalHits};
use super::snapshot::Snapshot;
use super::ticket::Reply;
use crate::error::{Error, Result};
use crate::index::{PartFound, SearchOptions};
use crate::query::{Query, QueryPlan};
use crate::rank::{SharedThreshold, Statistics};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A request that a thread has taken.
pub(super) struct ActiveRequest {
    pub(super) query: Query,
    pub(super) options: SearchOptions,
    pub(super) statistics: Option<Arc<Statistics>>,
    pub(super) priority: Priority,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) stop: Stop,
    /// Made by the first evaluation.
    pub(super) planned: OnceLock<Planned>,
    arrived: Instant,
    queued: Duration,
    state: Mutex<RequestState>,
}

/// The plan, and the bytes of it and of an evaluation.
pub(super) struct Planned {
    pub(super) plan: QueryPlan,
    pub(super) memory: u64,
}

struct RequestState {
    /// Evaluations started so far; `evaluations` counts those that are still running.
    parts: usize,
    evaluations: usize,
    found: Option<PartFound>,
    failed: Option<Error>,
    /// Made by the first evaluation.
    threshold: Option<Arc<SharedThreshold>>,
    reply: Option<Reply>,
}

/// Documents of a request that an evaluation is to look at.
pub(super) struct Task {
    pub(super) request: Arc<ActiveRequest>,
    pub(super) documents: Range<u32>,
}

impl Task {
    /// All documents of a request that waited.
    pub(super) fn first(job: Job) -> Task {
        let Job { request, snapshot, reply, arrived } = job;
        let SearchRequest { query, options, statistics, deadline, priority, .. } = request;
        let documents = snapshot.searcher().documents();
        let request = ActiveRequest {
            query,
            options,
            statistics,
            priority,
            snapshot,
            stop: Stop { flag: reply.cancel_handle(), deadline },
            planned: OnceLock::new(),
            arrived,
            queued: arrived.elapsed(),
            state: Mutex::new(RequestState {
                parts: 1,
                evaluations: 1,
                found: None,
                failed: None,
                threshold: None,
                reply: Some(reply),
            }),
        };
        Task { request: Arc::new(request), documents }
    }
}

impl ActiveRequest {
    /// Documents for another evaluation.
    pub(super) fn divide(self: &Arc<Self>, documents: Range<u32>) -> Task {
        let mut state = self.lock();
        state.parts += 1;
        state.evaluations += 1;
        drop(state);
        Task { request: self.clone(), documents }
    }

    /// The threshold of all evaluations; `first` makes it.
    pub(super) fn threshold(
        &self,
        first: impl FnOnce() -> Result<Arc<SharedThreshold>>,
    ) -> Result<Arc<SharedThreshold>> {
        if let Some(threshold) = &self.lock().threshold {
            return Ok(threshold.clone());
        }
        // It may be suspended: the lock is not held.
        let threshold = first()?;
        self.lock().threshold = Some(threshold.clone());
        Ok(threshold)
    }

    /// Merges the result of a finished evaluation. The last one sends the answer, or returns a task if the
    /// query must be evaluated again because the initial threshold was too high.
    pub(super) fn finish(self: &Arc<Self>, done: Result<PartFound>) -> Option<Task> {
        let k = self.options.k;
        let mut state = self.lock();
        let nothing = || PartFound { hits: Vec::new(), total: 0, complete: false };
        let done = if let Err(Error::Interrupted) = done { Ok(nothing()) } else { done };
        match (done, &mut state.found) {
            (Ok(found), Some(others)) => others.merge(found, k),
            (Ok(found), none) => *none = Some(found),
            (Err(error), _) => {
                state.failed.get_or_insert(error);
                // The other parts stop.
                self.stop.flag.cancel();
            }
        }
        state.evaluations -= 1;
        if state.evaluations > 0 {
            return None;
        }
        let (found, failed) = (state.found.take(), state.failed.take());
        if let (Some(some), None, Some(threshold)) = (&found, &failed, &state.threshold)
            && let documents = self.snapshot.searcher().documents()
            && some.threshold_was_too_high(k, &documents, threshold)
        {
            state.threshold = Some(Arc::default());
            state.parts = 0;
            drop(state);
            return Some(self.divide(documents));
        }
        let (parts, reply) = (state.parts, state.reply.take());
        drop(state);
        // A callback may run here.
        if let Some(reply) = reply {
            reply.send(self.answer(found, failed, parts));
        }
        None
    }

    fn answer(&self, found: Option<PartFound>, failed: Option<Error>, parts: usize) -> Result<Hits> {
        if let Some(error) = failed {
            return Err(error);
        }
        let complete = found.as_ref().is_some_and(|found| found.complete);
        if !complete && self.stop.flag.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let (hits, total) = match (found, self.planned.get()) {
            (Some(found), Some(planned)) => {
                let found = found.finish(&self.options, planned.plan.scale);
                (found.hits, found.total)
            }
            _ => (Vec::new(), 0),
        };
        let is_exact = complete && self.options.is_exact(hits.len());
        let total = if is_exact { TotalHits::Exact(total) } else { TotalHits::AtLeast(total) };
        let (took, queued) = (self.arrived.elapsed(), self.queued);
        Ok(Hits { hits, total, timed_out: !complete, parts, took, queued, snapshot: self.snapshot.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, RequestState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
