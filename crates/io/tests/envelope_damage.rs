//! Every changed, missing, added or foreign byte of a sealed file is detected.

use tierdex_io::{
    Disk, ErrorKind, HEADER_LEN, Identity, MemDisk, PAGE, Result, Seal, SealedFile, SealedWriter,
};

const FILE_NAME: &str = "1.docs";
const IDENTITY: Identity = Identity { kind: 3, field: 1, segment: 7 };
const PAGE_LEN: usize = PAGE as usize;

/// A linear congruential generator of random numbers.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((u128::from(self.0) * bound as u128) >> 64) as usize
    }
}

/// A sealed file on a disk of its own, with its payload.
struct Specimen {
    disk: MemDisk,
    identity: Identity,
    seal: Seal,
    payload: Vec<u8>,
}

impl Specimen {
    fn new(len: usize) -> Specimen {
        Specimen::with_seed(IDENTITY, len, 1)
    }

    fn with_seed(identity: Identity, len: usize, seed: u64) -> Specimen {
        let mut random = Lcg(seed);
        let payload: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
        let disk = MemDisk::new();
        let mut writer = SealedWriter::create(&disk, FILE_NAME, identity).unwrap();
        writer.write(&payload).unwrap();
        let seal = writer.finish().unwrap();
        Specimen { disk, identity, seal, payload }
    }

    fn len(&self) -> usize {
        self.seal.len as usize
    }

    fn open(&self) -> Result<SealedFile> {
        SealedFile::open(&self.disk, FILE_NAME, self.identity, self.seal)
    }

    fn bytes(&self) -> Vec<u8> {
        self.disk.bytes(FILE_NAME).unwrap()
    }

    fn replace_bytes(&self, bytes: &[u8]) {
        self.disk.corrupt(FILE_NAME, |old| {
            old.clear();
            old.extend_from_slice(bytes);
        });
    }

    /// Checks that opening or verifying detects the damage, with and without the seal.
    fn assert_detected(&self, case: &str) {
        let found = self.open().and_then(|file| file.verify());
        assert_eq!(found.map_err(|error| error.kind()), Err(ErrorKind::Corrupt), "{case}");
        self.assert_detected_unsealed(case);
    }

    /// Replaces the bytes of the file, and checks that this is detected.
    fn assert_replacement_detected(&self, bytes: &[u8], case: &str) {
        self.replace_bytes(bytes);
        self.assert_detected(case);
    }

    fn assert_detected_unsealed(&self, case: &str) {
        let file = SealedFile::open_unsealed(&self.disk, FILE_NAME, self.identity);
        let found = file.and_then(|file| file.verify());
        assert_eq!(found.map_err(|error| error.kind()), Err(ErrorKind::Corrupt), "{case}");
    }

    /// Checks that each read returns the written bytes or an error. Returns the number of successful reads.
    fn assert_reads_correct(&self, file: &SealedFile, ranges: &[std::ops::Range<usize>]) -> usize {
        let correct =
            |range: &&std::ops::Range<usize>| match file.read(HEADER_LEN + range.start as u64, range.len()) {
                Ok(bytes) => {
                    assert!(bytes == self.payload[(*range).clone()], "wrong bytes at {range:?}");
                    true
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt);
                    assert_eq!(error.file(), FILE_NAME);
                    false
                }
            };
        ranges.iter().filter(correct).count()
    }

    /// The whole payload, the bytes around file offset `at`, and a random range.
    fn ranges(&self, at: usize, random: &mut Lcg) -> [std::ops::Range<usize>; 3] {
        let len = self.payload.len();
        let around = at.saturating_sub(HEADER_LEN as usize).min(len);
        let start = random.below(len + 1);
        [0..len, around.saturating_sub(3)..len.min(around + 5), start..start + random.below(len - start + 1)]
    }

    /// Flips bits of byte `at`, checks that this is detected, also by the open file `before`, and flips them
    /// back.
    fn try_flip(&self, before: &SealedFile, at: usize, mask: u8, random: &mut Lcg) {
        self.disk.corrupt(FILE_NAME, |bytes| bytes[at] ^= mask);
        self.assert_detected(&format!("byte {at} xor {mask:#x} of {}", self.len()));
        assert!(before.verify().is_err(), "byte {at} of an open file");
        let ranges = self.ranges(at, random);
        self.assert_reads_correct(before, &ranges);
        if let Ok(after) = self.open() {
            self.assert_reads_correct(&after, &ranges);
        }
        self.disk.corrupt(FILE_NAME, |bytes| bytes[at] ^= mask);
    }

    /// Flips all bits, and then one bit, of each of these bytes. Returns the number of trials.
    fn try_flips(&self, offsets: impl Iterator<Item = usize>, random: &mut Lcg) -> usize {
        let before = self.open().unwrap();
        before.verify().unwrap();
        let mut trials = 0;
        for at in offsets {
            let bit = 1 << random.below(8);
            for mask in [0xFF, bit] {
                self.try_flip(&before, at, mask, random);
                trials += 1;
            }
        }
        before.verify().unwrap();
        trials
    }
}

