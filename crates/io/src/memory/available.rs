//! How much memory this process could take.

use std::fs;
use std::path::{Path, PathBuf};

/// Bytes that could be taken without swapping and without passing the limit of a control group, if the system tells: a
/// process that takes more may be killed.
///
/// Of the control groups, of either version, those are looked at that can be seen under `/sys/fs/cgroup`. Pages of files
/// that the group has read and not used of late count as free.
pub fn available_memory() -> Option<u64> {
    let system = fs::read_to_string("/proc/meminfo").ok().and_then(|text| meminfo(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let groups = groups.lines().flat_map(folders).filter_map(|folder| left(&folder));
    groups.chain(system).min()
}

fn meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

/// The folders of a memory group and of those around it, from a line of `/proc/self/cgroup`.
fn folders(line: &str) -> Vec<PathBuf> {
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
    let folder: PathBuf =
        root.components().chain(Path::new(path.trim_start_matches('/')).components()).collect();
    folder.ancestors().take_while(|folder| folder.starts_with(&root)).map(Path::to_path_buf).collect()
}

/// What the group of a folder may take beyond what it has, if it has a limit.
fn left(folder: &Path) -> Option<u64> {
    let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    let (limit, used) = match number("memory.max") {
        Some(limit) => (limit, number("memory.current")?),
        None => (number("memory.limit_in_bytes")?, number("memory.usage_in_bytes")?),
    };
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let of = |name: &str| {
        let value = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.and_then(|value| value.trim().parse::<u64>().ok())
    };
    let unused = of("total_inactive_file").or_else(|| of("inactive_file")).unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(unused)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_either_version_name_folders() {
        let paths = |line: &str| -> Vec<String> {
            folders(line).iter().map(|folder| folder.display().to_string()).collect()
        };
        assert_eq!(paths("0::/a/b"), ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"]);
        assert_eq!(paths("4:memory:/x"), ["/sys/fs/cgroup/memory/x", "/sys/fs/cgroup/memory"]);
        assert_eq!(paths("7:hugetlb,memory:/"), ["/sys/fs/cgroup/memory"]);
        assert!(paths("5:cpu,cpuacct:/x").is_empty() && paths("").is_empty());
    }

    #[test]
    fn this_machine_has_some() {
        assert_eq!(meminfo("MemTotal: 9 kB\nMemAvailable:    8 kB\n"), Some(8192));
        assert!(available_memory().is_none_or(|bytes| bytes > 0));
    }
}
