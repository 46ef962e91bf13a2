//! Malformed, damaged and unreadable inputs.

use crate::workspace::{DOCUMENTS, Workspace, assert_failed, assert_succeeded};
use std::process::{Command, Output};
use std::{ffi::OsStr, io::Write, os::unix::ffi::OsStrExt};

/// The only line on standard error of a command that failed with exit code 1.
#[track_caller]
fn only_line(output: &Output) -> String {
    assert_failed(output, 1, "");
    let error = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

#[test]
fn a_run_without_a_document_fails_and_changes_nothing() {
    let workspace = Workspace::with_documents();
    workspace.file("empty.jsonl", "\n\n");
    workspace.file("empty.txt", "");
    workspace.file("broken.jsonl", "x\n".repeat(300));
    workspace.file("folder/.hidden", "x");
    workspace.ok("index docs.jsonl --out i");
    let before = workspace.ok("info i --format json");
    for input in ["empty.jsonl", "empty.txt", "broken.jsonl", "folder", "-"] {
        for mode in [" --replace", " --append", " --append --merge none"] {
            let error = only_line(&workspace.run(&format!("index {input} --out i{mode}")));
            assert!(error.contains("no document was indexed and nothing was committed: "), "{error}");
        }
        only_line(&workspace.run(&format!("index {input} --out new")));
        workspace.fails(1, "info new", "no such directory");
        assert_eq!(workspace.ok("info i --format json"), before);
    }
    assert!(workspace.ok("check i").starts_with("sound"));
    assert!(workspace.ok("search i cat").contains("2 documents"));
    assert!(only_line(&workspace.run("index - --out i --replace")).contains("the input is empty"));
    let error = only_line(&workspace.run("index broken.jsonl --out i --replace"));
    assert!(error.contains("300 malformed lines skipped; first: broken.jsonl:1: not valid JSON"), "{error}");
}

#[test]
fn objects_without_text_name_their_members() {
    let workspace = Workspace::new();
    workspace.file("docs.jsonl", "{\"id\":1,\"body\":\"x\"}\n".repeat(300));
    let error = only_line(&workspace.run("index docs.jsonl --out i"));
    let words = "no text: the object has `id`, `body`, and no `text`; name the text as in --text-field body";
    assert!(error.contains(words) && error.contains("300 malformed lines"), "{error}");
    assert!(workspace.ok("index docs.jsonl --out i --text-field body").contains("300 documents"));
}

#[test]
fn archives_and_other_formats_are_named_with_the_command_that_unpacks_them() {
    let workspace = Workspace::new();
    workspace.file("f/a.txt", "oak");
    for arguments in [["-cf", "f.tar", "f"], ["-czf", "f.tar.gz", "f"]] {
        let tar = Command::new("tar").args(arguments).current_dir(workspace.path("")).status();
        assert!(tar.unwrap().success());
    }
    workspace.file("f/b.jsonl.bz2", b"BZh91AY&SY-no-zero-byte");
    for (name, words) in [
        ("f.tar", "f.tar: a tar archive; unpack it with `tar xf f.tar` and index the folder"),
        ("f.tar.gz", "f.tar.gz: a tar archive compressed by gzip; unpack it with `tar xf f.tar.gz`"),
        ("f/b.jsonl.bz2", "a file compressed by bzip2; decompress it with `bunzip2 f/b.jsonl.bz2`"),
        ("f/b.jsonl.bz2 --format jsonl", "a file compressed by bzip2"),
    ] {
        let error = only_line(&workspace.run(&format!("index {name} --out i")));
        assert!(error.contains(words) && error.contains("nothing was committed"), "{error}");
    }
    let output = workspace.run("index f --out i");
    let said = assert_succeeded(&output);
    assert!(said.contains("1 document, ") && said.contains("; 1 binary file skipped"), "{said}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("f/b.jsonl.bz2: a file compressed by bzip2"));
}

#[test]
fn a_text_may_be_null_or_left_out_beside_a_title_alone() {
    let workspace = Workspace::new();
    let lines = [
        "{\"id\":1,\"text\":null,\"url\":\"x\"}",
        "{\"id\":2,\"title\":\"oak only\"}",
        "{\"id\":3,\"title\":\"oak\",\"url\":\"x\"}",
        "{\"id\":4}",
        "{\"id\":5,\"text\":\"oak\",\"url\":\"x\",\"date\":1}",
    ];
    workspace.file("docs.jsonl", lines.join("\n"));
    let said = workspace.ok("index docs.jsonl --out i");
    assert!(said.starts_with("3 documents, ") && said.contains("; 2 malformed lines skipped"), "{said}");
    assert!(said.contains("; not indexed: url (3), date (1)"), "{said}");
    assert_eq!(workspace.search_index("i", "oak").1, ["5", "2"]);
    workspace.file("titles.tsv", "id\ttitle\n1\toak only\n");
    assert!(workspace.ok("index titles.tsv --out t").contains("1 header line skipped"));
    assert_eq!(workspace.search_index("t", "oak").1, ["1"]);
    workspace.file("story.tsv", "id\tstory\n1\toak only\n");
    workspace.fails(1, "index story.tsv --out s", "and no text; name the columns, as in --columns id,text");
    workspace.ok("index story.tsv --out s --columns id,text");
    assert_eq!(workspace.search_index("s", "oak").1, ["1"]);
}

#[test]
fn cells_in_quotes_are_read_after_a_header_in_quotes() {
    let workspace = Workspace::new();
    workspace
        .file("a.tsv", "\"id\"\t\"url\"\t\"text\"\n\"1\"\t\"\"\t\"an \"\"old\"\" oak\"\n\"2\"\tx\t\"oak\n");
    let output = workspace.run("index a.tsv --out i");
    let said = assert_succeeded(&output);
    let words = "; 1 malformed line skipped; 1 header line skipped; not indexed: url (1)";
    assert!(said.contains(words), "{said}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("a.tsv:3: column 3 has a quote that does not end in this line"), "{error}");
    assert!(workspace.ok("search i oak").contains("an \"old\" **oak**"));
    workspace.file("b.tsv", "\"1\"\t\"oak\"\n");
    workspace.ok("index b.tsv --out j");
    assert_eq!(workspace.search_index("j", "oak").1, ["\"1\""]);
}

#[test]
fn the_first_problems_of_each_kind_are_printed() {
    let workspace = Workspace::new();
    let lines = "{\"text\":\"a\"}\nx\n{}\n".repeat(4);
    workspace.file("docs.jsonl", format!("{}{lines}", "x\n".repeat(100)));
    let output = workspace.run("index docs.jsonl --out i");
    let said = assert_succeeded(&output);
    assert!(said.starts_with("4 documents, ") && said.contains("; 108 malformed lines skipped"), "{said}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(error.matches("not valid JSON").count(), 3, "{error}");
    assert_eq!(error.matches("no text").count(), 3, "{error}");
    assert_eq!(error.matches("further problems of this kind are only counted").count(), 2, "{error}");

    workspace.file("one.jsonl", "{\"text\":\"a\"}\nx\n");
    let said = workspace.ok("index one.jsonl --out one");
    assert!(said.starts_with("1 document, ") && said.contains("; 1 malformed line skipped"), "{said}");
    assert!(said.contains("holds 1 document in"), "{said}");
}

#[test]
fn words_that_are_too_long_are_counted() {
    let workspace = Workspace::new();
    let long = "x".repeat(256);
    let text = |words: &str| format!("{{\"text\":\"{words}\"}}\n");
    workspace.file("docs.jsonl", [text(&format!("{long} a {long}")), text(&long), text("a")].concat());
    for threads in [1, 3] {
        let said = workspace.ok(&format!("index docs.jsonl --out i{threads} --threads {threads}"));
        assert!(said.contains("; 3 words longer than 255 bytes skipped in 2 documents"), "{said}");
    }
    workspace.file("one.jsonl", text(&"\u{10d0}".repeat(86)));
    let said = workspace.ok("index one.jsonl --out one");
    assert!(said.contains("; 1 word longer than 255 bytes skipped in 1 document\n"), "{said}");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_damaged_compressed_file_in_a_folder_is_reported_and_the_others_are_read() {
    let workspace = Workspace::new();
    let lines = "{\"text\":\"a\"}\n".repeat(10_000);
    let packed = gzip(lines.as_bytes());
    workspace.file("folder/b.jsonl.gz", &packed[..packed.len() - 1]);
    workspace.file("folder/c.jsonl", DOCUMENTS);
    let output = workspace.run("index folder --out i");
    let said = assert_succeeded(&output);
    assert!(said.starts_with("10,003 documents, ") && said.contains("; 1 file read only in part"), "{said}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("tierdex: folder/b.jsonl.gz: cannot decompress: "), "{error}");
    assert!(error.contains("truncated") && error.ends_with("; what is before it is indexed\n"), "{error}");
    let words = "folder/b.jsonl.gz: cannot decompress: ";
    workspace.fails(1, "index folder --out new --on-error fail", words);
    workspace.fails(1, "index folder/b.jsonl.gz --out new", words);
    workspace.fails(1, "info new", "no such directory");
}

#[test]
fn zeros_after_gzip_data_are_padding() {
    let workspace = Workspace::new();
    workspace.file("docs.jsonl.gz", [gzip(DOCUMENTS.as_bytes()), vec![0; 10_000]].concat());
    assert!(workspace.ok("index docs.jsonl.gz --out i").starts_with("3 documents, "));
}

#[test]
fn documents_with_blank_ids_get_file_and_line_as_id() {
    let workspace = Workspace::new();
    let lines = ["", " \\t", "x y"].map(|id| format!("{{\"id\":\"{id}\",\"text\":\"a\"}}\n"));
    workspace.file("a.jsonl", lines.concat());
    workspace.file("b.tsv", "\t\ta\n \t\ta\n7\t\ta\n");
    let said = workspace.ok("index a.jsonl b.tsv --out i");
    assert_eq!(
        workspace.search_index("i", "a").1,
        ["a.jsonl:1", "a.jsonl:2", "x y", "b.tsv:1", "b.tsv:2", "7"]
    );
    assert!(said.contains("; 1 id with white space, which is percent-encoded"), "{said}");
}

#[test]
fn ids_with_control_characters_are_malformed() {
    let workspace = Workspace::new();
    workspace.file("a.jsonl", format!("{{\"id\":\"x\\ny\",\"text\":\"a\"}}\n{DOCUMENTS}"));
    workspace.file("b.tsv", "x\u{2028}\ta\n7\ta\n");
    let output = workspace.run("index a.jsonl b.tsv --out i");
    let said = assert_succeeded(&output);
    assert!(said.starts_with("4 documents, ") && said.contains("; 2 malformed lines skipped"), "{said}");
    let error = String::from_utf8(output.stderr).unwrap();
    for (file, character) in [("a.jsonl", "U+000A"), ("b.tsv", "U+2028")] {
        let words = format!("{file}:1: the id has the control character {character} at byte 2; skipped");
        assert!(error.contains(&words), "{error}");
    }
    let words = "a.jsonl:1: the id has the control character";
    workspace.fails(1, "index a.jsonl --out j --on-error fail", words);
}

#[test]
fn file_names_with_invalid_utf8_give_different_ids() {
    let workspace = Workspace::new();
    std::fs::create_dir(workspace.path("f")).unwrap();
    for name in [&b"a\xFF.txt"[..], b"a\xFE.txt", b"b\n.txt"] {
        std::fs::write(workspace.path("f").join(OsStr::from_bytes(name)), "word").unwrap();
    }
    workspace.ok("index f --out i");
    assert_eq!(workspace.search_index("i", "word").1, ["f/a\\xfe.txt", "f/a\\xff.txt", "f/b\\x0a.txt"]);
}

#[test]
fn skipped_entries_of_folders_are_counted() {
    let workspace = Workspace::new();
    for file in ["a.txt", ".b", ".git/c", "latin1.txt", "sub/.d"] {
        workspace
            .file(&format!("f/{file}"), b"caf\xE9".get(..if file == "latin1.txt" { 4 } else { 3 }).unwrap());
    }
    std::os::unix::fs::symlink("sub", workspace.path("f/linked")).unwrap();
    std::os::unix::fs::symlink("nowhere", workspace.path("f/dangling")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(workspace.path("f/socket")).unwrap();
    let output = workspace.run("index f --out i");
    let said = assert_succeeded(&output);
    for words in [
        "2 documents, ",
        "; 1 file or folder could not be read",
        "; 1 document with invalid UTF-8, replaced by U+FFFD",
        "; skipped in folders: 3 hidden names, 1 link to a folder, 1 special file\n",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!said.contains("malformed"), "{said}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("f/latin1.txt: ") && error.contains("`iconv -f latin1 -t utf-8`"), "{error}");
    // With --on-error fail an unreadable file ends the run, and a document with replaced bytes does not.
    workspace.fails(1, "index f --out strict --on-error fail", "f/dangling: cannot read");
    workspace.ok("index f/latin1.txt --out strict --on-error fail");
}

#[test]
fn the_directory_of_the_index_is_not_an_input() {
    let workspace = Workspace::new();
    workspace.file("f/a.txt", "word");
    workspace.file("f/g/b.txt", "word");
    std::os::unix::fs::symlink("f", workspace.path("link")).unwrap();
    for (out, mode) in
        [("f/i", ""), ("f/i", " --replace"), ("link/i", " --replace"), ("./f/../f/i", " --append")]
    {
        workspace.ok(&format!("index f --out {out}{mode}"));
        let found = workspace.search_index("f/i", "word").1;
        assert!(found.iter().all(|id| id.ends_with(".txt")), "{found:?}");
        assert_eq!(workspace.search_index("f/i", "write").1.len(), 0);
        let (twice, total) = (mode == " --append", workspace.ok("info f/i"));
        assert!(total.contains(if twice { " 4 documents" } else { " 2 documents" }), "{total}");
    }
    workspace.fails(2, "index f/i --out f/i --append", "f/i is the directory of the index");
}

#[test]
fn other_json_layouts_are_rejected_with_the_command_that_converts_them() {
    let workspace = Workspace::new();
    let objects = ["{\"id\":1,\"text\":\"a\"}", "{\"id\":2,\"text\":\"a\"}", "{\"id\":3,\"text\":\"a\"}"];
    let spread = "{\n  \"id\": 1,\n  \"text\": \"a\"\n}\n";
    for (name, content, layout) in [
        ("lines.json", format!("[{}]\n", objects.join(",\n")), "a JSON array"),
        ("one.jsonl", format!("[{}]", objects.join(",")), "a JSON array"),
        ("array", format!("[\n  {},\n  {}\n]\n", objects[0], objects[1]), "a JSON array"),
        ("pretty.json", spread.repeat(3), "JSON objects over several lines"),
        ("pretty", format!("{spread}{}\n", objects[1]), "JSON objects over several lines"),
    ] {
        workspace.file(name, &content);
        let error = only_line(&workspace.run(&format!("index {name} --out i")));
        let filter = if layout == "a JSON array" { "'.[]'" } else { "." };
        let words =
            format!("{name}: this is {layout}, not JSON lines; convert it with `jq -c {filter} {name}`");
        assert!(error.contains(&words), "{error}");
        workspace.file("packed.json", gzip(content.as_bytes()));
        let error = only_line(&workspace.run("index packed.json --out i"));
        assert!(error.contains(&format!("with `jq -c {filter}`")), "{error}");
    }
    workspace.fails(1, "info i", "no such directory");

    // In a folder such a file is skipped, and the others are read.
    workspace.file("f/a.json", spread);
    workspace.file("f/b.jsonl", DOCUMENTS);
    workspace.file("f/c", spread);
    let output = workspace.run("index f --out i");
    let said = assert_succeeded(&output);
    assert!(said.starts_with("4 documents, ") && said.contains("; 1 JSON file skipped"), "{said}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("with `jq -c . f/a.json`; skipped"));
    assert!(workspace.ok("index array --out t --format text").starts_with("1 document, "));
}

#[test]
fn json_lines_are_detected_in_file_arguments() {
    let workspace = Workspace::new();
    for name in ["docs", "docs.jsonl.1", "docs.gz.1", "f/docs"] {
        workspace.file(name, if name.contains("gz") { gzip(DOCUMENTS.as_bytes()) } else { DOCUMENTS.into() });
        let said = workspace.ok(&format!("index {name} --out i --replace"));
        assert!(said.starts_with("3 documents, "), "{name}: {said}");
    }
    assert!(workspace.ok("index f --out i --replace").starts_with("1 document, "));
    assert!(workspace.ok("index docs --out i --replace --format text").starts_with("1 document, "));
    workspace.file("x.csv", "id,text\n1,a\n");
    let words = "x.csv: CSV is not supported; convert it to TSV or JSON lines";
    workspace.fails(2, "index x.csv --out i --replace", words);
    assert!(workspace.ok("index x.csv --out i --replace --format text").starts_with("1 document, "));
}

#[test]
fn headers_of_tsv_files_are_skipped() {
    let workspace = Workspace::new();
    workspace.file("a.tsv", "\u{feff}docid\tbody\n1\tword\n\n2\n");
    workspace.file("b.tsv", "text\turl\tid\nword\tx\t7\n");
    workspace.file("c.tsv", "1\tword\n");
    let output = workspace.run("index a.tsv b.tsv c.tsv --out i");
    let said = assert_succeeded(&output);
    assert!(said.starts_with("3 documents, ") && said.contains("; 2 header lines skipped"), "{said}");
    assert_eq!(workspace.search_index("i", "word").1, ["1", "7", "1"]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("a.tsv:4: 1 column, 2 expected"));
    workspace.ok("index b.tsv --out own --columns title,-,text");
    assert_eq!(workspace.search_index("own", "7").1, ["b.tsv:2"]);
    workspace.file("only.tsv", "id\ttext\n");
    let error = only_line(&workspace.run("index only.tsv --out new"));
    assert!(error.contains("1 header line skipped"), "{error}");
}

#[test]
fn all_problems_are_in_the_report_and_the_summary_as_json() {
    let workspace = Workspace::new();
    workspace.file("f/a.jsonl", format!("{DOCUMENTS}{}", "x\n".repeat(50)));
    workspace.file("f/b", b"\0");
    std::os::unix::fs::symlink("nowhere", workspace.path("f/c")).unwrap();
    let output = workspace.run("index f --out i --report r --summary json");
    let summary: serde_json::Value = serde_json::from_str(&assert_succeeded(&output)).unwrap();
    assert_eq!((&summary["documents"], &summary["problems"]["json"]), (&3.into(), &50.into()));
    assert_eq!((&summary["problems"]["binary"], &summary["index"]["documents"]), (&1.into(), &3.into()));
    let report = std::fs::read_to_string(workspace.path("r")).unwrap();
    let problems: Vec<serde_json::Value> =
        report.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let lines = (4..54).map(|line| ("f/a.jsonl", line.into(), "json"));
    let files = [("f/b", serde_json::Value::Null, "binary"), ("f/c", serde_json::Value::Null, "unreadable")];
    for (file, line, kind) in lines.chain(files) {
        let found = |problem: &&serde_json::Value| problem["file"] == file && problem["line"] == line;
        assert_eq!(problems.iter().filter(found).map(|problem| &problem["kind"]).collect::<Vec<_>>(), [kind]);
    }
    assert_eq!(problems.len(), 52);
    workspace.fails(2, "index f/a.jsonl --out j --report f/../f/a.jsonl", "--report names an input");
    workspace.fails(2, "index f --out i --append --report i/r", "--report names a file in the directory of");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("f/b: binary file; skipped") && error.contains("f/c: cannot read: "), "{error}");
}
