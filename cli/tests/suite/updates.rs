//! Updates and deletes of documents: `index --updatable`, `index --upsert`, `delete` and `get`.

use crate::workspace::{
    Workspace, assert_failed, assert_succeeded, send_signal, wait_for_output, wait_until,
};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Child, ChildStdin};

/// [`workspace::DOCUMENTS`] in an updatable index.
fn updatable() -> Workspace {
    Workspace::with_index("--updatable")
}

/// Lines of standard error and the exit code.
fn errors_of(workspace: &Workspace, arguments: &str) -> (Option<i32>, Vec<String>) {
    let output = workspace.run(arguments);
    let errors = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), errors.lines().map(str::to_string).collect())
}

/// A command with this standard input.
fn run_with_input(workspace: &Workspace, arguments: &str, text: &[u8]) -> std::process::Output {
    let (child, mut input) = workspace.spawn_with_input(arguments);
    input.write_all(text).unwrap();
    drop(input);
    wait_for_output(child)
}

/// Ids and scores of a query, and its number of matches.
fn answer(workspace: &Workspace, index: &str, query: &str) -> (Value, Vec<(Value, Value)>) {
    let output = workspace.run_with(["search", index, query, "--format", "json", "--count", "-k", "1000"]);
    let answer: Value = serde_json::from_str(&assert_succeeded(&output)).unwrap();
    let hits = answer["hits"].as_array().unwrap().iter().map(|hit| (hit["id"].clone(), hit["score"].clone()));
    (answer["total"].clone(), hits.collect())
}

fn assert_sound(workspace: &Workspace, index: &str) {
    assert!(workspace.ok(&format!("check {index}")).starts_with("sound"));
}

/// The lines of documents, each with a version that decides its words.
fn lines_of(documents: &[(usize, usize)]) -> String {
    let line = |(id, version): &(usize, usize)| {
        let words =
            (0..=id % 7 + version).map(|word| format!("w{} ", (id * 31 + word * word + version) % 40));
        let text = words.collect::<String>();
        json!({ "id": format!("d{id}"), "title": format!("version {version}"), "text": text }).to_string()
            + "\n"
    };
    documents.iter().map(line).collect()
}

#[test]
fn an_hourly_job_gives_the_results_of_a_new_index() {
    let workspace = Workspace::new();
    let runs: [Vec<(usize, usize)>; 3] = [
        (0..300).map(|id| (id, 0)).collect(),
        (200..400).map(|id| (id, 1)).chain([(7, 1), (7, 2)]).collect(),
        (0..400).filter(|id| id % 3 == 0).map(|id| (id, 3)).collect(),
    ];
    let mut model: Vec<(usize, usize)> = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let before = model.len();
        for document in run {
            model.retain(|(id, _)| *id != document.0);
            model.push(*document);
        }
        workspace.file("docs.jsonl", lines_of(run));
        let summary = workspace.run_for_json("index docs.jsonl --out i --upsert --summary json");
        assert_eq!(summary["index"]["documents"], model.len());
        assert_eq!(summary["replaced"], before + run.len() - model.len(), "run {number}");
        workspace.file("all.jsonl", lines_of(&model));
        workspace.ok("index all.jsonl --out fresh --replace");
        for query in ["w1 w2 w3", "+w5 -w6 w7", "w8", "w1*", "version", "2", "*:*"] {
            let found = answer(&workspace, "i", query);
            assert_eq!(found, answer(&workspace, "fresh", query), "run {number}: {query}");
        }
        assert!(!answer(&workspace, "i", "w8").1.is_empty(), "run {number}");
        assert_sound(&workspace, "i");
    }
    let deleted = workspace.run_for_json("delete i --query w8 --summary json")["deleted"].as_u64().unwrap();
    assert!(deleted > 0);
    assert_eq!(workspace.run_for_json("info i --format json")["documents"], model.len() as u64 - deleted);
    assert_eq!(answer(&workspace, "i", "w8").0, 0);
    assert_sound(&workspace, "i");
}

