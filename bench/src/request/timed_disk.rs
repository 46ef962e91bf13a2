//! A disk that measures the time of its writes.

use std::{sync::Arc, sync::atomic::AtomicU64, sync::atomic::Ordering, time::Duration, time::Instant};
use tierdex::io::{Disk, PosixDisk, Result, WriteFile};

/// A directory. It sums up the time that file creations, appends, syncs and renames take.
pub(super) struct TimedDisk {
    disk: PosixDisk,
    nanoseconds: Arc<AtomicU64>,
}

struct TimedFile {
    file: Box<dyn WriteFile>,
    nanoseconds: Arc<AtomicU64>,
}

impl TimedDisk {
    pub(super) fn new(disk: PosixDisk) -> TimedDisk {
        TimedDisk { disk, nanoseconds: Arc::default() }
    }

    /// The time of all writes so far.
    pub(super) fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed))
    }
}

fn time_write<T>(nanoseconds: &AtomicU64, write: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let done = write();
    nanoseconds.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
    done
}

impl WriteFile for TimedFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        time_write(&self.nanoseconds, || self.file.append(bytes))
    }

    fn sync(&mut self) -> Result<()> {
        time_write(&self.nanoseconds, || self.file.sync())
    }
}

impl Disk for TimedDisk {
    tierdex::io::forward_disk!(self, self.disk; list open remove lock describe);

    fn create(&self, name: &str) -> Result<Box<dyn WriteFile>> {
        let file = time_write(&self.nanoseconds, || self.disk.create(name))?;
        Ok(Box::new(TimedFile { file, nanoseconds: self.nanoseconds.clone() }))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        time_write(&self.nanoseconds, || self.disk.rename(from, to))
    }

    fn sync_dir(&self) -> Result<()> {
        time_write(&self.nanoseconds, || self.disk.sync_dir())
    }
}
