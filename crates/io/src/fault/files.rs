//! Open files and held locks that pass the switch.

use std::sync::Arc;

use super::plan::Op;
use super::switch::Switch;
use crate::disk::{DiskLock, ReadFile, WriteFile};
use crate::error::Result;

pub(super) struct Reader {
    inner: Box<dyn ReadFile>,
    name: String,
    switch: Arc<Switch>,
}

impl Reader {
    pub(super) fn new(inner: Box<dyn ReadFile>, name: &str, switch: Arc<Switch>) -> Reader {
        Reader { inner, name: name.to_owned(), switch }
    }
}

impl ReadFile for Reader {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.switch.pass(Op::ReadAt, &self.name)?;
        self.inner.read_at(offset, buf)
    }
}

pub(super) struct Writer {
    inner: Box<dyn WriteFile>,
    name: String,
    switch: Arc<Switch>,
    /// A sync has failed: the unwritten pages count as clean, and syncs succeed without effect.
    lost: bool,
}

impl Writer {
    pub(super) fn new(inner: Box<dyn WriteFile>, name: &str, switch: Arc<Switch>) -> Writer {
        Writer { inner, name: name.to_owned(), switch, lost: false }
    }
}

impl WriteFile for Writer {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let Err(fault) = self.switch.pass(Op::Append, &self.name) else {
            return self.inner.append(bytes);
        };
        if fault.begun {
            // Whether this prefix arrives is left open anyway, so its own failure tells nothing.
            self.inner.append(&bytes[..self.switch.torn_length(bytes.len())]).ok();
        }
        Err(fault.into())
    }

    fn sync(&mut self) -> Result<()> {
        if let Err(fault) = self.switch.pass(Op::Sync, &self.name) {
            self.lost = true;
            return Err(fault.into());
        }
        if self.lost { Ok(()) } else { self.inner.sync() }
    }
}

pub(super) struct Lock {
    /// None only while it is dropped.
    inner: Option<Box<dyn DiskLock>>,
    name: String,
    switch: Arc<Switch>,
}

impl Lock {
    pub(super) fn new(inner: Box<dyn DiskLock>, name: &str, switch: Arc<Switch>) -> Lock {
        Lock { inner: Some(inner), name: name.to_owned(), switch }
    }
}

impl DiskLock for Lock {
    fn check(&self) -> Result<()> {
        self.switch.pass(Op::CheckLock, &self.name)?;
        self.inner.as_ref().map_or(Ok(()), |inner| inner.check())
    }

    fn id(&self) -> u64 {
        self.inner.as_ref().map_or(0, |inner| inner.id())
    }
}

impl Drop for Lock {
    /// A dead process does not remove the file of its lock.
    fn drop(&mut self) {
        if self.switch.crashed() {
            std::mem::forget(self.inner.take());
        }
    }
}
