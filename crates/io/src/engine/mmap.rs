//! Reads by copying from a mapped file, through the page cache: the baseline of the papers and of most other
//! engines.
//!
//! A device error, and a file that is truncated while it is mapped, end the process by a signal (SIGBUS): a
//! mapping cannot report an error. For comparison only.

use super::backend::Backend;
use super::in_flight::{Completion, InFlightRead};

pub(super) struct Mmap;

impl Backend for Mmap {
    fn start(&mut self, read: InFlightRead) -> Option<Completion> {
        Some(read.read_mapped())
    }

    /// No read is ever in flight.
    fn next_completion(&mut self, _wait: bool) -> Option<Completion> {
        None
    }
}
