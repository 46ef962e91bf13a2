//! Memory control groups of Linux, version 1 or 2, whichever has the controller here.
//!
//! You have a limit; you get a group that a process can join by writing its number into a file, and afterwards how much
//! its members took at most, how often they met the limit, and whether the system killed one. The group goes with its
//! owner.
//!
//! Groups are made below this process's own, so that whatever binds it binds them. Version 2 allows that only where the
//! parent's controllers are on, so there it is the nearest one above for which that is so.

use crate::{Error, Result};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// A version of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Each controller has folders of its own.
    One,
    /// All have one.
    Two,
}

/// Where groups of a controller are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Its version.
    pub version: Version,
    /// Its folder.
    pub dir: PathBuf,
}

/// A group.
#[derive(Debug)]
pub struct Group {
    version: Version,
    dir: PathBuf,
}

/// Groups that this process made.
static MADE: AtomicUsize = AtomicUsize::new(0);

/// Bytes that may be swapped out, for a group of version 1: memory and swap have one limit there, and while it is met first the
/// kernel does not count how often the limit of memory is.
const SWAP: u64 = 1 << 20;

/// How often, and in which intervals, a group is asked to go whose last member has just ended.
const TRIES: u32 = 100;
const TRY_EVERY: Duration = Duration::from_millis(10);

impl Parent {
    /// Where groups can be made that limit memory.
    ///
    /// # Errors
    /// One line that says why there are none.
    pub fn memory() -> Result<Parent> {
        let (own, mounts) = (proc_file("/proc/self/cgroup")?, proc_file("/proc/self/mountinfo")?);
        let found = one(&own, &mounts, "memory").or_else(|| two(&own, &mounts));
        let missing = "no control group here can limit memory";
        found.ok_or_else(|| Error::Failed(missing.to_string()))
    }

    /// Where groups of version 1 can be made that slow devices down.
    ///
    /// # Errors
    /// One line that says that there are none.
    pub fn devices() -> Result<Parent> {
        let (own, mounts) = (proc_file("/proc/self/cgroup")?, proc_file("/proc/self/mountinfo")?);
        let missing = "there are no `blkio` control groups of version 1 here";
        one(&own, &mounts, "blkio").ok_or_else(|| Error::Failed(missing.to_string()))
    }

    /// A new group.
    ///
    /// # Errors
    /// One line, if that is not permitted.
    pub fn group(&self) -> Result<Group> {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let dir = self.dir.join(format!("tierdex-bench-{}-{number}", std::process::id()));
        fs::create_dir(&dir).map_err(|error| {
            let permission = match error.kind() {
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => "; run it as root",
                _ => "",
            };
            Error::Failed(format!("cannot make the control group {}: {error}{permission}", dir.display()))
        })?;
        Ok(Group { version: self.version, dir })
    }

    /// A new group whose members have so many bytes of memory together.
    ///
    /// # Errors
    /// One line, if that is not permitted.
    pub fn limited(&self, bytes: u64) -> Result<Group> {
        let group = self.group()?;
        let (limit, swap) = match self.version {
            Version::One => ("memory.limit_in_bytes", ("memory.memsw.limit_in_bytes", bytes + SWAP)),
            Version::Two => ("memory.max", ("memory.swap.max", 0)),
        };
        group.write(limit, &bytes.to_string())?;
        // Where memory is not swapped out, there is nothing to limit.
        let _ = fs::write(group.dir.join(swap.0), swap.1.to_string());
        Ok(group)
    }
}

impl Group {
    /// The file into which a process that joins writes its number.
    pub fn procs(&self) -> PathBuf {
        self.dir.join("cgroup.procs")
    }

    /// The file that says what its memory is.
    pub fn stat(&self) -> PathBuf {
        self.dir.join("memory.stat")
    }

    /// Bytes that its members have now and that are no page cache; none if the kernel does not say.
    pub fn own(&self) -> Option<u64> {
        let (usage, cache) = match self.version {
            Version::One => ("memory.usage_in_bytes", "cache"),
            Version::Two => ("memory.current", "file"),
        };
        let usage: u64 = self.read(usage)?.trim().parse().ok()?;
        Some(usage.saturating_sub(event(&self.read("memory.stat")?, cache)?))
    }

