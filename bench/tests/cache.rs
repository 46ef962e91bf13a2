//! The cache experiment from end to end, in this process and without control groups, so that it needs no
//! permissions: the answers of all cells agree, and all files are written. No test depends on measured
//! times.

use std::{fs, path::Path, sync::Arc};
use tierdex::{StopSignal, io::PosixDisk};
use tierdex_bench::cache::{self, CellMode, CellRow, CellRows, Flags};
use tierdex_bench::{Error, cell::Launch, generate, parse_flags};

/// A temporary directory with an index in `index`.
fn test_dir() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("index");
    fs::create_dir(&dir).unwrap();
    let flags = generate::Flags::with_sizes(20_000, 900_000, 5000, 1);
    let disk = Arc::new(PosixDisk::open(&dir).unwrap());
    generate::Collection::new(&flags).unwrap().create(disk, 2, &StopSignal::default()).unwrap();
    root
}

fn run_experiment(root: &Path, more: &str) -> (Result<CellRows, Error>, String) {
    run_until_stopped(root, more, &StopSignal::default())
}

fn run_until_stopped(root: &Path, more: &str, stop: &StopSignal) -> (Result<CellRows, Error>, String) {
    let (index, out) = (root.join("index"), root.join("out"));
    let mut words = vec!["bench", index.to_str().unwrap(), "--out", out.to_str().unwrap()];
    words.extend("--no-group --keep-caches --region dram --count 40".split(' '));
    words.extend(more.split_whitespace());
    let flags: Flags = parse_flags(words).unwrap();
    let mut table = Vec::new();
    let rows = cache::run(&flags, "bench", &Launch::InProcess, stop, &mut table);
    (rows, String::from_utf8(table).unwrap())
}

fn row_checksums(rows: &CellRows) -> Vec<u64> {
    rows.all().iter().map(|row| row.outcome.as_ref().unwrap().checksum).collect()
}

#[test]
fn modes_and_sizes_have_equal_answers_and_all_files_are_written() {
    let dir = test_dir();
    let more = "--modes memory,hybrid-prefetch --sizes 20,100 --segments 4K --lookahead-samples 30";
    let (rows, table) = run_experiment(dir.path(), more);
    let rows = rows.unwrap();
    let cells = |shape: &str| rows.all().iter().filter(|row| row.cell.describe().contains(shape)).count();
    assert_eq!((cells("SINGLE H"), cells("AND H"), rows.all().len()), (1 + 2 * 2, 1 + 2 * 2, 10));
    assert_eq!(table.lines().count(), 1 + 10, "{table}");
    let found = |row: &CellRow| row.outcome.clone().unwrap();
    for row in rows.all() {
        let measured = found(row);
        assert_eq!(measured.queries, 40);
        assert!(measured.hits > 0 && measured.matches >= measured.hits && measured.qps() > 0.0);
        assert_eq!(measured.lists.is_some(), row.cell.mode != CellMode::Memory);
        assert_eq!((row.limit, row.peak), (None, None));
        assert!(measured.samples.iter().all(|(ended, _)| (1..=40).contains(ended)));
        assert_eq!(measured.samples.is_empty(), row.cell.mode == CellMode::Memory);
    }
    // If all lists fit, the second repetition has no misses and reads nothing.
    let all = rows.all().iter().filter(|row| row.cell.size.is_some_and(|size| size.to_string() == "100%"));
    for row in all {
        let measured = found(row);
        assert_eq!((measured.lists.unwrap().misses, measured.bytes_read), (0, 0), "{}", row.cell.describe());
    }
    let read = |name: &str| fs::read_to_string(dir.path().join("out").join(name)).unwrap();
    let json: serde_json::Value = serde_json::from_str(&read("data.json")).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 10);
    let report = read("report.md");
    for words in [
        "bench index --out out --modes memory,hybrid-prefetch",
        "**Without control groups",
        "The page cache is not dropped",
        "## Ratios",
        "## Flatness",
        "I/O engines:\n\n- memory: none\n- hybrid-prefetch: ",
        "](qps-AND-H-rp25-ssd.svg)",
        "](lookahead-SINGLE-H-rp25-ssd-20.svg)",
    ] {
        assert!(report.contains(words), "`{words}` is not in\n{report}");
    }
    assert!(!report.contains(&*dir.path().to_string_lossy()), "{report}");
    assert!(read("qps-SINGLE-H-rp25-ssd.svg").starts_with("<svg"));
}

