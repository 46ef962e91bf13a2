//! All read methods return the same bytes as `read_at`, on every disk, and release all cells.

mod disk_contract;

use disk_contract::disk_contract;
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use std::thread;
use tempfile::TempDir;
use tierdex_io::{
    CellMut, Cells, Completion, Disk, Effect, Error, ErrorKind, FaultDisk, FaultPlan, MemDisk, OpClass,
    PosixDisk, ReadFile, ReadKind, ReadOptions, ReadQueue, ReadTarget, Region, RegionKind, Repeat, Result,
    errno,
};

const PAGE: usize = 4096;
const CELL_BYTES: usize = 32 << 10;

/// The methods by which queues read, and whether they read past the page cache.
const READ_METHODS: [(ReadKind, bool); 6] = {
    use ReadKind::{Auto, Pread, Uring};
    [(Pread, false), (Pread, true), (Uring, false), (Uring, true), (Auto, false), (Auto, true)]
};

/// The read methods that this system supports on a disk, and whether they use direct I/O.
fn available_methods(disk: &dyn Disk) -> Vec<(ReadKind, bool)> {
    let available = |(kind, direct): &(ReadKind, bool)| {
        let opened = ReadQueue::new(ReadOptions { kind: *kind, depth: 1, direct: *direct }, disk, &[]);
        opened.inspect_err(|error| println!("not run: {kind} (direct: {direct}): {error}")).is_ok()
    };
    READ_METHODS.into_iter().filter(available).collect()
}

fn new_cells(count: usize) -> Arc<Cells> {
    Cells::new(Region::new(&RegionKind::Dram, (count * CELL_BYTES) as u64).unwrap(), CELL_BYTES).unwrap()
}

fn file_content(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at.wrapping_mul(31) ^ (at >> 8) ^ (at >> 16)) as u8).collect()
}

fn write_and_open(disk: &dyn Disk, name: &str, bytes: &[u8]) -> Arc<dyn ReadFile> {
    disk.create(name).unwrap().append(bytes).unwrap();
    Arc::from(disk.open(name).unwrap())
}

/// A disk in a new temporary directory.
fn new_posix_disk() -> (TempDir, PosixDisk) {
    let directory = TempDir::new().unwrap();
    let disk = PosixDisk::open(directory.path()).unwrap();
    (directory, disk)
}

/// Submits a read for each cell, of the part of the file that has its index.
fn fill_cells(queue: &mut ReadQueue, file: &Arc<dyn ReadFile>, cells: &Arc<Cells>) {
    for index in 0..cells.len() {
        let cell = cells.write(index).unwrap();
        queue.submit(file, (index * CELL_BYTES) as u64, cell.into(), index as u64);
    }
}

/// Waits for all pending reads; returns the completions in order of tags.
fn drain_queue(queue: &mut ReadQueue) -> Vec<Completion> {
    let mut ended: Vec<Completion> = std::iter::from_fn(|| queue.next(true)).collect();
    ended.sort_by_key(|completion| completion.tag);
    assert_eq!(queue.pending(), 0);
    ended
}

fn open_queue(
    kind: ReadKind,
    depth: usize,
    direct: bool,
    disk: &dyn Disk,
    cells: &[Arc<Cells>],
) -> ReadQueue {
    ReadQueue::new(ReadOptions { kind, depth, direct }, disk, cells).unwrap()
}

/// A read from file offset `offset` on into bytes `from..to` of a cell.
#[derive(Debug, Clone)]
struct ReadCase {
    offset: usize,
    from: usize,
    to: usize,
}

/// Random reads within and beyond a file of `file_len` bytes. Half of them are of whole pages.
fn random_reads(file_len: usize) -> impl Strategy<Value = Vec<ReadCase>> {
    let read = (0..file_len + 2 * PAGE, 0..=CELL_BYTES, 0..=CELL_BYTES, any::<bool>());
    let read = read.prop_map(|(offset, one, other, pages)| {
        let unit = if pages { PAGE } else { 1 };
        let round = |number: usize| number / unit * unit;
        ReadCase { offset: round(offset), from: round(one.min(other)), to: round(one.max(other)) }
    });
    prop::collection::vec(read, 0..24)
}

