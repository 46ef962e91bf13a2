//! Huge pages of 2 MiB that the administrator has reserved (`vm.nr_hugepages`). They are not charged to the
//! memory limit of a container, and a device that writes into them needs 1/512 of the page lookups.

use super::{mapping::Mapping, page::HUGE_PAGE_LEN};
use std::{fs, io};

/// Maps `len` bytes, a multiple of [`HUGE_PAGE_LEN`].
pub(super) fn map_huge_pages(len: usize) -> io::Result<Mapping> {
    let mapped = Mapping::anonymous(len, libc::MAP_HUGETLB | libc::MAP_HUGE_2MB);
    let mut mapping = mapped.map_err(|error| explain_failure(len, &error))?;
    mapping.populate().map_err(|error| explain_failure(len, &error))?;
    Ok(mapping)
}

/// Adds to the error of a failed allocation how many huge pages are needed and how many are free.
fn explain_failure(len: usize, error: &io::Error) -> io::Error {
    let needed = (len / HUGE_PAGE_LEN) as u64;
    let free = kernel_counter("free_hugepages").saturating_sub(kernel_counter("resv_hugepages"));
    if needed <= free {
        return io::Error::new(error.kind(), format!("{needed} huge pages of 2 MiB are refused: {error}"));
    }
    let sufficient = kernel_counter("nr_hugepages") + needed - free;
    let why = format!(
        "it needs {needed} huge pages of 2 MiB and {free} are free; set vm.nr_hugepages to {sufficient} or more"
    );
    io::Error::new(io::ErrorKind::OutOfMemory, why)
}

/// A counter of huge pages of the kernel, by the name of its file; 0 if the kernel has no huge pages.
fn kernel_counter(name: &str) -> u64 {
    let text = fs::read_to_string(format!("/sys/kernel/mm/hugepages/hugepages-2048kB/{name}"));
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}
