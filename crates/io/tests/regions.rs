//! Regions are there from the start, or refused in one line.

use std::fs;
use std::path::Path;

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

fn refusal(kind: &RegionKind, bytes: u64) -> (ErrorKind, String) {
    let error = Region::new(kind, bytes).err().unwrap_or_else(|| panic!("region {kind} of {bytes} bytes"));
    assert_eq!(error.to_string().lines().count(), 1);
    (error.kind(), error.to_string())
}

/// A number that the kernel counts, or 0.
fn huge_pages(what: &str) -> u64 {
    let text = fs::read_to_string(format!("/sys/kernel/mm/hugepages/hugepages-2048kB/{what}"));
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

#[test]
fn dram_is_written_and_read() {
    let region = Region::new(&RegionKind::Dram, (3 << 20) + 1).unwrap();
    assert_eq!((region.len(), region.kind()), ((3 << 20) + 4096, &RegionKind::Dram));
    write_and_read(region);
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    for bytes in [0, u64::MAX, u64::MAX / 2, 1 << 62] {
        for kind in [RegionKind::Dram, RegionKind::Hugetlb] {
            let (_, message) = refusal(&kind, bytes);
            assert!(message.starts_with(&format!("cannot make region {kind}: ")), "{message}");
        }
    }
}

#[test]
fn more_memory_than_there_is_is_refused_before_it_is_touched() {
    let (kind, message) = refusal(&RegionKind::Dram, 1 << 46);
    assert_eq!(kind, ErrorKind::NoSpace);
    assert!(message.contains("it needs 70368744177664 bytes and "), "{message}");
}

#[test]
fn too_few_huge_pages_are_named() {
    // More than any machine has, so that it holds whatever is reserved here.
    let pages = 1 << 26;
    let (kind, message) = refusal(&RegionKind::Hugetlb, pages << 21);
    assert_eq!(kind, ErrorKind::NoSpace);
    assert!(
        message.starts_with("cannot make region hugetlb: it needs 67108864 huge pages of 2 MiB and "),
        "{message}"
    );
    assert!(message.contains("; set vm.nr_hugepages to "), "{message}");
    if huge_pages("nr_hugepages") == 0 && huge_pages("nr_overcommit_hugepages") == 0 {
        let (_, message) = refusal(&RegionKind::Hugetlb, (3 << 20) + 1);
        let expected = "cannot make region hugetlb: it needs 2 huge pages of 2 MiB and 0 are free; set \
                        vm.nr_hugepages to 2 or more";
        assert_eq!(message, expected);
    }
}

#[test]
fn huge_pages_are_written_and_read() {
    if huge_pages("free_hugepages") - huge_pages("resv_hugepages").min(huge_pages("free_hugepages")) < 2 {
        println!("not run: it needs 2 free huge pages (vm.nr_hugepages)");
        return;
    }
    let region = Region::new(&RegionKind::Hugetlb, (2 << 20) + 1).unwrap();
    assert_eq!(region.len(), 4 << 20);
    write_and_read(region);
}

#[test]
fn a_node_is_bound() {
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
fn a_node_that_is_not_there_is_refused() {
    let refused = (ErrorKind::NotFound, "cannot make region numa:1000: there is no node 1000".to_owned());
    assert_eq!(refusal(&RegionKind::Numa(1000), 1 << 20), refused);
    assert_eq!(refusal(&RegionKind::Numa(u32::MAX), 1 << 20).0, ErrorKind::NotFound);
}

/// A folder of a file system in memory.
fn in_memory() -> Option<TempDir> {
    let directory = TempDir::new_in("/dev/shm");
    directory.inspect_err(|error| println!("not run: no folder in /dev/shm: {error}")).ok()
}

#[test]
fn a_file_is_mapped_and_leaves_nothing() {
    let Some(directory) = in_memory() else { return };
    let kind = RegionKind::File(directory.path().join("cache"));
    let region = Region::new(&kind, 1 << 20).unwrap();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    write_and_read(region);
}

/// Its pages would be written out and read back unchecked, and a device that fails would end the process.
#[test]
fn a_file_of_a_disk_is_refused_and_leaves_nothing() {
    // Where programs are built is a disk, more often than where temporary files are.
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
fn a_file_that_does_not_fit_or_is_there_is_refused_and_leaves_nothing() {
    let Some(directory) = in_memory() else { return };
    let path = directory.path().join("cache");
    // 4 EiB: full, or more than a file can have.
    let (_, message) = refusal(&RegionKind::File(path.clone()), 1 << 62);
    assert!(message.starts_with(&format!("cannot make region file:{}: ", path.display())), "{message}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    fs::write(&path, "kept").unwrap();
    assert_eq!(refusal(&RegionKind::File(path.clone()), 4096).0, ErrorKind::Exists);
    assert_eq!(fs::read(&path).unwrap(), b"kept");
    assert_eq!(refusal(&RegionKind::File(directory.path().join("a/b")), 4096).0, ErrorKind::NotFound);
}

#[test]
fn a_file_system_without_dax_is_refused_with_the_reason() {
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
