//! Random lists, queries, engines and threads with caches of a few pages.

use std::{collections::VecDeque, sync::Arc, sync::Mutex, thread};

use proptest::prelude::*;
use tempfile::TempDir;
use tierdex_io::{
    Cells, Disk, FaultDisk, FaultPlan, HEADER_LEN, MemDisk, PosixDisk, ReadKind, ReadOptions, ReadQueue,
    Region, RegionKind, Repeat,
};
use tierdex_thesis::{
    FetchedList, ListCache, ListKey, ListRequest, Lookahead, Prefetcher, QueuedQuery, RequestedRange,
};

use super::fixture::{
    TestFile, assert_idle, fail_read, fetch, new_cache, new_read_queue, tested_read_kinds, with_watchdog,
    write_test_file,
};

const FILE_PAGES: usize = 12;

#[derive(Debug, Clone)]
struct RandomSettings {
    cells: usize,
    lookahead: Lookahead,
    engine: usize,
    depth: usize,
    threads: usize,
}

fn random_settings() -> impl Strategy<Value = RandomSettings> {
    let lookaheads = [Lookahead::Adaptive, Lookahead::Queries(0), Lookahead::Queries(3)];
    let lookaheads = prop::sample::select(lookaheads.to_vec());
    let parts = (2..11_usize, lookaheads, 0..3_usize, 1..5_usize, 1..4_usize);
    parts.prop_map(|(cells, lookahead, engine, depth, threads)| RandomSettings {
        cells,
        lookahead,
        engine,
        depth,
        threads,
    })
}

/// Lists of one to three parts anywhere in the file.
fn random_lists() -> impl Strategy<Value = Vec<Vec<(u64, u64)>>> {
    let end = HEADER_LEN + (FILE_PAGES * 4096 + 1234 - 64) as u64;
    let part = (HEADER_LEN..end, 1..9000_u64).prop_map(move |(start, len)| (start, end.min(start + len)));
    prop::collection::vec(prop::collection::vec(part, 1..4), 1..12)
}

fn list_requests(written: &TestFile, lists: &[Vec<(u64, u64)>]) -> Vec<ListRequest> {
    let part = |&(from, to): &(u64, u64)| RequestedRange::new(Arc::clone(&written.file), from..to).unwrap();
    let request = |(list, parts): (u64, &Vec<(u64, u64)>)| {
        ListRequest::new(ListKey(list, list % 2), parts.iter().map(part).collect()).unwrap()
    };
    (0..).zip(lists).map(request).collect()
}

fn start_prefetcher(cache: &Arc<ListCache>, disk: &dyn Disk, setting: &RandomSettings) -> Prefetcher {
    let kinds = tested_read_kinds();
    let queue = new_read_queue(disk, kinds[setting.engine % kinds.len()], setting.depth);
    Prefetcher::start(cache, queue, setting.lookahead).unwrap()
}

