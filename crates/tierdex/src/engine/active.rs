//! A request in progress, with one evaluation or with several on different threads.
//!
//! Each evaluation covers one contiguous range of documents, like a slice of Lucene's `IndexSearcher`. Once
//! it has run for a while and another thread is idle, it hands the second half of its remaining documents to
//! that thread as a task. All evaluations share one top-k threshold. The last one to finish merges the
//! partial results and sends the reply.

use super::preview::Preview;
use super::request::{Hits, RequestCost, SearchRequest, TotalHits};
use super::ticket::{CancelHandle, Reply};
use super::{pool::Reservation, queued_request::QueuedRequest, snapshot::Snapshot};
use crate::index::{Explanation, HitIds, PartialResult, SearchHit, result_ids_bytes};
use crate::rank::{SharedThreshold, Statistics};
use crate::{Error, Result, eval::SearchPlan, segment::read::BlockSource};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A request that a thread has taken.
pub(super) struct ActiveRequest {
    /// The request as it was submitted.
    pub(super) asked: SearchRequest,
    /// The order in which requests are answered: interactive ones first, then by arrival.
    pub(super) rank: u64,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) stop: StopCondition,
    /// Set by the first evaluation.
    pub(super) planned: OnceLock<MeasuredPlan>,
    arrived: Instant,
    queued: Duration,
    state: Mutex<RequestState>,
    /// Memory of the plan that is reserved with the request.
    pub(super) plan_reserved: u64,
    _reserved: Reservation,
}

/// The stop condition of a request: cancellation and deadline.
pub(super) struct StopCondition {
    pub(super) cancel_handle: CancelHandle,
    pub(super) deadline: Option<Instant>,
}

impl StopCondition {
    /// Whether the request was cancelled, or its deadline has passed.
    pub(super) fn is_due(&self) -> bool {
        self.is_due_at(Instant::now)
    }

    pub(super) fn is_due_at(&self, now: impl FnOnce() -> Instant) -> bool {
        self.cancel_handle.is_cancelled() || self.deadline.is_some_and(|deadline| deadline <= now())
    }
}

/// Pages that evaluations pinned in the cache.
#[derive(Clone, Copy, Default)]
pub(super) struct PageCount {
    pub(super) pages: u64,
    /// Those that were not in the cache.
    pub(super) missed: u64,
}

/// A plan, and the bytes of memory that an evaluation of it reserves.
pub(super) struct MeasuredPlan {
    pub(super) plan: SearchPlan,
    pub(super) memory: u64,
}

struct RequestState {
    /// Evaluations started so far.
    parts: usize,
    /// Evaluations that have not finished.
    running: usize,
    found: Option<PartialResult>,
    /// The statistics that were collected, if they are requested.
    collected: Option<Box<Statistics>>,
    explanation: Option<Box<Explanation>>,
    failed: Option<Error>,
    /// Of the evaluations that have finished.
    pages: PageCount,
    /// Set by the first evaluation.
    threshold: Option<Arc<SharedThreshold>>,
    reply: Option<Reply>,
}

/// A document range of a request, to be searched by one evaluation.
pub(super) struct SearchTask {
    pub(super) request: Arc<ActiveRequest>,
    pub(super) documents: Range<u32>,
    /// Memory of the evaluation, if it was reserved before.
    pub(super) reserved: Option<Reservation>,
}

/// What is read of hits after the evaluation.
pub(super) trait HitSource {
    /// Returns the blocks of external ids.
    fn blocks(&self) -> &dyn BlockSource;

    /// The pages that were pinned since the last call.
    fn take_page_count(&self) -> PageCount;

    /// The previews that a request asks for, as far as its deadline permits.
    fn read_previews(&self, request: &ActiveRequest, hits: &[SearchHit]) -> Result<Vec<Preview>>;
}

