//! What the papers leave open: lists that do not fit, threads that give up, an end in the middle of it.

use std::thread;

use tierdex_cache::{Cache, Job, Key, Lookahead, PARTS_MAX, Part, PolicyKind, Prefetcher};
use tierdex_io::{Cells, EngineKind, ErrorKind, MemDisk, Region, RegionKind};

use super::world::{
    GatedDisk, SEGMENT, assert_at_rest, cache, engine, kinds, prefetcher, shut, watched, write,
};

#[test]
fn lists_longer_than_the_cache_are_streamed_side_by_side() {
    watched(|| {
        let disk = MemDisk::new();
        let written = write(&disk, "a", 40);
        let cache = cache(3, PolicyKind::Lru);
        let prefetcher = prefetcher(&cache, &disk, Lookahead::Adaptive);
        let jobs = [written.job(0, 1, 30), written.job(1, 5, 30), written.job(2, 9, 2)];
        let query = prefetcher.push(jobs.to_vec());
        let lists: Vec<_> = (0..3).map(|list| query.wait(list).unwrap()).collect();
        assert_eq!(lists.iter().map(|list| list.is_pinned()).collect::<Vec<_>>(), [false, false, true]);
        // Block by block from all of them in turn, as an operator would.
        let mut readers: Vec<_> = lists.iter().map(|list| list.reader(0)).collect();
        let mut scratch = Vec::new();
        for from in (0..130_000).step_by(300) {
            for (job, reader) in jobs.iter().zip(&mut readers) {
                let to = reader.len().min(from + 300);
                if from < to {
                    let expected = &written.bytes(&job.parts()[0])[from as usize..to as usize];
                    assert!(reader.get(from..to, &mut scratch).unwrap() == expected);
                }
            }
        }
        drop(readers);
        // Each page of a stream that is read in order is read once, through a window of one.
        assert_eq!(cache.stats().reads, 30 + 30 + 1);
        drop((lists, query));
        assert_at_rest(&cache);
    });
}

#[test]
fn a_stream_reads_what_is_asked_for_and_ahead_of_who_reads_on() {
    watched(|| {
        let disk = MemDisk::new();
        let written = write(&disk, "a", 400);
        // A window of 16 pages in four segments.
        let cells = Cells::new(Region::new(&RegionKind::Dram, 128 * (16 << 10)).unwrap(), 16 << 10).unwrap();
        let cache = Cache::new(cells, PolicyKind::Lru).unwrap();
        let prefetcher = prefetcher(&cache, &disk, Lookahead::Adaptive);
        let _all = prefetcher.fetch(&written.job(9, 1, 390)).unwrap();
        let job = written.job(0, 1, 390);
        let list = prefetcher.fetch(&job).unwrap();
        assert!(!list.is_pinned());
        let (bytes, mut scratch) = (written.bytes(&job.parts()[0]), Vec::new());
        let mut reader = list.reader(0);
        let mut pages = |from: u64, len: u64| {
            let before = cache.stats().bytes_read;
            let found = reader.get(from..from + len, &mut scratch).unwrap();
            assert!(found == &bytes[from as usize..(from + len) as usize]);
            (cache.stats().bytes_read - before) / 4096
        };
        // The part begins at byte 100 of its first page.
        let page = |page: u64| page * 4096 - 100;
        // Here and there: the page of a block, or two.
        for at in [300, 20, 90, 21, 7] {
            assert_eq!((pages(page(at) + 50, 300), pages(page(at) + 1000, 300)), (1, 0));
        }
        assert_eq!(pages(page(50) - 150, 300), 2);
        // On from there: four more, then eight, then the window again and again.
        let read: Vec<u64> = (51..120).map(|at| pages(page(at), 300)).filter(|read| *read > 0).collect();
        assert_eq!(read, [4, 8, 16, 16, 16, 16]);
        assert_eq!((pages(page(5), 70 << 10), pages(page(200), 300)), (16 + 16, 1));
    });
}

#[test]
fn streams_of_several_threads_share_the_window() {
    watched(|| {
        let disk = MemDisk::new();
        let written = write(&disk, "a", 40);
        let cache = cache(2, PolicyKind::Lru);
        let engines = (0..2).map(|_| engine(&disk, EngineKind::Pread, 1)).collect();
        let prefetcher = Prefetcher::start(&cache, engines, Lookahead::Adaptive).unwrap();
        thread::scope(|scope| {
            for thread in 0..3 {
                let (written, prefetcher) = (&written, &prefetcher);
                scope.spawn(move || {
                    let job = written.job(thread, 1 + thread, 20);
                    let list = prefetcher.fetch(&job).unwrap();
                    assert!(!list.is_pinned());
                    written.check(&job, &list);
                });
            }
        });
        assert_at_rest(&cache);
    });
}

