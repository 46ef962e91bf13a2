//! Figures of the papers at scale small, in this process and without control groups, so that it needs no
//! permissions. No test depends on measured times.

use std::{fs, path::Path};
use tierdex::StopSignal;
use tierdex_bench::{cell::Launch, paper::Flags, paper::run_paper, parse_flags};

/// Makes figures and returns what was printed.
fn make_figures(dir: &Path, names: &str) -> String {
    let words =
        ["paper", "--scale", "small", "--no-group", "--region", "dram", "--out", dir.to_str().unwrap()];
    let flags: Flags = parse_flags(words.into_iter().chain(names.split(' '))).unwrap();
    let mut out = Vec::new();
    run_paper(&flags, &Launch::InProcess, &StopSignal::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// A figure for each kind of experiment.
#[test]
fn figures_of_every_kind_are_made() {
    let dir = tempfile::tempdir().unwrap();
    let names = [
        "space-time/fig-6",
        "apcache/fig-8.8",
        "apcache/fig-8.14",
        "apcache/fig-8.15",
        "fast-scalable/fig-4.2",
        "fast-scalable/table-a.2",
        "ssd-intersection/fig-4",
    ];
    make_figures(dir.path(), &names.join(" "));
    let small = dir.path().join("small");
    for name in names {
        let read = |file: &str| fs::read_to_string(small.join(name).join(file)).unwrap();
        let report = read("report.md");
        assert!(report.contains("## Claims") && report.contains("## Measurements"), "{name}");
        assert!(!report.contains(dir.path().to_str().unwrap()), "{name} names a directory of this machine");
        assert!(read("plot.svg").starts_with("<svg"), "{name}");
        let rows: serde_json::Value = serde_json::from_str(&read("data.json")).unwrap();
        assert!(!rows.as_array().unwrap().is_empty(), "{name}");
    }
    // Cells that need a memory limit or an emulated disk are left out, and the others are measured.
    let cores = fs::read_to_string(small.join("apcache/fig-8.15/report.md")).unwrap();
    assert!(cores.contains("| hybrid-prefetch | 2 "), "{cores}");
    assert!(cores.contains("not measured: --no-group") && !cores.contains("| base "), "{cores}");
    let summary = fs::read_to_string(small.join("summary.md")).unwrap();
    assert!(summary.contains("7.44 to 7.95") && summary.contains("not run yet"));
}
