//! Lists that were begun: waited for later, looked at, or given up.

use std::sync::Arc;
use std::thread;

use proptest::prelude::*;
use tierdex_cache::{Begun, Job, Key, Lookahead, Part, PolicyKind, Prefetcher};
use tierdex_io::{Effect, ErrorKind, FaultDisk, FaultPlan, MemDisk, OpClass, Repeat, errno};

use super::world::{Written, assert_at_rest, cache, engine, kinds, prefetcher, shut, watched, write};

/// Lists of one to three parts of one to three pages.
fn jobs(written: &Written) -> Vec<Job> {
    let part = |from: u64, len: u64| Part::new(Arc::clone(&written.file), from..from + len).unwrap();
    let job = |list: u64| {
        let parts = (0..=list % 3).map(|number| part(4000 + list * 5000 + number * 300, 1 + list * 700));
        Job::new(Key(list, 1), parts.collect()).unwrap()
    };
    (0..12).map(job).collect()
}

#[test]
fn what_is_begun_is_seen_to_be_ready_without_waiting() {
    watched(|| {
        let (disk, written, cache, prefetcher) = shut(40, 8);
        let (job, long) = (written.job(0, 1, 4), written.job(1, 1, 30));
        let begun = [(); 3].map(|()| prefetcher.begin(job.clone()));
        let query = prefetcher.push(vec![job.clone(), long.clone()]);
        // No more than the first list of the next has room.
        let next = prefetcher.push(vec![long.clone(), written.job(2, 9, 7)]);
        assert!(prefetcher.begin(long.clone()).is_ready(), "a stream");
        disk.wait_for_a_read();
        assert!(!begun.iter().any(Begun::is_ready) && !query.is_ready(0) && query.is_ready(1));
        assert!(next.is_ready(0) && !next.is_ready(1));
        disk.open_gate();
        while !begun.iter().all(Begun::is_ready) || !query.is_ready(0) {
            thread::yield_now();
        }
        for begun in begun {
            written.check(&job, &begun.wait().unwrap());
        }
        let list = query.wait(0).unwrap();
        assert_eq!(cache.stats().waits, 0, "nobody has slept");
        written.check(&job, &list);
        drop((list, query));
        while !next.is_ready(1) {
            thread::yield_now();
        }
        drop(next);
        drop(prefetcher);
        assert_at_rest(&cache);
    });
}

#[test]
fn what_is_here_is_no_stream_and_no_error() {
    watched(|| {
        let (disk, written, cache, prefetcher) = shut(40, 16);
        let (job, fails, long) = (written.job(0, 1, 4), written.job(1, 9, 4), written.job(2, 1, 30));
        let other = written.job(0, 2, 3);
        let jobs = [job, long, other, fails];
        let query = prefetcher.push(jobs[..3].to_vec());
        let queried = |here: bool| {
            let found = [0, 1, 2].map(|list| (query.is_ready(list), query.is_here(list)));
            assert_eq!(found, [(here, here), (true, false), (true, false)]);
        };
        let mut begun: Vec<Begun> = jobs[..3].iter().map(|job| prefetcher.begin(job.clone())).collect();
        let asked = |begun: &[Begun]| begun.iter().map(|list| (list.is_ready(), list.is_here())).collect();
        let stand: Vec<(bool, bool)> = asked(&begun);
        assert_eq!(stand, [(false, false), (true, false), (true, false)]);
        queried(false);
        disk.open_gate();
        while !query.is_here(0) {
            thread::yield_now();
        }
        queried(true);
        disk.break_down();
        begun.push(prefetcher.begin(jobs[3].clone()));
        while !begun[3].is_ready() {
            thread::yield_now();
        }
        let stand: Vec<(bool, bool)> = asked(&begun);
        assert_eq!(stand, [(true, true), (true, false), (true, false), (true, false)]);
        drop((begun, query, prefetcher));
        assert_at_rest(&cache);
    });
}

#[test]
fn what_is_begun_is_ready_to_say_that_all_is_over() {
    watched(|| {
        let (disk, written, cache, prefetcher) = shut(40, 8);
        let jobs = [written.job(0, 1, 3), written.job(1, 9, 3)];
        let [first, second] = jobs.clone().map(|job| prefetcher.begin(job));
        let query = prefetcher.push(vec![jobs[0].clone(), written.job(2, 20, 6)]);
        disk.wait_for_a_read();
        assert!(!first.is_ready() && !second.is_ready() && !query.is_ready(0) && !query.is_ready(1));
        thread::scope(|scope| {
            scope.spawn(|| drop(prefetcher));
            while !first.is_ready() || !second.is_ready() || !query.is_ready(0) || !query.is_ready(1) {
                thread::yield_now();
            }
            assert!(second.wait().is_err() && query.wait(1).is_err());
            disk.open_gate();
        });
        drop(first);
        drop(query);
        assert_at_rest(&cache);
    });
}

