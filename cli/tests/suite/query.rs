//! Queries on the command line.

use crate::workspace::{Workspace, assert_failed, assert_succeeded};

#[test]
fn several_arguments_are_joined_to_one_query() {
    let workspace = Workspace::with_index("--positions");
    let expected: serde_json::Value = {
        let output = workspace.run_with(["search", "i", "+cat -dog", "--format", "json"]);
        serde_json::from_str(&assert_succeeded(&output)).unwrap()
    };
    for arguments in [
        "search i +cat NOT dog --format json",
        "search --format json i +cat NOT dog",
        "search i --format json -k 5 +cat NOT dog",
        "search i --format json -k5 -- -dog +cat",
    ] {
        assert_eq!(workspace.run_for_json(arguments)["hits"], expected["hits"], "{arguments}");
    }
    assert!(workspace.ok("explain i the cat").contains("text:the"));
    for arguments in [&["search", "i", "-tax lincoln"], &["explain", "i", "-dog"]] {
        let output = workspace.run_with(arguments.iter().copied());
        assert_failed(&output, 2, "put -- before a query that begins with -");
    }
}

#[test]
fn a_name_that_is_no_field_is_text() {
    let workspace = Workspace::with_index("--positions");
    let note = "byte 1: `title:` is read as text: it is not a field of this index, which has `text` (title and text)";
    for command in ["search", "explain"] {
        let output = workspace.run_with([command, "i", "title:first"]);
        assert!(String::from_utf8_lossy(&output.stderr).contains(note), "{output:?}");
        assert!(!assert_succeeded(&output).is_empty());
    }
    workspace.file("q", "q1\ttitle:first\n");
    let output = workspace.run("batch i --queries q --run r --syntax query");
    assert!(String::from_utf8_lossy(&output.stderr).contains(&format!("q, query q1: query, {note}")));
    let total = |arguments: &str| {
        let output = workspace.run(&format!("{arguments} --format json"));
        let answer: serde_json::Value = serde_json::from_str(&assert_succeeded(&output)).unwrap();
        (answer["total"].as_u64().unwrap(), String::from_utf8(output.stderr).unwrap().lines().count())
    };
    assert_eq!(total("search i title:first --lenient"), (1, 1));
    assert_eq!(total("search i title:first"), (1, 1));
    for (query, found) in
        [("text:first", 1), ("title\\:first", 1), ("http://first", 1), ("12:30", 0), ("title: first", 1)]
    {
        assert_eq!(total(&format!("search i {query}")), (found, 0), "{query}");
    }
}

#[test]
fn empty_queries_and_too_large_numbers_are_errors() {
    let workspace = Workspace::with_index("--positions");
    for command in ["search", "explain"] {
        for query in ["", " ", "\t\n"] {
            assert_failed(&workspace.run_with([command, "i", query]), 2, "the query is empty");
            assert_failed(&workspace.run_with([command, "i", query, "--lenient"]), 2, "the query is empty");
        }
    }
    let query = "\"the cat\"~99999999999";
    let words = "byte 10: 99999999999 behind `~` is too large; at most 4294967295 can be asked for";
    assert_failed(&workspace.run_with(["search", "i", query]), 2, words);
}

#[test]
fn suggest_completes_and_corrects() {
    let workspace = Workspace::new();
    workspace.file("d.jsonl", "{\"text\":\"solid state disk\"}\n{\"text\":\"disks and a disk\"}\n");
    workspace.ok("index d.jsonl --out i");
    let output = workspace.ok("suggest i solit dis");
    assert_eq!(output, "disk  (2 documents)\ndisks  (1 document)\ndid you mean: solid dis\n");
    let json = workspace.ok("suggest i --format json sta");
    assert_eq!(json, "{\"completions\":[{\"word\":\"state\",\"documents\":1}],\"correction\":null}\n");
    let output = workspace.run("suggest i x --field none");
    assert_eq!(output.status.code(), Some(2));
}
