//! Regions are allocated on creation, or rejected with one line.

use std::{fs, path::Path};
use tempfile::TempDir;
use tierdex_io::{Cells, ErrorKind, Region, RegionKind};

fn write_and_read(region: Region) {
    let cells = Cells::new(region, 64 << 10).unwrap();
    for index in 0..cells.len() {
        let mut cell = cells.write(index).unwrap();
        assert!(cell.iter().all(|byte| *byte == 0), "cell {index} is new");
        cell.fill(index as u8 + 1);
    }
    for index in 0..cells.len() {
        assert!(cells.read(index).unwrap().iter().all(|byte| *byte == index as u8 + 1));
    }
}

fn region_error(kind: &RegionKind, bytes: u64) -> (ErrorKind, String) {
    let error = Region::new(kind, bytes).err().unwrap_or_else(|| panic!("region {kind} of {bytes} bytes"));
    assert_eq!(error.to_string().lines().count(), 1);
    (error.kind(), error.to_string())
}

/// A counter of the kernel, or 0.
fn huge_pages(name: &str) -> u64 {
    let text = fs::read_to_string(format!("/sys/kernel/mm/hugepages/hugepages-2048kB/{name}"));
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

#[test]
fn dram_is_writable() {
    let region = Region::new(&RegionKind::Dram, (3 << 20) + 1).unwrap();
    assert_eq!((region.len(), region.kind()), ((3 << 20) + 4096, &RegionKind::Dram));
    write_and_read(region);
}

#[test]
fn impossible_sizes_are_rejected() {
    for bytes in [0, u64::MAX, u64::MAX / 2, 1 << 62] {
        for kind in [RegionKind::Dram, RegionKind::Hugetlb] {
            let (_, message) = region_error(&kind, bytes);
            assert!(message.starts_with(&format!("cannot make region {kind}: ")), "{message}");
        }
    }
}

#[test]
fn more_memory_than_available_is_rejected_before_allocation() {
    let (kind, message) = region_error(&RegionKind::Dram, 1 << 46);
    assert_eq!(kind, ErrorKind::NoSpace);
    assert!(message.contains("it needs 70368744177664 bytes and "), "{message}");
}

#[test]
fn too_few_huge_pages_are_reported() {
    // More than any machine has, independent of the pages reserved here.
    let pages = 1 << 26;
    let (kind, message) = region_error(&RegionKind::Hugetlb, pages << 21);
    assert_eq!(kind, ErrorKind::NoSpace);
    assert!(
        message.starts_with("cannot make region hugetlb: it needs 67108864 huge pages of 2 MiB and "),
        "{message}"
    );
    assert!(message.contains("; set vm.nr_hugepages to "), "{message}");
    if huge_pages("nr_hugepages") == 0 && huge_pages("nr_overcommit_hugepages") == 0 {
        let (_, message) = region_error(&RegionKind::Hugetlb, (3 << 20) + 1);
        let expected = "cannot make region hugetlb: it needs 2 huge pages of 2 MiB and 0 are free; set \
                        vm.nr_hugepages to 2 or more";
        assert_eq!(message, expected);
    }
}

#[test]
fn huge_pages_are_writable() {
    if huge_pages("free_hugepages") - huge_pages("resv_hugepages").min(huge_pages("free_hugepages")) < 2 {
        println!("not run: it needs 2 free huge pages (vm.nr_hugepages)");
        return;
    }
    let region = Region::new(&RegionKind::Hugetlb, (2 << 20) + 1).unwrap();
    assert_eq!(region.len(), 4 << 20);
    write_and_read(region);
}

#[test]
fn memory_is_bound_to_a_node() {
    if !Path::new("/sys/devices/system/node/node0").exists() {
        println!("not run: this system tells of no NUMA nodes");
        return;
    }
    match Region::new(&RegionKind::Numa(0), 1 << 20) {
        Ok(region) => write_and_read(region),
        // Containers may forbid it.
        Err(error) => assert!(matches!(error.kind(), ErrorKind::Denied | ErrorKind::Unsupported), "{error}"),
    }
}

#[test]
fn a_missing_node_is_rejected() {
    let expected = (ErrorKind::NotFound, "cannot make region numa:1000: there is no node 1000".to_owned());
    assert_eq!(region_error(&RegionKind::Numa(1000), 1 << 20), expected);
    assert_eq!(region_error(&RegionKind::Numa(u32::MAX), 1 << 20).0, ErrorKind::NotFound);
}

/// A directory of an in-memory file system.
fn tmpfs_directory() -> Option<TempDir> {
    let directory = TempDir::new_in("/dev/shm");
    directory.inspect_err(|error| println!("not run: no directory in /dev/shm: {error}")).ok()
}

#[test]
fn a_file_region_leaves_no_file() {
    let Some(directory) = tmpfs_directory() else { return };
    let kind = RegionKind::File(directory.path().join("cache"));
    let region = Region::new(&kind, 1 << 20).unwrap();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    write_and_read(region);
}

/// Pages of a region in a file on a device would be written out and read back unchecked, and a device error
/// would end the process.
#[test]
fn a_file_on_a_device_is_rejected_and_leaves_no_file() {
    // The target directory is more often on a device than the directory of temporary files.
    let directory = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("cache");
    match Region::new(&RegionKind::File(path.clone()), 4096) {
        Ok(_) => println!("not run: {} is in memory", path.display()),
        Err(error) => {
            let why = "its file system is on a disk, which may fail unseen; take a path on a tmpfs, such as /dev/shm";
            assert_eq!(error.to_string(), format!("cannot make region file:{}: {why}", path.display()));
            assert_eq!(error.kind(), ErrorKind::Unsupported);
        }
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_file_that_does_not_fit_or_exists_is_rejected() {
    let Some(directory) = tmpfs_directory() else { return };
    let path = directory.path().join("cache");
    // 4 EiB: more than the file system or a file can hold.
    let (_, message) = region_error(&RegionKind::File(path.clone()), 1 << 62);
    assert!(message.starts_with(&format!("cannot make region file:{}: ", path.display())), "{message}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    fs::write(&path, "kept").unwrap();
    assert_eq!(region_error(&RegionKind::File(path.clone()), 4096).0, ErrorKind::Exists);
    assert_eq!(fs::read(&path).unwrap(), b"kept");
    assert_eq!(region_error(&RegionKind::File(directory.path().join("a/b")), 4096).0, ErrorKind::NotFound);
}

#[test]
fn a_file_system_without_dax_is_rejected_with_the_reason() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("cache");
    match Region::new(&RegionKind::Dax(path.clone()), 1) {
        Ok(region) => write_and_read(region),
        Err(error) => {
            let why = "the file system gives no MAP_SYNC: it is not persistent memory mounted with dax";
            assert_eq!(error.to_string(), format!("cannot make region dax:{}: {why}", path.display()));
            assert_eq!(error.kind(), ErrorKind::Unsupported);
        }
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
