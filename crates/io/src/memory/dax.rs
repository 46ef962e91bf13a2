//! Persistent memory: a file of a file system mounted with `dax`, mapped so that loads and stores access the
//! memory directly, without a page cache (MAP_SYNC).

use super::{file::preallocated_file, mapping::Mapping};
use std::{io, path::Path};

/// Maps a new file of `len` bytes at `path`.
pub(super) fn map_persistent_memory(path: &Path, len: usize) -> io::Result<Mapping> {
    let file = preallocated_file(path, len)?;
    let mapped = Mapping::of_exclusive_file(&file, len, libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC);
    mapped.map_err(|error| match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => {
            let why = "the file system gives no MAP_SYNC: it is not persistent memory mounted with dax";
            io::Error::new(io::ErrorKind::Unsupported, why)
        }
        _ => error,
    })
}
