//! Opens the backend of a read queue. `auto` is io_uring where it is available, otherwise the thread pool.

use super::options::{ReadKind, ReadOptions, queue_error};
use super::{backend::Backend, pread::Pread, uring::Uring};
use crate::error::{Error, ErrorKind, Result};
use crate::{disk::Disk, memory::Cells};
use std::{io, sync::Arc};

/// An open backend, with its description for statistics.
pub(super) struct OpenBackend {
    pub(super) backend: Box<dyn Backend>,
    pub(super) description: String,
    /// Why `auto` did not take `uring`.
    pub(super) fallback: Option<String>,
}

/// Opens the backend that the options ask for.
pub(super) fn open_backend(
    options: ReadOptions,
    disk: &dyn Disk,
    cells: &[Arc<Cells>],
) -> Result<OpenBackend> {
    let ReadOptions { kind, depth, direct } = options;
    if !(1..=ReadOptions::DEPTH_MAX).contains(&depth) {
        let why = format!("its depth is from 1 to {}, not {depth}", ReadOptions::DEPTH_MAX);
        return Err(queue_error(kind, &why));
    }
    match kind {
        ReadKind::Pread => {
            check_direct(direct, disk)?;
            open_pread(depth, direct)
        }
        ReadKind::Uring => {
            check_direct(direct, disk)?;
            open_uring(depth, direct, cells)
        }
        ReadKind::Auto => open_available(depth, direct, disk, cells),
    }
}

/// Opens io_uring if it is available, otherwise the thread pool.
fn open_available(depth: usize, direct: bool, disk: &dyn Disk, cells: &[Arc<Cells>]) -> Result<OpenBackend> {
    let no_direct = check_direct(direct, disk).err();
    let tried = match &no_direct {
        Some(error) => Err(error.clone()),
        None => open_uring(depth, direct, cells),
    };
    tried.or_else(|why| {
        let opened = open_pread(depth, direct && no_direct.is_none())?;
        Ok(OpenBackend { fallback: Some(format!("reads by {}: {why}", opened.description)), ..opened })
    })
}

/// Whether `auto` opens io_uring.
pub(super) fn is_uring_available(options: ReadOptions, disk: &dyn Disk) -> bool {
    check_direct(options.direct, disk).is_ok() && Uring::new(options.depth, options.direct, &[]).is_ok()
}

fn check_direct(direct: bool, disk: &dyn Disk) -> Result<()> {
    if direct { disk.check_direct() } else { Ok(()) }
}

fn open_pread(depth: usize, direct: bool) -> Result<OpenBackend> {
    let backend = Pread::new(depth, direct).map_err(|error| unavailable_error(ReadKind::Pread, &error))?;
    Ok(without_fallback(Box::new(backend), format!("pread, depth {depth}, {}", path_name(direct))))
}

fn open_uring(depth: usize, direct: bool, cells: &[Arc<Cells>]) -> Result<OpenBackend> {
    let uring = Uring::new(depth, direct, cells);
    let (backend, unregistered) = uring.map_err(|error| unavailable_error(ReadKind::Uring, &error))?;
    let memory = match unregistered {
        None if cells.is_empty() => String::new(),
        None => ", registered memory".to_owned(),
        Some(error) => format!(", memory not registered ({error})"),
    };
    Ok(without_fallback(Box::new(backend), format!("uring, depth {depth}, {}{memory}", path_name(direct))))
}

fn path_name(direct: bool) -> &'static str {
    if direct { "O_DIRECT" } else { "page cache" }
}

fn without_fallback(backend: Box<dyn Backend>, description: String) -> OpenBackend {
    OpenBackend { backend, description, fallback: None }
}

fn unavailable_error(kind: ReadKind, error: &io::Error) -> Error {
    let why = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => ": forbidden here, by kernel.io_uring_disabled or the container",
        Some(libc::ENOMEM) => ": the limit of locked memory may be too low (ulimit -l)",
        _ => "",
    };
    Error::new(ErrorKind::Unsupported, "use", format!("read method {kind}"), format!("{error}{why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{errno::EPERM, mem::MemDisk};

    #[test]
    fn unavailable_read_methods_are_reported_in_one_line() {
        let message = |kind, depth, direct| {
            let opened = open_backend(ReadOptions { kind, depth, direct }, &MemDisk::new(), &[]);
            opened.err().map(|error| error.to_string())
        };
        let too_deep = "cannot use read method pread: its depth is from 1 to 4096, not 4097";
        assert_eq!(message(ReadKind::Pread, 4097, false).as_deref(), Some(too_deep));
        assert!(message(ReadKind::Auto, 0, false).is_some());
        let forbidden = unavailable_error(ReadKind::Uring, &io::Error::from_raw_os_error(EPERM));
        assert_eq!(
            forbidden.to_string(),
            "cannot use read method uring: Operation not permitted (os error 1): forbidden here, by \
             kernel.io_uring_disabled or the container"
        );
    }
}
