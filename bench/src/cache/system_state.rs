//! Changes of the machine's state for a run: drops the page cache, reserves huge pages, for which memory is
//! compacted if it is too fragmented, throttles devices, and sets their read-ahead.

use crate::{
    Error, Result, cache::device::Device, cgroup::Cgroup, throttle::Throttle, throttle::block_device,
};
use std::{fs, fs::File, fs::TryLockError, io::Write, io::stderr, path::Path, path::PathBuf};

/// Drops the system's page cache.
///
/// # Errors
/// One line, if that is not permitted.
pub(crate) fn drop_page_cache() -> Result<()> {
    let path = "/proc/sys/vm/drop_caches";
    fs::write(path, "1").map_err(|error| {
        Error::Failed(format!(
            "cannot drop the page cache by {path}: {error}; run it as root, or add --keep-caches to leave it as it is"
        ))
    })
}

/// How often huge pages are requested. Before each further request memory is compacted.
const HUGE_PAGE_ATTEMPTS_MAX: u32 = 3;

const HUGE_PAGES_DIR: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";
const COMPACT_MEMORY_FILE: &str = "/proc/sys/vm/compact_memory";

/// Huge pages that this run reserved. Dropping it lowers the number of huge pages by as many, and not to the
/// former number, because another run may have reserved some since.
#[derive(Debug)]
pub(super) struct HugePages {
    dir: PathBuf,
    added: u64,
}

impl HugePages {
    /// Makes sure that `needed` huge pages of 2 MiB are free.
    ///
    /// # Errors
    /// One line with the number of pages that are available.
    pub(super) fn reserve(needed: u64) -> Result<Option<HugePages>> {
        HugePages::reserve_at(Path::new(HUGE_PAGES_DIR), Path::new(COMPACT_MEMORY_FILE), needed)
    }

    fn reserve_at(dir: &Path, compact_memory: &Path, needed: u64) -> Result<Option<HugePages>> {
        let free =
            || kernel_counter(dir, "free_hugepages").saturating_sub(kernel_counter(dir, "resv_hugepages"));
        if free() >= needed {
            return Ok(None);
        }
        let before = kernel_counter(dir, "nr_hugepages");
        let target = before + needed - free();
        let failed = |why: String| {
            Error::Failed(format!(
                "the largest cell needs {needed} huge pages of 2 MiB and {why}; set vm.nr_hugepages to {target}, or \
                 choose another --region"
            ))
        };
        let mut pages = HugePages { dir: dir.to_path_buf(), added: 0 };
        for attempt in 0..HUGE_PAGE_ATTEMPTS_MAX {
            if attempt > 0 {
                // Earlier cells leave memory fragmented. Where compaction is not permitted, the error
                // below has the number of pages.
                let _ = fs::write(compact_memory, "1");
            }
            let written = fs::write(dir.join("nr_hugepages"), target.to_string());
            written.map_err(|error| failed(format!("{} are free: {error}", free())))?;
            let there = kernel_counter(dir, "nr_hugepages");
            pages.added = there.saturating_sub(before);
            if there >= target {
                return Ok(Some(pages));
            }
        }
        let missing = target - before - pages.added;
        Err(failed(format!("there is memory for {} only", needed.saturating_sub(missing))))
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        let left = kernel_counter(&self.dir, "nr_hugepages").saturating_sub(self.added);
        if fs::write(self.dir.join("nr_hugepages"), left.to_string()).is_err() {
            // A closed standard error must not end the run.
            let _ = writeln!(stderr(), "tierdex: vm.nr_hugepages could not be set back to {left}");
        }
    }
}

/// A number of huge pages that the kernel reports in the file `what`; 0 if there is no such file.
fn kernel_counter(dir: &Path, what: &str) -> u64 {
    let text = fs::read_to_string(dir.join(what));
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// The read-ahead of a device, which is restored when this is dropped. Its file is locked until then, because
/// another run would find the changed value, and restore that.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    path: PathBuf,
    before: String,
    _lock: File,
}

impl ReadAhead {
    /// Sets the read-ahead of the device of a directory to `kb` kilobytes.
    ///
    /// # Errors
    /// One line, if there is no such device, it is not permitted, or another run has changed it.
    pub(crate) fn set(dir: &Path, kb: u32) -> Result<ReadAhead> {
        ReadAhead::set_at(format!("/sys/dev/block/{}/queue/read_ahead_kb", block_device(dir)?).into(), kb)
    }

    fn set_at(path: PathBuf, kb: u32) -> Result<ReadAhead> {
        let what = format!("cannot set the read-ahead of the device: {}", path.display());
        let failed = Error::failed::<std::io::Error>(what);
        let lock = File::open(&path).map_err(&failed)?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::Error(error) => failed(error),
            TryLockError::WouldBlock => Error::Failed(format!(
                "another run has set the read-ahead of the device and locks {}; wait until it has ended",
                path.display()
            )),
        })?;
        let before = fs::read_to_string(&path).map_err(&failed)?;
        fs::write(&path, kb.to_string()).map_err(&failed)?;
        Ok(ReadAhead { before, path, _lock: lock })
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        let before = self.before.trim();
        if fs::write(&self.path, before).is_err() {
            let path = self.path.display();
            // A closed standard error must not end the run.
            let _ = writeln!(stderr(), "tierdex: {path} could not be set back to {before}");
        }
    }
}

