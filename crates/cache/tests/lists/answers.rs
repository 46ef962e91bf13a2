//! Random lists, queries, policies, engines and threads over caches of a few pages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::thread;

use proptest::prelude::*;
use tempfile::TempDir;
use tierdex_cache::{Cache, Job, Key, Lookahead, Part, PolicyKind, Prefetcher, Query};
use tierdex_io::{
    Cells, Disk, EngineKind, EngineOptions, HEADER_LEN, MemDisk, PosixDisk, ReadEngine, Region, RegionKind,
};

use super::world::{Written, assert_at_rest, cache, engine, kinds, watched, write};

const PAGES: usize = 12;

#[derive(Debug, Clone)]
struct Setting {
    segments: usize,
    policy: PolicyKind,
    lookahead: Lookahead,
    engine: usize,
    depths: Vec<usize>,
    threads: usize,
}

fn settings() -> impl Strategy<Value = Setting> {
    let lookaheads = [Lookahead::Adaptive, Lookahead::Pins, Lookahead::Queries(0), Lookahead::Queries(3)];
    let depths = prop::collection::vec(1..5_usize, 1..3);
    let policies = prop::sample::select(PolicyKind::ALL.to_vec());
    let parts =
        (2..11_usize, policies, prop::sample::select(lookaheads.to_vec()), 0..3_usize, depths, 1..4_usize);
    parts.prop_map(|(segments, policy, lookahead, engine, depths, threads)| Setting {
        segments,
        policy,
        lookahead,
        engine,
        depths,
        threads,
    })
}

/// Lists of one to three parts anywhere in the file.
fn lists() -> impl Strategy<Value = Vec<Vec<(u64, u64)>>> {
    let end = HEADER_LEN + (PAGES * 4096 + 1234 - 64) as u64;
    let part = (HEADER_LEN..end, 1..9000_u64).prop_map(move |(start, len)| (start, end.min(start + len)));
    prop::collection::vec(prop::collection::vec(part, 1..4), 1..12)
}

fn jobs(written: &Written, lists: &[Vec<(u64, u64)>]) -> Vec<Job> {
    let part = |&(from, to): &(u64, u64)| Part::new(Arc::clone(&written.file), from..to).unwrap();
    let job = |(list, parts): (u64, &Vec<(u64, u64)>)| {
        Job::new(Key(list, list % 2), parts.iter().map(part).collect()).unwrap()
    };
    (0..).zip(lists).map(job).collect()
}

fn start(cache: &Arc<Cache>, disk: &dyn Disk, setting: &Setting) -> Prefetcher {
    let kinds = kinds();
    let kind = kinds[setting.engine % kinds.len()];
    let engines = setting.depths.iter().map(|depth| engine(disk, kind, *depth)).collect();
    Prefetcher::start(cache, engines, setting.lookahead).unwrap()
}

