//! Results do not depend on the location of posting lists: in files, resident, or in the cache of an engine;
//! for inline lists and lists of many blocks, and for queries of all shapes.

mod support;

use std::sync::Arc;
use support::corpus::{Shape, corpus, documents_in_bursts};
use support::lent::LentLists;
use support::queries;
use support::random::Random;
use support::{Growth, build, on_two_threads, tunings};
use tierdex::cache::PolicyKind;
use tierdex::codec::Codec;
use tierdex::engine::{Engine, EngineOptions, MetaTier, SearchRequest};
use tierdex::index::{HitIds, Index, Merge, SearchOptions, SearchResult, Tuning};
use tierdex::io::{Disk, EngineKind, MemDisk, PosixDisk, RegionKind, Size};
use tierdex::query::Query;
use tierdex::rank::Bm25;

/// Number of queries to each index.
const QUERIES: usize = 90;

/// Hits, and the number of matches if it is exact.
type Answer = (u64, Vec<(u32, u32)>);

fn answer(found: &SearchResult, count: bool) -> Answer {
    let rows = found.hits.iter().map(|hit| (hit.document, hit.score.to_bits())).collect();
    // A lower bound of the number of matches depends on the strategy.
    (found.total * u64::from(count), rows)
}

/// An index, queries, and search options.
#[derive(Clone)]
struct Case {
    index: Index,
    texts: Vec<String>,
    queries: Vec<Query>,
    search: SearchOptions,
    expected: Vec<Answer>,
}

impl Case {
    fn new(disk: &Arc<dyn Disk>, seed: u64, search: SearchOptions) -> Case {
        let index = Index::open_on(disk.clone()).unwrap();
        let mut random = Random::new(seed);
        let (mut texts, mut queries) = (Vec::new(), Vec::new());
        while queries.len() < QUERIES {
            let text = queries::any_text(&mut random, index.schema());
            if let Ok(query) = Query::parse(&text, index.schema()) {
                texts.push(text);
                queries.push(query);
            }
        }
        let searcher = index.searcher();
        let default = SearchOptions { tuning: Tuning::default(), ..search };
        let found = queries.iter().map(|query| searcher.search(query, &default).unwrap());
        let expected = found.map(|found| answer(&found, search.count)).collect();
        Case { index, texts, queries, search, expected }
    }

    fn check(&self, number: usize, found: &SearchResult, how: &str) {
        let found = answer(found, self.search.count);
        assert_eq!(found, self.expected[number], "{how}: {} with {:?}", self.texts[number], self.search);
    }

    /// Runs all queries in a new engine.
    fn execute(&self, options: &EngineOptions, how: &str) {
        self.ask(&Engine::new(&self.index, options).unwrap(), how);
    }

    /// Runs all queries in an engine.
    fn ask(&self, engine: &Engine, how: &str) {
        let request = |query: &Query| SearchRequest::new(query.clone()).options(self.search);
        let (mut queries, mut answered) = (self.queries.iter(), 0);
        let run: Result<(), ()> = engine.run_ordered(
            || Ok(queries.next().map(request)),
            |number, found| {
                let found = found.unwrap_or_else(|error| panic!("{how}: {error}"));
                let total = found.total.value();
                self.check(number, &SearchResult { total, hits: found.hits, ids: HitIds::default() }, how);
                answered += 1;
                Ok(())
            },
        );
        assert!(run.is_ok() && answered == self.queries.len());
    }
}

/// Search options with and without pruning and counting, and with all tunings.
fn searches() -> Vec<SearchOptions> {
    let default = SearchOptions { k: 20, count: true, ..SearchOptions::default() };
    let searches = [
        SearchOptions { count: false, ..default },
        SearchOptions { count: false, k: 400, scorer: Bm25 { k1: 0.9, b: 0.4 }.into(), ..default },
        SearchOptions { count: false, exhaustive: true, ..default },
        SearchOptions { k: 3, ..default },
    ];
    searches
        .into_iter()
        .flat_map(|search| tunings().map(|tuning| SearchOptions { tuning, ..search }))
        .collect()
}

fn written(count: usize, segments: usize, codec: Codec, disk: Arc<dyn Disk>) -> Arc<dyn Disk> {
    // With few documents all lists are inline.
    let docs = if count < 250 { corpus(3, count) } else { documents_in_bursts(3, count) };
    let cuts: Vec<usize> = (1..segments).map(|part| part * docs.len() / segments).collect();
    let schema = Shape { stored: false, codec, ..Shape::default() }.schema();
    build(&disk, &schema, &docs, &cuts, Growth::Commits, Merge::Keep);
    disk
}

fn memory() -> Arc<dyn Disk> {
    Arc::new(MemDisk::new())
}

