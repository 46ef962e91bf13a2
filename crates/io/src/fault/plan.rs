//! Fault plans: which operation of a disk fails, and with which effect.

/// A plan for one fault: the n-th operation of a class fails, once or from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultPlan {
    /// The operations that are counted.
    pub class: OpClass,
    /// Which operation of `class` fails, counted from 1; 0: none.
    pub at: u64,
    /// The effect of the fault.
    pub effect: Effect,
    /// Whether later operations of the class fail too.
    pub repeat: Repeat,
}

impl FaultPlan {
    /// No fault: the disk only counts and logs.
    pub fn none() -> FaultPlan {
        FaultPlan { class: OpClass::Any, at: 0, effect: Effect::Crash, repeat: Repeat::Once }
    }

    /// Whether the operation with this number in the class of the plan fails.
    pub(super) fn is_hit(&self, number: u64) -> bool {
        match self.repeat {
            _ if self.at == 0 => false,
            Repeat::Once => number == self.at,
            Repeat::Forever => number >= self.at,
        }
    }
}

/// What the caller of a failing operation sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The operation fails with this error number of the system; see [`crate::errno`].
    Error(i32),
    /// This operation and all later ones fail, as after a crash of the process.
    Crash,
}

/// Whether a fault affects one operation or all later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// One operation fails.
    Once,
    /// All operations of the class fail from that one on.
    Forever,
}

/// A class of operations. A fault plan counts the operations of one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpClass {
    /// All operations.
    Any,
    /// list, open, read_at.
    Read,
    /// create, append.
    Write,
    /// sync, sync_dir.
    Sync,
    /// rename, remove, lock, and check of a lock.
    Meta,
}

impl OpClass {
    /// Whether `op` counts in this class.
    pub fn contains(self, op: Op) -> bool {
        self == OpClass::Any || self == op.class()
    }
}

/// The operations of a disk and its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// `Disk::list`
    List,
    /// `Disk::open`
    Open,
    /// `ReadFile::read_at`
    ReadAt,
    /// `Disk::create`
    Create,
    /// `WriteFile::append`
    Append,
    /// `WriteFile::sync`
    Sync,
    /// `Disk::sync_dir`
    SyncDir,
    /// `Disk::rename`
    Rename,
    /// `Disk::remove`
    Remove,
    /// `Disk::lock`
    Lock,
    /// `DiskLock::check`
    CheckLock,
}

impl Op {
    /// The class, other than `Any`, in which the operation counts.
    pub fn class(self) -> OpClass {
        match self {
            Op::List | Op::Open | Op::ReadAt => OpClass::Read,
            Op::Create | Op::Append => OpClass::Write,
            Op::Sync | Op::SyncDir => OpClass::Sync,
            Op::Rename | Op::Remove | Op::Lock | Op::CheckLock => OpClass::Meta,
        }
    }

    /// The verb for messages: "cannot `verb` `file`".
    pub fn verb(self) -> &'static str {
        match self {
            Op::List => "list",
            Op::Open => "open",
            Op::ReadAt => "read",
            Op::Create => "create",
            Op::Append => "write",
            Op::Sync => "sync",
            Op::SyncDir => "sync directory",
            Op::Rename => "rename",
            Op::Remove => "remove",
            Op::Lock => "lock",
            Op::CheckLock => "check the lock",
        }
    }
}

/// An operation in the log of a fault disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// The operation.
    pub op: Op,
    /// The file; empty for the directory; `from -> to` for a rename.
    pub file: String,
}
