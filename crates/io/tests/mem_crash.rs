//! A crash of an in-memory disk loses and keeps bytes and names as documented.

use proptest::prelude::*;
use std::collections::BTreeMap;
use tierdex_io::{CrashImage, Disk, ErrorKind, MemDisk, WriteFile};

/// Creates a file with bytes that are synced and further ones that are not, and leaves it open.
fn create_partly_synced(disk: &MemDisk, name: &str, synced: &[u8], unsynced: &[u8]) -> Box<dyn WriteFile> {
    let mut file = disk.create(name).unwrap();
    file.append(synced).unwrap();
    file.sync().unwrap();
    file.append(unsynced).unwrap();
    file
}

fn crash_images() -> impl Iterator<Item = CrashImage> {
    [CrashImage::Lost, CrashImage::Kept].into_iter().chain((0..200).map(CrashImage::Random))
}

#[test]
fn unsynced_bytes_are_lost_or_kept() {
    let disk = MemDisk::new();
    let _file = create_partly_synced(&disk, "a", b"synced", b" and not");
    disk.sync_dir().unwrap();
    assert_eq!(disk.crash(CrashImage::Lost).bytes("a").unwrap(), b"synced");
    assert_eq!(disk.crash(CrashImage::Kept).bytes("a").unwrap(), b"synced and not");
    assert_eq!(disk.bytes("a").unwrap(), b"synced and not", "the disk itself does not change");
}

#[test]
fn an_unsynced_name_is_lost_though_its_bytes_are_synced() {
    let disk = MemDisk::new();
    drop(create_partly_synced(&disk, "a", b"synced", b""));
    assert_eq!(disk.crash(CrashImage::Lost).bytes("a"), None);
    assert_eq!(disk.crash(CrashImage::Kept).bytes("a").unwrap(), b"synced");
}

#[test]
fn a_synced_name_has_no_bytes_before_they_are_synced() {
    let disk = MemDisk::new();
    let mut file = disk.create("a").unwrap();
    file.append(b"unsynced").unwrap();
    disk.sync_dir().unwrap();
    assert_eq!(disk.crash(CrashImage::Lost).bytes("a").unwrap(), b"");
}

#[test]
fn an_unsynced_removal_may_be_lost() {
    let disk = MemDisk::new();
    drop(create_partly_synced(&disk, "a", b"back", b""));
    disk.sync_dir().unwrap();
    disk.remove("a").unwrap();
    assert_eq!(disk.crash(CrashImage::Lost).bytes("a").unwrap(), b"back");
    assert_eq!(disk.crash(CrashImage::Kept).bytes("a"), None);
    disk.sync_dir().unwrap();
    assert_eq!(disk.crash(CrashImage::Lost).bytes("a"), None);
}

#[test]
fn an_unsynced_rename_leaves_the_old_name_or_the_new_one() {
    let disk = MemDisk::new();
    drop(create_partly_synced(&disk, "manifest.tmp", b"new", b""));
    disk.sync_dir().unwrap();
    disk.rename("manifest.tmp", "manifest").unwrap();
    let mut seen = BTreeMap::new();
    for image in crash_images() {
        *seen.entry(disk.crash(image).list().unwrap()).or_insert(0) += 1;
    }
    assert_eq!(seen.keys().map(|names| names.concat()).collect::<Vec<_>>(), ["manifest", "manifest.tmp"]);
    assert!(seen.values().all(|count| *count > 20), "{seen:?}");
    disk.sync_dir().unwrap();
    for image in crash_images() {
        let after = disk.crash(image);
        assert_eq!(after.list().unwrap(), ["manifest"]);
        assert_eq!(after.bytes("manifest").unwrap(), b"new");
    }
}

#[test]
fn a_rename_may_survive_without_the_bytes() {
    let disk = MemDisk::new();
    let mut file = disk.create("tmp").unwrap();
    file.append(&[1; 2000]).unwrap();
    disk.rename("tmp", "final").unwrap();
    let broken = crash_images()
        .filter_map(|image| disk.crash(image).bytes("final"))
        .filter(|bytes| *bytes != [1; 2000]);
    assert!(broken.count() > 20);
}

#[test]
fn random_images_cut_and_zero_at_sectors() {
    let disk = MemDisk::new();
    let _file = create_partly_synced(&disk, "a", &[1; 700], &[2; 5000]);
    disk.sync_dir().unwrap();
    let (mut cut, mut zeroed) = (0, 0);
    for seed in 0..500 {
        let bytes = disk.crash(CrashImage::Random(seed)).bytes("a").unwrap();
        assert!(bytes[..700].iter().all(|byte| *byte == 1));
        assert!(bytes.len() <= 5700);
        assert!([700, 5700].contains(&bytes.len()) || bytes.len().is_multiple_of(512));
        for sector in bytes.chunks(512).skip(2) {
            assert!(sector.iter().all(|byte| *byte == 2) || sector.iter().all(|byte| *byte == 0));
        }
        cut += u32::from(bytes.len() < 5700);
        zeroed += u32::from(bytes[700..].contains(&0));
    }
    assert!(cut > 100 && zeroed > 50, "cut {cut}, zeroed {zeroed}");
}

