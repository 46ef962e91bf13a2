//! Each disk operation of a script of commits fails, once or from then on.
//!
//! The call that needs the operation must fail with one clear error, the writer must reject all further
//! calls, the last commit must be readable, also after an immediate power loss, and when the fault has passed
//! a new writer must be able to continue.

use crate::support::delete_script::DeleteScript;
use crate::support::script::{FaultCounts, ScriptOutcome, WriterScript};
use crate::support::{AnswerOptions, answer_text, assert_sound, build_in_memory, crash_images};
use crate::support::{corpus::random_documents, on_two_threads, open_writer, schema, test_size};
use std::{path::Path, sync::Arc};
use tierdex::internal::index::{Searcher, check_on};
use tierdex::io::{
    Disk, Effect, ErrorKind, FaultDisk, FaultPlan, MemDisk, Op, OpClass, Operation, Repeat, errno,
};
use tierdex::{Error, Index, Merge, OpenMode, Query, SearchOptions};

/// The first operation that failed by this plan.
fn failed_operation(disk: &FaultDisk<MemDisk>, plan: FaultPlan) -> Operation {
    let log = disk.log();
    let mut of_class = log.into_iter().filter(|entry| plan.class.contains(entry.op));
    of_class.nth(plan.at as usize - 1).expect("it happened")
}

fn is_clear_error(error: &Error, number: i32) -> bool {
    let text = error.to_string();
    let kind = matches!(error, Error::Storage(error) if number != errno::ENOSPC || error.kind() == ErrorKind::NoSpace);
    kind && !text.is_empty() && !text.contains('\n') && text.contains("os error")
}

/// Whether an operation may fail without an error of the writer: the removal of files after a commit, which
/// is then durable, and the check of the lock before that.
fn may_be_ignored(op: Op) -> bool {
    matches!(op, Op::Remove | Op::List | Op::CheckLock)
}

fn run_with_fault(script: &WriterScript, plan: FaultPlan, number: i32) -> FaultCounts {
    let mut counts = FaultCounts::default();
    let disk = FaultDisk::new(script.disk(), plan);
    let outcome = script.run(&(Arc::new(disk.clone()) as _));
    counts.injected += disk.injected();
    let operation = failed_operation(&disk, plan);
    let verdict = check_error(&outcome, &operation, number)
        .and_then(|()| check_survival(script, &disk, &outcome, &mut counts));
    if let Err(what) = verdict {
        let Operation { op, file } = operation;
        let FaultPlan { class, at, repeat, .. } = plan;
        counts.violations.push(format!("{op:?} {file} ({class:?} {at}, {repeat:?}): {what}"));
    }
    counts
}

fn check_error(outcome: &ScriptOutcome, operation: &Operation, number: i32) -> Result<(), String> {
    match &outcome.error {
        Some(error) if is_clear_error(error, number) => Ok(()),
        Some(error) => Err(format!("unclear error: {error}")),
        None if may_be_ignored(operation.op) => Ok(()),
        None => Err("the fault was passed over".to_string()),
    }
}

/// After the fault has passed, opens the index by a reader, by a reader after a power loss, and by a new
/// writer.
fn check_survival(
    script: &WriterScript,
    disk: &FaultDisk<MemDisk>,
    outcome: &ScriptOutcome,
    counts: &mut FaultCounts,
) -> Result<(), String> {
    let found = disk.inner();
    let generation = script.verify(found, outcome.acknowledged)?;
    for image in crash_images(0..1) {
        counts.crashes += 1;
        let verified = script.verify(&found.crash(image), outcome.acknowledged);
        verified.map_err(|what| format!("then a crash, {image:?}: {what}"))?;
    }
    let recovered = script.recover(&(Arc::new(found.clone()) as _), generation);
    recovered.map_err(|error| format!("recovery: {error}"))?;
    counts.states += 1;
    script.verify_recovered(found, generation)
}

/// The variants of a fault that are tried at an operation: one, another at the next operation, or all in a
/// campaign.
fn variants_of<T: Copy>(operation: u64, variants: &[T]) -> Vec<T> {
    let one = operation as usize % variants.len();
    test_size(vec![variants[one]], variants.to_vec())
}

fn fail_each_operation(class: OpClass, errors: &[i32], floor: u64) {
    fail_each_operation_of(&WriterScript::new(12), class, errors, floor);
}

