//! Batches of queries with a cache that is far too small: the results are those of an index in memory.

mod support;

use proptest::prelude::*;
use std::sync::Arc;
use support::corpus::{Shape, corpus};
use support::random::Random;
use support::{Growth, build};
use tierdex::cache::{Lookahead, PolicyKind};
use tierdex::engine::{Executor, ExecutorOptions, MetaTier, Mode};
use tierdex::index::{
    Index, IndexWriter, ListsBuilder, Merge, OpenMode, SearchOptions, SearchResult, WriterOptions,
};
use tierdex::io::{
    Disk, Effect, EngineKind, EngineOptions, FaultDisk, FaultPlan, MemDisk, OpClass, RegionKind, Repeat, Size,
};
use tierdex::query::Query;
use tierdex::rank::{Bm25, Scorer};
use tierdex::schema::{Field, Schema, Source};

const WORDS: [&str; 8] = ["all", "w0", "über1", "prefix2", "w3", "w4", "w5", "w8"];

/// Queries of one to four words, some of them required.
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

fn options(bytes: u64, policy: PolicyKind, lookahead: Lookahead, kind: EngineKind) -> ExecutorOptions {
    ExecutorOptions {
        mode: Mode::HybridPrefetch,
        region: RegionKind::Dram,
        size: Size::Bytes(bytes),
        list_cell_bytes: 4096,
        policy,
        lookahead,
        engine: EngineOptions { kind, depth: 4, direct: false },
        gap_pages: Some(bytes / 4096 % 3),
        ..ExecutorOptions::default()
    }
}

/// Runs one query after another.
fn source(queries: &[Query]) -> impl FnMut() -> Result<Option<Query>, ()> + Send {
    let mut queries = queries.iter();
    move || Ok(queries.next().cloned())
}

fn rows(found: &SearchResult) -> (u64, Vec<(u32, u32)>) {
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
        (exhaustive, count) in any::<(bool, bool)>(),
        real in any::<bool>(),
        mode in prop::sample::select(Mode::ALL.to_vec()),
        meta in prop::sample::select(vec![MetaTier::Disk, MetaTier::Terms, MetaTier::Dram, MetaTier::Region(RegionKind::Dram)]),
        (threads, workers) in (1usize..4, 1usize..3),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = if real {
            Arc::new(tierdex::io::PosixDisk::create(directory.path()).unwrap())
        } else {
            Arc::new(MemDisk::new())
        };
        let schema = Shape { title: false, ..Shape::default() }.schema();
        build(&disk, &schema, &corpus(seed, 3000), &[1700], Growth::Commits, Merge::Keep);
        let index = Index::open_on(disk).unwrap();
        let queries = queries(&mut Random::new(seed), 60, &index);
        let search = SearchOptions { k: 20, exhaustive, count, ..SearchOptions::default() };
        let searcher = index.searcher();
        // A lower bound of the number of matches depends on the strategy.
        let rows = |found: &SearchResult| (found.total * u64::from(count), rows(found).1);
        let expected: Vec<_> = queries.iter().map(|query| rows(&searcher.search(query, &search).unwrap())).collect();
        // An in-memory disk cannot be read with O_DIRECT.
        let mode = if kind == EngineKind::Mmap && mode == Mode::Direct { Mode::HybridPrefetch } else { mode };
        let options = options(4096 * cells, policy, lookahead, kind);
        let options = ExecutorOptions { mode, meta_tier: meta, threads, reader_threads: workers, ..options };
        let executor = Executor::new(&index, &options).unwrap();
        let mut answered = 0;
        let run: Result<(), ()> = executor.run(source(&queries), &search, |number, found| {
            assert_eq!((number, rows(&found.unwrap())), (answered, expected[number].clone()));
            answered += 1;
            Ok(())
        });
        prop_assert!(run.is_ok() && answered == queries.len());
        let Some(stats) = executor.stats() else { return Ok(()) };
        prop_assert_eq!(stats.failures, 0);
        if mode != Mode::Hybrid {
            prop_assert_eq!(stats.queries, 0);
            // An engine may still read pages that were prefetched and that no query needed.
            let loading = if mode == Mode::Direct { stats.loading } else { 0 };
            prop_assert_eq!(stats.cells_free + stats.cells_evictable + loading, stats.cells);
        }
        let metadata = executor.memory().rows.iter().find(|row| row.what == "cache metadata").unwrap();
        prop_assert!(stats.metadata_bytes <= metadata.bytes, "{} {}", stats.metadata_bytes, metadata.bytes);
    }
}

