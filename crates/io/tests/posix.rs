//! Tests of `PosixDisk` that need a directory of a real file system.

use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, os::unix::fs::symlink, path::Path, process::Command};
use tempfile::TempDir;
use tierdex_io::{Disk, ErrorKind, PosixDisk, ReadFile};

fn open_error(path: &Path) -> ErrorKind {
    PosixDisk::open(path).expect_err("must be rejected").kind()
}

#[test]
fn only_a_directory_is_opened() {
    let home = TempDir::new().unwrap();
    fs::write(home.path().join("file"), b"").unwrap();
    assert_eq!(open_error(&home.path().join("missing")), ErrorKind::NotFound);
    assert_eq!(open_error(&home.path().join("file")), ErrorKind::Unsupported);
    let error = PosixDisk::open(&home.path().join("missing")).unwrap_err();
    assert!(error.to_string().contains("missing: no such file or directory"), "{error}");
    assert!(PosixDisk::create(&home.path().join("file")).is_err());
    assert!(PosixDisk::create(&home.path().join("file/below")).is_err());
}

#[test]
fn create_makes_the_parents_and_may_be_repeated() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("a/b/c");
    let disk = PosixDisk::create(&path).unwrap();
    drop(disk.create("x").unwrap());
    let again = PosixDisk::create(&path).unwrap();
    assert_eq!(again.list().unwrap(), ["x"]);
    assert_eq!(again.describe(), path.display().to_string());
}

#[test]
fn foreign_entries_are_neither_listed_nor_opened() {
    let home = TempDir::new().unwrap();
    let disk = PosixDisk::open(home.path()).unwrap();
    drop(disk.create("own").unwrap());
    fs::create_dir(home.path().join("folder")).unwrap();
    fs::write(home.path().join("not allowed"), b"").unwrap();
    symlink(home.path().join("own"), home.path().join("link")).unwrap();
    assert_eq!(disk.list().unwrap(), ["own"]);
    symlink(home.path().join("nothing"), home.path().join("dangling")).unwrap();
    let piped = Command::new("mkfifo").arg(home.path().join("pipe")).status();
    assert!(piped.is_ok_and(|status| status.success()));
    for name in ["folder", "link", "dangling", "pipe"] {
        let why = |op| format!("cannot {op} {name}: it is not a plain file");
        let (opened, locked) = (disk.open(name).err().unwrap(), disk.lock(name).err().unwrap());
        assert_eq!((opened.kind(), opened.to_string()), (ErrorKind::Unsupported, why("open")));
        assert_eq!((locked.kind(), locked.to_string()), (ErrorKind::Unsupported, why("lock")));
    }
    assert!(!home.path().join("nothing").exists());
    // A FIFO with a reader can be opened for writing.
    let reader = fs::File::options().read(true).write(true).open(home.path().join("pipe")).unwrap();
    assert_eq!(disk.lock("pipe").err().unwrap().kind(), ErrorKind::Unsupported);
    drop(reader);
    disk.open("own").unwrap();
}

