//! Admission, pace and eviction by hand: a desk where lists are filled when the test says so. Figures 7.8 to 7.10 of the thesis.

use super::*;
use crate::chains::Key;
use crate::job::Part;
use crate::policy::PolicyKind;
use tierdex_io::{Identity, MemDisk, PAGE, SealedFile, SealedWriter};

/// A cache of `segments` segments of one page each, and one worker that does as the test says.
struct Desk {
    state: State,
    file: Arc<SealedFile>,
    places: Vec<Places>,
}

impl Desk {
    fn new(segments: u32, policy: PolicyKind, lookahead: Lookahead) -> Desk {
        let disk = MemDisk::new();
        let identity = Identity { kind: 1, field: 0, segment: 1 };
        let mut writer = SealedWriter::create(&disk, "a", identity).unwrap();
        writer.write(&vec![0; 64 * PAGE as usize]).unwrap();
        let seal = writer.finish().unwrap();
        let file = Arc::new(SealedFile::open(&disk, "a", identity, seal).unwrap());
        let (links, free) = Links::new(segments);
        let mut state = State::new(Arc::new(links), free, policy.policy(segments), PAGE as usize);
        state.workers = 1;
        state.pace.lookahead = lookahead;
        Desk { state, file, places: Vec::new() }
    }

    fn job(&self, list: u64, segments: u64) -> Job {
        let part = Part::new(Arc::clone(&self.file), PAGE..PAGE * (1 + segments)).unwrap();
        Job::new(Key(list, 0), vec![part]).unwrap()
    }

    /// A query of lists and their sizes.
    fn push(&mut self, lists: &[(u64, u64)]) -> u64 {
        let jobs = lists.iter().map(|(list, segments)| self.job(*list, *segments)).collect();
        let (number, places) = self.state.push(jobs, false);
        assert_eq!(number, self.places.len() as u64);
        self.places.push(places);
        number
    }

    fn end(&mut self, query: u64) {
        self.state.end(query, &self.places[query as usize]);
    }

    /// Lets the worker fill what it gets, until it gets nothing more.
    fn work(&mut self) {
        self.state.advance();
        while let Some(Order { chain, .. }) = self.state.take_order() {
            self.state.advance();
            self.state.fill_ended(chain, Ok(()));
            self.state.advance();
        }
        let stats = self.state.stats();
        assert_eq!(stats.loading, 0);
    }

    fn place(&self, query: u64, list: usize) -> Option<Place> {
        self.state.list(query, list).1
    }

    fn is_there(&self, list: u64) -> bool {
        self.state.chains.find(Key(list, 0)).is_some()
    }
}

#[test]
fn the_worker_waits_as_in_figure_7_8() {
    let mut desk = Desk::new(8, PolicyKind::Lru, Lookahead::Adaptive);
    let [t0, t1, t2] = [(0, 4), (1, 1), (2, 4)].map(|list| desk.push(&[list]));
    desk.work();
    assert_eq!(desk.state.pace.rolling_sum(), 5);
    assert!(desk.place(t0, 0).is_some() && desk.place(t1, 0).is_some() && desk.place(t2, 0).is_none());
    desk.end(t0);
    assert_eq!(desk.state.pace.rolling_sum(), 1);
    assert!(desk.is_there(0));
    desk.work();
    assert!(desk.place(t2, 0).is_some() && !desk.is_there(0));
    assert_eq!((desk.state.pace.rolling_sum(), desk.state.stats().evictions), (5, 1));
}

#[test]
fn a_repeated_term_counts_again_as_in_figure_7_9() {
    let mut desk = Desk::new(8, PolicyKind::Lru, Lookahead::Adaptive);
    let [first, second] = [(0, 4), (0, 4)].map(|list| desk.push(&[list]));
    desk.work();
    assert_eq!(desk.state.pace.rolling_sum(), 8);
    desk.end(first);
    assert_eq!(desk.state.pace.rolling_sum(), 4);
    let [t1, t2] = [(1, 4), (2, 1)].map(|list| desk.push(&[list]));
    desk.work();
    assert!(desk.place(t1, 0).is_some() && desk.place(t2, 0).is_none(), "t0 is in use, t1 waits");
    desk.end(second);
    desk.work();
    assert!(desk.place(t2, 0).is_some() && !desk.is_there(0));
}

