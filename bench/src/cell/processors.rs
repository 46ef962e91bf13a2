//! Pins threads to processors.

use crate::{Error, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors that the calling thread may use.
pub(super) struct Processors {
    all: CpuSet,
    numbers: Vec<usize>,
}

impl Processors {
    /// # Errors
    /// The error of the system.
    pub(super) fn allowed() -> Result<Processors> {
        let all = sched_getaffinity(None).map_err(Error::failed(PIN_FAILED))?;
        let numbers = (0..CpuSet::MAX_CPU).filter(|number| all.is_set(*number)).collect();
        Ok(Processors { all, numbers })
    }

    /// Pins the calling thread, and threads that it starts later, to one processor. Threads are distributed
    /// by `number`; if they are more than the processors, these are shared.
    ///
    /// # Errors
    /// The error of the system.
    pub(super) fn pin(&self, number: usize) -> Result<()> {
        let mut one = CpuSet::new();
        one.set(self.numbers[number % self.numbers.len()]);
        sched_setaffinity(None, &one).map_err(Error::failed(PIN_FAILED))
    }

    /// Allows the calling thread to use all processors again.
    ///
    /// # Errors
    /// The error of the system.
    pub(super) fn unpin(&self) -> Result<()> {
        sched_setaffinity(None, &self.all).map_err(Error::failed(PIN_FAILED))
    }
}

/// Error message of all methods, before the error of the system.
const PIN_FAILED: &str = "cannot pin a thread to a processor";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_distributed_among_the_allowed_processors() {
        let processors = Processors::allowed().unwrap();
        let count = processors.numbers.len();
        for number in 0..2 * count {
            processors.pin(number).unwrap();
            let now = Processors::allowed().unwrap().numbers;
            assert_eq!(now, [processors.numbers[number % count]]);
        }
        processors.unpin().unwrap();
        assert_eq!(Processors::allowed().unwrap().numbers, processors.numbers);
    }
}
