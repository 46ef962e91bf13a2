//! How the engine schedules requests on its threads: their order, the division of a long request, deadlines,
//! and cancellation.

use crate::support::all_tunings;
use crate::support::lists::{query_of_first_terms, write_many_terms};
use crate::support::requests::{
    assert_same_hits, documents_and_score_bits, engine_options, exhaustive_request, parse_query,
    write_frequent_terms,
};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tierdex::internal::engine::MetaTier;
use tierdex::{Engine, EngineOptions, Error, Hits, Index, Priority, SearchOptions, SearchRequest, TotalHits};

/// Submits requests while the only thread of an engine is blocked in the callback of `filler`, and waits for
/// all results. Returns the indexes of the requests in the order of their completion.
fn completion_order(
    engine: &Engine,
    filler: impl Fn() -> SearchRequest,
    requests: Vec<SearchRequest>,
) -> Vec<usize> {
    let (submitted, caller) = (Arc::new(AtomicBool::new(false)), std::thread::current().id());
    let is_held = Arc::new(AtomicBool::new(false));
    while !is_held.load(Ordering::Acquire) {
        let (submitted, is_held) = (submitted.clone(), is_held.clone());
        let (called, call) = std::sync::mpsc::channel();
        engine.submit(filler()).unwrap().on_ready(move |_| {
            // The request may have completed before the callback was set.
            let is_caller = std::thread::current().id() == caller;
            is_held.store(!is_caller, Ordering::Release);
            called.send(()).unwrap();
            while !is_caller && !submitted.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        });
        call.recv().unwrap();
    }
    let (count, order) = (requests.len(), Arc::new(Mutex::new(Vec::new())));
    for (number, request) in requests.into_iter().enumerate() {
        let order = order.clone();
        engine.submit(request).unwrap().on_ready(move |answer| {
            answer.unwrap();
            order.lock().unwrap().push(number);
        });
    }
    submitted.store(true, Ordering::Release);
    while order.lock().unwrap().len() < count {
        std::thread::yield_now();
    }
    let order = order.lock().unwrap();
    order.clone()
}

/// An index of a million documents, and an engine of one thread whose cache has a frame for each page.
fn open_frequent_terms() -> (Index, Engine) {
    let index = Index::open_on(write_frequent_terms(1_000_000)).unwrap();
    let engine = Engine::new(&index, &engine_options(20_000, 1)).unwrap();
    (index, engine)
}

/// A request that takes many time slices.
fn slow_request(index: &Index) -> SearchRequest {
    // A conjunction of groups takes long.
    let groups = parse_query(index, "+(t0 t1 t2) +(t3 t4 t5) +(t0 t3 t4) +(t1 t2 t5)");
    let all = SearchOptions { exhaustive: true, count: true, ..SearchOptions::default() };
    SearchRequest::new(groups).options(all)
}

#[test]
fn short_requests_complete_before_a_long_one() {
    let index = &Index::open_on(write_frequent_terms(3_000_000)).unwrap();
    let engine = Engine::new(index, &engine_options(20_000, 1)).unwrap();
    // Afterwards the cache has all pages, so that only the CPU time of requests differs.
    engine.search(exhaustive_request(index)).unwrap();
    let mut requests = vec![slow_request(index)];
    requests.extend((1..64).map(|_| SearchRequest::new(parse_query(index, "rare")).k(1)));
    let order = completion_order(&engine, || exhaustive_request(index), requests);
    assert_eq!(order.last(), Some(&0), "{order:?}");
}

#[test]
fn a_batch_continues_during_a_long_interactive_request() {
    let index = &Index::open_on(write_frequent_terms(3_000_000)).unwrap();
    // With a million hits a thread has memory for only one evaluation of a batch at a time.
    for hits in [10, 1_000_000] {
        let engine = Engine::new(index, &engine_options(20_000, 1).hits_max(hits)).unwrap();
        engine.search(exhaustive_request(index)).unwrap();
        let batch = SearchRequest::new(parse_query(index, "rare")).k(1).priority(Priority::Batch);
        let order = completion_order(&engine, || exhaustive_request(index), vec![slow_request(index), batch]);
        assert_eq!(order, [1, 0], "{hits} hits");
    }
}

