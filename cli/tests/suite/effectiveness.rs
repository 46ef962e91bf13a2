//! Effectiveness on five judged collections, compared with the values of an independent program. The
//! collections are in `$TIERDEX_DATA`, or in `../shared/data` beside the project; without them the test is
//! skipped with a message.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Name, matches over all queries, and nDCG@10, AP@1000, R@100 with k1, b of 1.2, 0.75 and of 0.9, 0.4,
/// exact norms. Equal scores are in the order of documents there; `tierdex eval` orders them by id, as
/// trec_eval does, which changes a value by up to 0.0003.
// One of the values is close to pi / 8.
#[allow(clippy::approx_constant)]
const REFERENCE_RESULTS: &[(&str, u64, [f64; 3], [f64; 3])] = &[
    ("cranfield", 307_420, [0.3344, 0.2692, 0.6960], [0.3163, 0.2538, 0.6761]),
    ("cacm", 128_969, [0.3936, 0.2639, 0.5745], [0.3713, 0.2480, 0.5747]),
    ("cisi", 161_737, [0.3495, 0.1866, 0.4081], [0.3179, 0.1735, 0.3927]),
    ("medline", 28_884, [0.6700, 0.4928, 0.7647], [0.6484, 0.4800, 0.7522]),
    ("vaswani", 872_459, [0.3563, 0.2110, 0.4618], [0.3697, 0.2208, 0.4728]),
];

fn collections_directory() -> Option<PathBuf> {
    let data = std::env::var_os("TIERDEX_DATA").map(PathBuf::from);
    let data = data.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"));
    Some(data.join("collections")).filter(|folder| folder.is_dir())
}

fn run_tierdex(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tierdex")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Numbers of a line, without commas.
fn numbers_in(line: &str) -> Vec<f64> {
    line.split([' ', ':'])
        .filter_map(|word| word.trim_end_matches(',').replace(',', "").parse().ok())
        .collect()
}

#[test]
fn measures_agree_with_the_reference() {
    let Some(collections) = collections_directory() else {
        println!("skipped: no judged collections");
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let path = |name: &str| scratch.path().join(name).to_str().unwrap().to_string();
    let mut worst = [0.0f64; 2];
    for (name, matches, default, low) in REFERENCE_RESULTS {
        let file = |file: &str| collections.join(name).join(file).to_str().unwrap().to_string();
        for (i, (norms, most)) in [("exact", 0.0005), ("byte", 0.002)].into_iter().enumerate() {
            let index = path(&format!("{name}-{norms}"));
            run_tierdex(&["index", &file("docs.jsonl"), "--out", &index, "--norms", norms]);
            for (k1, b, expected) in [("1.2", "0.75", default), ("0.9", "0.4", low)] {
                let (queries, trec) = (file("queries.tsv"), path("run"));
                let batch = ["batch", &index, "--queries", &queries, "--run", &trec, "--syntax", "terms"];
                let said = run_tierdex(&[&batch[..], &["--k1", k1, "--b", b, "--count"]].concat());
                assert_eq!(numbers_in(&said)[1], *matches as f64, "{name}: {said}");
                let said = run_tierdex(&["eval", &trec, &file("qrels.txt")]);
                let found = numbers_in(&said);
                for (found, expected) in found[1..].iter().zip(expected) {
                    let off = (found - expected).abs();
                    worst[i] = worst[i].max(off);
                    assert!(off <= most, "{name}, {norms} norms, k1 {k1}, b {b}: {said}, not {expected}");
                }
            }
        }
    }
    println!("largest difference: {:.4} with exact norms, {:.4} with one byte", worst[0], worst[1]);
}
