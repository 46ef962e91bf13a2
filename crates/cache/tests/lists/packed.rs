//! Parts of a list behind one another in the same segments.

use std::sync::Arc;

use proptest::prelude::*;
use tierdex_cache::{Cache, Job, Key, Lookahead, PARTS_MAX, Part, PolicyKind, Prefetcher};
use tierdex_io::{Cells, EngineKind, HEADER_LEN, MemDisk, PAGE, Region, RegionKind};

use super::world::{GatedDisk, Written, assert_at_rest, engine, kinds, watched, write};

const PAGES: usize = 60;

/// A cache of segments of `segment_bytes` bytes, of which one is the window of streams.
fn cache(segments: usize, segment_bytes: usize) -> Arc<Cache> {
    let region = Region::new(&RegionKind::Dram, (segments * segment_bytes) as u64).unwrap();
    Cache::new(Cells::new(region, segment_bytes).unwrap(), PolicyKind::Lru).unwrap()
}

fn part(written: &Written, from: u64, len: u64) -> Part {
    let end = written.file.payload().end;
    Part::new(Arc::clone(&written.file), from..end.min(from + len)).unwrap()
}

/// Beginnings and lengths of parts: of a few bytes, about a page, and of several segments.
fn parts() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let end = HEADER_LEN + (PAGES * PAGE as usize + 1234 - 64) as u64;
    let from = prop_oneof![HEADER_LEN..end, (1..PAGES as u64).prop_map(|page| page * PAGE)];
    let len = prop_oneof![1..400_u64, PAGE - 2..PAGE + 3, 1..150_000_u64];
    prop::collection::vec((from, len), 1..=PARTS_MAX)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn parts_are_packed_and_read_back(
        lists in prop::collection::vec(parts(), 1..5),
        shift in 12..=16_u32,
        which in 0..3_usize,
        depth in 1..6_usize,
    ) {
        watched(|| {
            let segment_bytes = 1 << shift;
            let disk = MemDisk::new();
            let written = write(&disk, "a", PAGES);
            let jobs: Vec<Job> = (0..).zip(&lists).map(|(list, parts)| {
                let parts = parts.iter().map(|(from, len)| part(&written, *from, *len));
                Job::new(Key(list, 7), parts.collect()).unwrap()
            }).collect();
            // The pages that they need, and no segment more than these need.
            let least = |job: &Job| {
                let pages = job.parts().iter().map(|part| {
                    let range = part.range();
                    (range.end - 1) / PAGE - range.start / PAGE + 1
                });
                pages.sum::<u64>().div_ceil(segment_bytes as u64 / PAGE)
            };
            let segments: u64 = jobs.iter().map(least).sum();
            let cache = cache((segments + segments / 31 + 2) as usize, segment_bytes);
            let kinds = kinds();
            let engines = vec![engine(&disk, kinds[which % kinds.len()], depth)];
            let prefetcher = Prefetcher::start(&cache, engines, Lookahead::Adaptive).unwrap();
            let query = prefetcher.push(jobs.clone());
            for (number, job) in jobs.iter().enumerate() {
                assert_eq!(job.segments(segment_bytes), least(job));
                let list = query.wait(number).unwrap();
                assert!(list.is_pinned());
                written.check(job, &list);
            }
            assert_eq!(cache.stats().segments_used(), segments);
            drop((query, prefetcher));
            assert_at_rest(&cache);
        });
    }
}

#[test]
fn parts_that_meet_in_a_cell_are_read_at_the_same_time() {
    watched(|| {
        let disk = GatedDisk::new();
        let written = write(&disk, "a", 40);
        let cache = cache(9, 16 << 10);
        let engines = vec![engine(&disk, EngineKind::Pread, 8)];
        let prefetcher = Prefetcher::start(&cache, engines, Lookahead::Adaptive).unwrap();
        // | 1 2 2 2 | 2 2 2 2 | 2 3 4 |
        let parts = [(5000, 10), (8192 + 5, 31_000), (70_000, 20), (80_000, 30)];
        let parts = parts.map(|(from, len)| part(&written, from, len));
        let job = Job::new(Key(1, 1), parts.into()).unwrap();
        disk.shut();
        let query = prefetcher.push(vec![job.clone()]);
        disk.wait_for_reads(4);
        disk.open_gate();
        written.check(&job, &query.wait(0).unwrap());
        assert_eq!((cache.stats().reads, cache.stats().segments_used()), (4, 3));
    });
}

#[test]
#[should_panic(expected = "a list has no part 2")]
fn there_is_no_part_behind_the_last() {
    let disk = MemDisk::new();
    let written = write(&disk, "a", 4);
    let cache = cache(4, 32 << 10);
    let prefetcher = super::world::prefetcher(&cache, &disk, Lookahead::Adaptive);
    let parts = vec![part(&written, 100, 5), part(&written, 200, 5)];
    let list = prefetcher.fetch(&Job::new(Key(1, 1), parts).unwrap()).unwrap();
    list.reader(2);
}
