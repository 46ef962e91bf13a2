//! Ordinary memory, on transparent huge pages where the system gives some.

use std::fs;
use std::io;

use super::mapping::Mapping;

pub(super) fn map(len: usize) -> io::Result<Mapping> {
    if let Some(available) = available_bytes().filter(|available| (len as u64) > *available) {
        let what = format!("it needs {len} bytes and {available} are available");
        return Err(io::Error::new(io::ErrorKind::OutOfMemory, what));
    }
    let mut mapping = Mapping::anonymous(len, 0)?;
    mapping.prefer_huge_pages();
    mapping.populate()?;
    Ok(mapping)
}

/// What the system could give without swapping, if it tells. A region that took more would have some process killed.
fn available_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}