/// Threads evaluate the queries in the order in which they were pushed.
fn evaluate_on_threads(queries: Vec<(Vec<ListRequest>, QueuedQuery)>, written: &TestFile, threads: usize) {
    let queries = Mutex::new(VecDeque::from(queries));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let next = queries.lock().unwrap().pop_front();
                    let Some((requests, query)) = next else { return };
                    // Queries of three lists are dropped after the first one.
                    let used = if requests.len() == 3 { 1 } else { requests.len() };
                    let lists: Vec<_> = (0..used).map(|list| query.wait(list).unwrap()).collect();
                    for (request, list) in requests.iter().zip(&lists) {
                        written.check(request, list);
                    }
                }
            });
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn prefetched_queries_read_the_bytes_of_the_files(
        setting in random_settings(),
        lists in random_lists(),
        queries in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..5), 1..30),
    ) {
        with_watchdog(|| {
            let disk = MemDisk::new();
            let written = write_test_file(&disk, "a", FILE_PAGES);
            let cache = new_cache(setting.cells);
            cache.record_lookahead(8);
            let prefetcher = start_prefetcher(&cache, &disk, &setting);
            let all = list_requests(&written, &lists);
            let of_query = |picks: &Vec<prop::sample::Index>| -> Vec<ListRequest> {
                picks.iter().map(|pick| pick.get(&all).clone()).collect()
            };
            let pushed: Vec<(Vec<ListRequest>, QueuedQuery)> =
                queries.iter().map(of_query).map(|requests| (requests.clone(), prefetcher.push(requests))).collect();
            evaluate_on_threads(pushed, &written, setting.threads);
            assert_eq!(cache.stats().failures, 0);
            drop(prefetcher);
            assert_idle(&cache);
            assert!(cache.lookahead_samples().len() == queries.len().min(8));
            let stats = cache.stats();
            let requested: usize = queries.iter().map(Vec::len).sum();
            assert!(stats.hits + stats.misses <= requested as u64);
        });
    }

    #[test]
    fn random_requests_and_pins_make_progress(
        setting in random_settings(),
        lists in random_lists(),
        fails_at in prop::option::of(1..40_u64),
        steps in prop::collection::vec((0..8_u8, any::<prop::sample::Index>()), 1..50),
    ) {
        with_watchdog(|| {
            let disk = FaultDisk::new(MemDisk::new(), FaultPlan::none());
            let written = write_test_file(&disk, "a", FILE_PAGES);
            let cache = new_cache(setting.cells);
            let prefetcher = start_prefetcher(&cache, &disk, &setting);
            let all = list_requests(&written, &lists);
            if let Some(at) = fails_at {
                fail_read(&disk, at, Repeat::Once);
            }
            // With a fault, all lists that it does not hit can be read.
            let check = |request: &ListRequest, list: &FetchedList| {
                if fails_at.is_none() {
                    written.check(request, list);
                }
            };
            let fetch_list = |request: &ListRequest| {
                let list = fetch(&prefetcher, request);
                assert!(list.is_ok() || fails_at.is_some());
                list.ok()
            };
            thread::scope(|scope| {
                for thread in 0..setting.threads {
                    let (steps, all, prefetcher, cache) = (&steps, &all, &prefetcher, &cache);
                    let (check, fetch_list) = (&check, &fetch_list);
                    scope.spawn(move || {
                        // Lists that stay pinned while others are fetched, and queries that a thread waits
                        // for later, or not at all.
                        let (mut held, mut queries) = (Vec::new(), VecDeque::new());
                        for (verb, pick) in steps.iter().skip(thread * 3) {
                            let request = pick.get(all);
                            match verb {
                                0 => held.clear(),
                                1 | 2 => queries.push_back(prefetcher.push(vec![request.clone(), all[0].clone()])),
                                3 => queries.clear(),
                                4 => prefetcher.fetch_detached(request.clone()),
                                5 => {
                                    let list = cache.lookup(request).unwrap();
                                    held.extend(list.map(|list| (request, list)));
                                }
                                6 => {
                                    let oldest = queries.pop_front();
                                    let list = oldest.and_then(|query: QueuedQuery| query.wait(1).ok());
                                    held.extend(list.map(|list| (&all[0], list)));
                                }
                                // A thread holds no earlier query while it waits.
                                _ => {
                                    queries.clear();
                                    held.extend(fetch_list(request).map(|list| (request, list)));
                                }
                            }
                            held.iter().for_each(|(request, list)| check(request, list));
                        }
                    });
                }
            });
            // A query behind all cancelled ones is served.
            disk.arm(FaultPlan::none());
            fetch_list(&all[0]).iter().for_each(|list| check(&all[0], list));
            drop(prefetcher);
            assert_idle(&cache);
        });
    }
}

#[test]
fn direct_reads_go_straight_into_the_cache() {
    with_watchdog(|| {
        let directory = TempDir::new().unwrap();
        let disk = PosixDisk::open(directory.path()).unwrap();
        let written = write_test_file(&disk, "a", 300);
        for kind in [ReadKind::Auto, ReadKind::Pread, ReadKind::Uring] {
            let region = Region::new(&RegionKind::Dram, 1 << 20).unwrap();
            let cells = Cells::new(region, 32 << 10).unwrap();
            let opened = [true, false].into_iter().find_map(|direct| {
                ReadQueue::new(ReadOptions { kind, depth: 8, direct }, &disk, &[Arc::clone(&cells)]).ok()
            });
            let Some(engine) = opened else { continue };
            let cache = ListCache::new(cells).unwrap();
            let prefetcher = Prefetcher::start(&cache, engine, Lookahead::Adaptive).unwrap();
            // The last is longer than the cache, and reaches into the file's last page.
            let whole = RequestedRange::new(Arc::clone(&written.file), written.file.payload()).unwrap();
            let whole = ListRequest::new(ListKey(9, 9), vec![whole]).unwrap();
            let requests: Vec<ListRequest> =
                (0..8).map(|list| written.request(list, list * 20, 60)).chain([whole]).collect();
            let queries: Vec<QueuedQuery> =
                requests.iter().map(|request| prefetcher.push(vec![request.clone()])).collect();
            for (request, query) in requests.iter().zip(queries) {
                written.check(request, &query.wait(0).unwrap());
            }
            drop(prefetcher);
            assert_idle(&cache);
            let stats = cache.stats();
            assert_eq!((stats.misses, stats.streamed), (9, 1));
            // Reads cover whole cells: 8 reads per list, and the stream.
            assert!(stats.reads >= 8 * 8 && stats.bytes_read >= 8 * 60 * 4096);
        }
    });
}
