//! What only a directory of a real file system can show.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::TempDir;
use tierdex_io::{Disk, ErrorKind, PosixDisk};

fn open_error(path: &Path) -> ErrorKind {
    PosixDisk::open(path).expect_err("must be refused").kind()
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
    for name in ["folder", "link"] {
        assert_eq!(disk.open(name).err().map(|error| error.kind()), Some(ErrorKind::Unsupported), "{name}");
    }
}

#[test]
fn a_file_that_shrinks_behind_a_reader_ends_early() {
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
