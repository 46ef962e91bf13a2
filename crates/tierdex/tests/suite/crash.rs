//! Power loss at each disk operation of a script of commits, and again during recovery.
//!
//! Afterwards the index must be the last acknowledged commit or the next one, complete and with correct
//! results, and a new writer must remove leftovers and commit. The same test on a disk that ignores syncs
//! must find violations.

use crate::support::delete_script::DeleteScript;
use crate::support::{crash_images, on_two_threads, script::FaultCounts, script::WriterScript, test_size};
use std::{path::Path, sync::Arc};
use tierdex::DocumentRef;
use tierdex::io::{
    CrashImage, Disk, Effect, FaultDisk, FaultPlan, MemDisk, OpClass, Repeat, Result, WriteFile,
};
use tierdex::{IndexWriter, Merge};

/// An in-memory disk that can ignore one kind of sync while it reports success.
#[derive(Clone)]
struct SyncIgnoringDisk {
    disk: MemDisk,
    forgets: IgnoredSync,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IgnoredSync {
    Nothing,
    Directory,
    Files,
}

struct SyncIgnoringFile(Box<dyn WriteFile>);

impl WriteFile for SyncIgnoringFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.append(bytes)
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Disk for SyncIgnoringDisk {
    tierdex::io::forward_disk!(self, self.disk; list open rename remove lock describe);

    fn create(&self, name: &str) -> Result<Box<dyn WriteFile>> {
        let file = self.disk.create(name)?;
        Ok(if self.forgets == IgnoredSync::Files { Box::new(SyncIgnoringFile(file)) } else { file })
    }

    fn sync_dir(&self) -> Result<()> {
        if self.forgets == IgnoredSync::Directory { Ok(()) } else { self.disk.sync_dir() }
    }
}

fn crash_plan(at: u64) -> FaultPlan {
    FaultPlan { class: OpClass::Any, at, effect: Effect::Crash, repeat: Repeat::Once }
}

/// Runs the script until it crashes at operation `at`, and checks several states in which the disk may then
/// be.
fn crash_at_operation(script: &WriterScript, at: u64, forgets: IgnoredSync, seeds: u64) -> FaultCounts {
    let mut counts = FaultCounts::default();
    let disk = FaultDisk::new(SyncIgnoringDisk { disk: script.disk(), forgets }, crash_plan(at));
    let outcome = script.run(&(Arc::new(disk.clone()) as _));
    assert!(disk.crashed(), "operation {at} never came");
    (counts.injected, counts.crashes) = (disk.injected(), disk.injected());
    for (number, image) in crash_images(at * 100..at * 100 + seeds).enumerate() {
        let found = disk.inner().disk.crash(image);
        counts.states += 1;
        let verified = script.verify(&found, outcome.acknowledged).and_then(|generation| {
            counts.newer += u64::from(generation > outcome.acknowledged);
            if (at + number as u64).is_multiple_of(10) {
                counts.add(crash_recovery(script, &found, generation, at));
            }
            let recovered = script.recover(&(Arc::new(found.clone()) as _), generation);
            recovered.map_err(|error| format!("recovery: {error}"))?;
            script.verify_recovered(&found, generation)
        });
        if let Err(what) = verified {
            counts.violations.push(format!("operation {at}, {image:?}: {what}"));
        }
    }
    counts
}

/// Crashes a recovery from `image` at some of its operations, which depend on `seed`.
fn crash_recovery(script: &WriterScript, image: &MemDisk, generation: u64, seed: u64) -> FaultCounts {
    const POINT_STEP: u64 = 61;
    let mut counts = FaultCounts::default();
    for at in (1 + seed % POINT_STEP..).step_by(POINT_STEP as usize) {
        let disk = FaultDisk::new(image.snapshot(), crash_plan(at));
        let recovered = script.recover(&(Arc::new(disk.clone()) as _), generation);
        if !disk.crashed() {
            break;
        }
        (counts.injected, counts.crashes) = (counts.injected + 1, counts.crashes + 1);
        let images = [CrashImage::Lost, CrashImage::Kept, CrashImage::Random(seed * 1000 + at)];
        for image in images {
            counts.states += 1;
            let found = disk.inner().crash(image);
            let verified = match &recovered {
                // The crash was after the commit of the recovery.
                Ok(_) => script.verify_recovered(&found, generation),
                Err(_) => script.verify_half_recovered(&found, generation),
            };
            if let Err(what) = verified {
                counts.violations.push(format!("recovery, operation {at}, {image:?}: {what}"));
            }
        }
    }
    counts
}

/// Crashes at one operation in `step`, and at each of the last ones: those of the last commit.
fn crash_at_each_operation(
    script: &WriterScript,
    forgets: IgnoredSync,
    step: u64,
    seeds: u64,
) -> FaultCounts {
    let operations = script.count_operations(OpClass::Any);
    let is_tried = |at: &u64| (at - 1).is_multiple_of(step) || at + 8 > operations;
    let places: Vec<u64> = (1..=operations).filter(is_tried).collect();
    let crash = |number: usize| crash_at_operation(script, places[number], forgets, seeds);
    FaultCounts::sum(on_two_threads(places.len(), crash))
}

#[test]
fn a_crash_at_any_operation_leaves_a_complete_generation() {
    let script = WriterScript::new(test_size(16, 40));
    let operations = script.count_operations(OpClass::Any);
    let counts = crash_at_each_operation(&script, IgnoredSync::Nothing, 1, 2);
    counts.assert_no_violation();
    assert!(operations > 500 && counts.crashes > operations && counts.states > test_size(2_000, 10_000));
    assert!(counts.newer > 0, "no crash came between rename and acknowledgement");
}

/// Fields are added between commits: some segments lack them, until all are merged.
#[test]
fn a_crash_while_fields_are_added_leaves_a_complete_generation() {
    let script = WriterScript::with_added_fields(8);
    let step = test_size(3, 1);
    let counts = crash_at_each_operation(&script, IgnoredSync::Nothing, step, 1);
    counts.assert_no_violation();
    assert!(counts.crashes > script.count_operations(OpClass::Any) / step && counts.newer > 0);
}

/// Documents are deleted in one segment and in several, all of one among them, and segments are merged.
#[test]
fn a_crash_while_documents_are_deleted_leaves_a_complete_generation() {
    let script = DeleteScript::new();
    let (operations, step) = (script.count_operations(OpClass::Any) as usize, test_size(3, 1));
    let crash = |number: usize| {
        let at = (number * step) as u64 + 1;
        let mut counts = FaultCounts { injected: 1, crashes: 1, ..FaultCounts::default() };
        let disk = FaultDisk::new(MemDisk::new(), crash_plan(at));
        let outcome = script.run(&disk);
        assert!(disk.crashed(), "operation {at} never came");
        for image in crash_images(at..at + 1) {
            let found = disk.inner().crash(image);
            counts.states += 1;
            let verified = script.verify(&found, outcome.acknowledged).and_then(|generation| {
                counts.newer += u64::from(generation > outcome.acknowledged);
                script.check_recovery(&found, generation)
            });
            if let Err(what) = verified {
                counts.violations.push(format!("operation {at}, {image:?}: {what}"));
            }
        }
        counts
    };
    let counts = FaultCounts::sum(on_two_threads(operations.div_ceil(step), crash));
    counts.assert_no_violation();
    assert!(counts.crashes as usize > 500 / step && counts.newer > 0, "{counts:?}");
}

/// An index of an older version is written again in the current version.
#[test]
fn a_crash_during_an_upgrade_leaves_the_old_index_or_the_new_one() {
    for (version, merge) in [(6, Merge::None), (6, Merge::One), (7, Merge::None), (7, Merge::One)] {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/format-{version}"));
        let script = WriterScript::upgrade(&dir, merge);
        let counts = crash_at_each_operation(&script, IgnoredSync::Nothing, test_size(4, 1), 1);
        counts.assert_no_violation();
        assert!(counts.crashes > test_size(30, 100) && counts.newer > 0, "{counts:?}");
    }
}

/// Tests the test itself: a commit that does not make names durable.
#[test]
fn a_disk_that_ignores_directory_syncs_is_detected() {
    let counts = crash_at_each_operation(&WriterScript::new(12), IgnoredSync::Directory, 9, 4);
    assert!(counts.violations.len() > 20, "{} violations", counts.violations.len());
}

/// Tests the test itself: commits on a disk that ignores syncs of files must be found not durable.
#[test]
fn a_disk_that_ignores_file_syncs_is_detected() {
    let counts = crash_at_each_operation(&WriterScript::new(12), IgnoredSync::Files, 9, 4);
    assert!(counts.violations.len() > 20, "{} violations", counts.violations.len());
}

/// Uncommitted documents are lost with the process, and their files are removed.
#[test]
fn uncommitted_documents_leave_nothing_behind() {
    let script = WriterScript::new(12);
    let disk = MemDisk::new();
    let outcome = script.run(&(Arc::new(disk.clone()) as _));
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let mut writer: IndexWriter =
        crate::support::open_writer(&shared, &script.schema, tierdex::OpenMode::Append);
    let mut batch = crate::support::new_batch(&writer);
    batch.add(DocumentRef { id: "never", values: &[(1, "w0 committed")], ..DocumentRef::default() }).unwrap();
    writer.push(batch.seal().unwrap()).unwrap();
    for image in crash_images(0..20) {
        assert_eq!(script.verify(&disk.crash(image), outcome.acknowledged), Ok(script.generations()));
    }
    drop(writer);
    let index = tierdex::Index::open_on(shared).unwrap();
    crate::support::script::check_no_orphans(&disk, Some(&index)).unwrap();
}
