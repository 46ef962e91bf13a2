//! Emulation of slower devices: a control group with the controller `blkio` (version 1) or `io` (version 2)
//! limits reads and bytes per second of the block device below a directory. Figures measured this way are
//! reported as emulated.
//!
//! A process joins by writing its process id into [`Throttle::procs_beside`]. A throttle has no seeks:
//! sequential and random reads cost the same (see `seek_disk`).

use crate::cgroup::{Cgroup, CgroupParent, CgroupVersion};
use crate::{Error, Result};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Upper limits of a device's read rate. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceRates {
    /// Reads per second.
    pub reads: Option<u64>,
    /// Bytes per second.
    pub bytes: Option<u64>,
}

/// Reads per second of a hard disk: an assumption of this benchmark. The APCache thesis gives only an average
/// latency of 4.16 ms (table 5.2).
const HDD_READS: u64 = 120;

/// Bytes per second of a hard disk: the sequential read bandwidth that the APCache thesis measured (table 5.2
/// and section 8.2.3).
pub const HDD_BYTES: u64 = 181_000_000;

/// A hard disk.
pub const HDD: DeviceRates = DeviceRates { reads: Some(HDD_READS), bytes: Some(HDD_BYTES) };

/// A control group whose members read at the rates of a slower device.
#[derive(Debug)]
pub struct Throttle {
    /// Number of the device.
    device: String,
    rates: DeviceRates,
    group: Cgroup,
}

impl Throttle {
    /// Limits reads from the device of `dir` to `rates`.
    ///
    /// # Errors
    /// One line, if the group cannot be created.
    pub fn new(dir: &Path, rates: DeviceRates) -> Result<Throttle> {
        let failed = |error| Error::Failed(format!("slower devices cannot be emulated: {error}"));
        Throttle::try_new(dir, rates).map_err(failed)
    }

    fn try_new(dir: &Path, rates: DeviceRates) -> Result<Throttle> {
        let device = block_device(dir)?;
        let group = CgroupParent::io()?.create()?;
        limit(&group, &device, rates)?;
        Ok(Throttle { device, rates, group })
    }

    /// The file into which a process writes its process id to read at these rates, if it is also in the group
    /// `other`. `None` if a process cannot be in both, because both are of version 2: `other` then has the
    /// limits too.
    ///
    /// # Errors
    /// One line, if `other` cannot limit reads.
    pub fn procs_beside(&self, other: Option<&Cgroup>) -> Result<Option<PathBuf>> {
        let is_v2 = |group: &&Cgroup| group.version() == CgroupVersion::V2;
        match other.filter(|other| is_v2(other) && is_v2(&&self.group)) {
            Some(other) => limit(other, &self.device, self.rates).map(|()| None),
            None => Ok(Some(self.group.procs())),
        }
    }
}

/// Limits the reads of a group from a device.
fn limit(group: &Cgroup, device: &str, rates: DeviceRates) -> Result<()> {
    match group.version() {
        CgroupVersion::V1 => {
            for (name, rate) in [("iops", rates.reads), ("bps", rates.bytes)] {
                let name = format!("blkio.throttle.read_{name}_device");
                rate.map_or(Ok(()), |rate| group.write(&name, &format!("{device} {rate}")))?;
            }
            Ok(())
        }
        CgroupVersion::V2 => {
            let rate = |rate: Option<u64>| rate.map_or("max".to_string(), |rate| rate.to_string());
            let limits = format!("{device} rbps={} riops={}", rate(rates.bytes), rate(rates.reads));
            group.write("io.max", &limits)
        }
    }
}

/// Number of the whole block device (not the partition) of a directory: `8:0`.
pub(crate) fn block_device(dir: &Path) -> Result<String> {
    let failed = |why: String| Error::Failed(format!("{}: {why}", dir.display()));
    let device = fs::metadata(dir).map_err(|error| failed(error.to_string()))?.dev();
    let number = format!("{}:{}", major(device), minor(device));
    let entry = PathBuf::from(format!("/sys/dev/block/{number}"));
    if !entry.exists() {
        return Err(failed(format!(
            "its file system is on no block device (device number {number}); its reads cannot be controlled"
        )));
    }
    if !entry.join("partition").exists() {
        return Ok(number);
    }
    let whole = fs::canonicalize(&entry).and_then(|entry| fs::read_to_string(entry.join("../dev")));
    whole.map(|number| number.trim().to_string()).map_err(|error| failed(error.to_string()))
}

/// Major number of a device, as the C library packs it.
fn major(device: u64) -> u64 {
    (device >> 8) & 0xfff | (device >> 32) & !0xfff
}

/// Minor number of a device.
fn minor(device: u64) -> u64 {
    device & 0xff | (device >> 12) & !0xff & 0xffff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_are_split_into_major_and_minor() {
        assert_eq!((major(0xfe00), minor(0xfe00)), (254, 0));
        assert_eq!((major(0x0801), minor(0x0801)), (8, 1));
        let large = 0x123 << 8 | 0x45 | 0x678 << 20;
        assert_eq!((major(large), minor(large)), (0x123, 0x67845));
    }

    #[test]
    fn each_version_has_its_own_files() {
        let dir = tempfile::tempdir().unwrap();
        let group = |version, name: &str| {
            let dir = dir.path().join(name);
            fs::create_dir(&dir).unwrap();
            CgroupParent { version, dir }.create().unwrap()
        };
        let text = |group: &Cgroup, name| fs::read_to_string(group.procs().with_file_name(name)).ok();
        let (one, two) = (group(CgroupVersion::V1, "one"), group(CgroupVersion::V2, "two"));
        let sas = DeviceRates { reads: None, bytes: Some(793) };
        limit(&one, "8:0", sas).unwrap();
        limit(&two, "8:0", sas).unwrap();
        assert_eq!(text(&one, "blkio.throttle.read_bps_device").as_deref(), Some("8:0 793"));
        assert_eq!(text(&one, "blkio.throttle.read_iops_device"), None);
        assert_eq!(text(&two, "io.max").as_deref(), Some("8:0 rbps=793 riops=max"));

        // A process is in one group of version 2.
        let memory = group(CgroupVersion::V2, "memory");
        let throttle = Throttle { device: "8:0".to_string(), rates: HDD, group: two };
        assert_eq!(throttle.procs_beside(Some(&memory)).unwrap(), None);
        assert_eq!(text(&memory, "io.max").as_deref(), Some("8:0 rbps=181000000 riops=120"));
        assert_eq!(throttle.procs_beside(Some(&one)).unwrap(), Some(throttle.group.procs()));
        assert_eq!(throttle.procs_beside(None).unwrap(), Some(throttle.group.procs()));
    }
}
