//! `tierdex-bench batch`: flags of read modes, and the files that it reads and writes.

use crate::index;
use crate::workspace::{Workspace, failed};
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn failed_queries_are_skipped_with_on_error_skip_in_every_mode() {
    let workspace = Workspace::new();
    // Posting lists of several pages.
    let word = |number: usize, of: &str, part: usize| match number.wrapping_mul(0x9e37_79b9) >> 8 & part {
        0 => of.to_string(),
        _ => String::new(),
    };
    let dir = workspace.path("i");
    index(&dir, (0..80_000).map(|n| format!("all {} {}", word(n, "cat", 1), word(n, "dog", 2))));
    // A page of the first list is damaged: the two queries that read it have no answer, and the query between
    // them is answered. That is no success.
    let docs = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
    let docs = docs.into_iter().find(|path| path.extension().is_some_and(|end| end == "postings")).unwrap();
    let mut bytes = fs::read(&docs).unwrap();
    bytes[100] ^= 1;
    fs::write(&docs, bytes).unwrap();
    workspace.file("q.tsv", "q1\tcat\nq2\tdog\nq4\tcat dog\n");
    let batch = "batch i --queries q.tsv --run out.trec -k 3 --syntax query";
    for mode in ["base", "hybrid-prefetch", "direct"] {
        let output = workspace.run(&format!("{batch} --on-error skip --mode {mode}"));
        let said = String::from_utf8_lossy(&output.stderr);
        failed(&output, 1, "q.tsv: 2 of 3 queries without an answer, as the index is damaged");
        assert!(
            said.contains("query q1: ") && said.contains("query q4: ") && said.contains("checksum"),
            "{mode}: {said}"
        );
        let run = fs::read_to_string(workspace.path("out.trec")).unwrap();
        assert_eq!(run.lines().map(|line| &line[..2]).collect::<Vec<_>>(), ["q2"; 3], "{mode}");
    }
}

#[test]
fn flags_without_effect_in_a_mode_are_rejected() {
    let workspace = Workspace::new();
    workspace.file("q", "q1\tcat\n");
    index(&workspace.path("i"), ["the cat"]);
    for (flags, words) in [
        ("--segment 5K", "--segment must be a power of two"),
        ("--mode base --segment 4K", "omit --segment"),
        ("--mode base-prefetch --depth 4", "omit --depth"),
        ("--mode base --cache dram:1M", "omit --cache"),
        ("--mode hybrid --lookahead 4", "omit --lookahead,"),
        ("--mode base --lookahead-log l", "omit --lookahead-log"),
        ("--mode base-prefetch --io uring", "through the page cache only"),
        ("--mode direct --no-readahead", "omit --no-readahead"),
        ("--mode direct --io mmap", "--mode hybrid-prefetch"),
        ("--mode direct --segment 8K", "omit --segment"),
        ("--lookahead 4", "--mode direct does not prefetch"),
        ("--keep-in dram --mode base", "hold the whole index in memory"),
        ("--slow-tier 300 --dram 50M", "hold the whole index in memory"),
    ] {
        workspace.fails(2, &format!("batch i --queries q --run r {flags}"), words);
    }
    for flags in [
        "--mode hybrid-prefetch --policy sieve --segment 4K --depth 4 --lookahead 4",
        "--mode direct --policy sieve --depth 4",
        "--mode base-prefetch --lookahead 4",
        "--mode base-prefetch --io pread",
        "--mode base --no-readahead --dram 50M",
        "--keep-in dram --slow-tier 10,50 --stats",
    ] {
        workspace.ok(&format!("batch i --queries q --run r {flags}"));
    }
}

#[test]
fn arguments_that_name_the_same_file_are_rejected() {
    let workspace = Workspace::new();
    workspace.file("q", "q1\tcat\n");
    index(&workspace.path("i"), ["the cat"]);
    symlink("q", workspace.path("link")).unwrap();
    symlink("new", workspace.path("dangling")).unwrap();
    for (files, words) in [
        ("--queries q --run q", "--queries and --run name the same file"),
        ("--queries q --run r --lookahead-log link", "--queries and --lookahead-log"),
        ("--queries q --run new --lookahead-log i/../new", "--run and --lookahead-log"),
        ("--queries q --run dangling --lookahead-log new", "--run and --lookahead-log"),
    ] {
        workspace.fails(2, &format!("batch i --mode hybrid-prefetch {files}"), words);
    }
    assert_eq!(fs::read_to_string(workspace.path("q")).unwrap(), "q1\tcat\n");
    workspace.ok("batch i --queries q --run /dev/null --mode hybrid-prefetch --lookahead-log /dev/null");
}
