//! The contract suite of [`Disk`]: tests that every implementation must pass.

use tierdex_io::{Disk, ErrorKind, NAME_BYTES_MAX, Result, WriteFile};

/// Runs the suite; each rule gets a new, empty disk from `make`.
///
/// # Panics
/// At the first rule that the disk breaks.
pub fn disk_contract(make: &mut dyn FnMut() -> Box<dyn Disk>) {
    let rules: [fn(&dyn Disk); 15] = [
        a_new_disk_is_empty,
        appended_bytes_are_read_back,
        appending_continues_after_a_sync,
        an_empty_file_is_a_file,
        a_reader_keeps_its_length,
        creating_twice_is_rejected,
        a_missing_file_is_not_found,
        rename_replaces_nothing,
        names_are_listed_in_order,
        reading_past_the_end_fails,
        handles_outlive_names,
        a_lock_is_exclusive,
        a_lock_reports_that_its_file_is_gone,
        two_locks_are_independent,
        bad_names_are_rejected,
    ];
    for rule in rules {
        rule(&*make());
    }
}

fn a_new_disk_is_empty(disk: &dyn Disk) {
    assert!(disk.list().unwrap().is_empty());
    assert!(!disk.describe().is_empty());
    disk.sync_dir().unwrap();
}

fn appended_bytes_are_read_back(disk: &dyn Disk) {
    let pieces: [&[u8]; 4] = [b"one", b"", b"two", &[7; 10_000]];
    let mut file = disk.create("a").unwrap();
    pieces.iter().for_each(|piece| file.append(piece).unwrap());
    assert_eq!(read_all(disk, "a"), pieces.concat(), "before a sync");
    file.sync().unwrap();
    drop(file);
    disk.sync_dir().unwrap();
    assert_eq!(read_all(disk, "a"), pieces.concat());
    let mut middle = [0; 4];
    disk.open("a").unwrap().read_at(1, &mut middle).unwrap();
    assert_eq!(&middle, b"netw");
}

fn appending_continues_after_a_sync(disk: &dyn Disk) {
    let mut file = create_synced(disk, "a", b"first ");
    file.append(b"second").unwrap();
    file.sync().unwrap();
    assert_eq!(read_all(disk, "a"), b"first second");
}

fn an_empty_file_is_a_file(disk: &dyn Disk) {
    drop(create_synced(disk, "a", b""));
    let file = disk.open("a").unwrap();
    assert!(file.is_empty());
    file.read_at(0, &mut []).unwrap();
    assert_eq!(error_kind(file.read_at(0, &mut [0])), Some(ErrorKind::Corrupt));
}

fn a_reader_keeps_its_length(disk: &dyn Disk) {
    let mut writer = create_synced(disk, "a", b"12");
    let reader = disk.open("a").unwrap();
    writer.append(b"3").unwrap();
    assert_eq!((reader.name(), reader.len()), ("a", 2));
    assert_eq!(disk.open("a").unwrap().len(), 3);
}

fn creating_twice_is_rejected(disk: &dyn Disk) {
    drop(create_synced(disk, "a", b"kept"));
    assert_eq!(error_kind(disk.create("a")), Some(ErrorKind::Exists));
    assert_eq!(read_all(disk, "a"), b"kept");
}

fn a_missing_file_is_not_found(disk: &dyn Disk) {
    assert_eq!(error_kind(disk.open("a")), Some(ErrorKind::NotFound));
    assert_eq!(error_kind(disk.rename("a", "b")), Some(ErrorKind::NotFound));
    assert_eq!(error_kind(disk.remove("a")), Some(ErrorKind::NotFound));
    drop(create_synced(disk, "a", b""));
    disk.remove("a").unwrap();
    assert_eq!(error_kind(disk.open("a")), Some(ErrorKind::NotFound));
    drop(create_synced(disk, "a", b"new"));
    assert_eq!(read_all(disk, "a"), b"new");
}

fn rename_replaces_nothing(disk: &dyn Disk) {
    drop(create_synced(disk, "a", b"new"));
    drop(create_synced(disk, "b", b"old"));
    assert_eq!(error_kind(disk.rename("a", "b")), Some(ErrorKind::Exists));
    assert_eq!((read_all(disk, "a"), read_all(disk, "b")), (b"new".to_vec(), b"old".to_vec()));
    disk.remove("b").unwrap();
    disk.rename("a", "b").unwrap();
    assert_eq!(disk.list().unwrap(), ["b"]);
    assert_eq!(read_all(disk, "b"), b"new");
}

