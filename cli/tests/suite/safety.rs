//! Mistakes with an index directory, none of which may lose an index.

use crate::workspace::{DOCUMENTS, Workspace, assert_failed, assert_succeeded};
use crate::workspace::{send_signal, wait_for_output, wait_until};
use std::io::Write;
use std::process::{Child, Stdio};

/// A writer that has written a part of its standard input to index `i`, and waits for more.
fn start_writer(workspace: &Workspace, arguments: &str) -> Child {
    let before = workspace.names_in("i");
    let mut command = workspace.command(arguments.split(' '));
    let mut child =
        command.stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // More than one batch.
    child.stdin.as_mut().unwrap().write_all(DOCUMENTS.repeat(60_000).as_bytes()).unwrap();
    let is_new = |name: &String| name != "write.lock" && !before.contains(name);
    wait_until(&mut child, || workspace.names_in("i").iter().any(is_new));
    child
}

fn assert_exit(mut child: Child, code: i32, words: &str) {
    drop(child.stdin.take());
    assert_failed(&wait_for_output(child), code, words);
}

fn count_documents(workspace: &Workspace, index: &str) -> u64 {
    let info = workspace.run_for_json(&format!("info {index} --format json"));
    assert!(workspace.ok(&format!("check {index}")).contains("sound: "));
    info["documents"].as_u64().unwrap()
}

#[test]
fn a_writer_whose_lock_is_removed_commits_nothing() {
    let workspace = Workspace::with_index("");
    for merge in ["one", "none"] {
        let before = count_documents(&workspace, "i");
        let first = start_writer(&workspace, &format!("index - --out i --append --merge {merge}"));
        std::fs::remove_file(workspace.path("i/write.lock")).unwrap();
        workspace.ok(&format!("index docs.jsonl --out i --append --merge {merge}"));
        assert_eq!(count_documents(&workspace, "i"), before + 3);
        let words = "write.lock was removed or replaced while it was being written; nothing was committed";
        assert_exit(first, 1, words);
        assert_eq!(count_documents(&workspace, "i"), before + 3);
    }
    workspace.ok("index docs.jsonl --out i --append");
    assert_eq!(count_documents(&workspace, "i"), 12);
}

#[test]
fn a_directory_that_replaces_the_one_of_a_writer_is_not_changed() {
    let workspace = Workspace::with_index("");
    workspace.ok("index docs.jsonl docs.jsonl --out new");
    let first = start_writer(&workspace, "index - --out i --append");
    std::fs::rename(workspace.path("i"), workspace.path("i.old")).unwrap();
    std::fs::rename(workspace.path("new"), workspace.path("i")).unwrap();
    let before = workspace.names_in("i");
    assert_exit(first, 1, "the directory was renamed or replaced while it was being written");
    assert_eq!(workspace.names_in("i"), before);
    assert_eq!((count_documents(&workspace, "i"), count_documents(&workspace, "i.old")), (6, 3));
}

#[test]
fn a_missing_or_damaged_manifest_loses_no_segments() {
    let workspace = Workspace::with_index("");
    let manifest = workspace.path("i/manifest-0000000000000001");
    let bytes = std::fs::read(&manifest).unwrap();
    std::fs::remove_file(&manifest).unwrap();
    let before = workspace.names_in("i");
    for flag in ["", " --append"] {
        workspace.fails(1, &format!("index docs.jsonl --out i{flag}"), "but no manifest");
        assert_eq!(workspace.names_in("i"), before);
    }
    workspace.fails(1, "search i cat", "no manifest");
    std::fs::write(&manifest, &bytes).unwrap();
    assert_eq!(count_documents(&workspace, "i"), 3);

    let mut damaged = bytes.clone();
    damaged[70] ^= 1;
    std::fs::write(&manifest, &damaged).unwrap();
    workspace.fails(1, "check i", "--replace");
    workspace.fails(1, "index docs.jsonl --out i", "is damaged");
    workspace.fails(1, "index docs.jsonl --out i --append", "replace the index with --replace");
    assert_eq!(std::fs::read(&manifest).unwrap(), damaged);
    workspace.ok("index docs.jsonl docs.jsonl --out i --replace");
    assert_eq!(count_documents(&workspace, "i"), 6);
    std::fs::remove_file(workspace.path("i/manifest-0000000000000002")).unwrap();
    workspace.ok("index docs.jsonl --out i --replace");
    assert_eq!(count_documents(&workspace, "i"), 3);
}

#[test]
fn a_failed_first_run_leaves_no_files() {
    let workspace = Workspace::with_documents();
    workspace.file("bad.jsonl", "{\n");
    workspace.fails(1, "index docs.jsonl bad.jsonl --out a/b/i --on-error fail", "bad.jsonl");
    assert_eq!(workspace.names_in(""), ["bad.jsonl", "docs.jsonl"]);
    std::fs::create_dir(workspace.path("mine")).unwrap();
    workspace.fails(1, "index bad.jsonl --out mine --on-error fail", "bad.jsonl");
    assert_eq!(workspace.names_in("mine"), [""; 0]);
    workspace.ok("index docs.jsonl --out mine");
    assert!(!workspace.path("mine/write.lock").exists(), "the lock file is removed");
}

#[test]
fn appending_needs_an_index_with_the_same_settings() {
    let workspace = Workspace::with_index("");
    workspace.fails(1, "index docs.jsonl --out typo --append", "no such directory");
    assert!(!workspace.path("typo").exists());
    std::fs::create_dir(workspace.path("empty")).unwrap();
    workspace.fails(2, "index docs.jsonl --out empty --append", "holds no index to append to");
    assert_eq!(workspace.names_in("empty"), [""; 0]);
    let differs = "positions: no, here yes; stemmer: none, here english";
    workspace.fails(2, "index docs.jsonl --out i --append --positions --stem english", differs);
    workspace.fails(2, "index docs.jsonl --out i", "add to it with --append, or replace it with --replace");
}

#[test]
fn a_reader_during_the_first_run_is_told_that_nothing_is_committed() {
    let workspace = Workspace::new();
    std::fs::create_dir(workspace.path("i")).unwrap();
    let first = start_writer(&workspace, "index - --out i");
    let words = "holds no tierdex index yet: the first writer is at work or was cut off";
    workspace.fails(1, "search i cat", words);
    send_signal(&first, "-TERM");
    let output = wait_for_output(first);
    assert_failed(&output, 130, "tierdex: interrupted; nothing was committed");
    assert_eq!(workspace.names_in("i"), [""; 0]);
}

#[test]
fn a_second_writer_waits_for_the_first_if_asked() {
    let workspace = Workspace::with_index("");
    workspace.file("q", "q1\tcat\n");
    workspace.ok("ciff export i i.ciff");
    let first = start_writer(&workspace, "index - --out i --replace");
    workspace.fails(75, "index docs.jsonl --out i --append", "try again later, or give --wait SECONDS");
    workspace.fails(75, "ciff import i.ciff --out i --replace --wait 1", "another writer is at work");
    let second = workspace.spawn("index docs.jsonl --out i --append --wait 200");
    assert_succeeded(&wait_for_output(first));
    assert_succeeded(&wait_for_output(second));
    assert_eq!(count_documents(&workspace, "i"), 180_003);
}
