//! The amount of memory that this process can still allocate.

use std::fs;
use std::path::{Path, PathBuf};

/// Bytes that can be allocated without swapping and without exceeding the limit of a control group; a
/// process that allocates more may be killed. `None` when the system does not report them.
///
/// Covers the control groups, of either version, that are visible under `/sys/fs/cgroup`. Inactive page
/// cache of the group counts as free.
pub fn available_memory() -> Option<u64> {
    let system = fs::read_to_string("/proc/meminfo").ok().and_then(|text| parse_available(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let groups = groups.lines().flat_map(group_directories).filter_map(|directory| unused_limit(&directory));
    groups.chain(system).min()
}

/// The bytes of the line `MemAvailable` of `/proc/meminfo`.
fn parse_available(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

/// The directories of a memory control group and of its ancestors, from a line of `/proc/self/cgroup`.
fn group_directories(line: &str) -> Vec<PathBuf> {
    let mut columns = line.splitn(3, ':');
    let (Some(_), Some(controllers), Some(path)) = (columns.next(), columns.next(), columns.next()) else {
        return Vec::new();
    };
    let root = Path::new("/sys/fs/cgroup");
    let root = match controllers {
        "" => root.to_path_buf(),
        names if names.split(',').any(|name| name == "memory") => root.join("memory"),
        _ => return Vec::new(),
    };
    let directory: PathBuf =
        root.components().chain(Path::new(path.trim_start_matches('/')).components()).collect();
    directory
        .ancestors()
        .take_while(|directory| directory.starts_with(&root))
        .map(Path::to_path_buf)
        .collect()
}

/// Bytes that a control group may still allocate; `None` without a limit.
fn unused_limit(directory: &Path) -> Option<u64> {
    let number = |name: &str| fs::read_to_string(directory.join(name)).ok()?.trim().parse::<u64>().ok();
    let (limit, used) = match number("memory.max") {
        Some(limit) => (limit, number("memory.current")?),
        None => (number("memory.limit_in_bytes")?, number("memory.usage_in_bytes")?),
    };
    let stat = fs::read_to_string(directory.join("memory.stat")).unwrap_or_default();
    let counter = |name: &str| {
        let value = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.and_then(|value| value.trim().parse::<u64>().ok())
    };
    let inactive = counter("total_inactive_file").or_else(|| counter("inactive_file")).unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(inactive)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_cgroup_versions_are_parsed() {
        let paths = |line: &str| -> Vec<String> {
            group_directories(line).iter().map(|directory| directory.display().to_string()).collect()
        };
        assert_eq!(paths("0::/a/b"), ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"]);
        assert_eq!(paths("4:memory:/x"), ["/sys/fs/cgroup/memory/x", "/sys/fs/cgroup/memory"]);
        assert_eq!(paths("7:hugetlb,memory:/"), ["/sys/fs/cgroup/memory"]);
        assert!(paths("5:cpu,cpuacct:/x").is_empty() && paths("").is_empty());
    }

    #[test]
    fn available_memory_is_not_zero() {
        assert_eq!(parse_available("MemTotal: 9 kB\nMemAvailable:    8 kB\n"), Some(8192));
        assert!(available_memory().is_none_or(|bytes| bytes > 0));
    }
}
