//! Warm restarts: the next engine reads the pages that were hot, and nothing else changes, whatever the file
//! of hot pages contains.

use crate::support::corpus::{SchemaOptions, random_documents};
use crate::support::requests::{documents_and_score_bits, engine_options, parse_query, write_frequent_terms};
use crate::support::{add_documents, build_in_memory, open_writer};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::{fs, thread};
use tierdex::commit::FileKind;
use tierdex::internal::cache::PolicyKind;
use tierdex::io::{
    Disk, Effect, FaultDisk, FaultPlan, Identity, MemDisk, OpClass, PosixDisk, ReadFile, Repeat,
    SealedWriter, forward_disk,
};
use tierdex::{Engine, EngineOptions, Index, Merge, OpenMode, Result, SearchRequest};

const QUERY_TEXTS: [&str; 7] =
    ["all", "w0 w1", "+all +w0", "+all -w0", "w3 w4 w5 w8", "prefix*", "+w1 #all w0"];

/// Frames of a cache with memory for all pages.
const ALL_FRAMES: u64 = 4000;

fn write_index(seed: u64, documents: usize) -> Arc<MemDisk> {
    build_in_memory(&SchemaOptions::one_field().schema(), &random_documents(seed, documents), &[])
}

fn append_documents(disk: &Arc<MemDisk>, seed: u64, merge: Merge) {
    let schema = Index::open_on(disk.clone()).unwrap().schema().clone();
    let mut writer = open_writer(&(disk.clone() as _), &schema, OpenMode::Append);
    add_documents(&mut writer, &random_documents(seed, 500));
    writer.commit(merge).unwrap();
}

/// An engine for the newest commit, after it has read the hot pages.
fn warm_engine(disk: Arc<dyn Disk>, options: &EngineOptions) -> Engine {
    let engine = Engine::new(&Index::open_on(disk).unwrap(), options).unwrap();
    wait_until_warm(&engine);
    engine
}

fn wait_until_warm(engine: &Engine) {
    while engine.metrics().is_warming {
        thread::yield_now();
    }
}

type Found = Vec<(u64, Vec<(u32, u32)>)>;

/// Totals, hits and scores of all queries.
fn search_all(engine: &Engine) -> Found {
    QUERY_TEXTS.iter().map(|text| search(engine, text).unwrap()).collect()
}

fn search(engine: &Engine, text: &str) -> Result<(u64, Vec<(u32, u32)>)> {
    let query = parse_query(engine.snapshot().index(), text);
    let hits = engine.search(SearchRequest::new(query).k(30).count(true))?;
    Ok((hits.total.value(), documents_and_score_bits(&hits.hits)))
}

/// Searches with an engine that writes its hot pages to a file, and closes it.
fn write_hot_pages(disk: &Arc<MemDisk>, file: &Path) -> Found {
    let engine = warm_engine(disk.clone(), &engine_options(ALL_FRAMES, 2).hot_pages(file));
    search_all(&engine)
}

#[test]
fn the_queries_of_the_engine_before_read_nothing() {
    let (disk, dir) = (write_index(5, 3000), tempfile::tempdir().unwrap());
    for policy in PolicyKind::ALL {
        let file = dir.path().join(policy.to_string());
        let options = engine_options(ALL_FRAMES, 2).policy(policy).hot_pages(&file);
        let cold = warm_engine(disk.clone(), &options);
        assert!(cold.metrics().pages_warmed == 0 && cold.hot_pages_error().is_none());
        let expected = search_all(&cold);
        let used = cold.stats().frames_used();
        assert!(cold.stats().misses > 10 && !file.exists());
        drop(cold);
        for _ in 0..2 {
            let warm = warm_engine(disk.clone(), &options);
            let (metrics, before) = (warm.metrics(), warm.stats());
            assert_eq!((metrics.pages_warmed, before.fetched, before.misses), (used, used, 0), "{policy}");
            assert_eq!(search_all(&warm), expected);
            assert_eq!((warm.stats().misses, warm.stats().bytes_read), (0, before.bytes_read), "{policy}");
        }
    }
    // Temporary files are removed or renamed.
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), PolicyKind::ALL.len());
}