#[test]
fn the_worker_waits_as_in_figure_7_10() {
    let mut desk = Desk::new(8, PolicyKind::Lru, Lookahead::Adaptive);
    let [t0, t1, _again, t2] = [(0, 2), (1, 5), (0, 2), (2, 2)].map(|list| desk.push(&[list]));
    desk.work();
    desk.end(t0);
    desk.work();
    assert_eq!(desk.state.pace.rolling_sum(), 7);
    assert!(desk.place(t2, 0).is_none() && desk.is_there(1), "t1 is least recently used, and in use");
    desk.end(t1);
    desk.work();
    assert!(desk.place(t2, 0).is_some() && desk.is_there(0) && !desk.is_there(1));
}

#[test]
fn the_rolling_sum_sets_a_pace_that_pins_do_not() {
    for (lookahead, goes_on) in [(Lookahead::Adaptive, false), (Lookahead::Pins, true)] {
        let mut desk = Desk::new(8, PolicyKind::Lru, lookahead);
        let old = desk.push(&[(9, 5)]);
        desk.work();
        desk.end(old);
        let repeated = [(); 4].map(|()| desk.push(&[(0, 1)]));
        let next = desk.push(&[(1, 3)]);
        desk.work();
        assert_eq!(desk.place(next, 0).is_some(), goes_on, "{lookahead:?}");
        // 4 + 2 taken + 5 > 8, and so on until 1 + 2 + 5.
        for (query, ended) in repeated.into_iter().zip(1..) {
            desk.end(query);
            desk.work();
            assert_eq!(desk.place(next, 0).is_some(), goes_on || ended >= 3, "{lookahead:?}, {ended}");
        }
    }
}

#[test]
fn a_fixed_lookahead_counts_queries() {
    let mut desk = Desk::new(8, PolicyKind::Lru, Lookahead::Queries(2));
    let queries: Vec<u64> = (0..8).map(|list| desk.push(&[(list, 1)])).collect();
    for oldest in 0..8 {
        desk.work();
        let admitted = queries[oldest..].iter().filter(|query| desk.place(**query, 0).is_some()).count();
        assert_eq!(admitted, 3.min(8 - oldest));
        desk.end(queries[oldest]);
    }
    assert_eq!(desk.state.stats().lookahead_max, 2);
}

#[test]
fn queries_that_have_ended_are_not_ahead() {
    let mut desk = Desk::new(16, PolicyKind::Lru, Lookahead::Queries(2));
    let queries: Vec<u64> = (0..12).map(|list| desk.push(&[(list, 1)])).collect();
    let admitted =
        |desk: &Desk| (0..12).rev().find(|query| desk.place(queries[*query], 0).is_some()).unwrap();
    desk.work();
    assert_eq!(admitted(&desk), 2);
    // Several threads answer, and the oldest query is slow.
    for next in 3..12 {
        desk.state.end(queries[next - 2], &desk.places[next - 2]);
        desk.work();
        assert_eq!((admitted(&desk), desk.state.stats().lookahead), (next, 2));
    }
}