/// Lengths of payloads that end before, at and after page boundaries. With the header of 64 bytes, a payload
/// of 4,032 bytes fills a page.
const PAYLOAD_BYTES: [usize; 15] = [0, 1, 2, 3, 4, 5, 64, 1000, 4031, 4032, 4033, 8127, 8128, 12_400, 20_000];

#[test]
fn every_flipped_byte_is_detected() {
    let mut random = Lcg(42);
    let mut trials = 0;
    for len in PAYLOAD_BYTES {
        let specimen = Specimen::new(len);
        trials += specimen.try_flips(0..specimen.len(), &mut random);
    }
    assert!(trials > 100_000, "{trials}");
}

/// A file of more than 1,024 pages, so that its page table has two groups. All bytes of its header and footer
/// are changed, and a sample of the others.
#[test]
fn flips_are_detected_with_several_groups() {
    let specimen = Specimen::new(4 << 20);
    let payload_end = HEADER_LEN as usize + specimen.payload.len();
    let second_group = payload_end + 4096;
    assert_eq!(specimen.len(), second_group + 4 + 2 * 4 + 64);
    let mut random = Lcg(43);
    let offsets = (0..64)
        .chain((64..payload_end).step_by(20_011))
        .chain((payload_end..second_group).step_by(29))
        .chain(payload_end - 70..payload_end)
        .chain(second_group..specimen.len());
    let trials = specimen.try_flips(offsets.collect::<Vec<_>>().into_iter(), &mut random);
    assert!(trials > 900, "{trials}");
}

#[test]
fn an_undamaged_page_is_read_beside_a_damaged_one() {
    let specimen = Specimen::new(3 * PAGE_LEN);
    specimen.disk.corrupt(FILE_NAME, |bytes| bytes[PAGE_LEN + 9] ^= 1);
    let file = specimen.open().unwrap();
    let ranges = [0..PAGE_LEN - 64, PAGE_LEN - 64..PAGE_LEN, 2 * PAGE_LEN - 64..3 * PAGE_LEN];
    assert_eq!(specimen.assert_reads_correct(&file, &ranges), 2);
    let error = file.read(PAGE, 1).unwrap_err();
    assert_eq!(error.to_string(), "1.docs is damaged at byte 4096: the page's checksum does not match");
}

#[test]
fn every_truncation_is_detected() {
    let mut trials = 0;
    for len in [0, 1, 4032, 4033, 9000] {
        let specimen = Specimen::new(len);
        let whole = specimen.bytes();
        for cut in 0..whole.len() {
            specimen.assert_replacement_detected(&whole[..cut], &format!("cut to {cut} of {}", whole.len()));
            trials += 1;
        }
    }
    assert!(trials > 17_000, "{trials}");
}