#[test]
fn a_damaged_file_is_ignored() {
    let (disk, dir) = (write_index(5, 300), tempfile::tempdir().unwrap());
    let file = dir.path().join("hot");
    let expected = write_hot_pages(&disk, &file);
    let written = fs::read(&file).unwrap();
    let index = Index::open_on(disk.clone()).unwrap();
    let warmed = |bytes: &[u8]| {
        fs::write(&file, bytes).unwrap();
        let engine = Engine::new(&index, &engine_options(200, 1).hot_pages(&file)).unwrap();
        wait_until_warm(&engine);
        assert_eq!(search(&engine, QUERY_TEXTS[2]).unwrap(), expected[2]);
        let (warmed, error) = (engine.metrics().pages_warmed, engine.hot_pages_error());
        assert_eq!(error.is_none(), warmed > 0);
        assert!(error.is_none_or(|error| !error.to_string().contains('\n')));
        warmed
    };
    assert!(warmed(&written) > 0);
    for at in 0..written.len() {
        let mut bytes = written.clone();
        bytes[at] ^= 1 << (at % 8);
        assert_eq!(warmed(&bytes), 0, "byte {at}");
        assert_eq!(warmed(&written[..at]), 0, "{at} bytes");
    }
    let garbage: Vec<u8> = (0..1 << 20).map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for bytes in [&garbage[..], &[written.clone(), vec![0]].concat(), &[0; 1 << 20]] {
        assert_eq!(warmed(bytes), 0);
    }
    // Longer than a file of hot pages can be.
    fs::write(&file, &written).unwrap();
    fs::File::options().write(true).open(&file).unwrap().set_len((1 << 30) + 1).unwrap();
    let engine = warm_engine(disk.clone(), &engine_options(200, 1).hot_pages(&file));
    assert_eq!((engine.metrics().pages_warmed, search_all(&engine)), (0, expected));
    assert!(engine.hot_pages_error().is_some());
}

/// The varints of a payload.
fn varints(numbers: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for number in numbers {
        let mut rest = *number;
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
    }
    bytes
}

#[test]
fn a_forged_file_with_valid_checksums_changes_no_result() {
    let (disk, dir) = (write_index(5, 300), tempfile::tempdir().unwrap());
    let (hot, folder) = (dir.path().join("hot"), PosixDisk::open(dir.path()).unwrap());
    let index = Index::open_on(disk.clone()).unwrap();
    let expected = write_hot_pages(&disk, &hot);
    let pages = warm_engine(disk, &engine_options(ALL_FRAMES, 1).hot_pages(&hot)).metrics().pages_warmed;
    // The only segment, as a list of files: each has a length and a checksum.
    let segment = &index.manifest().segments[0];
    let of_kind = |kind| segment.file(0, kind).unwrap().seal;
    let postings = of_kind(FileKind::Postings);
    let of_postings = [varints(&[postings.len]), postings.crc.to_le_bytes().to_vec()].concat();
    let max = u64::MAX;
    let mut warmed = 0;
    for payload in [
        vec![],
        varints(&[max]),
        [varints(&[1 << 40]), vec![0x80; 200_000]].concat(),
        // The same file many times.
        [varints(&[1000]), of_postings.repeat(1000), varints(&[0, max, 0, 0])].concat(),
        [varints(&[1]), of_postings.clone()].concat(),
        [varints(&[1]), of_postings.clone(), varints(&[0, max, 0, max, max, max, 0, 0, 0, 0, 0, 0])].concat(),
        [varints(&[1]), of_postings.clone(), varints(&[max, 1, 1, 1, 0, 0])].concat(),
        [varints(&[1]), of_postings.clone(), varints(&[1, 1]).repeat(100_000)].concat(),
        [varints(&[2, max, 0, 0]), of_postings, varints(&[0, 9, 0, 0])].concat(),
    ] {
        fs::remove_file(&hot).unwrap();
        let identity = Identity { kind: FileKind::HotPages as u8, field: 0, segment: 0 };
        let mut writer = SealedWriter::create(&folder, "hot", identity).unwrap();
        writer.write(&payload).unwrap();
        writer.finish().unwrap();
        let engine = Engine::new(&index, &engine_options(200, 1).hot_pages(&hot)).unwrap();
        wait_until_warm(&engine);
        assert!(engine.metrics().pages_warmed <= pages.max(postings.len / 4096 + 1));
        warmed += engine.metrics().pages_warmed;
        assert_eq!((engine.stats().failures, search_all(&engine)), (0, expected.clone()));
    }
    assert!(warmed > 0);
}