/// Queries that were pushed, in order, are served by threads.
fn serve(queries: Vec<(Vec<Job>, Query)>, written: &Written, threads: usize) {
    let queries = Mutex::new(VecDeque::from(queries));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let next = queries.lock().unwrap().pop_front();
                    let Some((jobs, query)) = next else { return };
                    // Some queries are given up half way.
                    let used = if jobs.len() == 3 { 1 } else { jobs.len() };
                    let lists: Vec<_> = (0..used).map(|list| query.wait(list).unwrap()).collect();
                    for (job, list) in jobs.iter().zip(&lists) {
                        written.check(job, list);
                    }
                }
            });
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn queries_ahead_get_the_bytes_of_the_files(
        setting in settings(),
        lists in lists(),
        queries in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..5), 1..30),
    ) {
        watched(|| {
            let disk = MemDisk::new();
            let written = write(&disk, "a", PAGES);
            let cache = cache(setting.segments, setting.policy);
            cache.record_lookahead(8);
            let prefetcher = start(&cache, &disk, &setting);
            let all = jobs(&written, &lists);
            let of_query = |picks: &Vec<prop::sample::Index>| -> Vec<Job> {
                picks.iter().map(|pick| pick.get(&all).clone()).collect()
            };
            let pushed: Vec<(Vec<Job>, Query)> =
                queries.iter().map(of_query).map(|jobs| (jobs.clone(), prefetcher.push(jobs))).collect();
            serve(pushed, &written, setting.threads);
            assert_eq!(cache.stats().failures, 0);
            drop(prefetcher);
            assert_at_rest(&cache);
            assert!(cache.lookahead_samples().len() == queries.len().min(8));
            let stats = cache.stats();
            let asked: usize = queries.iter().map(Vec::len).sum();
            assert!(stats.hits + stats.misses <= asked as u64);
        });
    }

    #[test]
    fn whoever_asks_and_whatever_is_held_all_get_on(
        setting in settings(),
        lists in lists(),
        steps in prop::collection::vec((0..6_u8, any::<prop::sample::Index>()), 1..40),
    ) {
        watched(|| {
            let disk = MemDisk::new();
            let written = write(&disk, "a", PAGES);
            let cache = cache(setting.segments, setting.policy);
            let prefetcher = start(&cache, &disk, &setting);
            let all = jobs(&written, &lists);
            thread::scope(|scope| {
                for thread in 0..setting.threads {
                    let (steps, all, prefetcher, cache, written) = (&steps, &all, &prefetcher, &cache, &written);
                    scope.spawn(move || {
                        // Lists that are held while others are fetched, and queries that nobody waits for.
                        let (mut held, mut left) = (Vec::new(), Vec::new());
                        for (verb, pick) in steps.iter().skip(thread * 3) {
                            let job = pick.get(all);
                            match verb {
                                0 => held.clear(),
                                1 => left.push(prefetcher.push(vec![job.clone()])),
                                2 => left.clear(),
                                3 => prefetcher.request(job.clone()),
                                4 => {
                                    let list = cache.lookup(job).unwrap().map(tierdex_cache::List::Pinned);
                                    held.extend(list.map(|list| (job, list)));
                                }
                                _ => held.push((job, prefetcher.fetch(job).unwrap())),
                            }
                            for (job, list) in &held {
                                written.check(job, list);
                            }
                        }
                    });
                }
            });
            drop(prefetcher);
            assert_at_rest(&cache);
        });
    }
}

#[test]
fn pages_past_the_page_cache_land_where_they_stay() {
    watched(|| {
        let directory = TempDir::new().unwrap();
        let disk = PosixDisk::open(directory.path()).unwrap();
        let written = write(&disk, "a", 300);
        for kind in [EngineKind::Auto, EngineKind::Pread, EngineKind::Uring] {
            let region = Region::new(&RegionKind::Dram, 1 << 20).unwrap();
            let cells = Cells::new(region, 32 << 10).unwrap();
            let opened = [true, false].into_iter().find_map(|direct| {
                ReadEngine::new(EngineOptions { kind, depth: 8, direct }, &disk, &[Arc::clone(&cells)]).ok()
            });
            let Some(engine) = opened else { continue };
            let cache = Cache::new(cells, PolicyKind::Lru).unwrap();
            let prefetcher = Prefetcher::start(&cache, vec![engine], Lookahead::Adaptive).unwrap();
            // The last is longer than the cache, and reaches into the file's last page.
            let whole = Part::new(Arc::clone(&written.file), written.file.payload()).unwrap();
            let whole = Job::new(Key(9, 9), vec![whole]).unwrap();
            let jobs: Vec<Job> = (0..8).map(|list| written.job(list, list * 20, 60)).chain([whole]).collect();
            let queries: Vec<Query> = jobs.iter().map(|job| prefetcher.push(vec![job.clone()])).collect();
            for (job, query) in jobs.iter().zip(queries) {
                written.check(job, &query.wait(0).unwrap());
            }
            drop(prefetcher);
            assert_at_rest(&cache);
            let stats = cache.stats();
            assert_eq!((stats.misses, stats.streamed), (9, 1));
            // Whole segments are read at once: 8 reads a list, and the stream.
            assert!(stats.reads >= 8 * 8 && stats.bytes_read >= 8 * 60 * 4096);
        }
    });
}
