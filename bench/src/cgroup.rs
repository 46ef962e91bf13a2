//! Memory control groups of Linux, version 1 or 2, whichever has the controller.
//!
//! Creates a group with a memory limit, which a process joins by writing its process id into a file.
//! Afterwards the group reports the peak memory of its members, how often they reached the limit, and
//! whether the kernel killed one. Dropping the group removes it.
//!
//! Groups are created below the group of this process, so that its limits apply to them too. Version 2
//! allows that only where the parent has the controller enabled, so there the nearest such ancestor is used.

use crate::{Error, Result};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, io::ErrorKind, path::Path, path::PathBuf, thread, time::Duration};

/// Version of the control group hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CgroupVersion {
    /// Each controller has a hierarchy of its own.
    V1,
    /// All controllers share one hierarchy.
    V2,
}

/// The directory that groups of a controller are created in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupParent {
    /// Version of the hierarchy.
    pub version: CgroupVersion,
    /// Path of the parent group, which in version 1 is that of this process.
    pub dir: PathBuf,
    /// Path of the group of this process.
    pub own: PathBuf,
}

/// A control group of this process, removed when it is dropped.
#[derive(Debug)]
pub struct Cgroup {
    version: CgroupVersion,
    dir: PathBuf,
    /// The group that this process was in.
    own: PathBuf,
}

/// Membership of this process in a group. Dropping it moves the process back.
#[derive(Debug)]
pub struct Membership {
    own: PathBuf,
}

/// Number of groups that this process has created. It makes their names unique.
static CREATED_GROUPS: AtomicUsize = AtomicUsize::new(0);

/// Swap allowance of a version 1 group in bytes. Version 1 limits the sum of memory and swap; with an
/// allowance of 0 that limit is reached first, and the kernel does not count how often the memory limit is
/// reached.
const SWAP_BYTES: u64 = 1 << 20;

/// Attempts to remove a group whose last member has just exited, and the pause between them.
const REMOVE_ATTEMPTS_MAX: u32 = 100;
const REMOVE_PAUSE: Duration = Duration::from_millis(10);

impl CgroupParent {
    /// The parent for groups that limit memory, of either version.
    ///
    /// # Errors
    /// One line, if no hierarchy has the memory controller.
    pub fn memory() -> Result<CgroupParent> {
        CgroupParent::find("memory", "memory", "no control group here can limit memory")
    }

    /// The parent for groups that limit the read rate of devices, of either version.
    ///
    /// # Errors
    /// One line, if no hierarchy has the controller, `blkio` in version 1 and `io` in version 2.
    pub fn io() -> Result<CgroupParent> {
        CgroupParent::find("blkio", "io", "there are no control groups here that limit reads")
    }

    /// The parent for groups with a controller, given its names in versions 1 and 2; `missing` is the error.
    fn find(v1: &str, v2: &str, missing: &str) -> Result<CgroupParent> {
        let (own, mounts) = (read_proc_file("/proc/self/cgroup")?, read_proc_file("/proc/self/mountinfo")?);
        let found = find_v1_parent(&own, &mounts, v1).or_else(|| find_v2_parent(&own, &mounts, v2));
        found.ok_or_else(|| Error::Failed(missing.to_string()))
    }

    /// Creates a group without limits.
    ///
    /// # Errors
    /// One line, if that is not permitted.
    pub fn create(&self) -> Result<Cgroup> {
        let number = CREATED_GROUPS.fetch_add(1, Ordering::Relaxed);
        let dir = self.dir.join(format!("tierdex-bench-{}-{number}", std::process::id()));
        fs::create_dir(&dir).map_err(|error| {
            let permission = match error.kind() {
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => "; run it as root",
                _ => "",
            };
            Error::Failed(format!("cannot create the control group {}: {error}{permission}", dir.display()))
        })?;
        Ok(Cgroup { version: self.version, dir, own: self.own.clone() })
    }