#[test]
fn a_long_request_is_divided_among_threads() {
    let index = &Index::open_on(write_frequent_terms(3_000_000)).unwrap();
    let engine = Engine::new(index, &engine_options(20_000, 3)).unwrap();
    let texts =
        ["t0 t1 t2", "+t0 +t1", "+t0 +t1 t2 -rare", "+(t0 t1) +(t2 t3)", "t0 -t1", "#t0 #t1", "(t0 t1 t2)~2"];
    let mut divided = 0;
    for text in texts {
        for (k, count, exhaustive) in
            [(10, false, false), (10, true, false), (0, true, false), (10, true, true)]
        {
            let all = SearchOptions { k, count, exhaustive, ..SearchOptions::default() };
            let expected = index.searcher().search(&parse_query(index, text), &all).unwrap();
            for tuning in all_tunings() {
                let all = SearchOptions { tuning, ..all };
                let request = SearchRequest::new(parse_query(index, text)).options(all);
                let answer = engine.search(request).unwrap();
                assert_same_hits(&answer.hits, &expected.hits, &format!("{text} {all:?}"));
                assert!(!count || answer.total == TotalHits::Exact(expected.total), "{text} {all:?}");
                divided += usize::from(answer.parts > 1);
            }
        }
    }
    assert!(divided > 0);
}

#[test]
fn a_batch_does_not_delay_an_interactive_request() {
    let index = Index::open_on(write_frequent_terms(200_000)).unwrap();
    for threads in [1, 2] {
        let engine = Engine::new(&index, &engine_options(20_000, threads)).unwrap();
        let (answered, mut at) = (AtomicUsize::new(0), None);
        let mut left = 60;
        let source = || -> std::result::Result<_, ()> {
            left -= 1;
            Ok((left >= 0).then(|| exhaustive_request(&index)))
        };
        engine
            .run_ordered(source, |number, answer| {
                answer.unwrap();
                answered.store(number + 1, Ordering::Relaxed);
                if number == 0 {
                    let single = engine.submit(SearchRequest::new(parse_query(&index, "rare")).k(1)).unwrap();
                    single.wait().unwrap();
                    at = Some(engine.submit(SearchRequest::new(parse_query(&index, "rare")).k(1)).unwrap());
                }
                Ok(())
            })
            .unwrap();
        assert_eq!(answered.into_inner(), 60);
        assert!(at.unwrap().poll().is_some());
    }
}

#[test]
fn a_missed_deadline_returns_partial_results() {
    let (index, engine) = open_frequent_terms();
    let whole = engine.search(exhaustive_request(&index)).unwrap();
    let TotalHits::Exact(total) = whole.total else { panic!("{:?}", whole.total) };
    let all = SearchOptions { k: 1_000_000, count: true, ..SearchOptions::default() };
    let all = index.searcher().search(&parse_query(&index, "t0 t1 t2 t3 t4 t5"), &all).unwrap();
    let all: std::collections::HashSet<_> = documents_and_score_bits(&all.hits).into_iter().collect();
    let mut partial = 0;
    for microseconds in (0..100).map(|step| 100 * step) {
        let deadline = Instant::now() + Duration::from_micros(microseconds);
        let answer = match engine.search(exhaustive_request(&index).deadline(deadline)) {
            Ok(answer) => answer,
            Err(error) => {
                assert!(matches!(error, Error::Expired { .. }), "{error}");
                continue;
            }
        };
        assert!(answer.timed_out || answer.total == TotalHits::Exact(total));
        if answer.timed_out {
            let TotalHits::AtLeast(least) = answer.total else { panic!("{:?}", answer.total) };
            assert!(least <= total && least >= answer.hits.len() as u64);
            assert!(documents_and_score_bits(&answer.hits).iter().all(|hit| all.contains(hit)));
            partial += usize::from(!answer.hits.is_empty());
        }
    }
    assert!(partial > 0, "none was stopped in the middle");
    let passed = exhaustive_request(&index).deadline(Instant::now());
    let error = engine.search(passed).err().unwrap();
    assert_eq!(error.code(), "expired");
    assert!(error.to_string().contains("in the queue"), "{error}");
}