#[test]
fn a_query_whose_lists_together_exceed_the_cache_is_served() {
    watched(|| {
        let disk = MemDisk::new();
        let written = write(&disk, "a", 40);
        for lookahead in [Lookahead::Adaptive, Lookahead::Pins, Lookahead::Queries(16)] {
            let cache = cache(5, PolicyKind::Window);
            let prefetcher = prefetcher(&cache, &disk, lookahead);
            let jobs: Vec<Job> = (0..4).map(|list| written.job(list, 1 + list * 3, 2)).collect();
            let queries = [prefetcher.push(jobs.clone()), prefetcher.push(jobs.clone())];
            for query in queries {
                let lists: Vec<_> = (0..4).map(|list| query.wait(list).unwrap()).collect();
                assert_eq!(lists.iter().filter(|list| list.is_pinned()).count(), 2);
                lists.iter().zip(&jobs).for_each(|(list, job)| written.check(job, list));
            }
            assert_at_rest(&cache);
        }
    });
}

#[test]
fn a_list_that_is_loading_is_waited_for_and_read_once() {
    watched(|| {
        let (disk, written, cache, prefetcher) = shut(20, 8);
        let job = written.job(0, 1, 4);
        let queries = [(); 3].map(|()| prefetcher.push(vec![job.clone()]));
        disk.wait_for_a_read();
        assert!(cache.lookup(&job).unwrap().is_none(), "it is not ready");
        thread::scope(|scope| {
            for query in queries {
                let (written, job) = (&written, &job);
                scope.spawn(move || written.check(job, &query.wait(0).unwrap()));
            }
            let fetched = scope.spawn(|| written.check(&job, &prefetcher.fetch(&job).unwrap()));
            while cache.stats().waits < 4 {
                thread::yield_now();
            }
            disk.open_gate();
            fetched.join().unwrap();
        });
        let stats = cache.stats();
        // One miss to load it, one look-up too early.
        assert_eq!((stats.reads, stats.hits, stats.misses, stats.waits), (1, 3, 2, 4));
        assert_at_rest(&cache);
    });
}

#[test]
fn a_list_that_nobody_wants_any_more_lands_and_can_be_evicted() {
    watched(|| {
        let (disk, written, cache, prefetcher) = shut(20, 4);
        let (job, other) = (written.job(0, 1, 3), written.job(1, 5, 3));
        let query = prefetcher.push(vec![job.clone(), other.clone()]);
        disk.wait_for_a_read();
        drop(query);
        let next = prefetcher.push(vec![other.clone()]);
        assert_eq!(cache.stats().loading, 1, "there is no room while the first list is on its way");
        disk.open_gate();
        written.check(&other, &next.wait(0).unwrap());
        drop(next);
        assert_eq!(cache.stats().evictions, 1);
        assert_at_rest(&cache);
    });
}

#[test]
fn an_end_with_work_in_flight_is_an_error_for_who_waits() {
    watched(|| {
        let (disk, written, cache, prefetcher) = shut(40, 8);
        let jobs: Vec<Job> = (0..5).map(|list| written.job(list, 1 + list * 3, 3)).collect();
        let queries: Vec<_> = jobs.iter().map(|job| prefetcher.push(vec![job.clone()])).collect();
        let long = written.job(9, 1, 30);
        disk.wait_for_a_read();
        thread::scope(|scope| {
            let mut told: Vec<_> =
                queries.iter().map(|query| scope.spawn(|| assert!(query.wait(0).is_err()))).collect();
            let stream = prefetcher.fetch(&long).unwrap();
            told.push(scope.spawn(move || {
                let mut scratch = Vec::new();
                assert!(stream.reader(0).get(0..10, &mut scratch).is_err());
            }));
            while cache.stats().waits < 6 {
                thread::yield_now();
            }
            scope.spawn(|| drop(prefetcher));
            // Those who wait are told before what is in flight has landed.
            told.into_iter().for_each(|thread| thread.join().unwrap());
            disk.open_gate();
        });
        let why = queries[4].wait(0).err().unwrap();
        assert_eq!(why.to_string(), "cannot read postings: the prefetcher has stopped");
        drop(queries);
        assert_at_rest(&cache);
        // The cache outlives its workers, and takes new ones.
        let prefetcher = super::world::prefetcher(&cache, &disk, Lookahead::Adaptive);
        written.check(&jobs[4], &prefetcher.fetch(&jobs[4]).unwrap());
        drop(prefetcher);
        let list = cache.lookup(&jobs[4]).unwrap().map(tierdex_cache::List::Pinned);
        written.check(&jobs[4], &list.unwrap());
        assert_at_rest(&cache);
    });
}

