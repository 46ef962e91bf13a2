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
        ("bench frob", "see `tierdex bench --help`"),
        ("search i cat -k many", "see `tierdex --help`"),
    ] {
        place.fails(2, arguments, words);
        let output = place.run(arguments);
        assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{arguments}");
    }
}