#[test]
fn a_deadline_applies_to_queued_requests() {
    let (index, engine) = open_frequent_terms();
    let ahead: Vec<_> = (0..40).map(|_| engine.submit(exhaustive_request(&index)).unwrap()).collect();
    let deadline = Instant::now() + Duration::from_millis(1);
    let late: Vec<_> =
        (0..10).map(|_| engine.submit(exhaustive_request(&index).deadline(deadline)).unwrap()).collect();
    for ticket in late {
        assert!(matches!(ticket.wait(), Err(Error::Expired { .. })));
    }
    let metrics = engine.metrics().interactive;
    assert_eq!((metrics.expired, metrics.cancelled), (10, 0));
    // Cancelled requests need not be evaluated.
    drop(ahead);
    assert_eq!(engine.search(SearchRequest::new(parse_query(&index, "rare"))).unwrap().hits.len(), 3);
}

/// A thread that is busy with other requests removes cancelled ones from the queue.
#[test]
fn a_cancelled_request_leaves_the_queue() {
    let (index, engine) = open_frequent_terms();
    let slow: Vec<_> = (0..60).map(|_| engine.submit(slow_request(&index)).unwrap()).collect();
    let batch = |_| engine.submit(exhaustive_request(&index).priority(Priority::Batch)).unwrap();
    let queued: Vec<_> = (0..20).map(batch).collect();
    drop(queued);
    while engine.metrics().batch.queued > 0 {
        assert!(engine.metrics().interactive.answered < 60, "the queue ended first");
        std::thread::yield_now();
    }
    // A request leaves the queue before it is counted.
    while engine.metrics().batch.cancelled < 20 {
        std::thread::yield_now();
    }
    assert_eq!(engine.metrics().batch.answered, 0);
    drop(slow);
}

/// More interactive requests are always queued than the thread evaluates.
#[test]
fn a_batch_is_answered_beside_interactive_requests_without_end() {
    let (index, engine) = open_frequent_terms();
    let interactive = || engine.submit(exhaustive_request(&index)).unwrap();
    let mut ahead: std::collections::VecDeque<_> = (0..40).map(|_| interactive()).collect();
    let batch = SearchRequest::new(parse_query(&index, "rare")).priority(Priority::Batch);
    let batch = engine.submit(batch).unwrap();
    let mut answered = 0;
    let hits = loop {
        if let Some(hits) = batch.poll() {
            break hits.unwrap();
        }
        assert!(engine.metrics().interactive.queued > 0 && answered < 1_000_000, "{answered} answered");
        ahead.pop_front().unwrap().wait().unwrap();
        ahead.push_back(interactive());
        answered += 1;
    };
    assert_eq!(hits.hits.len(), 3);
    assert!(hits.queued >= Duration::from_secs(1) && answered >= 8, "{:?} {answered}", hits.queued);
}

#[test]
fn metrics_count_requests_by_priority() {
    let (index, engine) = open_frequent_terms();
    for priority in [Priority::Batch, Priority::Interactive, Priority::Batch] {
        engine.search(exhaustive_request(&index).priority(priority)).unwrap();
    }
    let metrics = engine.metrics();
    for (metrics, answered) in [(metrics.interactive, 1), (metrics.batch, 2)] {
        assert_eq!((metrics.answered, metrics.queued, metrics.expired), (answered, 0, 0));
        let latencies = metrics.latencies;
        assert!(latencies.p50 > Duration::ZERO && latencies.p50 <= latencies.p99);
        assert!(latencies.p99 <= latencies.p999 && latencies.p999 <= latencies.longest);
        assert!(metrics.queued_time < (latencies.longest + Duration::from_micros(1)) * answered as u32);
    }
    assert_eq!(metrics.reads, engine.stats().reads);
}

