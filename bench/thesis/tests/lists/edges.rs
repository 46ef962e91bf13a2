//! Cases that the papers leave open: lists that do not fit, threads that cancel, and shutdown with reads in
//! flight.

use std::thread;

use tierdex_io::{Cells, ErrorKind, MemDisk, ReadKind, Region, RegionKind};
use tierdex_thesis::{ListCache, ListKey, ListRequest, Lookahead, PARTS_MAX, Prefetcher, RequestedRange};

use super::fixture::{
    CELL_BYTES, GatedDisk, assert_idle, cache_of, fetch, gated_cache, new_cache, new_read_queue, open_cache,
    start_prefetcher, start_worker, tested_read_kinds, with_watchdog, write_test_file, yield_until,
};

#[test]
fn lists_longer_than_the_cache_are_streamed_concurrently() {
    with_watchdog(|| {
        let (_disk, written, cache, prefetcher) = open_cache(40, 3);
        let requests = [written.request(0, 1, 30), written.request(1, 5, 30), written.request(2, 9, 2)];
        let query = prefetcher.push(requests.to_vec());
        let lists: Vec<_> = (0..3).map(|list| query.wait(list).unwrap()).collect();
        assert_eq!(lists.iter().map(|list| list.is_pinned()).collect::<Vec<_>>(), [false, false, true]);
        // Block by block from all of them in turn, as a scorer reads.
        let mut readers: Vec<_> = lists.iter().map(|list| list.reader(0)).collect();
        let mut out = Vec::new();
        for from in (0..130_000).step_by(300) {
            for (request, reader) in requests.iter().zip(&mut readers) {
                let bytes = written.bytes(&request.parts()[0]);
                let to = bytes.len().min(from + 300);
                if from < to {
                    reader.read(from as u64..to as u64, &mut out).unwrap();
                    assert!(out == bytes[from..to]);
                }
            }
        }
        drop(readers);
        // Sequential reading reads each page once, through a bounce buffer of one page.
        assert_eq!(cache.stats().reads, 30 + 30 + 1);
        drop((lists, query));
        assert_idle(&cache);
    });
}

#[test]
fn a_stream_reads_ahead_only_in_sequential_access() {
    with_watchdog(|| {
        let disk = MemDisk::new();
        let written = write_test_file(&disk, "a", 400);
        // A bounce buffer of 16 pages in four cells.
        let cache = cache_of(128, 16 << 10);
        let prefetcher = start_prefetcher(&cache, &disk, Lookahead::Adaptive);
        let _all = fetch(&prefetcher, &written.request(9, 1, 390)).unwrap();
        let request = written.request(0, 1, 390);
        let list = fetch(&prefetcher, &request).unwrap();
        assert!(!list.is_pinned());
        let (bytes, mut out) = (written.bytes(&request.parts()[0]), Vec::new());
        let mut reader = list.reader(0);
        let mut pages = |from: u64, len: u64| {
            let before = cache.stats().bytes_read;
            reader.read(from..from + len, &mut out).unwrap();
            assert!(out == bytes[from as usize..(from + len) as usize]);
            (cache.stats().bytes_read - before) / 4096
        };
        // The part begins at byte 100 of its first page.
        let page = |page: u64| page * 4096 - 100;
        // Random access: the page of a block, or two.
        for at in [300, 20, 90, 21, 7] {
            assert_eq!((pages(page(at) + 50, 300), pages(page(at) + 1000, 300)), (1, 0));
        }
        assert_eq!(pages(page(50) - 150, 300), 2);
        // Sequential: four more pages, then eight, then the whole bounce buffer each time.
        let read: Vec<u64> = (51..120).map(|at| pages(page(at), 300)).filter(|read| *read > 0).collect();
        assert_eq!(read, [4, 8, 16, 16, 16, 16]);
        assert_eq!((pages(page(5), 70 << 10), pages(page(200), 300)), (16 + 16, 1));
    });
}