#[test]
fn the_last_of_equal_ids_is_left() {
    let workspace = Workspace::new();
    workspace.file(
        "docs.jsonl",
        "{\"id\":1,\"text\":\"old\"}\n{\"id\":2,\"text\":\"x\"}\n{\"id\":1,\"text\":\"new\"}\n",
    );
    let summary = workspace.ok("index docs.jsonl --out i --updatable");
    assert!(summary.starts_with("3 documents, ") && summary.contains("; i holds 2 documents"), "{summary}");
    assert!(summary.contains("; 1 document replaced"), "{summary}");
    assert_eq!(workspace.ok("get i 1"), "{\"id\":\"1\",\"text\":\"new\"}\n");
    assert!(workspace.ok("info i").contains("in 1 segment,"), "a first build is one segment");

    let summary = workspace.ok("index docs.jsonl --out i --append");
    assert!(
        summary.contains("i holds 2 documents") && summary.contains("; 3 documents replaced"),
        "{summary}"
    );
    let summary = workspace.ok("index docs.jsonl --out i --updatable --replace");
    assert!(
        summary.contains("i holds 2 documents") && summary.contains("; 1 document replaced"),
        "{summary}"
    );
    let summary = workspace.ok("index docs.jsonl --out i --replace");
    assert!(summary.contains("i holds 3 documents") && !summary.contains("replaced"), "{summary}");
    let info = workspace.run_for_json("info i --format json");
    assert_eq!((&info["updatable"], &info["documents"]), (&json!(false), &json!(3)));
}

#[test]
fn an_upsert_merges_by_levels_or_all() {
    let workspace = updatable();
    let segments = || workspace.run_for_json("info i --format json")["segments"].as_u64().unwrap();
    assert_eq!(segments(), 1);
    workspace.file("more.jsonl", "{\"id\":\"4\",\"text\":\"a fourth cat\"}\n");
    workspace.ok("index more.jsonl --out i --upsert");
    assert_eq!(segments(), 2);
    workspace.ok("index more.jsonl --out i --upsert --merge one");
    assert_eq!(segments(), 1);
    workspace.ok("index docs.jsonl more.jsonl --out i --updatable --replace");
    assert_eq!(segments(), 1);
    assert_sound(&workspace, "i");
}

#[test]
fn an_index_that_is_not_updatable_is_not_updated() {
    let workspace = Workspace::with_index("");
    let words = "the index in i is not updatable: its documents are not found by their ids; make it so with \
                 `tierdex merge i --updatable`";
    let before = workspace.names_in("i");
    for arguments in [
        "index docs.jsonl --out i --upsert",
        "index docs.jsonl --out i --append --updatable",
        "delete i 1",
        "delete i 1 --dry-run",
        "delete i --ids docs.jsonl",
    ] {
        workspace.fails_in_one_line(2, arguments, words);
    }
    assert_eq!(workspace.names_in("i"), before);
    for flag in ["--append", "--replace"] {
        workspace.fails_in_one_line(
            2,
            &format!("index docs.jsonl --out i --upsert {flag}"),
            "cannot be used with",
        );
    }
    workspace.fails(2, "index docs.jsonl --out i --updatable", "holds an index already (3 documents)");
    std::fs::create_dir(workspace.path("empty")).unwrap();
    workspace.ok("index docs.jsonl --out empty --upsert");
    assert!(workspace.ok("index docs.jsonl --out empty --upsert").contains("; 3 documents replaced"));
    workspace.file("nothing.jsonl", "");
    workspace.fails_in_one_line(1, "index nothing.jsonl --out empty --upsert", "nothing was committed");
    workspace.fails_in_one_line(1, "index nothing.jsonl --out new --upsert", "nothing was committed");
    assert!(!workspace.path("new").exists());
}

#[test]
fn documents_are_deleted_by_their_ids() {
    let workspace = updatable();
    assert_eq!(
        workspace.ok("delete i 2 9 2"),
        "1 document deleted; 1 id of no document; i holds 2 documents\n"
    );
    assert_eq!(workspace.search_index("i", "cat"), (1, vec!["1".to_string()]));
    assert_eq!(workspace.ok("delete i 2 9"), "nothing deleted; 2 ids of no document; i holds 2 documents\n");

    let output =
        run_with_input(&workspace, "delete i 9 --ids - --summary json", b"\xEF\xBB\xBF3\r\n\r\n\n3\n");
    let summary: Value = serde_json::from_str(&assert_succeeded(&output)).unwrap();
    assert_eq!((&summary["deleted"], &summary["unknown_ids"]), (&json!(1), &json!(1)));
    assert_eq!((&summary["index"]["documents"], &summary["dry_run"]), (&json!(1), &json!(false)));

    let output = run_with_input(&workspace, "delete i --ids -", b"");
    assert_eq!(assert_succeeded(&output), "nothing deleted; there are no ids; i holds 1 document\n");
    assert_eq!(workspace.ok("delete i 1"), "1 document deleted; i holds 0 documents\n");
    assert_sound(&workspace, "i");
    assert_eq!(workspace.ok("delete i 1"), "nothing deleted; 1 id of no document; i holds 0 documents\n");
    workspace.ok("index docs.jsonl --out i --upsert");
    assert_eq!(workspace.search_index("i", "cat").0, 2);
}