#[test]
fn pages_of_files_that_are_not_open_are_skipped() {
    let (disk, dir) = (write_index(5, 3000), tempfile::tempdir().unwrap());
    let file = dir.path().join("hot");
    let options = engine_options(ALL_FRAMES, 2).hot_pages(&file);
    write_hot_pages(&disk, &file);
    let written = fs::read(&file).unwrap();
    let all = warm_engine(disk.clone(), &options).metrics().pages_warmed;
    // Of another index with the same names, a commit with another segment, and one that merges both.
    let other = warm_engine(write_index(6, 2900), &options);
    assert_eq!(other.metrics().pages_warmed, 0);
    assert_eq!(other.hot_pages_error().unwrap().to_string(), "it names no file of this index");
    drop(other);
    append_documents(&disk, 7, Merge::None);
    assert_eq!(warm_engine(disk.clone(), &options).metrics().pages_warmed, all);
    append_documents(&disk, 8, Merge::One);
    let merged = warm_engine(disk.clone(), &options);
    assert_eq!(merged.metrics().pages_warmed, 0);
    // Without a request the file stays.
    drop(merged);
    assert_eq!(fs::read(&file).unwrap(), written);
    let cold = warm_engine(disk.clone(), &engine_options(ALL_FRAMES, 1));
    assert_eq!(search_all(&warm_engine(disk, &options)), search_all(&cold));
}

#[test]
fn the_file_names_the_segments_of_the_newest_commit() {
    let (disk, dir) = (write_index(5, 3000), tempfile::tempdir().unwrap());
    let options = engine_options(ALL_FRAMES, 2).hot_pages(dir.path().join("hot"));
    for merge in [Merge::None, Merge::One] {
        let engine = warm_engine(disk.clone(), &options);
        search_all(&engine);
        append_documents(&disk, 7, merge);
        assert!(engine.refresh().unwrap());
        let expected = search_all(&engine);
        drop(engine);
        let warm = warm_engine(disk.clone(), &options);
        assert_eq!((search_all(&warm), warm.stats().misses), (expected, 0));
    }
}

#[test]
fn a_smaller_cache_has_the_hottest_pages_and_evicts_none() {
    let (disk, dir) = (write_frequent_terms(300_000), tempfile::tempdir().unwrap());
    // The classes of LRU are of equal size, whatever was used how often.
    for policy in [PolicyKind::S3Fifo, PolicyKind::Sieve] {
        let file = dir.path().join(policy.to_string());
        let options = |pages| engine_options(pages, 1).policy(policy).hot_pages(&file);
        let engine = warm_engine(disk.clone(), &options(ALL_FRAMES));
        let rare = ["t0 t1", "t2 t3"].map(|text| search(&engine, text).unwrap());
        let others = engine.stats().frames_used();
        let expected = [0; 5].map(|_| search(&engine, "t4 t5").unwrap());
        let frequent = engine.stats().frames_used() - others;
        assert!(frequent > 50 && others > 100, "{:?}", engine.stats());
        drop(engine);
        // The smaller cache has memory for the pages of the frequent query, and few others.
        let frames = frequent + 20;
        let small = warm_engine(disk.clone(), &options(frames));
        let stats = small.stats();
        assert_eq!((stats.frames_free, stats.evictions, small.metrics().pages_warmed), (0, 0, frames));
        assert_eq!(search(&small, "t4 t5").unwrap(), expected[4]);
        assert!(small.stats().misses <= frequent / 10, "{policy}: {:?}", small.stats());
        assert_eq!(["t0 t1", "t2 t3"].map(|text| search(&small, text).unwrap()), rare);
    }
}

#[test]
fn a_read_error_while_hot_pages_are_read_disturbs_no_query() {
    let (inner, dir) = (write_index(3, 3000), tempfile::tempdir().unwrap());
    let file = dir.path().join("hot");
    let expected = write_hot_pages(&inner, &file);
    let disk = Arc::new(FaultDisk::new(inner.clone(), FaultPlan::none()));
    let open = |plan| {
        let index = Index::open_on(disk.clone()).unwrap();
        disk.arm(plan);
        let engine = Engine::new(&index, &engine_options(ALL_FRAMES, 1).hot_pages(&file)).unwrap();
        wait_until_warm(&engine);
        engine
    };
    // The reads of the start, and those of hot pages.
    let warm = open(FaultPlan::none());
    let reads = disk.operations(OpClass::Read) - warm.stats().reads;
    assert!(warm.stats().reads > 3);
    drop(warm);
    let (mut injected, mut failures) = (0, 0);
    for at in 1..=8 {
        for repeat in [Repeat::Once, Repeat::Forever] {
            let plan = FaultPlan { class: OpClass::Read, at: reads + at, effect: Effect::Error(5), repeat };
            let engine = open(plan);
            injected += disk.injected();
            failures += engine.stats().failures;
            disk.arm(FaultPlan::none());
            assert_eq!(search_all(&engine), expected, "{at}");
        }
    }
    assert!(injected > 20 && failures > 20, "{injected} faults, {failures} pages");
    // Of a read with a damaged page, the others are cached.
    let warm = warm_engine(inner.clone(), &engine_options(ALL_FRAMES, 1).hot_pages(&file));
    let whole = (warm.stats().frames_used(), warm.snapshot());
    drop(warm);
    let name = whole.1.index().segments()[0].field_of_term(0).postings_file().name().to_string();
    inner.corrupt(&name, |bytes| bytes[100] ^= 1);
    let engine = warm_engine(inner, &engine_options(ALL_FRAMES, 1).hot_pages(&file));
    assert_eq!((engine.stats().failures, engine.stats().frames_used()), (1, whole.0 - 1));
    let found: Vec<_> = QUERY_TEXTS.iter().map(|text| search(&engine, text)).collect();
    assert!(found.iter().any(Result::is_ok));
    for (found, expected) in found.into_iter().zip(expected) {
        match found {
            Ok(found) => assert_eq!(found, expected),
            Err(error) => assert!(error.is_corrupt(), "{error}"),
        }
    }
}

