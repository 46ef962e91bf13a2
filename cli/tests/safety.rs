//! Ordinary mistakes around an index directory: none of them loses an index.

mod place;

use place::{DOCUMENTS, Place, failed};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Stdio};

/// A writer that has written to index `i` what it has read of its standard input, and waits for more.
fn writer(place: &Place, arguments: &str) -> Child {
    let before = names(&place.path("i"));
    let mut command = place.command(arguments.split(' '));
    let mut child =
        command.stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // More than is analysed at a time.
    child.stdin.as_mut().unwrap().write_all(DOCUMENTS.repeat(60_000).as_bytes()).unwrap();
    let is_new = |name: &String| name != "write.lock" && !before.contains(name);
    while !names(&place.path("i")).iter().any(is_new) {
        assert!(child.try_wait().unwrap().is_none(), "the writer has ended");
        std::thread::yield_now();
    }
    child
}

fn ends(mut child: Child, code: i32, words: &str) {
    drop(child.stdin.take());
    failed(&child.wait_with_output().unwrap(), code, words);
}

fn documents(place: &Place, index: &str) -> u64 {
    let info: serde_json::Value =
        serde_json::from_str(&place.ok(&format!("info {index} --format json"))).unwrap();
    assert!(place.ok(&format!("check {index}")).contains("sound: "));
    info["documents"].as_u64().unwrap()
}

fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn with_index() -> Place {
    let place = Place::new();
    place.file("docs.jsonl", DOCUMENTS);
    place.ok("index docs.jsonl --out i");
    place
}

#[test]
fn a_removed_lock_costs_the_first_writer_its_commit_and_nobody_else() {
    let place = with_index();
    for merge in ["one", "none"] {
        let before = documents(&place, "i");
        let first = writer(&place, &format!("index - --out i --append --merge {merge}"));
        std::fs::remove_file(place.path("i/write.lock")).unwrap();
        place.ok(&format!("index docs.jsonl --out i --append --merge {merge}"));
        assert_eq!(documents(&place, "i"), before + 3);
        ends(
            first,
            1,
            "write.lock was removed or replaced while it was being written; nothing was committed",
        );
        assert_eq!(documents(&place, "i"), before + 3);
    }
    place.ok("index docs.jsonl --out i --append");
    assert_eq!(documents(&place, "i"), 12);
}

#[test]
fn a_directory_that_is_exchanged_under_a_writer_is_not_touched() {
    let place = with_index();
    place.ok("index docs.jsonl docs.jsonl --out new");
    let first = writer(&place, "index - --out i --append");
    std::fs::rename(place.path("i"), place.path("i.old")).unwrap();
    std::fs::rename(place.path("new"), place.path("i")).unwrap();
    let before = names(&place.path("i"));
    ends(first, 1, "the directory was renamed or replaced while it was being written");
    assert_eq!(names(&place.path("i")), before);
    assert_eq!((documents(&place, "i"), documents(&place, "i.old")), (6, 3));
}

#[test]
fn a_lost_or_damaged_manifest_loses_no_segments() {
    let place = with_index();
    let manifest = place.path("i/manifest-0000000000000001");
    let bytes = std::fs::read(&manifest).unwrap();
    std::fs::remove_file(&manifest).unwrap();
    let before = names(&place.path("i"));
    for flag in ["", " --append"] {
        place.fails(1, &format!("index docs.jsonl --out i{flag}"), "but no manifest");
        assert_eq!(names(&place.path("i")), before);
    }
    place.fails(1, "search i cat", "no manifest");
    std::fs::write(&manifest, &bytes).unwrap();
    assert_eq!(documents(&place, "i"), 3);

    let mut damaged = bytes.clone();
    damaged[70] ^= 1;
    std::fs::write(&manifest, &damaged).unwrap();
    place.fails(1, "check i", "--replace");
    place.fails(1, "index docs.jsonl --out i", "is damaged");
    place.fails(1, "index docs.jsonl --out i --append", "--replace puts a new index in its place");
    assert_eq!(std::fs::read(&manifest).unwrap(), damaged);
    place.ok("index docs.jsonl docs.jsonl --out i --replace");
    assert_eq!(documents(&place, "i"), 6);
    std::fs::remove_file(place.path("i/manifest-0000000000000002")).unwrap();
    place.ok("index docs.jsonl --out i --replace");
    assert_eq!(documents(&place, "i"), 3);
}

#[test]
fn a_failed_first_run_leaves_nothing() {
    let place = Place::new();
    place.file("docs.jsonl", DOCUMENTS);
    place.file("bad.jsonl", "{\n");
    place.fails(1, "index docs.jsonl bad.jsonl --out a/b/i --on-error fail", "bad.jsonl");
    assert_eq!(names(&place.path("")), ["bad.jsonl", "docs.jsonl"]);
    std::fs::create_dir(place.path("mine")).unwrap();
    place.fails(1, "index bad.jsonl --out mine --on-error fail", "bad.jsonl");
    assert_eq!(names(&place.path("mine")), [""; 0]);
    place.ok("index docs.jsonl --out mine");
    assert!(!place.path("mine/write.lock").exists(), "no file stays that looks like a lock");
}

#[test]
fn appending_needs_an_index_with_the_same_settings() {
    let place = with_index();
    place.fails(1, "index docs.jsonl --out typo --append", "no such directory");
    assert!(!place.path("typo").exists());
    std::fs::create_dir(place.path("empty")).unwrap();
    place.fails(2, "index docs.jsonl --out empty --append", "holds no index to append to");
    assert_eq!(names(&place.path("empty")), [""; 0]);
    let differs = "positions: no, here yes; stemmer: none, here english";
    place.fails(2, "index docs.jsonl --out i --append --positions --stem english", differs);
    place.fails(
        2,
        "index docs.jsonl --out i",
        "add to it with --append, or put a new one in its place with --replace",
    );
}
