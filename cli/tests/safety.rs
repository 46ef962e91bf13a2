//! Mistakes with an index directory, none of which may lose an index.

mod workspace;

use std::process::{Child, Command, Stdio};
use std::{io::Write, path::Path};
use workspace::{DOCUMENTS, Workspace, failed, finish, succeeded, wait_until};

/// A writer that has written a part of its standard input to index `i`, and waits for more.
fn writer(workspace: &Workspace, arguments: &str) -> Child {
    let before = names(&workspace.path("i"));
    let mut command = workspace.command(arguments.split(' '));
    let mut child =
        command.stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // More than one batch.
    child.stdin.as_mut().unwrap().write_all(DOCUMENTS.repeat(60_000).as_bytes()).unwrap();
    let is_new = |name: &String| name != "write.lock" && !before.contains(name);
    wait_until(&mut child, || names(&workspace.path("i")).iter().any(is_new));
    child
}

fn ends(mut child: Child, code: i32, words: &str) {
    drop(child.stdin.take());
    failed(&finish(child), code, words);
}

fn documents(workspace: &Workspace, index: &str) -> u64 {
    let info: serde_json::Value =
        serde_json::from_str(&workspace.ok(&format!("info {index} --format json"))).unwrap();
    assert!(workspace.ok(&format!("check {index}")).contains("sound: "));
    info["documents"].as_u64().unwrap()
}

fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_writer_whose_lock_is_removed_commits_nothing() {
    let workspace = Workspace::with_index("");
    for merge in ["one", "none"] {
        let before = documents(&workspace, "i");
        let first = writer(&workspace, &format!("index - --out i --append --merge {merge}"));
        std::fs::remove_file(workspace.path("i/write.lock")).unwrap();
        workspace.ok(&format!("index docs.jsonl --out i --append --merge {merge}"));
        assert_eq!(documents(&workspace, "i"), before + 3);
        ends(
            first,
            1,
            "write.lock was removed or replaced while it was being written; nothing was committed",
        );
        assert_eq!(documents(&workspace, "i"), before + 3);
    }
    workspace.ok("index docs.jsonl --out i --append");
    assert_eq!(documents(&workspace, "i"), 12);
}

#[test]
fn a_directory_that_replaces_the_one_of_a_writer_is_not_changed() {
    let workspace = Workspace::with_index("");
    workspace.ok("index docs.jsonl docs.jsonl --out new");
    let first = writer(&workspace, "index - --out i --append");
    std::fs::rename(workspace.path("i"), workspace.path("i.old")).unwrap();
    std::fs::rename(workspace.path("new"), workspace.path("i")).unwrap();
    let before = names(&workspace.path("i"));
    ends(first, 1, "the directory was renamed or replaced while it was being written");
    assert_eq!(names(&workspace.path("i")), before);
    assert_eq!((documents(&workspace, "i"), documents(&workspace, "i.old")), (6, 3));
}

#[test]
fn a_missing_or_damaged_manifest_loses_no_segments() {
    let workspace = Workspace::with_index("");
    let manifest = workspace.path("i/manifest-0000000000000001");
    let bytes = std::fs::read(&manifest).unwrap();
    std::fs::remove_file(&manifest).unwrap();
    let before = names(&workspace.path("i"));
    for flag in ["", " --append"] {
        workspace.fails(1, &format!("index docs.jsonl --out i{flag}"), "but no manifest");
        assert_eq!(names(&workspace.path("i")), before);
    }
    workspace.fails(1, "search i cat", "no manifest");
    std::fs::write(&manifest, &bytes).unwrap();
    assert_eq!(documents(&workspace, "i"), 3);

    let mut damaged = bytes.clone();
    damaged[70] ^= 1;
    std::fs::write(&manifest, &damaged).unwrap();
    workspace.fails(1, "check i", "--replace");
    workspace.fails(1, "index docs.jsonl --out i", "is damaged");
    workspace.fails(1, "index docs.jsonl --out i --append", "replace the index with --replace");
    assert_eq!(std::fs::read(&manifest).unwrap(), damaged);
    workspace.ok("index docs.jsonl docs.jsonl --out i --replace");
    assert_eq!(documents(&workspace, "i"), 6);
    std::fs::remove_file(workspace.path("i/manifest-0000000000000002")).unwrap();
    workspace.ok("index docs.jsonl --out i --replace");
    assert_eq!(documents(&workspace, "i"), 3);
}

#[test]
fn a_failed_first_run_leaves_no_files() {
    let workspace = Workspace::with_documents();
    workspace.file("bad.jsonl", "{\n");
    workspace.fails(1, "index docs.jsonl bad.jsonl --out a/b/i --on-error fail", "bad.jsonl");
    assert_eq!(names(&workspace.path("")), ["bad.jsonl", "docs.jsonl"]);
    std::fs::create_dir(workspace.path("mine")).unwrap();
    workspace.fails(1, "index bad.jsonl --out mine --on-error fail", "bad.jsonl");
    assert_eq!(names(&workspace.path("mine")), [""; 0]);
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
    assert_eq!(names(&workspace.path("empty")), [""; 0]);
    let differs = "positions: no, here yes; stemmer: none, here english";
    workspace.fails(2, "index docs.jsonl --out i --append --positions --stem english", differs);
    workspace.fails(2, "index docs.jsonl --out i", "add to it with --append, or replace it with --replace");
}

#[test]
fn a_reader_during_the_first_run_is_told_that_nothing_is_committed() {
    let workspace = Workspace::new();
    std::fs::create_dir(workspace.path("i")).unwrap();
    let first = writer(&workspace, "index - --out i");
    let words = "holds no tierdex index yet: the first writer is at work or was cut off";
    workspace.fails(1, "search i cat", words);
    let killed = Command::new("kill").args(["-TERM", &first.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = finish(first);
    failed(&output, 130, "tierdex: interrupted; nothing was committed");
    assert_eq!(names(&workspace.path("i")), [""; 0]);
}

#[test]
fn a_second_writer_waits_for_the_first_if_asked() {
    let workspace = Workspace::with_index("");
    workspace.file("q", "q1\tcat\n");
    workspace.ok("ciff export i i.ciff");
    let first = writer(&workspace, "index - --out i --replace");
    workspace.fails(75, "index docs.jsonl --out i --append", "try again later, or give --wait SECONDS");
    workspace.fails(75, "ciff import i.ciff --out i --replace --wait 1", "another writer is at work");
    let mut second = workspace.command("index docs.jsonl --out i --append --wait 200".split(' '));
    let second = second.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    succeeded(&finish(first));
    succeeded(&finish(second));
    assert_eq!(documents(&workspace, "i"), 180_003);
}
