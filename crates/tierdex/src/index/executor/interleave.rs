//! Queries that a thread answers at the same time: while one waits for pages, it goes on with another.
//!
//! 1. A thread takes queries from the queue as long as it has few enough evaluations, and their answers
//!    are not too far ahead of the oldest that is still to be given.
//! 2. It goes on with those whose pages are there, the oldest first, until each waits or has ended.
//! 3. When all wait, it hands the reads that they asked for to the system, and waits for one of them.

use super::line::{Delivery, Owed, Queue};
use super::paged::{Lane, PagedSource, Share, Wait};
use super::{Executor, refuse};
use crate::error::Result;
use crate::index::searcher::{Found, SearchOptions};
use crate::query::Query;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use tierdex_cache::{Frames, PageReader};
use tierdex_io::PAGE;

/// Bytes of a stack, of which an ordinary query uses a small part.
const STACK: usize = 512 << 10;

/// Frames for each evaluation, at least.
const FRAMES_MIN: usize = 8;

/// Pages that an evaluation pins, and so reads together, at most. For `AND HH` and `OR HH` in 50 MB, 4.1 million
/// documents: with 64, 0.87 and 0.92 times the queries a second; with 256, 1.01 and 1.04, for 1.04 times the
/// bytes.
const PINNED_MAX: usize = 128;

type Evaluation = Coroutine<(), Wait, Result<Found>, DefaultStack>;

/// An evaluation that has not ended.
struct Running<'d, A, E>
where
    A: FnMut(usize, Result<Found>) -> std::result::Result<(), E>,
{
    evaluation: Evaluation,
    wait: Option<Wait>,
    number: usize,
    owed: Owed<'d, Found, A, E>,
}

/// What a thread answers queries with.
pub(super) struct Thread<'x> {
    executor: &'x Executor,
    frames: &'x Arc<Frames>,
    lane: Rc<Lane>,
    stacks: Vec<DefaultStack>,
    in_flight: usize,
    pinned_max: usize,
}

