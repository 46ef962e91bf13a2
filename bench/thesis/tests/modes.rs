//! Batches of queries in the modes of the thesis, with a cache that is far too small: the results are those
//! of an index in memory.

#[path = "../../../crates/tierdex/tests/support/mod.rs"]
mod support;

use proptest::prelude::*;
use std::{collections::BTreeSet, sync::Arc};
use support::lists::{
    query_of_first_terms, random_queries, total_and_hits, write_many_terms, write_sparse_lists,
};
use support::query_cases::{QueryCase, memory_disk, search_option_cases, write_documents};
use support::{AddMethod, all_tunings, build, build_in_memory, index_in_memory, on_two_threads};
use support::{corpus::SchemaOptions, corpus::random_documents, random::Random};
use tierdex::internal::{engine::MetaTier, segment::read::FILES};
use tierdex::{Index, Merge, Query, SearchOptions, codec::Codec, explain::SearchResult};
use tierdex_io::{
    Disk, Effect, FaultDisk, FaultPlan, MemDisk, OpClass, PosixDisk, ReadKind, RegionKind, Repeat, Size,
};
use tierdex_thesis::{FileReads, ListExecutor, ListOptions, Lookahead, Mode, memory_report};

fn small_cache_options(cells: u64, lookahead: Lookahead, kind: ReadKind) -> ListOptions {
    ListOptions {
        mode: Mode::HybridPrefetch,
        region: RegionKind::Dram,
        size: Size::Bytes(4096 * cells),
        list_cell_bytes: 4096,
        lookahead,
        read_method: kind,
        read_depth: 4,
        ..ListOptions::default()
    }
}

