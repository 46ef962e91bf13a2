//! Answers of several threads, given in the order of the queries: for the modes of the thesis.

use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Answers that may wait for an earlier one, for each thread.
pub(super) const ANSWERS_AHEAD: usize = 4;

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
    /// No more answers are given: one failed, or whoever asked has panicked.
    ended: bool,
    /// Threads that wait. Nobody is woken when there are none: that would be a system call for each answer.
    waiting: usize,
}

impl<T, E, A: FnMut(usize, Result<T>) -> std::result::Result<(), E>> Delivery<T, A, E> {
    /// Answers may wait for an earlier one, `most` of them.
    pub(super) fn new(answer: A, most: usize) -> Delivery<T, A, E> {
        let state = State { next: 0, done: BTreeMap::new(), answer, failed: None, ended: false, waiting: 0 };
        Delivery { state: Mutex::new(state), moved: Condvar::new(), most }
    }

    /// Gives the answer of that number, and those behind it that wait, as soon as all before it were given.
    /// Waits as long as too many wait for an earlier one. False when all is to end.
    pub(super) fn give(&self, number: usize, found: Result<T>) -> bool {
        let mut state = self.lock();
        while number > state.next + self.most && !state.ended {
            state.waiting += 1;
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        state.done.insert(number, found);
        let before = state.next;
        let wakes = Wakes(&self.moved);
        while !state.ended {
            let next = state.next;
            let Some(found) = state.done.remove(&next) else { break };
            state.next += 1;
            // Also if it panics.
            state.ended = true;
            state.failed = (state.answer)(next, found).err();
            state.ended = state.failed.is_some();
        }
        std::mem::forget(wakes);
        if state.next != before && state.waiting > 0 {
            self.moved.notify_all();
        }
        !state.ended
    }

    /// Ends all: the source of queries has failed.
    pub(super) fn fail(&self, error: E) {
        let mut state = self.lock();
        state.failed.get_or_insert(error);
        state.ended = true;
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

/// An answer that a thread owes; one that panics gives it up, so that nobody waits for it.
pub(super) struct Owed<'d, T, A, E>
where
    A: FnMut(usize, Result<T>) -> std::result::Result<(), E>,
{
    delivery: &'d Delivery<T, A, E>,
    number: usize,
}

impl<'d, T, A, E> Owed<'d, T, A, E>
where
    A: FnMut(usize, Result<T>) -> std::result::Result<(), E>,
{
    pub(super) fn new(delivery: &'d Delivery<T, A, E>, number: usize) -> Self {
        Owed { delivery, number }
    }

    /// It is no longer owed: it is given.
    pub(super) fn paid(self) {
        std::mem::forget(self);
    }
}

impl<T, A, E> Drop for Owed<'_, T, A, E>
where
    A: FnMut(usize, Result<T>) -> std::result::Result<(), E>,
{
    fn drop(&mut self) {
        self.delivery.give_up(self.number);
    }
}

/// Wakes all that wait when a panic passes.
struct Wakes<'c>(&'c Condvar);

impl Drop for Wakes<'_> {
    fn drop(&mut self) {
        self.0.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;

    #[test]
    fn a_panic_of_who_takes_answers_ends_all_that_wait() {
        let answer = |number, _: Result<()>| -> std::result::Result<(), ()> { panic!("answer {number}") };
        let delivery = Delivery::new(answer, ANSWERS_AHEAD);
        thread::scope(|scope| {
            let early = scope.spawn(|| delivery.give(ANSWERS_AHEAD + 1, Ok(())));
            while delivery.lock().waiting == 0 {
                thread::yield_now();
            }
            assert!(catch_unwind(AssertUnwindSafe(|| delivery.give(0, Ok(())))).is_err());
            assert!(!early.join().unwrap());
        });
        assert!(!delivery.give(1, Ok(())));
    }
}
