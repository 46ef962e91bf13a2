//! The experiment runs and checks its results. No test depends on measured times.

use std::fs;
use tierdex::{StopSignal, io::PosixDisk};
use tierdex_bench::{generate, generate::Collection, intersect, intersection::Algorithm, parse_flags};

fn run_sweeps(words: &[&str]) -> tierdex_bench::Result<Vec<intersect::SweepRow>> {
    let mut flags: intersect::Flags = parse_flags(["intersect", "--quick"].iter().chain(words)).unwrap();
    flags.threads = flags.threads.min(4);
    intersect::run(&flags, &StopSignal::default())
}

#[test]
fn a_quick_run_has_all_sweeps() {
    let rows = run_sweeps(&[]).unwrap();
    let row = |sweep: &str, x: f64, algorithm| {
        let found = rows.iter().find(|row| row.sweep == sweep && row.x == x && row.algorithm == algorithm);
        found.unwrap().reads
    };
    let (sl, bl) = (row("threads", 1.0, Algorithm::Sl), row("threads", 1.0, Algorithm::Bl));
    assert!(sl.pages < bl.pages && bl.skipped == 0 && sl.skipped > 0);
    assert_eq!(row("threads", 1.0, Algorithm::Zz).pages, sl.pages);
    assert!(row("threads", 1.0, Algorithm::Bf).pages < sl.pages);
    assert_eq!(row("memory", 100.0, Algorithm::Direct).pages, 0);
    let mut sweeps: Vec<&str> = rows.iter().map(|row| row.sweep).collect();
    sweeps.dedup();
    assert_eq!(sweeps, ["threads", "ratio", "intersection", "lists", "codec", "depth", "memory"]);
}

#[test]
fn a_query_log_runs_over_an_index() {
    let directory = tempfile::TempDir::new().unwrap();
    let index = directory.path().join("index");
    let made = generate::Flags::with_sizes(20_000, 400_000, 5_000, 1);
    let disk = std::sync::Arc::new(PosixDisk::create(&index).unwrap());
    Collection::new(&made).unwrap().create(disk, 1, &StopSignal::default()).unwrap();
    let queries = directory.path().join("queries.tsv");
    fs::write(
        &queries,
        "1\tt0000001 t0000040\n2\tt0000002\n3\tt0000003 nothing\nt0000010 t0000003 t0000010 t0000500\n",
    )
    .unwrap();
    let words =
        ["--sweep", "none", "--index", index.to_str().unwrap(), "--queries", queries.to_str().unwrap()];
    let work = directory.path().join("work");
    let rows = run_sweeps(&[&words[..], &["--work", work.to_str().unwrap()]].concat()).unwrap();
    assert_eq!(rows.len(), 3 * Algorithm::ALL.len());
    assert!(rows.iter().all(|row| row.queries == 2 && row.found > 0));
    assert!(rows.iter().any(|row| row.label == "bp256-delta"));
    assert_eq!(fs::read_dir(&work).unwrap().count(), 0, "the list files are removed");
}

#[test]
fn invalid_flags_are_rejected() {
    for wrong in
        [["--sweep", "x"], ["--short", "0"], ["--threads", "0"], ["--read", "5K"], ["--common", "101"]]
    {
        assert!(matches!(run_sweeps(&wrong), Err(tierdex_bench::Error::Usage(_))), "{wrong:?}");
    }
}
