//! Open files and held locks whose operations pass the fault injector.

use super::{injector::FaultInjector, plan::Op};
use crate::{DiskLock, ReadFile, Result, WriteFile};
use std::sync::Arc;

pub(super) struct FaultReader {
    inner: Box<dyn ReadFile>,
    name: String,
    injector: Arc<FaultInjector>,
}

impl FaultReader {
    pub(super) fn new(inner: Box<dyn ReadFile>, name: &str, injector: Arc<FaultInjector>) -> FaultReader {
        FaultReader { inner, name: name.to_owned(), injector }
    }
}

impl ReadFile for FaultReader {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.injector.check(Op::ReadAt, &self.name)?;
        self.inner.read_at(offset, buf)
    }
}

pub(super) struct FaultWriter {
    inner: Box<dyn WriteFile>,
    name: String,
    injector: Arc<FaultInjector>,
    /// A sync has failed: dirty pages are marked clean, and later syncs succeed without effect.
    sync_failed: bool,
}

impl FaultWriter {
    pub(super) fn new(inner: Box<dyn WriteFile>, name: &str, injector: Arc<FaultInjector>) -> FaultWriter {
        FaultWriter { inner, name: name.to_owned(), injector, sync_failed: false }
    }
}

impl WriteFile for FaultWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let Err(fault) = self.injector.check(Op::Append, &self.name) else {
            return self.inner.append(bytes);
        };
        if fault.started {
            // The prefix may or may not be written, so its own error is ignored.
            self.inner.append(&bytes[..self.injector.torn_length(bytes.len())]).ok();
        }
        Err(fault.into())
    }

    fn sync(&mut self) -> Result<()> {
        if let Err(fault) = self.injector.check(Op::Sync, &self.name) {
            self.sync_failed = true;
            return Err(fault.into());
        }
        if self.sync_failed { Ok(()) } else { self.inner.sync() }
    }
}

pub(super) struct FaultLock {
    /// `None` only during drop.
    inner: Option<Box<dyn DiskLock>>,
    name: String,
    injector: Arc<FaultInjector>,
}

impl FaultLock {
    pub(super) fn new(inner: Box<dyn DiskLock>, name: &str, injector: Arc<FaultInjector>) -> FaultLock {
        FaultLock { inner: Some(inner), name: name.to_owned(), injector }
    }
}

impl DiskLock for FaultLock {
    fn check(&self) -> Result<()> {
        self.injector.check(Op::CheckLock, &self.name)?;
        self.inner.as_ref().map_or(Ok(()), |inner| inner.check())
    }

    fn id(&self) -> u64 {
        self.inner.as_ref().map_or(0, |inner| inner.id())
    }
}

impl Drop for FaultLock {
    /// After a crash the file of the lock stays.
    fn drop(&mut self) {
        if self.injector.crashed() {
            std::mem::forget(self.inner.take());
        }
    }
}
