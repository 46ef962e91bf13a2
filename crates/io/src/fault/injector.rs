//! Counts and logs every operation, and decides whether it fails.

use super::plan::{Effect, FaultPlan, Op, OpClass, Operation};
use crate::{Error, ErrorKind, random::SplitMix64};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Shared by a fault disk, its clones and its open files.
pub(super) struct FaultInjector {
    state: Mutex<FaultState>,
}

struct FaultState {
    plan: FaultPlan,
    /// Operations counted in the plan's class.
    counted: u64,
    injected: u64,
    crashed: bool,
    log: Vec<Operation>,
    random: SplitMix64,
}

/// An injected failure.
pub(super) struct InjectedFault {
    error: Error,
    /// False after a crash: the operation cannot have had any effect.
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

    pub(super) fn seed(&self, seed: u64) {
        self.state().random = SplitMix64::new(seed);
    }

    pub(super) fn arm(&self, plan: FaultPlan) {
        let mut state = self.state();
        state.plan = plan;
        state.counted = 0;
        state.injected = 0;
        state.log.clear();
    }

    /// Records an operation, and fails if the plan says so.
    pub(super) fn check(&self, op: Op, file: &str) -> Result<(), InjectedFault> {
        let mut state = self.state();
        if state.crashed {
            return Err(InjectedFault { error: crashed_error(op, file), started: false });
        }
        state.log.push(Operation { op, file: file.to_owned() });
        if !state.plan.class.contains(op) {
            return Ok(());
        }
        state.counted += 1;
        if state.plan.hits(state.counted) { Err(state.fail(op, file)) } else { Ok(()) }
    }

    /// Number of bytes, of `len`, that a failing append still writes.
    pub(super) fn torn_length(&self, len: usize) -> usize {
        self.state().random.below(len as u64 + 1) as usize
    }

    pub(super) fn operations(&self, class: OpClass) -> u64 {
        self.state().log.iter().filter(|entry| class.contains(entry.op)).count() as u64
    }

    pub(super) fn injected(&self) -> u64 {
        self.state().injected
    }

    pub(super) fn crashed(&self) -> bool {
        self.state().crashed
    }

    pub(super) fn log(&self) -> Vec<Operation> {
        self.state().log.clone()
    }

    /// Ignores poisoning: a test thread that panics leaves the counters consistent.
    fn state(&self) -> MutexGuard<'_, FaultState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FaultState {
    fn fail(&mut self, op: Op, file: &str) -> InjectedFault {
        self.injected += 1;
        let error = match self.plan.effect {
            Effect::Error(number) => Error::from_os(op.verb(), file, &io::Error::from_raw_os_error(number)),
            Effect::Crash => {
                self.crashed = true;
                crashed_error(op, file)
            }
        };
        InjectedFault { error, started: true }
    }
}

fn crashed_error(op: Op, file: &str) -> Error {
    Error::new(ErrorKind::Other, op.verb(), file, "the process has crashed (injected)")
}
