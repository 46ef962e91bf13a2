//! Admission, pace and eviction step by step: the test decides when lists are filled. Figures 7.8 to 7.10
//! of the thesis.

use super::*;
use crate::cache::{key::ListKey, request::RequestedRange};
use tierdex_io::{Identity, MemDisk, PAGE, SealedFile, SealedWriter};

/// A cache of cells of one page each, and one worker that the test controls.
struct Harness {
    state: ListCacheState,
    file: Arc<SealedFile>,
}

impl Harness {
    fn new(cells: u32, lookahead: Lookahead) -> Harness {
        let disk = MemDisk::new();
        let identity = Identity { kind: 1, field: 0, segment: 1 };
        let mut writer = SealedWriter::create(&disk, "a", identity).unwrap();
        writer.write(&vec![0; 64 * PAGE as usize]).unwrap();
        let seal = writer.finish().unwrap();
        let file = Arc::new(SealedFile::open(&disk, "a", identity, seal).unwrap());
        let (links, free) = CellLinks::new(cells);
        let mut state = ListCacheState::new(Arc::new(links), free, PAGE as usize);
        state.worker_runs = true;
        state.pace.lookahead = lookahead;
        Harness { state, file }
    }

    fn request(&self, list: u64, cells: u64) -> ListRequest {
        let part = RequestedRange::new(Arc::clone(&self.file), PAGE..PAGE * (1 + cells)).unwrap();
        ListRequest::new(ListKey(list, 0), vec![part]).unwrap()
    }

    /// Pushes a query of lists, each given by its number and its size in cells.
    fn push(&mut self, lists: &[(u64, u64)]) -> u64 {
        let requests = lists.iter().map(|(list, cells)| self.request(*list, *cells)).collect();
        self.state.queue.push(requests, false)
    }

    fn end_query(&mut self, query: u64) {
        self.state.end_query(query);
    }

    /// Fills entries until there is no task.
    fn finish_all_fetches(&mut self) {
        self.state.admit_lists();
        while let Some(FetchTask { entry, .. }) = self.state.take_task() {
            self.state.admit_lists();
            self.state.finish_fill(entry, Ok(()));
            self.state.admit_lists();
        }
        let stats = self.state.stats();
        assert_eq!(stats.loading, 0);
    }

    fn admission(&self, query: u64, list: usize) -> Option<Admission> {
        self.state.queue.list(query, list).1
    }

    /// Whether the first list of a query is admitted.
    fn is_admitted(&self, query: u64) -> bool {
        self.admission(query, 0).is_some()
    }

    /// Whether a list of a query is pinned in the cache.
    fn is_pinned(&self, query: u64, list: usize) -> bool {
        matches!(self.admission(query, list), Some(Admission::Cached(_)))
    }

    fn is_cached(&self, list: u64) -> bool {
        self.state.entries.find_entry(ListKey(list, 0)).is_some()
    }
}

#[test]
fn the_worker_waits_as_in_figure_7_8() {
    let mut harness = Harness::new(8, Lookahead::Adaptive);
    let [t0, t1, t2] = [(0, 4), (1, 1), (2, 4)].map(|list| harness.push(&[list]));
    harness.finish_all_fetches();
    assert_eq!(harness.state.pace.rolling_sum(), 5);
    assert!(harness.is_admitted(t0) && harness.is_admitted(t1) && !harness.is_admitted(t2));
    harness.end_query(t0);
    assert_eq!(harness.state.pace.rolling_sum(), 1);
    assert!(harness.is_cached(0));
    harness.finish_all_fetches();
    assert!(harness.is_admitted(t2) && !harness.is_cached(0));
    assert_eq!((harness.state.pace.rolling_sum(), harness.state.stats().evictions), (5, 1));
}

