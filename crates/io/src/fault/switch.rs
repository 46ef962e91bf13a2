//! The point that every operation passes: counts, logs, and decides whether it fails.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::plan::{Effect, FaultPlan, Op, OpClass, Operation};
use crate::error::{Error, ErrorKind};
use crate::random::Random;

/// Shared by a fault disk, its clones and its open files.
pub(super) struct Switch {
    state: Mutex<State>,
}

struct State {
    plan: FaultPlan,
    /// Operations counted in the plan's class.
    counted: u64,
    injected: u64,
    crashed: bool,
    log: Vec<Operation>,
    random: Random,
}

/// A failure that was injected.
pub(super) struct Fault {
    error: Error,
    /// False when the process was dead before the operation, so that it cannot have begun.
    pub(super) begun: bool,
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        fault.error
    }
}

impl Switch {
    pub(super) fn new(plan: FaultPlan) -> Switch {
        let random = Random::new(plan.at);
        let state = State { plan, counted: 0, injected: 0, crashed: false, log: Vec::new(), random };
        Switch { state: Mutex::new(state) }
    }

    pub(super) fn seed(&self, seed: u64) {
        self.state().random = Random::new(seed);
    }

    pub(super) fn arm(&self, plan: FaultPlan) {
        let mut state = self.state();
        state.plan = plan;
        state.counted = 0;
        state.injected = 0;
        state.log.clear();
    }

    /// Lets an operation happen, or not.
    pub(super) fn pass(&self, op: Op, file: &str) -> Result<(), Fault> {
        let mut state = self.state();
        if state.crashed {
            return Err(Fault { error: dead(op, file), begun: false });
        }
        state.log.push(Operation { op, file: file.to_owned() });
        if !state.plan.class.contains(op) {
            return Ok(());
        }
        state.counted += 1;
        if state.plan.hits(state.counted) { Err(state.fail(op, file)) } else { Ok(()) }
    }

    /// How many of `len` bytes a failing append still writes.
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

    /// A thread that panics in a test leaves the counters whole.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn fail(&mut self, op: Op, file: &str) -> Fault {
        self.injected += 1;
        let error = match self.plan.effect {
            Effect::Error(number) => Error::from_os(op.verb(), file, &io::Error::from_raw_os_error(number)),
            Effect::Crash => {
                self.crashed = true;
                dead(op, file)
            }
        };
        Fault { error, begun: true }
    }
}

fn dead(op: Op, file: &str) -> Error {
    Error::new(ErrorKind::Other, op.verb(), file, "the process has crashed (injected)")
}
