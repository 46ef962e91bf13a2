//! Sealed files are encoded as documented, and read back.

use expect_test::expect;
use std::fmt::Write as _;
use tierdex_io::{
    Disk, Effect, ErrorKind, FaultDisk, FaultPlan, HEADER_LEN, Identity, MemDisk, OpClass, PAGE, PosixDisk,
    Repeat, Seal, SealedFile, SealedWriter, errno,
};

const IDENTITY: Identity = Identity { kind: 3, field: 1, segment: 0x0102_0304_0506_0708 };

/// Writes a sealed file `a` with this payload.
fn write_sealed(disk: &dyn Disk, bytes: &[u8]) -> Seal {
    let mut writer = SealedWriter::create(disk, "a", IDENTITY).unwrap();
    writer.write(bytes).unwrap();
    writer.finish().unwrap()
}

fn random_bytes(len: usize) -> Vec<u8> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// A hex dump, 16 bytes a line.
fn hex_dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (row, number) in bytes.chunks(16).zip(0..) {
        let cells: Vec<String> = row.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(text, "{:04x}  {}", number * 16, cells.join(" ")).unwrap();
    }
    text
}

#[test]
fn the_worked_example_of_the_format_is_encoded() {
    let disk = MemDisk::new();
    let seal = write_sealed(&disk, b"hello");
    expect![[r#"
        0000  54 49 45 52 44 45 58 0a 09 00 03 01 08 07 06 05
        0010  04 03 02 01 00 00 00 00 00 00 00 00 00 00 00 00
        0020  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
        0030  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
        0040  68 65 6c 6c 6f a7 a3 78 b8 19 4b 6c b3 58 45 44
        0050  52 45 49 54 0a 09 00 03 01 08 07 06 05 04 03 02
        0060  01 45 00 00 00 00 00 00 00 61 4f 69 0e 00 00 00
        0070  00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
        0080  00 00 00 00 00 00 00 00 00 3a be 31 fd
    "#]]
    .assert_eq(&hex_dump(&disk.bytes("a").unwrap()));
    expect!["141 fd31be3a"].assert_eq(&format!("{} {:08x}", seal.len, seal.crc));
}

#[test]
fn ranges_are_read_back() {
    for len in [0, 1, 100, 4031, 4032, 4033, 9000, (128 << 10) - 64, 128 << 10, 300_000] {
        let (disk, bytes) = (MemDisk::new(), random_bytes(len));
        let seal = write_sealed(&disk, &bytes);
        let file = SealedFile::open(&disk, "a", IDENTITY, seal).unwrap();
        assert_eq!(file.payload(), HEADER_LEN..HEADER_LEN + len as u64);
        file.verify().unwrap();
        let marks = [0, 1, 63, 64, 4031, 4032, 4033, 8128, 8129, len / 2, len.saturating_sub(1), len];
        for start in marks.into_iter().filter(|mark| *mark <= len) {
            for end in marks.into_iter().filter(|mark| (start..=len).contains(mark)) {
                let found = file.read(HEADER_LEN + start as u64, end - start).unwrap();
                assert!(found == bytes[start..end], "{start}..{end} of {len}");
            }
        }
    }
}

#[test]
fn a_read_reads_whole_pages_once() {
    let disk = MemDisk::new();
    let seal = write_sealed(&disk, &random_bytes(20_000));
    let counting = FaultDisk::new(disk, FaultPlan::none());
    let file = SealedFile::open(&counting, "a", IDENTITY, seal).unwrap();
    assert_eq!(file.bytes_read(), 64 + 4, "footer and top table");
    file.read(PAGE - 1, 2).unwrap();
    assert_eq!(file.bytes_read(), 68 + 2 * PAGE + 5 * 4, "two pages and the table of five");
    let reads = counting.operations(OpClass::Read);
    file.read(3 * PAGE, PAGE as usize).unwrap();
    assert_eq!(file.bytes_read(), 68 + 3 * PAGE + 20);
    assert_eq!(counting.operations(OpClass::Read) - reads, 1);
}

#[test]
fn ranges_outside_the_payload_are_rejected() {
    let disk = MemDisk::new();
    let seal = write_sealed(&disk, &random_bytes(100));
    let file = SealedFile::open(&disk, "a", IDENTITY, seal).unwrap();
    let mut out = vec![1, 2, 3];
    for (offset, len) in
        [(0, 1), (63, 1), (63, 0), (64, 101), (164, 1), (165, 0), (u64::MAX, 1), (64, usize::MAX)]
    {
        let error = file.read_into(offset, len, &mut out).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (ErrorKind::Corrupt, Some(offset)));
        assert!(out.is_empty());
    }
    assert!(file.read(164, 0).unwrap().is_empty());
}

#[test]
fn the_sizes_of_writes_do_not_change_the_file() {
    let disk = MemDisk::new();
    let bytes = random_bytes(300_000);
    let mut writer = SealedWriter::create(&disk, "a", IDENTITY).unwrap();
    assert_eq!(writer.position(), HEADER_LEN);
    let mut rest = &bytes[..];
    for len in (1..).map(|i| i * 7) {
        let (piece, later) = rest.split_at(rest.len().min(len));
        writer.write(piece).unwrap();
        rest = later;
        assert_eq!(writer.position(), HEADER_LEN + (bytes.len() - rest.len()) as u64);
        if rest.is_empty() {
            break;
        }
    }
    writer.pad_to_page().unwrap();
    assert_eq!(writer.position(), 74 * PAGE);
    writer.pad_to_page().unwrap();
    assert_eq!(writer.position(), 74 * PAGE, "padding a full page adds none");
    writer.finish().unwrap();
    let in_pieces = disk.bytes("a").unwrap();
    disk.remove("a").unwrap();
    write_sealed(&disk, &[&bytes[..], &vec![0; 74 * 4096 - 64 - bytes.len()]].concat());
    assert!(in_pieces == disk.bytes("a").unwrap());
}

#[test]
fn all_disks_have_the_same_bytes() {
    let home = tempfile::TempDir::new().unwrap();
    let (posix, memory) = (PosixDisk::open(home.path()).unwrap(), MemDisk::new());
    let bytes = random_bytes(200_000);
    let seals = [write_sealed(&posix, &bytes), write_sealed(&memory, &bytes)];
    assert_eq!(seals[0], seals[1]);
    assert!(std::fs::read(home.path().join("a")).unwrap() == memory.bytes("a").unwrap());
    let file = SealedFile::open(&posix, "a", IDENTITY, seals[0]).unwrap();
    file.verify().unwrap();
    assert_eq!((file.seal(), file.name()), (seals[0], "a"));
    assert!(file.read(HEADER_LEN, bytes.len()).unwrap() == bytes);
}

#[test]
fn a_failed_writer_stays_failed() {
    let plan = FaultPlan {
        class: OpClass::Write,
        at: 2,
        effect: Effect::Error(errno::ENOSPC),
        repeat: Repeat::Once,
    };
    let disk = FaultDisk::new(MemDisk::new(), plan);
    let mut writer = SealedWriter::create(&disk, "a", IDENTITY).unwrap();
    let outcomes = [
        writer.write(&random_bytes(200_000)),
        writer.write(b"x"),
        writer.pad_to_page(),
        writer.finish().map(|_| ()),
    ];
    for outcome in outcomes {
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::NoSpace);
    }
    assert_eq!(disk.injected(), 1);
    assert!(SealedFile::open_unsealed(disk.inner(), "a", IDENTITY).is_err());
}

#[test]
fn threads_read_one_file() {
    let disk = MemDisk::new();
    let bytes = random_bytes(5 << 20);
    let seal = write_sealed(&disk, &bytes);
    let file = SealedFile::open(&disk, "a", IDENTITY, seal).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (file, bytes) = (&file, &bytes);
            scope.spawn(move || {
                for start in (thread * 1000..bytes.len() - 5000).step_by(50_021) {
                    assert!(
                        file.read(HEADER_LEN + start as u64, 5000).unwrap() == bytes[start..start + 5000]
                    );
                }
            });
        }
    });
}