#[test]
fn queries_are_answered_while_hot_pages_are_read() {
    let (disk, dir) = (write_index(5, 20_000), tempfile::tempdir().unwrap());
    let file = dir.path().join("hot");
    let expected = write_hot_pages(&disk, &file);
    let written = fs::read(&file).unwrap();
    let index = Index::open_on(disk).unwrap();
    let budget = EngineOptions::new().threads(2).hits_max(30).hot_pages(&file);
    let least = budget.clone().dram(1 << 20).resolve(&index).memory_report(&index).least().unwrap();
    let fixed = |pages| engine_options(pages, 2).hot_pages(&file);
    for options in
        [fixed(12), fixed(60), fixed(ALL_FRAMES), budget.clone().dram(least), budget.dram(least + (1 << 20))]
    {
        for _ in 0..10 {
            fs::write(&file, &written).unwrap();
            let engine = Engine::new(&index, &options).unwrap();
            thread::scope(|scope| {
                for caller in 0..3 {
                    let (engine, expected) = (&engine, &expected);
                    scope.spawn(move || {
                        for turn in 0..2 * QUERY_TEXTS.len() {
                            let number = (caller * 3 + turn) % QUERY_TEXTS.len();
                            assert_eq!(search(engine, QUERY_TEXTS[number]).unwrap(), expected[number]);
                        }
                    });
                }
            });
            wait_until_warm(&engine);
            // After the answer of a request its other evaluations release their pins, pages that were
            // prefetched are read, and the pool resizes the cache.
            let mut stats = engine.stats();
            while stats.frames_free + stats.frames_evictable != stats.frames {
                thread::yield_now();
                stats = engine.stats();
            }
            assert_eq!(stats.failures, 0);
        }
    }
}

/// A disk whose reads by the threads of read queues wait for permits.
struct GateDisk {
    inner: Arc<MemDisk>,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    permits: Mutex<u64>,
    changed: Condvar,
}

struct GateFile(Box<dyn ReadFile>, Arc<Gate>);

impl Gate {
    fn permit(&self, reads: u64) {
        *self.permits.lock().unwrap() += reads;
        self.changed.notify_all();
    }

    /// Permits another read if all that were permitted have begun. Returns their number.
    fn permit_next(&self) -> u64 {
        let is_used = *self.permits.lock().unwrap() == 0;
        self.permit(u64::from(is_used));
        u64::from(is_used)
    }
}

impl Disk for GateDisk {
    forward_disk!(self, self.inner; list create rename remove sync_dir lock describe check_direct);

    fn open(&self, name: &str) -> tierdex::io::Result<Box<dyn ReadFile>> {
        Ok(Box::new(GateFile(self.inner.open(name)?, self.gate.clone())))
    }
}

