//! Huge pages of 2 MiB that the administrator has set apart (`vm.nr_hugepages`). They are not charged to the memory
//! limit of a container, and cost a device a 512th of the work of finding the pages to write into.

use std::fs;
use std::io;

use super::HUGE_PAGE_LEN;
use super::mapping::Mapping;

/// `len` is a multiple of [`HUGE_PAGE_LEN`].
pub(super) fn map(len: usize) -> io::Result<Mapping> {
    let mapped = Mapping::anonymous(len, libc::MAP_HUGETLB | libc::MAP_HUGE_2MB);
    let mut mapping = mapped.map_err(|error| too_few(len, &error))?;
    mapping.populate().map_err(|error| too_few(len, &error))?;
    Ok(mapping)
}

fn too_few(len: usize, error: &io::Error) -> io::Error {
    let needed = (len / HUGE_PAGE_LEN) as u64;
    let free = counted("free_hugepages").saturating_sub(counted("resv_hugepages"));
    if needed <= free {
        return io::Error::new(error.kind(), format!("{needed} huge pages of 2 MiB are refused: {error}"));
    }
    let sufficient = counted("nr_hugepages") + needed - free;
    let what = format!(
        "it needs {needed} huge pages of 2 MiB and {free} are free; set vm.nr_hugepages to {sufficient} or more"
    );
    io::Error::new(io::ErrorKind::OutOfMemory, what)
}

/// A count of the kernel's; 0 where it has no huge pages.
fn counted(what: &str) -> u64 {
    let text = fs::read_to_string(format!("/sys/kernel/mm/hugepages/hugepages-2048kB/{what}"));
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}
