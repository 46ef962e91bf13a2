//! Results do not depend on where posting lists are: in files, resident in memory, or in the cache of an
//! engine. Tested for inline lists and lists of many blocks, and for random queries.

use crate::support::query_cases::{QueryCase, memory_disk, search_option_cases, write_documents};
use crate::support::{lent::LentLists, on_two_threads, requests::run_queries};
use std::sync::Arc;
use tierdex::codec::Codec;
use tierdex::explain::{HitIds, SearchResult};
use tierdex::internal::cache::PolicyKind;
use tierdex::internal::engine::MetaTier;
use tierdex::io::{Disk, PosixDisk, ReadKind, RegionKind, Size};
use tierdex::{Engine, EngineOptions, Index, SearchRequest};

/// Runs all queries of a case in a new engine, and compares the results with the expected ones.
fn check_in_new_engine(case: &QueryCase, options: &EngineOptions, how: &str) {
    check_in_engine(case, &Engine::new(&case.index, options).unwrap(), how);
}

/// Runs all queries of a case in an engine, and compares the results with the expected ones. `how` is a name
/// for the engine in error messages.
fn check_in_engine(case: &QueryCase, engine: &Engine, how: &str) {
    let mut answered = 0;
    run_queries(engine, &case.queries, &case.search, |number, found| {
        let found = found.unwrap_or_else(|error| panic!("{how}: {error}"));
        let total = found.total.value();
        case.check(number, &SearchResult { total, hits: found.hits, ids: HitIds::default() }, how);
        answered += 1;
    });
    assert_eq!(answered, case.queries.len());
}

#[test]
fn resident_lists_and_lists_in_files_give_the_same_results() {
    let directory = tempfile::tempdir().unwrap();
    let real: Arc<dyn Disk> = Arc::new(PosixDisk::create(directory.path()).unwrap());
    let disks = [
        write_documents(200, 1, Codec::Auto, memory_disk()),
        write_documents(200, 5, Codec::Auto, memory_disk()),
        write_documents(20_000, 1, Codec::Auto, memory_disk()),
        write_documents(20_000, 3, Codec::Pfor256Delta, memory_disk()),
        // Its documents are used in place.
        write_documents(20_000, 3, Codec::Raw, memory_disk()),
        write_documents(20_000, 3, Codec::Auto, real),
    ];
    for (disk, search) in
        disks.iter().flat_map(|disk| search_option_cases().into_iter().map(move |search| (disk, search)))
    {
        let case = QueryCase::new(disk, 11, search);
        let tmpfs = tempfile::tempdir_in("/dev/shm").ok();
        let file = tmpfs.as_ref().map(|dir| RegionKind::File(dir.path().join("index")));
        let lending = Index::open_on(disk.clone()).unwrap();
        let lists = LentLists::load(&lending).unwrap();
        for (number, query) in case.queries.iter().enumerate() {
            case.check(number, &lists.search(query, &search).unwrap(), "lent");
        }
        // In a small index all lists are inline in skip records, which are not lent.
        assert!(lists.lent() > 0 || lending.documents() < 1000);
        for region in [Some(RegionKind::Dram), file] {
            let Some(region) = region else { continue };
            let kept = Index::open_on(disk.clone()).unwrap();
            crate::support::load_into_region(&kept, region).unwrap();
            let read = kept.bytes_read();
            let searcher = kept.searcher();
            for (number, query) in case.queries.iter().enumerate() {
                case.check(number, &searcher.search(query, &search).unwrap(), "in memory");
            }
            assert_eq!(kept.bytes_read(), read);
        }
    }
}

/// The same documents with different codecs give the same results.
#[test]
fn all_codecs_give_the_same_results() {
    let codecs = [Codec::Auto, Codec::Bitmap, Codec::Pfor256Delta, Codec::VByteDelta, Codec::Raw];
    let disks = codecs.map(|codec| write_documents(9000, 2, codec, memory_disk()));
    for search in search_option_cases() {
        let case = QueryCase::new(&disks[0], 12, search);
        for (disk, codec) in disks.iter().zip(codecs).skip(1) {
            let index = Index::open_on(disk.clone()).unwrap();
            let searcher = index.searcher();
            for (number, query) in case.queries.iter().enumerate() {
                case.check(number, &searcher.search(query, &search).unwrap(), codec.name());
            }
        }
    }
}

#[test]
fn engines_with_any_cache_and_memory_tier_give_the_same_results() {
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
        for (turn, meta) in metas.iter().enumerate() {
            let turn = number + turn;
            let options = EngineOptions::new()
                .cache_size(RegionKind::Dram, Size::Bytes([4096 * 6, 4096 * 200][turn % 2]))
                .policy(PolicyKind::ALL[turn % PolicyKind::ALL.len()])
                .reads(ReadKind::Pread, 4)
                .read_costs(tierdex::ReadCosts::of_gap(turn as u64 % 4))
                .threads(1 + turn % 3)
                .meta_tier(meta.clone());
            check_in_new_engine(&cases[number], &options, &meta.to_string());
        }
    };
    assert_eq!(on_two_threads(cases.len(), run).len(), cases.len());
}

#[test]
fn an_engine_that_holds_the_index_in_memory_reads_no_lists_and_gives_the_same_results() {
    let disks = [
        write_documents(200, 1, Codec::Auto, memory_disk()),
        write_documents(20_000, 3, Codec::Auto, memory_disk()),
        // Its documents are used in place.
        write_documents(20_000, 2, Codec::Raw, memory_disk()),
    ];
    let tmpfs = tempfile::tempdir_in("/dev/shm").ok();
    let file = tmpfs.as_ref().map(|dir| RegionKind::File(dir.path().join("index")));
    for (disk, search) in
        disks.iter().flat_map(|disk| search_option_cases().into_iter().map(move |search| (disk, search)))
    {
        let expected = QueryCase::new(disk, 31, search);
        for (region, threads) in [(Some(RegionKind::Dram), 1), (file.clone(), 3)] {
            let Some(region) = region else { continue };
            let case = QueryCase { index: Index::open_on(disk.clone()).unwrap(), ..expected.clone() };
            let options = EngineOptions::new().keep_in(region).threads(threads);
            let engine = Engine::new(&case.index, &options).unwrap();
            check_in_engine(&case, &engine, "held in memory");
            // No hits are requested, because their ids would be read from disk.
            let read = engine.bytes_read();
            for query in &case.queries {
                engine.search(SearchRequest::new(query.clone()).k(0).count(true)).unwrap();
            }
            assert_eq!(engine.bytes_read(), read);
        }
    }
}

/// Tests the test itself: a different result makes the comparison fail.
#[test]
#[should_panic(expected = "other documents")]
fn a_different_result_is_detected() {
    let case =
        QueryCase::new(&write_documents(200, 1, Codec::Auto, memory_disk()), 5, search_option_cases()[7]);
    let other = Index::open_on(write_documents(190, 1, Codec::Auto, memory_disk())).unwrap();
    for (number, query) in case.queries.iter().enumerate() {
        case.check(number, &other.searcher().search(query, &case.search).unwrap(), "other documents");
    }
}