#[test]
fn a_file_truncated_while_open_gives_errors() {
    let specimen = Specimen::new(9000);
    let whole = specimen.bytes();
    let mut random = Lcg(44);
    let mut trials = 0;
    for cut in (0..whole.len()).step_by(7) {
        let file = specimen.open().unwrap();
        specimen.replace_bytes(&whole[..cut]);
        assert_eq!(file.verify().unwrap_err().kind(), ErrorKind::Corrupt);
        specimen.assert_reads_correct(&file, &specimen.ranges(cut, &mut random));
        specimen.replace_bytes(&whole);
        trials += 1;
    }
    assert!(trials > 1000, "{trials}");
}

#[test]
fn garbage_at_the_end_is_detected() {
    let mut trials = 0;
    for len in [0, 4032, 9000] {
        let specimen = Specimen::new(len);
        let whole = specimen.bytes();
        let mut random = Lcg(45);
        let random: Vec<u8> = (0..PAGE_LEN).map(|_| random.below(256) as u8).collect();
        let endings = [vec![0; PAGE_LEN], random, whole.repeat(PAGE_LEN / whole.len() + 1)];
        for ending in endings {
            for extra in 1..=PAGE_LEN {
                specimen.assert_replacement_detected(
                    &[&whole[..], &ending[..extra]].concat(),
                    &format!("{extra} bytes more than {}", whole.len()),
                );
                trials += 1;
            }
        }
        // What is appended ends with the footer of the same file.
        specimen.assert_replacement_detected(&[&whole[..], &whole[..]].concat(), "the file twice");
    }
    assert_eq!(trials, 3 * 3 * PAGE_LEN);
}

#[test]
fn files_of_another_identity_are_rejected() {
    let specimen = Specimen::new(9000);
    let others = [
        Identity { kind: 4, ..IDENTITY },
        Identity { field: 2, ..IDENTITY },
        Identity { segment: 8, ..IDENTITY },
        Identity { kind: 1, field: 3, segment: 7 },
    ];
    for other in others {
        let opened = SealedFile::open(&specimen.disk, FILE_NAME, other, specimen.seal);
        assert_eq!(opened.err().map(|error| error.kind()), Some(ErrorKind::Corrupt));
        let stranger = Specimen::with_seed(other, 9000, 1);
        specimen.assert_replacement_detected(&stranger.bytes(), &format!("{other:?}"));
    }
}

#[test]
fn an_intact_file_of_the_same_identity_is_not_the_sealed_one() {
    let specimen = Specimen::new(9000);
    specimen.replace_bytes(&Specimen::with_seed(IDENTITY, 9000, 2).bytes());
    let error = specimen.open().err().expect("another file");
    assert!(error.to_string().ends_with("the file is whole, but not the one that was sealed"), "{error}");
    let unsealed = SealedFile::open_unsealed(&specimen.disk, FILE_NAME, IDENTITY).unwrap();
    unsealed.verify().expect("it is intact");
}

/// A page that is written to a wrong offset, or that is from another file, is valid by itself.
#[test]
fn misplaced_pages_are_detected() {
    let specimen = Specimen::new(5 * PAGE_LEN);
    let whole = specimen.bytes();
    let sources =
        [whole.clone(), Specimen::with_seed(Identity { segment: 8, ..IDENTITY }, 5 * PAGE_LEN, 1).bytes()];
    let mut trials = 0;
    for (source, from, to) in (0..50).map(|i| (&sources[i % 2], i / 2 % 5, i / 10)) {
        let mut bytes = whole.clone();
        bytes[to * PAGE_LEN..][..PAGE_LEN].copy_from_slice(&source[from * PAGE_LEN..][..PAGE_LEN]);
        // The two sources differ only in page 0, which has the header.
        if bytes == whole {
            continue;
        }
        specimen.assert_replacement_detected(&bytes, &format!("page {from} at {to}"));
        trials += 1;
    }
    assert!(trials >= 40, "{trials}");
}