/// What is left to do after an evaluation.
#[allow(clippy::large_enum_variant, reason = "there is one for each evaluation, moved a few times")]
pub(super) enum Finished {
    /// Nothing: other evaluations of the request run.
    Part,
    /// To evaluate the query again.
    Again(SearchTask),
    /// To send the result of the request.
    Request(Reply, Result<Hits>),
}

impl Finished {
    /// Sends the result, if it is known. A callback may run here. Returns a task that is left.
    pub(super) fn send(self) -> Option<SearchTask> {
        match self {
            Finished::Part => None,
            Finished::Again(task) => Some(task),
            Finished::Request(reply, result) => {
                reply.send(result);
                None
            }
        }
    }
}

impl SearchTask {
    /// All documents of a request that leaves the queue.
    pub(super) fn first(queued: QueuedRequest) -> SearchTask {
        let QueuedRequest { request, snapshot, reply, arrived, number, reserved } = queued;
        let plan_reserved = request.plan_memory(&snapshot);
        let documents = snapshot.searcher().documents();
        let rank = (request.priority as u64) << 63 | number;
        let deadline = request.deadline;
        let request = ActiveRequest {
            asked: request,
            rank,
            snapshot,
            stop: StopCondition { cancel_handle: reply.cancel_handle(), deadline },
            planned: OnceLock::new(),
            arrived,
            queued: arrived.elapsed(),
            state: Mutex::new(RequestState {
                parts: 1,
                running: 1,
                found: None,
                collected: None,
                explanation: None,
                failed: None,
                pages: PageCount::default(),
                threshold: None,
                reply: Some(reply),
            }),
            plan_reserved,
            _reserved: reserved,
        };
        SearchTask { request: Arc::new(request), documents, reserved: None }
    }
}

impl PageCount {
    /// Adds the pages that a source has pinned since the last call.
    fn add(&mut self, source: Option<&dyn HitSource>) {
        let more = source.map_or_else(PageCount::default, HitSource::take_page_count);
        self.pages += more.pages;
        self.missed += more.missed;
    }
}

impl ActiveRequest {
    /// A task for another evaluation.
    pub(super) fn divide(
        self: &Arc<Self>,
        documents: Range<u32>,
        reserved: Option<Reservation>,
    ) -> SearchTask {
        let mut state = self.lock();
        state.parts += 1;
        state.running += 1;
        drop(state);
        SearchTask { request: self.clone(), documents, reserved }
    }

    /// The time in the queue, and the time since the arrival.
    pub(super) fn times(&self) -> (Duration, Duration) {
        (self.queued, self.arrived.elapsed())
    }

    /// Keeps the statistics that were requested until the request is answered.
    pub(super) fn set_collected(&self, statistics: Statistics) {
        self.lock().collected = Some(Box::new(statistics));
    }

    /// Keeps the explanation that was requested until the request is answered.
    pub(super) fn set_explanation(&self, explanation: Explanation) {
        self.lock().explanation = Some(Box::new(explanation));
    }

    /// The threshold that all evaluations share; the first evaluation computes it with `initial`.
    pub(super) fn threshold(
        &self,
        initial: impl FnOnce() -> Result<Arc<SharedThreshold>>,
    ) -> Result<Arc<SharedThreshold>> {
        if let Some(threshold) = &self.lock().threshold {
            return Ok(threshold.clone());
        }
        // Without the lock: the computation may be suspended.
        let threshold = initial()?;
        self.lock().threshold = Some(threshold.clone());
        Ok(threshold)
    }

