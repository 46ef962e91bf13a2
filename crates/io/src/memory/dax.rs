//! Persistent memory: a file of a file system mounted with `dax`, mapped so that loads and stores reach the memory
//! itself and no page cache (MAP_SYNC).

use std::io;
use std::path::Path;

use super::file::preallocated;
use super::mapping::Mapping;

pub(super) fn map(path: &Path, len: usize) -> io::Result<Mapping> {
    let file = preallocated(path, len)?;
    let mapped = Mapping::of_own_file(&file, len, libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC);
    mapped.map_err(|error| match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => {
            let what = "the file system gives no MAP_SYNC: it is not persistent memory mounted with dax";
            io::Error::new(io::ErrorKind::Unsupported, what)
        }
        _ => error,
    })
}
