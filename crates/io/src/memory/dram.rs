//! Ordinary memory, on request on transparent huge pages where available.

use super::{available::available_memory, mapping::Mapping};
use std::io;

/// Maps `len` bytes. Without `huge_pages`, single pages of 4 KiB can be given back to the system.
pub(super) fn map_dram(len: usize, huge_pages: bool) -> io::Result<Mapping> {
    if let Some(available) = available_memory().filter(|available| (len as u64) > *available) {
        let why = format!("it needs {len} bytes and {available} are available");
        return Err(io::Error::new(io::ErrorKind::OutOfMemory, why));
    }
    let mut mapping = Mapping::anonymous(len, 0)?;
    mapping.set_huge_pages(huge_pages);
    mapping.populate()?;
    Ok(mapping)
}