#[test]
fn a_repeated_term_counts_again_as_in_figure_7_9() {
    let mut harness = Harness::new(8, Lookahead::Adaptive);
    let [first, second] = [(0, 4), (0, 4)].map(|list| harness.push(&[list]));
    harness.finish_all_fetches();
    assert_eq!(harness.state.pace.rolling_sum(), 8);
    harness.end_query(first);
    assert_eq!(harness.state.pace.rolling_sum(), 4);
    let [t1, t2] = [(1, 4), (2, 1)].map(|list| harness.push(&[list]));
    harness.finish_all_fetches();
    assert!(harness.is_admitted(t1) && !harness.is_admitted(t2), "t0 is in use, t1 waits");
    harness.end_query(second);
    harness.finish_all_fetches();
    assert!(harness.is_admitted(t2) && !harness.is_cached(0));
}

#[test]
fn the_worker_waits_as_in_figure_7_10() {
    let mut harness = Harness::new(8, Lookahead::Adaptive);
    let [t0, t1, _again, t2] = [(0, 2), (1, 5), (0, 2), (2, 2)].map(|list| harness.push(&[list]));
    harness.finish_all_fetches();
    harness.end_query(t0);
    harness.finish_all_fetches();
    assert_eq!(harness.state.pace.rolling_sum(), 7);
    assert!(!harness.is_admitted(t2) && harness.is_cached(1), "t1 is least recently used, and in use");
    harness.end_query(t1);
    harness.finish_all_fetches();
    assert!(harness.is_admitted(t2) && harness.is_cached(0) && !harness.is_cached(1));
}

#[test]
fn only_the_adaptive_lookahead_waits_for_the_rolling_sum() {
    for (lookahead, goes_on) in [(Lookahead::Adaptive, false), (Lookahead::Queries(9), true)] {
        let mut harness = Harness::new(8, lookahead);
        let old = harness.push(&[(9, 5)]);
        harness.finish_all_fetches();
        harness.end_query(old);
        let repeated = [(); 4].map(|()| harness.push(&[(0, 1)]));
        let next = harness.push(&[(1, 3)]);
        harness.finish_all_fetches();
        assert_eq!(harness.is_admitted(next), goes_on, "{lookahead:?}");
        // 4 + 2 taken + 5 > 8, and so on until 1 + 2 + 5.
        for (query, ended) in repeated.into_iter().zip(1..) {
            harness.end_query(query);
            harness.finish_all_fetches();
            assert_eq!(harness.is_admitted(next), goes_on || ended >= 3, "{lookahead:?}, {ended}");
        }
    }
}

#[test]
fn a_fixed_lookahead_counts_queries() {
    let mut harness = Harness::new(8, Lookahead::Queries(2));
    let queries: Vec<u64> = (0..8).map(|list| harness.push(&[(list, 1)])).collect();
    for oldest in 0..8 {
        harness.finish_all_fetches();
        let admitted = queries[oldest..].iter().filter(|query| harness.is_admitted(**query)).count();
        assert_eq!(admitted, 3.min(8 - oldest));
        harness.end_query(queries[oldest]);
    }
    assert_eq!(harness.state.stats().lookahead_max, 2);
}

#[test]
fn ended_queries_do_not_count_as_lookahead() {
    let mut harness = Harness::new(16, Lookahead::Queries(2));
    let queries: Vec<u64> = (0..12).map(|list| harness.push(&[(list, 1)])).collect();
    let admitted =
        |harness: &Harness| (0..12).rev().find(|query| harness.is_admitted(queries[*query])).unwrap();
    harness.finish_all_fetches();
    assert_eq!(admitted(&harness), 2);
    // Several threads evaluate, and the oldest query is slow.
    for next in 3..12 {
        harness.end_query(queries[next - 2]);
        harness.finish_all_fetches();
        assert_eq!((admitted(&harness), harness.state.stats().lookahead), (next, 2));
    }
}

#[test]
fn ended_queries_behind_an_open_one_are_removed() {
    let mut harness = Harness::new(16, Lookahead::Adaptive);
    let held = harness.push(&[(0, 1), (1, 1)]);
    let mut last = harness.push(&[(1, 1)]);
    for list in 0..5000 {
        let query = harness.push(&[(2 + list % 20, 1)]);
        harness.finish_all_fetches();
        assert!(harness.is_admitted(last));
        harness.end_query(std::mem::replace(&mut last, query));
        if list == 3000 {
            // A query that is dropped before its turn, and a detached one.
            let request = harness.request(40, 1);
            harness.state.queue.push(vec![request], true);
            let given_up = harness.push(&[(3, 1)]);
            harness.end_query(given_up);
        }
        assert!(harness.state.queue.entries() <= 2 * 4 + 64);
    }
    let stats = harness.state.stats();
    assert_eq!((stats.queries, harness.state.queue.ended), (2, 5002));
    assert!((0..2).all(|list| harness.admission(held, list).is_some()) && harness.is_admitted(last));
    harness.end_query(held);
    harness.end_query(last);
    assert_eq!(harness.state.queue.entries(), 0);
}