#[test]
fn a_cancelled_request_ends() {
    let (index, engine) = open_frequent_terms();
    let mut cancelled = 0;
    for _ in 0..20 {
        let ticket = engine.submit(exhaustive_request(&index)).unwrap();
        ticket.cancel();
        // The search may have completed before it was cancelled.
        match ticket.wait() {
            Ok(answer) => assert!(!answer.timed_out),
            Err(error) => {
                assert!(matches!(error, Error::Cancelled), "{error}");
                cancelled += 1;
            }
        }
        // A request whose ticket is dropped is cancelled.
        drop(engine.submit(exhaustive_request(&index)).unwrap());
    }
    assert!(cancelled > 0);
    let ticket = engine.submit(SearchRequest::new(parse_query(&index, "t1"))).unwrap();
    while !ticket.wait_timeout(Duration::from_millis(1)) {}
    assert_eq!(ticket.poll().unwrap().unwrap().hits.len(), 10);
}

#[test]
fn requests_of_a_closed_engine_fail() {
    let (index, engine) = open_frequent_terms();
    let tickets: Vec<_> = (0..30).map(|_| engine.submit(exhaustive_request(&index)).unwrap()).collect();
    drop(engine);
    let failed = tickets.into_iter().filter_map(|ticket| ticket.wait().err()).count();
    assert!(failed > 20, "{failed}");
}

/// Single requests and a batch share little memory: threads wait for memory of each other, and results are
/// kept for long.
#[test]
fn all_requests_are_answered_in_little_memory() {
    let index = Index::open_on(write_many_terms(400)).unwrap();
    let options = EngineOptions::new().meta_tier(MetaTier::Disk).threads(3).growth(0).hits_max(50);
    let least = Engine::memory_report(&index, &options.clone().dram(1)).least().unwrap();
    let engine = Engine::new(&index, &options.dram(least + (512 << 10))).unwrap();
    let query = |number: usize| query_of_first_terms(&index, [1, 3, 100, 20, 5, 60, 2][number % 7]);
    let search = |number| index.searcher().search(&query(number), &SearchOptions::default()).unwrap().hits;
    let expected: Vec<_> = (0..7).map(search).collect();
    let check =
        |number: usize, hits: &Hits| assert_same_hits(&hits.hits, &expected[number % 7], "result of a query");
    let (mut tickets, mut left) = (Vec::new(), 300);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let source = || {
                left -= 1;
                Ok::<_, Error>((left >= 0).then(|| SearchRequest::new(query(left as usize))))
            };
            let answer = |number: usize, hits: tierdex::Result<Hits>| {
                check(299 - number, &hits?);
                Ok(())
            };
            engine.run_ordered(source, answer).unwrap();
        });
        for number in 0..300 {
            match engine.submit(SearchRequest::new(query(number))) {
                Ok(ticket) => tickets.push((number, ticket)),
                Err(error) => {
                    assert!(error.retry_after().is_some(), "{error}");
                    tickets.drain(..).for_each(|(number, ticket)| check(number, &ticket.wait().unwrap()));
                }
            }
        }
    });
    tickets.into_iter().for_each(|(number, ticket)| check(number, &ticket.wait().unwrap()));
    let metrics = engine.metrics();
    assert!(
        metrics.cache_bytes_min >= engine.memory().cache_min && metrics.batch.answered == 300,
        "{metrics:?}"
    );
    // A thread releases the memory of a request after the reply.
    let is_metadata = |what: &str| what.contains("metadata");
    while engine.metrics().reserved.iter().any(|row| row.bytes > 0 && !is_metadata(row.what)) {
        std::thread::yield_now();
    }
}
