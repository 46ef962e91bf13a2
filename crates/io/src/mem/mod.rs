//! An in-memory disk that simulates a loss of power.
//!
//! It separates the live state, which a running program sees, from the durable state: bytes up to the last
//! sync of their file, names as of the last sync of the directory. [`MemDisk::crash`] makes a disk of what
//! survives a crash.

mod crash;
mod state;

use crate::disk::{Disk, DiskLock, ReadFile, WriteFile, check_name, end_of_file_error, lock_held_error};
use crate::error::{Error, ErrorKind, Result};
pub use crash::CrashImage;
use state::MemState;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// An in-memory disk. Clones share it; [`MemDisk::snapshot`] copies it.
#[derive(Clone, Default)]
pub struct MemDisk {
    state: Arc<RwLock<MemState>>,
}

impl MemDisk {
    /// An empty disk without a capacity limit.
    pub fn new() -> MemDisk {
        MemDisk::default()
    }

    /// An empty disk with a capacity of `bytes` bytes.
    pub fn with_capacity(bytes: u64) -> MemDisk {
        let disk = MemDisk::new();
        disk.set_capacity(Some(bytes));
        disk
    }

    /// Sets or removes the limit of the total bytes of all files, including removed files that are still
    /// open. An append that would exceed it writes nothing and returns [`ErrorKind::NoSpace`].
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.write_state().capacity = bytes;
    }

    /// The disk after a loss of power at this moment. Its state is durable and its locks are free. This disk
    /// does not change.
    pub fn crash(&self, image: CrashImage) -> MemDisk {
        MemDisk::with_state(self.read_state().crash(image))
    }

    /// An independent copy with the same durable and live state, without locks.
    pub fn snapshot(&self) -> MemDisk {
        MemDisk::with_state(self.read_state().snapshot())
    }

    /// Changes the bytes of a file in place, as a defect of the device would: also its durable bytes. Open
    /// handles see the change.
    ///
    /// # Panics
    /// When the file does not exist, because a test that damages nothing proves nothing.
    pub fn corrupt(&self, name: &str, edit: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.write_state();
        let file = state.file_mut(name).unwrap_or_else(|| panic!("no file {name} to damage"));
        file.edit(edit);
    }

    /// The live bytes of a file.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.read_state().file(name).map(|file| file.bytes.clone())
    }

    fn with_state(state: MemState) -> MemDisk {
        MemDisk { state: Arc::new(RwLock::new(state)) }
    }

    /// Ignores poisoning: a panic in a caller's `edit` leaves the state consistent.
    fn read_state(&self) -> RwLockReadGuard<'_, MemState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_state(&self) -> RwLockWriteGuard<'_, MemState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn new_handle(&self, inode: u64, name: &str) -> InodeHandle {
        InodeHandle { disk: self.clone(), inode, name: name.to_owned() }
    }
}

impl Disk for MemDisk {
    fn list(&self) -> Result<Vec<String>> {
        Ok(self.read_state().live.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> Result<Box<dyn ReadFile>> {
        check_name(name)?;
        let (inode, len) = self.write_state().open(name).ok_or_else(|| not_found("open", name))?;
        Ok(Box::new(MemReader { handle: self.new_handle(inode, name), len }))
    }

    fn create(&self, name: &str) -> Result<Box<dyn WriteFile>> {
        check_name(name)?;
        let exists = || Error::new(ErrorKind::Exists, "create", name, "there is such a file");
        let inode = self.write_state().create(name).ok_or_else(exists)?;
        Ok(Box::new(MemWriter { handle: self.new_handle(inode, name) }))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        check_name(from)?;
        check_name(to)?;
        let mut state = self.write_state();
        if state.file(to).is_some() && state.file(from).is_some() {
            return Err(Error::new(ErrorKind::Exists, "rename", from, format!("there is a file {to}")));
        }
        state.rename(from, to).ok_or_else(|| not_found("rename", from))
    }

    fn remove(&self, name: &str) -> Result<()> {
        check_name(name)?;
        self.write_state().remove(name).ok_or_else(|| not_found("remove", name))
    }

    fn sync_dir(&self) -> Result<()> {
        self.write_state().sync_dir();
        Ok(())
    }

    fn lock(&self, name: &str) -> Result<Box<dyn DiskLock>> {
        check_name(name)?;
        let inode = self.write_state().lock(name).ok_or_else(|| lock_held_error(name))?;
        Ok(Box::new(MemLock { handle: self.new_handle(inode, name) }))
    }

    fn describe(&self) -> String {
        "memory".to_owned()
    }
}

/// An open file. Its inode exists until the handle is dropped.
struct InodeHandle {
    disk: MemDisk,
    inode: u64,
    name: String,
}

impl Drop for InodeHandle {
    fn drop(&mut self) {
        self.disk.write_state().close(self.inode);
    }
}

struct MemReader {
    handle: InodeHandle,
    len: u64,
}

impl ReadFile for MemReader {
    fn name(&self) -> &str {
        &self.handle.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let state = self.handle.disk.read_state();
        let bytes = &state.inode(self.handle.inode).bytes;
        let range =
            usize::try_from(offset).ok().and_then(|start| bytes.get(start..start.checked_add(buf.len())?));
        let found = range.ok_or_else(|| end_of_file_error(&self.handle.name, offset))?;
        buf.copy_from_slice(found);
        Ok(())
    }
}

struct MemWriter {
    handle: InodeHandle,
}

impl WriteFile for MemWriter {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let full =
            || Error::new(ErrorKind::NoSpace, "write", &*self.handle.name, "the disk in memory is full");
        self.handle.disk.write_state().append(self.handle.inode, bytes).ok_or_else(full)
    }

    fn sync(&mut self) -> Result<()> {
        self.handle.disk.write_state().inode_mut(self.handle.inode).sync();
        Ok(())
    }
}

struct MemLock {
    handle: InodeHandle,
}

impl DiskLock for MemLock {
    fn check(&self) -> Result<()> {
        let InodeHandle { disk, inode, name } = &self.handle;
        if disk.read_state().is_named(name, *inode) {
            return Ok(());
        }
        let why = format!("{name} was removed or replaced while it was being written");
        Err(Error::new(ErrorKind::LockLost, "keep the lock of", disk.describe(), why))
    }

    fn id(&self) -> u64 {
        self.handle.inode
    }
}

impl Drop for MemLock {
    fn drop(&mut self) {
        self.handle.disk.write_state().unlock(&self.handle.name, self.handle.inode);
    }
}

fn not_found(op: &'static str, name: &str) -> Error {
    Error::new(ErrorKind::NotFound, op, name, "there is no such file")
}
