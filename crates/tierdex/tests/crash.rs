//! Power loss at every operation of the life of an index, and again during recovery.
//!
//! Afterwards the index must be the last acknowledged generation or the next one, complete and with correct
//! results; a new writer must clean up and commit. The same harness over a disk that ignores syncs must
//! fail.

mod support;

use std::sync::Arc;
use support::{crash_images, on_two_threads, script::WriterScript};
use tierdex::IndexWriter;
use tierdex::io::{
    CrashImage, Disk, Effect, FaultDisk, FaultPlan, MemDisk, OpClass, Repeat, Result, WriteFile,
};

/// An in-memory disk that can ignore one kind of sync while it reports success.
#[derive(Clone)]
struct Careless {
    disk: MemDisk,
    forgets: Forgets,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forgets {
    Nothing,
    Directory,
    Files,
}

struct CarelessFile(Box<dyn WriteFile>);

impl WriteFile for CarelessFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.append(bytes)
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Disk for Careless {
    tierdex::io::forward_disk!(self, self.disk; list open rename remove lock describe);

    fn create(&self, name: &str) -> Result<Box<dyn WriteFile>> {
        let file = self.disk.create(name)?;
        Ok(if self.forgets == Forgets::Files { Box::new(CarelessFile(file)) } else { file })
    }

    fn sync_dir(&self) -> Result<()> {
        if self.forgets == Forgets::Directory { Ok(()) } else { self.disk.sync_dir() }
    }
}

fn crash_at(at: u64) -> FaultPlan {
    FaultPlan { class: OpClass::Any, at, effect: Effect::Crash, repeat: Repeat::Once }
}

/// Statistics of a run of the harness.
#[derive(Default)]
struct Counts {
    crashes: u64,
    states: u64,
    /// Images with the generation after the acknowledged one.
    newer: u64,
    violations: Vec<String>,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.crashes += other.crashes;
        self.states += other.states;
        self.newer += other.newer;
        self.violations.extend(other.violations);
    }
}

/// Number of operations of the whole script without faults.
fn operations(script: &WriterScript) -> u64 {
    let disk = FaultDisk::new(MemDisk::new(), FaultPlan::none());
    let outcome = script.run(&(Arc::new(disk.clone()) as _));
    assert!(outcome.error.is_none() && outcome.acknowledged == script.generations());
    disk.operations(OpClass::Any)
}

/// Runs the script, crashes it at operation `at`, and checks each crash image.
fn crash(script: &WriterScript, at: u64, forgets: Forgets, seeds: u64) -> Counts {
    let mut counts = Counts::default();
    let disk = FaultDisk::new(Careless { disk: MemDisk::new(), forgets }, crash_at(at));
    let outcome = script.run(&(Arc::new(disk.clone()) as _));
    assert!(disk.crashed(), "operation {at} never came");
    counts.crashes += disk.injected();
    for (number, image) in crash_images(at * 100..at * 100 + seeds).enumerate() {
        let found = disk.inner().disk.crash(image);
        counts.states += 1;
        let verified = script.verify(&found, outcome.acknowledged).and_then(|generation| {
            counts.newer += u64::from(generation > outcome.acknowledged);
            if (at + number as u64).is_multiple_of(10) {
                let again = crash_recovery(script, &found, generation, at);
                counts.crashes += again.crashes;
                counts.states += again.states;
                counts.violations.extend(again.violations);
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

/// Crashes a recovery from `image` at some of its operations, a different choice for each `seed`.
fn crash_recovery(script: &WriterScript, image: &MemDisk, generation: u64, seed: u64) -> Counts {
    const STEP: u64 = 61;
    let mut counts = Counts::default();
    for at in (1 + seed % STEP..).step_by(STEP as usize) {
        let disk = FaultDisk::new(image.snapshot(), crash_at(at));
        let recovered = script.recover(&(Arc::new(disk.clone()) as _), generation);
        if !disk.crashed() {
            break;
        }
        counts.crashes += 1;
        let images = [CrashImage::Lost, CrashImage::Kept, CrashImage::Random(seed * 1000 + at)];
        for image in images {
            counts.states += 1;
            let found = disk.inner().crash(image);
            let verified = match &recovered {
                // Only operations after the acknowledgement were lost.
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

fn crash_everywhere(script: &WriterScript, forgets: Forgets, step: usize, seeds: u64) -> Counts {
    let places: Vec<u64> = (1..=operations(script)).step_by(step).collect();
    let mut counts = Counts::default();
    for of_one in on_two_threads(places.len(), |number| crash(script, places[number], forgets, seeds)) {
        counts.add(of_one);
    }
    println!("operations {}", operations(script));
    println!("injected {0}, crashes {0}, states {1}, newer {2}", counts.crashes, counts.states, counts.newer);
    counts
}

#[test]
fn a_crash_at_any_operation_leaves_a_complete_generation() {
    let script = WriterScript::new(40);
    let operations = operations(&script);
    let counts = crash_everywhere(&script, Forgets::Nothing, 1, 4);
    assert!(
        counts.violations.is_empty(),
        "{} violations: {:#?}",
        counts.violations.len(),
        &counts.violations[..1]
    );
    assert!(operations > 500 && counts.crashes > operations && counts.states > 10_000);
    assert!(counts.newer > 0, "no crash came between rename and acknowledgement");
}

/// Canary: a commit that does not make names durable.
#[test]
fn a_disk_that_ignores_directory_syncs_is_detected() {
    let counts = crash_everywhere(&WriterScript::new(12), Forgets::Directory, 9, 4);
    assert!(counts.violations.len() > 20, "{} violations", counts.violations.len());
}

/// Canary: a commit that does not make bytes durable.
#[test]
fn a_disk_that_ignores_file_syncs_is_detected() {
    let counts = crash_everywhere(&WriterScript::new(12), Forgets::Files, 9, 4);
    assert!(counts.violations.len() > 20, "{} violations", counts.violations.len());
}

/// Uncommitted documents are lost with the process, and their files are removed.
#[test]
fn uncommitted_documents_leave_nothing_behind() {
    let script = WriterScript::new(12);
    let disk = MemDisk::new();
    let outcome = script.run(&(Arc::new(disk.clone()) as _));
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let mut writer: IndexWriter = support::open_writer(&shared, &script.schema, tierdex::OpenMode::Append);
    let mut batch = support::new_batch(&writer);
    batch.add("never", "", "w0 committed").unwrap();
    writer.push(batch.seal().unwrap()).unwrap();
    for image in crash_images(0..20) {
        assert_eq!(script.verify(&disk.crash(image), outcome.acknowledged), Ok(script.generations()));
    }
    drop(writer);
    let index = tierdex::Index::open_on(shared).unwrap();
    support::script::check_no_orphans(&disk, Some(&index)).unwrap();
}