    /// Creates a group whose members together have `bytes` of memory.
    ///
    /// # Errors
    /// One line, if that is not permitted.
    pub fn create_limited(&self, bytes: u64) -> Result<Cgroup> {
        let group = self.create()?;
        let (limit, swap, swap_bytes) = group.by_version(
            ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", bytes + SWAP_BYTES),
            ("memory.max", "memory.swap.max", 0),
        );
        group.write(limit, &bytes.to_string())?;
        // The file is missing where the kernel does not account swap.
        let _ = fs::write(group.dir.join(swap), swap_bytes.to_string());
        Ok(group)
    }
}

impl Cgroup {
    /// Version of the cgroup hierarchy.
    pub fn version(&self) -> CgroupVersion {
        self.version
    }

    /// The file into which a joining process writes its process id.
    pub fn procs(&self) -> PathBuf {
        self.dir.join("cgroup.procs")
    }

    /// Moves this process with all its threads into the group, until the result is dropped.
    ///
    /// # Errors
    /// One line, if that is not permitted.
    pub fn enter(&self) -> Result<Membership> {
        self.write("cgroup.procs", &std::process::id().to_string())?;
        Ok(Membership { own: self.own.clone() })
    }

    /// The file with the group's memory statistics.
    pub fn stat(&self) -> PathBuf {
        self.dir.join("memory.stat")
    }

    /// Memory that the members use now, without page cache, in bytes; `None` if the kernel does not report
    /// it.
    pub fn own(&self) -> Option<u64> {
        let (usage, cache) = self.by_version(("memory.usage_in_bytes", "cache"), ("memory.current", "file"));
        let usage: u64 = self.read(usage)?.trim().parse().ok()?;
        Some(usage.saturating_sub(number_after(&self.read("memory.stat")?, cache)?))
    }

    /// Reclaims as much page cache of the members as possible, mapped pages included. Does nothing on
    /// kernels that do not support it.
    pub fn reclaim(&self) {
        let (name, amount) = self.by_version(("memory.force_empty", "0"), ("memory.reclaim", "1T"));
        // The kernel reports an error because it cannot reclaim that amount.
        let _ = fs::write(self.dir.join(name), amount);
    }

    /// Writes `text` into the file `name` of the group.
    ///
    /// # Errors
    /// One line that names the file.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.dir.join(name);
        fs::write(&path, text)
            .map_err(Error::failed(format!("cannot write `{text}` into {}", path.display())))
    }

    /// Peak memory of the members in bytes, page cache included; `None` if the kernel does not report it.
    pub fn peak(&self) -> Option<u64> {
        self.read(self.by_version("memory.max_usage_in_bytes", "memory.peak"))?.trim().parse().ok()
    }

    /// Number of times the group reached its limit and page cache was reclaimed.
    pub fn limit_met(&self) -> Option<u64> {
        match self.version {
            CgroupVersion::V1 => self.read("memory.failcnt")?.trim().parse().ok(),
            CgroupVersion::V2 => number_after(&self.read("memory.events")?, "max"),
        }
    }

    /// Number of members that the kernel killed because nothing could be reclaimed.
    pub fn oom_kills(&self) -> Option<u64> {
        number_after(&self.read(self.by_version("memory.oom_control", "memory.events"))?, "oom_kill")
    }

    /// The value for the version of this group.
    fn by_version<T>(&self, v1: T, v2: T) -> T {
        if self.version == CgroupVersion::V1 { v1 } else { v2 }
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.dir.join(name)).ok()
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        // If this fails, the group stays after the end of the process.
        let _ = fs::write(self.own.join("cgroup.procs"), std::process::id().to_string());
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for _ in 0..REMOVE_ATTEMPTS_MAX {
            match fs::remove_dir(&self.dir) {
                // The kernel has not yet removed the last member.
                Err(error) if error.kind() == ErrorKind::ResourceBusy => thread::sleep(REMOVE_PAUSE),
                _ => return,
            }
        }
    }
}

