//! Test files whose pages all differ, and read queues for them.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::{process, sync::Arc, thread, time::Duration};
use tierdex_io::{
    Disk, Effect, FaultDisk, FaultPlan, Identity, MemDisk, OpClass, PAGE, ReadKind, ReadOptions, ReadQueue,
    Repeat, SealedFile, SealedWriter, errno,
};

/// A sealed file with the payload that was written to it.
pub struct TestFile {
    pub file: Arc<SealedFile>,
    /// The payload: the bytes of the file after its header of 64 bytes.
    pub bytes: Vec<u8>,
}

/// Writes a file of `pages` whole pages and a partial one, all different.
pub fn write_test_file(disk: &dyn Disk, name: &str, pages: usize) -> TestFile {
    let identity = Identity { kind: 1, field: 0, segment: name.len() as u64 };
    let len = pages * PAGE as usize + 1234 - 64;
    let bytes: Vec<u8> =
        (64..len + 64).map(|at| (at.wrapping_mul(31) ^ (at >> 8) ^ (at >> 15)) as u8).collect();
    let mut writer = SealedWriter::create(disk, name, identity).unwrap();
    writer.write(&bytes).unwrap();
    let seal = writer.finish().unwrap();
    let file = SealedFile::open(disk, name, identity, seal).unwrap();
    file.load_tables(None).unwrap();
    TestFile { file: Arc::new(file), bytes }
}

/// The read methods that this machine supports.
pub fn tested_read_kinds() -> Vec<ReadKind> {
    let can_be_had = |kind: &ReadKind| {
        ReadQueue::new(ReadOptions { kind: *kind, depth: 1, direct: false }, &MemDisk::new(), &[]).is_ok()
    };
    [ReadKind::Pread, ReadKind::Uring].into_iter().filter(can_be_had).collect()
}

pub fn new_read_queue(disk: &dyn Disk, kind: ReadKind, depth: usize) -> ReadQueue {
    ReadQueue::new(ReadOptions { kind, depth, direct: false }, disk, &[]).unwrap()
}

/// Makes the read with this number fail, from now on.
pub fn fail_read<D: Disk>(disk: &FaultDisk<D>, at: u64, repeat: Repeat) {
    disk.arm(FaultPlan { class: OpClass::Read, at, effect: Effect::Error(errno::EIO), repeat });
}

/// Runs a test, and aborts the process if the test does not end within 60 seconds.
pub fn with_watchdog<T>(test: impl FnOnce() -> T) -> T {
    let (ended, watch) = channel::<()>();
    let watchdog = thread::spawn(move || {
        if watch.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
            eprintln!("the test has not ended within 60 seconds");
            process::abort();
        }
    });
    let result = test();
    drop(ended);
    watchdog.join().unwrap();
    result
}
