//! Bytes on their way to and from storage.
//!
//! *You have* file names and bytes. *You get* files whose every read is checked, on a directory, in memory, or on a
//! disk that fails on command.
//!
//! | you want | take |
//! |---|---|
//! | the seam behind which all storage lies | [`Disk`], [`ReadFile`], [`WriteFile`], [`DiskLock`] |
//! | an index in a directory | [`PosixDisk`] |
//! | a disk in memory that can lose power | [`MemDisk`], [`CrashImage`] |
//! | a disk whose n-th operation fails | [`FaultDisk`], [`FaultPlan`] |
//! | proof that a new disk behaves like the others | [`disk_contract`] |
//! | a file that notices each changed bit | [`SealedWriter`], [`SealedFile`] |
//! | memory of some kind for a cache, shared by threads | [`Region`], [`RegionKind`], [`Size`], [`Cells`] |
//! | many reads at once, into that memory | [`Engine`], [`EngineKind`], [`Target`], [`Completion`] |
//! | a file mapped, read past the page cache, or advised on | [`PosixFile`], [`Advice`] |
//! | what went wrong, in which file, at which byte | [`Error`], [`ErrorKind`] |
//! | one line when memory is exhausted, and no half file | [`ExitOutOfMemory`], [`remove_out_of_memory`] |
//! | an error when a file may not grow | [`ignore_file_size_signal`] |
//! | handlers of signals, but for those that `nohup` has ignored | [`keep_ignored`] |
//!
//! This room knows neither postings nor documents: a payload is bytes, and an [`Identity`] is three numbers.

#![deny(unsafe_code)]

mod contract;
mod disk;
mod engine;
mod envelope;
pub mod errno;
mod error;
mod fault;
mod mem;
mod memory;
mod posix;
mod process;
mod random;

pub use contract::disk_contract;
pub use disk::{Disk, DiskLock, NAME_BYTES_MAX, ReadFile, WriteFile, check_name};
pub use engine::{Completion, Engine, EngineKind, EngineOptions, Target};
pub use envelope::{FORMAT_VERSION, HEADER_LEN, Identity, PAGE, Seal, SealedFile, SealedWriter};
pub use error::{Error, ErrorKind, Result, panic_message};
pub use fault::{Effect, FaultDisk, FaultPlan, Op, OpClass, Operation, Repeat};
pub use mem::{CrashImage, MemDisk};
pub use memory::{
    Arena, CELL_BYTES_MAX, CELL_BYTES_MIN, CellMut, CellRef, Cells, Kept, Region, RegionKind, Size,
    available_memory,
};
pub use posix::{Advice, PosixDisk, PosixFile};
pub use process::{
    ExitOutOfMemory, exit_with_line, ignore_file_size_signal, keep_ignored, remove_out_of_memory,
};