#[test]
fn a_file_is_replaced_and_stays_open() {
    let home = TempDir::new().unwrap();
    let disk = PosixDisk::open(home.path()).unwrap();
    for (name, bytes) in [("old", b"old"), ("new", b"new")] {
        disk.create(name).unwrap().append(bytes).unwrap();
    }
    let open = disk.open("old").unwrap();
    disk.replace("new", "old").unwrap();
    let mut bytes = [0; 3];
    open.read_at(0, &mut bytes).unwrap();
    assert_eq!((&bytes, &*fs::read(home.path().join("old")).unwrap()), (b"old", &b"new"[..]));
    assert_eq!(disk.list().unwrap(), ["old"]);
    assert_eq!(disk.replace("new", "old").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(disk.replace("old", "../x").unwrap_err().kind(), ErrorKind::Denied);
}

#[test]
fn a_file_truncated_after_opening_ends_early() {
    let home = TempDir::new().unwrap();
    let disk = PosixDisk::open(home.path()).unwrap();
    disk.create("a").unwrap().append(&[1; 100]).unwrap();
    let reader = disk.open("a").unwrap();
    fs::OpenOptions::new().write(true).open(home.path().join("a")).unwrap().set_len(50).unwrap();
    let error = reader.read_at(40, &mut [0; 20]).unwrap_err();
    assert_eq!(error.to_string(), "a is damaged at byte 40: the file ends early");
}

#[test]
fn two_disks_on_one_directory_share_the_lock() {
    let home = TempDir::new().unwrap();
    let (one, two) = (PosixDisk::open(home.path()).unwrap(), PosixDisk::open(home.path()).unwrap());
    let lock = one.lock("lock").unwrap();
    let error = two.lock("lock").err().expect("held");
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert_eq!(error.to_string(), "cannot lock lock: it is held by another writer");
    drop(lock);
    two.lock("lock").unwrap();
}

#[test]
fn a_renamed_directory_stays_open() {
    let home = TempDir::new().unwrap();
    let (here, there) = (home.path().join("here"), home.path().join("there"));
    let disk = PosixDisk::create(&here).unwrap();
    let lock = disk.lock("lock").unwrap();
    lock.check().unwrap();
    drop(disk.create("a").unwrap());
    fs::rename(&here, &there).unwrap();
    let error = lock.check().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LockLost);
    let why = "the directory was renamed or replaced while it was being written";
    assert_eq!(error.to_string(), format!("cannot keep the lock of {}: {why}", here.display()));
    let other = PosixDisk::create(&here).unwrap();
    drop(other.create("a").unwrap());
    assert_eq!(lock.check().unwrap_err().kind(), ErrorKind::LockLost, "the path refers to another directory");
    disk.rename("a", "b").unwrap();
    drop(disk.create("c").unwrap());
    disk.remove("c").unwrap();
    assert_eq!(disk.list().unwrap(), ["b", "lock"]);
    assert_eq!(other.list().unwrap(), ["a"], "the other directory is unchanged");
    drop(lock);
    assert!(!there.join("lock").exists() && there.join("b").exists());
    drop(other);
    fs::remove_dir_all(&here).unwrap();
    fs::rename(&there, &here).unwrap();
    disk.lock("lock").unwrap().check().unwrap();
}

#[test]
fn created_directories_are_removed_unless_they_are_used() {
    let home = TempDir::new().unwrap();
    fs::create_dir(home.path().join("a")).unwrap();
    let disk = PosixDisk::create(&home.path().join("a/b/c")).unwrap();
    drop(disk.create("x").unwrap());
    disk.remove_created();
    assert_eq!(disk.list().unwrap(), ["x"]);
    disk.remove("x").unwrap();
    disk.remove_created();
    assert!(!home.path().join("a/b").exists() && home.path().join("a").exists());
    PosixDisk::create(&home.path().join("a")).unwrap().remove_created();
    assert!(home.path().join("a").exists(), "it existed before");
}

/// Threads take and release a lock, whose file is created and removed each time. Never do two hold it.
#[test]
fn a_contended_lock_is_held_once() {
    let home = TempDir::new().unwrap();
    let (held, taken) = (AtomicU32::new(0), AtomicU32::new(0));
    let contend = || {
        let disk = PosixDisk::open(home.path()).unwrap();
        while taken.load(Ordering::SeqCst) < 2_000 {
            match disk.lock("lock") {
                Ok(lock) => {
                    assert_eq!(held.fetch_add(1, Ordering::SeqCst), 0, "held twice");
                    taken.fetch_add(1, Ordering::SeqCst);
                    lock.check().unwrap();
                    held.fetch_sub(1, Ordering::SeqCst);
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Busy, "{error}"),
            }
        }
    };
    std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(contend))));
    assert!(!home.path().join("lock").exists());
}

/// Writes a file `a` of 10,000 bytes and opens it.
fn write_and_open(disk: &PosixDisk) -> (Vec<u8>, Box<dyn ReadFile>) {
    let bytes: Vec<u8> = (0..10_000_u32).map(|at| (at * 7 + at / 256) as u8).collect();
    disk.create("a").unwrap().append(&bytes).unwrap();
    let file = disk.open("a").unwrap();
    (bytes, file)
}

#[test]
fn support_for_direct_io_is_reported() {
    let home = TempDir::new().unwrap();
    let disk = PosixDisk::open(home.path()).unwrap();
    disk.check_direct().unwrap();
    let (_, file) = write_and_open(&disk);
    assert!(file.descriptor().is_some());
    assert_eq!(file.direct_descriptor().is_some(), disk.check_direct().is_ok());
    if let Err(error) = disk.check_direct() {
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().starts_with("cannot read past the page cache a: O_DIRECT is refused: "));
    }
    fs::remove_file(home.path().join("a")).unwrap();
    assert!(disk.check_direct().is_ok(), "no file to test");
}
