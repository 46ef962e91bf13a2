//! Page sizes.

/// The granularity of memory and of direct I/O, in bytes.
pub(crate) const PAGE_LEN: usize = 4096;

/// The size of a huge page in bytes.
pub(crate) const HUGE_PAGE_LEN: usize = 2 << 20;