#[test]
fn an_end_sends_no_more_reads_of_lists_that_were_begun() {
    watched(|| {
        let disk = GatedDisk::new();
        let written = write(&disk, "a", 60);
        let part = |page: u64| Part::new(written.file.clone(), page * 4096..page * 4096 + 10).unwrap();
        // Eight parts, each in a cell of its own, or one after the other in one cell.
        let job = Job::new(Key(1, 0), (1..9).map(|at| part(at * 3)).collect()).unwrap();
        for cell_bytes in [4096, 32 << 10] {
            for depth in [1, 2] {
                let region = Region::new(&RegionKind::Dram, (cell_bytes * 40) as u64).unwrap();
                let cache = Cache::new(Cells::new(region, cell_bytes).unwrap(), PolicyKind::Lru).unwrap();
                let engines = vec![engine(&disk, EngineKind::Pread, depth)];
                let prefetcher = Prefetcher::start(&cache, engines, Lookahead::Adaptive).unwrap();
                disk.shut();
                let query = prefetcher.push(vec![job.clone()]);
                disk.wait_for_reads(depth);
                thread::scope(|scope| {
                    scope.spawn(|| drop(prefetcher));
                    assert!(query.wait(0).is_err(), "it is told before its reads have landed");
                    disk.open_gate();
                });
                assert_eq!(cache.stats().reads, depth as u64);
                assert!(query.wait(0).is_err());
                drop(query);
                assert_at_rest(&cache);
            }
        }
    });
}

#[test]
fn a_worker_that_panics_leaves_no_one_waiting() {
    watched(|| {
        let disk = GatedDisk::new();
        let written = write(&disk, "a", 40);
        let cache = cache(8, PolicyKind::Lru);
        let start =
            || Prefetcher::start(&cache, vec![engine(&disk, EngineKind::Mmap, 1)], Lookahead::Adaptive);
        let prefetcher = start().unwrap();
        let job = written.job(0, 1, 3);
        disk.confuse();
        let queries = [(); 3].map(|()| prefetcher.push(vec![job.clone()]));
        let why =
            "cannot read postings: the prefetcher has stopped: a defect, it panicked: as the test wants it";
        for query in &queries {
            assert_eq!(query.wait(0).err().unwrap().to_string(), why);
        }
        let fetched = prefetcher.fetch(&written.job(1, 5, 3));
        assert_eq!(fetched.err().unwrap().to_string(), why);
        let another = start().err().unwrap();
        assert_eq!(another.to_string(), "cannot start prefetcher: the cache has one");
        drop((queries, prefetcher));
        assert_at_rest(&cache);
        disk.repair();
        written.check(&job, &start().unwrap().fetch(&job).unwrap());
    });
}

#[test]
fn a_read_that_panics_fails_its_list_and_no_worker() {
    watched(|| {
        for (kind, depth) in kinds().into_iter().flat_map(|kind| [(kind, 1), (kind, 2)]) {
            let disk = GatedDisk::new();
            let written = write(&disk, "a", 40);
            let cache = cache(8, PolicyKind::Lru);
            let prefetcher =
                Prefetcher::start(&cache, vec![engine(&disk, kind, depth)], Lookahead::Adaptive).unwrap();
            let (job, other, long) = (written.job(0, 1, 3), written.job(1, 5, 3), written.job(2, 1, 20));
            let stream = prefetcher.fetch(&long).unwrap();
            disk.break_down();
            let queries = [(); 3].map(|()| prefetcher.push(vec![job.clone(), other.clone()]));
            for query in queries {
                let errors = [0, 1].map(|list| query.wait(list).err().unwrap().to_string());
                let why =
                    |at| format!("cannot read a at byte {at}: a defect, it panicked: as the test wants it");
                assert!(errors[0].starts_with("cannot read a at byte "), "{kind}: {}", errors[0]);
                assert!((1..9).any(|page| errors[1] == why(page * 4096)), "{kind}: {}", errors[1]);
            }
            assert!(stream.reader(0).get(0..10, &mut Vec::new()).is_err());
            drop(stream);
            disk.repair();
            written.check(&job, &prefetcher.fetch(&job).unwrap());
            drop(prefetcher);
            assert_at_rest(&cache);
        }
    });
}