#[test]
fn streams_of_several_threads_share_the_bounce_buffer() {
    with_watchdog(|| {
        let disk = MemDisk::new();
        let written = write_test_file(&disk, "a", 40);
        let cache = new_cache(2);
        let prefetcher = start_prefetcher(&cache, &disk, Lookahead::Adaptive);
        thread::scope(|scope| {
            for thread in 0..3 {
                let (written, prefetcher) = (&written, &prefetcher);
                scope.spawn(move || {
                    let request = written.request(thread, 1 + thread, 20);
                    let list = fetch(prefetcher, &request).unwrap();
                    assert!(!list.is_pinned());
                    written.check(&request, &list);
                });
            }
        });
        assert_idle(&cache);
    });
}

#[test]
fn a_query_whose_lists_together_exceed_the_cache_is_served() {
    with_watchdog(|| {
        let disk = MemDisk::new();
        let written = write_test_file(&disk, "a", 40);
        for lookahead in [Lookahead::Adaptive, Lookahead::Queries(16)] {
            let cache = new_cache(5);
            let prefetcher = start_prefetcher(&cache, &disk, lookahead);
            let requests: Vec<_> = (0..4).map(|list| written.request(list, 1 + list * 3, 2)).collect();
            let queries = [prefetcher.push(requests.clone()), prefetcher.push(requests.clone())];
            for query in queries {
                let lists: Vec<_> = (0..4).map(|list| query.wait(list).unwrap()).collect();
                assert_eq!(lists.iter().filter(|list| list.is_pinned()).count(), 2);
                lists.iter().zip(&requests).for_each(|(list, request)| written.check(request, list));
            }
            assert_idle(&cache);
        }
    });
}

#[test]
fn a_list_that_is_loading_is_waited_for_and_read_once() {
    with_watchdog(|| {
        let (disk, written, cache, prefetcher) = gated_cache(20, 8);
        let request = written.request(0, 1, 4);
        let queries = [(); 4].map(|()| prefetcher.push(vec![request.clone()]));
        disk.wait_for_read();
        assert!(cache.lookup(&request).unwrap().is_none(), "it is not ready");
        thread::scope(|scope| {
            for query in queries {
                let (written, request) = (&written, &request);
                scope.spawn(move || written.check(request, &query.wait(0).unwrap()));
            }
            yield_until(|| cache.stats().waits >= 4);
            disk.open_gate();
        });
        let stats = cache.stats();
        // One miss that loads it, one lookup too early.
        assert_eq!((stats.reads, stats.hits, stats.misses, stats.waits), (1, 3, 2, 4));
        assert_idle(&cache);
    });
}

#[test]
fn a_cancelled_list_is_read_and_can_be_evicted() {
    with_watchdog(|| {
        let (disk, written, cache, prefetcher) = gated_cache(20, 4);
        let (request, other) = (written.request(0, 1, 3), written.request(1, 5, 3));
        let query = prefetcher.push(vec![request.clone(), other.clone()]);
        disk.wait_for_read();
        drop(query);
        let next = prefetcher.push(vec![other.clone()]);
        assert_eq!(cache.stats().loading, 1, "there are no free cells while the first list is loading");
        disk.open_gate();
        written.check(&other, &next.wait(0).unwrap());
        drop(next);
        assert_eq!(cache.stats().evictions, 1);
        assert_idle(&cache);
    });
}

#[test]
fn waiting_threads_get_an_error_at_shutdown() {
    with_watchdog(|| {
        let (disk, written, cache, prefetcher) = gated_cache(40, 8);
        let requests: Vec<ListRequest> = (0..5).map(|list| written.request(list, 1 + list * 3, 3)).collect();
        let stream = fetch(&prefetcher, &written.request(9, 1, 30)).unwrap();
        let queries: Vec<_> = requests.iter().map(|request| prefetcher.push(vec![request.clone()])).collect();
        disk.wait_for_read();
        thread::scope(|scope| {
            let mut waiting: Vec<_> =
                queries.iter().map(|query| scope.spawn(|| assert!(query.wait(0).is_err()))).collect();
            let read = move || assert!(stream.reader(0).read(0..10, &mut Vec::new()).is_err());
            waiting.push(scope.spawn(read));
            yield_until(|| cache.stats().waits >= 6);
            scope.spawn(|| drop(prefetcher));
            // Waiting threads get the error before the reads in flight have completed.
            waiting.into_iter().for_each(|thread| thread.join().unwrap());
            disk.open_gate();
        });
        let why = queries[4].wait(0).err().unwrap();
        assert_eq!(why.to_string(), "cannot read postings: the prefetcher has stopped");
        drop(queries);
        assert_idle(&cache);
        // The cache outlives its worker, and accepts a new one.
        let prefetcher = start_prefetcher(&cache, &disk, Lookahead::Adaptive);
        written.check(&requests[4], &fetch(&prefetcher, &requests[4]).unwrap());
        drop(prefetcher);
        written.check(&requests[4], &cache.lookup(&requests[4]).unwrap().unwrap());
        assert_idle(&cache);
    });
}

