//! What of the machine is changed for a run: its page cache is dropped before each cell, huge pages are set apart, and
//! devices are slowed down.

use super::cell::Device;
use crate::throttle::{Rates, Throttle};
use crate::{Error, Result};
use std::fs;
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};

/// Gives the system's page cache back.
///
/// # Errors
/// One line, if that is not permitted.
pub(super) fn drop_page_cache() -> Result<()> {
    let path = "/proc/sys/vm/drop_caches";
    fs::write(path, "1").map_err(|error| {
        Error::Failed(format!(
            "cannot drop the page cache by {path}: {error}; run it as root, or take --keep-caches to leave it as it is"
        ))
    })
}

/// Bytes of a huge page.
pub(super) const HUGE_PAGE: u64 = 2 << 20;

const HUGE_PAGES: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";

/// Huge pages that were set apart. When it goes, there are so many fewer: another run may have set some apart meanwhile.
#[derive(Debug)]
pub(super) struct HugePages {
    dir: PathBuf,
    added: u64,
}

impl HugePages {
    /// Has `needed` huge pages of 2 MiB that nobody uses.
    ///
    /// # Errors
    /// One line that says how many cannot be had.
    pub(super) fn reserve(needed: u64) -> Result<Option<HugePages>> {
        HugePages::reserve_at(Path::new(HUGE_PAGES), needed)
    }

    fn reserve_at(dir: &Path, needed: u64) -> Result<Option<HugePages>> {
        let free = || count(dir, "free_hugepages").saturating_sub(count(dir, "resv_hugepages"));
        if free() >= needed {
            return Ok(None);
        }
        let before = count(dir, "nr_hugepages");
        let wanted = before + needed - free();
        let refused = |why: String| {
            Error::Failed(format!(
                "the largest cell needs {needed} huge pages of 2 MiB and {why}; set vm.nr_hugepages to {wanted}, or take \
                 another --region"
            ))
        };
        let written = fs::write(dir.join("nr_hugepages"), wanted.to_string());
        written.map_err(|error| refused(format!("{} are free: {error}", free())))?;
        let there = count(dir, "nr_hugepages");
        let pages = HugePages { dir: dir.to_path_buf(), added: there.saturating_sub(before) };
        if there < wanted {
            return Err(refused(format!("memory was found for {} only", needed - (wanted - there))));
        }
        Ok(Some(pages))
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        let left = count(&self.dir, "nr_hugepages").saturating_sub(self.added);
        if fs::write(self.dir.join("nr_hugepages"), left.to_string()).is_err() {
            // Nobody may be there to read it, which must not end the report.
            let _ = writeln!(stderr(), "tierdex: vm.nr_hugepages could not be set back to {left}");
        }
    }
}

/// A count of the kernel's; 0 where it has no huge pages.
fn count(dir: &Path, what: &str) -> u64 {
    let text = fs::read_to_string(dir.join(what));
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// The devices that are slower than that of the index.
#[derive(Debug)]
pub(super) struct Slow {
    throttles: Vec<(Device, Throttle)>,
}

impl Slow {
    /// One for each of `devices` that is slower than that of `index`.
    ///
    /// # Errors
    /// One line, if they cannot be emulated.
    pub(super) fn new(devices: &[Device], index: &Path) -> Result<Slow> {
        let mut throttles: Vec<(Device, Throttle)> = Vec::new();
        for &device in devices {
            let rates = device.rates();
            if rates == Rates::default() || throttles.iter().any(|(there, _)| *there == device) {
                continue;
            }
            let throttle = Throttle::new(index, rates)
                .map_err(|error| Error::Failed(format!("{error}; leave --devices at ssd")))?;
            throttles.push((device, throttle));
        }
        Ok(Slow { throttles })
    }

    /// The file into which a process writes its number that is to read as from `device`; none if that is the index's own.
    pub(super) fn procs(&self, device: Device) -> Option<PathBuf> {
        self.throttles.iter().find(|(there, _)| *there == device).map(|(_, throttle)| throttle.procs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(pages: [u64; 3]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, number) in ["nr_hugepages", "free_hugepages", "resv_hugepages"].into_iter().zip(pages) {
            fs::write(dir.path().join(name), number.to_string()).unwrap();
        }
        dir
    }

    #[test]
    fn huge_pages_are_raised_and_given_back() {
        let dir = kernel([10, 6, 1]);
        assert!(HugePages::reserve_at(dir.path(), 5).unwrap().is_none());
        let pages = HugePages::reserve_at(dir.path(), 8).unwrap().unwrap();
        assert_eq!(count(dir.path(), "nr_hugepages"), 13);
        fs::write(dir.path().join("nr_hugepages"), "20").unwrap();
        drop(pages);
        assert_eq!(count(dir.path(), "nr_hugepages"), 17);
    }

    #[test]
    fn where_there_are_none_the_number_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("none");
        let error = HugePages::reserve_at(&missing, 7).unwrap_err().to_string();
        assert!(error.contains("needs 7 huge pages") && error.contains("vm.nr_hugepages to 7"), "{error}");
    }
}
