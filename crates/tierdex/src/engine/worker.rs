//! A search thread: runs several evaluations as coroutines, so that one works while others wait for pages.
//!
//! 1. Take requests from the queue, up to the maximum number of concurrent evaluations.
//! 2. Resume those that have just begun, until each has planned its query and requested its first pages:
//!    these are read while older evaluations run.
//! 3. Resume the evaluations that are ready, interactive ones first, until each waits or has ended. An
//!    interactive one whose time slice ends is moved behind the others; those of batches run in their order.
//! 4. When all wait, submit the requested reads and wait until one of them completes; if all wait for memory,
//!    until some is released.
//!
//! A caller that waits for one request evaluates it itself, as a search thread with this request only, while
//! a search thread sleeps: nobody has to be woken ([`CallerReader`]).

use super::active::{ActiveRequest, Finished, HitSource, MeasuredPlan, PageCount, SearchTask};
use super::caller_reader::CallerReader;
use super::paged::{PagedSource, ThreadContext, Wait};
use super::part_sizes::{EVALUATION_BYTES, check_query_memory, hits_bytes, preview_bytes, result_bytes};
use super::pool::{PoolUse, Reservation};
use super::preview::Preview;
use super::priority::Priority;
use super::queue::NextWork;
use super::queued_request::QueuedRequest;
use super::read_ahead::ReadAhead;
use super::request::SearchRequest;
use super::shared::EngineShared;
use crate::error::{Error, Result};
use crate::index::{PartialResult, PlannedQuery, SearchHit};
use crate::query::collecting_bytes;
use crate::segment::read::{BlockSource, CountedSource};
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};
use std::cell::RefCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tierdex_cache::{PageCache, PageReader};

/// Stack of a coroutine; an ordinary query touches a small part of it.
const STACK_BYTES: usize = 512 << 10;

/// Frames of the cache for each evaluation, at least.
const EVALUATION_FRAMES_MIN: usize = 8;

type EvaluationCoroutine = Coroutine<(), Wait, Finished, DefaultStack>;

/// A running evaluation.
struct Running {
    evaluation: EvaluationCoroutine,
    wait: Option<Wait>,
    /// Whether it was resumed at least once, so that it is planned and its first pages are requested.
    is_planned: bool,
    priority: Priority,
    request: Arc<ActiveRequest>,
}

/// Time slices of interactive evaluations for one of a batch evaluation: that one may hold memory for which
/// an interactive evaluation waits.
const INTERACTIVE_SLICES: u32 = 8;

/// A search thread.
pub(super) struct SearchThread<'x> {
    shared: &'x EngineShared,
    cache: &'x PageCache,
    thread: Rc<ThreadContext>,
    stacks: Vec<DefaultStack>,
    running: Vec<Running>,
    /// Concurrent evaluations, at most.
    running_max: usize,
    /// Concurrent evaluations of batches, at most.
    batch_max: usize,
    /// Pages that an evaluation pins, at most.
    pinned_max: usize,
    /// Time slices of interactive evaluations since the last one of a batch evaluation.
    slices: u32,
}

impl<'x> SearchThread<'x> {
    /// Concurrent evaluations of a search thread, at most, without one that is for interactive requests only.
    pub(super) fn in_flight(shared: &EngineShared) -> usize {
        let evaluations = shared.frames_min() / shared.settings.threads / EVALUATION_FRAMES_MIN;
        let most = ReadAhead::of(&shared.read_method.costs).evaluations_max;
        shared.settings.in_flight().min(most).min(evaluations).max(1)
    }

