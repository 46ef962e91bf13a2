//! The queue of queries: taken in order, answered by several threads, answers given in order.

use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Answers that may wait for an earlier one, for each thread.
const AHEAD: usize = 4;

/// Answers on their way to whoever asked.
pub(super) struct Delivery<T, A, E> {
    state: Mutex<State<T, A, E>>,
    moved: Condvar,
    /// Answers that may wait for an earlier one.
    most: usize,
}

struct State<T, A, E> {
    /// The number of the next answer to give.
    next: usize,
    done: BTreeMap<usize, Result<T>>,
    answer: A,
    failed: Option<E>,
    /// Threads that wait. Nobody is woken when there are none: that would be a system call for each answer.
    waiting: usize,
}

impl<T, E, A: FnMut(usize, Result<T>) -> std::result::Result<(), E>> Delivery<T, A, E> {
    pub(super) fn new(answer: A, threads: usize) -> Delivery<T, A, E> {
        let state = State { next: 0, done: BTreeMap::new(), answer, failed: None, waiting: 0 };
        Delivery { state: Mutex::new(state), moved: Condvar::new(), most: AHEAD * threads }
    }

    /// Gives the answer of that number, and those behind it that wait, as soon as all before it were given. Waits as long as
    /// too many wait for an earlier one. False when all is to end.
    pub(super) fn give(&self, number: usize, found: Result<T>) -> bool {
        let mut state = self.lock();
        while number > state.next + self.most && state.failed.is_none() {
            state.waiting += 1;
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        state.done.insert(number, found);
        let before = state.next;
        while state.failed.is_none() {
            let next = state.next;
            let Some(found) = state.done.remove(&next) else { break };
            let given = (state.answer)(next, found);
            state.next += 1;
            state.failed = given.err();
        }
        if state.next != before && state.waiting > 0 {
            self.moved.notify_all();
        }
        state.failed.is_none()
    }

    /// Ends all: the source of queries has failed.
    pub(super) fn fail(&self, error: E) {
        self.lock().failed.get_or_insert(error);
        self.moved.notify_all();
    }

    /// A thread has gone without its answer: nobody waits for it.
    pub(super) fn give_up(&self, number: usize) {
        let stopped = Error::Failed("a thread that answered has stopped".to_string());
        self.give(number, Err(stopped));
    }

    /// How it ended.
    pub(super) fn end(self) -> std::result::Result<(), E> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.failed.map_or(Ok(()), Err)
    }

    fn lock(&self) -> MutexGuard<'_, State<T, A, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
