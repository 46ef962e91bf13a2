//! Queries that wait, answered out of caches that are far too small: what they find is what is found in memory.

mod support;

use proptest::prelude::*;
use std::sync::Arc;
use support::corpus::{Shape, corpus};
use support::random::Random;
use support::{Growth, build};
use tierdex::cache::{Lookahead, PolicyKind};
use tierdex::index::{CacheOptions, Executor, Found, Index, Merge, SearchOptions};
use tierdex::io::{
    Disk, Effect, EngineKind, EngineOptions, FaultDisk, FaultPlan, MemDisk, OpClass, RegionKind, Repeat, Size,
};
use tierdex::query::Query;

const WORDS: [&str; 8] = ["all", "w0", "über1", "prefix2", "w3", "w4", "w5", "w8"];

/// Queries of one to four words, some of which must be there.
fn queries(random: &mut Random, count: usize, index: &Index) -> Vec<Query> {
    let query = |random: &mut Random| {
        let words = 1 + random.below(4);
        let word = |random: &mut Random| {
            let mark = ["", "+", "-"][random.below(3)];
            format!("{mark}{}", WORDS[random.below(WORDS.len())])
        };
        let text: Vec<String> = (0..words).map(|_| word(random)).collect();
        let text = if random.one_in(6) { "\"all w0\"".to_string() } else { text.join(" ") };
        Query::parse(&text, index.schema()).unwrap()
    };
    (0..count).map(|_| query(random)).collect()
}

fn options(bytes: u64, policy: PolicyKind, lookahead: Lookahead, kind: EngineKind) -> CacheOptions {
    CacheOptions {
        region: RegionKind::Dram,
        size: Size::Bytes(bytes),
        segment: 4096,
        policy,
        lookahead,
        engine: EngineOptions { kind, depth: 4, direct: false },
        workers: 1,
    }
}

fn rows(found: &Found) -> (u64, Vec<(u32, u32)>) {
    (found.total, found.hits.iter().map(|hit| (hit.document, hit.score.to_bits())).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn caches_of_any_size_change_no_answer(
        seed in any::<u64>(),
        cells in 2u64..40,
        policy in prop::sample::select(PolicyKind::ALL.to_vec()),
        lookahead in prop_oneof![Just(Lookahead::Adaptive), Just(Lookahead::Pins), (1u64..20).prop_map(Lookahead::Queries)],
        kind in prop::sample::select(vec![EngineKind::Pread, EngineKind::Mmap, EngineKind::Auto]),
        exhaustive in any::<bool>(),
        real in any::<bool>(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = if real {
            Arc::new(tierdex::io::PosixDisk::create(directory.path()).unwrap())
        } else {
            Arc::new(MemDisk::new())
        };
        let schema = Shape { title: false, ..Shape::default() }.schema();
        build(&disk, &schema, &corpus(seed, 3000), &[1700], Growth::Commits, Merge::Keep);
        let index = Index::open(disk).unwrap();
        let queries = queries(&mut Random::new(seed), 60, &index);
        let search = SearchOptions { k: 20, exhaustive, ..SearchOptions::default() };
        let searcher = index.searcher();
        let expected: Vec<_> = queries.iter().map(|query| rows(&searcher.search(query, &search).unwrap())).collect();
        let executor = Executor::new(&index, &options(4096 * cells, policy, lookahead, kind)).unwrap();
        let mut answered = 0;
        let run: Result<(), ()> = executor.run(&queries, &search, |number, found| {
            assert_eq!((number, rows(&found.unwrap())), (answered, expected[number].clone()));
            answered += 1;
            Ok(())
        });
        prop_assert!(run.is_ok() && answered == queries.len());
        let stats = executor.stats();
        prop_assert_eq!((stats.queries, stats.failures), (0, 0));
        prop_assert_eq!(stats.segments_free + stats.segments_evictable, stats.segments);
    }
}

#[test]
fn a_read_that_fails_fails_one_query() {
    let inner = Arc::new(MemDisk::new());
    let schema = Shape { title: false, ..Shape::default() }.schema();
    build(&(inner.clone() as _), &schema, &corpus(3, 3000), &[], Growth::Commits, Merge::Keep);
    let whole = Index::open(inner.clone()).unwrap();
    let search = SearchOptions::default();
    let mut harmed = 0;
    for place in 0..40 {
        let disk = Arc::new(FaultDisk::new(inner.clone(), FaultPlan::none()));
        let index = Index::open(disk.clone()).unwrap();
        let queries = queries(&mut Random::new(9), 30, &index);
        let options = options(4096 * 12, PolicyKind::Lru, Lookahead::Adaptive, EngineKind::Pread);
        let executor = Executor::new(&index, &options).unwrap();
        let at = 1 + place;
        disk.arm(FaultPlan { class: OpClass::Read, at, effect: Effect::Error(5), repeat: Repeat::Once });
        let mut failed = 0;
        let run: Result<(), ()> = executor.run(&queries, &search, |number, found| {
            let expected = whole.searcher().search(&queries[number], &search).unwrap();
            match found {
                Ok(found) => assert_eq!(rows(&found), rows(&expected)),
                Err(error) => {
                    failed += 1;
                    assert!(error.to_string().starts_with("cannot read"), "{error}");
                }
            }
            Ok(())
        });
        assert!(run.is_ok());
        harmed += usize::from(failed > 0);
        // Queries that wait for the same list fail together; the next one reads it again.
        assert_eq!(executor.stats().queries, 0);
    }
    assert!(harmed > 5, "{harmed}");
}
