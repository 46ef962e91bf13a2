//! Reads that fail, and bytes that differ from those written.

use std::sync::Arc;

use tierdex_io::{ErrorKind, FaultDisk, FaultPlan, MemDisk, ReadKind, Repeat, Result};
use tierdex_thesis::{ListKey, ListRequest, Lookahead, Prefetcher, RequestedRange};

use super::fixture::{
    TestFile, assert_idle, fail_read, fetch, new_cache, start_prefetcher, start_worker, tested_read_kinds,
    with_watchdog, write_test_file,
};

const SHORT_LISTS: u64 = 6;

/// Lists of three pages, one that is streamed, and one of three parts, which are read concurrently.
fn list_requests(written: &TestFile) -> Vec<ListRequest> {
    let lists = (0..SHORT_LISTS).map(|list| written.request(list, 1 + list * 3, 3));
    let part = |from: u64| RequestedRange::new(Arc::clone(&written.file), from..from + 5000).unwrap();
    let parts = [4200, 9000, 40_000].map(part);
    let of_parts = ListRequest::new(ListKey(SHORT_LISTS + 1, 0), parts.into()).unwrap();
    lists.chain([written.request(SHORT_LISTS, 1, 9), of_parts]).collect()
}

/// Requests all lists, two per query, and returns the result of reading each.
fn read_lists(prefetcher: &Prefetcher, written: &TestFile, requests: &[ListRequest]) -> Vec<Result<()>> {
    let queries: Vec<_> =
        requests.chunks(2).map(|requests| (requests, prefetcher.push(requests.to_vec()))).collect();
    let mut results = Vec::new();
    for (requests, query) in queries {
        for (number, request) in requests.iter().enumerate() {
            let read = query.wait(number).and_then(|list| {
                // A stream fails when it is read.
                request.parts().iter().enumerate().try_for_each(|(part, range)| {
                    let (expected, mut bytes) = (written.bytes(range), Vec::new());
                    list.reader(part).read(0..expected.len() as u64, &mut bytes)?;
                    assert!(bytes == expected);
                    Ok(())
                })
            });
            results.push(read);
        }
    }
    results
}

#[test]
fn a_fault_at_each_read_fails_one_list_once() {
    with_watchdog(|| {
        for (kind, depth) in tested_read_kinds().into_iter().cycle().zip([2, 3, 1]) {
            let disk = FaultDisk::new(MemDisk::new(), FaultPlan::none());
            let written = write_test_file(&disk, "a", 24);
            let requests = list_requests(&written);
            disk.arm(FaultPlan::none());
            let mut injected = 0;
            for at in 1.. {
                let cache = new_cache(8);
                let prefetcher = start_worker(&cache, &disk, kind, depth);
                fail_read(&disk, at, Repeat::Once);
                let results = read_lists(&prefetcher, &written, &requests);
                let failed: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
                assert_eq!(failed.len() as u64, disk.injected().min(1));
                assert!(failed.iter().all(|error| error.kind() == ErrorKind::Other && error.file() == "a"));
                assert_eq!(cache.stats().failures, disk.injected().min(1));
                let (none, injected_now) = (failed.is_empty(), disk.injected());
                disk.arm(FaultPlan::none());
                assert!(read_lists(&prefetcher, &written, &requests).iter().all(Result::is_ok), "it passes");
                drop(prefetcher);
                assert_idle(&cache);
                if none {
                    break;
                }
                injected += injected_now;
            }
            assert!(injected >= SHORT_LISTS * 3, "{kind}: {injected}");
        }
    });
}

#[test]
fn a_permanent_fault_fails_all_lists_and_leaks_nothing() {
    with_watchdog(|| {
        let disk = FaultDisk::new(MemDisk::new(), FaultPlan::none());
        let written = write_test_file(&disk, "a", 24);
        let requests = list_requests(&written);
        let cache = new_cache(8);
        let prefetcher = start_worker(&cache, &disk, ReadKind::Pread, 3);
        fail_read(&disk, 1, Repeat::Forever);
        for _ in 0..3 {
            assert!(read_lists(&prefetcher, &written, &requests).iter().all(Result::is_err));
        }
        assert_idle(&cache);
        assert_eq!(cache.stats().cells_used(), 0);
        disk.arm(FaultPlan::none());
        assert!(read_lists(&prefetcher, &written, &requests).iter().all(Result::is_ok));
    });
}

#[test]
fn a_corrupt_page_is_never_returned() {
    with_watchdog(|| {
        let disk = MemDisk::new();
        let written = write_test_file(&disk, "a", 24);
        let requests = list_requests(&written);
        let cache = new_cache(8);
        let prefetcher = start_prefetcher(&cache, &disk, Lookahead::Adaptive);
        for page in 1..=18 {
            disk.corrupt("a", |bytes| bytes[page * 4096 + 17] ^= 4);
            // Lists that were read before the damage are evicted by others.
            let others: Vec<ListRequest> = (0..3).map(|list| written.request(100 + list, 19, 2)).collect();
            others.iter().for_each(|request| drop(fetch(&prefetcher, request).unwrap()));
            let damaged = &requests[(page - 1) / 3];
            let error = fetch(&prefetcher, damaged).err().expect("a damaged page");
            assert_eq!((error.kind(), error.offset()), (ErrorKind::Corrupt, Some(page as u64 * 4096)));
            let stream = fetch(&prefetcher, &requests[SHORT_LISTS as usize]).unwrap();
            let read = stream.reader(0).read(0..9 * 4096 - 150, &mut Vec::new()).is_ok();
            assert_eq!(read, page > 9, "{page}");
            disk.corrupt("a", |bytes| bytes[page * 4096 + 17] ^= 4);
            written.check(damaged, &fetch(&prefetcher, damaged).unwrap());
        }
        drop(prefetcher);
        assert_idle(&cache);
    });
}