impl ReadFile for GateFile {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn len(&self) -> u64 {
        self.0.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> tierdex::io::Result<()> {
        if thread::current().name().is_some_and(|name| name.starts_with("pread")) {
            let permits = self.1.permits.lock().unwrap();
            *self.1.changed.wait_while(permits, |permits| *permits == 0).unwrap() -= 1;
        }
        self.0.read_at(offset, buf)
    }
}

#[test]
fn an_engine_that_is_closed_while_it_reads_hot_pages_ends() {
    let (inner, dir) = (write_frequent_terms(300_000), tempfile::tempdir().unwrap());
    let file = dir.path().join("hot");
    let engine = warm_engine(inner.clone(), &engine_options(ALL_FRAMES, 1).hot_pages(&file));
    search(&engine, "t0 t1 t2 t3 t4 t5").unwrap();
    assert!(engine.stats().frames_used() > 127);
    drop(engine);
    let written = fs::read(&file).unwrap();
    let gate = Arc::new(Gate::default());
    let index = Index::open_on(Arc::new(GateDisk { inner, gate: gate.clone() })).unwrap();
    // In a cache of this size a page is a read, so that there are many.
    let engine = Engine::new(&index, &engine_options(127, 1).hot_pages(&file)).unwrap();
    gate.permit(5);
    while engine.metrics().pages_warmed < 6 {
        thread::yield_now();
    }
    // A query ends too.
    let query = parse_query(&index, "t0");
    let ticket = engine.submit(SearchRequest::new(query)).unwrap();
    let (closing, closes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (begun, ended) = (closing.clone(), closes.clone());
    let closer = thread::spawn(move || {
        begun.store(true, Ordering::Release);
        drop(engine);
        ended.store(true, Ordering::Release);
    });
    while !closing.load(Ordering::Acquire) {
        thread::yield_now();
    }
    let mut reads = 0;
    while !closes.load(Ordering::Acquire) {
        reads += gate.permit_next();
        thread::yield_now();
    }
    closer.join().unwrap();
    drop(ticket);
    assert!(reads < 50, "{reads} reads after the engine was closed");
    // The list of fewer pages is not written.
    assert_eq!(fs::read(&file).unwrap(), written);
}

#[test]
fn engines_share_a_file() {
    let (disk, dir) = (write_index(5, 3000), tempfile::tempdir().unwrap());
    let options = engine_options(ALL_FRAMES, 1).hot_pages(dir.path().join("hot"));
    for _ in 0..20 {
        let engines = [0, 1, 2].map(|_| warm_engine(disk.clone(), &options));
        engines.iter().for_each(|engine| drop(search_all(engine)));
        let close = |engine| thread::spawn(move || drop::<Engine>(engine));
        engines.map(close).into_iter().for_each(|closed| closed.join().unwrap());
        let engine = warm_engine(disk.clone(), &options);
        assert!(engine.metrics().pages_warmed > 0);
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_at_the_start_only() {
    let (disk, dir) = (write_index(5, 300), tempfile::tempdir().unwrap());
    let index = Index::open_on(disk).unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::create_dir(path("folder")).unwrap();
    std::os::unix::fs::symlink("elsewhere", path("link")).unwrap();
    let long = "x".repeat(300);
    for (name, why) in [
        ("none/hot", "cannot open directory"),
        ("folder", "it is not a plain file"),
        ("link", "it is not a plain file"),
        ("two words", "a name has only ASCII letters"),
        ("..", "the name is empty"),
        ("write.lock", "it is the name of a file of an index"),
        ("0000000000000001.0.terms", "it is the name of a file of an index"),
        (&long, "longer than 255 bytes"),
    ] {
        let options = engine_options(100, 1).hot_pages(path(name));
        let error = Engine::new(&index, &options).err().unwrap().to_string();
        let start = format!("cannot write hot pages to {}: ", path(name).display());
        assert!(error.starts_with(&start) && error.contains(why) && !error.contains('\n'), "{error}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    let engine = Engine::new(&index, &engine_options(100, 1).hot_pages(path("folder/hot"))).unwrap();
    fs::remove_dir(path("folder")).unwrap();
    let found = search_all(&engine);
    drop(engine);
    assert_eq!(found, search_all(&Engine::new(&index, &engine_options(100, 1)).unwrap()));
    assert!(!path("folder").exists());
}

#[test]
fn the_memory_report_counts_hot_pages() {
    let index = Index::open_on(write_index(5, 3000)).unwrap();
    let report = |options: EngineOptions| Engine::memory_report(&index, &options);
    let bytes = |pages| {
        let report = report(engine_options(pages, 1).hot_pages("hot"));
        report.rows.iter().find(|row| row.what == "hot pages").unwrap().bytes
    };
    assert_eq!(bytes(10_000) - bytes(1000), 8 * 9000);
    assert!(report(engine_options(1000, 1)).rows.iter().all(|row| row.what != "hot pages"));
    let options = EngineOptions::new().dram(1 << 20).threads(1);
    let least = |options| report(options).least().unwrap();
    assert!(least(options.clone().hot_pages("hot")) > least(options) + (512 << 10));
}