    /// A thread that reads with `reader` and runs at most `running_max` evaluations; those beyond
    /// [`SearchThread::in_flight`] are of interactive requests.
    pub(super) fn new(
        shared: &'x EngineShared,
        reader: Box<PageReader>,
        running_max: usize,
    ) -> SearchThread<'x> {
        let cache = &*shared.cache;
        let thread = ThreadContext {
            costs: reader.costs(),
            limits: ReadAhead::of(&reader.costs()),
            reader: RefCell::new(reader),
            pool: shared.pool.clone(),
            queue: shared.queue.clone(),
        };
        let (in_flight, limits) = (SearchThread::in_flight(shared), thread.limits);
        let shares = (in_flight + limits.spare_evaluations) * shared.settings.threads;
        let pinned_max = shared.frames_min() / (2 * shares);
        SearchThread {
            shared,
            cache,
            thread: Rc::new(thread),
            stacks: Vec::new(),
            running: Vec::with_capacity(running_max),
            running_max,
            batch_max: in_flight,
            pinned_max: pinned_max.clamp(1, limits.pinned_pages_max),
            slices: 0,
        }
    }

    /// Evaluates one request on the thread of its caller. Its ticket then has the result, or will have it
    /// when other threads have evaluated the parts that were handed over to them.
    pub(super) fn answer(
        shared: &EngineShared,
        mut caller: CallerReader,
        request: QueuedRequest,
        mut is_cancelled: impl FnMut() -> bool,
    ) -> CallerReader {
        let mut own = SearchThread::new(shared, caller.reader, 1);
        own.stacks = caller.stack.map_or_else(Vec::new, |stack| vec![stack]);
        own.begin(request);
        while !own.running.is_empty() {
            own.step();
            let continues = |running: &Running| !running.request.stop.cancel_handle.is_cancelled();
            if own.running.iter().any(continues) && is_cancelled() {
                own.cancel();
            }
        }
        let SearchThread { thread, mut stacks, .. } = own;
        let context = Rc::into_inner(thread).expect("no evaluation is left");
        (caller.reader, caller.stack) = (context.reader.into_inner(), stacks.pop());
        caller
    }

    /// Serves requests until the engine is closed.
    pub(super) fn run(mut self) {
        while self.fill() {
            self.step();
        }
        self.cancel();
        while !self.running.is_empty() {
            self.step();
        }
    }

    /// Resumes evaluations that are ready; if none is, waits until one may be.
    fn step(&mut self) {
        if !self.round() {
            self.wait();
        }
    }

    /// Cancels the requests of all evaluations.
    fn cancel(&self) {
        for running in &self.running {
            running.request.stop.cancel_handle.cancel();
        }
    }

    /// Takes requests from the queue. False when the engine is closed.
    fn fill(&mut self) -> bool {
        loop {
            let is_idle = self.running.is_empty();
            if is_idle {
                // Other threads may wait for pages that ended evaluations of this thread requested.
                self.thread.reader.borrow_mut().finish();
                self.thread.pool.wake();
            }
            self.shared.queue.expire();
            if self.running.len() >= self.running_max || !is_idle && self.thread.pool.is_busy() {
                return true;
            }
            // Interactive evaluations compete for the disk: while one runs, a thread starts no second batch
            // evaluation. 99th percentile of the latency beside a batch, in 50 MB: 2.0 to 2.6 times that
            // without a batch, and 3.3 to 6.4 times without this rule; the batch takes a tenth to a fifth
            // longer.
            let interactive_runs = self.running_of(Priority::Interactive).load(Ordering::Relaxed) > 0;
            let batch = self.running.iter().filter(|running| running.priority == Priority::Batch).count();
            let takes_batch = batch < if interactive_runs { 1 } else { self.batch_max };
            match self.shared.queue.next(takes_batch, is_idle) {
                NextWork::Request(request) => self.begin(*request),
                NextWork::Task(task) => self.start(task),
                NextWork::Reads(mut caller) => {
                    caller.reader.finish();
                    self.shared.queue.return_reader(caller);
                }
                NextWork::Empty => return true,
                NextWork::Closed => return false,
            }
        }
    }

    /// Resumes evaluations that are ready, interactive ones first. Ends early when an interactive one is
    /// ready again. False when all wait.
    fn round(&mut self) -> bool {
        let mut any = self.plan();
        if any && self.runs_interactive() {
            // Its reads may have completed.
            self.thread.reader.borrow_mut().poll(false);
            return true;
        }
        let mut at = 0;
        while at < self.running.len() {
            let priority = self.running[at].priority;
            if !self.is_ready(&self.running[at]) {
                at += 1;
                continue;
            }
            any = true;
            let had_slice = match self.resume(at) {
                Some(had_slice) => {
                    at += 1;
                    had_slice
                }
                None => false,
            };
            match priority {
                Priority::Interactive if had_slice => {
                    self.slices = (self.slices + 1) % INTERACTIVE_SLICES;
                    if self.slices > 0 {
                        break;
                    }
                    at = self.running.partition_point(|running| running.priority == Priority::Interactive);
                }
                // Goes on with the same evaluation, unless an older one is ready.
                Priority::Batch if had_slice || self.interactive_goes_first() => break,
                _ => {}
            }
        }
        if any {
            // Interactive ones behind the others: each gets its time.
            let had_slice = |running: &Running| matches!(running.wait, Some(Wait::Turn));
            self.running.sort_by_key(|running| {
                (running.priority, running.priority == Priority::Interactive && had_slice(running))
            });
            self.running
                .iter_mut()
                .filter(|running| had_slice(running))
                .for_each(|running| running.wait = None);
            self.thread.reader.borrow_mut().poll(false);
        }
        any
    }

    /// Resumes the evaluations that have not begun: each plans its query and requests its first pages. Beside
    /// an interactive one only one of a batch, and none while it is ready. False if none was resumed.
    fn plan(&mut self) -> bool {
        let mut any = false;
        while let Some(at) = self.running.iter().position(|running| !running.is_planned) {
            let is_batch = self.running[at].priority == Priority::Batch;
            if is_batch && (self.interactive_goes_first() || any && self.runs_interactive()) {
                break;
            }
            any = true;
            self.resume(at);
        }
        any
    }

    fn runs_interactive(&self) -> bool {
        self.running.first().is_some_and(|running| running.priority == Priority::Interactive)
    }

    /// Resumes an evaluation. Returns whether it has used its time slice; `None` if it has ended.
    fn resume(&mut self, at: usize) -> Option<bool> {
        self.running[at].is_planned = true;
        match self.running[at].evaluation.resume(()) {
            CoroutineResult::Yield(wait) => {
                let had_slice = matches!(wait, Wait::Turn);
                self.running[at].wait = Some(wait);
                Some(had_slice)
            }
            CoroutineResult::Return(finished) => {
                let running = self.running.remove(at);
                self.end(running, finished);
                None
            }
        }
    }

    /// Whether an interactive evaluation is ready, or can start.
    fn interactive_goes_first(&self) -> bool {
        let mut running = self.running.iter().take_while(|running| running.priority == Priority::Interactive);
        running.any(|running| self.is_ready(running))
            || self.running.len() < self.running_max && self.shared.queue.has_interactive()
    }

    /// The number of running evaluations of a priority, on all threads.
    fn running_of(&self, priority: Priority) -> &AtomicUsize {
        &self.shared.queue.counters(priority).running
    }

    /// Waits until a read of an evaluation completes, or memory is released if all wait for memory.
    fn wait(&mut self) {
        if let Some(seen) = self.seen_by_all() {
            let deadline = self.running.iter().filter_map(|running| running.request.stop.deadline).min();
            // The cache may have to shrink by the frames of these reads.
            self.thread.reader.borrow_mut().finish();
            return self.thread.pool.wait(seen, deadline);
        }
        let mut frames = Vec::new();
        for wait in self.running.iter().filter_map(|running| running.wait.as_ref()) {
            let Wait::Pages(pages) = wait else { continue };
            let before = frames.len();
            let pages = pages.borrow();
            frames.extend(pages.iter().copied().filter(|frame| !self.cache.is_settled(*frame)));
            if frames.len() == before {
                // All of its reads have completed in the meantime.
                return;
            }
        }
        self.thread.reader.borrow_mut().wait_for(frames.iter().copied());
    }

    /// The change counter that an evaluation has seen, if all wait for memory.
    fn seen_by_all(&self) -> Option<u64> {
        let seen = |running: &Running| match running.wait {
            Some(Wait::Memory(seen)) => Some(seen),
            _ => None,
        };
        self.running.iter().map(seen).try_fold(u64::MAX, |least, seen| Some(least.min(seen?)))
    }

    fn is_ready(&self, running: &Running) -> bool {
        match &running.wait {
            None | Some(Wait::Turn) => true,
            Some(Wait::Memory(changes)) => {
                self.thread.pool.changes() > *changes || running.request.stop.is_due()
            }
            Some(Wait::Pages(frames)) => frames.borrow().iter().all(|frame| self.cache.is_settled(*frame)),
        }
    }

    /// Adds an evaluation behind the others of its priority.
    fn insert(&mut self, running: Running) {
        let at = self.running.partition_point(|other| other.priority <= running.priority);
        self.running.insert(at, running);
    }

    /// Starts the evaluation of a request, or answers it if it was cancelled or its deadline has passed.
    fn begin(&mut self, request: QueuedRequest) {
        if request.is_due(Instant::now()) {
            self.shared.queue.expire_request(request);
        } else {
            self.start(SearchTask::first(request));
        }
    }

    fn start(&mut self, task: SearchTask) {
        let SearchTask { request, documents, reserved } = task;
        let stack = match self.stacks.pop().map_or_else(|| DefaultStack::new(STACK_BYTES), Ok) {
            Ok(stack) => stack,
            Err(error) => {
                let error = tierdex_io::Error::from_os("make", "the stack of a query", &error);
                request.finish(Err(error.into()), None).send();
                return;
            }
        };
        let (cache, thread, pinned_max) = (self.shared.cache.clone(), self.thread.clone(), self.pinned_max);
        let evaluated = request.clone();
        let evaluation = Coroutine::with_stack(stack, move |yielder, ()| {
            let source = PagedSource::new(&cache, &thread, yielder, &evaluated, pinned_max);
            let evaluate = || evaluate(&evaluated, documents, &source, reserved);
            // Nothing that a panicking evaluation borrowed is used again.
            let done = catch_unwind(AssertUnwindSafe(evaluate))
                .unwrap_or_else(|_| Err(Error::Failed("the evaluation of a query panicked".to_string())));
            evaluated.finish(done, Some(&source))
        });
        self.running_of(request.asked.priority).fetch_add(1, Ordering::Relaxed);
        self.insert(Running {
            evaluation,
            wait: None,
            is_planned: false,
            priority: request.asked.priority,
            request,
        });
    }

    fn end(&mut self, running: Running, finished: Finished) {
        let Running { evaluation, request, .. } = running;
        self.running_of(request.asked.priority).fetch_sub(1, Ordering::Relaxed);
        self.stacks.push(evaluation.into_stack());
        if let Finished::Request(..) = finished {
            let (queued, took) = request.times();
            self.shared.queue.counters(request.asked.priority).add_answered(queued, took);
        }
        if let Some(again) = finished.send() {
            self.start(again);
        }
    }
}