#[test]
fn no_reads_are_submitted_after_shutdown() {
    with_watchdog(|| {
        let disk = GatedDisk::new();
        let written = write_test_file(&disk, "a", 60);
        let part = |at: u64| RequestedRange::new(written.file.clone(), at * 4096..at * 4096 + 10).unwrap();
        // Eight parts, each in a cell of its own, or one after the other in one cell.
        let request = ListRequest::new(ListKey(1, 0), (1..9).map(|at| part(at * 3)).collect()).unwrap();
        for cell_bytes in [4096, 32 << 10] {
            for depth in [1, 2] {
                let cache = cache_of(40, cell_bytes);
                let prefetcher = start_worker(&cache, &disk, ReadKind::Pread, depth);
                disk.close_gate();
                let query = prefetcher.push(vec![request.clone()]);
                disk.wait_for_reads(depth);
                thread::scope(|scope| {
                    scope.spawn(|| drop(prefetcher));
                    assert!(query.wait(0).is_err(), "the error comes before the reads complete");
                    disk.open_gate();
                });
                assert_eq!(cache.stats().reads, depth as u64);
                assert!(query.wait(0).is_err());
                drop(query);
                assert_idle(&cache);
            }
        }
    });
}

#[test]
fn waiting_threads_get_an_error_when_a_worker_panics() {
    with_watchdog(|| {
        let disk = GatedDisk::new();
        let written = write_test_file(&disk, "a", 40);
        let cache = new_cache(8);
        let queue = || new_read_queue(&disk, ReadKind::Pread, 1);
        let start = || Prefetcher::start(&cache, queue(), Lookahead::Adaptive);
        let prefetcher = start().unwrap();
        let request = written.request(0, 1, 3);
        disk.panic_on_len();
        let queries = [(); 3].map(|()| prefetcher.push(vec![request.clone()]));
        let why =
            "cannot read postings: the prefetcher has stopped: a defect, it panicked: as the test wants it";
        for query in &queries {
            assert_eq!(query.wait(0).err().unwrap().to_string(), why);
        }
        let fetched = fetch(&prefetcher, &written.request(1, 5, 3));
        assert_eq!(fetched.err().unwrap().to_string(), why);
        let another = start().err().unwrap();
        assert_eq!(another.to_string(), "cannot start prefetcher: the cache has one");
        drop((queries, prefetcher));
        assert_idle(&cache);
        disk.repair();
        written.check(&request, &fetch(&start().unwrap(), &request).unwrap());
    });
}

#[test]
fn a_read_that_panics_fails_only_its_list() {
    with_watchdog(|| {
        for (kind, depth) in tested_read_kinds().into_iter().flat_map(|kind| [(kind, 1), (kind, 2)]) {
            let disk = GatedDisk::new();
            let written = write_test_file(&disk, "a", 40);
            let cache = new_cache(8);
            let prefetcher = start_worker(&cache, &disk, kind, depth);
            let (request, other) = (written.request(0, 1, 3), written.request(1, 5, 3));
            let long = written.request(2, 1, 20);
            let stream = fetch(&prefetcher, &long).unwrap();
            disk.panic_on_read();
            let queries = [(); 3].map(|()| prefetcher.push(vec![request.clone(), other.clone()]));
            for query in queries {
                let errors = [0, 1].map(|list| query.wait(list).err().unwrap().to_string());
                let why =
                    |at| format!("cannot read a at byte {at}: a defect, it panicked: as the test wants it");
                assert!(errors[0].starts_with("cannot read a at byte "), "{kind}: {}", errors[0]);
                assert!((1..9).any(|page| errors[1] == why(page * 4096)), "{kind}: {}", errors[1]);
            }
            assert!(stream.reader(0).read(0..10, &mut Vec::new()).is_err());
            drop(stream);
            disk.repair();
            written.check(&request, &fetch(&prefetcher, &request).unwrap());
            drop(prefetcher);
            assert_idle(&cache);
        }
    });
}