#[test]
fn many_that_are_begun_hold_up_no_query() {
    watched(|| {
        let disk = MemDisk::new();
        let written = write(&disk, "a", 40);
        let cache = cache(6, PolicyKind::S3Fifo);
        let prefetcher = prefetcher(&cache, &disk, Lookahead::Adaptive);
        let jobs = jobs(&written);
        // They hold what there is, for ever; queries stream what finds no room.
        let begun: Vec<Begun> =
            jobs.iter().cycle().take(100).map(|job| prefetcher.begin(job.clone())).collect();
        for job in jobs.iter().rev() {
            let query = prefetcher.push(vec![job.clone(), jobs[3].clone()]);
            written.check(job, &query.wait(0).unwrap());
            written.check(&jobs[3], &query.wait(1).unwrap());
        }
        for (job, begun) in jobs.iter().cycle().zip(begun) {
            written.check(job, &begun.wait().unwrap());
        }
        drop(prefetcher);
        assert_at_rest(&cache);
    });
}

#[test]
fn a_fault_at_each_read_fails_who_had_begun_it() {
    watched(|| {
        for (kind, depth) in kinds().into_iter().zip([2, 3, 1]) {
            for at in 1..40 {
                let disk = FaultDisk::new(MemDisk::new(), FaultPlan::none());
                let written = write(&disk, "a", 40);
                let jobs = jobs(&written);
                let cache = cache(30, PolicyKind::Lru);
                let engines = vec![engine(&disk, kind, depth)];
                let prefetcher = Prefetcher::start(&cache, engines, Lookahead::Adaptive).unwrap();
                let effect = Effect::Error(errno::EIO);
                disk.arm(FaultPlan { class: OpClass::Read, at, effect, repeat: Repeat::Once });
                let begun: Vec<Begun> = jobs.iter().map(|job| prefetcher.begin(job.clone())).collect();
                for (number, (job, begun)) in jobs.iter().zip(begun).enumerate() {
                    if (number as u64 + at).is_multiple_of(3) {
                        continue;
                    }
                    match begun.wait() {
                        // The fault may hit a piece of one that is streamed.
                        Ok(list) if !list.is_pinned() => {
                            let mut bytes = Vec::new();
                            let mut reader = list.reader(0);
                            let read = reader.read(0..reader.len(), &mut bytes);
                            assert!(read.is_err() || bytes == written.bytes(&job.parts()[0]));
                        }
                        Ok(list) => written.check(job, &list),
                        Err(error) => assert_eq!((error.kind(), disk.injected()), (ErrorKind::Other, 1)),
                    }
                }
                disk.arm(FaultPlan::none());
                for job in &jobs {
                    written.check(
                        job,
                        &prefetcher.fetch(job).unwrap_or_else(|_| prefetcher.fetch(job).unwrap()),
                    );
                }
                drop(prefetcher);
                assert_at_rest(&cache);
            }
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_is_begun_and_given_up_all_get_on(
        segments in 2..12_usize,
        which in 0..3_usize,
        depths in prop::collection::vec(1..5_usize, 1..3),
        fails_at in prop::option::of(1..40_u64),
        steps in prop::collection::vec((0..9_u8, any::<prop::sample::Index>()), 1..60),
    ) {
        watched(|| {
            let disk = FaultDisk::new(MemDisk::new(), FaultPlan::none());
            let written = write(&disk, "a", 40);
            let cache = cache(segments, PolicyKind::Lru);
            let kind = kinds()[which % kinds().len()];
            let engines = depths.iter().map(|depth| engine(&disk, kind, *depth)).collect();
            let prefetcher = Prefetcher::start(&cache, engines, Lookahead::Adaptive).unwrap();
            let all = jobs(&written);
            if let Some(at) = fails_at {
                let effect = Effect::Error(errno::EIO);
                disk.arm(FaultPlan { class: OpClass::Read, at, effect, repeat: Repeat::Once });
            }
            // With a fault, all but those that it hits can be read.
            let check = |job: &Job, list: &_| if fails_at.is_none() { written.check(job, list) };
            thread::scope(|scope| {
                for thread in 0..3 {
                    let (steps, all, prefetcher, check) = (&steps, &all, &prefetcher, &check);
                    scope.spawn(move || {
                        let (mut begun, mut held, mut queries) = (Vec::new(), Vec::new(), Vec::new());
                        for (verb, pick) in steps.iter().skip(thread * 3) {
                            let job = pick.get(all);
                            match verb {
                                0 => begun.clear(),
                                1 => held.clear(),
                                2 => queries.clear(),
                                3 => queries.push(prefetcher.push(vec![job.clone(), all[0].clone()])),
                                4 if !begun.is_empty() => {
                                    let (job, list): (&Job, Begun) = begun.swap_remove(pick.index(begun.len()));
                                    held.extend(list.wait().ok().map(|list| (job, list)));
                                }
                                5 => begun.retain(|(_, list)| !list.is_ready()),
                                6 => drop(prefetcher.begin(job.clone())),
                                _ => begun.push((job, prefetcher.begin(job.clone()))),
                            }
                            held.iter().for_each(|(job, list)| check(job, list));
                        }
                    });
                }
            });
            // A query behind all that were given up is served.
            disk.arm(FaultPlan::none());
            let query = prefetcher.push(vec![all[5].clone()]);
            if let Ok(list) = query.wait(0) {
                written.check(&all[5], &list);
            }
            drop((query, prefetcher));
            assert_at_rest(&cache);
        });
    }
}
