//! Reads from mappings: their bytes are those of the files, and a damaged page is found.

use std::{fs, ops::Range, os::unix::fs::FileExt, sync::Arc};
use tempfile::TempDir;
use tierdex::{Error, internal::segment::read::BlockSource};
use tierdex_io::{Disk, ErrorKind, Identity, MemDisk, PAGE, PosixDisk, Seal, SealedFile, SealedWriter};
use tierdex_thesis::MappedFiles;

const FILE_IDENTITY: Identity = Identity { kind: 3, field: 1, segment: 77 };
const HEADER_BYTES: u64 = 64;

fn test_payload(len: usize) -> Vec<u8> {
    (0..len).map(|k| (k * 7 + k / 256) as u8).collect()
}

fn write_sealed_file(disk: &dyn Disk, payload: &[u8]) -> Seal {
    let mut writer = SealedWriter::create(disk, "b", FILE_IDENTITY).unwrap();
    writer.write(payload).unwrap();
    writer.finish().unwrap()
}

fn open_mapped(disk: &dyn Disk, seal: Seal) -> (Arc<SealedFile>, MappedFiles) {
    let file = Arc::new(SealedFile::open(disk, "b", FILE_IDENTITY, seal).unwrap());
    let mapped = MappedFiles::new([&*file].into_iter());
    (file, mapped)
}

/// Changes a byte of a page of the file in a directory.
fn flip_bit_of_page(home: &TempDir, page: u64) {
    let file = fs::File::options().read(true).write(true).open(home.path().join("b")).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, page * PAGE + 100).unwrap();
    file.write_all_at(&[byte[0] ^ 1], page * PAGE + 100).unwrap();
}

fn byte_range(start: u64, len: usize) -> Range<u64> {
    start..start + len as u64
}

fn kind_and_offset(error: Error) -> (ErrorKind, Option<u64>) {
    match error {
        Error::Storage(error) => (error.kind(), error.offset()),
        other => panic!("{other}"),
    }
}

fn check_reads(file: &Arc<SealedFile>, mapped: &MappedFiles, payload: &[u8]) {
    let mut out = vec![1, 2, 3];
    for (start, len) in [(0, 0), (0, 1), (5000, 300), (299_000, 1000), (20_000, 279_000), (9000, 0)] {
        mapped.read(file, byte_range(HEADER_BYTES + start as u64, len), &mut out).unwrap();
        assert_eq!(out, payload[start..start + len]);
    }
    for start in [2 * PAGE, 3 * PAGE, 3 * PAGE + 100] {
        let error = mapped.read(file, byte_range(start, 2 * PAGE as usize), &mut out).unwrap_err();
        assert_eq!(kind_and_offset(error), (ErrorKind::Corrupt, Some(3 * PAGE)));
        assert!(out.is_empty());
    }
    for (start, len) in [(0, 10), (HEADER_BYTES, payload.len() + 1)] {
        assert!(mapped.read(file, byte_range(start, len), &mut out).is_err());
    }
    assert!(mapped.read(file, u64::MAX - 1..u64::MAX, &mut out).is_err());
}

#[test]
fn a_page_of_a_mapping_is_checked_when_it_is_read_first() {
    let home = TempDir::new().unwrap();
    let disk = PosixDisk::open(home.path()).unwrap();
    let payload = test_payload(300_000);
    let seal = write_sealed_file(&disk, &payload);
    flip_bit_of_page(&home, 3);
    let (file, mapped) = open_mapped(&disk, seal);
    check_reads(&file, &mapped, &payload);
    mapped.disable_readahead(&file).unwrap();
    check_reads(&file, &mapped, &payload);
    assert!(mapped.bytes_read() > 0 && mapped.bytes_read().is_multiple_of(PAGE));
}

#[test]
fn a_file_without_a_descriptor_is_read_and_a_page_is_checked_once() {
    let disk = MemDisk::new();
    let payload = test_payload(300_000);
    let seal = write_sealed_file(&disk, &payload);
    let damage = |page: u64| disk.corrupt("b", |bytes| bytes[(page * PAGE) as usize + 100] ^= 1);
    damage(3);
    let (file, mapped) = open_mapped(&disk, seal);
    check_reads(&file, &mapped, &payload);
    // Page 6 was checked.
    damage(6);
    let mut out = Vec::new();
    mapped.read(&file, byte_range(6 * PAGE, PAGE as usize), &mut out).unwrap();
    assert!(file.read(6 * PAGE, PAGE as usize).is_err());
}

#[test]
fn threads_that_read_a_mapping_all_find_a_damaged_page() {
    const FILE_PAGES: usize = 100;
    const DAMAGED_PAGE: usize = 37;
    let home = TempDir::new().unwrap();
    let disk = PosixDisk::open(home.path()).unwrap();
    let payload = test_payload(FILE_PAGES * PAGE as usize);
    let seal = write_sealed_file(&disk, &payload);
    flip_bit_of_page(&home, DAMAGED_PAGE as u64);
    let (file, mapped) = open_mapped(&disk, seal);
    std::thread::scope(|scope| {
        for step in [1, 3, 7, 11] {
            let (file, mapped, payload) = (&file, &mapped, &payload);
            scope.spawn(move || {
                let mut out = Vec::new();
                for page in (0..FILE_PAGES).map(|k| k * step % FILE_PAGES) {
                    let start = page * PAGE as usize;
                    let read = mapped.read(file, byte_range(start as u64 + HEADER_BYTES, 200), &mut out);
                    assert_eq!(read.is_err(), page == DAMAGED_PAGE, "page {page}");
                    assert!(page == DAMAGED_PAGE || out == payload[start..start + 200]);
                }
            });
        }
    });
}

#[test]
fn a_truncated_file_is_not_mapped() {
    let home = TempDir::new().unwrap();
    let disk = PosixDisk::open(home.path()).unwrap();
    let seal = write_sealed_file(&disk, &test_payload(10_000));
    let (file, mapped) = open_mapped(&disk, seal);
    fs::File::options().write(true).open(home.path().join("b")).unwrap().set_len(9_999).unwrap();
    let error = mapped.read(&file, byte_range(HEADER_BYTES, 1), &mut Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "b is damaged at byte 9999: the file ends early");
}
