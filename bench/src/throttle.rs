//! Emulation of slower devices: a control group with the controller `blkio` (version 1) or `io` (version 2)
//! limits the bytes per second that are read from the block device below a directory. Figures measured this
//! way are reported as emulated.
//!
//! This process joins by [`Throttle::enter`], another one by writing its process id into
//! [`Throttle::procs_file_beside`]. A throttle has no seeks: sequential and random reads cost the same (see
//! `seek_disk`).

use crate::{Error, Result, cgroup::Cgroup, cgroup::CgroupParent, cgroup::CgroupVersion, cgroup::Membership};
use std::{fs, os::unix::fs::MetadataExt, path::Path, path::PathBuf};

/// Bytes per second of a SAS SSD: the sequential read bandwidth that the APCache thesis measured (section
/// 8.2.3).
pub const SAS_BYTES_PER_SECOND: u64 = 793_000_000;

/// A control group whose members read at the bandwidth of a slower device.
#[derive(Debug)]
pub struct Throttle {
    /// Major and minor number of the device: `8:0`.
    device: String,
    bytes_per_second: u64,
    group: Cgroup,
}

impl Throttle {
    /// Limits reads from the device of `dir`.
    ///
    /// # Errors
    /// One line, if the group cannot be created.
    pub fn new(dir: &Path, bytes_per_second: u64) -> Result<Throttle> {
        let new = Throttle::try_new(dir, bytes_per_second);
        new.map_err(Error::failed("slower devices cannot be emulated"))
    }

    fn try_new(dir: &Path, bytes_per_second: u64) -> Result<Throttle> {
        let device = block_device(dir)?;
        let group = CgroupParent::io()?.create()?;
        limit_reads(&group, &device, bytes_per_second)?;
        Ok(Throttle { device, bytes_per_second, group })
    }

    /// Moves this process into the group, so that it reads at this bandwidth, until the result is dropped.
    /// It must be dropped before the throttle.
    ///
    /// # Errors
    /// One line, if that is not permitted.
    pub fn enter(&self) -> Result<Membership> {
        self.group.enter()
    }

    /// The file into which a process writes its process id to read at this bandwidth, if it is also in the
    /// group `other`. `None` if a process cannot be in both, because both are of version 2: `other` then has
    /// the limits too.
    ///
    /// # Errors
    /// One line, if `other` cannot limit reads.
    pub fn procs_file_beside(&self, other: Option<&Cgroup>) -> Result<Option<PathBuf>> {
        let is_v2 = |group: &&Cgroup| group.version() == CgroupVersion::V2;
        match other.filter(|other| is_v2(other) && is_v2(&&self.group)) {
            Some(other) => limit_reads(other, &self.device, self.bytes_per_second).map(|()| None),
            None => Ok(Some(self.group.procs())),
        }
    }
}

/// Limits the reads of a group from a device.
fn limit_reads(group: &Cgroup, device: &str, bytes_per_second: u64) -> Result<()> {
    match group.version() {
        CgroupVersion::V1 => {
            group.write("blkio.throttle.read_bps_device", &format!("{device} {bytes_per_second}"))
        }
        CgroupVersion::V2 => group.write("io.max", &format!("{device} rbps={bytes_per_second}")),
    }
}

/// Number of the whole block device (not the partition) of a directory: `8:0`.
pub(crate) fn block_device(dir: &Path) -> Result<String> {
    let failed = |why: String| Error::Failed(format!("{}: {why}", dir.display()));
    let device = fs::metadata(dir).map_err(|error| failed(error.to_string()))?.dev();
    let number = format!("{}:{}", major_number(device), minor_number(device));
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
fn major_number(device: u64) -> u64 {
    (device >> 8) & 0xfff | (device >> 32) & !0xfff
}

/// Minor number of a device.
fn minor_number(device: u64) -> u64 {
    device & 0xff | (device >> 12) & !0xff & 0xffff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_are_split_into_major_and_minor() {
        assert_eq!((major_number(0xfe00), minor_number(0xfe00)), (254, 0));
        assert_eq!((major_number(0x0801), minor_number(0x0801)), (8, 1));
        let large = 0x123 << 8 | 0x45 | 0x678 << 20;
        assert_eq!((major_number(large), minor_number(large)), (0x123, 0x67845));
    }

    #[test]
    fn each_version_has_its_own_files() {
        let dir = tempfile::tempdir().unwrap();
        let group = |version, name: &str| {
            let dir = dir.path().join(name);
            fs::create_dir(&dir).unwrap();
            CgroupParent { version, own: dir.clone(), dir }.create().unwrap()
        };
        let text = |group: &Cgroup, name| fs::read_to_string(group.procs().with_file_name(name)).ok();
        let (one, two) = (group(CgroupVersion::V1, "one"), group(CgroupVersion::V2, "two"));
        limit_reads(&one, "8:0", 793).unwrap();
        limit_reads(&two, "8:0", 793).unwrap();
        assert_eq!(text(&one, "blkio.throttle.read_bps_device").as_deref(), Some("8:0 793"));
        assert_eq!(text(&two, "io.max").as_deref(), Some("8:0 rbps=793"));

        // A process is in one group of version 2.
        let memory = group(CgroupVersion::V2, "memory");
        let throttle =
            Throttle { device: "8:0".to_string(), bytes_per_second: SAS_BYTES_PER_SECOND, group: two };
        assert_eq!(throttle.procs_file_beside(Some(&memory)).unwrap(), None);
        assert_eq!(text(&memory, "io.max").as_deref(), Some("8:0 rbps=793000000"));
        assert_eq!(throttle.procs_file_beside(Some(&one)).unwrap(), Some(throttle.group.procs()));
        assert_eq!(throttle.procs_file_beside(None).unwrap(), Some(throttle.group.procs()));
    }
}