#[test]
fn a_failed_read_fails_one_query() {
    let inner = Arc::new(MemDisk::new());
    let schema = Shape { title: false, ..Shape::default() }.schema();
    build(&(inner.clone() as _), &schema, &corpus(3, 3000), &[], Growth::Commits, Merge::Keep);
    let whole = Index::open_on(inner.clone()).unwrap();
    let search = SearchOptions { count: true, ..SearchOptions::default() };
    let mut harmed = 0;
    for place in 0..40 {
        let disk = Arc::new(FaultDisk::new(inner.clone(), FaultPlan::none()));
        let index = Index::open_on(disk.clone()).unwrap();
        let queries = queries(&mut Random::new(9), 30, &index);
        let options = options(4096 * 12, PolicyKind::Lru, Lookahead::Adaptive, EngineKind::Pread);
        let executor = Executor::new(&index, &options).unwrap();
        let at = 1 + place;
        disk.arm(FaultPlan { class: OpClass::Read, at, effect: Effect::Error(5), repeat: Repeat::Once });
        let mut failed = 0;
        let run: Result<(), ()> = executor.run(source(&queries), &search, |number, found| {
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
        // Queries that wait for the same list fail together; the next query reads it again.
        assert_eq!(executor.stats().unwrap().queries, 0);
    }
    assert!(harmed > 5, "{harmed}");
}

#[test]
fn a_budget_that_is_too_small_is_rejected() {
    let disk = Arc::new(MemDisk::new());
    let schema = Shape { title: false, ..Shape::default() }.schema();
    build(&(disk.clone() as _), &schema, &corpus(3, 3000), &[], Growth::Commits, Merge::Keep);
    let index = Index::open_on(disk).unwrap();
    let ask = |dram, cache: Option<u64>| {
        let options =
            ExecutorOptions { dram: Some(dram), mode: Mode::HybridPrefetch, ..ExecutorOptions::default() };
        let options =
            options.complete(&index, cache.map(|bytes| (RegionKind::Dram, Size::Bytes(bytes))), None);
        let needed = Executor::memory_report(&index, &options).needed();
        (Executor::new(&index, &options), options, needed)
    };
    let (rejected, ..) = ask(1 << 20, None);
    let error = rejected.err().unwrap().to_string();
    assert!(error.starts_with("a budget of 1M of DRAM is too small"), "{error}");
    let needed = error.split(": ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    assert!(ask(needed.parse::<Size>().unwrap().of(0), None).0.is_ok(), "{error}");
    // The minimum without a cache suffices, and so does the minimum with a cache.
    let (beside, options, needed) = ask(64 << 20, Some(1 << 20));
    assert!(
        beside.is_ok()
            && needed <= 64 << 20
            && !options.cache_in_budget
            && options.meta_tier == MetaTier::Dram
    );
    assert!(ask(needed, Some(1 << 20)).0.is_ok() && ask(1 << 20, Some(1 << 20)).0.is_err());
    // Without a configured size, the cache takes the rest of the budget.
    let (within, options, needed) = ask(64 << 20, None);
    assert!(within.is_ok() && options.cache_in_budget && needed <= 64 << 20);
    assert!(options.size.of(0) >= index.postings_bytes());
}

#[test]
fn an_error_of_the_source_or_the_consumer_ends_the_run() {
    let disk = Arc::new(MemDisk::new());
    let schema = Shape { title: false, ..Shape::default() }.schema();
    build(&(disk.clone() as _), &schema, &corpus(3, 1000), &[], Growth::Commits, Merge::Keep);
    let index = Index::open_on(disk).unwrap();
    let queries = queries(&mut Random::new(9), 50, &index);
    for threads in [1, 3] {
        let options = options(4096 * 12, PolicyKind::Lru, Lookahead::Adaptive, EngineKind::Pread);
        let executor = Executor::new(&index, &ExecutorOptions { threads, ..options }).unwrap();
        let mut given = queries.iter().take(20);
        let source = || given.next().cloned().map(Some).ok_or("no more");
        let run =
            executor.run(source, &SearchOptions { count: true, ..SearchOptions::default() }, |_, _| Ok(()));
        assert_eq!(run, Err("no more"));
        let mut answered = 0;
        let mut given = queries.iter();
        let run = executor.run(
            || Ok(given.next().cloned()),
            &SearchOptions { count: true, ..SearchOptions::default() },
            |number, found| {
                assert_eq!((number, found.is_ok()), (answered, true));
                answered += 1;
                if number == 7 { Err("enough") } else { Ok(()) }
            },
        );
        assert_eq!((run, answered), (Err("enough"), 8));
        assert_eq!(executor.stats().unwrap().queries, 0);
    }
}

/// An index without text: some terms are in every thirtieth document, and one makes documents long.
fn sparse(documents: u32) -> Arc<MemDisk> {
    let disk = Arc::new(MemDisk::new());
    let field = Field { positions: false, ..Field::new("text", Source::Text) };
    let schema = Schema { fields: vec![field], stored: false };
    let mut writer =
        IndexWriter::open(disk.clone(), schema, OpenMode::New, WriterOptions::default()).unwrap();
    let mut random = Random::new(7);
    let all = (0..documents).collect::<Vec<u32>>();
    let often: Vec<u32> = all.iter().map(|_| 20 + random.below(100) as u32).collect();
    let mut lengths = often.clone();
    let mut list = || {
        let mut next = 0;
        let mut list = (Vec::new(), Vec::new());
        loop {
            next += 1 + random.below(59) as u32;
            if next >= documents {
                return list;
            }
            let frequency =
                1 + random.below(3) as u32 + random.below(40) as u32 / 39 * random.below(30) as u32;
            lengths[next as usize] += frequency;
            list.0.push(next);
            list.1.push(frequency);
        }
    };
    let mut lists: Vec<(Vec<u32>, Vec<u32>)> = (0..4).map(|_| list()).collect();
    // A term in three documents, once together with each of the others.
    let rare: Vec<u32> =
        [0.1, 0.5, 0.9].map(|at| lists[0].0[(at * lists[0].0.len() as f64) as usize]).to_vec();
    rare.iter().for_each(|document| lengths[*document as usize] += 2);
    lists.insert(0, (rare, vec![2; 3]));
    lists.push((all.clone(), often));
    // A term so rare that little of the long lists is read, and a long list with half of its documents.
    let some = (0..documents).step_by(documents as usize / 60).collect::<Vec<u32>>();
    let half = all
        .iter()
        .copied()
        .filter(|document| (document / (documents / 100)).is_multiple_of(2))
        .collect::<Vec<u32>>();
    for list in [some, half] {
        list.iter().for_each(|document| lengths[*document as usize] += 1);
        lists.push((list.clone(), vec![1; list.len()]));
    }
    let number = |document: u32, id: &mut String| id.push_str(&document.to_string());
    let give = |builder: &mut ListsBuilder<'_, '_>| {
        let mut terms = lists.iter().zip(0..);
        terms.try_for_each(|((documents, frequencies), number)| {
            builder.term(&format!("s{number}"), |list| list.extend(documents, frequencies))
        })
    };
    writer.import(lengths.clone(), number, give).unwrap();
    writer.commit(Merge::Keep).unwrap();
    disk
}

#[test]
fn only_blocks_that_may_hold_a_hit_are_read() {
    let index = Index::open_on(sparse(3_000_000)).unwrap();
    let words = [
        "s1",
        "s2",
        "s3",
        "+s0 +s1",
        "s1",
        "+s5 +s0 +s2",
        "s4",
        "+s1 +s0 +none",
        "none",
        "+s5 +s6 +s7",
        "+s5 +s6 +s1",
    ];
    let words = words.map(|word| Query::parse(word, index.schema()).unwrap());
    for (meta, k, scorer) in [
        (MetaTier::Dram, 3, Scorer::default()),
        (MetaTier::Disk, 3, Scorer::default()),
        (MetaTier::Disk, 3, Scorer::Dot),
        (MetaTier::Disk, 5000, Scorer::default()),
    ] {
        let search = SearchOptions { k, scorer, count: true, ..SearchOptions::default() };
        let found = words.each_ref().map(|word| rows(&index.searcher().search(word, &search).unwrap()));
        let read = |mode| {
            let options = options(4096 * 2000, PolicyKind::Lru, Lookahead::Adaptive, EngineKind::Pread);
            let options = ExecutorOptions { meta_tier: meta.clone(), mode, ..options };
            let executor = Executor::new(&index, &options).unwrap();
            let before = index.bytes_read();
            let run: Result<(), ()> = executor.run(source(&words), &search, |number, answer| {
                assert_eq!(rows(&answer.unwrap()), found[number], "{meta} {k} {number}");
                Ok(())
            });
            assert!(run.is_ok());
            // Prefetched pages may still arrive in the cache.
            (executor.stats().unwrap().bytes_read, index.bytes_read() - before)
        };
        let ((blocks, others), (whole, _)) = (read(Mode::Direct), read(Mode::HybridPrefetch));
        assert_eq!(others, 0, "{meta}, {k}: all is read through the cache");
        // This many hits of one term need the whole list.
        assert!(
            if k == 3 { 3 * blocks < 2 * whole } else { blocks < whole },
            "{meta}, {k}: {blocks} of {whole}"
        );
    }
}

#[test]
fn long_non_essential_lists_are_not_read_whole() {
    let index = Index::open_on(sparse(3_000_000)).unwrap();
    let words = ["s1 s5", "s6 s5 s1", "s5 s2 s7 s3", "s0 s5", "s5 s7", "s6 s7 s5 s4 s1 none"];
    let words = words.map(|word| Query::parse(word, index.schema()).unwrap());
    for (meta, k, scorer) in [
        (MetaTier::Dram, 3, Scorer::default()),
        (MetaTier::Disk, 10, Scorer::default()),
        (MetaTier::Terms, 3, Bm25 { k1: 0.5, b: 0.3 }.into()),
    ] {
        let search = SearchOptions { k, scorer, count: false, ..SearchOptions::default() };
        let found = words.each_ref().map(|word| index.searcher().search(word, &search).unwrap().hits);
        let read = |words: &[Query], mode| {
            let options = options(4096 * 4000, PolicyKind::Lru, Lookahead::Adaptive, EngineKind::Pread);
            let options = ExecutorOptions { meta_tier: meta.clone(), mode, ..options };
            let executor = Executor::new(&index, &options).unwrap();
            let before = index.bytes_read();
            let run: Result<(), ()> = executor.run(source(words), &search, |_, answer| {
                assert!(found.contains(&answer.unwrap().hits), "{meta} {k}");
                Ok(())
            });
            assert!(run.is_ok());
            // Prefetched pages may still arrive in the cache.
            (executor.stats().unwrap().bytes_read, index.bytes_read() - before)
        };
        for (query, word) in words.iter().enumerate() {
            let words = std::slice::from_ref(word);
            let ((some, others), (whole, _)) = (read(words, Mode::Direct), read(words, Mode::HybridPrefetch));
            assert_eq!(others, 0, "{meta}, {k}: all is read through the cache");
            // Half of all documents tie; three matches are fewer than ten hits; or too many documents may be
            // hits.
            let saves = query < 3 || query == 3 && k == 3;
            assert!(
                if saves { 5 * some < whole } else { some <= whole },
                "{meta}, {query}: {some} of {whole}"
            );
        }
    }
}

/// A term in two million documents, of which every 300,000th contains it fifty times.
fn common() -> Arc<MemDisk> {
    let disk = Arc::new(MemDisk::new());
    let field = Field { positions: false, ..Field::new("text", Source::Text) };
    let schema = Schema { fields: vec![field], stored: false };
    let mut writer =
        IndexWriter::open(disk.clone(), schema, OpenMode::New, WriterOptions::default()).unwrap();
    let documents = (0..2_000_000).collect::<Vec<u32>>();
    let frequency = |document: &u32| if document % 300_000 == 777 { 50 } else { 1 };
    let frequencies = documents.iter().map(frequency).collect::<Vec<u32>>();
    let number = |document: u32, id: &mut String| id.push_str(&document.to_string());
    let give = |builder: &mut ListsBuilder<'_, '_>| {
        builder.term("common", |list| list.extend(&documents, &frequencies))
    };
    writer.import(frequencies.clone(), number, give).unwrap();
    writer.commit(Merge::Keep).unwrap();
    disk
}

#[test]
fn a_single_term_reads_few_entries_of_its_skip_data() {
    let index = Index::open_on(common()).unwrap();
    let query = [Query::parse("common", index.schema()).unwrap()];
    for (k, pages) in [(5, 25), (7, 25), (8, u64::MAX), (2000, u64::MAX)] {
        let search = SearchOptions { k, count: false, ..SearchOptions::default() };
        let expected = index.searcher().search(&query[0], &search).unwrap().hits;
        let options = options(4096 * 400, PolicyKind::Lru, Lookahead::Adaptive, EngineKind::Pread);
        let options = ExecutorOptions { meta_tier: MetaTier::Disk, mode: Mode::Direct, ..options };
        let executor = Executor::new(&index, &options).unwrap();
        let mut answers = 0;
        let run: Result<(), ()> = executor.run(source(&query), &search, |_, answer| {
            answers += 1;
            assert_eq!(answer.unwrap().hits, expected);
            Ok(())
        });
        assert_eq!((expected.len(), answers), (k, 1));
        let read = executor.stats().unwrap().bytes_read;
        // All entries take 23 pages, the blocks of the hits at least 7. The eighth hit is one of many ties.
        assert!(run.is_ok() && read / 4096 <= pages, "{k}: {read} bytes");
    }
}

#[test]
fn the_dictionary_counts_without_a_read() {
    let index = Index::open_on(sparse(100_000)).unwrap();
    let options = options(4096 * 40, PolicyKind::Lru, Lookahead::Adaptive, EngineKind::Pread);
    let executor = Executor::new(&index, &options).unwrap();
    let (before, search) =
        (executor.bytes_read(), SearchOptions { k: 0, count: true, ..SearchOptions::default() });
    let words = ["s5", "s0"].map(|word| Query::parse(word, index.schema()).unwrap());
    let mut totals = Vec::new();
    let run: Result<(), ()> = executor.run(source(&words), &search, |_, answer| {
        totals.push(answer.unwrap().total);
        Ok(())
    });
    assert!(run.is_ok());
    assert_eq!((totals, executor.bytes_read()), (vec![100_000, 3], before));
}

#[test]
fn a_query_that_exceeds_the_budget_is_rejected_alone() {
    const TERMS: usize = 300;
    let disk = Arc::new(MemDisk::new());
    let field = Field { positions: false, ..Field::new("text", Source::Text) };
    let schema = Schema { fields: vec![field], stored: false };
    let mut writer =
        IndexWriter::open(disk.clone(), schema, OpenMode::New, WriterOptions::default()).unwrap();
    let documents: Vec<u32> = (0..1000).collect();
    let number = |document: u32, id: &mut String| id.push_str(&document.to_string());
    let give = |builder: &mut ListsBuilder<'_, '_>| {
        (0..TERMS).try_for_each(|number| {
            let frequencies: Vec<u32> =
                documents.iter().map(|document| 1 + (document + number as u32) % 7).collect();
            builder.term(&format!("t{number:03}"), |list| list.extend(&documents, &frequencies))
        })
    };
    let lengths = |document: &u32| (0..TERMS as u32).map(|number| 1 + (document + number) % 7).sum();
    writer.import(documents.iter().map(lengths).collect(), number, give).unwrap();
    writer.commit(Merge::Keep).unwrap();
    let index = Index::open_on(disk).unwrap();
    let query = |terms: usize| {
        let text: Vec<String> = (0..terms).map(|number| format!("t{number:03}")).collect();
        Query::parse(&text.join(" "), index.schema()).unwrap()
    };
    let queries = [query(32), query(TERMS), query(1), query(32)];
    let search = SearchOptions { count: true, ..SearchOptions::default() };
    for (mode, meta) in [
        (Mode::Base, MetaTier::Disk),
        (Mode::Base, MetaTier::Dram),
        (Mode::HybridPrefetch, MetaTier::Disk),
        (Mode::HybridPrefetch, MetaTier::Dram),
    ] {
        let options = options(4096 * 40, PolicyKind::Lru, Lookahead::Adaptive, EngineKind::Pread);
        let options = ExecutorOptions { mode, meta_tier: meta, dram: Some(1), ..options };
        let least = least(&index, &options);
        for (more, rejected) in [(0, 1), (32 << 20, 0)] {
            let executor =
                Executor::new(&index, &ExecutorOptions { dram: Some(least + more), ..options.clone() })
                    .unwrap();
            let mut errors = Vec::new();
            let run: Result<(), ()> = executor.run(source(&queries), &search, |number, found| {
                match found {
                    Ok(found) => {
                        let expected = index.searcher().search(&queries[number], &search).unwrap();
                        assert_eq!(rows(&found), rows(&expected));
                    }
                    Err(error) => errors.push((number, error.to_string())),
                }
                Ok(())
            });
            assert!(run.is_ok());
            assert_eq!(errors.len(), rejected, "{errors:?}");
            assert!(
                errors.iter().all(|(number, why)| *number == 1 && why.contains("fewer terms")),
                "{errors:?}"
            );
        }
    }
}

/// The budget that a rejection names.
fn least(index: &Index, options: &ExecutorOptions) -> u64 {
    let error = Executor::new(index, options).err().unwrap().to_string();
    let number = error.split(": ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    number.parse::<Size>().unwrap_or_else(|_| panic!("{error}")).of(0)
}

#[test]
fn a_rejected_budget_names_a_sufficient_one() {
    let index = Index::open_on(sparse(100_000)).unwrap();
    let options = options(4096 * 40, PolicyKind::Lru, Lookahead::Adaptive, EngineKind::Pread);
    let needed = |options: &ExecutorOptions| least(&index, options);
    let small = ExecutorOptions { dram: Some(1), ..options };
    let enough = needed(&small);
    let with = |dram| ExecutorOptions { dram: Some(dram), ..small.clone() };
    assert!(Executor::new(&index, &with(enough)).is_ok());
    assert_eq!(needed(&with(enough - 1024)), enough);
    // Hits and threads need memory; hits are limited to the number of documents.
    let hits = |hits| needed(&ExecutorOptions { hits_max: hits, ..small.clone() });
    assert!(hits(50_000) > enough && hits(100_000) > hits(50_000) && hits(100_000) == hits(1 << 40));
    assert!(needed(&ExecutorOptions { threads: 4, ..small.clone() }) > enough + (3 << 20));
}