/// The bytes that a read must return; `None` if it must fail.
fn expected_bytes<'a>(bytes: &'a [u8], read: &ReadCase) -> Option<&'a [u8]> {
    let len = read.to - read.from;
    if len == 0 {
        return Some(&[]);
    }
    let within = read.offset < bytes.len() && read.offset + len <= bytes.len().next_multiple_of(PAGE);
    within.then(|| &bytes[read.offset..bytes.len().min(read.offset + len)])
}

/// Makes all reads by `queue` into `cells`, and compares the bytes. With `blocking` false, the test polls.
fn check_reads(
    mut queue: ReadQueue,
    file: &Arc<dyn ReadFile>,
    reads: &[ReadCase],
    cells: &[Arc<Cells>],
    blocking: bool,
) {
    let bytes = file_content(file.len() as usize);
    let mut free: Vec<CellMut> =
        cells.iter().flat_map(|cells| (0..cells.len()).map(|index| cells.write(index).unwrap())).collect();
    let count = free.len();
    let mut seen = vec![false; reads.len()];
    let mut take = |completion: Completion| {
        let Completion { tag, target, result, .. } = completion;
        let read = &reads[tag as usize];
        assert!(!std::mem::replace(&mut seen[tag as usize], true), "{tag} completed twice");
        assert_eq!(target.range(), read.from..read.to);
        match (result, expected_bytes(&bytes, read)) {
            (Ok(len), Some(bytes)) => {
                assert_eq!(len, bytes.len(), "{read:?}");
                assert!(&target.bytes()[..len] == bytes, "{read:?}");
            }
            (Err(error), None) => {
                assert_eq!((error.kind(), error.file()), (ErrorKind::Corrupt, "a"));
                assert_eq!(error.offset(), Some(read.offset as u64));
            }
            (result, expected) => panic!("{read:?}: {result:?}, {:?}", expected.map(<[u8]>::len)),
        }
        target.into_cell()
    };
    for (tag, read) in reads.iter().enumerate() {
        while free.is_empty() {
            free.extend(queue.next(blocking).map(&mut take));
        }
        let mut target = ReadTarget::new(free.pop().unwrap(), read.from..read.to);
        target.bytes_mut().fill(0xA5);
        queue.submit(file, read.offset as u64, target, tag as u64);
    }
    while queue.pending() > 0 {
        free.extend(queue.next(blocking).map(&mut take));
    }
    assert!(queue.next(true).is_none());
    assert_eq!((free.len(), seen.iter().all(|seen| *seen)), (count, true));
}

/// Makes the reads by all read methods on `disk`. The memory of some cells is registered.
fn check_all_methods(disk: &dyn Disk, len: usize, reads: &[ReadCase], depth: usize, blocking: bool) {
    let file = write_and_open(disk, "a", &file_content(len));
    for (kind, direct) in available_methods(disk) {
        let cells = [new_cells(3), new_cells(2)];
        let registered = &cells[..depth % 3];
        check_reads(open_queue(kind, depth, direct, disk, registered), &file, reads, &cells, blocking);
    }
}

