//! A thread that answers several requests at the same time: while one waits for pages, it goes on with
//! another.
//!
//! 1. A thread takes requests from the queue while it has fewer evaluations than it may.
//! 2. It resumes those whose pages are there, interactive ones first, until each waits or has ended. One
//!    that has worked for a slice of time is moved to the end of its priority.
//! 3. When all wait, it submits the reads that they asked for, and waits for one of them.

use super::Shared;
use super::active::{ActiveRequest, Planned, Task};
use super::budget::check_query_memory;
use super::paged::{PagedSource, ThreadContext, Wait};
use super::queue::{Job, Next};
use super::request::Priority;
use super::reservations::Reservations;
use crate::error::{Error, Result};
use crate::index::PartFound;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};
use std::cell::RefCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tierdex_cache::{Frames, PageReader};

/// Bytes of a stack, of which an ordinary query uses a small part.
const STACK: usize = 512 << 10;

/// Frames for each evaluation, at least.
const FRAMES_MIN: usize = 8;

/// Pages that an evaluation pins, and so reads together, at most. For `AND HH` and `OR HH` in 50 MB, 4.1
/// million documents: with 64, 0.87 and 0.92 times the queries a second; with 256, 1.01 and 1.04, for 1.04
/// times the bytes.
const PINNED_MAX: usize = 128;

type Evaluation = Coroutine<(), Wait, Result<PartFound>, DefaultStack>;

/// An evaluation that has not ended.
struct Running {
    evaluation: Evaluation,
    wait: Option<Wait>,
    priority: Priority,
    request: Arc<ActiveRequest>,
}

/// Slices of interactive evaluations after which one of a batch goes on: it may hold memory that an
/// interactive one waits for.
const BATCH_EVERY: u32 = 8;

/// A thread that answers.
pub(super) struct Worker<'x> {
    shared: &'x Shared,
    frames: &'x Frames,
    thread: Rc<ThreadContext>,
    stacks: Vec<DefaultStack>,
    running: Vec<Running>,
    /// Evaluations at the same time, at most, and those of batches among them.
    running_max: usize,
    batch_max: usize,
    pinned_max: usize,
    /// Slices that interactive evaluations had since one of a batch went on.
    slices: u32,
}

