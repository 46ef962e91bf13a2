//! Runs the contract suite on every disk.

mod disk_contract;

use disk_contract::disk_contract;
use tempfile::TempDir;
use tierdex_io::{Disk, FaultDisk, FaultPlan, MemDisk, PosixDisk};

#[test]
fn posix_disk_passes() {
    let mut directories = Vec::new();
    disk_contract(&mut || {
        let directory = TempDir::new().unwrap();
        let disk = PosixDisk::open(directory.path()).unwrap();
        directories.push(directory);
        Box::new(disk)
    });
    assert!(!directories.is_empty());
}

#[test]
fn mem_disk_passes() {
    disk_contract(&mut || Box::new(MemDisk::new()));
}

#[test]
fn mem_disk_after_a_crash_passes() {
    disk_contract(&mut || Box::new(MemDisk::new().crash(tierdex_io::CrashImage::Random(1))));
}

#[test]
fn fault_disk_without_faults_passes() {
    disk_contract(&mut || Box::new(FaultDisk::new(MemDisk::new(), FaultPlan::none())));
}

#[test]
fn fault_disk_on_a_boxed_disk_passes() {
    disk_contract(&mut || {
        let inner: Box<dyn Disk> = Box::new(MemDisk::new());
        Box::new(FaultDisk::new(inner, FaultPlan::none()))
    });
}
