//! Open files and held locks of a [`FaultDisk`](super::FaultDisk): each call may fail as planned.

use super::{injector::FaultInjector, plan::Op};
use crate::{DiskLock, ReadFile, Result, WriteFile};
use std::sync::Arc;

/// A file open for reading.
pub(super) struct FaultReader {
    pub(super) inner: Box<dyn ReadFile>,
    pub(super) name: String,
    pub(super) injector: Arc<FaultInjector>,
}

impl ReadFile for FaultReader {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.injector.record(Op::ReadAt, &self.name)?;
        self.inner.read_at(offset, buf)
    }
}

/// A file being written.
pub(super) struct FaultWriter {
    pub(super) inner: Box<dyn WriteFile>,
    pub(super) name: String,
    pub(super) injector: Arc<FaultInjector>,
    /// Whether a sync has failed. The kernel may then mark the dirty pages as clean, so that later syncs
    /// succeed without making the bytes durable.
    pub(super) sync_failed: bool,
}

impl WriteFile for FaultWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let Err(fault) = self.injector.record(Op::Append, &self.name) else {
            return self.inner.append(bytes);
        };
        if fault.started {
            // The prefix may or may not be written, so its own error is ignored.
            self.inner.append(&bytes[..self.injector.torn_length(bytes.len())]).ok();
        }
        Err(fault.into())
    }

    fn sync(&mut self) -> Result<()> {
        if let Err(fault) = self.injector.record(Op::Sync, &self.name) {
            self.sync_failed = true;
            return Err(fault.into());
        }
        if self.sync_failed { Ok(()) } else { self.inner.sync() }
    }
}

/// A held lock.
pub(super) struct FaultLock {
    /// `None` only during drop.
    pub(super) inner: Option<Box<dyn DiskLock>>,
    pub(super) name: String,
    pub(super) injector: Arc<FaultInjector>,
}

impl DiskLock for FaultLock {
    fn check(&self) -> Result<()> {
        self.injector.record(Op::CheckLock, &self.name)?;
        self.inner.as_ref().map_or(Ok(()), |inner| inner.check())
    }

    fn id(&self) -> u64 {
        self.inner.as_ref().map_or(0, |inner| inner.id())
    }
}

impl Drop for FaultLock {
    /// After a simulated crash of the process, the file of the lock stays.
    fn drop(&mut self) {
        if self.injector.state().crashed {
            std::mem::forget(self.inner.take());
        }
    }
}