/// Random length of a file, reads, depth of the queue, and whether to wait for completions.
fn random_cases() -> impl Strategy<Value = (usize, Vec<ReadCase>, usize, bool)> {
    let len = prop_oneof![0..3 * PAGE, 0..100_000_usize, (0..20_usize).prop_map(|pages| pages * PAGE)];
    len.prop_flat_map(|len| (Just(len), random_reads(len), 1..9_usize, any::<bool>()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn reads_of_a_directory_return_its_bytes((len, reads, depth, blocking) in random_cases()) {
        let directory = TempDir::new().unwrap();
        check_all_methods(&PosixDisk::open(directory.path()).unwrap(), len, &reads, depth, blocking);
    }

    #[test]
    fn reads_of_memory_return_its_bytes((len, reads, depth, blocking) in random_cases()) {
        check_all_methods(&MemDisk::new(), len, &reads, depth, blocking);
    }

    #[test]
    fn reads_without_a_descriptor_return_the_bytes((len, reads, depth, blocking) in random_cases()) {
        let directory = TempDir::new().unwrap();
        let disk = FaultDisk::new(PosixDisk::open(directory.path()).unwrap(), FaultPlan::none());
        check_all_methods(&disk, len, &reads, depth, blocking);
    }
}

/// With one fault at one of the reads, this read fails with its offset, and the others succeed.
#[test]
fn a_read_that_fails_fails_alone() {
    const READ_COUNT: usize = 12;
    let disk = FaultDisk::new(MemDisk::new(), FaultPlan::none());
    let bytes = file_content(READ_COUNT * CELL_BYTES);
    let file = write_and_open(&disk, "a", &bytes);
    let cells = new_cells(READ_COUNT);
    let mut injected = 0;
    for (kind, direct) in available_methods(&disk) {
        for at in 1..=READ_COUNT as u64 {
            let effect = Effect::Error(errno::EIO);
            disk.arm(FaultPlan { class: OpClass::Read, at, effect, repeat: Repeat::Once });
            let mut queue = open_queue(kind, 4, direct, &disk, std::slice::from_ref(&cells));
            fill_cells(&mut queue, &file, &cells);
            let ended = drain_queue(&mut queue);
            assert_eq!(ended.len(), READ_COUNT, "{kind}");
            for (index, Completion { tag, target, result, .. }) in ended.into_iter().enumerate() {
                let offset = index * CELL_BYTES;
                assert_eq!(tag, index as u64);
                match result {
                    Ok(len) => assert!(target.bytes()[..len] == bytes[offset..offset + CELL_BYTES]),
                    Err(error) => {
                        let message =
                            format!("cannot read a at byte {offset}: input/output error (os error 5)");
                        assert_eq!(error.to_string(), message);
                        injected += 1;
                    }
                }
            }
            assert_eq!(disk.injected(), 1, "{kind}");
        }
    }
    assert_eq!(injected, READ_COUNT * available_methods(&disk).len());
    println!("{injected} faults");
}

/// The cells are free after the queue is dropped, and are not written afterwards.
#[test]
fn a_dropped_queue_releases_its_cells() {
    let (_directory, posix) = new_posix_disk();
    let disks: [&dyn Disk; 2] = [&posix, &MemDisk::new()];
    for disk in disks {
        let file = write_and_open(disk, "a", &file_content(64 * CELL_BYTES));
        for (kind, direct) in available_methods(disk) {
            for (round, is_registered) in [true, false].into_iter().cycle().take(20).enumerate() {
                let cells = new_cells(16);
                let registered = if is_registered { std::slice::from_ref(&cells) } else { &[] };
                let mut queue = open_queue(kind, 8, direct, disk, registered);
                for index in 0..16 {
                    let offset = (index * 3 + round) % 64 * CELL_BYTES;
                    queue.submit(&file, offset as u64, cells.write(index).unwrap().into(), 0);
                }
                if round % 3 == 0 {
                    queue.flush();
                }
                assert!(cells.write(round % 16).is_none(), "in flight");
                drop(queue);
                for index in 0..16 {
                    cells.write(index).unwrap_or_else(|| panic!("{kind}: cell {index}")).fill(round as u8);
                }
                thread::yield_now();
                for index in 0..16 {
                    assert!(cells.read(index).unwrap().iter().all(|byte| *byte == round as u8), "{kind}");
                }
            }
        }
    }
}

/// Reads can fill memory of a tmpfs file.
#[test]
fn cells_of_a_mapped_file_are_filled() {
    let (_directory, disk) = new_posix_disk();
    let bytes = file_content(8 * CELL_BYTES);
    let file = write_and_open(&disk, "a", &bytes);
    let path = std::path::Path::new("/dev/shm");
    for (kind, direct) in available_methods(&disk) {
        let name = format!("tierdex-test-{}-{kind}-{direct}", std::process::id());
        let Ok(region) = Region::new(&RegionKind::File(path.join(name)), 8 * CELL_BYTES as u64) else {
            println!("not run: no region in {}", path.display());
            continue;
        };
        let cells = Cells::new(region, CELL_BYTES).unwrap();
        let mut queue = open_queue(kind, 4, direct, &disk, std::slice::from_ref(&cells));
        fill_cells(&mut queue, &file, &cells);
        let ended = drain_queue(&mut queue);
        assert!(ended.iter().all(|ended| matches!(ended.result, Ok(CELL_BYTES))), "{kind}: {ended:?}");
        drop(ended);
        for (index, bytes) in bytes.chunks(CELL_BYTES).enumerate() {
            assert!(cells.read(index).unwrap()[..] == *bytes, "{kind}");
        }
    }
}

/// A queue continues in another thread, also after the submitting thread has ended.
#[test]
fn a_queue_moves_between_threads() {
    let (_directory, disk) = new_posix_disk();
    let bytes = file_content(16 * CELL_BYTES);
    let file = write_and_open(&disk, "a", &bytes);
    for (kind, direct) in available_methods(&disk) {
        let cells = new_cells(16);
        let mut queue = open_queue(kind, 16, direct, &disk, std::slice::from_ref(&cells));
        for _ in 0..20 {
            queue = thread::scope(|scope| {
                let submit = scope.spawn(|| {
                    fill_cells(&mut queue, &file, &cells);
                    queue.flush();
                    queue
                });
                submit.join().unwrap()
            });
            let ended = drain_queue(&mut queue);
            assert_eq!(ended.len(), 16);
            for Completion { tag, target, result, .. } in ended {
                assert_eq!(result.unwrap(), CELL_BYTES, "{kind}");
                assert!(target.bytes() == &bytes[tag as usize * CELL_BYTES..][..CELL_BYTES], "{kind}");
            }
        }
    }
}

#[test]
fn a_truncated_file_is_damaged() {
    let (directory, disk) = new_posix_disk();
    let cells = new_cells(1);
    for (kind, direct) in available_methods(&disk) {
        for left in [0, 1, 4096, 5000, 8191] {
            let file = write_and_open(&disk, "a", &file_content(20_000));
            let opened = std::fs::File::options().write(true).open(directory.path().join("a")).unwrap();
            opened.set_len(left).unwrap();
            let mut queue = open_queue(kind, 1, direct, &disk, &[]);
            queue.submit(&file, 4096, ReadTarget::new(cells.write(0).unwrap(), 0..4096), 7);
            let ended = queue.next(true).unwrap();
            let error = ended.result.unwrap_err();
            let found = (error.kind(), error.file(), ended.tag);
            assert_eq!(found, (ErrorKind::Corrupt, "a", 7), "{kind} {left}");
            disk.remove("a").unwrap();
        }
    }
}

#[test]
fn auto_describes_the_method_it_took() {
    let (_directory, disk) = new_posix_disk();
    drop(write_and_open(&disk, "a", b"something"));
    let options = |kind, direct| ReadOptions { kind, depth: 4, direct };
    for direct in [false, true] {
        let auto = ReadQueue::new(options(ReadKind::Auto, direct), &disk, &[]).unwrap();
        match ReadQueue::new(options(ReadKind::Uring, direct), &disk, &[]) {
            Ok(uring) => {
                assert_eq!((auto.fallback(), auto.description()), (None, uring.description()));
            }
            Err(error) => {
                let fallback = auto.fallback().unwrap();
                assert_eq!(fallback, format!("reads by {}: {error}", auto.description()));
                assert_eq!(fallback.lines().count(), 1);
                assert!(auto.description().starts_with("pread, depth 4, "));
            }
        }
    }
}

/// Without support for direct I/O, `auto` reads through the page cache, and the other methods fail with the
/// reason.
#[test]
fn without_direct_reads_auto_takes_pread() {
    let why = "O_DIRECT is refused: Invalid argument (os error 22)";
    let direct = Err(Error::new(ErrorKind::Unsupported, "read past the page cache", "a", why));
    let disk = WrappedDisk { inner: Box::new(MemDisk::new()), direct, wrap: |file| file };
    let auto = open_queue(ReadKind::Auto, 2, true, &disk, &[]);
    let fallback = format!("reads by pread, depth 2, page cache: cannot read past the page cache a: {why}");
    assert_eq!(auto.fallback(), Some(&*fallback));
    for kind in [ReadKind::Pread, ReadKind::Uring] {
        let error = ReadQueue::new(ReadOptions { kind, depth: 2, direct: true }, &disk, &[]).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}

#[test]
#[should_panic(expected = "of a cell of 32768 bytes")]
fn a_target_is_within_its_cell() {
    ReadTarget::new(new_cells(1).write(0).unwrap(), 0..CELL_BYTES + 1);
}

/// The contract suite of disks, with every read through a queue.
#[test]
fn queues_pass_the_contract_of_disks() {
    fn read_through_queue<const KIND: usize>(file: Box<dyn ReadFile>) -> Box<dyn ReadFile> {
        let (kind, direct) = READ_METHODS[KIND];
        let queue = open_queue(kind, 3, direct, &MemDisk::new(), &[]);
        Box::new(QueueFile { file: Arc::from(file), queue: Mutex::new(queue), cells: new_cells(4) })
    }
    let wraps: [WrapFile; 4] =
        [read_through_queue::<0>, read_through_queue::<1>, read_through_queue::<2>, read_through_queue::<3>];
    let (_directory, disk) = new_posix_disk();
    let available = available_methods(&disk);
    for (method, wrap) in READ_METHODS.into_iter().zip(wraps) {
        if !available.contains(&method) {
            continue;
        }
        let mut directories = Vec::new();
        disk_contract(&mut || {
            directories.push(TempDir::new().unwrap());
            let inner = Box::new(PosixDisk::open(directories[directories.len() - 1].path()).unwrap());
            Box::new(WrappedDisk { inner, direct: Ok(()), wrap })
        });
        disk_contract(&mut || {
            Box::new(WrappedDisk { inner: Box::new(MemDisk::new()), direct: Ok(()), wrap })
        });
    }
}

/// A file that is read through a queue, cell by cell.
struct QueueFile {
    file: Arc<dyn ReadFile>,
    queue: Mutex<ReadQueue>,
    cells: Arc<Cells>,
}

impl ReadFile for QueueFile {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn len(&self) -> u64 {
        self.file.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut queue = self.queue.lock().unwrap();
        let mut failed = None;
        for (number, part) in buf.chunks_mut(CELL_BYTES).enumerate() {
            let target = ReadTarget::new(self.cells.write(number % self.cells.len()).unwrap(), 0..part.len());
            queue.submit(&self.file, offset + (number * CELL_BYTES) as u64, target, 0);
            let ended = queue.next(true).unwrap();
            match ended.result {
                Ok(len) if len == part.len() => part.copy_from_slice(ended.target.bytes()),
                // A read in the last page of the file returns the bytes up to its end.
                Ok(len) => {
                    failed = Some(Error::corrupt(self.name(), offset + len as u64, "the file ends early"))
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if offset + buf.len() as u64 <= self.len() || buf.is_empty() {
            return failed.map_or(Ok(()), Err);
        }
        // Read queues use the length at the time of opening; files of this disk may have grown since.
        assert!(failed.is_some());
        self.file.read_at(offset, buf)
    }
}

/// A disk whose files are replaced by a wrapper.
struct WrappedDisk {
    inner: Box<dyn Disk>,
    direct: Result<()>,
    wrap: WrapFile,
}

type WrapFile = fn(Box<dyn ReadFile>) -> Box<dyn ReadFile>;

impl Disk for WrappedDisk {
    tierdex_io::forward_disk!(self, self.inner; list create rename remove sync_dir lock describe);

    fn open(&self, name: &str) -> Result<Box<dyn ReadFile>> {
        self.inner.open(name).map(self.wrap)
    }

    fn check_direct(&self) -> Result<()> {
        self.direct.clone()
    }
}
