//! The interface between the queue and its implementations (`pread`, `uring`).

use super::in_flight::{Completion, InFlightRead};

/// A read method. It holds at most as many reads as the depth of the queue.
pub(super) trait Backend: Send {
    /// Starts a read. Returns its completion if it ended at once.
    fn start(&mut self, read: InFlightRead) -> Option<Completion>;

    /// Submits queued reads to the system, if the backend queues them.
    fn flush(&mut self) {}

    /// A completed read, when at least one is in flight. With `wait` false, `None` when none has completed
    /// yet.
    fn next_completion(&mut self, wait: bool) -> Option<Completion>;
}
