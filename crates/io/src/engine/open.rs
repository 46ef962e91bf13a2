//! Opens the backend that the options ask for; `auto` falls back to `pread`.

use std::io;
use std::sync::Arc;

use super::backend::Backend;
use super::options::{EngineKind, EngineOptions, rejected};
use super::pread::Pread;
use super::uring::Uring;
use crate::disk::Disk;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::Cells;

/// An open backend, with lines for statistics.
pub(super) struct OpenBackend {
    pub(super) backend: Box<dyn Backend>,
    pub(super) description: String,
    /// Why `auto` did not take `uring`.
    pub(super) fallback: Option<String>,
}

pub(super) fn open(options: EngineOptions, disk: &dyn Disk, cells: &[Arc<Cells>]) -> Result<OpenBackend> {
    let EngineOptions { kind, depth, direct } = options;
    if !(1..=EngineOptions::DEPTH_MAX).contains(&depth) {
        let why = format!("its depth is from 1 to {}, not {depth}", EngineOptions::DEPTH_MAX);
        return Err(rejected(kind, &why));
    }
    match kind {
        EngineKind::Pread => {
            check_direct(direct, disk)?;
            pread(depth, direct)
        }
        EngineKind::Uring => {
            check_direct(direct, disk)?;
            uring(depth, direct, cells)
        }
        EngineKind::Auto => auto(depth, direct, disk, cells),
    }
}

fn auto(depth: usize, direct: bool, disk: &dyn Disk, cells: &[Arc<Cells>]) -> Result<OpenBackend> {
    let no_direct = check_direct(direct, disk).err();
    let tried = match &no_direct {
        Some(error) => Err(error.clone()),
        None => uring(depth, direct, cells),
    };
    tried.or_else(|why| {
        let opened = pread(depth, direct && no_direct.is_none())?;
        Ok(OpenBackend { fallback: Some(format!("reads by {}: {why}", opened.description)), ..opened })
    })
}

/// Whether `auto` takes `uring`.
pub(super) fn is_uring_available(options: EngineOptions, disk: &dyn Disk) -> bool {
    check_direct(options.direct, disk).is_ok() && Uring::new(options.depth, options.direct, &[]).is_ok()
}

fn check_direct(direct: bool, disk: &dyn Disk) -> Result<()> {
    if direct { disk.check_direct() } else { Ok(()) }
}

fn pread(depth: usize, direct: bool) -> Result<OpenBackend> {
    let backend = Pread::new(depth, direct).map_err(|error| unavailable(EngineKind::Pread, &error))?;
    Ok(opened(Box::new(backend), format!("pread, depth {depth}, {}", path(direct))))
}

fn uring(depth: usize, direct: bool, cells: &[Arc<Cells>]) -> Result<OpenBackend> {
    let uring = Uring::new(depth, direct, cells);
    let (backend, unregistered) = uring.map_err(|error| unavailable(EngineKind::Uring, &error))?;
    let memory = match unregistered {
        None if cells.is_empty() => String::new(),
        None => ", registered memory".to_owned(),
        Some(error) => format!(", memory not registered ({error})"),
    };
    Ok(opened(Box::new(backend), format!("uring, depth {depth}, {}{memory}", path(direct))))
}

fn path(direct: bool) -> &'static str {
    if direct { "O_DIRECT" } else { "page cache" }
}

fn opened(backend: Box<dyn Backend>, description: String) -> OpenBackend {
    OpenBackend { backend, description, fallback: None }
}

fn unavailable(kind: EngineKind, error: &io::Error) -> Error {
    let why = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => ": forbidden here, by kernel.io_uring_disabled or the container",
        Some(libc::ENOMEM) => ": the limit of locked memory may be too low (ulimit -l)",
        _ => "",
    };
    Error::new(ErrorKind::Unsupported, "use", format!("engine {kind}"), format!("{error}{why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errno::EPERM;
    use crate::mem::MemDisk;

    #[test]
    fn unavailable_engines_are_reported_in_one_line() {
        let message = |kind, depth, direct| {
            let opened = open(EngineOptions { kind, depth, direct }, &MemDisk::new(), &[]);
            opened.err().map(|error| error.to_string())
        };
        let too_deep = "cannot use engine pread: its depth is from 1 to 4096, not 4097";
        assert_eq!(message(EngineKind::Pread, 4097, false).as_deref(), Some(too_deep));
        assert!(message(EngineKind::Auto, 0, false).is_some());
        let forbidden = unavailable(EngineKind::Uring, &io::Error::from_raw_os_error(EPERM));
        assert_eq!(
            forbidden.to_string(),
            "cannot use engine uring: Operation not permitted (os error 1): forbidden here, by \
             kernel.io_uring_disabled or the container"
        );
    }
}
