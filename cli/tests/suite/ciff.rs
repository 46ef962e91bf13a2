//! `tierdex ciff`: export and import.

use crate::workspace::{Workspace, assert_succeeded, spawn_and_finish};

#[test]
fn an_exported_index_is_imported_and_finds_the_same() {
    let workspace = Workspace::with_documents();
    workspace.file("queries.tsv", "q1\tcat dog\nq2\tbird\nq3\tthe\n");
    workspace.ok("index docs.jsonl --out first");
    workspace.ok("batch first --queries queries.tsv --run first.run");
    let read = |name: &str| std::fs::read(workspace.path(name)).unwrap();
    for name in ["plain.ciff", "packed.ciff.gz"] {
        let exported = workspace.ok(&format!("ciff export first {name}"));
        assert!(exported.starts_with(&format!("{name}: ")), "{exported}");
        workspace.ok(&format!("ciff import {name} --out second --replace"));
        workspace.ok("batch second --queries queries.tsv --run second.run");
        assert!(!read("first.run").is_empty() && read("first.run") == read("second.run"));
        workspace.ok("ciff export second again.ciff");
        workspace.ok("check second");
    }
    assert!(read("plain.ciff") == read("again.ciff"));
    workspace.ok("ciff import plain.ciff --out second --append");
    assert!(workspace.ok("info second").contains("in 2 segments"));
}

#[test]
fn a_compressed_file_is_imported_by_way_of_a_file_that_does_not_remain() {
    let workspace = Workspace::with_documents();
    workspace.file("temporary/.tierdex-ciff-1-0", "of another process");
    workspace.ok("index docs.jsonl --out i");
    workspace.ok("ciff export i i.ciff.gz");
    let mut command = workspace.command("ciff import i.ciff.gz --out j".split(' '));
    let output = spawn_and_finish(command.env("TMPDIR", workspace.path("temporary")));
    assert_succeeded(&output);
    assert!(String::from_utf8_lossy(&output.stderr).contains("i.ciff.gz: decompressed to "));
    assert_eq!(workspace.names_in("temporary"), [".tierdex-ciff-1-0"]);
}

#[test]
fn terms_that_queries_cannot_find_are_counted() {
    let workspace = Workspace::new();
    workspace.file("docs.jsonl", "{\"id\":\"1\",\"text\":\"ELM tree new_york oak\"}\n");
    workspace.ok("index docs.jsonl --out i --tokenizer whitespace");
    workspace.ok("ciff export i i.ciff");
    let said = |flags: &str| {
        let output = workspace.run(&format!("ciff import i.ciff --out j --replace{flags}"));
        assert_succeeded(&output);
        String::from_utf8(output.stderr).unwrap()
    };
    let error = said("");
    assert!(
        error.contains("i.ciff: 2 of 4 terms cannot be found by queries") && error.contains("first: `ELM`")
    );
    assert_eq!(said(" --tokenizer whitespace"), "");
}

#[test]
fn files_and_flags_that_do_not_fit_are_rejected() {
    let workspace = Workspace::with_index("");
    workspace.ok("ciff export i i.ciff");
    workspace.fails(2, "ciff import i.ciff --out i", "holds an index already");
    workspace.fails(2, "ciff import i.ciff --out j --positions", "no positions");
    workspace.fails(2, "ciff export i i/file.ciff", "directory of the index");
    workspace.fails(2, "ciff export i x.ciff --field title", "no field `title`; it has text");
    workspace.fails(1, "ciff import docs.jsonl --out j", "docs.jsonl, byte ");
    workspace.fails(1, "ciff import none.ciff --out j", "none.ciff: cannot read");
    workspace.fails(1, "ciff export none x.ciff", "no such directory");
    let mut bytes = std::fs::read(workspace.path("i.ciff")).unwrap();
    bytes.truncate(bytes.len() - 1);
    workspace.file("short.ciff", bytes);
    workspace.fails(1, "ciff import short.ciff --out j", "short.ciff, byte ");
    assert!(!workspace.path("j").exists(), "a failed import leaves nothing");
}
