//! What is said on standard error, and what happens when nobody can read it.

mod place;

use place::{DOCUMENTS, Place, failed, succeeded};
use std::fs::{File, OpenOptions};
use std::process::Stdio;

/// Where nothing can be written to.
fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

/// The exit code of a command whose messages cannot be written, and its output.
fn unheard(place: &Place, arguments: &str) -> (Option<i32>, String) {
    let mut command = place.command(arguments.split(' '));
    let output = command.stdout(Stdio::piped()).stderr(full()).output().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let closed = place.command(arguments.split(' ')).stderr(writer).output().unwrap();
    assert_eq!(closed.status.code(), output.status.code(), "{arguments}");
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn messages_that_cannot_be_written_are_dropped() {
    let place = Place::new();
    place.file("docs.jsonl", format!("not json\n{DOCUMENTS}"));
    let (code, said) = unheard(&place, "index docs.jsonl --out i --replace");
    assert!(code == Some(0) && said.contains("holds 3 documents"), "{code:?}: {said}");
    let (code, said) = unheard(&place, "index docs.jsonl --out i --replace --threads 5 --memory 128M");
    assert!(code == Some(0) && said.contains("holds 3 documents"), "{code:?}: {said}");

    place.file("q", "q1\tcat\nno tab\nq2\tcat AND\n");
    let batch = "batch i --queries q --run r --syntax query --stats";
    for (flags, code) in [(" --on-error skip", 0), (" --lenient --on-error skip", 0), ("", 1)] {
        assert_eq!(unheard(&place, &format!("{batch}{flags}")).0, Some(code), "{flags}");
        assert_eq!(place.path("r").exists(), code == 0, "{flags}");
        let _ = std::fs::remove_file(place.path("r"));
        assert_eq!(place.names(), ["docs.jsonl", "i", "q"]);
    }
    for (arguments, code) in [
        ("search i (cat --lenient --stats", 0),
        ("search i (cat", 2),
        ("search i cat --frob", 2),
        ("frob", 2),
        ("search nowhere cat", 1),
        ("search i cat --dram 1K", 2),
    ] {
        assert_eq!(unheard(&place, arguments).0, Some(code), "{arguments}");
    }
}

#[test]
fn output_that_cannot_be_written_is_an_error_unless_nobody_reads_it() {
    let place = Place::new();
    place.file("docs.jsonl", DOCUMENTS);
    place.ok("index docs.jsonl --out i");
    for arguments in
        ["search i cat", "search i cat --format json", "info i", "check i", "--help", "--version"]
    {
        let output =
            place.command(arguments.split(' ')).stdout(full()).stderr(Stdio::piped()).output().unwrap();
        failed(&output, 1, "cannot write the output");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output =
            place.command(arguments.split(' ')).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        succeeded(&output);
        assert!(output.stderr.is_empty(), "{arguments}");
    }
}

#[test]
fn wrong_arguments_are_one_line() {
    let place = Place::new();
    for (arguments, words) in [
        (
            "search i cat --frmat json",
            "unexpected argument '--frmat' found; tip: a similar argument exists: '--format'",
        ),
        ("search", "arguments were not provided: <DIR>"),
        ("search i cat --format yaml", "[possible values: table, json]"),
        ("serch", "unrecognized subcommand 'serch'"),
        ("tierdex-bench frob", "see `tierdex-bench --help`"),
        ("search i cat -k many", "see `tierdex --help`"),
    ] {
        place.fails(2, arguments, words);
        let output = place.run(arguments);
        assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{arguments}");
    }
}

#[test]
fn names_and_text_do_not_steer_the_terminal() {
    let place = Place::new();
    let raw = |text: &str| text.contains(['\u{1b}', '\u{202e}', '\u{2066}', '\u{7}', '\r']);
    for (arguments, code) in [
        (["search", "x\u{1b}[31mfoo\nbar", "cat"], 1),
        (["search", "x\u{202e}y\u{2066}", "cat"], 1),
        (["check", "\u{7}\r", "\u{1b}[2J"], 2),
        (["search", "i", "--\u{1b}[31m\n"], 2),
    ] {
        let output = place.run_with(arguments);
        failed(&output, code, "");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!raw(&said) && said.lines().count() == 1, "{said:?}");
    }
    let id = "a\\u001b[31m\\u202eb";
    place.file(
        "docs.jsonl",
        format!("{{\"id\":\"{id}\",\"title\":\"{id}\",\"text\":\"cat \\u202ex \\u2066\"}}\n"),
    );
    place.file("x\u{1b}[31m\n.jsonl", "not json\n");
    let output = place.run_with(["index", "docs.jsonl", "x\u{1b}[31m\n.jsonl", "--out", "i"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!raw(&said) && said.lines().count() == 1, "{said:?}");
    assert!(!raw(&place.ok("search i cat")) && place.ok("search i cat").contains("a [31m b"));
    let answer: serde_json::Value = serde_json::from_str(&place.ok("search i cat --format json")).unwrap();
    assert_eq!(answer["hits"][0]["id"], "a\u{1b}[31m\u{202e}b");
    assert!(answer["hits"][0]["snippet"].as_str().unwrap().contains('\u{202e}'));
}

#[test]
fn long_titles_and_ids_are_cut_to_the_width_in_tables_alone() {
    let place = Place::new();
    let (id, title) = ("i".repeat(2000), "t".repeat(100_000));
    place.file("docs.jsonl", format!("{{\"id\":\"{id}\",\"title\":\"{title}\",\"text\":\"cat\"}}\n"));
    place.file("more.jsonl", format!("{{\"id\":\"{id}\",\"text\":\"cat\"}}\n"));
    for (name, starts) in
        [("docs.jsonl", "i".repeat(40) + "…  " + &"t".repeat(39) + "…"), ("more.jsonl", "i".repeat(82) + "…")]
    {
        place.ok(&format!("index {name} --out {name}.index"));
        let table = place.ok(&format!("search {name}.index cat"));
        let line = table.lines().nth(1).unwrap();
        assert!(line.chars().count() <= 100 && line.contains(&starts), "{line}");
        let answer: serde_json::Value =
            serde_json::from_str(&place.ok(&format!("search {name}.index cat --format json"))).unwrap();
        assert_eq!(answer["hits"][0]["id"], id);
        assert!(name == "more.jsonl" || answer["hits"][0]["title"] == title[..16 << 10]);
    }
}

#[test]
fn closed_sets_of_values_are_listed_by_the_help() {
    let place = Place::new();
    let help = |command: &str| {
        let text = place.ok(&format!("{command} --help"));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (command, values) in [
        ("index", "raw, vbyte, "),
        ("index", "arabic, danish, "),
        ("tierdex-bench serve", "base, base-prefetch, hybrid, hybrid-prefetch, direct]"),
        ("tierdex-bench batch", "lru, s3-fifo, sieve, window]"),
        ("tierdex-bench stats", "auto, uring, pread, mmap]"),
    ] {
        let help = help(command);
        assert!(help.contains(&format!("[possible values: {values}")), "{command}, {values}: {help}");
    }
    let codecs = help("index");
    let frequencies = codecs.split_once("--freq-codec").unwrap().1.split_once("--norms").unwrap().0;
    assert!(frequencies.contains("vbyte") && !frequencies.contains("delta"), "{frequencies}");
}

#[test]
fn sizes_say_what_is_wrong_with_them() {
    let place = Place::new();
    for (arguments, words) in [
        ("search i cat --dram 0", "it is too small: a size is 1 byte or more"),
        ("search i cat --dram 99999999999G", "it is too large: a size is 18446744073709551615 bytes or less"),
        ("search i cat --dram 1.5G", "`1.5G` is not a size"),
        ("index x --out i --memory 0K", "it is too small"),
        ("index x --out i --split 99999999999999999999999", "it is too large"),
    ] {
        place.fails(2, arguments, words);
    }
}

#[test]
fn one_is_no_plural() {
    let place = Place::new();
    place.file("docs.jsonl", "{\"id\":\"1\",\"text\":\"cat\"}\n");
    place.file("q", "q1\tcat\n");
    place.ok("index docs.jsonl --out i");
    for (arguments, words) in [
        ("search i cat", "1 document in "),
        ("explain i cat", "1 hit of 1"),
        ("explain i cat", "; 1 document, 1 matching"),
        ("info i", "1 document in 1 segment, "),
        ("info i", "1 term, 1 posting, 1 token in 1 document, "),
        ("check i", "1 document, 1 term, 1 posting"),
        ("batch i --queries q --run r", "1 query, 1 hit, "),
        ("batch i --queries q --run r --count", "1 query, 1 match, "),
        (
            "tierdex-bench generate --docs 1 --postings 1 --vocabulary 1 --out g",
            "1 document, 1 term, 1 posting, ",
        ),
    ] {
        let said = place.ok(arguments);
        assert!(said.contains(words), "{arguments}: {said}");
    }
}

#[test]
fn errors_name_the_folder_of_the_index() {
    let place = Place::new();
    place.file("docs.jsonl", DOCUMENTS);
    place.file("q", "q1\tcat\n");
    place.ok("index docs.jsonl --out i");
    let ids = std::fs::read_dir(place.path("i")).unwrap().map(|entry| entry.unwrap().path());
    let ids = ids.into_iter().find(|path| path.extension().is_some_and(|end| end == "ids")).unwrap();
    let words = format!("i/{}", ids.file_name().unwrap().to_str().unwrap());
    let mut bytes = std::fs::read(&ids).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&ids, bytes).unwrap();
    place.fails(1, "search i cat", &format!("tierdex: {words} is damaged at byte"));
    place.fails(1, "batch i --queries q --run r", &format!("{words} is damaged at byte"));
    assert!(String::from_utf8(place.run("check i").stdout).unwrap().starts_with(&words));
    std::fs::remove_file(&ids).unwrap();
    for command in ["search i cat", "explain i cat", "batch i --queries q --run r", "info i", "stats i"] {
        place.fails(1, command, &format!("cannot open {words}: "));
    }
}
