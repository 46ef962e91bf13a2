//! Injected faults occur at the planned operation, are counted, and also affect open files.

use tierdex_io::{
    CrashImage, Disk, Effect, ErrorKind, FaultDisk, FaultPlan, MemDisk, Op, OpClass, Repeat, Result, errno,
};

/// Calls every operation: 2 list, 1 create, 2 append, 2 sync, 1 sync_dir, 1 rename, 1 open, 1 read_at, 1 lock
/// and its check, 1 remove; 14 in total. Continues after errors and returns them.
fn call_all_operations(disk: &impl Disk) -> Vec<tierdex_io::Error> {
    let mut errors = Vec::new();
    collect_error(&mut errors, disk.list());
    if let Some(mut file) = collect_error(&mut errors, disk.create("a")) {
        for _ in 0..2 {
            collect_error(&mut errors, file.append(&[1; 1000]));
            collect_error(&mut errors, file.sync());
        }
    }
    collect_error(&mut errors, disk.sync_dir());
    collect_error(&mut errors, disk.rename("a", "b"));
    if let Some(file) = collect_error(&mut errors, disk.open("b")) {
        collect_error(&mut errors, file.read_at(0, &mut [0; 10]));
    }
    if let Some(lock) = collect_error(&mut errors, disk.lock("lock")) {
        collect_error(&mut errors, lock.check());
    }
    collect_error(&mut errors, disk.remove("b"));
    collect_error(&mut errors, disk.list());
    errors
}

fn collect_error<T>(errors: &mut Vec<tierdex_io::Error>, result: Result<T>) -> Option<T> {
    result.map_err(|error| errors.push(error)).ok()
}

fn fault_plan(class: OpClass, at: u64, effect: Effect, repeat: Repeat) -> FaultPlan {
    FaultPlan { class, at, effect, repeat }
}

/// The classes, with their number of operations in [`call_all_operations`].
const OPERATION_COUNTS: [(OpClass, u64); 5] =
    [(OpClass::Any, 14), (OpClass::Read, 4), (OpClass::Write, 3), (OpClass::Sync, 3), (OpClass::Meta, 4)];

#[test]
fn operations_are_counted_and_logged() {
    let disk = FaultDisk::new(MemDisk::new(), FaultPlan::none());
    assert!(call_all_operations(&disk.clone()).is_empty());
    for (class, count) in OPERATION_COUNTS {
        assert_eq!(disk.operations(class), count, "{class:?}");
    }
    assert_eq!(disk.injected(), 0);
    let log: Vec<String> = disk.log().iter().map(|entry| format!("{:?} {}", entry.op, entry.file)).collect();
    let expected = "\
        List , Create a, Append a, Sync a, Append a, Sync a, SyncDir , Rename a -> b, Open b, \
        ReadAt b, Lock lock, CheckLock lock, Remove b, List ";
    assert_eq!(log.join(", "), expected);
}

#[test]
fn each_operation_fails_once() {
    let mut injected = 0;
    for (class, count) in OPERATION_COUNTS {
        for at in 1..=count {
            let faults = fault_plan(class, at, Effect::Error(errno::EROFS), Repeat::Once);
            let disk = FaultDisk::new(MemDisk::new(), faults);
            let errors = call_all_operations(&disk);
            assert_eq!(disk.injected(), 1, "{class:?} {at}");
            let denied = errors.iter().filter(|error| error.kind() == ErrorKind::Denied);
            assert_eq!(denied.count(), 1, "{class:?} {at}: {errors:?}");
            injected += disk.injected();
        }
    }
    assert_eq!(injected, OPERATION_COUNTS.iter().map(|(_, count)| count).sum::<u64>());
}

#[test]
fn a_permanent_fault_fails_all_later_operations() {
    for (class, count) in OPERATION_COUNTS {
        for at in 1..=count {
            let faults = fault_plan(class, at, Effect::Error(errno::EIO), Repeat::Forever);
            let disk = FaultDisk::new(MemDisk::new(), faults);
            assert!(!call_all_operations(&disk).is_empty());
            assert_eq!(disk.injected(), disk.operations(class) - at + 1, "{class:?} {at}");
        }
    }
}

#[test]
fn all_operations_fail_after_a_crash() {
    for at in 1..=13 {
        let disk = FaultDisk::new(MemDisk::new(), fault_plan(OpClass::Any, at, Effect::Crash, Repeat::Once));
        let mut file = disk.create("before").ok();
        let errors = call_all_operations(&disk);
        assert!(disk.crashed() && !errors.is_empty());
        assert_eq!((disk.injected(), disk.operations(OpClass::Any)), (1, at));
        assert!(errors.iter().all(|error| error.kind() == ErrorKind::Other));
        if let Some(file) = &mut file {
            assert!(file.append(b"x").is_err() && file.sync().is_err());
        }
        assert_eq!(disk.inner().bytes("before").is_some(), at > 1);
        assert!(disk.inner().list().is_ok(), "the underlying disk is still readable");
    }
}

#[test]
fn a_crashing_append_leaves_a_prefix_chosen_by_the_seed() {
    let bytes: Vec<u8> = (0..=255).collect();
    let mut lengths = Vec::new();
    for seed in 0..100 {
        let crash = fault_plan(OpClass::Write, 2, Effect::Crash, Repeat::Once);
        let disk = FaultDisk::new(MemDisk::new(), crash).with_seed(seed);
        let mut file = disk.create("a").unwrap();
        file.append(&bytes).unwrap_err();
        file.append(&bytes).unwrap_err();
        let left = disk.inner().bytes("a").unwrap();
        assert_eq!(left, bytes[..left.len()]);
        lengths.push(left.len());
    }
    lengths.sort_unstable();
    lengths.dedup();
    assert!(lengths.len() > 30, "{lengths:?}");
}

#[test]
fn a_sync_after_a_failed_sync_succeeds_without_effect() {
    let fault = fault_plan(OpClass::Sync, 1, Effect::Error(errno::EIO), Repeat::Once);
    let disk = FaultDisk::new(MemDisk::new(), fault);
    let mut file = disk.create("a").unwrap();
    file.append(b"lost").unwrap();
    assert_eq!(file.sync().unwrap_err().to_string(), "cannot sync a: input/output error (os error 5)");
    file.sync().unwrap();
    disk.sync_dir().unwrap();
    assert_eq!(disk.injected(), 1);
    assert_eq!(disk.inner().crash(CrashImage::Lost).bytes("a").unwrap(), b"");
}

#[test]
fn a_new_plan_resets_the_counters() {
    let disk = FaultDisk::new(MemDisk::new(), FaultPlan::none());
    let mut file = disk.create("a").unwrap();
    disk.arm(fault_plan(OpClass::Write, 2, Effect::Error(errno::ENOSPC), Repeat::Once));
    file.append(b"1").unwrap();
    assert_eq!(file.append(b"2").unwrap_err().kind(), ErrorKind::NoSpace);
    assert_eq!((disk.operations(OpClass::Any), disk.injected()), (2, 1));
    assert!(disk.log().iter().all(|entry| entry.op == Op::Append));
}
