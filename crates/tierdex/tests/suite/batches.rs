//! Batches of queries in engines whose cache is much smaller than the index, and in engines with memory
//! budgets: the results are those of an index in memory.

use crate::support::corpus::{SchemaOptions, random_documents};
use crate::support::lists::{
    query_of_first_terms, random_queries, total_and_hits, write_lists, write_many_terms, write_sparse_lists,
};
use crate::support::requests::{documents_and_score_bits, engine_options, parse_query, run_queries};
use crate::support::{AddMethod, all_tunings, build, index_in_memory, random::Random};
use proptest::prelude::*;
use std::{collections::BTreeMap, ops::Range, sync::Arc};
use tierdex::internal::cache::PolicyKind;
use tierdex::internal::engine::MetaTier;
use tierdex::internal::segment::read::FILES;
use tierdex::io::{Disk, MemDisk, PAGE, ReadKind, RegionKind, Size};
use tierdex::{Bm25, Engine, EngineOptions, Hits, Index, Merge, Query, Scorer, SearchOptions, SearchRequest};

fn one_thread_options(pages: u64, policy: PolicyKind, kind: ReadKind) -> EngineOptions {
    engine_options(pages, 1).policy(policy).reads(kind, 4).meta_tier(MetaTier::Dram)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn caches_of_any_size_change_no_answer(
        seed in any::<u64>(),
        pages in 2u64..40,
        policy in prop::sample::select(PolicyKind::ALL.to_vec()),
        kind in prop::sample::select(vec![ReadKind::Pread, ReadKind::Auto]),
        (exhaustive, count) in any::<(bool, bool)>(),
        tuning in prop::sample::select(all_tunings().to_vec()),
        real in any::<bool>(),
        meta in prop::sample::select(vec![MetaTier::Disk, MetaTier::Terms, MetaTier::Dram, MetaTier::Region(RegionKind::Dram)]),
        threads in 1usize..4,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = if real {
            Arc::new(tierdex::io::PosixDisk::create(directory.path()).unwrap())
        } else {
            Arc::new(MemDisk::new())
        };
        let schema = SchemaOptions::one_field().schema();
        build(&disk, &schema, &random_documents(seed, 3000), &[1700], AddMethod::Commits, Merge::None);
        let index = Index::open_on(disk).unwrap();
        let queries = random_queries(&mut Random::new(seed), 60, &index);
        let search = SearchOptions { k: 20, exhaustive, count, ..SearchOptions::default() };
        let searcher = index.searcher();
        // A lower bound of the number of matches depends on the strategy.
        let counted = |total: u64| total * u64::from(count);
        let expected = |query| {
            let found = searcher.search(query, &search).unwrap();
            (counted(found.total), total_and_hits(&found).1)
        };
        let expected: Vec<_> = queries.iter().map(expected).collect();
        let options = one_thread_options(pages, policy, kind).meta_tier(meta).threads(threads);
        let engine = Engine::new(&index, &options).unwrap();
        let mut answered = 0;
        let search = SearchOptions { tuning, ..search };
        run_queries(&engine, &queries, &search, |number, found| {
            let found = found.unwrap();
            let found = (counted(found.total.value()), documents_and_score_bits(&found.hits));
            assert_eq!((number, found), (answered, expected[number].clone()));
            answered += 1;
        });
        prop_assert_eq!(answered, queries.len());
        let stats = engine.stats();
        prop_assert_eq!(stats.failures, 0);
        // An engine may still read pages that were prefetched and that no query needed.
        prop_assert_eq!(stats.frames_free + stats.frames_evictable + stats.loading, stats.frames);
        let metadata = engine.memory().rows.iter().find(|row| row.what == "cache metadata").unwrap();
        prop_assert!(stats.metadata_bytes <= metadata.bytes, "{} {}", stats.metadata_bytes, metadata.bytes);
    }
}

