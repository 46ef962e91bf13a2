//! A disk that injects faults: its n-th operation fails.
//!
//! To test all faults, run a workload once under [`FaultPlan::none`] and read [`FaultDisk::operations`]. Then
//! run it again for each operation with each effect, and check by [`FaultDisk::injected`] that the fault
//! occurred.

mod files;
mod injector;
mod plan;

use crate::{Disk, DiskLock, ReadFile, Result, WriteFile, random::SplitMix64};
use files::{FaultLock, FaultReader, FaultWriter};
use injector::FaultInjector;
pub use plan::{Effect, FaultPlan, Op, OpClass, Operation, Repeat};
use std::sync::Arc;

/// A disk that forwards to another disk. Its operations, and those of its open files, fail as planned. Clones
/// share all state.
///
/// - A failed append may have appended any prefix of the bytes.
/// - After a failed sync of a file, later syncs through that handle report success and do nothing, as Linux
///   may (Rebello and others, "Can Applications Recover from fsync Failures?", USENIX ATC 2020).
/// - Any other failed operation has no effect.
pub struct FaultDisk<D: Disk> {
    inner: Arc<D>,
    injector: Arc<FaultInjector>,
}

impl<D: Disk> FaultDisk<D> {
    /// A disk that forwards to `inner`.
    pub fn new(inner: D, plan: FaultPlan) -> FaultDisk<D> {
        FaultDisk { inner: Arc::new(inner), injector: Arc::new(FaultInjector::new(plan)) }
    }

    /// Sets the seed of the random number of bytes that a failing append still writes. By default the seed is
    /// `at` of the plan.
    pub fn with_seed(self, seed: u64) -> FaultDisk<D> {
        self.injector.state().random = SplitMix64::new(seed);
        self
    }

    /// Replaces the plan and resets the counters. A crashed disk stays crashed.
    pub fn arm(&self, plan: FaultPlan) {
        self.injector.state().set_plan(plan);
    }

    /// The underlying disk.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// Number of operations of `class`, including failed ones, but not those after a crash.
    pub fn operations(&self, class: OpClass) -> u64 {
        self.injector.state().count_operations(class)
    }

    /// Number of injected faults. A crash counts as one.
    pub fn injected(&self) -> u64 {
        self.injector.state().injected
    }

    /// Whether a planned crash has occurred.
    pub fn crashed(&self) -> bool {
        self.injector.state().crashed
    }

    /// All operations, in order.
    pub fn log(&self) -> Vec<Operation> {
        self.injector.state().log.clone()
    }
}

impl<D: Disk> Clone for FaultDisk<D> {
    fn clone(&self) -> FaultDisk<D> {
        FaultDisk { inner: Arc::clone(&self.inner), injector: Arc::clone(&self.injector) }
    }
}

impl<D: Disk> Disk for FaultDisk<D> {
    fn list(&self) -> Result<Vec<String>> {
        self.injector.record(Op::List, "")?;
        self.inner.list()
    }

    fn open(&self, name: &str) -> Result<Box<dyn ReadFile>> {
        self.injector.record(Op::Open, name)?;
        let (inner, injector) = (self.inner.open(name)?, Arc::clone(&self.injector));
        Ok(Box::new(FaultReader { inner, name: name.to_owned(), injector }))
    }

    fn create(&self, name: &str) -> Result<Box<dyn WriteFile>> {
        self.injector.record(Op::Create, name)?;
        let (inner, injector) = (self.inner.create(name)?, Arc::clone(&self.injector));
        Ok(Box::new(FaultWriter { inner, name: name.to_owned(), injector, sync_failed: false }))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.injector.record(Op::Rename, &format!("{from} -> {to}"))?;
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.injector.record(Op::Remove, name)?;
        self.inner.remove(name)
    }

    fn sync_dir(&self) -> Result<()> {
        self.injector.record(Op::SyncDir, "")?;
        self.inner.sync_dir()
    }

    fn lock(&self, name: &str) -> Result<Box<dyn DiskLock>> {
        self.injector.record(Op::Lock, name)?;
        let (inner, injector) = (Some(self.inner.lock(name)?), Arc::clone(&self.injector));
        Ok(Box::new(FaultLock { inner, name: name.to_owned(), injector }))
    }

    crate::forward_disk!(self, self.inner; describe);
}