#[test]
fn invalid_ids_are_errors_with_their_line() {
    let workspace = updatable();
    let mut lines = b"1\n2\n".to_vec();
    lines.extend(b"x".repeat(4096));
    lines.extend(b"\r\n");
    workspace.file("long.txt", &lines);
    workspace.ok("delete i --ids long.txt --dry-run");
    lines.extend(b"x".repeat(4097));
    lines.extend(b"\n3\n");
    workspace.file("longer.txt", &lines);
    workspace.file("bytes.txt", b"1\n\n\xFF\n");
    for command in ["delete", "get"] {
        let fails =
            |file: &str, words| workspace.fails_in_one_line(1, &format!("{command} i --ids {file}"), words);
        fails("longer.txt", "longer.txt: line 4: the line is longer than 4096 bytes");
        fails("bytes.txt", "bytes.txt: line 3: the line is not valid UTF-8");
        fails("none.txt", "none.txt: No such file");
        let long = format!("{command} i {}", "x".repeat(4097));
        workspace.fails_in_one_line(2, &long, "an id has 4097 bytes; at most 4096 are kept");
        workspace.fails_in_one_line(2, &format!("{command} i"), "required arguments were not provided");
        workspace.fails(1, &format!("{command} none 1"), "no such directory");
    }
    std::fs::create_dir(workspace.path("empty")).unwrap();
    workspace.fails(2, "delete empty 1", "holds no tierdex index");
    workspace.fails(1, "get empty 1", "holds no tierdex index");
    assert_eq!(workspace.run_for_json("info i --format json")["generation"], 1);
}

#[test]
fn documents_that_match_a_query_are_deleted() {
    for flags in ["", "--updatable"] {
        let workspace = Workspace::with_index(flags);
        assert_eq!(
            workspace.ok("delete i --query dog --dry-run"),
            "2\n1 document would be deleted; i holds 3 documents\n"
        );
        let output =
            workspace.run_with(["delete", "i", "--query", "+the -bird", "--dry-run", "--summary", "json"]);
        let preview: Value = serde_json::from_str(&assert_succeeded(&output)).unwrap();
        assert_eq!((&preview["ids"], &preview["deleted"]), (&json!(["1", "2"]), &json!(2)));
        assert_eq!((&preview["dry_run"], &preview["unknown_ids"]), (&json!(true), &Value::Null));
        assert_eq!(
            workspace.run_for_json("info i --format json")["generation"],
            1,
            "a dry run commits nothing"
        );

        for (query, words) in [
            ("dog AND", "byte 8: `AND` has nothing on its right"),
            ("dog (", "byte 5: this `(` has no pair and is read as text; nothing was deleted"),
            ("", "the query is empty"),
        ] {
            assert_failed(&workspace.run_with(["delete", "i", "--query", query]), 2, words);
        }
        workspace.fails(2, "delete i 1 --query dog", "cannot be used with");
        let nothing = "nothing deleted; no document matches the query; i holds 3 documents\n";
        assert_eq!(workspace.ok("delete i --query zebra"), nothing);
        assert_eq!(workspace.run_for_json("info i --format json")["generation"], 1);

        assert_eq!(workspace.ok("delete i --query dog"), "1 document deleted; i holds 2 documents\n");
        assert_eq!(workspace.search_index("i", "the").1, ["1", "3"]);
        assert_eq!(workspace.ok("delete i --query *:*"), "2 documents deleted; i holds 0 documents\n");
        assert_sound(&workspace, "i");
    }
}

