//! Memory that holds much for long.
//!
//! *You have* a kind of memory and a size. *You get* a [`Region`]: so many bytes, all of them there from the start, so
//! that nothing can fail later. Cut into [`Cells`] it is shared by threads that read and a disk that writes.
//!
//! One file a kind: `dram`, `hugetlb`, `numa`, `dax`, `file` (of a tmpfs). This folder knows no files of an index.

mod available;
#[allow(unsafe_code, reason = "hands out parts of memory; each block says why it is sound")]
mod cells;
mod dax;
mod dram;
#[allow(unsafe_code, reason = "two system calls, posix_fallocate and fstatfs")]
mod file;
mod hugetlb;
#[allow(unsafe_code, reason = "hands out parts of memory; each block says why it is sound")]
mod kept;
#[allow(unsafe_code, reason = "maps memory; each block says why it is sound")]
pub(crate) mod mapping;
#[allow(unsafe_code, reason = "one system call, mbind")]
mod numa;
mod region;
mod size;

pub use available::available_memory;
pub use cells::{CELL_BYTES_MAX, CELL_BYTES_MIN, CellMut, CellRef, Cells};
pub use kept::{Arena, Kept};
pub use region::{Region, RegionKind};
pub use size::Size;

/// The granularity of memory and of reads past the page cache, in bytes.
pub(crate) const PAGE_LEN: usize = 4096;

/// The bytes of a huge page.
pub(crate) const HUGE_PAGE_LEN: usize = 2 << 20;