/// Only a damaged index has two lists with one key.
#[test]
fn a_request_whose_parts_differ_from_the_cached_ones_is_rejected() {
    with_watchdog(|| {
        let (disk, written, cache, prefetcher) = open_cache(40, 8);
        let part = |from: u64, to: u64| RequestedRange::new(written.file.clone(), from..to).unwrap();
        let of = |parts: &[(u64, u64)]| {
            ListRequest::new(ListKey(0, 0), parts.iter().map(|&(from, to)| part(from, to)).collect()).unwrap()
        };
        let request = of(&[(5000, 6000), (9000, 20_000)]);
        let others = [
            of(&[(5001, 6001), (9000, 20_000)]),
            of(&[(9096, 10_096), (9000, 20_000)]),
            of(&[(5000, 6000), (9000, 20_001)]),
            of(&[(5000, 6000)]),
            of(&[(9000, 20_000), (5000, 6000)]),
            of(&[(5000, 6000), (9000, 90_000)]),
        ];
        disk.close_gate();
        let query = prefetcher.push(vec![request.clone()]);
        disk.wait_for_read();
        for (number, other) in (1..).zip(&others) {
            // While it is loading, and when it is ready.
            let from = other.parts()[0].range().start;
            let why = format!("a is damaged at byte {from}: another list of the same key has other parts");
            let assert_rejected =
                |list: tierdex_io::Result<_>| assert_eq!(list.err().unwrap().to_string(), why);
            let queued = prefetcher.push(vec![request.clone(), other.clone()]);
            assert_rejected(queued.wait(1));
            drop(queued);
            disk.open_gate();
            written.check(&request, &query.wait(0).unwrap());
            assert_rejected(fetch(&prefetcher, other));
            assert_eq!(cache.lookup(other).err().unwrap().to_string(), why);
            prefetcher.fetch_detached(other.clone());
            assert_eq!(cache.stats().failures, 4 * number);
        }
        drop((query, prefetcher));
        assert_idle(&cache);
    });
}

#[test]
fn cached_lists_are_returned_without_waiting() {
    with_watchdog(|| {
        let (disk, written, cache, prefetcher) = open_cache(40, 32);
        let requests: Vec<ListRequest> = (0..5).map(|list| written.request(list, 1 + list * 3, 3)).collect();
        requests.iter().for_each(|request| drop(fetch(&prefetcher, request).unwrap()));
        let cold = cache.stats();
        assert_eq!((cold.hits, cold.misses), (0, 5));
        disk.close_gate();
        for _ in 0..3 {
            let queries: Vec<_> = requests.iter().map(|one| prefetcher.push(vec![one.clone()])).collect();
            for (query, request) in queries.iter().zip(&requests) {
                written.check(request, &query.wait(0).unwrap());
                assert!(cache.lookup(request).unwrap().is_some());
            }
        }
        let warm = cache.stats();
        assert_eq!((warm.hits, warm.misses, warm.reads), (30, 5, cold.reads));
        assert_eq!(warm.waits, cold.waits, "the queries' own thread found all lists");
        disk.open_gate();
    });
}