#[test]
fn the_oldest_query_streams_lists_that_do_not_fit() {
    let mut harness = Harness::new(4, Lookahead::Adaptive);
    let query = harness.push(&[(0, 2), (1, 2), (2, 2), (3, 5), (1, 2)]);
    let next = harness.push(&[(2, 2), (4, 2)]);
    harness.finish_all_fetches();
    let cached: Vec<bool> = (0..5).map(|list| harness.is_pinned(query, list)).collect();
    assert_eq!(cached, [true, true, false, false, true]);
    assert_eq!(harness.admission(next, 0), None);
    harness.end_query(query);
    harness.finish_all_fetches();
    assert!((0..2).all(|list| harness.is_pinned(next, list)));
    let stats = harness.state.stats();
    assert_eq!((stats.streamed, stats.misses, stats.hits), (2, 6, 1));
}

#[test]
fn the_next_request_retries_a_failed_list() {
    let mut harness = Harness::new(8, Lookahead::Adaptive);
    let [first, second] = [(0, 4), (0, 4)].map(|list| harness.push(&[list]));
    harness.state.admit_lists();
    let FetchTask { entry, .. } = harness.state.take_task().unwrap();
    harness.state.finish_fill(entry, Err(Error::corrupt("a", 1, "x")));
    let stats = harness.state.stats();
    assert_eq!((stats.cells_free, stats.failures), (7, 1), "all but the head are given back");
    assert_eq!((stats.misses, stats.hits, stats.fetched), (1, 1, 0));
    for query in [first, second] {
        assert_eq!(harness.admission(query, 0), Some(Admission::Cached(entry)));
        assert!(harness.state.error(entry).is_some());
    }
    let third = harness.push(&[(0, 4)]);
    harness.finish_all_fetches();
    assert!(harness.admission(third, 0).is_some_and(|admission| admission != Admission::Cached(entry)));
    [first, second, third].into_iter().for_each(|query| harness.end_query(query));
    let stats = harness.state.stats();
    assert_eq!((stats.cells_free, stats.cells_evictable, stats.rolling_sum), (4, 4, 0));
}

#[test]
fn detached_lists_are_fetched_and_not_pinned() {
    let mut harness = Harness::new(4, Lookahead::Adaptive);
    let requests = [harness.request(0, 3), harness.request(1, 5), harness.request(2, 1)];
    requests.into_iter().for_each(|request| harness.state.push_detached(request));
    harness.finish_all_fetches();
    let stats = harness.state.stats();
    assert_eq!((stats.queries, stats.cells_evictable, stats.streamed), (0, 4, 0));
    assert_eq!((stats.hits, stats.misses, stats.fetched), (0, 0, 2));
    assert!(harness.is_cached(0) && !harness.is_cached(1) && harness.is_cached(2));
}

#[test]
fn detached_requests_are_limited_and_ignored_after_shutdown() {
    let mut harness = Harness::new(4, Lookahead::Queries(0));
    let held = [harness.push(&[(0, 1)]), harness.push(&[(1, 1)])];
    for list in 0..2000 {
        let request = harness.request(2 + list, 1);
        harness.state.push_detached(request);
    }
    assert_eq!(harness.state.stats().queries, 2 + 1024);
    held.into_iter().for_each(|query| harness.end_query(query));
    harness.finish_all_fetches();
    assert_eq!(harness.state.stats().queries, 0);
    harness.state.stopping = true;
    let request = harness.request(7, 1);
    harness.state.push_detached(request);
    assert_eq!(harness.state.stats().queries, 0);
}
