//! Delivers the answers of several threads in the order of the queries: for the modes of the thesis.

use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Answers that may wait for an earlier one, for each thread.
pub(super) const ANSWERS_AHEAD: usize = 4;

/// Reorder buffer: passes answers to the consumer callback in query order.
pub(super) struct Delivery<T, A, E> {
    state: Mutex<DeliveryState<T, A, E>>,
    moved: Condvar,
    /// Answers that may wait for an earlier one.
    most: usize,
}

struct DeliveryState<T, A, E> {
    /// The number of the next answer to deliver.
    next: usize,
    done: BTreeMap<usize, Result<T>>,
    answer: A,
    failed: Option<E>,
    /// No more answers are given: one failed, or the consumer callback panicked.
    ended: bool,
    /// Threads that wait. Nobody is woken when there are none: that would be a system call for each answer.
    waiting: usize,
}

impl<T, E, A: FnMut(usize, Result<T>) -> std::result::Result<(), E>> Delivery<T, A, E> {
    /// Answers may wait for an earlier one, `most` of them.
    pub(super) fn new(answer: A, most: usize) -> Delivery<T, A, E> {
        let state =
            DeliveryState { next: 0, done: BTreeMap::new(), answer, failed: None, ended: false, waiting: 0 };
        Delivery { state: Mutex::new(state), moved: Condvar::new(), most }
    }

    /// Buffers the answer to query `number`, then delivers all buffered answers that are next in order.
    /// Waits while the query is more than `most` ahead of the next one to deliver. False if delivery has
    /// ended.
    pub(super) fn deliver(&self, number: usize, found: Result<T>) -> bool {
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

    /// Delivers an error for a query whose thread has panicked, so that later answers are not blocked.
    pub(super) fn deliver_failure(&self, number: usize) {
        let stopped = Error::Failed("the thread of the query panicked".to_string());
        self.deliver(number, Err(stopped));
    }

    /// How it ended.
    pub(super) fn end(self) -> std::result::Result<(), E> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.failed.map_or(Ok(()), Err)
    }

    fn lock(&self) -> MutexGuard<'_, DeliveryState<T, A, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer that a thread will deliver: dropped by a panic, it delivers an error, so that no thread waits
/// for it.
pub(super) struct PendingAnswer<'d, T, A, E>
where
    A: FnMut(usize, Result<T>) -> std::result::Result<(), E>,
{
    delivery: &'d Delivery<T, A, E>,
    number: usize,
}

impl<'d, T, A, E> PendingAnswer<'d, T, A, E>
where
    A: FnMut(usize, Result<T>) -> std::result::Result<(), E>,
{
    pub(super) fn new(delivery: &'d Delivery<T, A, E>, number: usize) -> Self {
        PendingAnswer { delivery, number }
    }

    /// The answer is delivered by other means.
    pub(super) fn disarm(self) {
        std::mem::forget(self);
    }
}

impl<T, A, E> Drop for PendingAnswer<'_, T, A, E>
where
    A: FnMut(usize, Result<T>) -> std::result::Result<(), E>,
{
    fn drop(&mut self) {
        self.delivery.deliver_failure(self.number);
    }
}

/// Wakes all waiting threads when a panic unwinds.
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
            let early = scope.spawn(|| delivery.deliver(ANSWERS_AHEAD + 1, Ok(())));
            while delivery.lock().waiting == 0 {
                thread::yield_now();
            }
            assert!(catch_unwind(AssertUnwindSafe(|| delivery.deliver(0, Ok(())))).is_err());
            assert!(!early.join().unwrap());
        });
        assert!(!delivery.deliver(1, Ok(())));
    }
}