/// Runs one query after another; calls `answer` with their results in order.
fn run_queries(
    executor: &ListExecutor,
    queries: &[Query],
    search: &SearchOptions,
    mut answer: impl FnMut(usize, tierdex::Result<SearchResult>) + Send,
) {
    let mut queries = queries.iter();
    let source = || Ok::<_, ()>(queries.next().cloned());
    let run = executor.run_timed(source, search, |number, found| {
        answer(number, found.map(|(found, _)| found));
        Ok(())
    });
    assert!(run.is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn caches_of_any_size_change_no_answer(
        seed in any::<u64>(),
        cells in 2u64..40,
        lookahead in prop_oneof![Just(Lookahead::Adaptive), (1u64..20).prop_map(Lookahead::Queries)],
        kind in prop::sample::select(vec![ReadKind::Pread, ReadKind::Auto]),
        (exhaustive, count) in any::<(bool, bool)>(),
        tuning in prop::sample::select(all_tunings().to_vec()),
        (real, mapped) in any::<(bool, bool)>(),
        mode in prop::sample::select(Mode::ALL.to_vec()),
        meta in prop::sample::select(vec![MetaTier::Disk, MetaTier::Terms, MetaTier::Dram, MetaTier::Region(RegionKind::Dram)]),
        threads in 1usize..4,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = if real {
            Arc::new(PosixDisk::create(directory.path()).unwrap())
        } else {
            Arc::new(MemDisk::new())
        };
        let schema = SchemaOptions::one_field().schema();
        build(&disk, &schema, &random_documents(seed, 3000), &[1700], AddMethod::Commits, Merge::Keep);
        let index = Index::open_on(disk).unwrap();
        let queries = random_queries(&mut Random::new(seed), 60, &index);
        let search = SearchOptions { k: 20, exhaustive, count, ..SearchOptions::default() };
        let searcher = index.searcher();
        // A lower bound of the number of matches depends on the strategy.
        let counted_hits = |found: &SearchResult| (found.total * u64::from(count), total_and_hits(found).1);
        let expected: Vec<_> = queries.iter().map(|query| counted_hits(&searcher.search(query, &search).unwrap())).collect();
        let options = small_cache_options(cells, lookahead, kind);
        let file_reads = if mapped { FileReads::Mapped } else { FileReads::Pread };
        let options = ListOptions { mode, file_reads, meta_tier: meta, threads, ..options };
        let executor = ListExecutor::new(&index, &options).unwrap();
        let mut answered = 0;
        let search = SearchOptions { tuning, ..search };
        run_queries(&executor, &queries, &search, |number, found| {
            assert_eq!((number, counted_hits(&found.unwrap())), (answered, expected[number].clone()));
            answered += 1;
        });
        prop_assert_eq!(answered, queries.len());
        let Some(stats) = executor.stats() else { return Ok(()) };
        prop_assert_eq!(stats.failures, 0);
        if mode != Mode::Hybrid {
            prop_assert_eq!(stats.queries, 0);
            prop_assert_eq!(stats.cells_free + stats.cells_evictable, stats.cells);
        }
        let metadata = executor.memory().rows.iter().find(|row| row.what == "cache metadata").unwrap();
        prop_assert!(stats.metadata_bytes <= metadata.bytes, "{} {}", stats.metadata_bytes, metadata.bytes);
    }
}

#[test]
fn a_failed_read_fails_one_query() {
    let inner = build_in_memory(&SchemaOptions::one_field().schema(), &random_documents(3, 3000), &[]);
    let whole = Index::open_on(inner.clone()).unwrap();
    let search = SearchOptions { count: true, ..SearchOptions::default() };
    let mut harmed = 0;
    for place in 0..40 {
        let disk = Arc::new(FaultDisk::new(inner.clone(), FaultPlan::none()));
        let index = Index::open_on(disk.clone()).unwrap();
        let queries = random_queries(&mut Random::new(9), 30, &index);
        let options = small_cache_options(12, Lookahead::Adaptive, ReadKind::Pread);
        let executor = ListExecutor::new(&index, &options).unwrap();
        let at = 1 + place;
        disk.arm(FaultPlan { class: OpClass::Read, at, effect: Effect::Error(5), repeat: Repeat::Once });
        let mut failed = 0;
        let search = SearchOptions { tuning: all_tunings()[place as usize % 2], ..search };
        run_queries(&executor, &queries, &search, |number, found| {
            let expected = whole.searcher().search(&queries[number], &search).unwrap();
            match found {
                Ok(found) => assert_eq!(total_and_hits(&found), total_and_hits(&expected)),
                Err(error) => {
                    failed += 1;
                    assert!(error.to_string().starts_with("cannot read"), "{error}");
                }
            }
        });
        harmed += usize::from(failed > 0);
        // Queries that wait for the same list fail together; the next query reads it again.
        assert_eq!(executor.stats().unwrap().queries, 0);
    }
    assert!(harmed > 5, "{harmed}");
}

#[test]
fn a_damaged_page_fails_the_queries_that_read_it_in_every_mode() {
    let disk = write_sparse_lists(100_000);
    let whole = Index::open_on(disk.clone()).unwrap();
    let queries = ["s1", "s7", "s1 s7"].map(|text| Query::parse(text, whole.schema()).unwrap());
    let search = SearchOptions { k: 3, count: true, ..SearchOptions::default() };
    let expected = total_and_hits(&whole.searcher().search(&queries[1], &search).unwrap());
    // The first page of blocks of the first list that has any.
    let names = disk.list().unwrap();
    let postings = names.iter().find(|name| name.ends_with(".postings")).unwrap();
    let plan = whole.searcher().plan(&queries[0], &search, &FILES).unwrap();
    let range = plan.lists(whole.segments())[0].ranges.last().unwrap().range.clone();
    disk.corrupt(postings, |bytes| bytes[range.start as usize + 100] ^= 1);
    for mode in Mode::ALL {
        for file_reads in [FileReads::Mapped, FileReads::Pread] {
            let index = Index::open_on(disk.clone()).unwrap();
            let options = small_cache_options(40, Lookahead::Adaptive, ReadKind::Pread);
            let executor = ListExecutor::new(&index, &ListOptions { mode, file_reads, ..options }).unwrap();
            let mut failed = Vec::new();
            run_queries(&executor, &queries, &search, |number, found| match found {
                Ok(found) => assert_eq!(total_and_hits(&found), expected, "{mode}"),
                Err(error) => failed.push((number, error.to_string())),
            });
            let numbers: Vec<usize> = failed.iter().map(|(number, _)| *number).collect();
            assert_eq!(numbers, [0, 2], "{mode} {failed:?}");
            assert!(failed.iter().all(|(_, error)| error.contains("checksum")), "{mode} {failed:?}");
        }
    }
}

#[test]
fn the_memory_report_has_the_parts_of_the_mode() {
    let index = Index::open_on(write_sparse_lists(100_000)).unwrap();
    let report = |mode, file_reads| {
        let options = small_cache_options(40, Lookahead::Adaptive, ReadKind::Pread);
        memory_report(&index, &ListOptions { mode, file_reads, dram: Some(24 << 20), ..options })
    };
    for mode in Mode::ALL {
        for file_reads in [FileReads::Mapped, FileReads::Pread] {
            let report = report(mode, file_reads);
            let has = |what: &str| report.rows.iter().any(|row| row.what == what);
            // A bit for each page of a mapped file.
            let maps = file_reads == FileReads::Mapped && !mode.has_cache();
            assert_eq!(has("verified pages"), maps, "{mode}: {report}");
            assert_eq!((has("cache"), has("cache metadata")), (mode.has_cache(), mode.has_cache()));
            assert_eq!(has("readers and reads in flight"), mode != Mode::Base, "{mode}: {report}");
            assert!(report.needed() <= 24 << 20 && report.check().is_ok(), "{mode}: {report}");
        }
    }
}

#[test]
fn an_error_of_the_source_or_the_consumer_ends_the_run() {
    let index = index_in_memory(&SchemaOptions::one_field().schema(), &random_documents(3, 1000), &[]);
    let queries = random_queries(&mut Random::new(9), 50, &index);
    let search = SearchOptions { count: true, ..SearchOptions::default() };
    for threads in [1, 3] {
        let options = small_cache_options(12, Lookahead::Adaptive, ReadKind::Pread);
        let executor = ListExecutor::new(&index, &ListOptions { threads, ..options }).unwrap();
        let mut given = queries.iter().take(20);
        let source = || given.next().cloned().map(Some).ok_or("no more");
        assert_eq!(executor.run_timed(source, &search, |_, _| Ok(())), Err("no more"));
        let mut answered = 0;
        let mut given = queries.iter();
        let source = || Ok(given.next().cloned());
        let run = executor.run_timed(source, &search, |number, found| {
            assert_eq!((number, found.is_ok()), (answered, true));
            answered += 1;
            if number == 7 { Err("enough") } else { Ok(()) }
        });
        assert_eq!((run, answered), (Err("enough"), 8));
        assert_eq!(executor.stats().unwrap().queries, 0);
    }
}

#[test]
fn the_dictionary_counts_without_a_read() {
    let index = Index::open_on(write_sparse_lists(100_000)).unwrap();
    let options = small_cache_options(40, Lookahead::Adaptive, ReadKind::Pread);
    let executor = ListExecutor::new(&index, &options).unwrap();
    let (before, search) =
        (executor.bytes_read(), SearchOptions { k: 0, count: true, ..SearchOptions::default() });
    let words = ["s5", "s0"].map(|word| Query::parse(word, index.schema()).unwrap());
    let mut totals = Vec::new();
    run_queries(&executor, &words, &search, |_, answer| totals.push(answer.unwrap().total));
    assert_eq!((totals, executor.bytes_read()), (vec![100_000, 3], before));
}

#[test]
fn a_query_that_exceeds_the_budget_is_rejected_alone() {
    const TERMS: usize = 300;
    let index = Index::open_on(write_many_terms(TERMS)).unwrap();
    let queries = [32, TERMS, 1, 32].map(|terms| query_of_first_terms(&index, terms));
    let search = SearchOptions { count: true, ..SearchOptions::default() };
    let metas = |mode: Mode| [MetaTier::Disk, MetaTier::Dram].map(|meta| (mode, meta));
    for (mode, meta) in [Mode::Base, Mode::HybridPrefetch].into_iter().flat_map(metas) {
        let options = small_cache_options(40, Lookahead::Adaptive, ReadKind::Pread);
        let options = ListOptions { mode, meta_tier: meta, dram: Some(1), ..options };
        let least = sufficient_budget(&index, &options);
        for (more, rejected) in [(0, 1), (32 << 20, 0)] {
            let options = ListOptions { dram: Some(least + more), ..options.clone() };
            let executor = ListExecutor::new(&index, &options).unwrap();
            let mut errors = Vec::new();
            run_queries(&executor, &queries, &search, |number, found| match found {
                Ok(found) => {
                    let expected = index.searcher().search(&queries[number], &search).unwrap();
                    assert_eq!(total_and_hits(&found), total_and_hits(&expected));
                }
                Err(error) => errors.push((number, error.to_string())),
            });
            assert_eq!(errors.len(), rejected, "{errors:?}");
            assert!(errors.iter().all(|(at, why)| *at == 1 && why.contains("fewer terms")), "{errors:?}");
        }
    }
}

/// The budget that a rejection names.
fn sufficient_budget(index: &Index, options: &ListOptions) -> u64 {
    let error = ListExecutor::new(index, options).err().unwrap().to_string();
    let number = error.split(": ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    number.parse::<Size>().unwrap_or_else(|_| panic!("{error}")).of(0)
}

#[test]
fn a_rejected_budget_names_a_sufficient_one() {
    let index = Index::open_on(write_sparse_lists(100_000)).unwrap();
    let options = small_cache_options(40, Lookahead::Adaptive, ReadKind::Pread);
    let needed = |options: &ListOptions| sufficient_budget(&index, options);
    let small = ListOptions { dram: Some(1), ..options };
    let enough = needed(&small);
    let with = |dram| ListOptions { dram: Some(dram), ..small.clone() };
    assert!(ListExecutor::new(&index, &with(enough)).is_ok());
    assert_eq!(needed(&with(enough - 1024)), enough);
    // Hits and threads need memory; hits are limited to the number of documents.
    let hits = |hits| needed(&ListOptions { hits_max: hits, ..small.clone() });
    assert!(hits(50_000) > enough && hits(100_000) > hits(50_000) && hits(100_000) == hits(1 << 40));
    assert!(needed(&ListOptions { threads: 4, ..small.clone() }) > enough + (3 << 20));
}

/// Runs all queries in an executor.
fn check_mode(case: &QueryCase, options: &ListOptions) {
    let executor = ListExecutor::new(&case.index, options).unwrap();
    let how = format!("{:?}, {}", options.mode, options.meta_tier);
    let mut answered = 0;
    run_queries(&executor, &case.queries, &case.search, |number, found| {
        case.check(number, &found.unwrap_or_else(|error| panic!("{how}: {error}")), &how);
        answered += 1;
    });
    assert_eq!(answered, case.queries.len());
}

#[test]
fn all_modes_give_the_same_results() {
    let directory = tempfile::tempdir().unwrap();
    let real: Arc<dyn Disk> = Arc::new(PosixDisk::create(directory.path()).unwrap());
    let disks = [
        write_documents(200, 2, Codec::Auto, memory_disk()),
        write_documents(20_000, 1, Codec::Auto, memory_disk()),
        write_documents(20_000, 3, Codec::Auto, real),
    ];
    let cases: Vec<QueryCase> = disks
        .iter()
        .zip(21..)
        .flat_map(|(disk, seed)| {
            search_option_cases().into_iter().map(move |search| QueryCase::new(disk, seed, search))
        })
        .collect();
    let metas = [MetaTier::Disk, MetaTier::Terms, MetaTier::Dram, MetaTier::Region(RegionKind::Dram)];
    let run = |number: usize| {
        let (mode, case) = (Mode::ALL[number % Mode::ALL.len()], &cases[number / Mode::ALL.len()]);
        for (turn, meta) in metas.iter().enumerate() {
            let turn = number + turn;
            let options = ListOptions {
                mode,
                meta_tier: meta.clone(),
                region: RegionKind::Dram,
                size: Size::Bytes([4096 * 6, 4096 * 200][turn % 2]),
                list_cell_bytes: 4096,
                lookahead: [Lookahead::Adaptive, Lookahead::Queries(1), Lookahead::Queries(7)][turn % 3],
                read_method: ReadKind::Pread,
                read_depth: 4,
                file_reads: [FileReads::Mapped, FileReads::Pread][turn / 2 % 2],
                threads: 1 + turn % 3,
                ..ListOptions::default()
            };
            check_mode(case, &options);
        }
        mode.to_string()
    };
    let modes: BTreeSet<String> = on_two_threads(cases.len() * Mode::ALL.len(), run).into_iter().collect();
    assert_eq!(modes.len(), Mode::ALL.len());
}