#[test]
fn queries_that_have_ended_behind_one_that_is_held_take_no_room() {
    let mut desk = Desk::new(16, PolicyKind::Lru, Lookahead::Adaptive);
    let held = desk.push(&[(0, 1), (1, 1)]);
    let mut last = desk.push(&[(1, 1)]);
    for list in 0..5000 {
        let query = desk.push(&[(2 + list % 20, 1)]);
        desk.work();
        assert!(desk.place(last, 0).is_some());
        desk.end(std::mem::replace(&mut last, query));
        if list == 3000 {
            // One that is given up before its turn, and one that nobody waits for.
            let job = desk.job(40, 1);
            let (_, places) = desk.state.push(vec![job], true);
            desk.places.push(places);
            let given_up = desk.push(&[(3, 1)]);
            desk.end(given_up);
        }
        assert!(desk.state.queue.entries() <= 2 * 4 + 64);
    }
    let stats = desk.state.stats();
    assert_eq!((stats.queries, desk.state.queue.ended()), (2, 5002));
    assert!((0..2).all(|list| desk.place(held, list).is_some()) && desk.place(last, 0).is_some());
    desk.end(held);
    desk.end(last);
    assert_eq!(desk.state.queue.entries(), 0);
}

#[test]
fn the_oldest_query_streams_what_finds_no_room_beside_its_own() {
    let mut desk = Desk::new(4, PolicyKind::Lru, Lookahead::Adaptive);
    let query = desk.push(&[(0, 2), (1, 2), (2, 2), (3, 5), (1, 2)]);
    let next = desk.push(&[(2, 2), (4, 2)]);
    desk.work();
    let cached: Vec<bool> =
        (0..5).map(|list| matches!(desk.place(query, list), Some(Place::Chain(_)))).collect();
    assert_eq!(cached, [true, true, false, false, true]);
    assert_eq!(desk.place(next, 0), None);
    desk.end(query);
    desk.work();
    assert!((0..2).all(|list| matches!(desk.place(next, list), Some(Place::Chain(_)))));
    let stats = desk.state.stats();
    assert_eq!((stats.streamed, stats.misses, stats.hits), (2, 6, 1));
}

#[test]
fn who_asks_outside_waits_for_nobody_and_stops_nobody() {
    let mut desk = Desk::new(4, PolicyKind::Lru, Lookahead::Adaptive);
    let query = desk.push(&[(0, 3)]);
    desk.work();
    let (job, other) = (desk.job(7, 2), desk.job(8, 1));
    assert_eq!(desk.state.claim(&job), Place::Streamed);
    let Place::Chain(outside) = desk.state.claim(&other) else { panic!("there is room") };
    desk.work();
    desk.end(query);
    // The next oldest query finds a pin from outside in its way, which may last for ever.
    let query = desk.push(&[(1, 4)]);
    desk.work();
    assert_eq!(desk.place(query, 0), Some(Place::Streamed));
    desk.end(query);
    desk.state.unpin(outside);
    let query = desk.push(&[(1, 4)]);
    desk.work();
    assert!(matches!(desk.place(query, 0), Some(Place::Chain(_))));
}

#[test]
fn nobody_outside_prolongs_the_wait_of_the_oldest_query() {
    let mut desk = Desk::new(4, PolicyKind::Lru, Lookahead::Adaptive);
    let query = desk.push(&[(0, 2), (1, 3)]);
    let (one, other) = (desk.job(7, 1), desk.job(8, 1));
    desk.state.advance();
    let Order { chain, .. } = desk.state.take_order().unwrap();
    desk.state.advance();
    assert_eq!(desk.place(query, 1), None, "the first list is loading: something may come free");
    assert_eq!(desk.state.claim(&one), Place::Streamed, "there is room, but the oldest query waits for it");
    desk.state.fill_ended(chain, Ok(()));
    desk.state.advance();
    assert_eq!(desk.place(query, 1), Some(Place::Streamed));
    assert!(matches!(desk.state.claim(&other), Place::Chain(_)));
}

