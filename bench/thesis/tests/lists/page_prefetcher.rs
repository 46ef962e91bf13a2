//! Prefetching into the page cache: which pages are read, how far ahead, and the effect of errors.

use tierdex_io::{FaultDisk, FaultPlan, MemDisk, OpClass, Repeat};
use tierdex_thesis::{ListRequest, PagePrefetcher};

use super::fixture::{GatedDisk, fail_read, with_watchdog, write_test_file};

#[test]
fn the_worker_stays_within_the_lookahead() {
    with_watchdog(|| {
        let disk = FaultDisk::new(MemDisk::new(), FaultPlan::none());
        let written = write_test_file(&disk, "a", 40);
        let requests: Vec<ListRequest> = (0..12).map(|list| written.request(list, 1 + list * 3, 3)).collect();
        let prefetcher = PagePrefetcher::start(4, 100).unwrap();
        disk.arm(FaultPlan::none());
        let mut queries: Vec<_> = requests.iter().map(|one| prefetcher.push(vec![one.clone()])).collect();
        for oldest in 0..12_u64 {
            // Queries within the lookahead are read for while the oldest has not ended; later ones are not.
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
fn ended_queries_do_not_count_as_lookahead() {
    with_watchdog(|| {
        let disk = MemDisk::new();
        let written = write_test_file(&disk, "a", 40);
        let prefetcher = PagePrefetcher::start(2, 0).unwrap();
        let push = |list: u64| prefetcher.push(vec![written.request(list, 1 + list * 3, 3)]);
        let slow = push(0);
        for list in 1..12 {
            push(list).wait().unwrap();
        }
        drop(slow);
    });
}

#[test]
fn a_failed_read_fails_only_its_query() {
    with_watchdog(|| {
        let disk = FaultDisk::new(MemDisk::new(), FaultPlan::none());
        let written = write_test_file(&disk, "a", 40);
        let prefetcher = PagePrefetcher::start(16, 0).unwrap();
        fail_read(&disk, 4, Repeat::Once);
        let queries: Vec<_> =
            (0..4).map(|list| prefetcher.push(vec![written.request(list, 1 + list * 3, 3)])).collect();
        let failed: Vec<bool> = queries.iter().map(|query| query.wait().is_err()).collect();
        assert_eq!(failed, [false, true, false, false]);
        assert_eq!(disk.injected(), 1);
    });
}

#[test]
fn dropped_queries_are_skipped_and_shutdown_is_an_error() {
    with_watchdog(|| {
        let disk = GatedDisk::new();
        let written = write_test_file(&disk, "a", 40);
        let prefetcher = PagePrefetcher::start(1, 0).unwrap();
        let request = |list: u64| vec![written.request(list, 1 + list * 3, 3)];
        disk.close_gate();
        let queries: Vec<_> = (0..5).map(|list| prefetcher.push(request(list))).collect();
        disk.wait_for_read();
        let mut queries = queries.into_iter();
        let last = queries.by_ref().nth(3).unwrap();
        drop(queries);
        disk.open_gate();
        last.wait().unwrap();
        drop(last);
        disk.close_gate();
        let never = prefetcher.push(request(5));
        disk.wait_for_read();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| assert!(never.wait().is_err()));
            scope.spawn(|| drop(prefetcher));
            waiting.join().unwrap();
            disk.open_gate();
        });
        drop(never);
    });
}

#[test]
fn shutdown_waits_for_one_page() {
    with_watchdog(|| {
        let gated = GatedDisk::new();
        let disk = FaultDisk::new(gated.clone(), FaultPlan::none());
        let written = write_test_file(&disk, "a", 40);
        let prefetcher = PagePrefetcher::start(1, 0).unwrap();
        disk.arm(FaultPlan::none());
        gated.close_gate();
        let query = prefetcher.push(vec![written.request(0, 1, 30), written.request(1, 5, 30)]);
        gated.wait_for_read();
        std::thread::scope(|scope| {
            scope.spawn(|| drop(prefetcher));
            assert!(query.wait().is_err(), "the error comes before the page");
            gated.open_gate();
        });
        assert_eq!(disk.operations(OpClass::Read), 1);
    });
}

#[test]
fn the_message_of_a_panic_is_reported() {
    with_watchdog(|| {
        let disk = GatedDisk::new();
        let written = write_test_file(&disk, "a", 40);
        let prefetcher = PagePrefetcher::start(1, 0).unwrap();
        disk.panic_on_read();
        let query = prefetcher.push(vec![written.request(0, 1, 3)]);
        let why =
            "cannot read postings: the prefetcher has stopped: a defect, it panicked: as the test wants it";
        assert_eq!(query.wait().err().unwrap().to_string(), why);
    });
}