/// Only a damaged index has two of one key.
#[test]
fn a_list_with_other_parts_than_that_of_its_key_is_damaged() {
    watched(|| {
        let disk = GatedDisk::new();
        let written = write(&disk, "a", 40);
        let cache = cache(8, PolicyKind::Lru);
        let prefetcher = prefetcher(&cache, &disk, Lookahead::Adaptive);
        let part = |from: u64, to: u64| Part::new(written.file.clone(), from..to).unwrap();
        let of = |parts: &[(u64, u64)]| {
            Job::new(Key(0, 0), parts.iter().map(|(from, to)| part(*from, *to)).collect()).unwrap()
        };
        let job = of(&[(5000, 6000), (9000, 20_000)]);
        let others = [
            of(&[(5001, 6001), (9000, 20_000)]),
            of(&[(9096, 10_096), (9000, 20_000)]),
            of(&[(5000, 6000), (9000, 20_001)]),
            of(&[(5000, 6000)]),
            of(&[(9000, 20_000), (5000, 6000)]),
            of(&[(5000, 6000), (9000, 90_000)]),
        ];
        disk.shut();
        let query = prefetcher.push(vec![job.clone()]);
        disk.wait_for_a_read();
        for (number, other) in (1..).zip(&others) {
            // While it is loading, and when it is there.
            let from = other.parts()[0].range().start;
            let why = format!("a is damaged at byte {from}: another list of the same key has other parts");
            let told = |list: tierdex_io::Result<_>| assert_eq!(list.err().unwrap().to_string(), why);
            let begun = prefetcher.begin(other.clone());
            assert!(begun.is_ready());
            told(begun.wait());
            let queued = prefetcher.push(vec![job.clone(), other.clone()]);
            assert!(queued.is_ready(1));
            told(queued.wait(1));
            drop(queued);
            disk.open_gate();
            written.check(&job, &query.wait(0).unwrap());
            told(prefetcher.fetch(other));
            assert_eq!(cache.lookup(other).err().unwrap().to_string(), why);
            prefetcher.request(other.clone());
            assert_eq!(cache.stats().failures, 5 * number);
        }
        drop((query, prefetcher));
        assert_at_rest(&cache);
    });
}

#[test]
fn what_is_there_is_given_without_waiting() {
    watched(|| {
        let disk = GatedDisk::new();
        let written = write(&disk, "a", 40);
        let cache = cache(32, PolicyKind::Lru);
        let prefetcher = prefetcher(&cache, &disk, Lookahead::Adaptive);
        let jobs: Vec<Job> = (0..5).map(|list| written.job(list, 1 + list * 3, 3)).collect();
        jobs.iter().for_each(|job| drop(prefetcher.fetch(job).unwrap()));
        let cold = cache.stats();
        assert_eq!((cold.hits, cold.misses), (0, 5));
        disk.shut();
        for _ in 0..3 {
            let queries: Vec<_> = jobs.iter().map(|job| prefetcher.push(vec![job.clone()])).collect();
            for (query, job) in queries.iter().zip(&jobs) {
                written.check(job, &query.wait(0).unwrap());
                assert!(cache.lookup(job).unwrap().is_some());
            }
        }
        let warm = cache.stats();
        assert_eq!((warm.hits, warm.misses, warm.reads), (30, 5, cold.reads));
        assert_eq!(warm.waits, cold.waits, "the queries' own thread found all lists");
        disk.open_gate();
    });
}

/// Mode hybrid: each query looks its lists up, and has those fetched behind it that are not there.
#[test]
fn what_is_asked_for_twice_is_found_once() {
    watched(|| {
        let disk = MemDisk::new();
        let written = write(&disk, "a", 40);
        let cache = cache(32, PolicyKind::Lru);
        let prefetcher = prefetcher(&cache, &disk, Lookahead::Adaptive);
        let jobs: Vec<Job> = (0..5).map(|list| written.job(list, 1 + list * 3, 3)).collect();
        for is_there in [false, true] {
            for job in &jobs {
                assert_eq!(cache.lookup(job).unwrap().is_some(), is_there);
                // The second finds it on its way, or there.
                prefetcher.request(job.clone());
                prefetcher.request(job.clone());
            }
            while cache.stats().queries + cache.stats().loading > 0 {
                thread::yield_now();
            }
        }
        let stats = cache.stats();
        assert_eq!((stats.hits, stats.misses, stats.fetched, stats.streamed), (5, 5, 5, 0));
        assert_eq!((stats.hit_rate(), stats.reads), (0.5, 5));
    });
}