/// The control groups by which slower devices are emulated, one for each device.
#[derive(Debug)]
pub(super) struct ThrottledDevices {
    throttles: Vec<(Device, Throttle)>,
}

impl ThrottledDevices {
    /// One throttle for each of `devices` that has limits.
    ///
    /// # Errors
    /// One line, if devices cannot be emulated.
    pub(super) fn new(devices: &[Device], index: &Path) -> Result<ThrottledDevices> {
        let mut throttles: Vec<(Device, Throttle)> = Vec::new();
        for &device in devices {
            let Some(bandwidth) = device.bytes_per_second() else { continue };
            if throttles.iter().any(|(there, _)| *there == device) {
                continue;
            }
            let throttle = Throttle::new(index, bandwidth)
                .map_err(|error| Error::Failed(format!("{error}; use --devices ssd")))?;
            throttles.push((device, throttle));
        }
        Ok(ThrottledDevices { throttles })
    }

    /// The file into which a process in the group `memory` writes its process id to read at the
    /// bandwidth of `device`; `None` if the device is not throttled, or `memory` has the limit.
    ///
    /// # Errors
    /// One line, if `memory` must have the limits and cannot.
    pub(super) fn procs_file(&self, device: Device, memory: Option<&Cgroup>) -> Result<Option<PathBuf>> {
        let found = self.throttles.iter().find(|(there, _)| *there == device);
        found.map_or(Ok(None), |(_, throttle)| throttle.procs_file_beside(memory))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fake_huge_pages_dir(pages: [u64; 3]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, number) in ["nr_hugepages", "free_hugepages", "resv_hugepages"].into_iter().zip(pages) {
            fs::write(dir.path().join(name), number.to_string()).unwrap();
        }
        dir
    }

    #[test]
    fn the_read_ahead_of_a_device_is_restored() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("read_ahead_kb");
        fs::write(&path, "8192\n").unwrap();
        let changed = ReadAhead::set_at(path.clone(), 64).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "64");
        let error = ReadAhead::set_at(path.clone(), 128).unwrap_err().to_string();
        assert!(error.contains("another run") && !error.contains('\n'), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "64");
        drop(changed);
        assert_eq!(fs::read_to_string(&path).unwrap(), "8192");
        drop(ReadAhead::set_at(path.clone(), 128).unwrap());
        let error = ReadAhead::set_at(dir.path().join("none/none"), 64).unwrap_err().to_string();
        assert!(error.contains("cannot set the read-ahead"), "{error}");
    }

    #[test]
    fn a_directory_without_a_block_device_has_no_read_ahead() {
        let error = ReadAhead::set(Path::new("/proc"), 64).unwrap_err().to_string();
        assert!(error.contains("on no block device") && !error.contains('\n'), "{error}");
    }

    #[test]
    fn huge_pages_are_reserved_and_released() {
        let dir = fake_huge_pages_dir([10, 6, 1]);
        let compaction = dir.path().join("compact_memory");
        assert!(HugePages::reserve_at(dir.path(), &compaction, 5).unwrap().is_none());
        let pages = HugePages::reserve_at(dir.path(), &compaction, 8).unwrap().unwrap();
        assert!(!compaction.exists());
        assert_eq!(kernel_counter(dir.path(), "nr_hugepages"), 13);
        fs::write(dir.path().join("nr_hugepages"), "20").unwrap();
        drop(pages);
        assert_eq!(kernel_counter(dir.path(), "nr_hugepages"), 17);
    }

    #[test]
    fn memory_is_compacted_if_a_reservation_falls_short() {
        let dir = fake_huge_pages_dir([0, 0, 0]);
        let compaction = dir.path().join("compact_memory");
        // A kernel that has no memory for huge pages: their number stays 0.
        fs::remove_file(dir.path().join("nr_hugepages")).unwrap();
        std::os::unix::fs::symlink("/dev/null", dir.path().join("nr_hugepages")).unwrap();
        let error = HugePages::reserve_at(dir.path(), &compaction, 7).unwrap_err().to_string();
        assert!(error.contains("there is memory for 0 only; set vm.nr_hugepages to 7"), "{error}");
        assert_eq!(fs::read_to_string(&compaction).unwrap(), "1");
    }

    #[test]
    fn the_error_names_the_missing_number_of_pages() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("none");
        let error = HugePages::reserve_at(&missing, &missing, 7).unwrap_err().to_string();
        assert!(error.contains("needs 7 huge pages") && error.contains("vm.nr_hugepages to 7"), "{error}");
    }
}
