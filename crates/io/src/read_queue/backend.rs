//! The interface between a read queue and the ways to read: a thread pool (`pread`) and io_uring (`uring`).

use super::in_flight::{Completion, InFlightRead};

/// A way to read. It has at most as many reads in flight as the depth of the queue.
pub(super) trait Backend: Send {
    /// Starts a read. Returns the completion if the read is complete already.
    fn start(&mut self, read: InFlightRead) -> Option<Completion>;

    /// Submits started reads to the system, if the backend has not done so yet.
    fn flush(&mut self) {}

    /// Returns a completed read. At least one read must be in flight. `None` when none has completed and
    /// `wait` is false.
    fn next_completion(&mut self, wait: bool) -> Option<Completion>;
}