fn names_are_listed_in_order(disk: &dyn Disk) {
    let longest = "z".repeat(NAME_BYTES_MAX);
    for name in ["b", "a", "B", "10", "9", ".a", "a.b", "a-b", "a_b", &longest] {
        drop(create_synced(disk, name, b""));
    }
    let expected = [".a", "10", "9", "B", "a", "a-b", "a.b", "a_b", "b", &longest];
    assert_eq!(disk.list().unwrap(), expected);
}

fn reading_past_the_end_fails(disk: &dyn Disk) {
    drop(create_synced(disk, "a", b"12345"));
    let file = disk.open("a").unwrap();
    for (offset, len) in [(0, 6), (4, 2), (5, 1), (6, 1), (1 << 40, 1), (4, 1 << 20)] {
        let error = file.read_at(offset, &mut vec![0; len]).expect_err("past the end");
        assert_eq!((error.kind(), error.file()), (ErrorKind::Corrupt, "a"), "{offset} {len}");
    }
    file.read_at(5, &mut []).unwrap();
}

fn handles_outlive_names(disk: &dyn Disk) {
    let mut writer = create_synced(disk, "a", b"12");
    let reader = disk.open("a").unwrap();
    disk.rename("a", "b").unwrap();
    writer.append(b"34").unwrap();
    assert_eq!(read_all(disk, "b"), b"1234");
    disk.remove("b").unwrap();
    disk.sync_dir().unwrap();
    writer.append(b"56").unwrap();
    writer.sync().unwrap();
    let mut bytes = [0; 6];
    reader.read_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"123456");
    assert!(disk.list().unwrap().is_empty());
}

fn a_lock_is_exclusive(disk: &dyn Disk) {
    let lock = disk.lock("lock").unwrap();
    assert_eq!(error_kind(disk.lock("lock")), Some(ErrorKind::Busy));
    assert_eq!(error_kind(disk.lock("lock")), Some(ErrorKind::Busy), "a failed lock releases nothing");
    assert_eq!(disk.list().unwrap(), ["lock"], "the lock file is listed");
    lock.check().unwrap();
    drop(lock);
    assert!(disk.list().unwrap().is_empty(), "no lock file remains");
    drop(create_synced(disk, "lock", b"of a process that died"));
    drop(disk.lock("lock").unwrap());
    drop(disk.lock("lock").unwrap());
}

fn a_lock_reports_that_its_file_is_gone(disk: &dyn Disk) {
    let one = disk.lock("lock").unwrap();
    disk.remove("lock").unwrap();
    assert_eq!(error_kind(one.check()), Some(ErrorKind::LockLost), "removed");
    let two = disk.lock("lock").unwrap();
    assert_eq!(error_kind(one.check()), Some(ErrorKind::LockLost), "locked by another");
    two.check().unwrap();
    let one_id = one.id();
    drop(one);
    two.check().unwrap();
    assert_eq!(error_kind(disk.lock("lock")), Some(ErrorKind::Busy), "the other lock is still held");
    assert_ne!(one_id, two.id(), "two locks held at the same time");
    disk.remove("lock").unwrap();
    drop(create_synced(disk, "lock", b"replaces it"));
    assert_eq!(error_kind(two.check()), Some(ErrorKind::LockLost), "replaced");
    drop(two);
    assert_eq!(read_all(disk, "lock"), b"replaces it");
}

fn two_locks_are_independent(disk: &dyn Disk) {
    let _one = disk.lock("one").unwrap();
    let _two = disk.lock("two").unwrap();
    drop(create_synced(disk, "a", b""));
    assert_eq!(disk.list().unwrap(), ["a", "one", "two"]);
}

fn bad_names_are_rejected(disk: &dyn Disk) {
    drop(create_synced(disk, "a", b""));
    let too_long = "a".repeat(NAME_BYTES_MAX + 1);
    for bad in ["", ".", "..", "../a", "a/b", "/a", "a\0", "a b", "ä", &too_long] {
        let kinds = [
            error_kind(disk.open(bad)),
            error_kind(disk.create(bad)),
            error_kind(disk.rename(bad, "b")),
            error_kind(disk.rename("a", bad)),
            error_kind(disk.remove(bad)),
            error_kind(disk.lock(bad)),
        ];
        assert_eq!(kinds, [Some(ErrorKind::Denied); 6], "{bad:?}");
    }
    assert_eq!(disk.list().unwrap(), ["a"]);
}

/// Creates a file, writes and syncs `bytes`, and leaves it open.
fn create_synced(disk: &dyn Disk, name: &str, bytes: &[u8]) -> Box<dyn WriteFile> {
    let mut file = disk.create(name).unwrap();
    file.append(bytes).unwrap();
    file.sync().unwrap();
    file
}

fn read_all(disk: &dyn Disk, name: &str) -> Vec<u8> {
    let file = disk.open(name).unwrap();
    let mut bytes = vec![0; file.len() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

fn error_kind<T>(result: Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}