#[test]
fn the_same_seed_gives_the_same_image() {
    let disk = MemDisk::new();
    let _files = ["a", "b", "c"].map(|name| create_partly_synced(&disk, name, &[1; 100], &[2; 4000]));
    for seed in 0..50 {
        let [one, two] = [(); 2].map(|()| disk.crash(CrashImage::Random(seed)));
        assert_eq!(one.list().unwrap(), two.list().unwrap());
        assert!(one.list().unwrap().iter().all(|name| one.bytes(name) == two.bytes(name)));
    }
}

#[test]
fn a_crash_releases_locks_and_makes_the_rest_durable() {
    let disk = MemDisk::new();
    let _lock = disk.lock("lock").unwrap();
    let _file = create_partly_synced(&disk, "a", b"1", b"2");
    let after = disk.crash(CrashImage::Kept);
    assert!(after.lock("lock").is_ok());
    assert_eq!(after.crash(CrashImage::Lost).bytes("a").unwrap(), b"12");
}

#[test]
fn a_snapshot_is_independent_and_keeps_unsynced_changes() {
    let disk = MemDisk::new();
    let mut file = create_partly_synced(&disk, "a", b"1", b"2");
    let copy = disk.snapshot();
    file.append(b"3").unwrap();
    disk.clone().remove("a").unwrap();
    assert_eq!(disk.bytes("a"), None, "a clone is the same disk");
    assert_eq!(copy.bytes("a").unwrap(), b"12");
    assert_eq!(copy.crash(CrashImage::Lost).bytes("a"), None);
    copy.sync_dir().unwrap();
    assert_eq!(copy.crash(CrashImage::Lost).bytes("a").unwrap(), b"1");
}

#[test]
fn capacity_counts_live_bytes() {
    let disk = MemDisk::with_capacity(10);
    let mut a = create_partly_synced(&disk, "a", b"12345", b"");
    let mut b = create_partly_synced(&disk, "b", b"1234", b"");
    b.append(b"5").unwrap();
    let errors = [a.append(b"6"), b.append(b"6")].map(|full| full.unwrap_err().kind());
    assert_eq!(errors, [ErrorKind::NoSpace; 2]);
    assert_eq!(disk.bytes("a").unwrap(), b"12345", "a rejected append writes nothing");
    disk.remove("b").unwrap();
    assert!(a.append(b"6").is_err(), "an open file still takes its space");
    drop(b);
    a.append(b"67890").unwrap();
    assert!(a.append(b"x").is_err());
    disk.set_capacity(None);
    a.append(b"x").unwrap();
}

