//! Endless inputs, and inputs larger than memory.

use crate::workspace::{DOCUMENTS, Workspace, assert_failed, assert_succeeded};
use crate::workspace::{send_signal, wait_for_output, wait_until};
use std::{fs, io::Write};

/// Whether a process has a file open.
fn has_open(id: u32, file: &str) -> bool {
    let links = fs::read_dir(format!("/proc/{id}/fd")).into_iter().flatten().flatten();
    links.filter_map(|link| fs::read_link(link.path()).ok()).any(|target| target.ends_with(file))
}

/// A line of `/proc/PID/status`.
fn status_line(id: u32, name: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    value.unwrap().trim().to_string()
}

/// Peak resident memory of a process, in megabytes.
fn peak_mb(id: u32) -> u64 {
    status_line(id, "VmHWM:").strip_suffix(" kB").unwrap().parse::<u64>().unwrap() / 1024
}

/// Whether a process handles SIGINT and SIGTERM itself.
fn watches_signals(id: u32) -> bool {
    let caught = u64::from_str_radix(&status_line(id, "SigCgt:"), 16).unwrap();
    [2, 15].iter().all(|signal| caught >> (signal - 1) & 1 == 1)
}

#[test]
fn reading_an_endless_line_can_be_interrupted() {
    let workspace = Workspace::with_index("");
    // One line of 4 TiB.
    let sparse = fs::File::create(workspace.path("sparse.jsonl")).unwrap();
    sparse.set_len(1 << 42).unwrap();
    // With much memory the line is buffered when the signal arrives, with little memory it is skipped.
    for (input, memory, signal) in
        [("/dev/zero", "2G", "-INT"), ("/dev/zero", "16M", "-TERM"), ("sparse.jsonl", "16M", "-INT")]
    {
        let mut child = workspace.spawn(&format!("index {input} --out i --replace --memory {memory}"));
        // The file is opened once before, to check that it can be read.
        let id = child.id();
        wait_until(&mut child, || watches_signals(id) && has_open(id, input));
        send_signal(&child, signal);
        assert_failed(&wait_for_output(child), 130, "last commit is intact");
    }
    assert!(workspace.ok("search i cat").contains("2 documents"));
}

#[test]
fn lines_and_files_above_the_limit_are_not_held_in_memory() {
    let workspace = Workspace::new();
    let long = "word ".repeat(20 << 20);
    workspace.file("long.txt", &long);
    workspace.file("long.jsonl", format!("{DOCUMENTS}{{\"text\":\"{long}\"}}\n{DOCUMENTS}"));
    let (child, mut input) = workspace.spawn_with_input("index long.txt long.jsonl - --out i --memory 16M");
    // More than the pipe and the reader buffer: once it is written, the files have been read.
    input.write_all(" \n".repeat(4 << 20).as_bytes()).unwrap();
    input.write_all(DOCUMENTS.as_bytes()).unwrap();
    let peak = peak_mb(child.id());
    drop(input);
    let output = wait_for_output(child);
    let said = assert_succeeded(&output);
    assert!(said.contains("9 documents, ") && said.contains("; 2 documents skipped as too large"), "{said}");
    let error = String::from_utf8(output.stderr).unwrap();
    for location in ["long.txt: the file", "long.jsonl:4: the line"] {
        let words = "is longer than the maximum of 4,194,304 bytes (a larger --memory allows more)";
        assert!(error.contains(&format!("{location} {words}")), "{error}");
    }
    assert!(peak < 60, "peak of {peak} MB");
    workspace.fails(1, "index long.txt --out j --memory 16M", "1 document skipped as too large");
}

/// A file larger than the memory of the writer is split into the same documents as with much memory.
#[test]
fn large_files_are_split_in_pieces() {
    let workspace = Workspace::new();
    let text: String = (0..3_000_000).map(|word| format!("word{} ", word % 1000)).collect();
    workspace.file("large.txt", &text);
    for (index, memory) in [("small", "16M"), ("large", "1G")] {
        let flags = format!("--out {index} --split 1M --memory {memory} --store none");
        let said = workspace.ok(&format!("index large.txt {flags}"));
        assert!(said.starts_with("23 documents, ") && !said.contains("skipped"), "{said}");
    }
    let hits = |index: &str| {
        let answer = workspace.run_for_json(&format!("search {index} word7 -k 100 --format json"));
        let hit =
            |hit: &serde_json::Value| (hit["id"].as_str().unwrap().to_string(), hit["score"].to_string());
        answer["hits"].as_array().unwrap().iter().map(hit).collect::<Vec<_>>()
    };
    let found = hits("small");
    assert!(found == hits("large") && found.iter().any(|(id, _)| id == "large.txt#22"), "{found:?}");
}
