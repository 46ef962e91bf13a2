//! A disk whose n-th operation fails.
//!
//! Run a workload once under [`FaultPlan::none`] and read [`FaultDisk::operations`]; then run it again for
//! each operation with each effect, and check [`FaultDisk::injected`] to see that the fault occurred.

mod files;
mod injector;
mod plan;

use crate::{Disk, DiskLock, ReadFile, Result, WriteFile};
use files::{FaultLock, FaultReader, FaultWriter};
use injector::FaultInjector;
pub use plan::{Effect, FaultPlan, Op, OpClass, Operation, Repeat};
use std::sync::Arc;

/// A disk that forwards to another disk and fails as planned, also through its open files. Clones share all
/// state.
///
/// - A failed append may have appended any prefix.
/// - After a failed sync of a file, later syncs through that handle report success and do nothing, as Linux
///   may (Rebello and others, "Can Applications Recover from fsync Failures?", USENIX ATC 2020).
/// - Any other failed operation has no effect.
pub struct FaultDisk<D: Disk> {
    inner: Arc<D>,
    injector: Arc<FaultInjector>,
}

impl<D: Disk> FaultDisk<D> {
    /// Injects faults into the operations of `inner`.
    pub fn new(inner: D, plan: FaultPlan) -> FaultDisk<D> {
        FaultDisk { inner: Arc::new(inner), injector: Arc::new(FaultInjector::new(plan)) }
    }

    /// Sets the seed of the length that a failing append still writes. The default seed is `at` of the plan.
    pub fn with_seed(self, seed: u64) -> FaultDisk<D> {
        self.injector.seed(seed);
        self
    }

    /// Replaces the plan and resets the counters. A crashed disk stays crashed.
    pub fn arm(&self, plan: FaultPlan) {
        self.injector.arm(plan);
    }

    /// The underlying disk.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// Number of operations of `class`, including failed ones, without those after a crash.
    pub fn operations(&self, class: OpClass) -> u64 {
        self.injector.operations(class)
    }

    /// Number of injected faults. A crash counts as one.
    pub fn injected(&self) -> u64 {
        self.injector.injected()
    }

    /// Whether a planned crash has occurred.
    pub fn crashed(&self) -> bool {
        self.injector.crashed()
    }

    /// All operations, in order.
    pub fn log(&self) -> Vec<Operation> {
        self.injector.log()
    }
}

impl<D: Disk> Clone for FaultDisk<D> {
    fn clone(&self) -> FaultDisk<D> {
        FaultDisk { inner: Arc::clone(&self.inner), injector: Arc::clone(&self.injector) }
    }
}

impl<D: Disk> Disk for FaultDisk<D> {
    fn list(&self) -> Result<Vec<String>> {
        self.injector.check(Op::List, "")?;
        self.inner.list()
    }

    fn open(&self, name: &str) -> Result<Box<dyn ReadFile>> {
        self.injector.check(Op::Open, name)?;
        Ok(Box::new(FaultReader::new(self.inner.open(name)?, name, Arc::clone(&self.injector))))
    }

    fn create(&self, name: &str) -> Result<Box<dyn WriteFile>> {
        self.injector.check(Op::Create, name)?;
        Ok(Box::new(FaultWriter::new(self.inner.create(name)?, name, Arc::clone(&self.injector))))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.injector.check(Op::Rename, &format!("{from} -> {to}"))?;
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.injector.check(Op::Remove, name)?;
        self.inner.remove(name)
    }

    fn sync_dir(&self) -> Result<()> {
        self.injector.check(Op::SyncDir, "")?;
        self.inner.sync_dir()
    }

    fn lock(&self, name: &str) -> Result<Box<dyn DiskLock>> {
        self.injector.check(Op::Lock, name)?;
        Ok(Box::new(FaultLock::new(self.inner.lock(name)?, name, Arc::clone(&self.injector))))
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }
}