/// The number that follows `name` at the beginning of a line.
fn number_after(text: &str, name: &str) -> Option<u64> {
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.filter(|(found, _)| *found == name).find_map(|(_, number)| number.trim().parse().ok())
}

fn read_proc_file(path: &str) -> Result<String> {
    fs::read_to_string(path).map_err(Error::failed(format!("cannot read {path}")))
}

/// The version 1 parent of a controller, from the texts of `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn find_v1_parent(own: &str, mounts: &str, controller: &str) -> Option<CgroupParent> {
    let has = |list: &str| list.split(',').any(|name| name == controller);
    let path = controllers_and_paths(own).find(|(controllers, _)| has(controllers))?.1;
    let mount = mounts
        .lines()
        .filter_map(Mount::parse)
        .find(|mount| mount.fs_type == "cgroup" && has(mount.options))?;
    let dir = mount.dir(path);
    Some(CgroupParent { version: CgroupVersion::V1, own: dir.clone(), dir })
}

/// The version 2 parent for groups with a controller, from the same texts.
fn find_v2_parent(own: &str, mounts: &str, controller: &str) -> Option<CgroupParent> {
    let path = controllers_and_paths(own).find(|(controllers, _)| controllers.is_empty())?.1;
    let mount = mounts.lines().filter_map(Mount::parse).find(|mount| mount.fs_type == "cgroup2")?;
    let own = mount.dir(path);
    let limits = |dir: &&Path| {
        let on = fs::read_to_string(dir.join("cgroup.subtree_control")).unwrap_or_default();
        on.split_whitespace().any(|name| name == controller)
    };
    let inside = own.ancestors().take_while(|dir| dir.starts_with(mount.point));
    let dir = inside.into_iter().find(limits)?.to_path_buf();
    Some(CgroupParent { version: CgroupVersion::V2, dir, own })
}

/// Controllers (empty in version 2) and path of each group of this process, from `/proc/self/cgroup`.
fn controllers_and_paths(own: &str) -> impl Iterator<Item = (&str, &str)> {
    own.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'))
}

/// A line of `/proc/self/mountinfo`.
struct Mount<'a> {
    /// The directory of the file system that is mounted.
    root: &'a str,
    point: &'a str,
    fs_type: &'a str,
    options: &'a str,
}

