//! Messages on standard error, and commands whose standard error or output cannot be written.

use crate::workspace::{DOCUMENTS, Workspace, assert_failed, assert_succeeded};
use std::fs::{File, OpenOptions};
use std::process::Stdio;

/// A file to which every write fails.
fn full_device() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

/// Exit code and output of a command whose messages cannot be written.
fn run_with_full_stderr(workspace: &Workspace, arguments: &str) -> (Option<i32>, String) {
    let mut command = workspace.command(arguments.split(' '));
    let output = command.stdout(Stdio::piped()).stderr(full_device()).output().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let closed = workspace.command(arguments.split(' ')).stderr(writer).output().unwrap();
    assert_eq!(closed.status.code(), output.status.code(), "{arguments}");
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn messages_that_cannot_be_written_are_dropped() {
    let workspace = Workspace::new();
    workspace.file("docs.jsonl", format!("not json\n{DOCUMENTS}"));
    let (code, said) = run_with_full_stderr(&workspace, "index docs.jsonl --out i --replace");
    assert!(code == Some(0) && said.contains("holds 3 documents"), "{code:?}: {said}");
    let (code, said) =
        run_with_full_stderr(&workspace, "index docs.jsonl --out i --replace --threads 5 --memory 128M");
    assert!(code == Some(0) && said.contains("holds 3 documents"), "{code:?}: {said}");

    workspace.file("q", "q1\tcat\nno tab\nq2\tcat AND\n");
    let batch = "batch i --queries q --run r --syntax query --stats";
    for (flags, code) in [(" --on-error skip", 0), (" --lenient --on-error skip", 0), ("", 1)] {
        assert_eq!(run_with_full_stderr(&workspace, &format!("{batch}{flags}")).0, Some(code), "{flags}");
        assert_eq!(workspace.path("r").exists(), code == 0, "{flags}");
        let _ = std::fs::remove_file(workspace.path("r"));
        assert_eq!(workspace.names(), ["docs.jsonl", "i", "q"]);
    }
    for (arguments, code) in [
        ("search i cat~3 --lenient --stats", 0),
        ("search i cat~3", 2),
        ("search i cat --frob", 2),
        ("frob", 2),
        ("search nowhere cat", 1),
        ("search i cat --dram 1K", 2),
    ] {
        assert_eq!(run_with_full_stderr(&workspace, arguments).0, Some(code), "{arguments}");
    }
}

#[test]
fn a_full_output_is_an_error_and_a_closed_pipe_is_not() {
    let workspace = Workspace::with_index("");
    for arguments in
        ["search i cat", "search i cat --format json", "info i", "check i", "--help", "--version"]
    {
        let output = workspace
            .command(arguments.split(' '))
            .stdout(full_device())
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_failed(&output, 1, "cannot write the output");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output =
            workspace.command(arguments.split(' ')).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert_succeeded(&output);
        assert!(output.stderr.is_empty(), "{arguments}");
    }
}

#[test]
fn usage_errors_are_one_line() {
    let workspace = Workspace::new();
    for (arguments, words) in [
        (
            "search i cat --frmat json",
            "unexpected argument '--frmat' found; tip: a similar argument exists: '--format'",
        ),
        ("search", "arguments were not provided: <DIR>"),
        ("search i cat --format yaml", "[possible values: table, json]"),
        ("serch", "unrecognized subcommand 'serch'"),
        ("search i cat -k many", "see `tierdex --help`"),
    ] {
        workspace.fails_in_one_line(2, arguments, words);
    }
}

#[test]
fn control_characters_of_names_and_texts_are_not_printed() {
    let workspace = Workspace::new();
    let raw = |text: &str| text.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\u{2066}', '\u{7}', '\r']);
    for (arguments, code) in [
        (["search", "x\u{1b}[31mfoo\nbar", "cat"], 1),
        (["search", "x\u{202e}y\u{2066}", "cat"], 1),
        (["check", "\u{7}\r", "\u{1b}[2J"], 2),
        (["search", "i", "--\u{1b}[31m\n"], 2),
    ] {
        let output = workspace.run_with(arguments);
        assert_failed(&output, code, "");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!raw(&said) && said.lines().count() == 1, "{said:?}");
    }
    let (id, title) = ("a\\u009b\\u202eb", "a\\u001b[31m\\u202eb");
    workspace.file(
        "docs.jsonl",
        format!("{{\"id\":\"{id}\",\"title\":\"{title}\",\"text\":\"cat \\u202ex \\u2066\"}}\n"),
    );
    workspace.file("x\u{1b}[31m\n.jsonl", "not json\n");
    let output = workspace.run_with(["index", "docs.jsonl", "x\u{1b}[31m\n.jsonl", "--out", "i"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!raw(&said) && said.lines().count() == 1, "{said:?}");
    assert!(!raw(&workspace.ok("search i cat")) && workspace.ok("search i cat").contains("a [31m b"));
    let answer = workspace.run_for_json("search i cat --format json");
    assert_eq!(answer["hits"][0]["id"], "a\u{9b}\u{202e}b");
    assert_eq!(answer["hits"][0]["title"], "a\u{1b}[31m\u{202e}b");
    assert!(answer["hits"][0]["snippet"].as_str().unwrap().contains('\u{202e}'));
}

#[test]
fn long_titles_are_cut_with_a_mark_and_ids_only_in_tables() {
    let workspace = Workspace::new();
    let (id, title) = ("i".repeat(2000), "t".repeat(100_000));
    workspace.file("docs.jsonl", format!("{{\"id\":\"{id}\",\"title\":\"{title}\",\"text\":\"cat\"}}\n"));
    workspace.file("more.jsonl", format!("{{\"id\":\"{id}\",\"text\":\"cat\"}}\n"));
    for (name, starts) in
        [("docs.jsonl", "i".repeat(40) + "…  " + &"t".repeat(39) + "…"), ("more.jsonl", "i".repeat(82) + "…")]
    {
        workspace.ok(&format!("index {name} --out {name}.index"));
        let table = workspace.ok(&format!("search {name}.index cat"));
        let line = table.lines().nth(1).unwrap();
        assert!(line.chars().count() <= 100 && line.contains(&starts), "{line}");
        let hit = &workspace.run_for_json(&format!("search {name}.index cat --format json"))["hits"][0];
        assert_eq!(hit["id"], id);
        assert_eq!(hit["title_cut"], name == "docs.jsonl");
        assert!(name == "more.jsonl" || hit["title"] == title[..16_380].to_string() + "…");
    }
}

#[test]
fn the_help_lists_closed_sets_of_values() {
    let workspace = Workspace::new();
    let help = |command: &str| {
        let text = workspace.ok(&format!("{command} --help"));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (command, values) in [("index", "raw, vbyte, "), ("index", "arabic, danish, ")] {
        let help = help(command);
        assert!(help.contains(&format!("[possible values: {values}")), "{command}, {values}: {help}");
    }
    let index = help("index");
    let frequencies = index.split_once("--freq-codec").unwrap().1.split_once("--norms").unwrap().0;
    let frequencies = frequencies.split_once("[possible values: ").unwrap().1;
    assert!(frequencies.contains("vbyte") && !frequencies.contains("delta"), "{frequencies}");
}

#[test]
fn invalid_sizes_are_rejected_with_the_reason() {
    let workspace = Workspace::new();
    for (arguments, words) in [
        ("search i cat --dram 0", "too small: a size is at least 1 byte"),
        ("search i cat --dram 99999999999G", "too large: a size is at most 18446744073709551615 bytes"),
        ("search i cat --dram 1.5G", "`1.5G` is not a size"),
        ("search i cat -k -1", "k must be at least 0"),
        ("batch i --queries q --run r -k -1", "k must be at least 0"),
        ("search i cat -k 1.5", "expected a number of hits"),
        ("index x --out i --memory 0K", "too small"),
        ("index x --out i --split 99999999999999999999999", "too large"),
    ] {
        workspace.fails(2, arguments, words);
    }
}

#[test]
fn counts_of_one_are_singular() {
    let workspace = Workspace::new();
    workspace.file("docs.jsonl", "{\"id\":\"1\",\"text\":\"cat\"}\n");
    workspace.file("q", "q1\tcat\n");
    workspace.ok("index docs.jsonl --out i");
    for (arguments, words) in [
        ("search i cat", "1 document in "),
        ("explain i cat", "1 hit of 1"),
        ("explain i cat", "; 1 document, 1 matching"),
        ("info i", "1 document in 1 segment, "),
        ("info i", "1 term, 1 posting, 1 token in 1 document, "),
        ("check i", "1 document, 1 term, 1 posting"),
        ("batch i --queries q --run r", "1 query, 1 hit, "),
        ("batch i --queries q --run r --count", "1 query, 1 match, "),
    ] {
        let said = workspace.ok(arguments);
        assert!(said.contains(words), "{arguments}: {said}");
    }
}

#[test]
fn errors_name_the_directory_of_the_index() {
    let workspace = Workspace::with_documents();
    workspace.file("q", "q1\tcat\n");
    workspace.ok("index docs.jsonl --out i");
    let ids = std::fs::read_dir(workspace.path("i")).unwrap().map(|entry| entry.unwrap().path());
    let ids = ids.into_iter().find(|path| path.extension().is_some_and(|end| end == "ids")).unwrap();
    let words = format!("i/{}", ids.file_name().unwrap().to_str().unwrap());
    let mut bytes = std::fs::read(&ids).unwrap();
    bytes[4100] ^= 1;
    std::fs::write(&ids, bytes).unwrap();
    workspace.fails(1, "search i cat", &format!("tierdex: {words} is damaged at byte"));
    workspace.fails(1, "batch i --queries q --run r", &format!("{words} is damaged at byte"));
    assert!(String::from_utf8(workspace.run("check i").stdout).unwrap().starts_with(&words));
    std::fs::remove_file(&ids).unwrap();
    for command in ["search i cat", "explain i cat", "batch i --queries q --run r", "info i", "stats i"] {
        workspace.fails(1, command, &format!("cannot open {words}: "));
    }
}

#[test]
fn an_unknown_kernel_is_rejected_before_any_file_is_written() {
    let workspace = Workspace::new();
    workspace.file("docs.jsonl", "{\"id\":\"a\",\"text\":\"cat\"}\n");
    assert_eq!(workspace.run_with_kernel("scalar", "index docs.jsonl --out good").0, Some(0));
    workspace.file("q", "1\tcat\n");
    workspace.assert_unknown_kernel_rejected(&[
        "index docs.jsonl --out new",
        "info good",
        "search good cat",
        "explain good cat",
        "batch good --queries q --run r",
        "stats good",
        "check good",
        "demo . --out new",
    ]);
    let (code, _) = workspace.run_with_kernel("", "check good");
    assert_eq!(code, Some(0), "an empty name counts as unset");
}
