//! Ghost caches see the requests of an engine, and have the misses of engines with caches of their sizes; the
//! advice that follows, and its memory.

use crate::support::{lists::write_lists, requests::parse_query};
use std::sync::{Arc, Mutex};
use tierdex::advise::{Advice, Advisor, AdvisorOptions};
use tierdex::internal::cache::{GhostCaches, GhostCounts};
use tierdex::io::{PAGE, ReadKind, RegionKind, Size};
use tierdex::{Engine, EngineOptions, Index, PolicyKind, Query, ReadCosts, SearchOptions, SearchRequest};

/// Number of terms, each in a quarter of the documents.
const TERMS: u64 = 256;

/// A pseudo-random number.
fn random(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 20
}

/// An index with lists of about three pages.
fn index() -> Index {
    let list = |term: u64| {
        let documents = 0..60_000u32;
        let documents: Vec<u32> =
            documents.filter(|at| random(u64::from(*at) << 9 | term).is_multiple_of(4)).collect();
        let frequencies = documents.iter().map(|document| 1 + document % 5).collect();
        (format!("t{term:03}"), (documents, frequencies))
    };
    Index::open_on(write_lists(60_000, &(0..TERMS).map(list).collect::<Vec<_>>())).unwrap()
}

/// Queries in which each is, with a probability of a half, one of the last five again.
fn repeated_queries(index: &Index) -> Vec<Query> {
    let mut texts: Vec<String> = Vec::new();
    for number in 0..600 {
        let drawn = random(number) as usize;
        if number > 5 && drawn.is_multiple_of(2) {
            texts.push(texts[texts.len() - 1 - drawn / 2 % 5].clone());
            continue;
        }
        let [one, two] = [random(1000 + number) % TERMS, random(2000 + number) % TERMS];
        texts.push(match drawn / 2 % 3 {
            0 => format!("t{one:03}"),
            1 => format!("+t{one:03} +t{two:03}"),
            _ => format!("t{one:03} t{two:03}"),
        });
    }
    texts.iter().map(|text| parse_query(index, text)).collect()
}

/// An engine that answers one query at a time, and reads no page that is not requested.
fn engine(index: &Index, pages: u64, policy: PolicyKind) -> Engine {
    let options = EngineOptions::new().threads(1).policy(policy).reads(ReadKind::Pread, 4);
    let options = options.cache(RegionKind::Dram, pages * PAGE).read_costs(ReadCosts::of_gap(0));
    Engine::new(index, &options).unwrap()
}

fn ask(engine: &Engine, queries: &[Query]) {
    for query in queries {
        engine.search(SearchRequest::new(query.clone()).ids(false)).unwrap();
    }
}

/// Answers the queries, and counts the misses of ghost caches of these sizes.
fn count_ghosts(engine: &Engine, sizes: &[u64], policy: PolicyKind, queries: &[Query]) -> GhostCounts {
    let ghosts = GhostCaches::new(sizes, policy, ReadCosts::of_gap(0), 1 << 30);
    let ghosts = Arc::new(Mutex::new(ghosts));
    let requested = ghosts.clone();
    engine.page_cache().observe_requests(move |page| requested.lock().unwrap().request(page));
    for query in queries {
        ask(engine, std::slice::from_ref(query));
        ghosts.lock().unwrap().end_query();
    }
    ghosts.lock().unwrap().counts()
}