#[test]
fn a_dry_run_lists_ids_and_changes_nothing() {
    let workspace = updatable();
    let listed = "2\n1 document would be deleted; 1 id of no document; i holds 3 documents\n";
    assert_eq!(workspace.ok("delete i 9 2 --dry-run"), listed);
    let preview = workspace.run_for_json("delete i 9 8 --dry-run --summary json");
    assert_eq!((&preview["ids"], &preview["unknown_ids"]), (&json!([]), &json!(2)));
    let preview = workspace.run_for_json("delete i 3 1 --dry-run --summary json");
    assert_eq!((&preview["ids"], &preview["index"]["documents"]), (&json!(["1", "3"]), &json!(3)));
    assert_eq!(workspace.run_for_json("info i --format json")["generation"], 1);
}

#[test]
fn documents_are_printed_as_lines_that_can_be_indexed() {
    for flags in ["", "--updatable", "--store all --updatable"] {
        let workspace = Workspace::new();
        let (first, second) = (
            r#"{"id":"a","title":"A","text":["one","two"]}"#.to_string() + "\n",
            r#"{"id":"b","text":"three \" quotes"}"#.to_string() + "\n",
        );
        workspace.file("docs.jsonl", format!("{first}{second}"));
        workspace.ok(format!("index docs.jsonl --out i {flags}").trim_end());
        assert_eq!(workspace.ok("get i b a b"), format!("{second}{first}{second}"));
        let output = run_with_input(&workspace, "get i b --ids -", b"a\n");
        assert_eq!(assert_succeeded(&output), format!("{second}{first}"));

        let output = workspace.run("get i x a y");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), first);
        let missing = ["x", "y"].map(|id| format!("tierdex: no document has the id `{id}`"));
        assert_eq!(errors_of(&workspace, "get i x a y"), (Some(1), missing.to_vec()));

        workspace.file("printed.jsonl", workspace.ok("get i a b"));
        workspace.ok("index printed.jsonl --out again");
        assert_eq!(workspace.ok("get again a b"), format!("{first}{second}"));
    }
}

#[test]
fn get_prints_the_last_of_equal_ids_and_all_stored_members() {
    let workspace = Workspace::new();
    workspace.file(
        "docs.jsonl",
        "{\"id\":1,\"text\":\"old\"}\n{\"id\":1,\"text\":\"new\",\"year\":2024,\"tags\":[\"a\"]}\n",
    );
    workspace.ok("index docs.jsonl --out i --store all");
    let printed = workspace.run_for_json("get i 1");
    assert_eq!(printed["text"], "new");
    assert_eq!(printed["year"], 2024);
    workspace.ok("index docs.jsonl --out none --store none");
    assert_eq!(workspace.ok("get none 1"), "{\"id\":\"1\"}\n");
}

#[test]
fn info_has_the_deleted_documents() {
    for (flags, exact) in [("", true), (" --store none", false)] {
        let workspace = Workspace::new();
        workspace.file("docs.jsonl", lines_of(&(0..40).map(|id| (id, 0)).collect::<Vec<_>>()));
        workspace.ok(&format!("index docs.jsonl --out i --updatable{flags}"));
        let lines = workspace.ok("info i");
        assert!(
            lines.contains("\nupdatable: ") && lines.contains("\nkeys ") && !lines.contains("delete"),
            "{lines}"
        );
        workspace.ok("delete i d1 d2 d39");
        workspace.file("more.jsonl", lines_of(&[(50, 0)]));
        workspace.ok("index more.jsonl --out i --upsert");
        let lines = workspace.ok("info i");
        assert!(lines.contains("38 documents in 2 segments"), "{lines}");
        let deleted =
            "\n3 deleted documents, which the figures of fields and columns count: 3 of 40 in segment 1\n";
        assert!(lines.contains(deleted) && lines.contains("\ndeletes "), "{lines}");
        let approximate = "\nscores are approximate: 3 deleted documents without stored text, or analysed by another version\n";
        assert_eq!(lines.contains(approximate), !exact, "{lines}");
        let info = workspace.run_for_json("info i --format json");
        assert_eq!((&info["updatable"], &info["scores_exact"]), (&json!(true), &json!(exact)));
        assert_eq!((&info["documents"], &info["deleted_documents"]), (&json!(38), &json!(3)));
        let by_segment = json!([
            { "documents": 37, "deleted_documents": 3 },
            { "documents": 1, "deleted_documents": 0 },
        ]);
        assert_eq!(info["documents_by_segment"], by_segment);
        let names = workspace.names_in("i");
        let bytes: u64 = names
            .iter()
            .filter(|name| !name.starts_with("manifest"))
            .map(|name| std::fs::metadata(workspace.path("i").join(name)).unwrap().len())
            .sum();
        assert_eq!(info["bytes"], bytes);
        workspace.ok("merge i --to one");
        assert_eq!(workspace.run_for_json("info i --format json")["scores_exact"], true);
    }
}

