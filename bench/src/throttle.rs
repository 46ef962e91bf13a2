//! Slower devices, emulated: the block layer is told to let no more through (`blkio` of control groups, version 1). Figures
//! of them are called emulated.
//!
//! You have a folder and the rates of a device; you get a group whose members read from the folder's device as from that
//! one. Other processes join by writing their number into a file, this one by [`Throttle::join`].

use crate::group::{Group, Parent};
use crate::{Error, Result};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What a device does in a second, at most; none is as much as it can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Reads.
    pub reads: Option<u64>,
    /// Bytes.
    pub bytes: Option<u64>,
}

/// A disk that turns, as the thesis measured its own (section 8.2.2).
pub const HDD: Rates = Rates { reads: Some(120), bytes: Some(181_000_000) };

/// A group whose members read as from a slower device.
#[derive(Debug)]
pub struct Throttle {
    group: Group,
    parent: Parent,
}

/// This process is in the group until it is dropped.
#[derive(Debug)]
pub struct Joined(Throttle);

impl Throttle {
    /// Lets no more than `rates` through from the device that `folder` is on.
    ///
    /// # Errors
    /// One line, if there cannot be such a group.
    pub fn new(folder: &Path, rates: Rates) -> Result<Throttle> {
        let failed = |error| Error::Failed(format!("slower devices cannot be emulated: {error}"));
        Throttle::try_new(folder, rates).map_err(failed)
    }

    fn try_new(folder: &Path, rates: Rates) -> Result<Throttle> {
        let parent = Parent::devices()?;
        let number = block_device(folder)?;
        let group = parent.group()?;
        for (name, rate) in [("iops", rates.reads), ("bps", rates.bytes)] {
            let name = format!("blkio.throttle.read_{name}_device");
            rate.map_or(Ok(()), |rate| group.write(&name, &format!("{number} {rate}")))?;
        }
        Ok(Throttle { group, parent })
    }

    /// The file into which a process that joins writes its number.
    pub fn procs(&self) -> PathBuf {
        self.group.procs()
    }

    /// Joins with this process.
    ///
    /// # Errors
    /// One line, if that is not permitted.
    pub fn join(self) -> Result<Joined> {
        self.group.write("cgroup.procs", &std::process::id().to_string())?;
        Ok(Joined(self))
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        // Nothing can be done about it but to stay.
        let _ = fs::write(self.0.parent.dir.join("cgroup.procs"), std::process::id().to_string());
    }
}

/// The number of the device, as a whole, on which a folder is: `8:0`.
fn block_device(folder: &Path) -> Result<String> {
    let failed = |why: String| Error::Failed(format!("{}: {why}", folder.display()));
    let device = fs::metadata(folder).map_err(|error| failed(error.to_string()))?.dev();
    let number = format!("{}:{}", major(device), minor(device));
    let entry = PathBuf::from(format!("/sys/dev/block/{number}"));
    if !entry.exists() {
        return Err(failed(format!(
            "its file system is on no block device (it says {number}); it cannot be slowed down"
        )));
    }
    if !entry.join("partition").exists() {
        return Ok(number);
    }
    let whole = fs::canonicalize(&entry).and_then(|entry| fs::read_to_string(entry.join("../dev")));
    whole.map(|number| number.trim().to_string()).map_err(|error| failed(error.to_string()))
}

/// The halves of a device's number, as the C library packs them.
fn major(device: u64) -> u64 {
    (device >> 8) & 0xfff | (device >> 32) & !0xfff
}

fn minor(device: u64) -> u64 {
    device & 0xff | (device >> 12) & !0xff & 0xffff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_devices_are_taken_apart() {
        assert_eq!((major(0xfe00), minor(0xfe00)), (254, 0));
        assert_eq!((major(0x0801), minor(0x0801)), (8, 1));
        let large = 0x123 << 8 | 0x45 | 0x678 << 20;
        assert_eq!((major(large), minor(large)), (0x123, 0x67845));
    }

    #[test]
    fn this_process_joins_and_leaves() {
        // No rates, since other tests read meanwhile. Where groups are not permitted, there is nothing to see.
        let Ok(throttle) = Throttle::new(Path::new("."), Rates::default()) else { return };
        let dir = throttle.procs().parent().unwrap().to_path_buf();
        let members = || fs::read_to_string(dir.join("cgroup.procs")).unwrap();
        assert_eq!(members(), "");
        let joined = throttle.join().unwrap();
        assert_eq!(members().trim(), std::process::id().to_string());
        drop(joined);
        assert!(!dir.exists());
    }
}