#[test]
fn nothing_outside_stands_between_the_queue_and_the_workers() {
    let mut desk = Desk::new(8, PolicyKind::Lru, Lookahead::Adaptive);
    let outside: Vec<Place> = (10..14).map(|list| desk.state.claim(&desk.job(list, 1))).collect();
    let query = desk.push(&[(0, 1), (1, 1)]);
    desk.state.advance();
    // The worker has four lists to fetch, and takes one after the other; the query's first is next.
    assert!(outside.iter().all(|place| matches!(place, Place::Chain(_))));
    assert!(matches!(desk.place(query, 0), Some(Place::Chain(_))) && desk.place(query, 1).is_none());
    for _ in 0..5 {
        let more = desk.state.claim(&desk.job(20, 1));
        let Order { chain, .. } = desk.state.take_order().unwrap();
        desk.state.fill_ended(chain, Ok(()));
        desk.state.advance();
        let Place::Chain(more) = more else { continue };
        desk.state.unpin(more);
    }
    assert!(matches!(desk.place(query, 1), Some(Place::Chain(_))));
}

#[test]
fn a_failed_list_is_tried_anew_by_the_next() {
    let mut desk = Desk::new(8, PolicyKind::S3Fifo, Lookahead::Adaptive);
    let [first, second] = [(0, 4), (0, 4)].map(|list| desk.push(&[list]));
    desk.state.advance();
    let Order { chain, .. } = desk.state.take_order().unwrap();
    desk.state.fill_ended(chain, Err(Error::corrupt("a", 1, "x")));
    let stats = desk.state.stats();
    assert_eq!((stats.segments_free, stats.failures), (7, 1), "all but the head are given back");
    assert_eq!((stats.misses, stats.hits, stats.fetched), (1, 1, 0));
    for query in [first, second] {
        assert_eq!(desk.place(query, 0), Some(Place::Chain(chain)));
        assert!(desk.state.error(chain).is_some());
    }
    let third = desk.push(&[(0, 4)]);
    desk.work();
    assert!(desk.place(third, 0).is_some_and(|place| place != Place::Chain(chain)));
    [first, second, third].into_iter().for_each(|query| desk.end(query));
    let stats = desk.state.stats();
    assert_eq!((stats.segments_free, stats.segments_evictable, stats.rolling_sum), (4, 4, 0));
}

#[test]
fn the_window_spares_what_waits() {
    for (policy, spared) in [(PolicyKind::Window, true), (PolicyKind::Lru, false)] {
        let mut desk = Desk::new(3, policy, Lookahead::Adaptive);
        for list in 0..3 {
            let query = desk.push(&[(list, 1)]);
            desk.work();
            desk.end(query);
        }
        // List 0 is the least recently used, and will be needed.
        let queries = [(3, 1), (0, 1)].map(|list| desk.push(&[list]));
        desk.work();
        assert_eq!(desk.state.stats().hits == 1, spared, "{policy}");
        queries.into_iter().for_each(|query| desk.end(query));
    }
}

#[test]
fn detached_lists_are_fetched_and_held_by_nobody() {
    let mut desk = Desk::new(4, PolicyKind::Sieve, Lookahead::Adaptive);
    let jobs = [desk.job(0, 3), desk.job(1, 5), desk.job(2, 1)];
    jobs.into_iter().for_each(|job| desk.state.request(job));
    desk.work();
    let stats = desk.state.stats();
    assert_eq!((stats.queries, stats.segments_evictable, stats.streamed), (0, 4, 0));
    assert_eq!((stats.hits, stats.misses, stats.fetched), (0, 0, 2));
    assert!(desk.is_there(0) && !desk.is_there(1) && desk.is_there(2));
}

#[test]
fn requests_are_left_out_when_there_are_enough_or_all_is_over() {
    let mut desk = Desk::new(4, PolicyKind::Lru, Lookahead::Queries(0));
    let held = [desk.push(&[(0, 1)]), desk.push(&[(1, 1)])];
    for list in 0..2000 {
        let job = desk.job(2 + list, 1);
        desk.state.request(job);
    }
    assert_eq!(desk.state.stats().queries, 2 + 1024);
    held.into_iter().for_each(|query| desk.end(query));
    desk.work();
    assert_eq!(desk.state.stats().queries, 0);
    desk.state.stopping = true;
    let job = desk.job(7, 1);
    desk.state.request(job);
    assert_eq!(desk.state.stats().queries, 0);
}