impl HitSource for PagedSource<'_> {
    fn blocks(&self) -> &dyn BlockSource {
        self
    }

    fn take_page_count(&self) -> PageCount {
        PagedSource::take_page_count(self)
    }

    fn read_previews(&self, request: &ActiveRequest, hits: &[SearchHit]) -> Result<Vec<Preview>> {
        let Some(options) = request.asked.previews.filter(|_| !hits.is_empty()) else {
            return Ok(Vec::new());
        };
        let _reserved = match self.reserve(preview_bytes(options.bytes_read()), request.asked.priority) {
            Err(Error::Interrupted) => return Ok(Vec::new()),
            reserved => reserved?,
        };
        request.snapshot.previews(&request.asked.query, hits, options, self)
    }
}

/// Rejects an evaluation for which the budget never has enough memory.
fn check_grant(source: &PagedSource<'_>, step: &str, memory: u64) -> Result<()> {
    if source.pool().can_grant(PoolUse::Evaluations, memory) {
        return Ok(());
    }
    check_query_memory(step, memory, source.pool().sizes().of(PoolUse::Evaluations).maximum)
}

/// Plans a query if no other evaluation has, reserves the memory unless it was `reserved` before, and
/// searches a range of documents.
fn evaluate(
    request: &ActiveRequest,
    documents: Range<u32>,
    source: &PagedSource<'_>,
    reserved: Option<Reservation>,
) -> Result<PartialResult> {
    let ActiveRequest { asked, snapshot, .. } = request;
    let SearchRequest { query, options, explains, priority, .. } = asked;
    let searcher = snapshot.searcher();
    let counted = CountedSource::new(source);
    let blocks: &dyn BlockSource = if *explains { &counted } else { source };
    if asked.collects {
        let question = asked.statistics.as_deref();
        let memory = collecting_bytes(query, question) as u64 + EVALUATION_BYTES;
        check_grant(source, "collecting the statistics of", memory)?;
        let _reserved = source.reserve(memory, *priority)?;
        request.set_collected(searcher.statistics(query, options.scorer, question, source)?);
        return Ok(PartialResult { hits: Vec::new(), total: 0, complete: true });
    }
    let MeasuredPlan { plan, memory } = match request.planned.get() {
        Some(planned) => planned,
        None => {
            let plan = searcher.plan_with_statistics(asked.statistics.as_deref(), query, options, blocks)?;
            let segments = snapshot.index().segments();
            let hits = (options.k as u64).min(snapshot.index().documents());
            let memory = (plan.memory() as u64).saturating_sub(request.plan_reserved)
                + plan.paged_memory(segments)
                + hits_bytes(hits)
                + EVALUATION_BYTES
                + if *explains {
                    plan.explanation_memory(segments.len()) + 2 * result_bytes(hits)
                } else {
                    0
                };
            check_grant(source, "answering", memory)?;
            request.planned.get_or_init(|| MeasuredPlan { plan, memory })
        }
    };
    if let Some(known) = searcher.known_count(plan, options, &documents).filter(|_| !explains) {
        return Ok(known);
    }
    let _reserved = match reserved {
        Some(reserved) => reserved,
        None => source.reserve(*memory, *priority)?,
    };
    source.set_copies_pages(plan.copies_pages());
    if *explains {
        let recorded = searcher.record(plan, options, &counted)?;
        let found = recorded.found.clone();
        request.set_explanation(recorded.into_explanation(options, plan.query.scale));
        return Ok(found);
    }
    let (planned, mut buffers) = (PlannedQuery { plan, options, source }, searcher.take_buffers());
    let threshold = request.threshold(|| searcher.shared_threshold(planned, buffers.scratch()))?;
    let found = searcher.search_range(planned, documents, &threshold, &mut buffers);
    searcher.return_buffers(buffers);
    found
}
