//! The files and the two directories of a disk in memory: the live one and the durable one.

use std::collections::{BTreeMap, BTreeSet};

/// Names to inode numbers.
pub(super) type Directory = BTreeMap<String, u64>;

/// Everything a disk in memory holds.
#[derive(Default)]
pub(super) struct State {
    inodes: BTreeMap<u64, Inode>,
    live: Directory,
    durable: Directory,
    /// What happened to the live directory since the durable one equalled it, in order.
    changes: Vec<Change>,
    /// Inodes of the files that are locked.
    locks: BTreeSet<u64>,
    capacity: Option<u64>,
    next_inode: u64,
}

/// The bytes of a file. They only grow, so the durable ones are a prefix of the live ones.
#[derive(Clone, Default)]
pub(super) struct Inode {
    bytes: Vec<u8>,
    synced: usize,
    handles: u32,
}

/// One change of the directory. A file has one name at most.
#[derive(Clone)]
pub(super) enum Change {
    /// The file's name is now this: it was created or renamed.
    Name { inode: u64, name: String },
    /// The file has no name any more.
    Unlink { inode: u64 },
}

impl Change {
    /// Brings the change about in `directory`.
    pub(super) fn apply(&self, directory: &mut Directory) {
        match self {
            Change::Name { inode, name } => {
                directory.retain(|_, entry| entry != inode);
                directory.insert(name.clone(), *inode);
            }
            Change::Unlink { inode } => directory.retain(|_, entry| entry != inode),
        }
    }

    fn inode(&self) -> u64 {
        match self {
            Change::Name { inode, .. } | Change::Unlink { inode } => *inode,
        }
    }
}

impl Inode {
    pub(super) fn durable(bytes: Vec<u8>) -> Inode {
        Inode { synced: bytes.len(), bytes, handles: 0 }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many bytes, from the first on, are durable.
    pub(super) fn synced(&self) -> usize {
        self.synced
    }

    pub(super) fn sync(&mut self) {
        self.synced = self.bytes.len();
    }

    /// Changes bytes behind everybody's back; a wholly durable file stays so.
    pub(super) fn edit(&mut self, edit: impl FnOnce(&mut Vec<u8>)) {
        let whole = self.synced == self.bytes.len();
        edit(&mut self.bytes);
        self.synced = if whole { self.bytes.len() } else { self.synced.min(self.bytes.len()) };
    }
}

impl State {
    /// A disk on which everything is durable.
    pub(super) fn durable(files: BTreeMap<String, Vec<u8>>, capacity: Option<u64>) -> State {
        let mut state = State { capacity, ..State::default() };
        for (name, bytes) in files {
            let inode = state.add(Inode::durable(bytes));
            state.live.insert(name, inode);
        }
        state.durable = state.live.clone();
        state
    }

    /// The same disk without open handles and locks.
    pub(super) fn snapshot(&self) -> State {
        let closed = |(id, inode): (&u64, &Inode)| (*id, Inode { handles: 0, ..inode.clone() });
        let mut copy = State {
            inodes: self.inodes.iter().map(closed).collect(),
            live: self.live.clone(),
            durable: self.durable.clone(),
            changes: self.changes.clone(),
            locks: BTreeSet::new(),
            capacity: self.capacity,
            next_inode: self.next_inode,
        };
        copy.collect();
        copy
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.live.keys().cloned().collect()
    }

    pub(super) fn live(&self) -> &Directory {
        &self.live
    }

    pub(super) fn durable_directory(&self) -> &Directory {
        &self.durable
    }

    pub(super) fn changes(&self) -> &[Change] {
        &self.changes
    }

    pub(super) fn capacity(&self) -> Option<u64> {
        self.capacity
    }

    pub(super) fn set_capacity(&mut self, bytes: Option<u64>) {
        self.capacity = bytes;
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

    /// A handle on a named file: its inode and length. None when there is no such file.
    pub(super) fn open(&mut self, name: &str) -> Option<(u64, u64)> {
        let inode = *self.live.get(name)?;
        let file = self.inode_mut(inode);
        file.handles += 1;
        Some((inode, file.bytes.len() as u64))
    }

    /// A handle on a new file. None when the name is taken.
    pub(super) fn create(&mut self, name: &str) -> Option<u64> {
        if self.live.contains_key(name) {
            return None;
        }
        let inode = self.add(Inode { handles: 1, ..Inode::default() });
        self.change(Change::Name { inode, name: name.to_owned() });
        Some(inode)
    }

    pub(super) fn close(&mut self, inode: u64) {
        self.inode_mut(inode).handles -= 1;
        self.collect();
    }

    /// None when there is no file `from`.
    pub(super) fn rename(&mut self, from: &str, to: &str) -> Option<()> {
        let inode = *self.live.get(from)?;
        self.change(Change::Name { inode, name: to.to_owned() });
        Some(())
    }

    /// None when there is no such file.
    pub(super) fn remove(&mut self, name: &str) -> Option<()> {
        let inode = *self.live.get(name)?;
        self.change(Change::Unlink { inode });
        Some(())
    }

    pub(super) fn sync_dir(&mut self) {
        self.durable = self.live.clone();
        self.changes.clear();
        self.collect();
    }

    /// None, and nothing written, when the disk is full.
    pub(super) fn append(&mut self, inode: u64, bytes: &[u8]) -> Option<()> {
        if self.capacity.is_some_and(|capacity| self.used_bytes() + bytes.len() as u64 > capacity) {
            return None;
        }
        self.inode_mut(inode).bytes.extend_from_slice(bytes);
        Some(())
    }

    /// Locks the file of that name, which is created if it is missing: a handle on its inode. None when it is
    /// held.
    pub(super) fn lock(&mut self, name: &str) -> Option<u64> {
        let inode = self.open(name).map(|(inode, _)| inode).or_else(|| self.create(name))?;
        if self.locks.insert(inode) {
            return Some(inode);
        }
        self.close(inode);
        None
    }

    /// Whether the name means this inode.
    pub(super) fn is_named(&self, name: &str, inode: u64) -> bool {
        self.live.get(name) == Some(&inode)
    }

    /// Frees the lock and removes its file, if that still has its name. The handle stays open.
    pub(super) fn unlock(&mut self, name: &str, inode: u64) {
        self.locks.remove(&inode);
        if self.is_named(name, inode) {
            self.remove(name);
        }
    }

    fn add(&mut self, file: Inode) -> u64 {
        let inode = self.next_inode;
        self.next_inode += 1;
        self.inodes.insert(inode, file);
        inode
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.live);
        self.changes.push(change);
    }

    /// The bytes a file system would count: files with a name, and open ones without.
    fn used_bytes(&self) -> u64 {
        let named: BTreeSet<u64> = self.live.values().copied().collect();
        let counted = |(id, file): &(&u64, &Inode)| file.handles > 0 || named.contains(id);
        self.inodes.iter().filter(counted).map(|(_, file)| file.bytes.len() as u64).sum()
    }

    /// Frees the inodes that nothing can reach, after a crash neither.
    fn collect(&mut self) {
        let names = self.live.values().chain(self.durable.values()).copied();
        let kept: BTreeSet<u64> = names.chain(self.changes.iter().map(Change::inode)).collect();
        self.inodes.retain(|id, file| file.handles > 0 || kept.contains(id));
    }
}
