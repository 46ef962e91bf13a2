//! Tests of the page cache and its readers: cached pages equal those of the files, also after failed reads,
//! with several threads and during changes of the size.

mod files;

use files::{TestFile, fail_read, new_read_queue, tested_read_kinds, with_watchdog, write_test_file};
use std::sync::{Arc, Mutex};
use std::thread;
use tierdex_cache::{GhostCaches, PageCache, PageReader, Pin, PolicyKind, ReadCosts};
use tierdex_io::{Cells, Disk, ErrorKind, FaultDisk, FaultPlan, MemDisk, PAGE, Region, RegionKind, Repeat};

const TEST_FILE_PAGES: usize = 40;

impl TestFile {
    /// The part of the payload in page number `page`: page 0 begins with the header of 64 bytes.
    fn page(&self, page: u64) -> &[u8] {
        let start = (page * PAGE).max(64) as usize - 64;
        let end = ((page + 1) * PAGE) as usize - 64;
        &self.bytes[start..end.min(self.bytes.len())]
    }
}

/// A cache of `frames` frames in memory of fixed size.
fn new_cache(frames: u64, policy: PolicyKind) -> Arc<PageCache> {
    let region = Region::new(&RegionKind::Dram, frames * PAGE).unwrap();
    PageCache::new(Cells::new(region, PAGE as usize).unwrap(), policy).unwrap()
}

/// A cache of `frames` frames whose memory can be given back.
fn elastic_cache(frames: u64) -> Arc<PageCache> {
    let region = Region::elastic(frames * PAGE).unwrap();
    PageCache::new(Cells::new(region, PAGE as usize).unwrap(), PolicyKind::S3Fifo).unwrap()
}

/// Writes file `a` to `disk`, and opens a reader with one read queue of this depth.
fn write_and_open<D: Disk>(
    disk: D,
    pages: usize,
    cache: &Arc<PageCache>,
    depth: usize,
    gap_max: u64,
) -> (D, TestFile, PageReader) {
    let written = write_test_file(&disk, "a", pages);
    let queue = new_read_queue(&disk, tested_read_kinds()[0], depth);
    (disk, written, PageReader::new(cache.clone(), queue, ReadCosts::of_gap(gap_max)))
}

/// Pins pages and waits until they are read. Stops at the first page for which there is no frame.
fn read_pages<'f>(
    reader: &mut PageReader,
    cache: &'f PageCache,
    written: &TestFile,
    first: u64,
    count: u64,
) -> Vec<(u64, Pin<'f>)> {
    let mut pinned = Vec::new();
    reader.request(cache, &written.file, first..first + count, 0, |page, pin| pinned.push((page, pin)));
    for (_, pin) in &pinned {
        while !pin.is_settled() {
            reader.wait_for([pin.frame()].into_iter());
        }
    }
    pinned
}

/// Requests two pages, so that their reads may be joined, and waits for both.
fn read_two<'f>(
    reader: &mut PageReader,
    cache: &'f PageCache,
    written: &TestFile,
    pages: [u64; 2],
) -> Vec<(u64, Pin<'f>)> {
    let mut pinned = Vec::new();
    for page in pages {
        reader.request(cache, &written.file, page..page + 1, 0, |page, pin| pinned.push((page, pin)));
    }
    reader.finish();
    pinned
}