#[test]
fn parts_are_read_at_once_up_to_a_mebibyte() {
    watched(|| {
        let disk = MemDisk::new();
        let written = write(&disk, "a", 600);
        let cells = Cells::new(Region::new(&RegionKind::Dram, 4 << 20).unwrap(), 16 << 10).unwrap();
        let cache = Cache::new(cells, PolicyKind::Lru).unwrap();
        let prefetcher = prefetcher(&cache, &disk, Lookahead::Adaptive);
        let part = |from: u64, to: u64| Part::new(written.file.clone(), from..to).unwrap();
        let parts = vec![part(100, 200), part(5000, 5000 + (16 << 10)), part(8192, 8192 + (16 << 10))];
        let job = Job::new(Key(1, 2), parts).unwrap();
        // | 1 2 2 2 | 2 2 3 3 | 3 3     |
        assert_eq!(job.segments(16 << 10), 3);
        written.check(&job, &prefetcher.fetch(&job).unwrap());
        let stats = cache.stats();
        assert_eq!((stats.reads, stats.bytes_read), (3, (1 + 5 + 4) * 4096));
        assert_eq!((stats.segments_used(), stats.window_segments, stats.segments), (3, 8, 248));
        let job = written.job(3, 1, 513);
        written.check(&job, &prefetcher.fetch(&job).unwrap());
        assert_eq!(cache.stats().reads, 3 + 3);
    });
}

#[test]
fn what_cannot_be_is_refused() {
    let disk = MemDisk::new();
    let written = write(&disk, "a", 2);
    let end = written.file.payload().end;
    for range in [64..64, 0..100, end - 1..end + 1, end..end + 1] {
        let error = Part::new(written.file.clone(), range).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Denied);
    }
    let part = Part::new(written.file.clone(), 64..end).unwrap();
    assert!(Job::new(Key(0, 0), Vec::new()).is_err());
    assert!(Job::new(Key(0, 0), vec![part.clone(); PARTS_MAX]).is_ok());
    let error = Job::new(Key(0, 7), vec![part; PARTS_MAX + 1]).err().unwrap();
    assert_eq!(error.to_string(), "cannot cache list 0/7: it has 9 parts, and may have 1 to 8");
    let one = Cells::new(Region::new(&RegionKind::Dram, SEGMENT as u64).unwrap(), SEGMENT).unwrap();
    let error = Cache::new(one, PolicyKind::Lru).unwrap_err();
    assert_eq!(error.to_string(), "cannot make cache dram: it has 1 segments, and needs 2 or more");
    let cache = cache(2, PolicyKind::Lru);
    assert!(Prefetcher::start(&cache, Vec::new(), Lookahead::Adaptive).is_err());
    let _one = prefetcher(&cache, &disk, Lookahead::Adaptive);
    let engine = engine(&disk, EngineKind::Pread, 1);
    let two = Prefetcher::start(&cache, vec![engine], Lookahead::Adaptive).err().unwrap();
    assert_eq!(two.to_string(), "cannot start prefetcher: the cache has one");
}

#[test]
fn the_memory_beside_the_region_is_counted() {
    // With 8,193 segments tables whose sizes are powers of two are as large as they can be.
    for (policy, cells) in PolicyKind::ALL
        .into_iter()
        .flat_map(|policy| [2, 3, 40, 513, 1000, 8192, 8193 + 64, 12_000].map(|cells| (policy, cells)))
    {
        let stats = cache(cells, policy).stats();
        let (bytes, most) = (stats.metadata_bytes, (Cache::metadata_bytes_max(policy) * cells) as u64);
        assert!(bytes <= most, "{policy}, {cells}: {bytes} > {most}");
        if stats.segments == 8193 {
            println!("{policy}: {:.0} bytes a segment", bytes as f64 / cells as f64);
            assert!(bytes > most / 20 * 19, "{policy}: {bytes} of {most}");
        }
    }
}