#[test]
fn damage_reaches_durable_bytes_and_open_readers() {
    let disk = MemDisk::new();
    drop(create_partly_synced(&disk, "a", b"abc", b""));
    disk.sync_dir().unwrap();
    let reader = disk.open("a").unwrap();
    disk.corrupt("a", |bytes| bytes[1] = b'X');
    let mut bytes = [0; 3];
    reader.read_at(0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"aXc");
    disk.corrupt("a", |bytes| bytes.truncate(1));
    assert_eq!(reader.read_at(0, &mut bytes).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(disk.crash(CrashImage::Lost).bytes("a").unwrap(), b"a");
}

#[test]
#[should_panic(expected = "no file a to damage")]
fn damaging_nothing_panics() {
    MemDisk::new().corrupt("a", |_| ());
}

/// A random operation on one of the four files of [`FILE_NAMES`]. The numbers are indexes of names; that of
/// `Append` is followed by a number of bytes.
#[derive(Debug, Clone)]
enum DiskStep {
    Create(usize),
    Append(usize, usize),
    Sync(usize),
    Rename(usize, usize),
    Remove(usize),
    SyncDir,
}

const FILE_NAMES: [&str; 4] = ["a", "b", "c", "d"];

fn random_steps() -> impl Strategy<Value = Vec<DiskStep>> {
    let name = 0..FILE_NAMES.len();
    let step = prop_oneof![
        3 => name.clone().prop_map(DiskStep::Create),
        4 => (name.clone(), 0..3000usize).prop_map(|(name, len)| DiskStep::Append(name, len)),
        3 => name.clone().prop_map(DiskStep::Sync),
        2 => (name.clone(), name.clone()).prop_map(|(from, to)| DiskStep::Rename(from, to)),
        1 => name.prop_map(DiskStep::Remove),
        2 => Just(DiskStep::SyncDir),
    ];
    prop::collection::vec(step, 1..60)
}

/// A model of what a disk guarantees: its current state, and what must survive any crash. Names are indexes
/// of [`FILE_NAMES`], files are indexes of `files`.
#[derive(Default)]
struct DiskModel {
    files: Vec<ModelFile>,
    live: BTreeMap<usize, usize>,
    /// Names that survive any crash: they were synced, and neither the name nor its file has changed since.
    certain: BTreeMap<usize, usize>,
}

struct ModelFile {
    handle: Box<dyn WriteFile>,
    bytes: Vec<u8>,
    synced: usize,
}

impl DiskModel {
    fn apply_step(&mut self, disk: &MemDisk, step: &DiskStep) {
        match *step {
            DiskStep::Create(name) => self.create(disk, name),
            DiskStep::Append(name, len) => self.append(name, len),
            DiskStep::Sync(name) => self.sync(name),
            DiskStep::Rename(from, to) => self.rename(disk, from, to),
            DiskStep::Remove(name) => self.remove(disk, name),
            DiskStep::SyncDir => {
                disk.sync_dir().unwrap();
                self.certain = self.live.clone();
            }
        }
    }

    fn create(&mut self, disk: &MemDisk, name: usize) {
        let created = disk.create(FILE_NAMES[name]);
        assert_eq!(created.is_ok(), !self.live.contains_key(&name));
        if let Ok(handle) = created {
            self.live.insert(name, self.files.len());
            self.certain.remove(&name);
            self.files.push(ModelFile { handle, bytes: Vec::new(), synced: 0 });
        }
    }

    fn append(&mut self, name: usize, len: usize) {
        if let Some(file) = self.live.get(&name) {
            let fill = *file as u8 + 1;
            let file = &mut self.files[*file];
            file.handle.append(&vec![fill; len]).unwrap();
            file.bytes.resize(file.bytes.len() + len, fill);
        }
    }

    fn sync(&mut self, name: usize) {
        if let Some(file) = self.live.get(&name) {
            let file = &mut self.files[*file];
            file.handle.sync().unwrap();
            file.synced = file.bytes.len();
        }
    }

    fn rename(&mut self, disk: &MemDisk, from: usize, to: usize) {
        let renamed = disk.rename(FILE_NAMES[from], FILE_NAMES[to]);
        assert_eq!(renamed.is_ok(), self.live.contains_key(&from) && !self.live.contains_key(&to));
        if let (Ok(()), Some(file)) = (renamed, self.live.get(&from).copied()) {
            self.live.remove(&from);
            self.live.insert(to, file);
            self.certain.remove(&from);
            self.certain.remove(&to);
        }
    }

    fn remove(&mut self, disk: &MemDisk, name: usize) {
        assert_eq!(disk.remove(FILE_NAMES[name]).is_ok(), self.live.remove(&name).is_some());
        self.certain.remove(&name);
    }

    /// Checks that a crash image has all certain names with their synced bytes. Returns their number.
    fn check_image(&self, after: &MemDisk) -> usize {
        for (name, file) in &self.certain {
            let file = &self.files[*file];
            let bytes = after.bytes(FILE_NAMES[*name]).expect("a synced name survives");
            assert!(bytes.len() >= file.synced && bytes.len() <= file.bytes.len());
            assert_eq!(bytes[..file.synced], file.bytes[..file.synced], "synced bytes survive");
            let torn = bytes[file.synced..].iter().zip(&file.bytes[file.synced..]);
            assert!(torn.clone().all(|(found, written)| found == written || *found == 0));
        }
        self.certain.len()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn synced_bytes_and_names_survive_every_crash(steps in random_steps(), seed: u64) {
        let disk = MemDisk::new();
        let mut model = DiskModel::default();
        for step in &steps {
            model.apply_step(&disk, step);
            let images = [CrashImage::Lost, CrashImage::Kept, CrashImage::Random(seed), CrashImage::Random(!seed)];
            images.iter().for_each(|image| { model.check_image(&disk.crash(*image)); });
        }
        let live: Vec<&str> = model.live.keys().map(|name| FILE_NAMES[*name]).collect();
        prop_assert_eq!(disk.list().unwrap(), live.clone());
        prop_assert_eq!(disk.crash(CrashImage::Kept).list().unwrap(), live);
        disk.sync_dir().unwrap();
        model.certain = model.live.clone();
        prop_assert_eq!(model.check_image(&disk.crash(CrashImage::Random(seed))), model.live.len());
    }
}