fn assert_pages(written: &TestFile, pinned: &[(u64, Pin<'_>)]) {
    pinned.iter().for_each(|(page, pin)| assert_page(written, *page, pin));
}

fn assert_page(written: &TestFile, page: u64, pin: &Pin<'_>) {
    let bytes = pin.page().unwrap();
    let skipped = if page == 0 { 64 } else { 0 };
    let expected = written.page(page);
    assert!(bytes[skipped..skipped + expected.len()] == *expected, "page {page}");
}

/// Closes the reader, and checks that no frame is pinned or loading and no cell is in use.
fn close_and_assert_idle(reader: PageReader, cache: &PageCache) {
    drop(reader);
    assert_idle(cache);
}

/// Checks that no frame is pinned or loading, and no cell is in use.
fn assert_idle(cache: &PageCache) {
    let stats = cache.stats();
    assert_eq!((stats.loading, stats.frames_free + stats.frames_evictable), (0, stats.frames), "{stats:?}");
    let cells = cache.cells();
    assert!((0..cells.len()).all(|cell| cells.write(cell).is_some()), "a cell is in use");
}

/// With one read in flight: the first was submitted before those of lower rank were requested. Which read is
/// number `at` is seen by letting it fail.
#[test]
fn waiting_reads_are_submitted_by_rank() {
    let failed_page = |at: u64| {
        let (disk, cache) =
            (FaultDisk::new(MemDisk::new(), FaultPlan::none()), new_cache(40, PolicyKind::Lru));
        let (disk, written, mut reader) = write_and_open(disk, TEST_FILE_PAGES, &cache, 1, 0);
        fail_read(&disk, at, Repeat::Once);
        let mut pinned = Vec::new();
        for (pages, rank) in [([2, 5, 8, 11], 7), ([31, 3, 20, 26], 1), ([14, 17, 35, 38], 5)] {
            for page in pages {
                let hold = |page, pin| pinned.push((page, pin));
                assert!(reader.request(&cache, &written.file, page..page + 1, rank, hold));
            }
            reader.send();
        }
        reader.finish();
        let failed: Vec<u64> =
            pinned.iter().filter(|(_, pin)| pin.page().is_err()).map(|(page, _)| *page).collect();
        assert_eq!(failed.len(), 1);
        failed[0]
    };
    let order: Vec<u64> = (1..=12).map(failed_page).collect();
    assert_eq!(order, [2, 3, 20, 26, 31, 14, 17, 35, 38, 5, 8, 11]);
}

#[test]
fn concurrent_readers_find_the_bytes_of_the_file() {
    with_watchdog(|| {
        for policy in PolicyKind::ALL {
            for (kind, count) in tested_read_kinds().into_iter().cycle().zip([9, 23, 60]) {
                let disk = MemDisk::new();
                let written = write_test_file(&disk, "a", TEST_FILE_PAGES);
                let cache = new_cache(count, policy);
                thread::scope(|scope| {
                    for number in 0..3u64 {
                        let (cache, written, disk) = (&cache, &written, &disk);
                        scope.spawn(move || {
                            let queue = new_read_queue(disk, kind, 3);
                            let mut reader = PageReader::new(cache.clone(), queue, ReadCosts::of_gap(number));
                            let mut random = number + 1;
                            let mut kept = read_pages(&mut reader, cache, written, number, 1);
                            for _ in 0..400 {
                                random = random
                                    .wrapping_mul(6364136223846793005)
                                    .wrapping_add(1442695040888963407);
                                let first = (random >> 33) % TEST_FILE_PAGES as u64;
                                let pages = (1 + (random >> 20) % 3).min(TEST_FILE_PAGES as u64 - first);
                                let pinned = read_pages(&mut reader, cache, written, first, pages);
                                assert_pages(written, &pinned);
                                assert_pages(written, &kept);
                                if random.is_multiple_of(7) && kept.len() < 2 {
                                    kept.extend(pinned.into_iter().take(1));
                                } else if random.is_multiple_of(5) {
                                    kept.clear();
                                }
                            }
                        });
                    }
                });
                assert_idle(&cache);
                assert!(cache.stats().hits > 0 && cache.stats().failures == 0);
            }
        }
    });
}

#[test]
fn a_page_that_could_not_be_read_is_read_again() {
    with_watchdog(|| {
        for kind in tested_read_kinds() {
            let disk = FaultDisk::new(MemDisk::new(), FaultPlan::none());
            let written = write_test_file(&disk, "a", TEST_FILE_PAGES);
            let cache = new_cache(12, PolicyKind::Lru);
            let mut reader =
                PageReader::new(cache.clone(), new_read_queue(&disk, kind, 2), ReadCosts::of_gap(0));
            for at in 1..6 {
                fail_read(&disk, at, Repeat::Once);
                let mut failed = 0;
                for page in 0..TEST_FILE_PAGES as u64 {
                    for (page, pin) in read_pages(&mut reader, &cache, &written, page, 1) {
                        match pin.page() {
                            Ok(_) => assert_page(&written, page, &pin),
                            Err(error) => {
                                assert_eq!((error.kind(), error.file()), (ErrorKind::Other, "a"));
                                failed += 1;
                                // While the failed frame is pinned it is not reused; the page gets another
                                // frame.
                                assert_pages(&written, &read_pages(&mut reader, &cache, &written, page, 1));
                            }
                        }
                    }
                }
                assert_eq!(failed, disk.injected().min(1));
                disk.arm(FaultPlan::none());
            }
            close_and_assert_idle(reader, &cache);
        }
    });
}

#[test]
fn pages_of_a_short_gap_are_read_too() {
    let cache = new_cache(60, PolicyKind::S3Fifo);
    let (disk, written, mut reader) = write_and_open(MemDisk::new(), TEST_FILE_PAGES, &cache, 4, 2);
    disk.corrupt("a", |bytes| bytes[4 * PAGE as usize + 17] ^= 4);
    let mut reads = 0;
    // Two requested pages, the number of reads for both, and the pages that are cached afterwards.
    for (wanted, new_reads, cached) in [
        ([0, 2], 1, vec![0, 1, 2]),
        // The page between them is damaged, which is not an error of the requested pages.
        ([3, 5], 1, vec![3, 5]),
        ([10, 14], 2, vec![10, 14]),
        ([20, 23], 1, vec![20, 21, 22, 23]),
        ([19, 25], 2, vec![19, 25]),
        ([17, 26], 2, vec![17, 26]),
        // Here and below, a page between them is cached already.
        ([16, 18], 1, vec![16, 17, 18]),
        ([15, 28], 2, vec![15, 28]),
        ([24, 27], 1, vec![24, 25, 26, 27]),
    ] {
        let pinned = read_two(&mut reader, &cache, &written, wanted);
        assert_pages(&written, &pinned);
        reads += new_reads;
        assert_eq!(cache.stats().reads, reads, "{wanted:?}");
        drop(pinned);
        for page in cached {
            assert_pages(&written, &read_pages(&mut reader, &cache, &written, page, 1));
        }
        assert_eq!(cache.stats().reads, reads, "{wanted:?}");
    }
    // Pages of two files are not joined.
    let other = write_test_file(&disk, "b", TEST_FILE_PAGES);
    let mut pinned = Vec::new();
    for (written, page) in [(&written, 30), (&other, 1), (&other, 3)] {
        let hold = |page, pin| pinned.push((written, page, pin));
        reader.request(&cache, &written.file, page..page + 1, 0, hold);
    }
    reader.finish();
    pinned.iter().for_each(|(written, page, pin)| assert_page(written, *page, pin));
    assert_eq!(cache.stats().reads, reads + 2);
    drop(pinned);
    assert!(read_pages(&mut reader, &cache, &written, 4, 1)[0].1.page().is_err());
    close_and_assert_idle(reader, &cache);
}

#[test]
fn a_cached_page_of_a_gap_is_evicted_for_itself() {
    let cache = new_cache(16, PolicyKind::Lru);
    let (_, written, mut reader) = write_and_open(MemDisk::new(), TEST_FILE_PAGES, &cache, 4, 2);
    // Page 11 is the least recently used when a frame for it is taken.
    for (first, count) in [(11, 1), (20, 13)] {
        read_pages(&mut reader, &cache, &written, first, count);
    }
    let mut pinned = read_two(&mut reader, &cache, &written, [10, 12]);
    assert_eq!((cache.stats().reads, cache.stats().evictions), (3, 1));
    pinned.extend(read_pages(&mut reader, &cache, &written, 11, 1));
    assert_pages(&written, &pinned);
    assert_eq!(cache.stats().reads, 3);
    drop(pinned);
    close_and_assert_idle(reader, &cache);
}

#[test]
fn cached_pages_before_one_without_a_frame_are_not_read() {
    let cache = new_cache(48, PolicyKind::Lru);
    let (disk, written, mut reader) = write_and_open(MemDisk::new(), TEST_FILE_PAGES, &cache, 4, 3);
    let mut pinned = read_pages(&mut reader, &cache, &written, 11, 1);
    // All frames but those of the requested pages and one more are pinned.
    let others = write_test_file(&disk, "b", TEST_FILE_PAGES + 10);
    pinned.extend(read_pages(&mut reader, &cache, &others, 0, 44));
    let bytes = cache.stats().bytes_read;
    pinned.extend(read_two(&mut reader, &cache, &written, [10, 14]));
    // The frame that is left is taken for page 11, and none is left for page 12.
    assert_eq!(cache.stats().bytes_read - bytes, 2 * PAGE);
    drop(pinned);
    close_and_assert_idle(reader, &cache);
}

#[test]
fn an_error_of_a_read_with_a_gap_is_that_of_its_page_alone() {
    let cache = new_cache(60, PolicyKind::S3Fifo);
    let (disk, written, mut reader) =
        write_and_open(FaultDisk::new(MemDisk::new(), FaultPlan::none()), TEST_FILE_PAGES, &cache, 1, 2);
    // The read of all three pages fails. Then, for `at` 3, the read of the page between them fails too; for
    // `at` 2 that page is cached already.
    for (at, failed) in [(1, 0), (3, 1), (2, 1)] {
        let first = 10 * at;
        if at == 2 {
            read_pages(&mut reader, &cache, &written, first + 1, 1);
        }
        if at == 3 {
            let damaged = first + 1;
            disk.inner().corrupt("a", |bytes| bytes[(damaged * PAGE) as usize] ^= 1);
        }
        fail_read(&disk, 1, Repeat::Once);
        let pinned = read_two(&mut reader, &cache, &written, [first, first + 2]);
        assert_pages(&written, &pinned);
        assert_eq!(cache.stats().failures, failed);
    }
    assert_eq!(cache.stats().reads, 12);
    close_and_assert_idle(reader, &cache);
}

#[test]
fn only_the_damaged_page_of_a_read_is_an_error() {
    let cache = new_cache(30, PolicyKind::Sieve);
    let (disk, written, mut reader) = write_and_open(MemDisk::new(), TEST_FILE_PAGES, &cache, 4, 0);
    disk.corrupt("a", |bytes| bytes[5 * PAGE as usize + 17] ^= 4);
    for (page, pin) in read_pages(&mut reader, &cache, &written, 0, 12) {
        match page {
            5 => {
                let error = pin.page().unwrap_err();
                assert_eq!((error.kind(), error.offset()), (ErrorKind::Corrupt, Some(5 * PAGE)));
            }
            _ => assert_page(&written, page, &pin),
        }
    }
    close_and_assert_idle(reader, &cache);
}

#[test]
fn a_request_stops_at_the_first_page_without_a_frame() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let written = write_test_file(&*disk, "a", TEST_FILE_PAGES);
    let cache = new_cache(8, PolicyKind::S3Fifo);
    let mut reader = PageReader::new(
        cache.clone(),
        new_read_queue(&*disk, tested_read_kinds()[0], 4),
        ReadCosts::of_gap(0),
    );
    let pinned = read_pages(&mut reader, &cache, &written, 3, 12);
    assert_eq!(pinned.len(), 8);
    assert!(read_pages(&mut reader, &cache, &written, 30, 1).is_empty());
    assert_eq!(read_pages(&mut reader, &cache, &written, 4, 3).len(), 3);
    assert_pages(&written, &pinned);
    drop(pinned);
    assert_eq!(read_pages(&mut reader, &cache, &written, 30, 5).len(), 5);
    close_and_assert_idle(reader, &cache);
}

#[test]
fn an_elastic_cache_gives_frames_back_that_are_not_pinned() {
    with_watchdog(|| {
        let cache = elastic_cache(600);
        let (_, written, mut reader) = write_and_open(MemDisk::new(), 1000, &cache, 3, 0);
        let pinned = read_pages(&mut reader, &cache, &written, 0, 100);
        drop(read_pages(&mut reader, &cache, &written, 100, 400));
        assert_eq!((cache.resize(300), cache.stats().frames), (300, 300));
        assert_eq!((cache.resize(50), cache.stats().frames), (100, 100), "pinned pages stay");
        assert_eq!(read_pages(&mut reader, &cache, &written, 600, 1).len(), 0, "all frames are pinned");
        assert_pages(&written, &pinned);
        drop(pinned);
        assert_eq!(cache.resize(50), 50);
        assert_eq!(cache.resize(1000), 600);
        // A group of pages is evicted as a whole, so each of the two shards may have up to 7 more.
        assert!((550..=564).contains(&cache.stats().frames_free), "{:?}", cache.stats());
        for first in [0, 500] {
            let pinned = read_pages(&mut reader, &cache, &written, first, 500);
            assert_eq!(pinned.len(), 500);
            assert_pages(&written, &pinned);
        }
        close_and_assert_idle(reader, &cache);
        assert_eq!(new_cache(10, PolicyKind::Lru).resize(5), 10, "other regions keep their size");
    });
}

#[test]
fn a_cache_is_resized_while_pages_are_read() {
    with_watchdog(|| {
        let disk = MemDisk::new();
        let written = write_test_file(&disk, "a", 400);
        let cache = elastic_cache(600);
        thread::scope(|scope| {
            for number in 0..2u64 {
                let (cache, written, disk) = (&cache, &written, &disk);
                scope.spawn(move || {
                    let queue = new_read_queue(disk, tested_read_kinds()[0], 3);
                    let mut reader = PageReader::new(cache.clone(), queue, ReadCosts::of_gap(number));
                    for round in 0..300 {
                        let first = (round * 37 + number * 11) % 390;
                        let pinned = read_pages(&mut reader, cache, written, first, 10);
                        assert_eq!(pinned.len(), 10);
                        assert_pages(written, &pinned);
                    }
                });
            }
            for round in 0..300 {
                cache.resize(100 + round * 71 % 500);
            }
        });
        assert_eq!(cache.resize(100), 100);
        assert_idle(&cache);
    });
}

#[test]
fn free_frames_are_filled_and_no_page_is_evicted() {
    for policy in PolicyKind::ALL {
        let cache = new_cache(20, policy);
        let (_, written, mut reader) = write_and_open(MemDisk::new(), TEST_FILE_PAGES, &cache, 2, 0);
        let pinned = read_pages(&mut reader, &cache, &written, 2, 3);
        drop(read_pages(&mut reader, &cache, &written, 10, 5));
        let before = cache.stats();
        // Of 30 pages 8 are cached, and 12 get the frames that are left.
        assert_eq!(reader.fill_free_frames(&written.file, 0..30, 0), 12);
        assert_eq!(reader.fill_free_frames(&written.file, 0..40, 1), 0);
        reader.finish();
        let stats = cache.stats();
        assert_eq!((stats.evictions, stats.failures, stats.fetched, stats.frames_free), (0, 0, 20, 0));
        assert_eq!((stats.hits, stats.misses), (before.hits, before.misses));
        // Pages 0 and 1, 5 to 9, and 15 to 19.
        assert_eq!(stats.reads - before.reads, 3);
        assert_pages(&written, &pinned);
        drop(pinned);
        assert_pages(&written, &read_pages(&mut reader, &cache, &written, 0, 20));
        assert_eq!((cache.stats().misses, cache.stats().reads), (before.misses, stats.reads));
        // The pages can be evicted.
        assert_pages(&written, &read_pages(&mut reader, &cache, &written, 20, 20));
        assert_eq!(cache.stats().evictions, 20);
        close_and_assert_idle(reader, &cache);
    }
    let cache = new_cache(600, PolicyKind::S3Fifo);
    let (_, written, mut reader) = write_and_open(MemDisk::new(), 1000, &cache, 4, 0);
    let filled =
        (0..1000).step_by(50).map(|first| reader.fill_free_frames(&written.file, first..first + 50, 0));
    assert_eq!((filled.sum::<usize>(), cache.stats().frames_free), (600, 0));
    close_and_assert_idle(reader, &cache);
}

#[test]
fn an_error_of_a_read_into_free_frames_is_that_of_its_page_alone() {
    let cache = new_cache(60, PolicyKind::S3Fifo);
    let disk = FaultDisk::new(MemDisk::new(), FaultPlan::none());
    let (disk, written, mut reader) = write_and_open(disk, TEST_FILE_PAGES, &cache, 1, 2);
    // The read of all pages fails; then only that one, or those of each page too.
    for (first, repeat, failed) in [(0, Repeat::Once, 0), (10, Repeat::Forever, 5)] {
        fail_read(&disk, 1, repeat);
        assert_eq!(reader.fill_free_frames(&written.file, first..first + 5, 0), 5);
        reader.finish();
        assert!(disk.injected() > 0);
        assert_eq!(cache.stats().failures, failed);
        disk.arm(FaultPlan::none());
        assert_pages(&written, &read_pages(&mut reader, &cache, &written, first, 5));
        assert_eq!(cache.stats().misses, failed, "the pages that failed are read again");
    }
    disk.inner().corrupt("a", |bytes| bytes[22 * PAGE as usize] ^= 1);
    assert_eq!(reader.fill_free_frames(&written.file, 20..25, 0), 5);
    reader.finish();
    assert_eq!((cache.stats().failures, cache.stats().frames_used()), (6, 14));
    close_and_assert_idle(reader, &cache);
}

/// Requests pages of the file one at a time, in runs that often repeat. Returns the number of misses.
fn request_repeated_runs(cache: &Arc<PageCache>, disk: &MemDisk, written: &TestFile, pages: u64) -> u64 {
    let queue = new_read_queue(disk, tested_read_kinds()[0], 2);
    let mut reader = PageReader::new(cache.clone(), queue, ReadCosts::of_gap(0));
    let mut random = 1u64;
    for _ in 0..2000 {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let popular = if random >> 60 < 10 { pages / 8 } else { pages };
        let first = (random >> 33) % popular;
        for page in first..pages.min(first + 1 + (random >> 20) % 12) {
            assert_page(written, page, &read_pages(&mut reader, cache, written, page, 1)[0].1);
        }
    }
    cache.counts().misses
}

#[test]
fn ghost_caches_have_the_misses_of_caches_of_their_size() {
    // From 512 frames on a cache has several shards.
    let (pages, frames) = (2000, [1, 16, 100, 511, 700, 1100, 2500]);
    let disk = MemDisk::new();
    let written = write_test_file(&disk, "a", pages as usize);
    for policy in PolicyKind::ALL {
        let misses = |cache| request_repeated_runs(&cache, &disk, &written, pages);
        let observed = new_cache(800, policy);
        let ghosts = GhostCaches::new(&frames, policy, ReadCosts::of_gap(0), 1 << 30);
        let ghosts = Arc::new(Mutex::new(ghosts));
        let requested = ghosts.clone();
        observed.observe_requests(move |page| requested.lock().unwrap().request(page));
        misses(observed.clone());
        let counts = ghosts.lock().unwrap().counts();
        let stats = observed.stats();
        assert_eq!(counts.requests, stats.hits + stats.misses);
        let real = frames.map(|frames| misses(new_cache(frames, policy)) as f64);
        assert!(real.is_sorted_by(|small, large| small > large), "{policy}: {real:?}");
        let misses: Vec<f64> = counts.sizes.iter().map(|size| size.misses).collect();
        assert_eq!(misses, real, "{policy}");
    }
}
