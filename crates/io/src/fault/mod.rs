//! A disk whose n-th operation fails.
//!
//! Run a workload once under [`FaultPlan::none`] and ask [`FaultDisk::operations`]; then run it anew for each operation,
//! with each effect, and ask [`FaultDisk::injected`] whether the fault happened at all.

mod files;
mod plan;
mod switch;

use std::sync::Arc;

use crate::disk::{Disk, DiskLock, ReadFile, WriteFile};
use crate::error::Result;
use files::{Lock, Reader, Writer};
pub use plan::{Effect, FaultPlan, Op, OpClass, Operation, Repeat};
use switch::Switch;

/// A disk that passes everything on to another and fails as planned. Its open files fail too. Clones share all.
///
/// - A failed append may have appended any prefix.
/// - After a failed sync of a file, later syncs through that handle report success and do nothing, as Linux may
///   (Rebello and others, "Can Applications Recover from fsync Failures?", USENIX ATC 2020).
/// - Any other failed operation has not been done.
pub struct FaultDisk<D: Disk> {
    inner: Arc<D>,
    switch: Arc<Switch>,
}

impl<D: Disk> FaultDisk<D> {
    /// Faults in front of `inner`.
    pub fn new(inner: D, plan: FaultPlan) -> FaultDisk<D> {
        FaultDisk { inner: Arc::new(inner), switch: Arc::new(Switch::new(plan)) }
    }

    /// Sets the seed that chooses how much of a failing append is written. Without it the seed is the plan's `at`.
    pub fn with_seed(self, seed: u64) -> FaultDisk<D> {
        self.switch.seed(seed);
        self
    }

    /// Replaces the plan and counts from the beginning again. A disk that has crashed stays so.
    pub fn arm(&self, plan: FaultPlan) {
        self.switch.arm(plan);
    }

    /// The disk behind.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// How many operations of `class` were asked for, failed ones included, those after a crash not.
    pub fn operations(&self, class: OpClass) -> u64 {
        self.switch.operations(class)
    }

    /// How many faults happened. A crash is one.
    pub fn injected(&self) -> u64 {
        self.switch.injected()
    }

    /// Whether a planned crash has happened.
    pub fn crashed(&self) -> bool {
        self.switch.crashed()
    }

    /// The operations counted, in order.
    pub fn log(&self) -> Vec<Operation> {
        self.switch.log()
    }
}

impl<D: Disk> Clone for FaultDisk<D> {
    fn clone(&self) -> FaultDisk<D> {
        FaultDisk { inner: Arc::clone(&self.inner), switch: Arc::clone(&self.switch) }
    }
}

impl<D: Disk> Disk for FaultDisk<D> {
    fn list(&self) -> Result<Vec<String>> {
        self.switch.pass(Op::List, "")?;
        self.inner.list()
    }

    fn open(&self, name: &str) -> Result<Box<dyn ReadFile>> {
        self.switch.pass(Op::Open, name)?;
        Ok(Box::new(Reader::new(self.inner.open(name)?, name, Arc::clone(&self.switch))))
    }

    fn create(&self, name: &str) -> Result<Box<dyn WriteFile>> {
        self.switch.pass(Op::Create, name)?;
        Ok(Box::new(Writer::new(self.inner.create(name)?, name, Arc::clone(&self.switch))))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.switch.pass(Op::Rename, &format!("{from} -> {to}"))?;
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.switch.pass(Op::Remove, name)?;
        self.inner.remove(name)
    }

    fn sync_dir(&self) -> Result<()> {
        self.switch.pass(Op::SyncDir, "")?;
        self.inner.sync_dir()
    }

    fn lock(&self, name: &str) -> Result<Box<dyn DiskLock>> {
        self.switch.pass(Op::Lock, name)?;
        Ok(Box::new(Lock::new(self.inner.lock(name)?, name, Arc::clone(&self.switch))))
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }
}