/// Mode `hybrid`: each query looks its lists up, and has the missing ones fetched.
#[test]
fn a_list_requested_twice_is_fetched_once() {
    with_watchdog(|| {
        let (_disk, written, cache, prefetcher) = open_cache(40, 32);
        let requests: Vec<ListRequest> = (0..5).map(|list| written.request(list, 1 + list * 3, 3)).collect();
        for is_there in [false, true] {
            for request in &requests {
                assert_eq!(cache.lookup(request).unwrap().is_some(), is_there);
                // The second request finds it loading, or ready.
                prefetcher.fetch_detached(request.clone());
                prefetcher.fetch_detached(request.clone());
            }
            yield_until(|| cache.stats().queries + cache.stats().loading == 0);
        }
        let stats = cache.stats();
        assert_eq!((stats.hits, stats.misses, stats.fetched, stats.streamed), (5, 5, 5, 0));
        assert_eq!(stats.reads, 5);
    });
}

#[test]
fn a_read_covers_up_to_a_mebibyte_of_a_part() {
    with_watchdog(|| {
        let disk = MemDisk::new();
        let written = write_test_file(&disk, "a", 600);
        let cache = cache_of(256, 16 << 10);
        let prefetcher = start_prefetcher(&cache, &disk, Lookahead::Adaptive);
        let part = |from: u64, to: u64| RequestedRange::new(written.file.clone(), from..to).unwrap();
        let parts = vec![part(100, 200), part(5000, 5000 + (16 << 10)), part(8192, 8192 + (16 << 10))];
        let request = ListRequest::new(ListKey(1, 2), parts).unwrap();
        // Parts in the pages of the cells: | 1 2 2 2 | 2 2 3 3 | 3 3     |
        assert_eq!(request.cells(16 << 10), 3);
        written.check(&request, &fetch(&prefetcher, &request).unwrap());
        let stats = cache.stats();
        assert_eq!((stats.reads, stats.bytes_read), (3, (1 + 5 + 4) * 4096));
        // Eight cells are the bounce buffer.
        assert_eq!((stats.cells_used(), stats.cells), (3, 248));
        let request = written.request(3, 1, 513);
        written.check(&request, &fetch(&prefetcher, &request).unwrap());
        assert_eq!(cache.stats().reads, 3 + 3);
    });
}

#[test]
fn invalid_arguments_are_rejected() {
    let disk = MemDisk::new();
    let written = write_test_file(&disk, "a", 2);
    let end = written.file.payload().end;
    for range in [64..64, 0..100, end - 1..end + 1, end..end + 1] {
        let error = RequestedRange::new(written.file.clone(), range).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Denied);
    }
    let part = RequestedRange::new(written.file.clone(), 64..end).unwrap();
    assert!(ListRequest::new(ListKey(0, 0), Vec::new()).is_err());
    assert!(ListRequest::new(ListKey(0, 0), vec![part.clone(); PARTS_MAX]).is_ok());
    let error = ListRequest::new(ListKey(0, 7), vec![part; PARTS_MAX + 1]).err().unwrap();
    assert_eq!(error.to_string(), "cannot cache list 0/7: it has 9 parts, and may have 1 to 8");
    let one = Cells::new(Region::new(&RegionKind::Dram, CELL_BYTES as u64).unwrap(), CELL_BYTES).unwrap();
    let error = ListCache::new(one).unwrap_err();
    assert_eq!(error.to_string(), "cannot make cache dram: it has 1 segments, and needs 2 or more");
    let cache = new_cache(2);
    let _one = start_prefetcher(&cache, &disk, Lookahead::Adaptive);
    let queue = new_read_queue(&disk, ReadKind::Pread, 1);
    let two = Prefetcher::start(&cache, queue, Lookahead::Adaptive).err().unwrap();
    assert_eq!(two.to_string(), "cannot start prefetcher: the cache has one");
}

#[test]
fn metadata_stays_below_its_maximum() {
    // With 8,193 cells, tables whose sizes are powers of two are as large as they can be.
    for cells in [2, 3, 40, 513, 1000, 8192, 8193 + 64, 12_000] {
        let stats = new_cache(cells).stats();
        let (bytes, most) = (stats.metadata_bytes, (ListCache::metadata_bytes_max() * cells) as u64);
        assert!(bytes <= most, "{cells}: {bytes} > {most}");
        if stats.cells == 8193 {
            assert!(bytes > most / 20 * 19, "{bytes} of {most}");
        }
    }
}