#[test]
fn resident_lists_and_lists_in_files_give_the_same_results() {
    let directory = tempfile::tempdir().unwrap();
    let real: Arc<dyn Disk> = Arc::new(PosixDisk::create(directory.path()).unwrap());
    let disks = [
        written(200, 1, Codec::Auto, memory()),
        written(200, 5, Codec::Auto, memory()),
        written(20_000, 1, Codec::Auto, memory()),
        written(20_000, 3, Codec::Pfor256Delta, memory()),
        // Its documents are used in place.
        written(20_000, 3, Codec::Raw, memory()),
        written(20_000, 3, Codec::Auto, real),
    ];
    for (disk, search) in
        disks.iter().flat_map(|disk| searches().into_iter().map(move |search| (disk, search)))
    {
        let case = Case::new(disk, 11, search);
        let tmpfs = tempfile::tempdir_in("/dev/shm").ok();
        let file = tmpfs.as_ref().map(|dir| RegionKind::File(dir.path().join("index")));
        let lending = Index::open_on(disk.clone()).unwrap();
        let lists = LentLists::load(&lending).unwrap();
        for (number, query) in case.queries.iter().enumerate() {
            case.check(number, &lists.search(query, &search).unwrap(), "lent");
        }
        // Lists of few documents are in the skip data.
        assert!(lists.lent() > 0 || lending.documents() < 1000);
        for region in [Some(RegionKind::Dram), file] {
            let Some(region) = region else { continue };
            let kept = Index::open_on(disk.clone()).unwrap();
            let bytes = kept.kept_bytes();
            kept.keep_in(&region).unwrap();
            assert!(bytes > 0 && kept.kept_bytes() == 0);
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
    let disks = codecs.map(|codec| written(9000, 2, codec, memory()));
    for search in searches() {
        let case = Case::new(&disks[0], 12, search);
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
        written(200, 2, Codec::Auto, memory()),
        written(20_000, 1, Codec::Auto, memory()),
        written(20_000, 3, Codec::Auto, real),
    ];
    let cases: Vec<Case> = disks
        .iter()
        .zip(21..)
        .flat_map(|(disk, seed)| searches().into_iter().map(move |search| Case::new(disk, seed, search)))
        .collect();
    let metas = [MetaTier::Disk, MetaTier::Terms, MetaTier::Dram, MetaTier::Region(RegionKind::Dram)];
    let run = |number: usize| {
        for (turn, meta) in metas.iter().enumerate() {
            let turn = number + turn;
            let options = EngineOptions::new()
                .cache_size(RegionKind::Dram, Size::Bytes([4096 * 6, 4096 * 200][turn % 2]))
                .policy(PolicyKind::ALL[turn % PolicyKind::ALL.len()])
                .reads(EngineKind::Pread, 4)
                .gap_pages(turn as u64 % 4)
                .threads(1 + turn % 3)
                .meta_tier(meta.clone());
            cases[number].execute(&options, &meta.to_string());
        }
    };
    assert_eq!(on_two_threads(cases.len(), run).len(), cases.len());
}

#[test]
fn an_engine_that_holds_the_index_in_memory_reads_no_lists_and_gives_the_same_results() {
    let disks = [
        written(200, 1, Codec::Auto, memory()),
        written(20_000, 3, Codec::Auto, memory()),
        // Its documents are used in place.
        written(20_000, 2, Codec::Raw, memory()),
    ];
    let tmpfs = tempfile::tempdir_in("/dev/shm").ok();
    let file = tmpfs.as_ref().map(|dir| RegionKind::File(dir.path().join("index")));
    for (disk, search) in
        disks.iter().flat_map(|disk| searches().into_iter().map(move |search| (disk, search)))
    {
        let expected = Case::new(disk, 31, search);
        for (region, threads) in [(Some(RegionKind::Dram), 1), (file.clone(), 3)] {
            let Some(region) = region else { continue };
            let case = Case { index: Index::open_on(disk.clone()).unwrap(), ..expected.clone() };
            let options = EngineOptions::new().keep_in(region).threads(threads);
            let engine = Engine::new(&case.index, &options).unwrap();
            case.ask(&engine, "held in memory");
            // Without hits, as their ids are on disk.
            let read = engine.bytes_read();
            for query in &case.queries {
                engine.search(SearchRequest::new(query.clone()).k(0).count(true)).unwrap();
            }
            assert_eq!(engine.bytes_read(), read);
        }
    }
}

/// Canary: a different result makes the comparison fail.
#[test]
#[should_panic(expected = "other documents")]
fn a_different_result_is_detected() {
    let case = Case::new(&written(200, 1, Codec::Auto, memory()), 5, searches()[7]);
    let other = Index::open_on(written(190, 1, Codec::Auto, memory())).unwrap();
    for (number, query) in case.queries.iter().enumerate() {
        case.check(number, &other.searcher().search(query, &case.search).unwrap(), "other documents");
    }
}
