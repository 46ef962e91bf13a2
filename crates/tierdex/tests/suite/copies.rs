//! Copies of an index: the same bytes, whole or not there at all, also while a writer commits; and an index
//! that is made updatable.

use crate::support::corpus::{TestDocument, random_documents};
use crate::support::deleted::{build_deleted, set_input_files, updatable_writer};
use crate::support::{add_documents, assert_sound, crash_images, open_writer, read_files, schema};
use std::path::Path;
use std::sync::{Arc, atomic::AtomicBool, atomic::Ordering};
use tierdex::commit::{FORMAT_VERSION, Manifest};
use tierdex::internal::index::copy_on;
use tierdex::io::{Disk, Effect, FaultDisk, FaultPlan, MemDisk, OpClass, PosixDisk, Repeat, errno};
use tierdex::{Error, ErrorKind, Index, IndexWriter, Merge, OpenMode, StopSignal, WriterOptions};

fn copy(from: &dyn Disk, to: &dyn Disk) -> tierdex::Result<Manifest> {
    copy_on(from, to, &StopSignal::default())
}

fn sample() -> MemDisk {
    let docs = random_documents(3, 400);
    build_deleted(&schema(), &docs, 300, &[0..30, 31..33])
}

fn golden(version: u16) -> PosixDisk {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/format-{version}"));
    PosixDisk::open(&path).unwrap()
}

#[test]
fn a_copy_has_the_same_bytes() {
    let (from, to) = (sample(), MemDisk::new());
    assert_eq!(copy(&from, &to).unwrap(), Manifest::read_newest(&from).unwrap().unwrap());
    assert_eq!(read_files(&to), read_files(&from));
    for version in [6, 7] {
        let to = MemDisk::new();
        assert_eq!(copy(&golden(version), &to).unwrap().version, version);
        assert_sound(&to);
    }
}

#[test]
fn copies_are_whole_commits_while_a_writer_is_at_work() {
    let from = MemDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(from.clone());
    let docs = random_documents(4, 600);
    let mut writer = updatable_writer(&shared, &schema(), OpenMode::New).unwrap();
    let done = AtomicBool::new(false);
    add_documents(&mut writer, &docs[..4]);
    writer.commit(Merge::Keep).unwrap();
    let copied = std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..150 {
                // The index has four documents more after each commit.
                add_documents(&mut writer, &docs[4 * number - 4..4 * number + 4]);
                set_input_files(&mut writer, &[&docs[..4 * number + 4]]).unwrap();
                writer.commit(if number % 9 == 0 { Merge::One } else { Merge::Keep }).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        let mut copied = Vec::new();
        while !done.load(Ordering::Relaxed) {
            let to = MemDisk::new();
            let manifest = copy(&from, &to).unwrap();
            assert_eq!(manifest.live_documents(), 4 * manifest.generation);
            assert_sound(&to);
            copied.push(manifest.generation);
        }
        copied
    });
    assert!(copied.is_sorted() && copied.len() > 2, "{copied:?}");
    let to = MemDisk::new();
    assert_eq!(copy(&from, &to).unwrap().generation, 150);
    assert_sound(&to);
}

#[test]
fn a_copy_that_fails_leaves_no_index() {
    let from = sample();
    let count = |class| {
        let to = FaultDisk::new(MemDisk::new(), FaultPlan::none());
        let from = FaultDisk::new(from.clone(), FaultPlan::none());
        copy(&from, &to).unwrap();
        [from.operations(class), to.operations(class)]
    };
    let [reads, _] = count(OpClass::Read);
    let [_, operations] = count(OpClass::Any);
    assert!(reads > 30 && operations > 60, "{reads} reads, {operations} operations");
    let plan =
        |at| FaultPlan { class: OpClass::Any, at, effect: Effect::Error(errno::EIO), repeat: Repeat::Once };
    for at in 1..=reads {
        let (to, from) =
            (MemDisk::new(), FaultDisk::new(from.clone(), FaultPlan { class: OpClass::Read, ..plan(at) }));
        assert!(matches!(copy(&from, &to), Err(Error::Storage(_))), "read {at}");
        assert!(to.list().unwrap().is_empty(), "read {at}: {:?}", to.list());
    }
    for at in 1..=operations {
        let to = FaultDisk::new(MemDisk::new(), plan(at));
        if copy(&from, &to).is_err() {
            assert_eq!(Manifest::newest(to.inner()).unwrap(), None, "operation {at}");
            // What could not be removed is removed by the next copy.
            copy(&from, to.inner()).unwrap();
        }
        assert_sound(to.inner());
    }
    // A copy that is killed before it renames files is repeated.
    let (mut killed, mut repeated) = (0, 0);
    for at in 1..=operations {
        let to = FaultDisk::new(MemDisk::new(), FaultPlan { effect: Effect::Crash, ..plan(at) });
        let _ = copy(&from, &to);
        let to = to.inner().crash(crash_images(at..at + 1).last().unwrap());
        killed += 1;
        if Manifest::newest(&to).unwrap().is_none() && copy(&from, &to).is_ok() {
            assert_eq!(read_files(&to), read_files(&from), "operation {at}");
            repeated += 1;
        }
    }
    assert!(repeated * 10 > killed * 8, "{repeated} of {killed}");
    let small = MemDisk::with_capacity(20_000);
    assert!(copy(&from, &small).is_err_and(|error| matches!(error, Error::Failed(_) | Error::Storage(_))));
    assert!(small.list().unwrap().is_empty());
}