    /// Merges the result of a finished evaluation. The last one reads external ids and previews from
    /// `source` and has the result; or the query must be evaluated again because the initial threshold was
    /// too high.
    pub(super) fn finish(
        self: &Arc<Self>,
        done: Result<PartialResult>,
        source: Option<&dyn HitSource>,
    ) -> Finished {
        let k = self.asked.options.k;
        let mut state = self.lock();
        state.pages.add(source);
        let nothing = || PartialResult { hits: Vec::new(), total: 0, complete: false };
        let done = if let Err(Error::Interrupted) = done { Ok(nothing()) } else { done };
        match (done, &mut state.found) {
            (Ok(found), Some(others)) => others.merge(found, k),
            (Ok(found), none) => *none = Some(found),
            (Err(error), _) => {
                state.failed.get_or_insert(error);
                // Stops the other evaluations.
                self.stop.cancel_handle.cancel();
            }
        }
        state.running -= 1;
        if state.running > 0 {
            return Finished::Part;
        }
        let (found, failed) = (state.found.take(), state.failed.take());
        if let (Some(result), None, Some(threshold)) = (&found, &failed, &state.threshold)
            && result.was_initial_threshold_too_high(k, self.snapshot.index(), threshold)
        {
            state.threshold = Some(Arc::default());
            state.parts = 0;
            drop(state);
            return Finished::Again(self.divide(self.snapshot.searcher().documents(), None));
        }
        let (parts, reply) = (state.parts, state.reply.take());
        let (statistics, explanation) = (state.collected.take(), state.explanation.take());
        let mut pages = state.pages;
        drop(state);
        let result = || {
            let hits = self.result(found, failed, parts, source)?;
            // Those of ids and previews.
            pages.add(source);
            let memory = self.planned.get().map_or(0, |planned| planned.memory);
            let cost = RequestCost { memory, pages: pages.pages, pages_missed: pages.missed };
            Ok(Hits { statistics, explanation, cost, ..hits })
        };
        reply.map_or(Finished::Part, |reply| Finished::Request(reply, result()))
    }

    fn result(
        &self,
        found: Option<PartialResult>,
        failed: Option<Error>,
        parts: usize,
        source: Option<&dyn HitSource>,
    ) -> Result<Hits> {
        if let Some(error) = failed {
            return Err(error);
        }
        let complete = found.as_ref().is_some_and(|found| found.complete);
        if !complete && self.stop.cancel_handle.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let (hits, units, total, scale) = match (found, self.planned.get()) {
            (Some(found), Some(planned)) => {
                let scale = planned.plan.query.scale;
                let units = |found: &PartialResult| found.hits.iter().map(|hit| hit.score).collect();
                let units = self.asked.statistics.as_ref().map_or_else(Vec::new, |_| units(&found));
                let found = found.into_result(&self.asked.options, scale);
                (found.hits, units, found.total, scale.exponent())
            }
            _ => (Vec::new(), Vec::new(), 0, 0),
        };
        let ids = match source.filter(|_| self.asked.options.ids && complete && !self.stop.is_due()) {
            // An error is reported when the ids are asked for.
            Some(source) => {
                let documents = hits.iter().map(|hit| hit.document);
                let searcher = self.snapshot.searcher();
                let read = || searcher.read_ids(documents, result_ids_bytes(hits.len()), source.blocks());
                catch_unwind(AssertUnwindSafe(read)).ok().and_then(Result::ok).unwrap_or_default()
            }
            None => HitIds::default(),
        };
        let previews = match source.filter(|_| complete && !self.stop.is_due()) {
            Some(source) => {
                let read = || source.read_previews(self, &hits);
                catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
                    Err(Error::Failed("reading the previews of a query panicked".to_string()))
                })?
            }
            None => Vec::new(),
        };
        let is_exact = complete && self.asked.options.is_exact(hits.len());
        let total = if is_exact { TotalHits::Exact(total) } else { TotalHits::AtLeast(total) };
        let (took, queued) = (self.arrived.elapsed(), self.queued);
        Ok(Hits {
            hits,
            ids,
            previews,
            explanation: None,
            units,
            scale,
            total,
            timed_out: !complete || self.asked.previews.is_some() && self.stop.is_due(),
            parts,
            cost: RequestCost::default(),
            took,
            queued,
            given: self.asked.statistics.clone(),
            statistics: None,
            snapshot: self.snapshot.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, RequestState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
