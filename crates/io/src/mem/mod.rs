//! A disk in memory that knows what a loss of power would leave of it.
//!
//! It keeps apart what is live (what a running program sees) and what is durable: bytes up to the last sync of their
//! file, names as of the last sync of the directory. [`MemDisk::crash`] builds a disk from what survived.

mod crash;
mod state;

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::disk::{Disk, DiskLock, ReadFile, WriteFile, check_name, ends_early};
use crate::error::{Error, ErrorKind, Result};
use crate::posix::held;
use state::State;

/// Which of the bytes and names that were not made durable survive a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashImage {
    /// None: the disk as of the last syncs.
    Lost,
    /// All: as when the process is killed and the system lives on.
    Kept,
    /// Some, chosen by the seed. Each unsynced creation, rename and removal is kept or lost on its own; those kept take
    /// effect in order. Of each file's unsynced bytes a prefix of random length is kept, cut at a sector of 512 bytes,
    /// and some sectors in it hold zeros instead.
    Random(u64),
}

/// A disk in memory. Clones share it; [`MemDisk::snapshot`] copies it.
#[derive(Clone, Default)]
pub struct MemDisk {
    state: Arc<RwLock<State>>,
}

impl MemDisk {
    /// An empty disk without a limit.
    pub fn new() -> MemDisk {
        MemDisk::default()
    }

    /// An empty disk that can hold `bytes` bytes.
    pub fn with_capacity(bytes: u64) -> MemDisk {
        let disk = MemDisk::new();
        disk.set_capacity(Some(bytes));
        disk
    }

    /// Sets or lifts the limit, in bytes, of all files together, removed ones that are still open included. An append
    /// that would exceed it writes nothing and gives [`ErrorKind::NoSpace`].
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.write().set_capacity(bytes);
    }

    /// The disk that a machine would find which lost its power now. This disk stays as it is. Locks are not held on the
    /// new one, and everything on it is durable.
    pub fn crash(&self, image: CrashImage) -> MemDisk {
        MemDisk::of(self.read().crash(image))
    }

    /// A copy that shares nothing, with the same durable and live state; without locks.
    pub fn snapshot(&self) -> MemDisk {
        MemDisk::of(self.read().snapshot())
    }

    /// Changes a file where it lies, as decay of the medium would: durable bytes too, open handles see it.
    ///
    /// # Panics
    /// When there is no such file, because a test that damages nothing proves nothing.
    pub fn corrupt(&self, name: &str, edit: impl FnOnce(&mut Vec<u8>)) {
        let mut state = self.write();
        let file = state.file_mut(name).unwrap_or_else(|| panic!("no file {name} to damage"));
        file.edit(edit);
    }

    /// The live bytes of a file.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.read().file(name).map(|file| file.bytes().to_vec())
    }

    fn of(state: State) -> MemDisk {
        MemDisk { state: Arc::new(RwLock::new(state)) }
    }

    /// A panic in a caller's `edit` leaves the state whole, so poisoning is of no interest.
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, inode: u64, name: &str) -> Handle {
        Handle { disk: self.clone(), inode, name: name.to_owned() }
    }
}

impl Disk for MemDisk {
    fn list(&self) -> Result<Vec<String>> {
        Ok(self.read().names())
    }

    fn open(&self, name: &str) -> Result<Box<dyn ReadFile>> {
        check_name(name)?;
        let (inode, len) = self.write().open(name).ok_or_else(|| not_found("open", name))?;
        Ok(Box::new(Reader { handle: self.handle(inode, name), len }))
    }

    fn create(&self, name: &str) -> Result<Box<dyn WriteFile>> {
        check_name(name)?;
        let exists = || Error::new(ErrorKind::Exists, "create", name, "there is such a file");
        let inode = self.write().create(name).ok_or_else(exists)?;
        Ok(Box::new(Writer { handle: self.handle(inode, name) }))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        check_name(from)?;
        check_name(to)?;
        let mut state = self.write();
        if state.file(to).is_some() && state.file(from).is_some() {
            return Err(Error::new(ErrorKind::Exists, "rename", from, format!("there is a file {to}")));
        }
        state.rename(from, to).ok_or_else(|| not_found("rename", from))
    }

    fn remove(&self, name: &str) -> Result<()> {
        check_name(name)?;
        self.write().remove(name).ok_or_else(|| not_found("remove", name))
    }

    fn sync_dir(&self) -> Result<()> {
        self.write().sync_dir();
        Ok(())
    }

    fn lock(&self, name: &str) -> Result<Box<dyn DiskLock>> {
        check_name(name)?;
        let inode = self.write().lock(name).ok_or_else(|| held(name))?;
        Ok(Box::new(Lock { handle: self.handle(inode, name) }))
    }

    fn describe(&self) -> String {
        "memory".to_owned()
    }
}

/// An open file: keeps its inode alive.
struct Handle {
    disk: MemDisk,
    inode: u64,
    name: String,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.disk.write().close(self.inode);
    }
}

struct Reader {
    handle: Handle,
    len: u64,
}

impl ReadFile for Reader {
    fn name(&self) -> &str {
        &self.handle.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let state = self.handle.disk.read();
        let bytes = state.inode(self.handle.inode).bytes();
        let range =
            usize::try_from(offset).ok().and_then(|start| bytes.get(start..start.checked_add(buf.len())?));
        let found = range.ok_or_else(|| ends_early(&self.handle.name, offset))?;
        buf.copy_from_slice(found);
        Ok(())
    }
}

struct Writer {
    handle: Handle,
}

impl WriteFile for Writer {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let full =
            || Error::new(ErrorKind::NoSpace, "write", &*self.handle.name, "the disk in memory is full");
        self.handle.disk.write().append(self.handle.inode, bytes).ok_or_else(full)
    }

    fn sync(&mut self) -> Result<()> {
        self.handle.disk.write().inode_mut(self.handle.inode).sync();
        Ok(())
    }
}

struct Lock {
    handle: Handle,
}

impl DiskLock for Lock {
    fn check(&self) -> Result<()> {
        let Handle { disk, inode, name } = &self.handle;
        if disk.read().is_named(name, *inode) {
            return Ok(());
        }
        let what = format!("{name} was removed or replaced while it was being written");
        Err(Error::new(ErrorKind::LockLost, "keep the lock of", disk.describe(), what))
    }

    fn id(&self) -> u64 {
        self.handle.inode
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.handle.disk.write().unlock(&self.handle.name, self.handle.inode);
    }
}

fn not_found(op: &'static str, name: &str) -> Error {
    Error::new(ErrorKind::NotFound, op, name, "there is no such file")
}
