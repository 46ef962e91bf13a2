//! Started fetches: waited for later, polled, or cancelled.

use std::{sync::Arc, thread};

use proptest::prelude::*;
use tierdex_io::{ErrorKind, FaultDisk, FaultPlan, MemDisk, Repeat};
use tierdex_thesis::{ListKey, ListRequest, Lookahead, PendingList, Prefetcher, RequestedRange};

use super::fixture::{
    TestFile, assert_idle, fail_read, gated_cache, new_cache, new_read_queue, start_prefetcher, start_worker,
    tested_read_kinds, with_watchdog, write_test_file, yield_until,
};

/// Lists of one to three parts of one to three pages.
fn list_requests(written: &TestFile) -> Vec<ListRequest> {
    let part =
        |from: u64, len: u64| RequestedRange::new(Arc::clone(&written.file), from..from + len).unwrap();
    let request = |list: u64| {
        let parts = (0..=list % 3).map(|number| part(4000 + list * 5000 + number * 300, 1 + list * 700));
        ListRequest::new(ListKey(list, 1), parts.collect()).unwrap()
    };
    (0..12).map(request).collect()
}

#[test]
fn readiness_is_visible_without_waiting() {
    with_watchdog(|| {
        let (disk, written, cache, prefetcher) = gated_cache(40, 8);
        let (request, long) = (written.request(0, 1, 4), written.request(1, 1, 30));
        let pending = [(); 3].map(|()| prefetcher.start_fetch(request.clone()));
        let query = prefetcher.push(vec![request.clone(), long.clone()]);
        // Of the next query only the first list is admitted; it will be streamed.
        let next = prefetcher.push(vec![long.clone(), written.request(2, 9, 7)]);
        assert!(prefetcher.start_fetch(long.clone()).is_ready(), "a stream");
        disk.wait_for_read();
        assert!(!pending.iter().any(PendingList::is_ready) && !query.is_ready(0) && query.is_ready(1));
        assert!(next.is_ready(0) && !next.is_ready(1));
        disk.open_gate();
        yield_until(|| pending.iter().all(PendingList::is_ready) && query.is_ready(0));
        for pending in pending {
            written.check(&request, &pending.wait().unwrap());
        }
        let list = query.wait(0).unwrap();
        assert_eq!(cache.stats().waits, 0, "no thread has slept");
        written.check(&request, &list);
        drop((list, query));
        yield_until(|| next.is_ready(1));
        drop(next);
        drop(prefetcher);
        assert_idle(&cache);
    });
}

#[test]
fn streams_and_errors_are_ready_but_not_cached() {
    with_watchdog(|| {
        let (disk, written, cache, prefetcher) = gated_cache(40, 16);
        let (request, fails, long) =
            (written.request(0, 1, 4), written.request(1, 9, 4), written.request(2, 1, 30));
        let other = written.request(0, 2, 3);
        let requests = [request, long, other, fails];
        let query = prefetcher.push(requests[..3].to_vec());
        let queried = |cached: bool| {
            let found = [0, 1, 2].map(|list| (query.is_ready(list), query.is_cached(list)));
            assert_eq!(found, [(cached, cached), (true, false), (true, false)]);
        };
        let mut pending: Vec<PendingList> =
            requests[..3].iter().map(|request| prefetcher.start_fetch(request.clone())).collect();
        let states_of = |pending: &[PendingList]| {
            pending.iter().map(|list| (list.is_ready(), list.is_cached())).collect()
        };
        let states: Vec<(bool, bool)> = states_of(&pending);
        assert_eq!(states, [(false, false), (true, false), (true, false)]);
        queried(false);
        disk.open_gate();
        yield_until(|| query.is_cached(0));
        queried(true);
        disk.panic_on_read();
        pending.push(prefetcher.start_fetch(requests[3].clone()));
        yield_until(|| pending[3].is_ready());
        let states: Vec<(bool, bool)> = states_of(&pending);
        assert_eq!(states, [(true, true), (true, false), (true, false), (true, false)]);
        drop((pending, query, prefetcher));
        assert_idle(&cache);
    });
}

#[test]
fn started_fetches_are_ready_after_shutdown() {
    with_watchdog(|| {
        let (disk, written, cache, prefetcher) = gated_cache(40, 8);
        let requests = [written.request(0, 1, 3), written.request(1, 9, 3)];
        let [first, second] = requests.clone().map(|request| prefetcher.start_fetch(request));
        let query = prefetcher.push(vec![requests[0].clone(), written.request(2, 20, 6)]);
        disk.wait_for_read();
        assert!(!first.is_ready() && !second.is_ready() && !query.is_ready(0) && !query.is_ready(1));
        thread::scope(|scope| {
            scope.spawn(|| drop(prefetcher));
            yield_until(|| first.is_ready() && second.is_ready() && query.is_ready(0) && query.is_ready(1));
            assert!(second.wait().is_err() && query.wait(1).is_err());
            disk.open_gate();
        });
        drop(first);
        drop(query);
        assert_idle(&cache);
    });
}

