//! A temporary file for input that cannot be read by offset: standard input, pipes and compressed files.

use crate::run_file::create_unique;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

/// Copies a stream to a temporary file without a name, which ends with the process. Returns its length too.
pub(super) fn spool(reader: &mut dyn Read) -> Result<(File, u64), String> {
    let folder = std::env::temp_dir();
    let failed = |error: io::Error| match error.raw_os_error() {
        Some(_) => format!(
            "cannot copy it to a temporary file in {}, as Parquet is read by offset: {error}; TMPDIR names another \
             directory",
            folder.display()
        ),
        None => format!("cannot read: {error}; it is damaged or truncated, replace it"),
    };
    let mut options = File::options();
    options.read(true).write(true).create_new(true).mode(0o600);
    let (path, mut file) =
        create_unique(&folder, ".tierdex-input", |path| options.open(path)).map_err(failed)?;
    std::fs::remove_file(path).map_err(failed)?;
    let bytes = io::copy(reader, &mut file).map_err(failed)?;
    Ok((file, bytes))
}
