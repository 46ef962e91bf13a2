//! `tierdex bench` as a user meets it: the files it writes, and what it says to wrong flags. No figure is looked at.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run(place: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tierdex"));
    command.args(arguments.split(' ')).current_dir(place).stdin(Stdio::null());
    command.output().unwrap()
}

fn ok(place: &Path, arguments: &str) -> String {
    let output = run(place, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must fail with `code` and one line that holds `words`.
fn fails(place: &Path, code: i32, arguments: &str, words: &str) {
    let output = run(place, arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.starts_with("tierdex: ") && error.contains(words), "`{error}` does not say `{words}`");
}

#[test]
fn a_quick_run_writes_its_report_rows_and_plot() {
    let place = tempfile::tempdir().unwrap();
    let table = ok(place.path(), "bench codecs --quick --codec bp256-delta --codec vbyte --out new/out");
    for words in
        ["\nuniform: ", "\nclustered: ", "\nzipf-freq: ", "bp256-delta", "scalar", "memcpy", "bits/int"]
    {
        assert!(table.contains(words), "`{words}` is not in\n{table}");
    }
    let read = |name: &str| fs::read_to_string(place.path().join("new/out").join(name)).unwrap();
    let rows: serde_json::Value = serde_json::from_str(&read("data.json")).unwrap();
    let sums = |dataset: &str, codec: &str| {
        let rows = rows.as_array().unwrap().iter();
        rows.filter(|row| row["dataset"] == dataset && row["codec"] == codec && row["k"].is_null()).count()
    };
    assert!(sums("uniform", "bp256-delta") >= 1 && sums("zipf-freq", "vbyte") >= 1);
    assert_eq!((sums("uniform", "memcpy"), sums("uniform", "vbyte")), (1, 0));
    assert!(rows.as_array().unwrap().iter().all(|row| row["decode_l1_gips"].as_f64().unwrap() > 0.0));
    let command = "tierdex bench codecs --quick --codec bp256-delta --codec vbyte --seed 1 --out new/out";
    let report = read("report.md");
    assert!(report.contains(command) && report.contains("| bp256-delta |"), "{report}");
    assert!(!report.contains(&*place.path().to_string_lossy()));
    assert!(read("codecs.svg").starts_with("<svg"));
}

#[test]
fn lists_of_an_index_are_measured() {
    let place = tempfile::tempdir().unwrap();
    let documents = (0..300).map(|id| format!("{{\"id\":\"{id}\",\"text\":\"the the word{id}\"}}\n"));
    fs::write(place.path().join("docs.jsonl"), documents.collect::<String>()).unwrap();
    ok(place.path(), "index docs.jsonl --out i");
    let table = ok(place.path(), "bench codecs --quick --codec streamvbyte --kernel scalar --index i");
    assert!(table.contains("\nreal-freq: 0.0 million frequencies in 1 lists\n"), "{table}");
    assert!(table.contains("\nreal-freq-less-one: ") && !table.contains("\nreal: "), "{table}");

    fs::write(place.path().join("few.jsonl"), "{\"id\":\"1\",\"text\":\"the cat\"}\n").unwrap();
    ok(place.path(), "index few.jsonl --out few");
    fails(place.path(), 1, "bench codecs --quick --index few", "no term stands in 256 documents");
}

#[test]
fn wrong_flags_and_places_are_one_line() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("file"), "").unwrap();
    fails(place.path(), 2, "bench codecs --codec zip", "no codec is called `zip`; there are raw, vbyte, ");
    fails(place.path(), 2, "bench codecs --kernel mmx", "no kernel is called `mmx`");
    fails(place.path(), 1, "bench codecs --index none", "none");
    fails(place.path(), 1, "bench codecs --codec vbyte --out file", "file");
    for wrong in ["bench", "bench frob", "bench codecs --seed x", "bench codecs --frob", "bench codecs more"]
    {
        assert_eq!(run(place.path(), wrong).status.code(), Some(2), "{wrong}");
    }
    assert!(!place.path().join("none").exists());
}
