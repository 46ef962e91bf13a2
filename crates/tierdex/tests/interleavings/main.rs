//! Runs small multi-threaded programs in all possible interleavings (by loom) over the shared state of the
//! engine: tickets, the memory pool, the current snapshot, and the states of pages in the cache. The source
//! files of the engine are compiled again here, with the types of loom in place of those of `std::sync`.
#![allow(dead_code, unreachable_pub)]

mod sync {
    pub use loom::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
    pub use loom::sync::{Condvar, Mutex, MutexGuard};
}

mod error {
    pub use tierdex::{Error, Result};
}

mod hash {
    /// A replacement of the hash function of the cache.
    pub fn mix_bits(number: u64) -> u64 {
        number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

#[path = "../../../cache/src/page_cache.rs"]
mod page_cache;
#[path = "../../../cache/src/page_table.rs"]
mod page_table;
#[path = "../../../cache/src/policy/mod.rs"]
mod policy;
#[path = "../../../cache/src/stats.rs"]
mod stats;

mod engine {
    pub mod request {
        /// A replacement of the hits of a search: a number.
        #[derive(Debug, PartialEq)]
        pub struct Hits(pub u32);
    }

    mod sync {
        pub use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
        pub use loom::sync::{Condvar, Mutex, MutexGuard, RwLock};
    }

    #[path = "../../../src/engine/current.rs"]
    mod current;
    #[path = "../../../src/engine/pool.rs"]
    mod pool;
    mod pool_tests;
    #[path = "../../../src/engine/priority.rs"]
    mod priority;
    mod tests;
    #[path = "../../../src/engine/ticket.rs"]
    mod ticket;
}

use loom::thread;
use page_cache::{PageCache, PageLookup};
use page_table::PageKey;
use policy::PolicyKind;
use std::sync::Arc;
use tierdex_io::{Cells, Error, ErrorKind, PAGE, Region, RegionKind};

fn new_cache(count: u64) -> Arc<PageCache> {
    let region = Region::new(&RegionKind::Dram, count * PAGE).unwrap();
    PageCache::new(Cells::new(region, PAGE as usize).unwrap(), PolicyKind::Lru).unwrap()
}

/// Whether this thread filled the frame, and the first byte of the page.
type ReadOutcome = (bool, Result<u8, ErrorKind>);

/// Reads a page as a thread of the engine does; `None` if no frame was free. If `fails`, a read from disk
/// fails.
fn read_page(cache: &PageCache, key: PageKey, fails: bool) -> Option<ReadOutcome> {
    let mut found = None;
    cache.lookup(key.file, key.page..key.page + 1, |_, page| found = Some(page));
    let (pin, fills) = match found? {
        PageLookup::Pinned(pin) => (pin, false),
        PageLookup::Fill(pin) => {
            cache.cells().write(pin.frame() as usize).unwrap()[0] = 7;
            let error = || Error::new(ErrorKind::Denied, "read", "a page", "as a test wants it");
            cache.complete_pages([(pin.frame(), if fails { Err(error()) } else { Ok(()) })]);
            (pin, true)
        }
    };
    if !pin.is_settled() {
        cache.wait_for_any([pin.frame()].into_iter());
    }
    Some((fills, pin.page().map(|page| page[0]).map_err(|error| error.kind())))
}

/// Reads a page in this thread and one in another thread concurrently. Returns both results.
fn read_by_two(
    cache: &Arc<PageCache>,
    keys: (PageKey, PageKey),
    fails: bool,
) -> (Option<ReadOutcome>, Option<ReadOutcome>) {
    let other = {
        let cache = cache.clone();
        thread::spawn(move || read_page(&cache, keys.1, fails))
    };
    let own = read_page(cache, keys.0, fails);
    (own, other.join().unwrap())
}

#[test]
fn a_page_is_filled_once_and_everyone_sees_it() {
    loom::model(|| {
        let cache = new_cache(2);
        let (own, other) = read_by_two(&cache, (PageKey::new(1, 0), PageKey::new(1, 0)), false);
        let (own, other) = (own.unwrap(), other.unwrap());
        assert!(own.0 != other.0);
        assert_eq!((own.1, other.1), (Ok(7), Ok(7)));
    });
}

#[test]
fn a_page_that_cannot_be_read_is_an_error_for_those_that_wait_and_is_tried_again() {
    loom::model(|| {
        let cache = new_cache(2);
        let key = PageKey::new(1, 0);
        let (own, other) = read_by_two(&cache, (key, key), true);
        let (own, other) = (own.unwrap(), other.unwrap());
        assert!(own.1 == Err(ErrorKind::Denied) && other.1 == Err(ErrorKind::Denied));
        assert_eq!(read_page(&cache, key, false).unwrap(), (true, Ok(7)));
    });
}

#[test]
fn a_frame_that_is_read_is_not_evicted() {
    loom::model(|| {
        let cache = new_cache(1);
        let (own, other) = read_by_two(&cache, (PageKey::new(1, 1), PageKey::new(1, 0)), false);
        // One of the threads may find the only frame pinned. Writing to a pinned page would panic.
        let found = [own, other];
        assert!(found.iter().any(Option::is_some));
        assert!(found.into_iter().flatten().all(|found| found == (true, Ok(7))));
    });
}

#[test]
fn a_free_frame_is_filled_beside_a_thread_that_reads() {
    // The same page, or another one in the only frame.
    for (frames, key) in [(1, PageKey::new(1, 0)), (1, PageKey::new(1, 1)), (2, PageKey::new(1, 1))] {
        loom::model(move || {
            let cache = new_cache(frames);
            let other = {
                let cache = cache.clone();
                thread::spawn(move || read_page(&cache, key, false))
            };
            let mut filled = None;
            cache.take_free_frames(1, 0..1, 0, |_, frame| filled = Some(frame));
            if let Some(frame) = filled {
                // No other thread has the cell, though the frame is not pinned.
                cache.cells().write(frame as usize).unwrap()[0] = 7;
                cache.complete_pages([(frame, Ok(()))]);
            }
            let read = other.join().unwrap();
            assert!(read.is_some() || filled.is_some());
            assert!(read.is_none_or(|(_, page)| page == Ok(7)));
            assert_eq!(cache.stats().loading, 0);
        });
    }
}

#[test]
fn a_page_that_is_read_keeps_its_frame_while_the_cache_shrinks() {
    loom::model(|| {
        let cells = Cells::new(Region::elastic(2 * PAGE).unwrap(), PAGE as usize).unwrap();
        let cache = PageCache::new(cells, PolicyKind::Lru).unwrap();
        let other = {
            let cache = cache.clone();
            thread::spawn(move || read_page(&cache, PageKey::new(1, 0), false).unwrap())
        };
        assert_eq!(cache.resize(1), 1);
        assert_eq!(other.join().unwrap(), (true, Ok(7)));
        assert_eq!((cache.resize(2), cache.stats().frames), (2, 2));
    });
}

#[test]
fn pages_of_closed_files_are_forgotten_unless_they_are_read() {
    loom::model(|| {
        let cache = new_cache(1);
        let other = {
            let cache = cache.clone();
            thread::spawn(move || read_page(&cache, PageKey::new(1, 0), false).unwrap())
        };
        cache.evict_files(&[1]);
        assert_eq!(other.join().unwrap(), (true, Ok(7)));
        cache.evict_files(&[1]);
        assert_eq!(cache.stats().frames_free, 1);
    });
}