impl<'x> Worker<'x> {
    /// Reads by `reader`. If it `reserves`, it has one evaluation more, for an interactive request.
    pub(super) fn new(shared: &'x Shared, reader: PageReader, reserves: bool) -> Worker<'x> {
        let frames = &*shared.frames;
        let thread = ThreadContext {
            reader: RefCell::new(reader),
            memory: Reservations::new(shared.lists),
            queue: shared.queue.clone(),
        };
        let in_flight = shared.in_flight.min(frames.frames() / shared.threads / FRAMES_MIN).max(1);
        let pinned_max = (frames.frames() / (2 * in_flight * shared.threads)).clamp(1, PINNED_MAX);
        let running_max = in_flight + usize::from(reserves);
        let running = Vec::with_capacity(running_max);
        let thread = Rc::new(thread);
        Worker {
            shared,
            frames,
            thread,
            stacks: Vec::new(),
            running,
            running_max,
            batch_max: in_flight,
            pinned_max,
            slices: 0,
        }
    }

    /// Answers requests until the engine is closed.
    pub(super) fn run(mut self) {
        while self.fill() {
            if !self.round() {
                self.wait();
            }
        }
        for running in &self.running {
            running.request.stop.flag.cancel();
        }
        while !self.running.is_empty() {
            if !self.round() {
                self.wait();
            }
        }
    }

    /// Takes requests. False when the engine is closed.
    fn fill(&mut self) -> bool {
        loop {
            let is_idle = self.running.is_empty();
            if is_idle {
                // Other threads may wait for pages that evaluations which have ended asked this one to read.
                self.thread.reader.borrow_mut().finish();
            }
            self.shared.queue.expire();
            if self.running.len() >= self.running_max {
                return true;
            }
            // Interactive evaluations wait for the same disk: beside them a thread begins no second one of a
            // batch. 99th percentile beside a batch, in 50 MB: 2.0 to 2.6 times that alone, and 3.3 to 6.4
            // without this; the batch is a tenth to a fifth slower.
            let interactive_runs = self.shared.interactive.load(Ordering::Relaxed) > 0;
            let batch = self.running.iter().filter(|running| running.priority == Priority::Batch).count();
            let takes_batch = batch < if interactive_runs { 1 } else { self.batch_max };
            match self.shared.queue.next(takes_batch, is_idle) {
                Next::Job(job) => self.begin(*job),
                Next::Task(task) => self.start(task),
                Next::Empty => return true,
                Next::Closed => return false,
            }
        }
    }

    /// Resumes evaluations that can go on, interactive ones first. Ends early when one of these should go
    /// first again. False when all wait.
    fn round(&mut self) -> bool {
        let (mut at, mut any) = (0, false);
        while at < self.running.len() {
            let priority = self.running[at].priority;
            if !self.is_ready(&self.running[at]) {
                at += 1;
                continue;
            }
            any = true;
            let mut had_slice = false;
            match self.running[at].evaluation.resume(()) {
                CoroutineResult::Yield(wait) => {
                    had_slice = matches!(wait, Wait::Turn);
                    self.running[at].wait = Some(wait);
                    at += 1;
                    if priority == Priority::Interactive && had_slice {
                        self.slices = (self.slices + 1) % BATCH_EVERY;
                        if self.slices > 0 {
                            break;
                        }
                        at =
                            self.running.partition_point(|running| running.priority == Priority::Interactive);
                    }
                }
                CoroutineResult::Return(done) => {
                    let running = self.running.remove(at);
                    self.end(running, done);
                }
            }
            if priority == Priority::Batch && self.interactive_goes_first(had_slice) {
                break;
            }
        }
        if any {
            // To the end of their priority.
            let had_slice = |running: &Running| matches!(running.wait, Some(Wait::Turn));
            self.running.sort_by_key(|running| (running.priority, had_slice(running)));
            self.running
                .iter_mut()
                .filter(|running| had_slice(running))
                .for_each(|running| running.wait = None);
            self.thread.reader.borrow_mut().poll(false);
        }
        any
    }

    /// Whether an interactive evaluation can go on, or one can begin. After a slice of a batch what an
    /// interactive one reads may have come: pages are looked for between rounds.
    fn interactive_goes_first(&self, had_slice: bool) -> bool {
        let mut running = self.running.iter().take_while(|running| running.priority == Priority::Interactive);
        running.any(|running| had_slice || self.is_ready(running))
            || self.running.len() < self.running_max && self.shared.queue.has_interactive()
    }

    /// Waits for a page that an evaluation waits for.
    fn wait(&mut self) {
        let mut frames = Vec::new();
        for wait in self.running.iter().filter_map(|running| running.wait.as_ref()) {
            let Wait::Pages(pages) = wait else { continue };
            let before = frames.len();
            let pages = pages.borrow();
            frames.extend(pages.iter().copied().filter(|frame| !self.frames.is_settled(*frame)));
            if frames.len() == before {
                // All of its pages have come in the meantime.
                return;
            }
        }
        self.thread.reader.borrow_mut().wait_for(frames.iter().copied());
    }

    fn is_ready(&self, running: &Running) -> bool {
        match &running.wait {
            None | Some(Wait::Turn) => true,
            Some(Wait::Memory(changes)) => {
                self.thread.memory.changes() > *changes || running.request.stop.is_due()
            }
            Some(Wait::Pages(frames)) => frames.borrow().iter().all(|frame| self.frames.is_settled(*frame)),
        }
    }

    /// Adds it at the end of its priority.
    fn insert(&mut self, running: Running) {
        let at = self.running.partition_point(|other| other.priority <= running.priority);
        self.running.insert(at, running);
    }

    /// Begins to evaluate a request, or answers it if it is too late.
    fn begin(&mut self, job: Job) {
        if job.is_due(Instant::now()) { job.expire() } else { self.start(Task::first(job)) }
    }

    fn start(&mut self, Task { request, documents }: Task) {
        let stack = match self.stacks.pop().map_or_else(|| DefaultStack::new(STACK), Ok) {
            Ok(stack) => stack,
            Err(error) => {
                let error = tierdex_io::Error::from_os("make", "the stack of a query", &error);
                request.finish(Err(error.into()));
                return;
            }
        };
        let (frames, thread, pinned_max) = (self.shared.frames.clone(), self.thread.clone(), self.pinned_max);
        let evaluated = request.clone();
        let evaluation = Coroutine::with_stack(stack, move |yielder, ()| {
            let source = PagedSource::new(&frames, (&thread, yielder), &evaluated, pinned_max);
            let evaluate = || evaluate(&evaluated, documents, &source, thread.memory.max());
            // After a panic nothing that it borrowed is used again.
            catch_unwind(AssertUnwindSafe(evaluate))
                .unwrap_or_else(|_| Err(Error::Failed("the evaluation of a query panicked".to_string())))
        });
        if request.priority == Priority::Interactive {
            self.shared.interactive.fetch_add(1, Ordering::Relaxed);
        }
        self.insert(Running { evaluation, wait: None, priority: request.priority, request });
    }

    fn end(&mut self, running: Running, done: Result<PartFound>) {
        let Running { evaluation, request, .. } = running;
        if request.priority == Priority::Interactive {
            self.shared.interactive.fetch_sub(1, Ordering::Relaxed);
        }
        self.stacks.push(evaluation.into_stack());
        if let Some(again) = request.finish(done) {
            self.start(again);
        }
    }
}

/// Plans a query if no other evaluation has, waits until there is memory for it, and finds the best of some
/// documents.
fn evaluate(
    request: &ActiveRequest,
    documents: Range<u32>,
    source: &PagedSource<'_>,
    memory_max: u64,
) -> Result<PartFound> {
    let ActiveRequest { query, options, snapshot, .. } = request;
    let searcher = snapshot.searcher();
    let Planned { plan, memory } = match request.planned.get() {
        Some(planned) => planned,
        None => {
            let plan = match &request.statistics {
                Some(statistics) => searcher.plan_with(statistics, query, options, source)?,
                None => searcher.plan(query, options, source)?,
            };
            let segments = snapshot.index().segments();
            let memory = plan.memory() as u64 + plan.working_memory(segments, 0).bytes;
            check_query_memory("answering", memory, memory_max)?;
            request.planned.get_or_init(|| Planned { plan, memory })
        }
    };
    let _reserved = source.reserve(*memory, request.priority)?;
    let threshold = request.threshold(|| searcher.shared_threshold((plan, source), options))?;
    searcher.search_part((plan, source), options, documents, &threshold)
}
