//! Sizes of memory pages.

/// Bytes of an ordinary page. Offsets, lengths and addresses of direct I/O are multiples of it.
pub(crate) const PAGE_LEN: usize = 4096;

/// Bytes of a huge page.
pub(crate) const HUGE_PAGE_LEN: usize = 2 << 20;