impl<'x> Thread<'x> {
    /// Answers by `reader`; `allowance` bytes are for the plans and lists of all its evaluations.
    pub(super) fn new(
        executor: &'x Executor,
        frames: &'x Arc<Frames>,
        reader: PageReader,
        allowance: u64,
    ) -> Thread<'x> {
        let cache = (frames.frames() as u64 * PAGE) / (2 * executor.threads as u64);
        let lane = Lane {
            reader: RefCell::new(reader),
            taken: Cell::default(),
            allowance: Share { memory: allowance, cache },
            ended: Cell::new(0),
        };
        let in_flight = executor.in_flight.min(frames.frames() / executor.threads / FRAMES_MIN).max(1);
        let pinned_max = (frames.frames() / (2 * in_flight * executor.threads)).clamp(1, PINNED_MAX);
        Thread { executor, frames, lane: Rc::new(lane), stacks: Vec::new(), in_flight, pinned_max }
    }

    /// Answers queries until there are none, or no more are wanted. Gives the reader back.
    pub(super) fn run<S, A, E>(
        mut self,
        queue: &Queue<S>,
        options: &SearchOptions,
        delivery: &Delivery<Found, A, E>,
    ) -> PageReader
    where
        S: FnMut() -> std::result::Result<Option<Query>, E>,
        A: FnMut(usize, Result<Found>) -> std::result::Result<(), E>,
    {
        let mut running: Vec<Running<'_, A, E>> = Vec::with_capacity(self.in_flight);
        loop {
            if running.is_empty() {
                // Other threads may wait for pages that this one was asked to read by evaluations that have
                // ended.
                self.lane.reader.borrow_mut().finish();
            }
            while running.len() < self.in_flight {
                let Some((number, query)) = queue.next(delivery, running.is_empty()) else { break };
                let evaluation = match self.begin(query, *options) {
                    Ok(evaluation) => evaluation,
                    Err(error) => {
                        delivery.give(number, Err(error));
                        continue;
                    }
                };
                running.push(Running { evaluation, wait: None, number, owed: Owed::new(delivery, number) });
            }
            if running.is_empty() {
                break;
            }
            if !self.go_on(&mut running, delivery) {
                queue.end();
                break;
            }
        }
        drop(running);
        let lane = Rc::into_inner(self.lane).expect("no evaluation is left");
        let mut reader = lane.reader.into_inner();
        reader.finish();
        reader
    }

    /// Goes on with what need not wait; if all wait, waits for one of them. False when all is to end.
    fn go_on<A, E>(&mut self, running: &mut Vec<Running<'_, A, E>>, delivery: &Delivery<Found, A, E>) -> bool
    where
        A: FnMut(usize, Result<Found>) -> std::result::Result<(), E>,
    {
        let (mut at, mut any) = (0, false);
        while at < running.len() {
            let this = &mut running[at];
            if !self.is_ready(this.wait.as_ref()) {
                at += 1;
                continue;
            }
            any = true;
            match this.evaluation.resume(()) {
                CoroutineResult::Yield(wait) => {
                    this.wait = Some(wait);
                    at += 1;
                }
                CoroutineResult::Return(found) => {
                    let Running { evaluation, number, owed, .. } = running.remove(at);
                    self.stacks.push(evaluation.into_stack());
                    owed.paid();
                    if !delivery.give(number, found) {
                        return false;
                    }
                }
            }
        }
        let mut reader = self.lane.reader.borrow_mut();
        if any {
            reader.poll(false);
        } else {
            let mut frames = Vec::new();
            for wait in running.iter().filter_map(|running| running.wait.as_ref()) {
                let Wait::Pages(pages) = wait else { continue };
                let before = frames.len();
                let pages = pages.borrow();
                frames.extend(pages.iter().copied().filter(|frame| !self.frames.is_settled(*frame)));
                if frames.len() == before {
                    // All of its pages have come in the meantime.
                    return true;
                }
            }
            reader.wait_for(frames.iter().copied());
        }
        true
    }

    fn is_ready(&self, wait: Option<&Wait>) -> bool {
        match wait {
            None => true,
            Some(Wait::End(ended)) => self.lane.ended.get() > *ended,
            Some(Wait::Pages(frames)) => frames.borrow().iter().all(|frame| self.frames.is_settled(*frame)),
        }
    }

    /// An evaluation that has not begun.
    ///
    /// # Errors
    /// When there is no memory for its stack.
    fn begin(&mut self, query: Query, options: SearchOptions) -> Result<Evaluation> {
        let stack = self.stacks.pop().map_or_else(|| DefaultStack::new(STACK), Ok);
        let stack =
            stack.map_err(|error| tierdex_io::Error::from_os("make", "the stack of a query", &error))?;
        let (searcher, frames, lane) =
            (self.executor.searcher.clone(), self.frames.clone(), self.lane.clone());
        let pinned_max = self.pinned_max;
        Ok(Coroutine::with_stack(stack, move |yielder, ()| {
            let source = PagedSource::new(&frames, &lane, yielder, pinned_max);
            let plan = searcher.plan(&query, &options, &source)?;
            let segments = searcher.index().segments();
            let memory = plan.memory() as u64 + plan.working_memory(segments, 0).bytes;
            refuse("answering", memory, lane.allowance.memory)?;
            // More than all that there is means alone.
            let own = Share { memory, cache: plan.list_bytes(segments).min(lane.allowance.cache + 1) };
            // One alone may take more of the cache.
            while lane.taken.get() != Share::default() && !lane.taken.get().plus(own).fits(lane.allowance) {
                yielder.suspend(Wait::End(lane.ended.get()));
            }
            let taken = Taken::new(&lane, own);
            let found = searcher.answer(&plan, &options, &source);
            drop(taken);
            found
        }))
    }
}

/// What an evaluation has taken.
struct Taken<'l> {
    lane: &'l Lane,
    own: Share,
}

impl<'l> Taken<'l> {
    fn new(lane: &'l Lane, own: Share) -> Taken<'l> {
        lane.taken.set(lane.taken.get().plus(own));
        Taken { lane, own }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.lane.taken.set(self.lane.taken.get().minus(self.own));
        self.lane.ended.set(self.lane.ended.get() + 1);
    }
}