/// Checksums are salted with the identity and the page number, so that a page and its table entry cannot be
/// replaced by those of another page.
#[test]
fn equal_pages_have_different_checksums() {
    let disk = MemDisk::new();
    let mut seen = std::collections::BTreeSet::new();
    for segment in 0..10 {
        let name = format!("{segment}.docs");
        let mut writer = SealedWriter::create(&disk, &name, Identity { segment, ..IDENTITY }).unwrap();
        writer.pad_to_page().unwrap();
        writer.write(&[0; 10 * PAGE_LEN]).unwrap();
        writer.finish().unwrap();
        let bytes = disk.bytes(&name).unwrap();
        let table = &bytes[11 * PAGE_LEN..][..11 * 4];
        seen.extend(table.chunks(4).skip(1).map(<[u8]>::to_vec));
    }
    assert_eq!(seen.len(), 100);
}

#[test]
fn zeroed_pages_and_sectors_are_detected() {
    let specimen = Specimen::new(5 * PAGE_LEN);
    let whole = specimen.bytes();
    let mut trials = 0;
    for unit in [512, PAGE_LEN] {
        for start in (0..whole.len()).step_by(unit) {
            let mut bytes = whole.clone();
            let end = (start + unit).min(bytes.len());
            bytes[start..end].fill(0);
            specimen.assert_replacement_detected(&bytes, &format!("zeros at {start}"));
            trials += 1;
        }
    }
    assert!(trials > 45, "{trials}");
}

/// Parts of an earlier file with their checksums: the checksum of these checksums does not match.
#[test]
fn stale_parts_with_their_checksums_are_detected() {
    let specimen = Specimen::new(3 * PAGE_LEN);
    let (whole, stale) = (specimen.bytes(), Specimen::with_seed(IDENTITY, 3 * PAGE_LEN, 2).bytes());
    let page_table = HEADER_LEN as usize + 3 * PAGE_LEN;
    let (top_table, footer) = (page_table + 4 * 4, page_table + 5 * 4);
    let second = [PAGE_LEN..2 * PAGE_LEN, page_table + 4..page_table + 8];
    let tails = [0..top_table, 0..footer, top_table..whole.len(), footer..whole.len()];
    let splices = tails.into_iter().map(|part| vec![part]).chain([second.to_vec()]);
    for splice in splices {
        let mut bytes = whole.clone();
        splice.iter().for_each(|part| bytes[part.clone()].copy_from_slice(&stale[part.clone()]));
        assert!(bytes != whole && bytes != stale);
        specimen.assert_replacement_detected(&bytes, &format!("{splice:?}"));
    }
}

/// Sectors of an earlier file of the same name, identity and length.
#[test]
fn stale_sectors_are_detected() {
    let specimen = Specimen::new(3 * PAGE_LEN);
    let (whole, stale) = (specimen.bytes(), Specimen::with_seed(IDENTITY, 3 * PAGE_LEN, 2).bytes());
    let mut trials = 0;
    for start in (0..whole.len()).step_by(512) {
        let end = (start + 512).min(whole.len());
        let mut bytes = whole.clone();
        bytes[start..end].copy_from_slice(&stale[start..end]);
        specimen.assert_replacement_detected(&bytes, &format!("stale at {start}"));
        trials += 1;
    }
    assert!(trials > 20, "{trials}");
}

/// A file of random bytes is rejected.
#[test]
fn random_files_are_rejected() {
    let mut random = Lcg(46);
    let disk = MemDisk::new();
    drop(disk.create(FILE_NAME).unwrap());
    for trial in 0..2000 {
        let bytes: Vec<u8> = (0..random.below(500)).map(|_| random.below(256) as u8).collect();
        disk.corrupt(FILE_NAME, |old| *old = bytes);
        let opened = SealedFile::open_unsealed(&disk, FILE_NAME, IDENTITY);
        assert_eq!(opened.err().map(|error| error.kind()), Some(ErrorKind::Corrupt), "{trial}");
    }
}