#[test]
fn every_mode_has_the_answers_of_memory() {
    let dir = test_dir();
    let more = "--modes memory,base,base-prefetch,hybrid,hybrid-prefetch,direct --classes H,M --shapes AND,OR \
                --repeats 50 --sizes 2 --segments 4K --lookahead adaptive --policies lru,window --rounds 2";
    let (rows, _) = run_experiment(dir.path(), more);
    let rows = rows.unwrap();
    // The policy that evicts by the window of waiting lists is not offered for an engine.
    assert_eq!(rows.all().len(), 2 * 2 * 2 * (1 + 1 + 1 + 2 * 2 + 1));
    assert!(rows.differences().is_empty());
    // The same seed gives the same queries.
    let single = "--modes base --sizes 100";
    let checksums = |more: &str| row_checksums(&run_experiment(dir.path(), more).0.unwrap());
    let expected = checksums(single);
    assert_eq!(checksums(single), expected);
    assert_ne!(checksums(&format!("{single} --seed 2")), expected);
}

#[test]
fn pruning_keeps_the_number_of_hits_and_threads_keep_the_answers() {
    let dir = test_dir();
    let hits = |more: &str| {
        let more = format!("--modes memory,direct --sizes 20 --lookahead 16 --shapes OR --k 10 {more}");
        let rows = run_experiment(dir.path(), &more).0.unwrap();
        (row_checksums(&rows), rows.all()[0].outcome.as_ref().unwrap().hits)
    };
    let pruned = hits("--exhaustive false");
    assert_eq!(pruned, hits("--exhaustive false --threads 3"));
    assert_eq!(pruned, hits("--exhaustive false --slow-tier 5,10 --threads 2"));
    let all = hits("--threads 2");
    assert_eq!((all.1, pruned.1, hits("") == all), (400, 400, true));
}

#[test]
fn a_cell_that_cannot_run_gives_a_row_and_not_an_error() {
    let dir = test_dir();
    let more = "--modes direct,memory --sizes 20 --dram 1M --shapes AND";
    let (rows, table) = run_experiment(dir.path(), more);
    let rows = rows.unwrap();
    let failed = rows.all().iter().filter(|row| row.outcome.is_err()).count();
    assert_eq!((failed, rows.all().len()), (1, 2), "{table}");
    assert!(table.contains("a budget of 1M of DRAM is too small"), "{table}");
    let report = fs::read_to_string(dir.path().join("out/report.md")).unwrap();
    assert!(report.contains("Not measured:\n\n- direct of AND H RP 25% on ssd at 20%: a budget"), "{report}");
}

#[test]
fn a_run_without_a_measured_cell_is_an_error() {
    let dir = test_dir();
    let failed = |more: &str| match run_experiment(dir.path(), more).0 {
        Err(Error::Failed(message)) => message,
        other => panic!("{more}: {other:?}"),
    };
    for more in ["--modes memory --keep-in numa:9999", "--modes direct --meta-tier numa:9999"] {
        let message = failed(more);
        assert!(message.contains("there is no node 9999") && !message.contains('\n'), "{message}");
    }
    assert!(!dir.path().join("out").exists());
    let message = failed("--modes direct --sizes 20 --dram 1M --shapes AND");
    assert!(message.starts_with("all cells failed, the first one: a budget of 1M of DRAM"), "{message}");
    assert!(dir.path().join("out/report.md").exists());
}

#[test]
fn invalid_flags_are_rejected_before_the_first_measurement() {
    let dir = test_dir();
    let rejected = |more: &str| run_experiment(dir.path(), more).0.unwrap_err();
    assert!(matches!(rejected("--segments 5K"), Error::Usage(message) if message.contains("--segments")));
    assert!(matches!(rejected("--devices sas"), Error::Usage(message) if message.contains("emulated")));
    assert!(!dir.path().join("out").exists());
    let stop = StopSignal::default();
    stop.raise();
    let (stopped, _) = run_until_stopped(dir.path(), "--modes memory", &stop);
    assert!(matches!(stopped, Err(Error::Interrupted)));
    let report = fs::read_to_string(dir.path().join("out/report.md")).unwrap();
    assert!(report.contains("**Stopped before all cells were measured.**"));
}

#[test]
fn terms_are_of_their_class() {
    let dir = test_dir();
    let (rows, _) = run_experiment(dir.path(), "--modes memory --classes M --shapes SINGLE");
    // With 20,000 documents, terms of class M have a document frequency of 2 to 124, and class L is empty.
    let rows = rows.unwrap();
    let measured = rows.all()[0].outcome.as_ref().unwrap();
    assert!((2 * 40..125 * 40).contains(&measured.matches) && measured.hits == measured.matches);
    let none = run_experiment(dir.path(), "--classes M,L").0.unwrap_err();
    assert!(matches!(none, Error::Usage(message) if message.starts_with("the index has 0 terms of class L")));
}
