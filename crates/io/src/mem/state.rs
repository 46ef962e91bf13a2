//! State of an in-memory disk: its files, the live directory and the durable directory.

use std::collections::{BTreeMap, BTreeSet};

/// The inode number of each name.
pub(super) type Directory = BTreeMap<String, u64>;

/// All files, names and locks of an in-memory disk.
#[derive(Default)]
pub(super) struct MemState {
    inodes: BTreeMap<u64, Inode>,
    /// The names that a running program sees.
    pub(super) live: Directory,
    /// The names at the last sync of the directory: those left after a power loss.
    pub(super) durable: Directory,
    /// Changes of the live directory since the last sync of the directory, in order.
    pub(super) changes: Vec<DirectoryChange>,
    /// Inodes of the files that are locked.
    locks: BTreeSet<u64>,
    /// Maximum of the total bytes of all files.
    pub(super) capacity: Option<u64>,
    next_inode: u64,
}

/// The bytes of a file. Files only grow, so the durable bytes are a prefix of the live bytes.
#[derive(Clone, Default)]
pub(super) struct Inode {
    pub(super) bytes: Vec<u8>,
    /// Length of the durable prefix.
    pub(super) synced: usize,
    /// Number of open handles, which keep the file alive without a name.
    handles: u32,
}

/// One change of the directory. A file has one name at most.
#[derive(Clone)]
pub(super) enum DirectoryChange {
    /// The file was created with this name or renamed to it.
    Name { inode: u64, name: String },
    /// The file was removed.
    Unlink { inode: u64 },
}

impl DirectoryChange {
    /// Applies the change to `directory`.
    pub(super) fn apply(&self, directory: &mut Directory) {
        match self {
            DirectoryChange::Name { inode, name } => {
                directory.retain(|_, entry| entry != inode);
                directory.insert(name.clone(), *inode);
            }
            DirectoryChange::Unlink { inode } => directory.retain(|_, entry| entry != inode),
        }
    }

    fn inode(&self) -> u64 {
        match self {
            DirectoryChange::Name { inode, .. } | DirectoryChange::Unlink { inode } => *inode,
        }
    }
}

impl Inode {
    pub(super) fn sync(&mut self) {
        self.synced = self.bytes.len();
    }

    /// Changes the bytes as a defect of the device would. A file that is fully durable stays fully durable.
    pub(super) fn edit(&mut self, edit: impl FnOnce(&mut Vec<u8>)) {
        let whole = self.synced == self.bytes.len();
        edit(&mut self.bytes);
        self.synced = if whole { self.bytes.len() } else { self.synced.min(self.bytes.len()) };
    }
}

impl MemState {
    /// A disk whose files are all durable.
    pub(super) fn all_durable(files: BTreeMap<String, Vec<u8>>, capacity: Option<u64>) -> MemState {
        let mut state = MemState { capacity, ..MemState::default() };
        for (name, bytes) in files {
            let inode = state.add_inode(Inode { synced: bytes.len(), bytes, handles: 0 });
            state.live.insert(name, inode);
        }
        state.durable = state.live.clone();
        state
    }

    /// A copy without open handles and locks.
    pub(super) fn snapshot(&self) -> MemState {
        let closed = |(id, inode): (&u64, &Inode)| (*id, Inode { handles: 0, ..inode.clone() });
        let mut copy = MemState {
            inodes: self.inodes.iter().map(closed).collect(),
            live: self.live.clone(),
            durable: self.durable.clone(),
            changes: self.changes.clone(),
            locks: BTreeSet::new(),
            capacity: self.capacity,
            next_inode: self.next_inode,
        };
        copy.free_unreachable();
        copy
    }

    /// The inode of an open handle or of a directory entry.
    pub(super) fn inode(&self, inode: u64) -> &Inode {
        &self.inodes[&inode]
    }

    pub(super) fn inode_mut(&mut self, inode: u64) -> &mut Inode {
        self.inodes.get_mut(&inode).expect("inodes live as long as their handles and names")
    }

    pub(super) fn file(&self, name: &str) -> Option<&Inode> {
        self.live.get(name).map(|inode| self.inode(*inode))
    }