fn fail_each_operation_of(script: &WriterScript, class: OpClass, errors: &[i32], floor: u64) {
    let operations = script.count_operations(class);
    let variants: Vec<(i32, Repeat)> =
        errors.iter().flat_map(|&number| [(number, Repeat::Once), (number, Repeat::Forever)]).collect();
    let plan = |at, number, repeat| (FaultPlan { class, at, effect: Effect::Error(number), repeat }, number);
    let plans: Vec<(FaultPlan, i32)> = (1..=operations)
        .flat_map(|at| {
            variants_of(at, &variants).into_iter().map(move |(number, repeat)| plan(at, number, repeat))
        })
        .collect();
    let counts = FaultCounts::sum(on_two_threads(plans.len(), |number| {
        let (plan, error) = plans[number];
        run_with_fault(script, plan, error)
    }));
    counts.assert_no_violation();
    let all = operations * variants.len() as u64;
    assert!(counts.injected >= plans.len() as u64 && all >= floor, "{all} plans");
}

#[test]
fn every_write_fails() {
    fail_each_operation(OpClass::Write, &[errno::EIO, errno::ENOSPC], 400);
}

#[test]
fn every_sync_fails() {
    fail_each_operation(OpClass::Sync, &[errno::EIO, errno::ENOSPC], 300);
}

#[test]
fn every_change_of_the_directory_fails() {
    fail_each_operation(OpClass::Meta, &[errno::EIO, errno::ENOSPC], 300);
}

#[test]
fn every_read_of_a_writer_fails() {
    fail_each_operation(OpClass::Read, &[errno::EIO], 400);
}

#[test]
fn every_operation_fails_while_fields_are_added() {
    let script = WriterScript::with_added_fields(8);
    fail_each_operation_of(&script, OpClass::Any, &[errno::EIO], 800);
}

#[test]
fn every_operation_fails_while_documents_are_deleted() {
    let script = DeleteScript::new();
    let operations = script.count_operations(OpClass::Any);
    let variants = |at| variants_of(at, &[Repeat::Once, Repeat::Forever]).into_iter();
    let plans: Vec<(u64, Repeat)> =
        (1..=operations).flat_map(|at| variants(at).map(move |repeat| (at, repeat))).collect();
    let fail = |number: usize| {
        let (at, repeat) = plans[number];
        let plan = FaultPlan { class: OpClass::Any, at, effect: Effect::Error(errno::EIO), repeat };
        let disk = FaultDisk::new(MemDisk::new(), plan);
        let outcome = script.run(&disk);
        let operation = failed_operation(&disk, plan);
        let mut counts = FaultCounts { injected: disk.injected(), states: 1, ..FaultCounts::default() };
        let verdict = check_error(&outcome, &operation, errno::EIO)
            .and_then(|()| script.verify(disk.inner(), outcome.acknowledged))
            .and_then(|generation| script.check_recovery(disk.inner(), generation));
        if let Err(what) = verdict {
            counts.violations.push(format!("{operation:?}, {repeat:?}: {what}"));
        }
        counts
    };
    let counts = FaultCounts::sum(on_two_threads(plans.len(), fail));
    counts.assert_no_violation();
    assert!(counts.injected >= plans.len() as u64 && operations > 500, "{counts:?}");
}

#[test]
fn every_operation_of_an_upgrade_fails() {
    for (version, merge) in [(6, Merge::None), (6, Merge::One), (7, Merge::None), (7, Merge::One)] {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/format-{version}"));
        fail_each_operation_of(&WriterScript::upgrade(&dir, merge), OpClass::Any, &[errno::EIO], 300);
    }
}

/// The capacity of the disk is increased until the whole script fits.
#[test]
fn a_full_disk_fails_cleanly() {
    const STEP: usize = 509;
    let script = WriterScript::new(12);
    let mut counts = FaultCounts::default();
    for capacity in (0..).step_by(STEP) {
        let disk = MemDisk::with_capacity(capacity);
        let outcome = script.run(&(Arc::new(disk.clone()) as _));
        let Some(error) = outcome.error else { break };
        counts.injected += 1;
        assert!(matches!(&error, Error::Storage(error) if error.kind() == ErrorKind::NoSpace), "{error}");
        let generation = script.verify(&disk, outcome.acknowledged).unwrap();
        assert_eq!(generation, outcome.acknowledged, "{capacity} bytes");
        disk.set_capacity(None);
        script.recover(&(Arc::new(disk.clone()) as _), generation).unwrap();
        script.verify_recovered(&disk, generation).unwrap();
        counts.states += 1;
    }
    let counts = FaultCounts::sum(vec![counts]);
    assert!(counts.injected > 30, "{} capacities", counts.injected);
}