    /// Takes from its members all page cache that can be had, also what they have mapped. Where the kernel does not know how,
    /// nothing happens.
    pub fn reclaim(&self) {
        let (name, much) = match self.version {
            Version::One => ("memory.force_empty", "0"),
            Version::Two => ("memory.reclaim", "1T"),
        };
        // It says that it could not take as much as that.
        let _ = fs::write(self.dir.join(name), much);
    }

    /// Writes into one of its files.
    ///
    /// # Errors
    /// One line that names the file.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.dir.join(name);
        fs::write(&path, text)
            .map_err(|error| Error::Failed(format!("cannot write `{text}` into {}: {error}", path.display())))
    }

    /// The most memory that its members had together, page cache included; none if the kernel does not say.
    pub fn peak(&self) -> Option<u64> {
        let name = match self.version {
            Version::One => "memory.max_usage_in_bytes",
            Version::Two => "memory.peak",
        };
        self.read(name)?.trim().parse().ok()
    }

    /// How often its members met the limit, and had to give page cache back.
    pub fn limit_met(&self) -> Option<u64> {
        match self.version {
            Version::One => self.read("memory.failcnt")?.trim().parse().ok(),
            Version::Two => event(&self.read("memory.events")?, "max"),
        }
    }

    /// How many of its members the system killed because there was nothing to give back.
    pub fn killed(&self) -> Option<u64> {
        let name = match self.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        event(&self.read(name)?, "oom_kill")
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.dir.join(name)).ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..TRIES {
            match fs::remove_dir(&self.dir) {
                // The kernel still buries its last member.
                Err(error) if error.kind() == ErrorKind::ResourceBusy => thread::sleep(TRY_EVERY),
                _ => return,
            }
        }
    }
}

/// The number behind a name.
fn event(text: &str, name: &str) -> Option<u64> {
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs.filter(|(found, _)| *found == name).find_map(|(_, number)| number.trim().parse().ok())
}

fn proc_file(path: &str) -> Result<String> {
    fs::read_to_string(path).map_err(|error| Error::Failed(format!("cannot read {path}: {error}")))
}

/// Where a process with such a `/proc/self/cgroup` and `/proc/self/mountinfo` makes groups of a controller of version 1.
fn one(own: &str, mounts: &str, controller: &str) -> Option<Parent> {
    let has = |list: &str| list.split(',').any(|name| name == controller);
    let path = paths(own).find(|(controllers, _)| has(controllers))?.1;
    let mount =
        mounts.lines().filter_map(Mount::parse).find(|mount| mount.kind == "cgroup" && has(mount.options))?;
    Some(Parent { version: Version::One, dir: mount.folder(path) })
}

/// Where it makes groups of version 2 that limit memory.
fn two(own: &str, mounts: &str) -> Option<Parent> {
    let path = paths(own).find(|(controllers, _)| controllers.is_empty())?.1;
    let mount = mounts.lines().filter_map(Mount::parse).find(|mount| mount.kind == "cgroup2")?;
    let own = mount.folder(path);
    let limits = |dir: &&Path| {
        let on = fs::read_to_string(dir.join("cgroup.subtree_control")).unwrap_or_default();
        on.split_whitespace().any(|name| name == "memory")
    };
    let inside = own.ancestors().take_while(|dir| dir.starts_with(mount.point));
    let dir = inside.into_iter().find(limits)?.to_path_buf();
    Some(Parent { version: Version::Two, dir })
}

/// Controllers and paths of `/proc/self/cgroup`.
fn paths(own: &str) -> impl Iterator<Item = (&str, &str)> {
    own.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'))
}

/// A line of `/proc/self/mountinfo`.
struct Mount<'a> {
    /// What of the file system is mounted.
    root: &'a str,
    point: &'a str,
    kind: &'a str,
    options: &'a str,
}

