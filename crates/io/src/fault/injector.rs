//! Counts and logs the operations of a disk, and decides which of them fail.

use super::plan::{Effect, FaultPlan, Op, OpClass, Operation};
use crate::{Error, ErrorKind, random::SplitMix64};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The state that a fault disk, its clones and its open files share.
pub(super) struct FaultInjector {
    state: Mutex<FaultState>,
}

/// The plan, and what has happened since it was set.
pub(super) struct FaultState {
    plan: FaultPlan,
    /// Number of operations in the class of the plan.
    counted: u64,
    pub(super) injected: u64,
    pub(super) crashed: bool,
    pub(super) log: Vec<Operation>,
    pub(super) random: SplitMix64,
}

/// An injected failure.
pub(super) struct InjectedFault {
    error: Error,
    /// Whether the operation may have had an effect. False after a crash.
    pub(super) started: bool,
}

impl From<InjectedFault> for Error {
    fn from(fault: InjectedFault) -> Error {
        fault.error
    }
}

impl FaultInjector {
    pub(super) fn new(plan: FaultPlan) -> FaultInjector {
        let random = SplitMix64::new(plan.at);
        let state = FaultState { plan, counted: 0, injected: 0, crashed: false, log: Vec::new(), random };
        FaultInjector { state: Mutex::new(state) }
    }

    /// Adds an operation to the log and to the counters. Returns the fault if the plan lets it fail.
    pub(super) fn record(&self, op: Op, file: &str) -> Result<(), InjectedFault> {
        let mut state = self.state();
        if state.crashed {
            return Err(InjectedFault { error: crash_error(op, file), started: false });
        }
        state.log.push(Operation { op, file: file.to_owned() });
        if !state.plan.class.contains(op) {
            return Ok(());
        }
        state.counted += 1;
        if state.plan.is_hit(state.counted) { Err(state.inject_fault(op, file)) } else { Ok(()) }
    }

    /// Number of bytes, of `len`, that a failing append still writes: random.
    pub(super) fn torn_length(&self, len: usize) -> usize {
        self.state().random.below(len as u64 + 1) as usize
    }

    /// Locks the state. Ignores poisoning: a test thread that panics leaves the state consistent.
    pub(super) fn state(&self) -> MutexGuard<'_, FaultState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FaultState {
    /// Replaces the plan and resets the counters and the log.
    pub(super) fn set_plan(&mut self, plan: FaultPlan) {
        (self.plan, self.counted, self.injected) = (plan, 0, 0);
        self.log.clear();
    }

    /// Number of operations of `class` in the log.
    pub(super) fn count_operations(&self, class: OpClass) -> u64 {
        self.log.iter().filter(|entry| class.contains(entry.op)).count() as u64
    }

    fn inject_fault(&mut self, op: Op, file: &str) -> InjectedFault {
        self.injected += 1;
        let error = match self.plan.effect {
            Effect::Error(number) => Error::from_os(op.verb(), file, &io::Error::from_raw_os_error(number)),
            Effect::Crash => {
                self.crashed = true;
                crash_error(op, file)
            }
        };
        InjectedFault { error, started: true }
    }
}

fn crash_error(op: Op, file: &str) -> Error {
    Error::new(ErrorKind::Other, op.verb(), file, "the process has crashed (injected)")
}