/// The last sync of a commit fails, so that the new manifest has its final name, but the commit is not
/// acknowledged. Then the process is killed at each operation with which the writer is dropped, and power is
/// lost.
#[test]
fn a_failed_last_sync_loses_no_commit() {
    let prepared = || {
        let faulty = FaultDisk::new(MemDisk::new(), FaultPlan::none());
        let shared: Arc<dyn Disk> = Arc::new(faulty.clone());
        let mut writer = open_writer(&shared, &schema(), OpenMode::New);
        writer.add("1", [("text", "all")]).unwrap();
        writer.commit(Merge::None).unwrap();
        writer.add("2", [("text", "all")]).unwrap();
        (faulty, writer)
    };
    let (counting, mut writer) = prepared();
    counting.arm(FaultPlan::none());
    writer.commit(Merge::None).unwrap();
    let syncs = counting.operations(OpClass::Sync);

    let (mut injected, mut states, mut lost) = (0, 0, Vec::new());
    for kill_at in 0..30 {
        let (faulty, mut writer) = prepared();
        faulty.arm(FaultPlan { class: OpClass::Sync, ..read_fault(syncs, Repeat::Once) });
        writer.commit(Merge::None).unwrap_err();
        injected += faulty.injected();
        let (class, effect) = (OpClass::Any, Effect::Crash);
        faulty.arm(FaultPlan { class, at: kill_at, effect, repeat: Repeat::Once });
        drop(writer);
        for image in crash_images(0..20) {
            states += 1;
            let found = Index::open_on(Arc::new(faulty.inner().crash(image)))
                .and_then(|index| answer_text(&index, "all", AnswerOptions::default()));
            match found {
                Ok(found) => assert!([1, 2].contains(&found.total)),
                Err(error) => lost.push(format!("killed at operation {kill_at}, {image:?}: {error}")),
            }
        }
    }
    println!("injected {injected}, crashes {injected}, states {states}");
    assert!(injected == 30);
    assert!(lost.is_empty(), "{} of {states}: {:#?}", lost.len(), &lost[..lost.len().min(3)]);
}

const QUERIES: [&str; 8] =
    ["all", "w0", "w0 w7 w14", "w0 AND prefix2", "\"w0 w0\"", "title:w0 -w4", "NOT all", "only5 absent"];

fn write_readable_index() -> MemDisk {
    MemDisk::clone(&build_in_memory(&schema(), &random_documents(31, 700), &[350]))
}

fn read_fault(at: u64, repeat: Repeat) -> FaultPlan {
    FaultPlan { class: OpClass::Read, at, effect: Effect::Error(errno::EIO), repeat }
}

/// Whether a read error names the file of the operation.
fn names_its_file(error: &Error, operation: &Operation) -> bool {
    let named = matches!(error, Error::Storage(error) if error.file() == operation.file);
    named && error.to_string().contains("os error 5")
}

#[test]
fn every_read_of_opening_fails() {
    let disk = write_readable_index();
    let mut injected = 0;
    for repeat in [Repeat::Once, Repeat::Forever] {
        for at in 1.. {
            let plan = read_fault(at, repeat);
            let faulty = FaultDisk::new(disk.clone(), plan);
            let opened = Index::open_on(Arc::new(faulty.clone()));
            if faulty.injected() == 0 {
                break;
            }
            injected += faulty.injected();
            let error = opened.err().expect("the fault was passed over");
            assert!(names_its_file(&error, &failed_operation(&faulty, plan)), "{error}");
            faulty.arm(FaultPlan::none());
            let index = Index::open_on(Arc::new(faulty)).unwrap();
            assert!(answer_text(&index, "all", AnswerOptions::default()).unwrap().total > 0);
        }
    }
    println!("injected {injected}");
    assert!(injected > 100, "{injected}");
}

/// A failed read is an error of its query; when the fault has passed, the same reader returns correct
/// results.
#[test]
fn every_read_of_a_query_fails() {
    let disk = write_readable_index();
    let plain = Index::open_on(Arc::new(disk.clone())).unwrap();
    let mut injected = 0;
    for text in QUERIES {
        let expected = answer_text(&plain, text, AnswerOptions::default()).unwrap();
        for repeat in [Repeat::Once, Repeat::Forever] {
            let faulty = FaultDisk::new(disk.clone(), FaultPlan::none());
            for at in 1.. {
                faulty.arm(FaultPlan::none());
                let index = Index::open_on(Arc::new(faulty.clone())).unwrap();
                faulty.arm(read_fault(at, repeat));
                let answered = answer_text(&index, text, AnswerOptions::default());
                if faulty.injected() == 0 {
                    assert_eq!(answered.unwrap(), expected);
                    break;
                }
                injected += faulty.injected();
                let error = answered.expect_err("the fault was passed over");
                let operation = failed_operation(&faulty, read_fault(at, repeat));
                assert!(names_its_file(&error, &operation), "{text}: {error}");
                faulty.arm(FaultPlan::none());
                assert_eq!(answer_text(&index, text, AnswerOptions::default()).unwrap(), expected, "{text}");
            }
        }
    }
    println!("injected {injected}");
    assert!(injected > 150, "{injected}");
}

