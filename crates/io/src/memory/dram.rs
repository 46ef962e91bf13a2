//! Ordinary memory, on transparent huge pages where available.

use std::io;

use super::available::available_memory;
use super::mapping::Mapping;

pub(super) fn map(len: usize) -> io::Result<Mapping> {
    if let Some(available) = available_memory().filter(|available| (len as u64) > *available) {
        let why = format!("it needs {len} bytes and {available} are available");
        return Err(io::Error::new(io::ErrorKind::OutOfMemory, why));
    }
    let mut mapping = Mapping::anonymous(len, 0)?;
    mapping.prefer_huge_pages();
    mapping.populate()?;
    Ok(mapping)
}
