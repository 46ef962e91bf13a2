//! Reading ahead into the page cache: what is read, how far ahead, and what happens when it fails.

use tierdex_cache::{Job, PagePrefetcher};
use tierdex_io::{Effect, FaultDisk, FaultPlan, MemDisk, OpClass, Repeat, errno};

use super::world::{GatedDisk, watched, write};

#[test]
fn the_worker_keeps_its_distance() {
    watched(|| {
        let disk = FaultDisk::new(MemDisk::new(), FaultPlan::none());
        let written = write(&disk, "a", 40);
        let jobs: Vec<Job> = (0..12).map(|list| written.job(list, 1 + list * 3, 3)).collect();
        let prefetcher = PagePrefetcher::start(4, 100).unwrap();
        disk.arm(FaultPlan::none());
        let mut queries = Vec::new();
        for job in &jobs {
            queries.push(prefetcher.push(vec![job.clone()]));
        }
        for oldest in 0..12_u64 {
            // Those within the lookahead are read while the oldest has not ended; those behind are not.
            let last = (oldest + 4).min(11);
            queries[(last - oldest) as usize].wait().unwrap();
            assert_eq!(disk.operations(OpClass::Read), (last + 1) * 3);
            drop(queries.remove(0));
        }
        assert_eq!(prefetcher.bytes_read(), 12 * 3 * 4096);
        let samples = prefetcher.lookahead_samples();
        assert_eq!(samples.len(), 12);
        assert!(samples.iter().all(|sample| sample.queries <= 4), "{samples:?}");
        assert_eq!((samples[0].queries, samples[11].queries), (4, 0));
    });
}

#[test]
fn queries_that_have_ended_behind_a_slow_one_are_not_ahead() {
    watched(|| {
        let disk = MemDisk::new();
        let written = write(&disk, "a", 40);
        let prefetcher = PagePrefetcher::start(2, 0).unwrap();
        let push = |list: u64| prefetcher.push(vec![written.job(list, 1 + list * 3, 3)]);
        let slow = push(0);
        for list in 1..12 {
            push(list).wait().unwrap();
        }
        drop(slow);
    });
}

#[test]
fn a_failed_read_fails_its_query_alone() {
    watched(|| {
        let disk = FaultDisk::new(MemDisk::new(), FaultPlan::none());
        let written = write(&disk, "a", 40);
        let prefetcher = PagePrefetcher::start(16, 0).unwrap();
        let effect = Effect::Error(errno::EIO);
        disk.arm(FaultPlan { class: OpClass::Read, at: 4, effect, repeat: Repeat::Once });
        let queries: Vec<_> =
            (0..4).map(|list| prefetcher.push(vec![written.job(list, 1 + list * 3, 3)])).collect();
        let failed: Vec<bool> = queries.iter().map(|query| query.wait().is_err()).collect();
        assert_eq!(failed, [false, true, false, false]);
        assert_eq!(disk.injected(), 1);
    });
}

#[test]
fn queries_that_are_given_up_are_passed_over_and_an_end_is_told() {
    watched(|| {
        let disk = GatedDisk::new();
        let written = write(&disk, "a", 40);
        let prefetcher = PagePrefetcher::start(1, 0).unwrap();
        let job = |list: u64| vec![written.job(list, 1 + list * 3, 3)];
        disk.shut();
        let queries: Vec<_> = (0..5).map(|list| prefetcher.push(job(list))).collect();
        disk.wait_for_a_read();
        let mut queries = queries.into_iter();
        let last = queries.by_ref().nth(3).unwrap();
        drop(queries);
        disk.open_gate();
        last.wait().unwrap();
        drop(last);
        disk.shut();
        let never = prefetcher.push(job(5));
        disk.wait_for_a_read();
        std::thread::scope(|scope| {
            let told = scope.spawn(|| assert!(never.wait().is_err()));
            scope.spawn(|| drop(prefetcher));
            told.join().unwrap();
            disk.open_gate();
        });
        drop(never);
    });
}

#[test]
fn an_end_waits_for_one_page() {
    watched(|| {
        let gated = GatedDisk::new();
        let disk = FaultDisk::new(gated.clone(), FaultPlan::none());
        let written = write(&disk, "a", 40);
        let prefetcher = PagePrefetcher::start(1, 0).unwrap();
        disk.arm(FaultPlan::none());
        gated.shut();
        let query = prefetcher.push(vec![written.job(0, 1, 30), written.job(1, 5, 30)]);
        gated.wait_for_a_read();
        std::thread::scope(|scope| {
            scope.spawn(|| drop(prefetcher));
            assert!(query.wait().is_err(), "it is told before the page has come");
            gated.open_gate();
        });
        assert_eq!(disk.operations(OpClass::Read), 1);
    });
}

#[test]
fn a_worker_that_panics_says_why() {
    watched(|| {
        let disk = GatedDisk::new();
        let written = write(&disk, "a", 40);
        let prefetcher = PagePrefetcher::start(1, 0).unwrap();
        disk.break_down();
        let query = prefetcher.push(vec![written.job(0, 1, 3)]);
        let why =
            "cannot read postings: the prefetcher has stopped: a defect, it panicked: as the test wants it";
        assert_eq!(query.wait().err().unwrap().to_string(), why);
    });
}