impl Mount<'_> {
    fn parse(line: &str) -> Option<Mount<'_>> {
        let (paths, system) = line.split_once(" - ")?;
        let mut paths = paths.split(' ').skip(3);
        let mut system = system.split(' ');
        let (root, point) = (paths.next()?, paths.next()?);
        let (fs_type, _, options) = (system.next()?, system.next()?, system.next()?);
        Some(Mount { root, point, fs_type, options })
    }

    /// The directory of a group; the mount point if the group is outside the mounted directory.
    fn dir(&self, path: &str) -> PathBuf {
        let inside = if self.root == "/" { Some(path) } else { path.strip_prefix(self.root) };
        let dir = Path::new(self.point).join(inside.unwrap_or("").trim_start_matches('/'));
        if path.contains("..") || inside.is_none() { PathBuf::from(self.point) } else { dir }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CGROUP_FILE: &str = "8:pids:/\n7:cpu,blkio:/\n4:memory:/a/b\n0::/c\n";
    const MOUNTINFO_FILE: &str = "24 1 0:21 / /proc rw - proc proc rw\n\
        30 26 0:27 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n\
        31 26 0:28 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,cpu,blkio\n\
        32 26 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn version_1_is_found_by_its_controller() {
        let dir = |name| find_v1_parent(CGROUP_FILE, MOUNTINFO_FILE, name).map(|parent| parent.dir);
        assert_eq!(dir("memory"), Some("/sys/fs/cgroup/memory/a/b".into()));
        assert_eq!(dir("blkio"), Some("/sys/fs/cgroup/blkio".into()));
        assert_eq!(dir("devices"), None);
        assert_eq!(find_v1_parent("4:memory:/\n", "", "memory"), None);
    }

    #[test]
    fn a_mount_may_show_a_subdirectory() {
        let mount = |root| Mount { root, point: "/m", fs_type: "cgroup", options: "memory" };
        let dir = |root, path| mount(root).dir(path).display().to_string();
        assert_eq!(dir("/", "/a/b"), "/m/a/b");
        assert_eq!(dir("/a", "/a/b"), "/m/b");
        assert_eq!(dir("/a", "/a"), "/m/");
        assert_eq!(dir("/a", "/c"), "/m");
        assert_eq!(dir("/", "/../c"), "/m");
    }

    #[test]
    fn version_2_is_the_nearest_ancestor_with_the_controller_enabled() {
        let mount = tempfile::tempdir().unwrap();
        let inner = mount.path().join("slice/unit");
        fs::create_dir_all(&inner).unwrap();
        let mounts = format!("32 26 0:29 / {} rw - cgroup2 cgroup2 rw\n", mount.path().display());
        let found = || find_v2_parent("0::/slice/unit\n", &mounts, "memory");
        assert_eq!(found(), None);
        fs::write(mount.path().join("cgroup.subtree_control"), "cpu memory\n").unwrap();
        assert_eq!(found().unwrap().dir, mount.path());
        fs::write(mount.path().join("slice/cgroup.subtree_control"), "memory pids\n").unwrap();
        assert_eq!(
            found(),
            Some(CgroupParent { version: CgroupVersion::V2, dir: mount.path().join("slice"), own: inner })
        );
        assert_eq!(find_v2_parent("4:memory:/\n", &mounts, "memory"), None);
        assert_eq!(find_v2_parent("0::/slice/unit\n", &mounts, "io"), None);
    }

    #[test]
    fn a_process_enters_a_group_and_returns_to_its_own() {
        let root = tempfile::tempdir().unwrap();
        let (dir, own) = (root.path().join("parent"), root.path().join("own"));
        [&dir, &own].into_iter().for_each(|dir| fs::create_dir(dir).unwrap());
        let group = CgroupParent { version: CgroupVersion::V2, dir, own: own.clone() }.create().unwrap();
        let member = |procs: &Path| fs::read_to_string(procs).ok();
        let this = Some(std::process::id().to_string());
        let membership = group.enter().unwrap();
        assert_eq!((member(&group.procs()), member(&own.join("cgroup.procs"))), (this.clone(), None));
        drop(membership);
        assert_eq!(member(&own.join("cgroup.procs")), this);
        fs::remove_file(group.procs()).unwrap();
    }

    #[test]
    fn a_group_reads_its_files_and_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let (dir, own) = (root.path().to_path_buf(), root.path().to_path_buf());
        let parent = CgroupParent { version: CgroupVersion::V1, dir, own };
        let group = parent.create().unwrap();
        for (name, text) in [
            ("memory.max_usage_in_bytes", "4096\n"),
            ("memory.failcnt", "3\n"),
            ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"),
        ] {
            group.write(name, text).unwrap();
        }
        assert_eq!((group.peak(), group.limit_met(), group.oom_kills()), (Some(4096), Some(3), Some(1)));
        let group = Cgroup { version: CgroupVersion::V2, dir: group.dir.clone(), own: group.own.clone() };
        group.write("memory.events", "low 0\nmax 12\noom 1\noom_kill 2\noom_group_kill 0\n").unwrap();
        assert_eq!((group.peak(), group.limit_met(), group.oom_kills()), (None, Some(12), Some(2)));
        let empty = parent.create().unwrap();
        let dir = empty.dir.clone();
        drop(empty);
        assert!(!dir.exists());
    }
}
