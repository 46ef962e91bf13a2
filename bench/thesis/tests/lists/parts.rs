//! The parts of a list are packed into cells.

use std::sync::Arc;

use proptest::prelude::*;
use tierdex_io::{HEADER_LEN, MemDisk, PAGE, ReadKind};
use tierdex_thesis::{ListKey, ListRequest, Lookahead, PARTS_MAX, RequestedRange};

use super::fixture::{
    GatedDisk, TestFile, assert_idle, cache_of, fetch, start_prefetcher, start_worker, tested_read_kinds,
    with_watchdog, write_test_file,
};

const FILE_PAGES: usize = 60;

fn requested_range(written: &TestFile, from: u64, len: u64) -> RequestedRange {
    let end = written.file.payload().end;
    RequestedRange::new(Arc::clone(&written.file), from..end.min(from + len)).unwrap()
}

/// Offsets and lengths of parts: of a few bytes, of about a page, and of several cells.
fn random_parts() -> impl Strategy<Value = Vec<(u64, u64)>> {
    let end = HEADER_LEN + (FILE_PAGES * PAGE as usize + 1234 - 64) as u64;
    let from = prop_oneof![HEADER_LEN..end, (1..FILE_PAGES as u64).prop_map(|page| page * PAGE)];
    let len = prop_oneof![1..400_u64, PAGE - 2..PAGE + 3, 1..150_000_u64];
    prop::collection::vec((from, len), 1..=PARTS_MAX)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn parts_are_packed_and_read_back(
        lists in prop::collection::vec(random_parts(), 1..5),
        shift in 12..=16_u32,
        which in 0..3_usize,
        depth in 1..6_usize,
    ) {
        with_watchdog(|| {
            let cell_bytes = 1 << shift;
            let disk = MemDisk::new();
            let written = write_test_file(&disk, "a", FILE_PAGES);
            let requests: Vec<ListRequest> = (0..).zip(&lists).map(|(list, parts)| {
                let parts = parts.iter().map(|(from, len)| requested_range(&written, *from, *len));
                ListRequest::new(ListKey(list, 7), parts.collect()).unwrap()
            }).collect();
            // The cells that its pages need.
            let least = |request: &ListRequest| {
                let pages = request.parts().iter().map(|part| {
                    let range = part.range();
                    (range.end - 1) / PAGE - range.start / PAGE + 1
                });
                pages.sum::<u64>().div_ceil(cell_bytes as u64 / PAGE)
            };
            let cells: u64 = requests.iter().map(least).sum();
            let cache = cache_of((cells + cells / 31 + 2) as usize, cell_bytes);
            let kinds = tested_read_kinds();
            let prefetcher = start_worker(&cache, &disk, kinds[which % kinds.len()], depth);
            let query = prefetcher.push(requests.clone());
            for (number, request) in requests.iter().enumerate() {
                assert_eq!(request.cells(cell_bytes), least(request));
                let list = query.wait(number).unwrap();
                assert!(list.is_pinned());
                written.check(request, &list);
            }
            assert_eq!(cache.stats().cells_used(), cells);
            drop((query, prefetcher));
            assert_idle(&cache);
        });
    }
}

#[test]
fn parts_that_share_a_cell_are_read_concurrently() {
    with_watchdog(|| {
        let disk = GatedDisk::new();
        let written = write_test_file(&disk, "a", 40);
        let cache = cache_of(9, 16 << 10);
        let prefetcher = start_worker(&cache, &disk, ReadKind::Pread, 8);
        // Parts in the pages of the cells: | 1 2 2 2 | 2 2 2 2 | 2 3 4 |
        let parts = [(5000, 10), (8192 + 5, 31_000), (70_000, 20), (80_000, 30)];
        let parts = parts.map(|(from, len)| requested_range(&written, from, len));
        let request = ListRequest::new(ListKey(1, 1), parts.into()).unwrap();
        disk.close_gate();
        let query = prefetcher.push(vec![request.clone()]);
        disk.wait_for_reads(4);
        disk.open_gate();
        written.check(&request, &query.wait(0).unwrap());
        assert_eq!((cache.stats().reads, cache.stats().cells_used()), (4, 3));
    });
}

#[test]
#[should_panic(expected = "a list has no part 2")]
fn a_part_after_the_last_is_a_panic() {
    let disk = MemDisk::new();
    let written = write_test_file(&disk, "a", 4);
    let cache = cache_of(4, 32 << 10);
    let prefetcher = start_prefetcher(&cache, &disk, Lookahead::Adaptive);
    let parts = vec![requested_range(&written, 100, 5), requested_range(&written, 200, 5)];
    let list = fetch(&prefetcher, &ListRequest::new(ListKey(1, 1), parts).unwrap()).unwrap();
    list.reader(2);
}
