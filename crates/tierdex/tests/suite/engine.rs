//! The engine with concurrent callers, commits, budgets and failed reads: each caller gets the result that it
//! would get alone.

use crate::support::corpus::{SchemaOptions, random_documents};
use crate::support::grown::GrownCase;
use crate::support::requests::{assert_same_hits, documents_and_score_bits, engine_options, parse_query};
use crate::support::{
    AddMethod, SMALL_TUNING, add_documents, all_tunings, build, build_in_memory, open_writer, random::Random,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tierdex::commit::ManifestSegment;
use tierdex::io::{
    Disk, Effect, FaultDisk, FaultPlan, MemDisk, Op, OpClass, PosixDisk, ReadKind, RegionKind, Repeat, Size,
};
use tierdex::schema::Field;
use tierdex::{
    Engine, EngineOptions, Error, Hits, Index, Merge, OpenMode, Priority, Result, SearchOptions,
    SearchRequest, TotalHits, internal::engine::MetaTier,
};

fn write_small_index(seed: u64, documents: usize) -> Arc<MemDisk> {
    build_in_memory(&SchemaOptions::one_field().schema(), &random_documents(seed, documents), &[])
}

const QUERY_TEXTS: [&str; 8] =
    ["all", "w0 w1", "+all +w0", "+all -w0", "\"all w0\"", "w3 w4 w5 w8", "prefix*", "+w1 #all w0"];

#[test]
fn concurrent_callers_get_the_results_of_a_single_caller() {
    let index = Index::open_on(write_small_index(5, 3000)).unwrap();
    let search = SearchOptions { k: 20, count: true, ..SearchOptions::default() };
    let found = |text| index.searcher().search(&parse_query(&index, text), &search).unwrap();
    let expected = QUERY_TEXTS.map(found);
    let [small, default] = all_tunings();
    for (pages, threads, tuning) in [(40, 1, small), (64, 2, default), (64, 2, small), (4000, 3, default)] {
        let search = SearchOptions { tuning, ..search };
        let engine = Engine::new(&index, &engine_options(pages, threads)).unwrap();
        std::thread::scope(|scope| {
            for caller in 0..8 {
                let (engine, index, expected) = (engine.clone(), &index, &expected);
                scope.spawn(move || {
                    for turn in 0..40 {
                        let number = (caller * 7 + turn * 3) % QUERY_TEXTS.len();
                        let priority = if turn % 3 == 0 { Priority::Batch } else { Priority::Interactive };
                        let request = SearchRequest::new(parse_query(index, QUERY_TEXTS[number]))
                            .options(search)
                            .priority(priority);
                        let answer = engine.search(request).unwrap();
                        assert_same_hits(&answer.hits, &expected[number].hits, QUERY_TEXTS[number]);
                        assert_eq!(answer.total, TotalHits::Exact(expected[number].total));
                        assert!(!answer.timed_out);
                    }
                });
            }
        });
        let stats = engine.stats();
        assert_eq!((stats.failures, stats.loading), (0, 0));
        assert_eq!(stats.frames_free + stats.frames_evictable, stats.frames);
    }
}

#[test]
fn an_engine_over_an_empty_index_finds_what_is_added() {
    let disk = write_small_index(1, 0);
    let options = engine_options(1000, 2).dram(64 << 20).growth(4 << 20);
    let engine = Engine::new(&Index::open_on(disk.clone()).unwrap(), &options).unwrap();
    assert_eq!(search_engine(&engine, "all").unwrap().total, TotalHits::Exact(0));
    for seed in 2..6 {
        append_documents(&disk, seed, 500, if seed == 4 { Merge::One } else { Merge::None });
        assert!(engine.refresh().unwrap());
        QUERY_TEXTS.iter().for_each(|text| assert_finds_newest(&engine, &disk, text));
    }
    // A snapshot belongs to one engine.
    let other = Engine::new(&Index::open_on(disk).unwrap(), &options).unwrap();
    let query = parse_query(engine.snapshot().index(), "all");
    let error = other.submit(SearchRequest::new(query).snapshot(engine.snapshot())).err().unwrap();
    assert!(error.to_string().contains("another engine"), "{error}");
}

#[test]
fn a_panic_in_a_callback_does_not_affect_other_requests() {
    let index = Index::open_on(write_small_index(5, 500)).unwrap();
    let engine = Engine::new(&index, &engine_options(100, 1)).unwrap();
    for _ in 0..3 {
        engine
            .submit(SearchRequest::new(parse_query(&index, "all")))
            .unwrap()
            .on_ready(|_| panic!("as a test wants it"));
    }
    assert_eq!(engine.search(SearchRequest::new(parse_query(&index, "all"))).unwrap().hits.len(), 10);
    drop(engine);
    // A callback may drop the last handle of the engine, also while other threads read.
    (1..4).for_each(|threads| drop_last_handle_in_callback(&index, threads));
}

fn drop_last_handle_in_callback(index: &Index, threads: usize) {
    let engine = Engine::new(index, &engine_options(100, threads)).unwrap();
    let others: Vec<_> = QUERY_TEXTS
        .iter()
        .map(|text| engine.submit(SearchRequest::new(parse_query(index, text))).unwrap())
        .collect();
    let (handle, ask) = (engine.clone(), SearchRequest::new(parse_query(index, "all")));
    let done = Arc::new(AtomicUsize::new(0));
    let ticket = engine.submit(ask).unwrap();
    drop(engine);
    let end = done.clone();
    ticket.on_ready(move |answer| {
        answer.unwrap();
        drop(handle);
        end.store(1, Ordering::Release);
    });
    while done.load(Ordering::Acquire) == 0 {
        std::thread::yield_now();
    }
    others.into_iter().for_each(|ticket| drop(ticket.wait()));
}

fn search_engine(engine: &Engine, text: &str) -> Result<Hits> {
    let query = parse_query(engine.snapshot().index(), text);
    let search =
        SearchOptions { k: 30, count: true, ids: true, tuning: SMALL_TUNING, ..SearchOptions::default() };
    engine.search(SearchRequest::new(query).options(search))
}

/// Total and hits of a query in a reader that is opened now.
fn search_new_reader(disk: &Arc<MemDisk>, text: &str) -> (u64, Vec<(u32, u32)>) {
    let index = Index::open_on(disk.clone()).unwrap();
    let search = SearchOptions { k: 30, count: true, ..SearchOptions::default() };
    let found = index.searcher().search(&parse_query(&index, text), &search).unwrap();
    (found.total, documents_and_score_bits(&found.hits))
}

/// Checks that the engine finds the hits of a reader that is opened now.
fn assert_finds_newest(engine: &Engine, disk: &Arc<MemDisk>, text: &str) {
    let answer = search_engine(engine, text).unwrap();
    let found = (answer.total.value(), documents_and_score_bits(&answer.hits));
    assert_eq!(found, search_new_reader(disk, text), "{text}");
}

/// Bytes that an engine reads to count the matches of a query, without hits, whose ids would be read from
/// disk.
fn bytes_read_by_count(engine: &Engine, text: &str) -> u64 {
    let (read, query) = (engine.bytes_read(), parse_query(engine.snapshot().index(), text));
    engine.search(SearchRequest::new(query).k(0).count(true)).unwrap();
    engine.bytes_read() - read
}

/// Commits more documents.
fn append_documents(disk: &Arc<MemDisk>, seed: u64, documents: usize, merge: Merge) {
    let schema = Index::open_on(disk.clone()).unwrap().schema().clone();
    let mut writer = open_writer(&(disk.clone() as _), &schema, OpenMode::Append);
    add_documents(&mut writer, &random_documents(seed, documents));
    writer.commit(merge).unwrap();
}

#[test]
fn a_refreshed_engine_finds_new_documents_and_keeps_its_cache() {
    let disk = write_small_index(5, 3000);
    let index = Index::open_on(disk.clone()).unwrap();
    let engine = Engine::new(&index, &engine_options(4000, 2)).unwrap();
    assert!(!engine.refresh().unwrap());
    let before: Vec<_> = QUERY_TEXTS.iter().map(|text| search_engine(&engine, text).unwrap()).collect();
    let read = engine.stats();
    let old = engine.snapshot();
    append_documents(&disk, 6, 400, Merge::None);
    assert!(engine.refresh().unwrap() && !engine.refresh().unwrap());
    // Searches of the old snapshot find the same, and none of its pages is read again.
    for (text, before) in QUERY_TEXTS.iter().zip(&before) {
        let request =
            SearchRequest::new(parse_query(old.index(), text)).k(30).count(true).snapshot(old.clone());
        let again = engine.search(request).unwrap();
        assert_same_hits(&again.hits, &before.hits, text);
        assert_eq!(again.total, before.total, "{text}");
    }
    assert_eq!(engine.stats().bytes_read, read.bytes_read);
    QUERY_TEXTS.iter().for_each(|text| assert_finds_newest(&engine, &disk, text));
    let grown = engine.stats();
    assert!(grown.bytes_read - read.bytes_read < read.bytes_read / 2, "{grown:?}");
    // A merge replaces all segments: their cache entries are removed when no snapshot uses them.
    append_documents(&disk, 7, 10, Merge::One);
    assert!(engine.refresh().unwrap());
    let used = |engine: &Engine| engine.stats().frames_used();
    assert!(used(&engine) > 0);
    drop((old, before));
    // A thread may hold the snapshot slightly longer than its caller waits for the result.
    while used(&engine) > 0 {
        std::thread::yield_now();
    }
    QUERY_TEXTS.iter().for_each(|text| assert_finds_newest(&engine, &disk, text));
}

/// A commit that adds a segment, or a field, opens none of the older segments again and keeps their pages.
#[test]
fn commits_keep_the_files_and_pages_of_older_segments() {
    let case = GrownCase::new(SchemaOptions::default(), random_documents(5, 3000), 2400);
    let memory = case.build_older();
    let disk = FaultDisk::new(memory.clone(), FaultPlan::none());
    let index = Index::open_on(Arc::new(disk.clone())).unwrap();
    let engine = Engine::new(&index, &engine_options(4000, 1)).unwrap();
    let texts = ["w0 w3 prefix2", "\"w0 w0\"", "NOT w0", "+wo* w4"];
    texts.iter().for_each(|text| drop(search_engine(&engine, text).unwrap()));
    let older: Vec<String> = index.manifest().segments.iter().flat_map(ManifestSegment::file_names).collect();
    let shared: Arc<dyn Disk> = Arc::new(memory.clone());
    let mut schema = case.schemas[0].clone();
    for step in 0..3 {
        // A field alone, then a field and a segment, then a segment.
        if step < 2 {
            schema.fields.push(Field::new(["title", "more"][step], &["title"]));
        }
        let mut writer = open_writer(&shared, &schema, OpenMode::Append);
        if step > 0 {
            writer.add("new", [("title", "zebra"), ("text", "zebra")]).unwrap();
        }
        writer.commit(Merge::None).unwrap();
        drop(writer);
        disk.arm(FaultPlan::none());
        assert!(engine.refresh().unwrap());
        texts.iter().for_each(|text| drop(search_engine(&engine, text).unwrap()));
        let found = search_engine(&engine, "title:zebra").unwrap();
        assert_eq!(found.total, TotalHits::Exact(step as u64));
        // Scores change, so that ids of other hits may be read.
        let is_older = |name: &String| older.contains(name) && !name.ends_with(".ids");
        let used: Vec<String> = disk.log().into_iter().map(|operation| operation.file).collect();
        assert!(!used.is_empty() && !used.iter().any(is_older), "{used:?}");
        assert!(disk.log().iter().all(|of| of.op != Op::Open || !older.contains(&of.file)));
    }
}

#[test]
fn pages_of_another_segment_with_the_same_id_are_not_served() {
    let disk = write_small_index(5, 3000);
    let engine = Engine::new(&Index::open_on(disk.clone()).unwrap(), &engine_options(4000, 1)).unwrap();
    QUERY_TEXTS.iter().for_each(|text| drop(search_engine(&engine, text).unwrap()));
    let numbers = |engine: &Engine| -> Vec<u64> {
        engine.snapshot().index().segments().iter().map(|segment| segment.meta().id).collect()
    };
    let before = numbers(&engine);
    // The index is recreated in the same directory: segment ids start again.
    let names = disk.list().unwrap();
    names.iter().for_each(|name| disk.remove(name).unwrap());
    let schema = SchemaOptions::one_field().schema();
    build(&(disk.clone() as _), &schema, &random_documents(99, 3000), &[], AddMethod::Commits, Merge::None);
    assert!(engine.refresh().unwrap());
    assert_eq!(numbers(&engine), before);
    QUERY_TEXTS.iter().for_each(|text| assert_finds_newest(&engine, &disk, text));
}

#[test]
fn the_budget_includes_hits_queued_requests_and_later_commits() {
    let disk = write_small_index(5, 3000);
    let index = Index::open_on(disk.clone()).unwrap();
    let bounded = |growth| {
        let options = EngineOptions::new().dram(64 << 20).hits_max(50).threads(1).growth(growth);
        Engine::new(&index, &options).unwrap()
    };
    let engine = bounded(0);
    let ask = |k| engine.search(SearchRequest::new(parse_query(&index, "all")).k(k));
    assert_eq!(ask(50).unwrap().hits.len(), 50);
    let error = ask(51).err().unwrap();
    assert!(matches!(error, Error::Usage(_)) && error.to_string().contains("51 hits"), "{error}");
    // The queue is bounded: single requests are rejected, batches wait.
    let mut tickets = Vec::new();
    let words: String = (0..500).map(|number| format!("word{number} ")).collect();
    let long = parse_query(&index, &format!("all {words}"));
    let error = loop {
        match engine.submit(SearchRequest::new(long.clone())) {
            Ok(ticket) => tickets.push(ticket),
            Err(error) => break error,
        }
        assert!(tickets.len() < 100_000);
    };
    assert!(matches!(error, Error::Overloaded { .. }) && error.retry_after().is_some(), "{error}");
    assert_eq!(error.code(), "overloaded");
    tickets.into_iter().for_each(|ticket| assert_eq!(ticket.wait().unwrap().hits.len(), 10));
    // The resident data of a new segment must fit in the budget.
    let total = search_new_reader(&disk, "all").0;
    let roomy = bounded(1 << 20);
    append_documents(&disk, 6, 1000, Merge::None);
    let error = engine.refresh().err().unwrap();
    assert!(matches!(error, Error::TooLarge(_)), "{error}");
    assert_eq!(search_engine(&engine, "all").unwrap().total, TotalHits::Exact(total));
    assert!(roomy.refresh().unwrap());
    assert_finds_newest(&roomy, &disk, "all");
}

#[test]
fn norms_of_a_new_segment_are_in_the_region_of_the_cache_if_the_budget_is_too_small() {
    let bounded = |region: Option<RegionKind>| {
        let disk = write_small_index(2, 20_000);
        let index = Index::open_on(disk.clone()).unwrap();
        let region = region.unwrap_or(RegionKind::Dram);
        // All metadata of the first commit is in DRAM. The reserve is too small for the norms of the next.
        let options = engine_options(1000, 1).dram(64 << 20).growth(8 << 10).meta_tier(MetaTier::Dram);
        let options = options.cache_size(region, Size::Bytes(4096 * 1000));
        (Engine::new(&index, &options).unwrap(), disk)
    };
    let (engine, disk) = bounded(None);
    append_documents(&disk, 6, 20_000, Merge::None);
    assert!(matches!(engine.refresh().err().unwrap(), Error::TooLarge(_)));
    let path = format!("/dev/shm/tierdex-engine-{}", std::process::id());
    let (engine, disk) = bounded(Some(RegionKind::File(path.into())));
    append_documents(&disk, 6, 20_000, Merge::None);
    assert!(engine.refresh().unwrap());
    assert_finds_newest(&engine, &disk, "all");
}

#[test]
fn metadata_of_a_new_segment_are_in_dram_if_the_region_cannot_be_allocated() {
    for (growth, fits) in [(1 << 20, true), (1 << 10, false)] {
        let (disk, dir) = (write_small_index(2, 20_000), tempfile::tempdir_in("/dev/shm").unwrap());
        let index = Index::open_on(disk.clone()).unwrap();
        let region = RegionKind::File(dir.path().join("region"));
        let options = engine_options(1000, 1).dram(64 << 20).growth(growth).meta_tier(MetaTier::Terms);
        let options = options.cache_size(region, Size::Bytes(4096 * 1000));
        let engine = Engine::new(&index, &options).unwrap();
        // Later regions are files of the same name.
        dir.close().unwrap();
        append_documents(&disk, 6, 20_000, Merge::None);
        match engine.refresh() {
            Ok(changed) => assert!(changed && fits),
            Err(error) => assert!(!fits && error.to_string().contains("region"), "{error}"),
        }
        let commit = if fits { disk } else { write_small_index(2, 20_000) };
        assert_finds_newest(&engine, &commit, "all");
    }
}

#[test]
fn an_index_in_dram_counts_towards_the_budget_and_later_commits_towards_the_growth() {
    let (disk, lists) = (write_small_index(5, 3000), "posting lists and positions");
    let index = Index::open_on(disk.clone()).unwrap();
    let options = |dram: u64| EngineOptions::new().keep_in(RegionKind::Dram).threads(1).dram(dram);
    let report = options(1 << 20).resolve(&index).memory_report(&index);
    let row = report.rows.iter().find(|row| row.what == lists).unwrap();
    assert!(row.bytes > 10_000 && row.region.is_none(), "{row:?}");
    let least = report.least().unwrap();
    let error = Engine::new(&index, &options(least - 1024)).err().unwrap().to_string();
    assert!(error.contains("is too small") && !error.contains('\n'), "{error}");
    assert!(Engine::new(&index, &options(least)).is_ok());
    // Lists of later commits are read from disk if they exceed the growth.
    for (growth, reads) in [(60 << 10, true), (4 << 20, false)] {
        let index = Index::open_on(disk.clone()).unwrap();
        let engine = Engine::new(&index, &options(least + (8 << 20)).growth(growth)).unwrap();
        append_documents(&disk, 6, 20_000, Merge::None);
        assert!(engine.refresh().unwrap());
        assert_eq!(bytes_read_by_count(&engine, "all w0") > 0, reads, "{growth:?}");
        assert_finds_newest(&engine, &disk, "all w0");
    }
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let held = EngineOptions::new().keep_in(RegionKind::File(dir.path().join("region")));
    let row = held.resolve(&index).memory_report(&index).rows.into_iter().find(|row| row.what == lists);
    assert!(row.unwrap().region.unwrap().starts_with("file:"));
}

#[test]
fn an_engine_that_holds_the_index_holds_later_commits_and_releases_old_ones() {
    let disk = write_small_index(5, 3000);
    let index = Index::open_on(disk.clone()).unwrap();
    let engine = Engine::new(&index, &EngineOptions::new().keep_in(RegionKind::Dram).threads(1)).unwrap();
    drop(index);
    // A second segment, and then a merge of both.
    for (seed, merge) in [(6, Merge::None), (7, Merge::One)] {
        append_documents(&disk, seed, 2000, merge);
        assert!(engine.refresh().unwrap());
        assert_eq!(bytes_read_by_count(&engine, "all w0"), 0);
        assert_finds_newest(&engine, &disk, "all w0");
    }
    // A budget that holds a second index of this size until the first one is released.
    let index = Index::open_on(disk.clone()).unwrap();
    let options = |dram| EngineOptions::new().keep_in(RegionKind::Dram).threads(1).dram(dram);
    let least = options(1 << 20).resolve(&index).memory_report(&index).least().unwrap();
    let engine = Engine::new(&index, &options(least + (4 << 20)).growth(2 << 20)).unwrap();
    drop(index);
    for seed in 8..14 {
        append_documents(&disk, seed, 200, Merge::One);
        assert!(engine.refresh().unwrap());
        assert_eq!(bytes_read_by_count(&engine, "all w0"), 0, "commit {seed}");
    }
}

#[test]
fn metadata_of_a_held_index_is_in_dram_if_its_region_cannot_be_allocated() {
    let (disk, dir) = (write_small_index(2, 3000), tempfile::tempdir_in("/dev/shm").unwrap());
    let index = Index::open_on(disk.clone()).unwrap();
    let region = RegionKind::File(dir.path().join("region"));
    let engine = Engine::new(&index, &EngineOptions::new().keep_in(region).threads(1)).unwrap();
    // Later regions are files of the same name.
    dir.close().unwrap();
    append_documents(&disk, 6, 20_000, Merge::None);
    assert!(engine.refresh().unwrap());
    assert_eq!(bytes_read_by_count(&engine, "nosuchword"), 0);
    assert_finds_newest(&engine, &disk, "all w0");
}

#[test]
fn an_index_that_cannot_be_read_into_memory_is_an_error() {
    let inner = write_small_index(3, 3000);
    let read = |at| {
        let disk = Arc::new(FaultDisk::new(inner.clone(), FaultPlan::none()));
        let index = Index::open_on(disk.clone()).unwrap();
        disk.arm(FaultPlan { class: OpClass::Read, at, effect: Effect::Error(5), repeat: Repeat::Once });
        Engine::new(&index, &EngineOptions::new().keep_in(RegionKind::Dram).threads(1)).map(drop)
    };
    let failed = (1..40).filter_map(|at| read(at).err());
    let errors: Vec<String> = failed.map(|error| error.to_string()).collect();
    assert!(errors.len() > 5 && errors.iter().all(|error| error.starts_with("cannot read")), "{errors:?}");
    let region = RegionKind::File("/none/region".into());
    let index = Index::open_on(inner.clone()).unwrap();
    let error = Engine::new(&index, &EngineOptions::new().keep_in(region)).err().unwrap().to_string();
    assert!(error.contains("region file:/none/region") && !error.contains('\n'), "{error}");
}

#[test]
fn a_failed_read_fails_only_the_requests_that_need_it() {
    let inner = write_small_index(3, 3000);
    let whole = Index::open_on(inner.clone()).unwrap();
    let mut harmed = 0;
    for at in 1..30 {
        let disk = Arc::new(FaultDisk::new(inner.clone(), FaultPlan::none()));
        let index = Index::open_on(disk.clone()).unwrap();
        let engine = Engine::new(&index, &engine_options(400, 2)).unwrap();
        disk.arm(FaultPlan { class: OpClass::Read, at, effect: Effect::Error(5), repeat: Repeat::Once });
        let options =
            SearchOptions { ids: true, tuning: all_tunings()[at as usize % 2], ..SearchOptions::default() };
        let ask = |text: &&str| {
            engine.submit(SearchRequest::new(parse_query(&index, text)).options(options)).unwrap()
        };
        let tickets: Vec<_> = QUERY_TEXTS.iter().map(ask).collect();
        for (ticket, text) in tickets.into_iter().zip(QUERY_TEXTS) {
            let counted = SearchOptions { count: true, ..SearchOptions::default() };
            let expected = whole.searcher().search(&parse_query(&whole, text), &counted).unwrap();
            match ticket.wait() {
                Ok(answer) => assert_same_hits(&answer.hits, &expected.hits, text),
                Err(error) => {
                    harmed += 1;
                    assert!(error.to_string().starts_with("cannot read"), "{error}");
                }
            }
        }
        // The next request reads the page again.
        assert!(search_engine(&engine, "all w0").is_ok());
    }
    assert!((5..200).contains(&harmed), "{harmed}");
}

/// For some time, callers submit queries while a writer commits and the engine opens each commit. Each result
/// must be that of its own snapshot. Returns the resident bytes of the process after every twentieth commit.
fn resident_bytes_under_refreshes(time: Duration) -> Vec<u64> {
    let directory = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(PosixDisk::create(directory.path()).unwrap());
    let schema = SchemaOptions::one_field().schema();
    build(&disk, &schema, &random_documents(1, 4000), &[], AddMethod::Commits, Merge::None);
    let options = engine_options(60, 2).dram(64 << 20).growth(8 << 20).reads(ReadKind::Auto, 8);
    let engine = Engine::new(&Index::open_on(disk.clone()).unwrap(), &options).unwrap();
    let (end, answers, resident) = (Instant::now() + time, AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for caller in 0..4 {
            let (engine, answers) = (&engine, &answers);
            scope.spawn(move || {
                let mut random = Random::new(caller);
                while Instant::now() < end {
                    let text = QUERY_TEXTS[random.below(QUERY_TEXTS.len())];
                    let query = parse_query(engine.snapshot().index(), text);
                    let k = [0, 1, 10, 300][random.below(4)];
                    let priority = if caller == 0 { Priority::Batch } else { Priority::Interactive };
                    let expected = SearchOptions { k, count: true, ..SearchOptions::default() };
                    let search =
                        SearchOptions { ids: true, tuning: *random.pick(&all_tunings()), ..expected };
                    let request = SearchRequest::new(query.clone()).options(search).priority(priority);
                    let answer = engine.search(request).unwrap();
                    let expected = answer.snapshot.searcher().search(&query, &expected).unwrap();
                    assert_same_hits(&answer.hits, &expected.hits, text);
                    assert_eq!(answer.total, TotalHits::Exact(expected.total));
                    answers.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut commits = 0;
        while Instant::now() < end {
            commits += 1;
            let (mode, merge) = match commits % 20 {
                0 => (OpenMode::Replace, Merge::One),
                _ => (OpenMode::Append, Merge::None),
            };
            let mut writer = open_writer(&disk, &schema, mode);
            add_documents(&mut writer, &random_documents(commits, 200));
            writer.commit(merge).unwrap();
            assert!(engine.refresh().unwrap());
            if commits % 20 == 0 {
                resident.lock().unwrap().push(resident_bytes());
            }
        }
    });
    let (answers, resident) = (answers.into_inner(), resident.into_inner().unwrap());
    println!("{answers} answers, {} rounds, resident {resident:?}", resident.len());
    assert!(answers > 0);
    resident
}

/// Resident set size of this process, in bytes.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
fn refreshes_under_load_change_no_result() {
    resident_bytes_under_refreshes(Duration::from_secs(3));
}

/// `TIERDEX_SOAK_SECONDS=1800 cargo test --release -p tierdex --test suite soak -- --ignored --nocapture`
#[test]
#[ignore = "takes as long as it is told"]
fn soak_engine() {
    let seconds = std::env::var("TIERDEX_SOAK_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    let resident = resident_bytes_under_refreshes(Duration::from_secs(seconds.unwrap_or(60)));
    let [_, first, .., last] = resident[..] else { panic!("too few commits in this time: {resident:?}") };
    assert!(last < first + (16 << 20), "{first} bytes have become {last}");
}
