//! Direct I/O while the process has no free file descriptors. The limit is set for the whole process, so this
//! test has a program of its own.

use std::process::{self, Command};
use std::{fs::File, sync::Arc};
use tempfile::TempDir;
use tierdex_io::{
    Cells, Disk, PosixDisk, ReadFile, ReadKind, ReadOptions, ReadQueue, ReadTarget, Region, RegionKind,
};

#[test]
fn direct_io_resumes_when_descriptors_are_available() {
    let directory = TempDir::new().unwrap();
    let disk = PosixDisk::open(directory.path()).unwrap();
    disk.create("a").unwrap().append(&[7; 3 * 4096]).unwrap();
    let options = ReadOptions { kind: ReadKind::Pread, depth: 1, direct: true };
    let mut queue = match ReadQueue::new(options, &disk, &[]) {
        Ok(queue) => queue,
        Err(error) => return println!("not run: {error}"),
    };
    let few = Command::new("prlimit").args(["--pid", &process::id().to_string(), "--nofile=100:"]).status();
    if !few.is_ok_and(|status| status.success()) {
        return println!("not run: it needs prlimit");
    }
    let cells = Cells::new(Region::new(&RegionKind::Dram, 4096).unwrap(), 4096).unwrap();
    let file: Arc<dyn ReadFile> = Arc::from(disk.open("a").unwrap());
    let mut fell_back = || {
        queue.submit(&file, 4096, ReadTarget::from(cells.write(0).unwrap()), 0);
        let ended = queue.next(true).unwrap();
        assert_eq!((ended.result.unwrap(), ended.target.bytes()), (4096, &[7; 4096][..]));
        ended.fell_back
    };
    let opened: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!((1..100).contains(&opened.len()));
    assert!(fell_back());
    drop(opened);
    assert!(!fell_back());
}