#[test]
fn an_acknowledged_copy_survives_a_loss_of_power() {
    let (from, to) = (sample(), MemDisk::new());
    copy(&from, &to).unwrap();
    for image in crash_images(0..10) {
        assert_eq!(read_files(&to.crash(image)), read_files(&from));
    }
}

#[test]
fn damage_is_not_copied() {
    let from = sample();
    for name in from.list().unwrap() {
        let damaged = from.snapshot();
        damaged.corrupt(&name, |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        });
        let to = MemDisk::new();
        let error = copy(&damaged, &to).unwrap_err();
        assert!(
            matches!(&error, Error::Storage(error) if error.kind() == ErrorKind::Corrupt),
            "{name}: {error}"
        );
        assert!(to.list().unwrap().is_empty(), "{name}");
    }
}

#[test]
fn an_index_is_not_overwritten_by_a_copy() {
    let (from, to) = (sample(), sample());
    let before = read_files(&to);
    assert!(copy(&from, &to).unwrap_err().to_string().contains("holds an index already"));
    assert!(
        copy(&MemDisk::new(), &MemDisk::new()).unwrap_err().to_string().contains("holds no tierdex index")
    );
    let stop = StopSignal::default();
    stop.raise();
    assert!(matches!(copy_on(&from, &MemDisk::new(), &stop), Err(Error::Interrupted)));
    let held = MemDisk::new();
    let lock = held.lock("write.lock").unwrap();
    assert!(matches!(copy(&from, &held), Err(Error::Busy(_))));
    drop(lock);
    assert_eq!(read_files(&to), before);
}

#[test]
fn a_list_of_files_belongs_to_its_commit() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let mut writer = updatable_writer(&disk, &schema(), OpenMode::New).unwrap();
    add_documents(&mut writer, &random_documents(1, 3));
    let stale = writer.create_input_files("").unwrap();
    writer.commit(Merge::None).unwrap();
    assert!(writer.set_input_files(stale).unwrap_err().to_string().contains("before the last commit"));
    let (first, second) = (writer.create_input_files("").unwrap(), writer.create_input_files("").unwrap());
    assert!(writer.set_input_files(first).is_err());
    assert!(writer.set_input_files(second).is_err(), "begun before another was given");
    let last = writer.create_input_files("").unwrap();
    writer.set_input_files(last).unwrap();
    writer.commit(Merge::None).unwrap();
    assert!(
        crate::support::script::check_no_orphans(disk.as_ref(), Some(&Index::open_on(disk.clone()).unwrap()))
            .is_ok()
    );
}

/// Three segments of an index that is not updatable, in which ids repeat within a segment and between them.
fn repeated() -> (MemDisk, Vec<TestDocument>) {
    let mut docs = random_documents(9, 120);
    for (number, doc) in docs.iter_mut().enumerate() {
        doc.id = format!("id {}", number * number % 70);
    }
    let disk = MemDisk::new();
    let mut writer = open_writer(&(Arc::new(disk.clone()) as _), &schema(), OpenMode::New);
    for part in docs.chunks(40) {
        add_documents(&mut writer, part);
        writer.commit(Merge::None).unwrap();
    }
    (disk, docs)
}

