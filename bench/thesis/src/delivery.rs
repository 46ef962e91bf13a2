//! Delivers the results of several threads in the order of the queries.
//!
//! *Input*: results with the numbers of their queries, from any thread. *Output*: calls of the consumer
//! callback in query order. A thread whose result is too far ahead waits, so the buffer is bounded.

use std::{collections::BTreeMap, sync::Condvar, sync::Mutex, sync::MutexGuard, sync::PoisonError};
use tierdex::Result;

/// Results that may wait for an earlier one, for each thread.
pub(crate) const RESULTS_AHEAD_PER_THREAD: usize = 4;

/// Reorder buffer: passes results to the consumer callback in query order.
pub(crate) struct OrderedDelivery<T, A, E> {
    state: Mutex<DeliveryState<T, A, E>>,
    advanced: Condvar,
    /// Results that may wait for an earlier one.
    ahead_max: usize,
}

struct DeliveryState<T, A, E> {
    /// The number of the next result to deliver.
    next: usize,
    buffered: BTreeMap<usize, Result<T>>,
    callback: A,
    failed: Option<E>,
    /// OrderedDelivery has ended: the source or the callback failed, or the callback panicked.
    ended: bool,
    /// Waiting threads. Without any, no wake-up is sent: it would be a system call for each result.
    waiting: usize,
}

impl<T, E, A: FnMut(usize, Result<T>) -> std::result::Result<(), E>> OrderedDelivery<T, A, E> {
    /// A buffer of `ahead_max` results in front of `callback`.
    pub(crate) fn new(callback: A, ahead_max: usize) -> OrderedDelivery<T, A, E> {
        let buffered = BTreeMap::new();
        let state = DeliveryState { next: 0, buffered, callback, failed: None, ended: false, waiting: 0 };
        OrderedDelivery { state: Mutex::new(state), advanced: Condvar::new(), ahead_max }
    }

    /// Buffers the result of query `number`, then delivers all buffered results that are next in order.
    /// Waits while the query is more than `ahead_max` ahead of the next one to deliver. False if delivery
    /// has ended.
    pub(crate) fn deliver(&self, number: usize, result: Result<T>) -> bool {
        let mut state = self.lock();
        while number > state.next + self.ahead_max && !state.ended {
            state.waiting += 1;
            state = self.advanced.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        state.buffered.insert(number, result);
        let before = state.next;
        let guard = OnPanic(|| self.advanced.notify_all());
        while !state.ended {
            let next = state.next;
            let Some(result) = state.buffered.remove(&next) else { break };
            state.next += 1;
            // If the callback panics, delivery stays ended.
            state.ended = true;
            state.failed = (state.callback)(next, result).err();
            state.ended = state.failed.is_some();
        }
        std::mem::forget(guard);
        if state.next != before && state.waiting > 0 {
            self.advanced.notify_all();
        }
        !state.ended
    }

    /// Ends delivery with an error of the source of queries.
    pub(crate) fn end_with_error(&self, error: E) {
        let mut state = self.lock();
        state.failed.get_or_insert(error);
        state.ended = true;
        self.advanced.notify_all();
    }

    /// The error that ended delivery, if any.
    pub(crate) fn into_result(self) -> std::result::Result<(), E> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.failed.map_or(Ok(()), Err)
    }

    fn lock(&self) -> MutexGuard<'_, DeliveryState<T, A, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls a function when a panic unwinds. It must be forgotten otherwise.
pub(crate) struct OnPanic<F: Fn()>(pub(crate) F);

impl<F: Fn()> Drop for OnPanic<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{panic::AssertUnwindSafe, panic::catch_unwind, thread};

    #[test]
    fn a_panic_of_the_callback_ends_delivery_for_waiting_threads() {
        let callback = |number, _: Result<()>| -> std::result::Result<(), ()> { panic!("result {number}") };
        let delivery = OrderedDelivery::new(callback, RESULTS_AHEAD_PER_THREAD);
        thread::scope(|scope| {
            let early = scope.spawn(|| delivery.deliver(RESULTS_AHEAD_PER_THREAD + 1, Ok(())));
            while delivery.lock().waiting == 0 {
                thread::yield_now();
            }
            assert!(catch_unwind(AssertUnwindSafe(|| delivery.deliver(0, Ok(())))).is_err());
            assert!(!early.join().unwrap());
        });
        assert!(!delivery.deliver(1, Ok(())));
    }
}
