//! Callers that evaluate their own requests while search threads sleep.

use crate::support::requests::{
    assert_same_hits, engine_options, exhaustive_request, parse_query, write_frequent_terms,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use tierdex::{Engine, Error, Index, Priority, SearchOptions, SearchRequest, Ticket};

#[test]
fn a_caller_cancels_the_request_that_it_evaluates() {
    let index = &Index::open_on(write_frequent_terms(1_000_000)).unwrap();
    let engine = Engine::new(index, &engine_options(64, 1)).unwrap();
    let whole = engine.search(exhaustive_request(index)).unwrap();
    for calls in [1, 2, 5] {
        // A request is queued while the search thread is awake: it may complete reads of the one before.
        let mut called = 0;
        while called == 0 {
            let cancel = || {
                called += 1;
                called >= calls
            };
            let ticket = engine.submit_here(exhaustive_request(index), cancel).unwrap();
            let answer = ticket.wait();
            assert!(called == 0 || matches!(answer, Err(Error::Cancelled)));
        }
        assert!(called >= calls);
        let again = engine.search(exhaustive_request(index)).unwrap();
        assert_same_hits(&again.hits, &whole.hits, "after a cancelled request");
    }
}

/// A callback that panics ends its request; others are answered, and divided, as before.
#[test]
fn a_panic_of_a_callback_affects_no_other_request() {
    let index = &Index::open_on(write_frequent_terms(1_000_000)).unwrap();
    let engine = Engine::new(index, &engine_options(64, 1)).unwrap();
    let whole = engine.search(exhaustive_request(index)).unwrap();
    let (mut submissions, mut called) = (0, 0);
    while called == 0 {
        submissions += 1;
        assert!(submissions < 1000, "no caller evaluates its request");
        let cancel = || {
            called += 1;
            panic!("of a callback")
        };
        let submit = || engine.submit_here(exhaustive_request(index), cancel).map(Ticket::wait);
        let submitted = catch_unwind(AssertUnwindSafe(submit));
        assert_eq!(submitted.is_err(), called > 0);
    }
    assert_eq!((called, engine.metrics().interactive.running), (1, 0));
    let (mut answered, mut called) = (0, 0);
    while called == 0 {
        let ticket = engine.submit_here(exhaustive_request(index), || {
            called += 1;
            false
        });
        assert_same_hits(&ticket.unwrap().wait().unwrap().hits, &whole.hits, "after a panic");
        answered += 1;
        assert!(answered < 1000, "no caller evaluates its request any more");
    }
}

/// Requests of a batch, and those that find no thread asleep, are evaluated by search threads.
#[test]
fn requests_of_batches_are_queued() {
    let index = &Index::open_on(write_frequent_terms(100_000)).unwrap();
    let engine = Engine::new(index, &engine_options(64, 1)).unwrap();
    let request = exhaustive_request(index).priority(Priority::Batch);
    let ticket = engine.submit_here(request, || panic!("evaluated by the caller")).unwrap();
    ticket.wait().unwrap();
}

/// Callers come and go beside queued requests, with a cache so small that evaluations end with reads in
/// flight; each must find its own hits, and the engine must close while such reads are in flight.
#[test]
fn callers_and_search_threads_share_a_small_cache() {
    let index = &Index::open_on(write_frequent_terms(300_000)).unwrap();
    let texts = ["t0", "rare", "+t0 +t1", "t2 t3", "+rare +t4", "+t1 +t5 t2"];
    let options = SearchOptions { k: 5, ..SearchOptions::default() };
    let expected =
        texts.map(|text| index.searcher().search(&parse_query(index, text), &options).unwrap().hits);
    for (pages, threads) in [(16, 1), (24, 2), (2_000, 1), (2_000, 3)] {
        let engine = Engine::new(index, &engine_options(pages, threads)).unwrap();
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    let request = SearchRequest::new(parse_query(index, "t0 t4")).priority(Priority::Batch);
                    engine.submit(request).unwrap().wait().unwrap();
                    std::thread::yield_now();
                }
            });
            let callers: Vec<_> = (0..3)
                .map(|caller| {
                    let (engine, expected) = (&engine, &expected);
                    scope.spawn(move || {
                        for turn in 0..150 {
                            let number = (5 * caller + turn) % texts.len();
                            let request = SearchRequest::new(parse_query(index, texts[number]));
                            let mut slices = 0;
                            let cancel = || {
                                slices += 1;
                                turn % 7 == 3 && slices == 2
                            };
                            match engine.submit_here(request.options(options), cancel).unwrap().wait() {
                                Ok(found) => assert_same_hits(&found.hits, &expected[number], texts[number]),
                                Err(error) => assert!(matches!(error, Error::Cancelled), "{error}"),
                            }
                        }
                    })
                })
                .collect();
            callers.into_iter().for_each(|caller| caller.join().unwrap());
            ended.store(true, Ordering::Relaxed);
        });
    }
}