    pub(super) fn file_mut(&mut self, name: &str) -> Option<&mut Inode> {
        let inode = *self.live.get(name)?;
        Some(self.inode_mut(inode))
    }

    /// Opens a handle: inode and length of the file. `None` when it does not exist.
    pub(super) fn open(&mut self, name: &str) -> Option<(u64, u64)> {
        let inode = *self.live.get(name)?;
        let file = self.inode_mut(inode);
        file.handles += 1;
        Some((inode, file.bytes.len() as u64))
    }

    /// Opens a handle on a new file. `None` when the name is taken.
    pub(super) fn create(&mut self, name: &str) -> Option<u64> {
        if self.live.contains_key(name) {
            return None;
        }
        let inode = self.add_inode(Inode { handles: 1, ..Inode::default() });
        self.apply_change(DirectoryChange::Name { inode, name: name.to_owned() });
        Some(inode)
    }

    pub(super) fn close(&mut self, inode: u64) {
        self.inode_mut(inode).handles -= 1;
        self.free_unreachable();
    }

    /// `None` when `from` does not exist.
    pub(super) fn rename(&mut self, from: &str, to: &str) -> Option<()> {
        let inode = *self.live.get(from)?;
        self.apply_change(DirectoryChange::Name { inode, name: to.to_owned() });
        Some(())
    }

    /// `None` when the file does not exist.
    pub(super) fn remove(&mut self, name: &str) -> Option<()> {
        let inode = *self.live.get(name)?;
        self.apply_change(DirectoryChange::Unlink { inode });
        Some(())
    }

    pub(super) fn sync_dir(&mut self) {
        self.durable = self.live.clone();
        self.changes.clear();
        self.free_unreachable();
    }

    /// `None` when the disk is full; then nothing is written.
    pub(super) fn append(&mut self, inode: u64, bytes: &[u8]) -> Option<()> {
        if self.capacity.is_some_and(|capacity| self.used_bytes() + bytes.len() as u64 > capacity) {
            return None;
        }
        self.inode_mut(inode).bytes.extend_from_slice(bytes);
        Some(())
    }

    /// Locks the file of that name, created if it is missing, and opens a handle on it. `None` when the lock
    /// is held.
    pub(super) fn lock(&mut self, name: &str) -> Option<u64> {
        let inode = self.open(name).map(|(inode, _)| inode).or_else(|| self.create(name))?;
        if self.locks.insert(inode) {
            return Some(inode);
        }
        self.close(inode);
        None
    }

    /// Whether the name refers to this inode.
    pub(super) fn is_named(&self, name: &str, inode: u64) -> bool {
        self.live.get(name) == Some(&inode)
    }

    /// Releases the lock and removes its file if the name still refers to it. The handle stays open.
    pub(super) fn unlock(&mut self, name: &str, inode: u64) {
        self.locks.remove(&inode);
        if self.is_named(name, inode) {
            self.remove(name);
        }
    }

    fn add_inode(&mut self, file: Inode) -> u64 {
        let inode = self.next_inode;
        self.next_inode += 1;
        self.inodes.insert(inode, file);
        inode
    }

    /// Applies a change to the live directory, and records it until the next sync of the directory.
    fn apply_change(&mut self, change: DirectoryChange) {
        change.apply(&mut self.live);
        self.changes.push(change);
    }

    /// Bytes of all files that have a name or an open handle.
    fn used_bytes(&self) -> u64 {
        let named: BTreeSet<u64> = self.live.values().copied().collect();
        let counted = |(id, file): &(&u64, &Inode)| file.handles > 0 || named.contains(id);
        self.inodes.iter().filter(counted).map(|(_, file)| file.bytes.len() as u64).sum()
    }

    /// Frees the inodes that have no handle and no name, neither now nor after any crash.
    fn free_unreachable(&mut self) {
        let names = self.live.values().chain(self.durable.values()).copied();
        let kept: BTreeSet<u64> = names.chain(self.changes.iter().map(DirectoryChange::inode)).collect();
        self.inodes.retain(|id, file| file.handles > 0 || kept.contains(id));
    }
}