/// After a failed count, the next count of the same searcher is correct: no bits are left in its scratch
/// buffers.
#[test]
fn every_read_of_a_count_fails() {
    let faulty = FaultDisk::new(write_readable_index(), FaultPlan::none());
    let index = Index::open_on(Arc::new(faulty.clone())).unwrap();
    let counts = ["all w0 w5", "+all +w0", "w0 w5", "w5 über1 prefix2"];
    let counts = counts.map(|text| Query::parse(text, index.schema()).unwrap());
    let options = SearchOptions { k: 0, count: true, ..SearchOptions::default() };
    let count = |searcher: &Searcher, query| searcher.search(query, &options).map(|found| found.total);
    let expected = counts.each_ref().map(|query| count(&index.searcher(), query).unwrap());
    let mut injected = 0;
    for query in &counts {
        for at in 1.. {
            faulty.arm(FaultPlan::none());
            let index = Index::open_on(Arc::new(faulty.clone())).unwrap();
            let searcher = index.searcher();
            faulty.arm(read_fault(at, Repeat::Once));
            let counted = count(&searcher, query);
            if faulty.injected() == 0 {
                break;
            }
            injected += faulty.injected();
            counted.expect_err("the fault was passed over");
            for (query, expected) in counts.iter().zip(&expected) {
                assert_eq!(count(&searcher, query).unwrap(), *expected, "{query:?}, read {at}");
            }
        }
    }
    println!("injected {injected}");
    assert!(injected > 30, "{injected}");
}

/// If a read fails during a check, the check is an error or reports a problem.
#[test]
fn every_read_of_a_check_fails() {
    let disk = write_readable_index();
    let mut injected = 0;
    for at in 1.. {
        let faulty = FaultDisk::new(disk.clone(), read_fault(at, Repeat::Once));
        let report = check_on(&faulty);
        if faulty.injected() == 0 {
            break;
        }
        injected += faulty.injected();
        assert!(report.is_err() || !report.unwrap().problems.is_empty(), "read {at}");
    }
    println!("injected {injected}");
    assert!(injected > 100, "{injected}");
}

/// Checks and merges read the records and positions of many inline lists at a time.
#[test]
fn inline_lists_are_read_many_at_a_time() {
    const TERMS: u64 = 30_000;
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let mut writer = open_writer(&disk, &schema(), OpenMode::New);
    for part in 0..2 {
        for document in 0..TERMS / 20 {
            let words: Vec<String> = (0..10).map(|word| format!("x{part}y{document}z{word}")).collect();
            writer.add("", [("text", &words.join(" "))]).unwrap();
        }
        writer.commit(Merge::None).unwrap();
    }
    drop(writer);
    let counted = FaultDisk::new(disk, FaultPlan::none());
    assert_sound(&counted);
    let reads = counted.operations(OpClass::Read);
    assert!(reads < TERMS / 20, "{reads} reads of {TERMS} terms by a check");
    counted.arm(FaultPlan::none());
    let shared: Arc<dyn Disk> = Arc::new(counted.clone());
    let mut writer = open_writer(&shared, &schema(), OpenMode::Append);
    writer.commit(Merge::One).unwrap();
    let reads = counted.operations(OpClass::Read);
    assert!(reads < TERMS / 20, "{reads} reads of {TERMS} terms by a merge");
}

/// After an error of a writer, readers of its index still work, and the writer releases its lock when it is
/// dropped.
#[test]
fn a_poisoned_writer_still_frees_its_lock() {
    let faulty = FaultDisk::new(write_readable_index(), FaultPlan::none());
    let shared: Arc<dyn Disk> = Arc::new(faulty.clone());
    let reader = Index::open_on(shared.clone()).unwrap();
    let expected = answer_text(&reader, "all", AnswerOptions::default()).unwrap();
    let mut writer = open_writer(&shared, &schema(), OpenMode::Append);
    writer.add("new", [("text", "all")]).unwrap();
    faulty.arm(FaultPlan { class: OpClass::Sync, ..read_fault(1, Repeat::Once) });
    writer.commit(Merge::None).unwrap_err();
    assert_eq!(faulty.injected(), 1);
    let syncs = faulty.operations(OpClass::Sync);
    for _ in 0..3 {
        assert!(writer.commit(Merge::One).unwrap_err().to_string().contains("open it again"));
    }
    assert_eq!(faulty.operations(OpClass::Sync), syncs, "a failed sync was repeated");
    assert_eq!(answer_text(&reader, "all", AnswerOptions::default()).unwrap(), expected);
    drop(writer);
    let mut writer = open_writer(&shared, &schema(), OpenMode::Append);
    writer.add("new", [("text", "all")]).unwrap();
    writer.commit(Merge::None).unwrap();
    let found = answer_text(&Index::open_on(shared).unwrap(), "all", AnswerOptions::default()).unwrap();
    assert_eq!(found.total, expected.total + 1);
}