#[test]
fn a_budget_that_is_too_small_is_rejected() {
    let index = index_in_memory(&SchemaOptions::one_field().schema(), &random_documents(3, 3000), &[]);
    let ask = |dram, cache: Option<u64>| {
        let options = EngineOptions::new().dram(dram).threads(1).growth(0);
        let options = match cache {
            Some(bytes) => options.cache(RegionKind::Dram, bytes),
            None => options,
        };
        let needed = Engine::memory_report(&index, &options).needed();
        (Engine::new(&index, &options), options.resolve(&index), needed)
    };
    let (rejected, ..) = ask(1 << 20, None);
    let error = rejected.err().unwrap().to_string();
    assert!(error.starts_with("a budget of 1M of DRAM is too small"), "{error}");
    let needed = error.split(": ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    assert!(ask(needed.parse::<Size>().unwrap().of(0), None).0.is_ok(), "{error}");
    // The budget that the error names is large enough, with or without a cache beside the budget.
    let (beside, settings, needed) = ask(64 << 20, Some(1 << 20));
    assert!(beside.is_ok() && needed <= 64 << 20);
    assert!(!settings.cache_in_budget && settings.meta_tier == MetaTier::Dram);
    assert!(ask(needed, Some(1 << 20)).0.is_ok() && ask(1 << 20, Some(1 << 20)).0.is_err());
    // Without a configured size, the cache takes the rest of the budget.
    let (within, settings, needed) = ask(64 << 20, None);
    assert!(within.is_ok() && settings.cache_in_budget && needed <= 64 << 20);
    assert!(settings.cache_size.of(0) >= index.postings_bytes());
}

#[test]
fn norms_and_page_checksums_are_in_the_region_of_a_cache_beside_the_budget() {
    let index = Index::open_on(write_sparse_lists(100_000)).unwrap();
    let (dram, path) = (24 << 20, format!("/dev/shm/tierdex-batches-{}", std::process::id()));
    let region = RegionKind::File(path.into());
    for (options, in_region) in [
        (EngineOptions::new().meta_tier(MetaTier::Disk), false),
        (EngineOptions::new().meta_tier(MetaTier::Disk).cache(RegionKind::Dram, 4 << 20), false),
        (EngineOptions::new().meta_tier(MetaTier::Disk).cache(region.clone(), 4 << 20), true),
        (EngineOptions::new().meta_tier(MetaTier::Dram).cache(region.clone(), 4 << 20), false),
    ] {
        let engine = Engine::new(&index, &options.dram(dram)).unwrap();
        let report = engine.memory();
        for part in ["norms", "page checksums"] {
            let row = report.rows.iter().find(|row| row.what == part).unwrap();
            assert_eq!(row.region.is_some(), in_region, "{part}: {report}");
        }
        assert!(report.to_string().contains(&format!("of {dram}")), "{report}");
    }
}

#[test]
fn an_error_of_the_source_or_the_consumer_ends_the_run() {
    let index = index_in_memory(&SchemaOptions::one_field().schema(), &random_documents(3, 1000), &[]);
    let queries = random_queries(&mut Random::new(9), 50, &index);
    let request = |query: &Query| SearchRequest::new(query.clone()).count(true);
    for threads in [1, 3] {
        let options = one_thread_options(12, PolicyKind::Lru, ReadKind::Pread).threads(threads);
        let engine = Engine::new(&index, &options).unwrap();
        let (mut given, mut answered) = (queries.iter().take(20), 0);
        let source = || given.next().map(|query| Some(request(query))).ok_or("no more");
        let run = engine.run_ordered(source, |number, found| {
            assert_eq!((number, found.is_ok()), (answered, true));
            answered += 1;
            Ok(())
        });
        assert_eq!((run, answered), (Err("no more"), 20));
        let (mut given, mut answered) = (queries.iter(), 0);
        let run = engine.run_ordered(
            || Ok(given.next().map(request)),
            |number, found| {
                assert_eq!((number, found.is_ok()), (answered, true));
                answered += 1;
                if number == 7 { Err("enough") } else { Ok(()) }
            },
        );
        assert_eq!((run, answered), (Err("enough"), 8));
    }
}

/// Bytes of the pages of all posting lists of the queries; a list of several queries is counted once.
fn list_page_bytes(index: &Index, queries: &[Query], search: &SearchOptions) -> u64 {
    let pages = |range: &Range<u64>| range.end.div_ceil(PAGE) - range.start / PAGE;
    let mut lists = BTreeMap::new();
    for query in queries {
        let plan = index.searcher().plan(query, search, &FILES).unwrap();
        for list in plan.lists(index.segments()) {
            lists.insert(list.key, list.ranges.iter().map(|part| pages(&part.range)).sum::<u64>());
        }
    }
    lists.values().sum::<u64>() * PAGE
}

/// Runs queries in a new engine. Returns the bytes that it reads into its cache, and the bytes of the index
/// that it reads in other ways.
fn run_and_count_bytes(
    index: &Index,
    options: &EngineOptions,
    queries: &[Query],
    search: &SearchOptions,
    answer: impl FnMut(usize, tierdex::Result<Hits>),
) -> (u64, u64) {
    let engine = Engine::new(index, options).unwrap();
    let before = index.bytes_read();
    run_queries(&engine, queries, search, answer);
    // Prefetched pages may still arrive in the cache.
    (engine.stats().bytes_read, index.bytes_read() - before)
}

#[test]
fn only_blocks_that_may_hold_a_hit_are_read() {
    let index = Index::open_on(write_sparse_lists(3_000_000)).unwrap();
    let words = "s1; s2; s3; +s0 +s1; s1; +s5 +s0 +s2; s4; +s1 +s0 +none; none; +s5 +s6 +s7; +s5 +s6 +s1";
    let words: Vec<_> = words.split("; ").map(|word| parse_query(&index, word)).collect();
    let cases = [
        (MetaTier::Dram, 3, Scorer::default()),
        (MetaTier::Disk, 3, Scorer::default()),
        (MetaTier::Disk, 3, Scorer::Dot),
        (MetaTier::Disk, 5000, Scorer::default()),
    ];
    for ((meta, k, scorer), tuning) in
        cases.iter().flat_map(|case| all_tunings().map(|tuning| (case, tuning)))
    {
        let (k, scorer) = (*k, *scorer);
        let search = SearchOptions { k, scorer, count: true, tuning, ..SearchOptions::default() };
        let found = |word| total_and_hits(&index.searcher().search(word, &search).unwrap());
        let found: Vec<_> = words.iter().map(found).collect();
        let options = one_thread_options(2000, PolicyKind::Lru, ReadKind::Pread).meta_tier(meta.clone());
        let (blocks, others) = run_and_count_bytes(&index, &options, &words, &search, |number, answer| {
            let answer = answer.unwrap();
            let answer = (answer.total.value(), documents_and_score_bits(&answer.hits));
            assert_eq!(answer, found[number], "{meta} {k} {number}");
        });
        let whole = list_page_bytes(&index, &words, &search);
        assert_eq!(others, 0, "{meta}, {k}: all is read through the cache");
        // With k = 5000 the whole list of a single term is read.
        assert!(
            if k == 3 { 3 * blocks < 2 * whole } else { blocks < whole },
            "{meta}, {k}: {blocks} of {whole}"
        );
    }
}

#[test]
fn long_non_essential_lists_are_not_read_whole() {
    let index = Index::open_on(write_sparse_lists(3_000_000)).unwrap();
    let words = ["s1 s5", "s6 s5 s1", "s5 s2 s7 s3", "s0 s5", "s5 s7", "s6 s7 s5 s4 s1 none"];
    let words = words.map(|word| parse_query(&index, word));
    let cases = [
        (MetaTier::Dram, 3, Scorer::default()),
        (MetaTier::Disk, 10, Scorer::default()),
        (MetaTier::Terms, 3, Bm25 { k1: 0.5, b: 0.3 }.into()),
    ];
    for ((meta, k, scorer), tuning) in
        cases.iter().flat_map(|case| all_tunings().map(|tuning| (case, tuning)))
    {
        let (k, scorer) = (*k, *scorer);
        let search = SearchOptions { k, scorer, count: false, tuning, ..SearchOptions::default() };
        let found = words.each_ref().map(|word| index.searcher().search(word, &search).unwrap().hits);
        let options = one_thread_options(4000, PolicyKind::Lru, ReadKind::Pread).meta_tier(meta.clone());
        for (query, word) in words.iter().enumerate() {
            let words = std::slice::from_ref(word);
            let (some, others) = run_and_count_bytes(&index, &options, words, &search, |_, answer| {
                assert!(found.contains(&answer.unwrap().hits), "{meta} {k}");
            });
            let whole = list_page_bytes(&index, words, &search);
            assert_eq!(others, 0, "{meta}, {k}: all is read through the cache");
            // The other queries save nothing: scores of half of all documents tie, or there are fewer matches
            // than k, or too many documents can be hits.
            let saves = query < 3 || query == 3 && k == 3;
            assert!(
                if saves { 5 * some < whole } else { some <= whole },
                "{meta}, {query}: {some} of {whole}"
            );
        }
    }
}

/// A term in two million documents, of which every 300,000th contains it fifty times.
fn write_common_term() -> Arc<MemDisk> {
    let documents = (0..2_000_000).collect::<Vec<u32>>();
    let frequency = |document: &u32| if document % 300_000 == 777 { 50 } else { 1 };
    let frequencies = documents.iter().map(frequency).collect();
    write_lists(2_000_000, &[("common".to_string(), (documents, frequencies))])
}

#[test]
fn a_single_term_reads_few_entries_of_its_skip_data() {
    let index = Index::open_on(write_common_term()).unwrap();
    let query = [parse_query(&index, "common")];
    let cases = [(5, 25), (7, 25), (8, u64::MAX), (2000, u64::MAX)].into_iter();
    for ((k, pages), tuning) in cases.flat_map(|case| all_tunings().map(|tuning| (case, tuning))) {
        let search = SearchOptions { k, count: false, tuning, ..SearchOptions::default() };
        let expected = index.searcher().search(&query[0], &search).unwrap().hits;
        let options = one_thread_options(400, PolicyKind::Lru, ReadKind::Pread).meta_tier(MetaTier::Disk);
        let mut answers = 0;
        let (read, _) = run_and_count_bytes(&index, &options, &query, &search, |_, answer| {
            answers += 1;
            assert_eq!(answer.unwrap().hits, expected);
        });
        assert_eq!((expected.len(), answers), (k, 1));
        // All entries take 23 pages, the blocks of the hits at least 7. The eighth hit is one of many ties.
        assert!(read / 4096 <= pages, "{k}: {read} bytes");
    }
}

#[test]
fn the_dictionary_counts_without_a_read() {
    let index = Index::open_on(write_sparse_lists(100_000)).unwrap();
    let engine = Engine::new(&index, &one_thread_options(40, PolicyKind::Lru, ReadKind::Pread)).unwrap();
    let (before, search) =
        (engine.bytes_read(), SearchOptions { k: 0, count: true, ..SearchOptions::default() });
    let mut totals = Vec::new();
    run_queries(&engine, &["s5", "s0"].map(|word| parse_query(&index, word)), &search, |_, answer| {
        totals.push(answer.unwrap().total.value());
    });
    assert_eq!((totals, engine.bytes_read()), (vec![100_000, 3], before));
}

#[test]
fn a_query_that_exceeds_the_budget_is_rejected_alone() {
    const TERMS: usize = 300;
    let index = Index::open_on(write_many_terms(TERMS)).unwrap();
    let queries = [32, TERMS, 1, 32].map(|terms| query_of_first_terms(&index, terms));
    let search = SearchOptions { count: true, ..SearchOptions::default() };
    for meta in [MetaTier::Disk, MetaTier::Dram] {
        let options = one_thread_options(40, PolicyKind::Lru, ReadKind::Pread).meta_tier(meta).growth(0);
        let least = required_budget(&index, &options.clone().dram(1));
        for (more, rejected) in [(0, 1), (32 << 20, 0)] {
            let engine = Engine::new(&index, &options.clone().dram(least + more)).unwrap();
            let mut errors = Vec::new();
            run_queries(&engine, &queries, &search, |number, found| match found {
                Ok(found) => {
                    let expected = index.searcher().search(&queries[number], &search).unwrap();
                    let found = (found.total.value(), documents_and_score_bits(&found.hits));
                    assert_eq!(found, total_and_hits(&expected));
                }
                Err(error) => errors.push((number, error.to_string())),
            });
            assert_eq!(errors.len(), rejected, "{errors:?}");
            assert!(
                errors.iter().all(|(number, why)| *number == 1 && why.contains("fewer terms")),
                "{errors:?}"
            );
        }
    }
}

/// The smallest sufficient budget, which the error for too small a budget names.
fn required_budget(index: &Index, options: &EngineOptions) -> u64 {
    let error = Engine::new(index, options).err().unwrap().to_string();
    let number = error.split(": ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    number.parse::<Size>().unwrap_or_else(|_| panic!("{error}")).of(0)
}

#[test]
fn a_rejected_budget_names_a_sufficient_one() {
    let index = Index::open_on(write_sparse_lists(100_000)).unwrap();
    let options = one_thread_options(40, PolicyKind::Lru, ReadKind::Pread).growth(0);
    let needed = |options: EngineOptions| required_budget(&index, &options);
    let enough = needed(options.clone().dram(1));
    assert!(Engine::new(&index, &options.clone().dram(enough)).is_ok());
    assert_eq!(needed(options.clone().dram(enough - 1024)), enough);
    // Hits and threads need memory; hits are limited to the number of documents.
    let hits = |hits| needed(options.clone().dram(1).hits_max(hits));
    assert!(hits(50_000) > enough && hits(100_000) > hits(50_000) && hits(100_000) == hits(1 << 40));
    assert!(needed(options.clone().dram(1).threads(4)) > enough + (3 << 19));
}
