//! Inputs that are malformed, damaged or unreadable.

mod place;

use place::{DOCUMENTS, Place, failed, succeeded};
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::process::Output;

/// The only line on standard error, of a command that failed with 1.
#[track_caller]
fn only_line(output: &Output) -> String {
    failed(output, 1, "");
    let error = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

#[test]
fn a_run_without_a_document_fails_and_changes_nothing() {
    let place = Place::new();
    place.file("docs.jsonl", DOCUMENTS);
    place.file("empty.jsonl", "\n\n");
    place.file("empty.txt", "");
    place.file("broken.jsonl", "x\n".repeat(300));
    place.file("folder/.hidden", "x");
    place.ok("index docs.jsonl --out i");
    let before = place.ok("info i --format json");
    for input in ["empty.jsonl", "empty.txt", "broken.jsonl", "folder", "-"] {
        for mode in [" --replace", " --append", " --append --merge none"] {
            let error = only_line(&place.run(&format!("index {input} --out i{mode}")));
            assert!(error.contains("no document was indexed and nothing was committed: "), "{error}");
        }
        only_line(&place.run(&format!("index {input} --out new")));
        place.fails(1, "info new", "no such directory");
        assert_eq!(place.ok("info i --format json"), before);
    }
    assert!(place.ok("check i").starts_with("sound"));
    assert!(place.ok("search i cat").contains("2 documents"));
    assert!(only_line(&place.run("index - --out i --replace")).contains("the input is empty"));
    let error = only_line(&place.run("index broken.jsonl --out i --replace"));
    assert!(
        error.contains("300 malformed lines left out; the first is broken.jsonl:1: not valid JSON"),
        "{error}"
    );
}

#[test]
fn objects_without_text_name_their_members() {
    let place = Place::new();
    place.file("docs.jsonl", "{\"id\":1,\"body\":\"x\"}\n".repeat(300));
    let error = only_line(&place.run("index docs.jsonl --out i"));
    let words = "no text: `text` is missing or null; the object has `id`, `body`; choose with --text-field";
    assert!(error.contains(words) && error.contains("300 malformed lines"), "{error}");
    assert!(place.ok("index docs.jsonl --out i --text-field body").contains("300 documents"));
}

#[test]
fn the_first_problems_of_a_kind_are_shown() {
    let place = Place::new();
    let lines = "{\"text\":\"a\"}\nx\n{}\n".repeat(4);
    place.file("docs.jsonl", format!("{}{lines}", "x\n".repeat(100)));
    let output = place.run("index docs.jsonl --out i");
    let said = succeeded(&output);
    assert!(said.starts_with("4 documents, ") && said.contains("; 108 malformed lines left out"), "{said}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(error.matches("not valid JSON").count(), 3, "{error}");
    assert_eq!(error.matches("no text").count(), 3, "{error}");
    assert_eq!(error.matches("further problems of this kind are only counted").count(), 2, "{error}");

    place.file("one.jsonl", "{\"text\":\"a\"}\nx\n");
    let said = place.ok("index one.jsonl --out one");
    assert!(said.starts_with("1 document, ") && said.contains("; 1 malformed line left out"), "{said}");
    assert!(said.contains("holds 1 document in"), "{said}");
}

#[test]
fn words_that_are_too_long_are_counted() {
    let place = Place::new();
    let long = "x".repeat(256);
    let text = |words: &str| format!("{{\"text\":\"{words}\"}}\n");
    place.file("docs.jsonl", [text(&format!("{long} a {long}")), text(&long), text("a")].concat());
    for threads in [1, 3] {
        let said = place.ok(&format!("index docs.jsonl --out i{threads} --threads {threads}"));
        assert!(said.contains("; 3 words longer than 255 bytes left out of 2 documents"), "{said}");
    }
    place.file("one.jsonl", text(&"\u{6f22}".repeat(86)));
    let said = place.ok("index one.jsonl --out one");
    assert!(said.contains("; 1 word longer than 255 bytes left out of 1 document\n"), "{said}");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_damaged_archive_in_a_folder_is_reported_and_the_rest_is_read() {
    let place = Place::new();
    let lines = "{\"text\":\"a\"}\n".repeat(10_000);
    let packed = gzip(lines.as_bytes());
    place.file("folder/b.jsonl.gz", &packed[..packed.len() - 1]);
    place.file("folder/c.jsonl", DOCUMENTS);
    let output = place.run("index folder --out i");
    let said = succeeded(&output);
    assert!(said.starts_with("10,003 documents, ") && said.contains("; 1 file read in part"), "{said}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("tierdex: folder/b.jsonl.gz: cannot unpack: "), "{error}");
    assert!(error.contains("cut short") && error.ends_with("; the lines before are kept\n"), "{error}");
    let words = "folder/b.jsonl.gz: cannot unpack: ";
    place.fails(1, "index folder --out new --on-error fail", words);
    place.fails(1, "index folder/b.jsonl.gz --out new", words);
    place.fails(1, "info new", "no such directory");
}

#[test]
fn zeros_behind_gzip_are_padding() {
    let place = Place::new();
    place.file("docs.jsonl.gz", [gzip(DOCUMENTS.as_bytes()), vec![0; 10_000]].concat());
    assert!(place.ok("index docs.jsonl.gz --out i").starts_with("3 documents, "));
}

/// Total and ids of a query, in the order of documents.
fn ids(place: &Place, index: &str, query: &str) -> Vec<String> {
    let answer = place.ok(&format!("search {index} {query} --format json -k 100"));
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    let hits = answer["hits"].as_array().unwrap();
    hits.iter().map(|hit| hit["id"].as_str().unwrap().to_string()).collect()
}

#[test]
fn blank_ids_are_missing_ids() {
    let place = Place::new();
    place.file(
        "a.jsonl",
        "{\"id\":\"\",\"text\":\"a\"}\n{\"id\":\" \\t\",\"text\":\"a\"}\n{\"id\":\"x y\",\"text\":\"a\"}\n",
    );
    place.file("b.tsv", "\t\ta\n \t\ta\n7\t\ta\n");
    let said = place.ok("index a.jsonl b.tsv --out i");
    assert_eq!(ids(&place, "i", "a"), ["a.jsonl:1", "a.jsonl:2", "x y", "b.tsv:1", "b.tsv:2", "7"]);
    assert!(said.contains("; 1 id with white space or control characters"), "{said}");
}

#[test]
fn names_that_are_not_utf8_give_different_ids() {
    let place = Place::new();
    std::fs::create_dir(place.path("f")).unwrap();
    for name in [&b"a\xFF.txt"[..], b"a\xFE.txt", b"b\n.txt"] {
        std::fs::write(place.path("f").join(OsStr::from_bytes(name)), "word").unwrap();
    }
    place.ok("index f --out i");
    assert_eq!(ids(&place, "i", "word"), ["f/a\\xfe.txt", "f/a\\xff.txt", "f/b\\x0a.txt"]);
}

#[test]
fn what_is_passed_over_in_folders_is_counted() {
    let place = Place::new();
    for file in ["a.txt", ".b", ".git/c", "latin1.txt", "sub/.d"] {
        place.file(&format!("f/{file}"), b"caf\xE9".get(..if file == "latin1.txt" { 4 } else { 3 }).unwrap());
    }
    std::os::unix::fs::symlink("sub", place.path("f/linked")).unwrap();
    std::os::unix::fs::symlink("nowhere", place.path("f/dangling")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(place.path("f/socket")).unwrap();
    let output = place.run("index f --out i");
    let said = succeeded(&output);
    for words in [
        "2 documents, ",
        "; 1 file or folder could not be read",
        "; 1 document that is not UTF-8, with replaced bytes",
        "; passed over in folders: 3 hidden names, 1 link to a folder, 1 special file\n",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!said.contains("malformed"), "{said}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("f/latin1.txt: ") && error.contains("`iconv -f latin1 -t utf-8`"), "{error}");
    // Unreadable files end a strict run, documents that are kept do not.
    place.fails(1, "index f --out strict --on-error fail", "f/dangling: cannot read");
    place.ok("index f/latin1.txt --out strict --on-error fail");
}

#[test]
fn the_index_is_no_input_to_itself() {
    let place = Place::new();
    place.file("f/a.txt", "word");
    place.file("f/g/b.txt", "word");
    std::os::unix::fs::symlink("f", place.path("link")).unwrap();
    for (out, mode) in
        [("f/i", ""), ("f/i", " --replace"), ("link/i", " --replace"), ("./f/../f/i", " --append")]
    {
        place.ok(&format!("index f --out {out}{mode}"));
        let found = ids(&place, "f/i", "word");
        assert!(found.iter().all(|id| id.ends_with(".txt")), "{found:?}");
        assert_eq!(ids(&place, "f/i", "write").len(), 0);
        let (twice, total) = (mode == " --append", place.ok("info f/i"));
        assert!(total.contains(if twice { " 4 documents" } else { " 2 documents" }), "{total}");
    }
    place.fails(2, "index f/i --out f/i --append", "f/i is the folder of the index");
}

#[test]
fn json_that_is_not_in_lines_is_rejected_with_the_command_that_converts_it() {
    let place = Place::new();
    let objects = ["{\"id\":1,\"text\":\"a\"}", "{\"id\":2,\"text\":\"a\"}", "{\"id\":3,\"text\":\"a\"}"];
    let spread = "{\n  \"id\": 1,\n  \"text\": \"a\"\n}\n";
    for (name, content, advice) in [
        ("lines.json", format!("[{}]\n", objects.join(",\n")), "a JSON array"),
        ("one.jsonl", format!("[{}]", objects.join(",")), "a JSON array"),
        ("array", format!("[\n  {},\n  {}\n]\n", objects[0], objects[1]), "a JSON array"),
        ("pretty.json", spread.repeat(3), "JSON objects over several lines"),
        ("pretty", format!("{spread}{}\n", objects[1]), "JSON objects over several lines"),
    ] {
        place.file(name, &content);
        let error = only_line(&place.run(&format!("index {name} --out i")));
        let filter = if advice == "a JSON array" { "'.[]'" } else { "." };
        let words =
            format!("{name}: this is {advice}; write one object a line, as `jq -c {filter} {name}` does");
        assert!(error.contains(&words), "{error}");
        place.file("packed.json", gzip(content.as_bytes()));
        let error = only_line(&place.run("index packed.json --out i"));
        assert!(error.contains(&format!("as `jq -c {filter}` does")), "{error}");
    }
    place.fails(1, "info i", "no such directory");

    // In a folder such a file is left out, and the others are read.
    place.file("f/a.json", spread);
    place.file("f/b.jsonl", DOCUMENTS);
    place.file("f/c", spread);
    let output = place.run("index f --out i");
    let said = succeeded(&output);
    assert!(said.starts_with("4 documents, ") && said.contains("; 1 JSON file left out"), "{said}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("as `jq -c . f/a.json` does; left out"));
    assert!(place.ok("index array --out t --format text").starts_with("1 document, "));
}

#[test]
fn json_lines_are_recognised_in_named_files() {
    let place = Place::new();
    for name in ["docs", "docs.jsonl.1", "docs.gz.1", "f/docs"] {
        place.file(name, if name.contains("gz") { gzip(DOCUMENTS.as_bytes()) } else { DOCUMENTS.into() });
        let said = place.ok(&format!("index {name} --out i --replace"));
        assert!(said.starts_with("3 documents, "), "{name}: {said}");
    }
    assert!(place.ok("index f --out i --replace").starts_with("1 document, "));
    assert!(place.ok("index docs --out i --replace --format text").starts_with("1 document, "));
    place.file("x.csv", "id,text\n1,a\n");
    place.fails(
        2,
        "index x.csv --out i --replace",
        "x.csv: CSV is not read; convert it to TSV or JSON lines",
    );
    assert!(place.ok("index x.csv --out i --replace --format text").starts_with("1 document, "));
}

#[test]
fn headers_of_tsv_files_are_no_documents() {
    let place = Place::new();
    place.file("a.tsv", "\u{feff}docid\tbody\n1\tword\n\n2\n");
    place.file("b.tsv", "text\turl\tid\nword\tx\t7\n");
    place.file("c.tsv", "1\tword\n");
    let output = place.run("index a.tsv b.tsv c.tsv --out i");
    let said = succeeded(&output);
    assert!(said.starts_with("3 documents, ") && said.contains("; 2 header lines skipped"), "{said}");
    assert_eq!(ids(&place, "i", "word"), ["1", "7", "1"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("a.tsv:4: 1 column, 2 expected"));
    place.ok("index b.tsv --out own --columns title,-,text");
    assert_eq!(ids(&place, "own", "7"), ["b.tsv:2"]);
    place.file("only.tsv", "id\ttext\n");
    let error = only_line(&place.run("index only.tsv --out new"));
    assert!(error.contains("1 header line skipped"), "{error}");
}