/// Documents that were deleted before replace no others.
#[test]
fn deleted_documents_of_an_id_do_not_count_when_an_index_is_made_updatable() {
    let docs = random_documents(2, 60);
    let ids: Vec<String> = (0..60).map(|number| (number % 50).to_string()).collect();
    for cut in [30, 60] {
        let disk = MemDisk::new();
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let mut writer = open_writer(&shared, &schema(), OpenMode::New);
        for part in [0..cut, cut..60] {
            part.for_each(|number| writer.add(&ids[number], docs[number].values()).unwrap());
            writer.commit(Merge::None).unwrap();
        }
        // Of ids 3 and 4 the later documents, and the first of id 5.
        writer.delete_documents(&Index::open_on(shared.clone()).unwrap(), &[53, 54, 5]).unwrap();
        writer.commit(Merge::None).unwrap();
        drop(writer);
        assert_eq!(make_updatable(shared.clone(), Merge::None).unwrap(), 7);
        let index = Index::open_on(shared).unwrap();
        assert_eq!(index.documents(), 50);
        for (id, expected) in [("3", 3), ("4", 4), ("5", 55), ("6", 56), ("20", 20)] {
            let found = index.searcher().find_id(id).unwrap().unwrap();
            let text = index.searcher().stored(found).unwrap().unwrap();
            assert_eq!(text.value("text"), docs[expected].text, "{id}");
        }
    }
}

fn make_updatable(disk: Arc<dyn Disk>, merge: Merge) -> tierdex::Result<u64> {
    let options = WriterOptions { memory: 16 << 20, ..WriterOptions::default() };
    let mut writer = IndexWriter::open_extended(disk, options, |newest| Ok(newest.clone()))?;
    let deleted = writer.make_updatable()?;
    assert_eq!(writer.make_updatable()?, 0);
    writer.commit(merge)?;
    Ok(deleted)
}

#[test]
fn an_index_that_is_made_updatable_keeps_the_last_document_of_an_id() {
    for merge in [Merge::None, Merge::Keep, Merge::One] {
        let (disk, docs) = repeated();
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let ids: std::collections::BTreeSet<&str> = docs.iter().map(|doc| doc.id.as_str()).collect();
        assert_eq!(make_updatable(shared.clone(), merge).unwrap() as usize, docs.len() - ids.len());
        assert_sound(&disk);
        let index = Index::open_on(shared.clone()).unwrap();
        assert!(index.is_updatable());
        assert_eq!(index.documents() as usize, ids.len());
        for id in ids {
            let expected = docs.iter().rfind(|doc| doc.id == id).unwrap();
            let found = index.searcher().find_id(id).unwrap().unwrap();
            assert_eq!(index.searcher().stored(found).unwrap().unwrap().value("text"), expected.text);
        }
        // Later documents replace those.
        let mut writer = updatable_writer(&shared, &schema(), OpenMode::Append).unwrap();
        add_documents(&mut writer, &docs);
        writer.commit(merge).unwrap();
        assert_sound(&disk);
        assert_eq!(Index::open_on(shared).unwrap().documents(), index.documents());
    }
}

#[test]
fn older_and_empty_indexes_are_made_updatable() {
    for version in [6, 7] {
        let disk = MemDisk::new();
        copy(&golden(version), &disk).unwrap();
        make_updatable(Arc::new(disk.clone()), Merge::None).unwrap();
        let manifest = Manifest::read_newest(&disk).unwrap().unwrap();
        assert_eq!((manifest.version, manifest.key_seed.is_some()), (FORMAT_VERSION, true));
        assert_sound(&disk);
    }
    let disk = MemDisk::new();
    open_writer(&(Arc::new(disk.clone()) as _), &schema(), OpenMode::New).commit(Merge::None).unwrap();
    make_updatable(Arc::new(disk.clone()), Merge::None).unwrap();
    assert!(Index::open_on(Arc::new(disk)).unwrap().is_updatable());
}

#[test]
fn an_index_is_made_updatable_or_stays_as_it_is() {
    let (before, _) = repeated();
    let counted = FaultDisk::new(before.snapshot(), FaultPlan::none());
    make_updatable(Arc::new(counted.clone()), Merge::None).unwrap();
    let operations = counted.operations(OpClass::Any);
    assert!(operations > 100, "{operations}");
    for at in 1..=operations {
        let effect = if at % 2 == 0 { Effect::Crash } else { Effect::Error(errno::EIO) };
        let plan = FaultPlan { class: OpClass::Any, at, effect, repeat: Repeat::Once };
        let disk = FaultDisk::new(before.snapshot(), plan);
        let is_acknowledged = make_updatable(Arc::new(disk.clone()), Merge::None).is_ok();
        let found = match effect {
            Effect::Crash => disk.inner().crash(tierdex::io::CrashImage::Random(at)),
            Effect::Error(_) => disk.inner().clone(),
        };
        assert_sound(&found);
        let is_updatable = |disk: &MemDisk| Index::open_on(Arc::new(disk.clone())).unwrap().is_updatable();
        assert!(!is_acknowledged || is_updatable(&found), "operation {at}");
        make_updatable(Arc::new(found.clone()), Merge::None).unwrap();
        assert_sound(&found);
        assert!(is_updatable(&found));
    }
}