impl Mount<'_> {
    fn parse(line: &str) -> Option<Mount<'_>> {
        let (place, system) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let mut system = system.split(' ');
        let (root, point) = (place.next()?, place.next()?);
        let (kind, _, options) = (system.next()?, system.next()?, system.next()?);
        Some(Mount { root, point, kind, options })
    }

    /// The folder of a group; that of the mount if the group is outside of what is mounted.
    fn folder(&self, path: &str) -> PathBuf {
        let inside = if self.root == "/" { Some(path) } else { path.strip_prefix(self.root) };
        let dir = Path::new(self.point).join(inside.unwrap_or("").trim_start_matches('/'));
        if path.contains("..") || inside.is_none() { PathBuf::from(self.point) } else { dir }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "8:pids:/\n7:cpu,blkio:/\n4:memory:/a/b\n0::/c\n";
    const MOUNTS: &str = "24 1 0:21 / /proc rw - proc proc rw\n\
        30 26 0:27 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n\
        31 26 0:28 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,cpu,blkio\n\
        32 26 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn version_one_is_found_by_its_controller() {
        let dir = |controller| one(OWN, MOUNTS, controller).map(|parent| parent.dir);
        assert_eq!(dir("memory"), Some("/sys/fs/cgroup/memory/a/b".into()));
        assert_eq!(dir("blkio"), Some("/sys/fs/cgroup/blkio".into()));
        assert_eq!(dir("devices"), None);
        assert_eq!(one("4:memory:/\n", "", "memory"), None);
    }

    #[test]
    fn what_is_mounted_may_be_a_part() {
        let mount = |root| Mount { root, point: "/m", kind: "cgroup", options: "memory" };
        let folder = |root, path| mount(root).folder(path).display().to_string();
        assert_eq!(folder("/", "/a/b"), "/m/a/b");
        assert_eq!(folder("/a", "/a/b"), "/m/b");
        assert_eq!(folder("/a", "/a"), "/m/");
        assert_eq!(folder("/a", "/c"), "/m");
        assert_eq!(folder("/", "/../c"), "/m");
    }

    #[test]
    fn version_two_is_the_nearest_parent_whose_controllers_are_on() {
        let mount = tempfile::tempdir().unwrap();
        let inner = mount.path().join("slice/unit");
        fs::create_dir_all(&inner).unwrap();
        let mounts = format!("32 26 0:29 / {} rw - cgroup2 cgroup2 rw\n", mount.path().display());
        let found = || two("0::/slice/unit\n", &mounts);
        assert_eq!(found(), None);
        fs::write(mount.path().join("cgroup.subtree_control"), "cpu memory\n").unwrap();
        assert_eq!(found().unwrap().dir, mount.path());
        fs::write(mount.path().join("slice/cgroup.subtree_control"), "memory pids\n").unwrap();
        assert_eq!(found(), Some(Parent { version: Version::Two, dir: mount.path().join("slice") }));
        assert_eq!(two("4:memory:/\n", &mounts), None);
    }

    #[test]
    fn a_group_reads_its_files_and_goes() {
        let place = tempfile::tempdir().unwrap();
        let parent = Parent { version: Version::One, dir: place.path().to_path_buf() };
        let group = parent.group().unwrap();
        for (name, text) in [
            ("memory.max_usage_in_bytes", "4096\n"),
            ("memory.failcnt", "3\n"),
            ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"),
        ] {
            group.write(name, text).unwrap();
        }
        assert_eq!((group.peak(), group.limit_met(), group.killed()), (Some(4096), Some(3), Some(1)));
        let group = Group { version: Version::Two, dir: group.dir.clone() };
        group.write("memory.events", "low 0\nmax 12\noom 1\noom_kill 2\noom_group_kill 0\n").unwrap();
        assert_eq!((group.peak(), group.limit_met(), group.killed()), (None, Some(12), Some(2)));
        let empty = parent.group().unwrap();
        let dir = empty.dir.clone();
        drop(empty);
        assert!(!dir.exists());
    }
}