#[test]
fn started_fetches_delay_no_query() {
    with_watchdog(|| {
        let disk = MemDisk::new();
        let written = write_test_file(&disk, "a", 40);
        let cache = new_cache(6);
        let prefetcher = start_prefetcher(&cache, &disk, Lookahead::Adaptive);
        let requests = list_requests(&written);
        // They pin all cells for ever; queries stream the lists that do not fit.
        let fetches = requests.iter().cycle().map(|request| prefetcher.start_fetch(request.clone()));
        let pending: Vec<PendingList> = fetches.take(100).collect();
        for request in requests.iter().rev() {
            let query = prefetcher.push(vec![request.clone(), requests[3].clone()]);
            written.check(request, &query.wait(0).unwrap());
            written.check(&requests[3], &query.wait(1).unwrap());
        }
        for (request, pending) in requests.iter().cycle().zip(pending) {
            written.check(request, &pending.wait().unwrap());
        }
        drop(prefetcher);
        assert_idle(&cache);
    });
}

#[test]
fn a_fault_at_each_read_fails_its_fetch() {
    with_watchdog(|| {
        for (kind, depth) in tested_read_kinds().into_iter().cycle().zip([2, 3, 1]) {
            for at in 1..40 {
                let disk = FaultDisk::new(MemDisk::new(), FaultPlan::none());
                let written = write_test_file(&disk, "a", 40);
                let requests = list_requests(&written);
                let cache = new_cache(30);
                let prefetcher = start_worker(&cache, &disk, kind, depth);
                fail_read(&disk, at, Repeat::Once);
                let pending: Vec<PendingList> =
                    requests.iter().map(|request| prefetcher.start_fetch(request.clone())).collect();
                for (number, (request, pending)) in requests.iter().zip(pending).enumerate() {
                    if (number as u64 + at).is_multiple_of(3) {
                        continue;
                    }
                    match pending.wait() {
                        // The fault may hit a chunk of a streamed list.
                        Ok(list) if !list.is_pinned() => {
                            let mut bytes = Vec::new();
                            let mut reader = list.reader(0);
                            let read = reader.read(0..reader.len(), &mut bytes);
                            assert!(read.is_err() || bytes == written.bytes(&request.parts()[0]));
                        }
                        Ok(list) => written.check(request, &list),
                        Err(error) => assert_eq!((error.kind(), disk.injected()), (ErrorKind::Other, 1)),
                    }
                }
                disk.arm(FaultPlan::none());
                for request in &requests {
                    let list = prefetcher.fetch(request).or_else(|_| prefetcher.fetch(request));
                    written.check(request, &list.unwrap());
                }
                drop(prefetcher);
                assert_idle(&cache);
            }
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn random_fetches_and_cancellations_make_progress(
        cells in 2..12_usize,
        which in 0..3_usize,
        depths in prop::collection::vec(1..5_usize, 1..3),
        fails_at in prop::option::of(1..40_u64),
        steps in prop::collection::vec((0..9_u8, any::<prop::sample::Index>()), 1..60),
    ) {
        with_watchdog(|| {
            let disk = FaultDisk::new(MemDisk::new(), FaultPlan::none());
            let written = write_test_file(&disk, "a", 40);
            let cache = new_cache(cells);
            let kind = tested_read_kinds()[which % tested_read_kinds().len()];
            let engines = depths.iter().map(|depth| new_read_queue(&disk, kind, *depth)).collect();
            let prefetcher = Prefetcher::start(&cache, engines, Lookahead::Adaptive).unwrap();
            let all = list_requests(&written);
            if let Some(at) = fails_at {
                fail_read(&disk, at, Repeat::Once);
            }
            // With a fault, all lists that it does not hit can be read.
            let check = |request: &ListRequest, list: &_| if fails_at.is_none() { written.check(request, list) };
            thread::scope(|scope| {
                for thread in 0..3 {
                    let (steps, all, prefetcher, check) = (&steps, &all, &prefetcher, &check);
                    scope.spawn(move || {
                        let (mut pending, mut held, mut queries) = (Vec::new(), Vec::new(), Vec::new());
                        for (verb, pick) in steps.iter().skip(thread * 3) {
                            let request = pick.get(all);
                            match verb {
                                0 => pending.clear(),
                                1 => held.clear(),
                                2 => queries.clear(),
                                3 => queries.push(prefetcher.push(vec![request.clone(), all[0].clone()])),
                                4 if !pending.is_empty() => {
                                    let (request, list): (&ListRequest, PendingList) = pending.swap_remove(pick.index(pending.len()));
                                    held.extend(list.wait().ok().map(|list| (request, list)));
                                }
                                5 => pending.retain(|(_, list)| !list.is_ready()),
                                6 => drop(prefetcher.start_fetch(request.clone())),
                                _ => pending.push((request, prefetcher.start_fetch(request.clone()))),
                            }
                            held.iter().for_each(|(request, list)| check(request, list));
                        }
                    });
                }
            });
            // A query behind all cancelled ones is served.
            disk.arm(FaultPlan::none());
            let query = prefetcher.push(vec![all[5].clone()]);
            if let Ok(list) = query.wait(0) {
                written.check(&all[5], &list);
            }
            drop((query, prefetcher));
            assert_idle(&cache);
        });
    }
}
