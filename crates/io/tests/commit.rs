//! A commit protocol on sealed files survives a crash and an error at every operation.

use tierdex_io::{
    CrashImage, Disk, Effect, FaultDisk, FaultPlan, Identity, MemDisk, OpClass, Repeat, Result, SealedFile,
    SealedWriter, errno,
};

fn manifest_name(generation: u64) -> String {
    format!("manifest-{generation}")
}

fn payload_of(generation: u64) -> Vec<u8> {
    (0..9000u64).map(|i| (i * generation) as u8).collect()
}

fn write_sealed(disk: &dyn Disk, name: &str, identity: Identity, bytes: &[u8]) -> Result<tierdex_io::Seal> {
    let mut writer = SealedWriter::create(disk, name, identity)?;
    writer.write(bytes)?;
    writer.finish()
}

fn segment_name(generation: u64) -> (String, Identity) {
    (format!("{generation}.docs"), Identity { kind: 2, field: 0, segment: generation })
}

/// Writes a data file and a manifest that names it, each step synced before the next.
fn commit(disk: &dyn Disk, generation: u64) -> Result<()> {
    let (name, identity) = segment_name(generation);
    let seal = write_sealed(disk, &name, identity, &payload_of(generation))?;
    disk.sync_dir()?;
    let entry = [generation, seal.len, u64::from(seal.crc)].map(u64::to_le_bytes).concat();
    write_sealed(disk, "manifest.tmp", Identity { kind: 1, field: 0, segment: 0 }, &entry)?;
    disk.rename("manifest.tmp", &manifest_name(generation))?;
    disk.sync_dir()
}

/// Reads the newest manifest and the data file that it names, and compares all bytes. Returns the generation.
fn recover(disk: &dyn Disk) -> Result<u64> {
    let newest = disk.list()?.into_iter().rfind(|name| name.starts_with("manifest-")).unwrap();
    let manifest = SealedFile::open_unsealed(disk, &newest, Identity { kind: 1, field: 0, segment: 0 })?;
    manifest.verify()?;
    let entry = manifest.read(manifest.payload().start, 24)?;
    let [generation, len, crc] =
        [0, 8, 16].map(|at| u64::from_le_bytes(entry[at..at + 8].try_into().unwrap()));
    let (name, identity) = segment_name(generation);
    let file = SealedFile::open(disk, &name, identity, tierdex_io::Seal { len, crc: crc as u32 })?;
    file.verify()?;
    assert_eq!(file.read(file.payload().start, 9000)?, payload_of(generation));
    Ok(generation)
}

/// A disk on which generation 1 is committed, and the number of operations of the next commit.
fn commit_first() -> (MemDisk, u64) {
    let disk = MemDisk::new();
    commit(&disk, 1).unwrap();
    let counting = FaultDisk::new(disk.snapshot(), FaultPlan::none());
    commit(&counting, 2).unwrap();
    (disk, counting.operations(OpClass::Any))
}

#[test]
fn a_crash_at_any_operation_leaves_a_complete_generation() {
    let (disk, operations) = commit_first();
    let (mut crashes, mut old, mut new) = (0, 0, 0);
    for at in 1..=operations {
        let plan = FaultPlan { class: OpClass::Any, at, effect: Effect::Crash, repeat: Repeat::Once };
        let faulty = FaultDisk::new(disk.snapshot(), plan);
        commit(&faulty, 2).unwrap_err();
        crashes += faulty.injected();
        let images = [CrashImage::Lost, CrashImage::Kept].into_iter().chain((0..64).map(CrashImage::Random));
        for image in images {
            match recover(&faulty.inner().crash(image)).unwrap() {
                1 => old += 1,
                2 => new += 1,
                other => panic!("generation {other} was never committed"),
            }
        }
    }
    assert_eq!(crashes, operations);
    assert!(old > 0 && new > 0, "old {old}, new {new}");
}

#[test]
fn an_acknowledged_commit_survives_every_image() {
    let (disk, _) = commit_first();
    commit(&disk, 2).unwrap();
    for image in [CrashImage::Lost, CrashImage::Kept].into_iter().chain((0..100).map(CrashImage::Random)) {
        assert_eq!(recover(&disk.crash(image)).unwrap(), 2);
    }
}

/// Checks the test itself: it must detect a protocol without syncs of the directory.
#[test]
fn a_commit_without_directory_syncs_is_detected() {
    struct NoDirectorySync(MemDisk);
    impl Disk for NoDirectorySync {
        tierdex_io::forward_disk!(self, self.0; list open create rename remove lock describe);

        fn sync_dir(&self) -> Result<()> {
            Ok(())
        }
    }
    let (disk, _) = commit_first();
    let no_sync = NoDirectorySync(disk);
    commit(&no_sync, 2).unwrap();
    let detected =
        (0..100).filter(|seed| recover(&no_sync.0.crash(CrashImage::Random(*seed))).ok() != Some(2));
    assert!(detected.count() > 10);
}

#[test]
fn an_error_at_any_operation_fails_the_commit_and_keeps_the_last_one() {
    let (disk, operations) = commit_first();
    let mut injected = 0;
    for at in 1..=operations {
        for (number, repeat) in [(errno::ENOSPC, Repeat::Once), (errno::EIO, Repeat::Forever)] {
            let plan = FaultPlan { class: OpClass::Any, at, effect: Effect::Error(number), repeat };
            let faulty = FaultDisk::new(disk.snapshot(), plan);
            commit(&faulty, 2).unwrap_err();
            injected += faulty.injected();
            let found = recover(faulty.inner()).unwrap();
            assert!(found == 1 || at == operations, "only the last sync comes after the rename");
        }
    }
    assert_eq!(injected, operations * 2);
}

#[test]
fn a_read_error_fails_only_that_recovery() {
    let (disk, _) = commit_first();
    let counting = FaultDisk::new(disk.clone(), FaultPlan::none());
    recover(&counting).unwrap();
    let reads = counting.operations(OpClass::Read);
    let mut injected = 0;
    for at in 1..=reads {
        let plan =
            FaultPlan { class: OpClass::Read, at, effect: Effect::Error(errno::EIO), repeat: Repeat::Once };
        let faulty = FaultDisk::new(disk.clone(), plan);
        let error = recover(&faulty).unwrap_err();
        assert!(!error.file().is_empty() || error.to_string().starts_with("cannot list"), "{error}");
        injected += faulty.injected();
        assert_eq!(recover(&faulty).unwrap(), 1, "recovery succeeds after the fault");
    }
    assert!(injected == reads && reads > 5, "{injected} of {reads}");
}

#[test]
fn a_full_disk_of_any_size_keeps_the_last_generation() {
    let (disk, _) = commit_first();
    let used: usize = disk.list().unwrap().iter().map(|name| disk.bytes(name).unwrap().len()).sum();
    let mut rejected = 0;
    for free in (0..12_000).step_by(97) {
        let full = disk.snapshot();
        full.set_capacity(Some(used as u64 + free));
        match commit(&full, 2) {
            Ok(()) => assert_eq!(recover(&full).unwrap(), 2),
            Err(error) => {
                assert_eq!(error.kind(), tierdex_io::ErrorKind::NoSpace);
                assert_eq!(recover(&full).unwrap(), 1);
                rejected += 1;
            }
        }
    }
    assert!(rejected > 50, "{rejected}");
}