#[test]
fn ghost_caches_have_the_misses_of_caches() {
    let index = index();
    let queries = repeated_queries(&index);
    // From 512 pages on there are two shards. In smaller caches than these, evaluations pin fewer pages than
    // a query needs, and so request some twice.
    let sizes = [300, 400, 511, 600, 700];
    for policy in [PolicyKind::Lru, PolicyKind::S3Fifo] {
        let observed = engine(&index, 4000, policy);
        let counts = count_ghosts(&observed, &sizes, policy, &queries);
        let all = observed.stats();
        assert_eq!(counts.requests, all.hits + all.misses, "{policy}");
        let real = sizes.map(|pages| {
            let engine = engine(&index, pages, policy);
            ask(&engine, &queries);
            engine.stats()
        });
        assert!(real[0].misses as f64 > 1.3 * all.misses as f64, "{policy}: {real:?}, all cached {all:?}");
        for (ghost, real) in counts.sizes.iter().zip(real) {
            // Pages that a query pins are not evicted.
            let is_near =
                |ghost: f64, real: u64, part: f64| (ghost - real as f64).abs() <= part * real as f64;
            assert!(is_near(ghost.misses, real.misses, 0.02), "{policy}: {ghost:?}, {real:?}");
            // Pages of several rounds of an evaluation are read one after the other.
            assert!(is_near(ghost.reads, real.reads, 0.1), "{policy}: {ghost:?}, {real:?}");
        }
        assert_eq!(count_ghosts(&engine(&index, 4000, policy), &sizes, policy, &queries), counts, "{policy}");
    }
}

fn options() -> AdvisorOptions {
    AdvisorOptions {
        sizes: [Size::Bytes(200 * PAGE), Size::BasisPoints(10_000), Size::BasisPoints(5000)].into(),
        threads: 1,
        search: SearchOptions::default(),
        counted: 600,
        read_costs: Some(ReadCosts::default()),
        memory: Some(1 << 30),
    }
}

fn advise(index: &Index, options: AdvisorOptions) -> tierdex::Result<Advice> {
    let mut advisor = Advisor::new(index, options)?;
    let queries = repeated_queries(index);
    for counted in [false, true] {
        queries.iter().for_each(|query| advisor.ask(query, counted).unwrap());
    }
    advisor.advice(|_| ())
}

#[test]
fn advice_follows_the_misses() {
    let index = index();
    let advice = advise(&index, options()).unwrap();
    assert_eq!((advice.queries, advice.sampled_share, advice.memory_measured), (600, 1.0, true));
    let [small, all, half] = &advice.sizes[..] else { panic!("three sizes") };
    assert!(advice.pages > 1.0 && small.misses.misses <= advice.pages, "{advice:?}");
    assert!(small.misses.misses > half.misses.misses && half.misses.misses > all.misses.misses, "{advice:?}");
    assert!(small.misses.cost > half.misses.cost && small.misses.reads >= half.misses.reads, "{advice:?}");
    assert!(small.rate <= half.rate && half.rate <= all.rate, "{advice:?}");
    assert!(small.cache_bytes == 200 * PAGE && small.engine_bytes > small.cache_bytes, "{advice:?}");
    for forecast in [small, all, half] {
        assert!((forecast.rate - forecast.share * advice.memory_rate).abs() < 1e-6 * forecast.rate);
        assert!(!forecast.p99.is_zero());
    }
    // The ghosts do not depend on measurements.
    let again = advise(&index, options()).unwrap();
    for (one, other) in advice.sizes.iter().zip(&again.sizes) {
        assert_eq!(one.misses, other.misses);
    }
}

#[test]
fn the_memory_of_the_advisor_is_bounded() {
    let index = index();
    let error = |options| advise(&index, options).unwrap_err().to_string();
    let little = error(AdvisorOptions { memory: Some(1 << 20), ..options() });
    let least = little.strip_prefix("1048576 bytes of memory is too little for this index: at least ");
    let least = least.and_then(|rest| rest.strip_suffix(" bytes are needed")).unwrap().parse().unwrap();
    assert!(error(AdvisorOptions { memory: Some(least - 1), ..options() }).ends_with("are needed"));
    // An eighth of the rest is for the cache that is measured, and the index does not fit.
    let advice = advise(&index, AdvisorOptions { memory: Some(least), ..options() }).unwrap();
    assert!(!advice.memory_measured && advice.ghost_bytes <= 1 << 20, "{advice:?}");
    let sizes = vec![Size::BasisPoints(10_000)];
    let large = error(AdvisorOptions { memory: Some(least), sizes, ..options() });
    assert!(large.contains("one of at most"), "{large}");
    let none = Advisor::new(&index, options()).unwrap().advice(|_| ()).unwrap_err().to_string();
    assert!(none.contains("no query was counted"), "{none}");
}
