//! Memory of the evaluations of a thread: each reserves the bytes of its plan and lists before it starts.

use super::request::Priority;
use std::cell::{Cell, RefCell};

/// Reserved bytes, and the queue of waiting evaluations: interactive ones first, then in order of arrival.
pub(super) struct Reservations {
    reserved: Cell<u64>,
    max: u64,
    waiting: RefCell<Vec<(Priority, u64)>>,
    next_waiter: Cell<u64>,
    changes: Cell<u64>,
}

/// A waiting evaluation; dropping it leaves the queue.
pub(super) struct Waiter<'r> {
    reservations: &'r Reservations,
    number: u64,
}

/// Bytes reserved for an evaluation; dropping it releases them.
pub(super) struct Reservation<'r> {
    reservations: &'r Reservations,
    bytes: u64,
}

impl Reservations {
    /// Evaluations may reserve `max` bytes together. A single evaluation may exceed it.
    pub(super) fn new(max: u64) -> Reservations {
        Reservations {
            reserved: Cell::new(0),
            max,
            waiting: RefCell::default(),
            next_waiter: Cell::new(0),
            changes: Cell::new(0),
        }
    }

    pub(super) fn max(&self) -> u64 {
        self.max
    }

    /// Change counter: incremented when a reservation is released and when a waiter leaves the queue.
    pub(super) fn changes(&self) -> u64 {
        self.changes.get()
    }

    pub(super) fn wait(&self, priority: Priority) -> Waiter<'_> {
        let number = self.next_waiter.get();
        self.next_waiter.set(number + 1);
        let mut waiting = self.waiting.borrow_mut();
        let at = waiting.partition_point(|(other, _)| *other <= priority);
        waiting.insert(at, (priority, number));
        Waiter { reservations: self, number }
    }

    fn change(&self) {
        self.changes.set(self.changes.get() + 1);
    }
}

impl<'r> Waiter<'r> {
    /// Reserves `bytes` if this waiter is first in the queue and they fit.
    pub(super) fn try_reserve(&self, bytes: u64) -> Option<Reservation<'r>> {
        let reservations = self.reservations;
        let is_first =
            reservations.waiting.borrow().first().is_some_and(|(_, number)| *number == self.number);
        let reserved = reservations.reserved.get();
        let sum = reserved.saturating_add(bytes);
        if !is_first || reserved > 0 && sum > reservations.max {
            return None;
        }
        reservations.reserved.set(sum);
        Some(Reservation { reservations, bytes: sum - reserved })
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.reservations.waiting.borrow_mut().retain(|(_, number)| *number != self.number);
        self.reservations.change();
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let reservations = self.reservations;
        reservations.reserved.set(reservations.reserved.get() - self.bytes);
        reservations.change();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interactive_evaluations_come_first_and_others_in_order() {
        let all = Reservations::new(10);
        let first = all.wait(Priority::Batch).try_reserve(8).unwrap();
        let (large, small, urgent) =
            (all.wait(Priority::Batch), all.wait(Priority::Batch), all.wait(Priority::Interactive));
        assert!(large.try_reserve(20).is_none() && small.try_reserve(1).is_none());
        let quick = urgent.try_reserve(2).unwrap();
        drop(urgent);
        // It would fit, but the large one has waited longer.
        assert!(small.try_reserve(0).is_none());
        let changes = all.changes();
        drop((first, quick));
        assert!(all.changes() > changes);
        let alone = large.try_reserve(20).unwrap();
        drop(large);
        assert!(small.try_reserve(1).is_none());
        drop(alone);
        assert_eq!(small.try_reserve(u64::MAX).unwrap().bytes, u64::MAX);
    }
}
