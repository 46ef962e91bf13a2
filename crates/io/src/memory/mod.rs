//! Long-lived memory for caches and resident files.
//!
//! Input: a kind of memory and a size. Output: a [`Region`] of that many bytes. All are allocated on
//! creation, so that no later access can fail. A region can be divided into [`Cells`], which threads read
//! while a device writes into others.
//!
//! Each kind of memory has a file: `dram`, `hugetlb`, `numa`, `dax`, `file` (of a tmpfs).

mod available;
#[allow(unsafe_code, reason = "hands out parts of memory; each block says why it is sound")]
mod cells;
mod dax;
mod dram;
#[allow(unsafe_code, reason = "two system calls, posix_fallocate and fstatfs")]
mod file;
#[allow(unsafe_code, reason = "two calls of the allocator, mallopt and malloc_trim")]
mod heap;
mod hugetlb;
#[allow(unsafe_code, reason = "maps memory; each block says why it is sound")]
pub(crate) mod mapping;
#[allow(unsafe_code, reason = "one system call, mbind")]
mod numa;
mod page;
#[allow(unsafe_code, reason = "one instruction, rdtsc")]
mod region;
#[allow(unsafe_code, reason = "hands out parts of memory; each block says why it is sound")]
mod resident;
mod size;

pub use available::available_memory;
pub use cells::{CELL_BYTES_MAX, CELL_BYTES_MIN, CellMut, CellParts, CellRef, Cells};
pub use heap::{share_heap, trim_heap};
pub(crate) use page::PAGE_LEN;
pub use region::{Region, RegionKind};
pub use resident::{Arena, ResidentBytes};
pub use size::Size;