/// A writer that holds the lock of index `i`, has read most of a long document, and waits for more input.
fn start_upsert(workspace: &Workspace) -> (Child, ChildStdin) {
    let (child, mut input) = workspace.spawn_with_input("index - --out i --upsert");
    // The lock is taken before the input is read, which is longer than the buffer of the pipe.
    let line = format!("{{\"id\":\"4\",\"text\":\"{}\"}}\n", "a fourth document ".repeat(500));
    input.write_all(line.repeat(200).as_bytes()).unwrap();
    (child, input)
}

#[test]
fn a_delete_waits_for_another_writer_if_asked() {
    let workspace = updatable();
    let (first, mut input) = start_upsert(&workspace);
    workspace.fails_in_one_line(75, "delete i 1", "try again later, or give --wait SECONDS");
    workspace.fails_in_one_line(75, "delete i 1 --wait 1", "another writer is at work");
    assert!(
        workspace.ok("delete i 1 --dry-run").starts_with("1\n1 document would"),
        "a dry run needs no lock"
    );

    let mut interrupted = workspace.spawn("delete i 2 --wait 200");
    let status = format!("/proc/{}/status", interrupted.id());
    // The thread that handles signals is the second one.
    wait_until(&mut interrupted, || {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        let threads = status.lines().find_map(|line| line.strip_prefix("Threads:"));
        threads.is_some_and(|threads| threads.trim() != "1")
    });
    send_signal(&interrupted, "-INT");
    assert_failed(&wait_for_output(interrupted), 130, "interrupted");

    let second = workspace.spawn("delete i 1 4 --wait 200");
    input.write_all(b"{\"id\":\"1\",\"text\":\"again\"}\n").unwrap();
    drop(input);
    assert!(assert_succeeded(&wait_for_output(first)).contains("; 200 documents replaced"));
    assert_eq!(assert_succeeded(&wait_for_output(second)), "2 documents deleted; i holds 2 documents\n");
    assert_eq!(workspace.search_index("i", "*:*").1, ["2", "3"]);
    assert_sound(&workspace, "i");
}

#[test]
fn an_imported_document_replaces_the_one_with_its_id() {
    let workspace = Workspace::with_index("--store none");
    workspace.ok("ciff export i docs.ciff");
    workspace.ok("ciff import docs.ciff --out u --upsert");
    workspace.ok("ciff import docs.ciff --out u --upsert");
    assert_eq!(workspace.run_for_json("info u --format json")["documents"], 3);
    assert_eq!(answer(&workspace, "u", "cat the"), answer(&workspace, "i", "cat the"));
    assert_sound(&workspace, "u");
    workspace.fails(2, "ciff import docs.ciff --out i --upsert", "the index in i is not updatable");
}

#[test]
fn an_index_is_made_updatable_and_copied() {
    let workspace = Workspace::with_index("");
    workspace.file("more.jsonl", "{\"id\":\"2\",\"text\":\"a later cat\"}\n");
    workspace.ok("index more.jsonl --out i --append");
    let printed = workspace.ok("merge i --updatable");
    assert!(printed.ends_with("; 1 document replaced by later ones with their ids\n"), "{printed}");
    assert_eq!(workspace.search_index("i", "cat").1, ["2", "1"]);
    assert!(workspace.ok("copy i backup").starts_with("backup: commit 3, 3 documents"));
    workspace.ok("delete i 1");
    assert_sound(&workspace, "backup");
    assert_eq!(workspace.search_index("backup", "cat").1, ["2", "1"]);
    workspace.fails_in_one_line(2, "copy i backup", "holds an index already");
    workspace.fails_in_one_line(1, "copy none there", "none");
    assert!(!workspace.path("there").exists());
    workspace.file("full/notes.txt", "mine");
    workspace.fails_in_one_line(2, "copy i full", "is not empty (it holds `notes.txt`)");
}
