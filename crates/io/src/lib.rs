//! Storage: files with checksums, memory for caches, and asynchronous reads of the files into this memory.
//!
//! Files are in a directory, in memory, or on a disk with injected faults.
//!
//! | purpose | items |
//! |---|---|
//! | the storage interface | [`Disk`], [`ReadFile`], [`WriteFile`], [`DiskLock`] |
//! | an index in a directory | [`PosixDisk`] |
//! | an in-memory disk with simulated loss of power | [`MemDisk`], [`CrashImage`] |
//! | a disk with injected faults | [`FaultDisk`], [`FaultPlan`] |
//! | files with checksums | [`SealedWriter`], [`SealedFile`] |
//! | memory of several kinds for caches | [`Region`], [`RegionKind`], [`Size`], [`Cells`] |
//! | asynchronous reads into that memory | [`ReadQueue`], [`ReadKind`], [`ReadTarget`], [`Completion`] |
//! | resident files | [`ResidentBytes`], [`Arena`] |
//! | errors with file and offset | [`Error`], [`ErrorKind`] |
//! | handling of exhausted memory | [`ExitOutOfMemory`], [`remove_on_out_of_memory`] |
//! | signals of the process | [`ignore_file_size_signal`], [`keep_ignored_signals`], [`exit_with_line`] |
//! | signals of a child process | [`start_with_default_signals`] |
//!
//! This crate knows neither postings nor documents: the payload of a file is any bytes.

#![deny(unsafe_code)]

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!(
    "tierdex needs 64-bit Linux: it reads files with io_uring and O_DIRECT and locks them as Linux does"
);

mod cpu_time;
mod disk;
mod envelope;
pub mod errno;
mod error;
mod fault;
mod mem;
mod memory;
mod posix;
mod process;
mod random;
mod read_queue;

pub use cpu_time::thread_cpu_time;
pub use disk::{Disk, DiskLock, NAME_BYTES_MAX, ReadFile, WriteFile, check_name};
pub(crate) use disk::{end_of_file_error, lock_held_error};
pub use envelope::{
    FORMAT_VERSION, FORMAT_VERSION_MIN, HEADER_LEN, Identity, PAGE, Seal, SealedFile, SealedWriter,
};
pub use error::{Error, ErrorKind, Result, panic_message};
pub use fault::{Effect, FaultDisk, FaultPlan, Op, OpClass, Operation, Repeat};
pub use mem::{CrashImage, MemDisk};
pub use memory::{
    Arena, CELL_BYTES_MAX, CELL_BYTES_MIN, CellMut, CellParts, CellRef, Cells, Region, RegionKind,
    ResidentBytes, Size, available_memory, share_heap, trim_heap,
};
pub use posix::PosixDisk;
pub use process::{
    ExitOutOfMemory, exit_out_of_memory, exit_with_line, ignore_file_size_signal, keep_ignored_signals,
    remove_on_out_of_memory, start_with_default_signals,
};
pub use read_queue::{Completion, ReadKind, ReadOptions, ReadQueue, ReadTarget};
