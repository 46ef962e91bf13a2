//! Which engine, and what to do where it cannot be had.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::str::FromStr;
use std::sync::Arc;

use super::mmap::Mmap;
use super::pread::Pread;
use super::uring::Uring;
use super::{Engine, Method};
use crate::disk::Disk;
use crate::error::{Error, ErrorKind, Result};
use crate::memory::Cells;

/// A way to read, as users write it: `auto`, `mmap`, `pread` or `uring`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    /// `uring` past the page cache where the system has both, else `pread`.
    Auto,
    /// Copies from mapped files: the page cache, and one read at a time.
    Mmap,
    /// Threads.
    Pread,
    /// The kernel's queue, io_uring.
    Uring,
}

/// What an engine is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineOptions {
    /// The way.
    pub kind: EngineKind,
    /// How many reads can be in flight, from 1 to [`EngineOptions::DEPTH_MAX`]; for `pread` also the threads, up to 64.
    pub depth: usize,
    /// Whether to read past the page cache (O_DIRECT). `mmap` cannot.
    pub direct: bool,
}

impl EngineOptions {
    /// The most reads in flight.
    pub const DEPTH_MAX: usize = 4096;

    /// The most threads that read. Deeper than this, jobs wait for a thread.
    pub(super) const THREADS_MAX: usize = 64;

    /// Threads that an engine may start: `auto` may have to read by threads, too.
    pub fn threads(&self) -> usize {
        match self.kind {
            EngineKind::Pread | EngineKind::Auto => self.depth.min(EngineOptions::THREADS_MAX),
            EngineKind::Uring | EngineKind::Mmap => 0,
        }
    }
}

impl fmt::Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EngineKind::Auto => "auto",
            EngineKind::Mmap => "mmap",
            EngineKind::Pread => "pread",
            EngineKind::Uring => "uring",
        })
    }
}

impl FromStr for EngineKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<EngineKind> {
        let kinds = [EngineKind::Auto, EngineKind::Mmap, EngineKind::Pread, EngineKind::Uring];
        let found = kinds.into_iter().find(|kind| kind.to_string() == text);
        found.ok_or_else(|| refused(text, "an engine is auto, mmap, pread or uring"))
    }
}

pub(super) fn open(options: EngineOptions, disk: &dyn Disk, cells: &[Arc<Cells>]) -> Result<Engine> {
    let EngineOptions { kind, depth, direct } = options;
    if !(1..=EngineOptions::DEPTH_MAX).contains(&depth) {
        let why = format!("its depth is from 1 to {}, not {depth}", EngineOptions::DEPTH_MAX);
        return Err(refused(kind, &why));
    }
    match kind {
        EngineKind::Mmap if direct => Err(refused(kind, "it cannot read past the page cache")),
        EngineKind::Mmap => Ok(engine(Box::new(Mmap), depth, "mmap".to_owned())),
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

fn auto(depth: usize, direct: bool, disk: &dyn Disk, cells: &[Arc<Cells>]) -> Result<Engine> {
    let direct_refused = check_direct(direct, disk).err();
    let tried = match &direct_refused {
        Some(error) => Err(error.clone()),
        None => uring(depth, direct, cells),
    };
    tried.or_else(|why| {
        let engine = pread(depth, direct && direct_refused.is_none())?;
        Ok(Engine { fallback: Some(format!("reads by {}: {why}", engine.description)), ..engine })
    })
}

fn check_direct(direct: bool, disk: &dyn Disk) -> Result<()> {
    if direct { disk.check_direct() } else { Ok(()) }
}

fn pread(depth: usize, direct: bool) -> Result<Engine> {
    let method = Pread::new(depth, direct).map_err(|error| unavailable(EngineKind::Pread, &error))?;
    Ok(engine(Box::new(method), depth, format!("pread, depth {depth}, {}", path(direct))))
}

fn uring(depth: usize, direct: bool, cells: &[Arc<Cells>]) -> Result<Engine> {
    let opened = Uring::new(depth, direct, cells);
    let (method, unregistered) = opened.map_err(|error| unavailable(EngineKind::Uring, &error))?;
    let memory = match unregistered {
        None if cells.is_empty() => String::new(),
        None => ", registered memory".to_owned(),
        Some(error) => format!(", memory not registered ({error})"),
    };
    Ok(engine(Box::new(method), depth, format!("uring, depth {depth}, {}{memory}", path(direct))))
}

fn path(direct: bool) -> &'static str {
    if direct { "O_DIRECT" } else { "page cache" }
}

fn engine(method: Box<dyn Method>, depth: usize, description: String) -> Engine {
    Engine { method, depth, in_flight: 0, ended: VecDeque::new(), description, fallback: None }
}

fn unavailable(kind: EngineKind, error: &io::Error) -> Error {
    let why = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => ": forbidden here, by kernel.io_uring_disabled or the container",
        Some(libc::ENOMEM) => ": the limit of locked memory may be too low (ulimit -l)",
        _ => "",
    };
    Error::new(ErrorKind::Unsupported, "use", format!("engine {kind}"), format!("{error}{why}"))
}

fn refused(kind: impl fmt::Display, why: &str) -> Error {
    Error::new(ErrorKind::Denied, "use", format!("engine {kind}"), why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errno::EPERM;
    use crate::mem::MemDisk;

    #[test]
    fn kinds_are_read_as_they_are_written() {
        for text in ["auto", "mmap", "pread", "uring"] {
            assert_eq!(text.parse::<EngineKind>().unwrap().to_string(), text);
        }
        let error = "io_uring".parse::<EngineKind>().unwrap_err();
        assert_eq!(error.to_string(), "cannot use engine io_uring: an engine is auto, mmap, pread or uring");
    }

    #[test]
    fn what_cannot_be_had_is_refused_in_one_line() {
        let message = |kind, depth, direct| {
            let opened = Engine::new(EngineOptions { kind, depth, direct }, &MemDisk::new(), &[]);
            opened.err().map(|error| error.to_string())
        };
        let too_deep = "cannot use engine pread: its depth is from 1 to 4096, not 4097";
        assert_eq!(message(EngineKind::Pread, 4097, false).as_deref(), Some(too_deep));
        assert!(message(EngineKind::Auto, 0, false).is_some());
        let past_cache = "cannot use engine mmap: it cannot read past the page cache";
        assert_eq!(message(EngineKind::Mmap, 1, true).as_deref(), Some(past_cache));
        let forbidden = unavailable(EngineKind::Uring, &io::Error::from_raw_os_error(EPERM));
        assert_eq!(
            forbidden.to_string(),
            "cannot use engine uring: Operation not permitted (os error 1): forbidden here, by \
             kernel.io_uring_disabled or the container"
        );
    }
}
