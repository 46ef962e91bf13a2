//! Inputs without end, or larger than memory: what is read of them, and how it is stopped.

mod place;

use place::{DOCUMENTS, Place, failed, succeeded};
use std::fs;
use std::io::Write;
use std::process::{Child, Command, Stdio};

/// Whether a process has a file open.
fn has_open(child: &Child, file: &str) -> bool {
    let links = fs::read_dir(format!("/proc/{}/fd", child.id())).into_iter().flatten().flatten();
    links.filter_map(|link| fs::read_link(link.path()).ok()).any(|target| target.ends_with(file))
}

/// What the system says of a process.
fn status(child: &Child, name: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let value = status.lines().find_map(|line| line.strip_prefix(name));
    value.unwrap().trim().to_string()
}

/// Peak of a process's memory in megabytes.
fn peak_mb(child: &Child) -> u64 {
    status(child, "VmHWM:").strip_suffix(" kB").unwrap().parse::<u64>().unwrap() / 1024
}

/// Whether a process handles SIGINT and SIGTERM itself.
fn watches_signals(child: &Child) -> bool {
    let caught = u64::from_str_radix(&status(child, "SigCgt:"), 16).unwrap();
    [2, 15].iter().all(|signal| caught >> (signal - 1) & 1 == 1)
}

#[test]
fn a_line_without_end_is_interrupted() {
    let place = Place::new();
    place.file("docs.jsonl", DOCUMENTS);
    place.ok("index docs.jsonl --out i");
    // Terabytes, and all of them one line.
    let sparse = fs::File::create(place.path("sparse.jsonl")).unwrap();
    sparse.set_len(1 << 42).unwrap();
    // With much memory the line is still being held, with little the rest of it is being skipped.
    for (input, memory, signal) in
        [("/dev/zero", "2G", "-INT"), ("/dev/zero", "16M", "-TERM"), ("sparse.jsonl", "16M", "-INT")]
    {
        let child = place
            .command(["index", input, "--out", "i", "--replace", "--memory", memory])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A file is also opened for a moment before, to see whether it can be.
        while !(watches_signals(&child) && has_open(&child, input)) {
            std::thread::yield_now();
        }
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        failed(&child.wait_with_output().unwrap(), 130, "last commit is intact");
    }
    assert!(place.ok("search i cat").contains("2 documents"));
}

#[test]
fn what_no_document_may_hold_is_not_held_in_memory() {
    let place = Place::new();
    let long = "word ".repeat(20 << 20);
    place.file("long.txt", &long);
    place.file("long.jsonl", format!("{DOCUMENTS}{{\"text\":\"{long}\"}}\n{DOCUMENTS}"));
    let mut child = place
        .command(["index", "long.txt", "long.jsonl", "-", "--out", "i", "--memory", "16M"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // More than a pipe and the reader behind it take: once it is written, the files have been read.
    let mut input = child.stdin.take().unwrap();
    input.write_all(" \n".repeat(4 << 20).as_bytes()).unwrap();
    input.write_all(DOCUMENTS.as_bytes()).unwrap();
    let peak = peak_mb(&child);
    drop(input);
    let output = child.wait_with_output().unwrap();
    let said = succeeded(&output);
    assert!(said.contains("9 documents, ") && said.contains("; 2 documents left out as too large"), "{said}");
    let error = String::from_utf8(output.stderr).unwrap();
    for place in ["long.txt: the file", "long.jsonl:4: the line"] {
        let words = "is longer than a document may be (4,194,304 bytes; more --memory allows more)";
        assert!(error.contains(&format!("{place} {words}")), "{error}");
    }
    assert!(peak < 60, "peak of {peak} MB");
    place.fails(1, "index long.txt --out j --memory 16M", "1 document left out as too large");
}
