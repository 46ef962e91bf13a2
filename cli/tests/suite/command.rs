//! The command `tierdex`: output, exit codes and error handling.

use crate::workspace::{
    DOCUMENTS, Workspace, assert_failed, assert_succeeded, send_signal, spawn_and_finish, wait_for_output,
};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Checks that `search` rejects a query with these words.
fn assert_query_rejected(workspace: &Workspace, query: &str, words: &str) {
    assert_failed(&workspace.run_with(["search", "i", query]), 2, words);
}

#[test]
fn hits_have_titles_and_highlighted_snippets() {
    let workspace = Workspace::with_documents();
    let summary = workspace.ok("index docs.jsonl --out i --positions");
    assert!(summary.contains("3 documents") && summary.lines().count() == 1, "{summary}");

    let answer = workspace.run_for_json("search i cat --format json");
    assert_eq!(answer["total"], 2);
    let first = &answer["hits"][0];
    assert_eq!((&first["rank"], &first["id"], &first["title"]), (&1.into(), &"2".into(), &"".into()));
    assert_eq!(first["snippet"], "the dog and the **cat**");
    assert!(first["score"].as_f64().unwrap() > 0.0 && answer["took_us"].is_u64());

    let table = workspace.ok("search i cat");
    assert!(
        table.contains("First") && table.contains("**cat** sat") && table.contains("2 documents"),
        "{table}"
    );

    assert_eq!(workspace.search_index("i", "\"the cat\"").1, ["2", "1"]);
    assert_eq!(workspace.search_index("i", "+the -cat").1, ["3"]);
    assert_eq!(workspace.search_index("i", "(dog OR bird) AND the").0, 2);
    assert_eq!(workspace.search_index("i", "NOT dog").0, 2);
    assert_eq!(workspace.search_index("i", "zebra"), (0, vec![]));
    assert!(workspace.ok("check i").starts_with("sound"));
    assert!(workspace.ok("info i").contains("per posting  auto"));
    let info = workspace.run_for_json("info i --format json");
    assert_eq!((info["documents"].as_u64(), info["fields"][0]["tokens"].as_u64()), (Some(3), Some(18)));
    assert_eq!(info["fields"][0]["documents"], 3);
}

#[test]
fn every_kind_of_query_is_answered() {
    let workspace = Workspace::with_index("--positions");
    for (query, ids) in [
        ("cat^0.1 bird", vec!["3", "2", "1"]),
        ("\"cat on\"", vec![]),
        ("\"cat on\"~1", vec!["1"]),
        ("\"mat cat\"~4", vec![]),
        ("\"mat cat\"~5", vec!["1"]),
        ("ca*", vec!["1", "2"]),
        ("brid~1 dgo~", vec!["3", "2"]),
        ("(cat mat bird hand)~2", vec!["3", "1"]),
        ("#cat", vec!["1", "2"]),
        ("dog #cat", vec!["2", "1"]),
        ("*:* -cat", vec!["3"]),
        ("text:(+cat -dog)", vec!["1"]),
    ] {
        assert_eq!(workspace.search_index("i", query).1, ids, "{query}");
    }
    let table = workspace.ok("search i brid~1");
    assert!(table.contains("a **bird** in the hand"), "{table}");
    assert_query_rejected(&workspace, "ca* AND", "byte 8: `AND` has nothing on its right");
}

#[test]
fn lenient_queries_are_answered_with_warnings() {
    let workspace = Workspace::with_index("");
    let output = workspace.run_with(["search", "i", "(bird^x\u{1b} AND \"in the\"", "--lenient"]);
    assert!(assert_succeeded(&output).contains("1 document"));
    let warnings = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = warnings.lines().collect();
    assert_eq!(lines.len(), 2, "{warnings}");
    assert!(lines[0].starts_with("tierdex: query, byte 1: this `(` has no pair"), "{warnings}");
    assert!(lines[1].contains("need positions"), "{warnings}");

    workspace.file("q.tsv", "q1\tcat AND\nq2\t) bird\n");
    workspace.fails(1, "batch i --queries q.tsv --run out.trec --syntax query", "query q1: query, byte 8");
    let output = workspace.run("batch i --queries q.tsv --run out.trec --syntax query --lenient --count");
    assert!(assert_succeeded(&output).contains("2 queries, 3 matches"));
    let warnings = String::from_utf8_lossy(&output.stderr);
    assert!(
        warnings.contains("q.tsv, query q1: query, byte 8") && warnings.lines().count() == 2,
        "{warnings}"
    );
}

#[test]
fn wrong_usage_exits_with_2() {
    let workspace = Workspace::with_index("");
    workspace.fails(2, "index docs.jsonl --out i", "holds an index already");
    workspace.fails(2, "index none.jsonl --out j", "none.jsonl");
    assert!(!workspace.path("j").exists(), "a directory was created");
    workspace.fails(2, "index docs.jsonl --out j --memory 1M", "memory");
    workspace.fails(2, "index docs.jsonl --out j --threads 0", "threads");
    assert!(!workspace.path("j").exists(), "a directory was created");
    workspace.fails(2, "index docs.jsonl --out j --freq-codec vbyte-delta", "[possible values: ");
    workspace.fails(2, "index docs.jsonl --out j --stop-words none.txt", "none.txt");
    workspace.fails(2, "search i cat --k1 -1", "k1");
    workspace.fails(2, "search i cat --b 2", "b is 2");
    for (query, words) in [
        ("cat OR", "byte 7: `OR` has nothing on its right"),
        ("\"the cat\"", "--positions"),
        ("x text:-cat", "byte 3: write `-text:` for `text:-`"),
        ("/c.*t/", "regular expressions are not supported"),
        ("cat^x dog^1e999", "byte 10: a boost lies between 0 and"),
        ("cat~3", "0 to 2 edits"),
        ("text:*", "byte 1: `*` needs"),
    ] {
        assert_query_rejected(&workspace, query, words);
    }
    let output = workspace.run_with(["search", "i", "(cat author:x"]);
    assert!(assert_succeeded(&output).contains("cat"));
    let notes = String::from_utf8_lossy(&output.stderr);
    assert!(notes.contains("byte 1: this `(` has no pair and is read as text"), "{notes}");
    assert!(notes.contains("byte 6: `author:` is read as text: it is not a field of this index"), "{notes}");
    for wrong in ["index docs.jsonl", "search i", "frob", "index docs.jsonl --out j --codec zip"] {
        assert_eq!(workspace.run(wrong).status.code(), Some(2), "{wrong}");
    }
    workspace.file("q.tsv", "1\tcat\n");
    workspace.fails(2, "batch i --queries q.tsv --run out.trec --lenient --syntax terms", "--syntax query");
    workspace.file("notes/mine.txt", "hands off");
    workspace.fails(2, "demo notes --out i", "holds an index already");
    workspace.fails(2, "index docs.jsonl --out notes", "mine.txt");
    assert_eq!(std::fs::read_to_string(workspace.path("notes/mine.txt")).unwrap(), "hands off");
}

#[test]
fn failures_exit_with_1_and_name_the_file() {
    let workspace = Workspace::with_documents();
    workspace.file("flat", "not a directory");
    workspace.fails(1, "index docs.jsonl --out flat", "flat");
    workspace.fails(1, "search flat cat", "flat");
    workspace.fails(1, "search nowhere cat", "no such directory");
    std::fs::create_dir(workspace.path("empty")).unwrap();
    for command in ["search empty cat", "info empty", "check empty"] {
        workspace.fails(1, command, "holds no tierdex index");
    }
}

#[test]
fn damaged_and_truncated_files_are_reported() {
    let workspace = Workspace::with_index("");
    let files: Vec<_> =
        std::fs::read_dir(workspace.path("i")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let mut tried = 0;
    for path in &files {
        let name = path.file_name().unwrap().to_str().unwrap();
        let sound = std::fs::read(path).unwrap();
        let mut damaged = sound.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        for bytes in [&damaged[..], &sound[..sound.len() - 1], &sound[..0]] {
            std::fs::write(path, bytes).unwrap();
            let output = workspace.run("check i");
            assert_failed(&output, 1, "problem");
            assert!(String::from_utf8_lossy(&output.stdout).contains(name), "{name}");
            tried += 1;
        }
        std::fs::remove_file(path).unwrap();
        assert_eq!(workspace.run("check i").status.code(), Some(1), "{name} removed");
        std::fs::write(path, &sound).unwrap();
    }
    assert!(tried >= 21, "only {tried} changes were tried");
    assert!(workspace.ok("check i").starts_with("sound"));
}

#[test]
fn malformed_lines_are_counted_and_reported_with_file_and_line() {
    let workspace = Workspace::new();
    let mut bytes = DOCUMENTS.as_bytes().to_vec();
    bytes.extend_from_slice(
        b"not json\n{\"id\":\"x\"}\n\xff\xfe\n{\"id\":\"4\",\"text\":\"nul \\u0000 and \\n line\"}\n",
    );
    workspace.file("docs.jsonl", bytes);
    let output = workspace.run("index docs.jsonl --out i");
    let summary = assert_succeeded(&output);
    assert!(summary.contains("4 documents") && summary.contains("3 malformed"), "{summary}");
    let errors = String::from_utf8_lossy(&output.stderr);
    for line in 4..=6 {
        assert!(errors.contains(&format!("docs.jsonl:{line}:")), "{errors}");
    }
    workspace.fails(1, "index docs.jsonl --out i --replace --on-error fail", "docs.jsonl:4:");
    assert_eq!(workspace.search_index("i", "nul"), (1, vec!["4".to_string()]));
    assert!(workspace.ok("check i").starts_with("sound"));
}

#[test]
fn empty_text_folder_tsv_and_split_inputs_are_indexed() {
    let workspace = Workspace::new();
    workspace.file("empty.jsonl", "{\"text\":\"\"}");
    assert!(workspace.ok("index empty.jsonl --out empty").contains("1 document,"));
    assert_eq!(workspace.search_index("empty", "cat"), (0, vec![]));
    assert!(workspace.ok("check empty").starts_with("sound"));
    assert!(workspace.ok("info empty").contains("1 document"));

    workspace.file("one.txt", "Ünïcode text");
    workspace.ok("index one.txt --out one");
    assert_eq!(workspace.search_index("one", "ÜNÏCODE").0, 1);

    workspace.file("tree/b/two.txt", "second file");
    workspace.file("tree/a.txt", "first file");
    workspace.file("tree/blob.bin", b"a\0b");
    let said = workspace.ok("index tree --out t");
    assert!(said.contains("2 documents") && said.contains("1 binary"), "{said}");
    assert_eq!(workspace.search_index("t", "file").1, ["tree/a.txt", "tree/b/two.txt"]);

    workspace.file("rows.tsv", "1\tred apple\n2\tgreen pear\n");
    workspace.ok("index rows.tsv --out rows");
    assert_eq!(workspace.search_index("rows", "pear").1, ["2"]);

    let long = "word ".repeat(1000);
    workspace.file("long.txt", &long);
    let said = workspace.ok("index long.txt --out split --split 1K");
    assert!(said.contains("5 documents"), "{said}");
    assert_eq!(workspace.search_index("split", "word").1[0], "long.txt#0");
}

#[test]
fn compressed_standard_input_is_read() {
    let workspace = Workspace::new();
    let (child, mut input) = workspace.spawn_with_input("index - --out i");
    input.write_all(&zstd::encode_all(DOCUMENTS.as_bytes(), 3).unwrap()).unwrap();
    drop(input);
    assert_succeeded(&wait_for_output(child));
    assert_eq!(workspace.search_index("i", "cat").0, 2);
}

#[test]
fn append_and_replace_commit_all_documents() {
    let workspace = Workspace::new();
    workspace.file("a.jsonl", DOCUMENTS);
    workspace.file("b.jsonl", "{\"id\":\"9\",\"text\":\"the cat again\"}\n");
    workspace.ok("index a.jsonl --out i --positions --fold-accents");
    let said = workspace.ok("index b.jsonl --out i --append");
    assert!(said.contains("holds 4 documents"), "{said}");
    assert_eq!(workspace.search_index("i", "cat").0, 3);
    workspace.fails(2, "index b.jsonl --out i --append --stem english", "other settings");
    assert!(workspace.ok("info i").contains("in 2 segments"));
    workspace.ok("index b.jsonl --out i --append --merge one");
    assert!(workspace.ok("info i").contains("in 1 segment,"));
    assert_eq!(workspace.search_index("i", "again").0, 2);
    workspace.ok("index b.jsonl --out i --replace --codec raw");
    assert_eq!(workspace.search_index("i", "cat").0, 1);
    assert!(workspace.ok("check i").starts_with("sound"));
}

#[test]
fn the_number_of_threads_does_not_change_the_index() {
    let workspace = Workspace::new();
    let mut docs = String::new();
    for i in 0..60_000 {
        let words = (0..20).map(|j| format!("w{} ", (i * 7919 + j * 104_729) % (1 + j * 500)));
        docs += &format!("{{\"id\":\"{i}\",\"text\":\"{}\"}}\n", words.collect::<String>());
    }
    workspace.file("docs.jsonl", docs);
    for threads in ["1", "2", "5"] {
        for merge in ["one", "none"] {
            workspace.ok(&format!(
                "index docs.jsonl --out {merge}{threads} --threads {threads} --memory 16M --merge {merge}"
            ));
        }
    }
    let files = |dir: String| {
        let entries = std::fs::read_dir(workspace.path(&dir)).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<(PathBuf, Vec<u8>)> =
            entries.map(|path| (path.file_name().unwrap().into(), std::fs::read(path).unwrap())).collect();
        files.sort();
        files
    };
    for merge in ["one", "none"] {
        let expected = files(format!("{merge}1"));
        for threads in ["2", "5"] {
            assert!(files(format!("{merge}{threads}")) == expected, "{threads} threads, merge {merge}");
        }
    }
}

#[test]
fn a_second_writer_fails_and_an_interrupt_leaves_the_last_commit() {
    let workspace = Workspace::with_index("");
    let (child, mut input) = workspace.spawn_with_input("index - --out i --replace");
    // The writer takes the lock before it reads. More than the pipe buffer is written, so it has begun to
    // read.
    let line = format!("{{\"id\":\"n\",\"text\":\"{}\"}}\n", "new words ".repeat(1000));
    for _ in 0..2000 {
        input.write_all(line.as_bytes()).unwrap();
    }
    workspace.fails(75, "index docs.jsonl --out i --append", "another writer is at work on ");
    assert_eq!(workspace.search_index("i", "cat").0, 2);

    send_signal(&child, "-INT");
    // The pipe stays open and idle; the writer must not wait for more input.
    let output = wait_for_output(child);
    drop(input);
    assert_failed(&output, 130, "last commit is intact");
    assert_eq!(workspace.search_index("i", "cat").0, 2);
    let report = workspace.ok("check i");
    assert!(report.starts_with("sound"), "files were left: {report}");
}

#[test]
fn a_full_disk_is_reported_and_loses_nothing() {
    let workspace = Workspace::with_index("");
    let line = |i| format!("{{\"id\":\"document number {i}\",\"text\":\"many different words here\"}}\n");
    workspace.file("more.jsonl", (0..20_000).map(line).collect::<String>());
    // A limit on file sizes simulates a full device. SIGXFSZ is ignored, so writes fail.
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$0\" index more.jsonl --out i --append";
    let output = Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_tierdex")])
        .current_dir(workspace.path(""))
        .output()
        .unwrap();
    assert_failed(&output, 1, "cannot write");
    assert_eq!(workspace.search_index("i", "cat").0, 2);
    assert!(workspace.ok("check i").starts_with("sound"));
    workspace.ok("index more.jsonl --out i --append");
    assert_eq!(workspace.search_index("i", "different").0, 20_000);
}

#[test]
fn an_error_ends_the_command_while_the_input_is_idle() {
    let workspace = Workspace::new();
    let (child, mut input) = workspace.spawn_with_input("index - --out i --on-error fail");
    let line = format!("{{\"id\":\"n\",\"text\":\"{}\"}}\n", "words ".repeat(1000));
    let bytes = format!("not json\n{}", line.repeat(2000));
    // The command may exit before it has read all of it.
    let _ = input.write_all(bytes.as_bytes());
    let output = wait_for_output(child);
    drop(input);
    assert_failed(&output, 1, "stdin:1:");
}

#[test]
fn queries_above_the_limits_are_rejected() {
    let workspace = Workspace::new();
    workspace.file("docs.jsonl", format!("{{\"id\":\"1\",\"text\":\"{}\"}}\n", "the ".repeat(100_000)));
    workspace.ok("index docs.jsonl --out i --positions --codec raw");
    let words = |count: usize| (0..count).map(|i| format!("w{i} ")).collect::<String>();
    assert_query_rejected(&workspace, &words(1025), "clauses");
    assert_query_rejected(&workspace, &words(1025).replace(' ', "-"), "at most 1024");
    assert_query_rejected(&workspace, &format!("\"{}\"", "the ".repeat(65)), "at most 64");
    assert_failed(&workspace.run_with(["explain", "i", &format!("{}~1", "w".repeat(65))]), 2, "at most 64");
    assert_query_rejected(&workspace, &"w* ".repeat(65), "more than 64 prefixes");
    assert_query_rejected(&workspace, &"w".repeat(65_537), "longer than 65536 bytes");
    assert_eq!(workspace.search_index("i", &format!("\"{}\"", "the ".repeat(64))).0, 1);
    assert_eq!(workspace.search_index("i", &words(1000)).0, 0);
}

#[test]
fn demo_indexes_a_folder_and_answers_queries() {
    let workspace = Workspace::new();
    for i in 0..400 {
        let rare = if i % 50 == 0 { "gryphon lanterns" } else { "" };
        let common = ["harbour", "meadow", "quarry", "orchard"][i % 4];
        let few = if i % 70 < 2 { "telescope bicycle windmill" } else { "" };
        workspace.file(&format!("text/{i:03}.txt"), format!("the {common} and {rare} {few} number {i}"));
    }
    let said = workspace.ok("demo text --out d");
    assert!(
        said.contains("MiB/s") && said.contains("tierdex search") && said.contains("Next steps:"),
        "{said}"
    );
    assert!(said.matches(" documents in ").count() + said.matches(" document in ").count() >= 3, "{said}");

    // Without --out it never uses an existing directory or link.
    workspace.file("mine/docs.jsonl", DOCUMENTS);
    workspace.ok("index mine/docs.jsonl --out tmp/theirs");
    std::os::unix::fs::symlink("theirs", workspace.path("tmp/tierdex-demo")).unwrap();
    for indexes in [1, 2] {
        let said =
            assert_succeeded(&workspace.command(["demo", "text"]).env("TMPDIR", "tmp").output().unwrap());
        assert!(said.contains("into tmp/tierdex-demo-"), "{said}");
        assert_eq!(std::fs::read_dir(workspace.path("tmp")).unwrap().count(), 2 + indexes);
    }
    assert!(workspace.ok("info tmp/theirs").contains("3 documents"));
    let output = workspace.command(["demo", "text"]).env("TMPDIR", "nowhere").output().unwrap();
    assert_failed(&output, 1, "name one with --out");
}

#[test]
fn explain_prints_strategy_lists_and_reads() {
    let workspace = Workspace::with_index("--positions");
    let said = workspace.ok("explain i cat");
    for words in ["impact order", "text:cat", "by bound", "by range", "2 hits of 2"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!said.contains(".postings") && workspace.ok("explain i cat --io -k 1").contains("reads"));
    for (query, node) in [
        ("+the +cat", "conjunction"),
        ("dog bird", "MaxScore over windows"),
        ("\"the cat\"", "phrase text:\"the cat\""),
    ] {
        let said = assert_succeeded(&workspace.run_with(["explain", "i", query]));
        assert!(said.contains(node), "{query}: {said}");
    }
    let value = workspace.run_for_json("explain i cat --format json --io --count");
    assert_eq!((&value["total"], &value["segments"][0]["lists"][0]["decoded"]), (&2.into(), &1.into()));
    assert!(value["segments"][0]["used"].as_array().is_some_and(|used| !used.is_empty()), "{value}");
    workspace.fails(2, "explain i cat~3", "0 to 2 edits");
    workspace.fails(2, "explain i cat --b 2", "b is 2");
    workspace.fails(1, "explain nowhere cat", "no such directory");
    assert_eq!(workspace.run("explain i").status.code(), Some(2));
}

#[test]
fn costs_of_reads_are_given_or_kept() {
    use std::os::unix::fs::MetadataExt;
    let workspace = Workspace::new();
    let line = |number: usize| format!("{{\"id\":\"{number}\",\"text\":\"cat w{}\"}}\n", number % 7);
    workspace.file("docs.jsonl", (0..3000).map(line).collect::<String>());
    workspace.ok("index docs.jsonl --out i");
    workspace.file("queries.tsv", "1\tcat w3\n");
    let batch = "batch i --queries queries.tsv --run run --stats";
    let stats = |arguments: &str| {
        let output = workspace.run(arguments);
        assert_succeeded(&output);
        String::from_utf8(output.stderr).unwrap()
    };
    let given = stats(&format!("{batch} --read-costs 1000,2000,3000,4000"));
    assert!(given.contains("reads cost 1000,2000,3000,4000 ns"), "{given}");
    assert!(given.contains("batch requests: 1 answered"), "{given}");

    let io = "explain i cat --count --io";
    let table = workspace.ok(&format!("{io} --read-costs 1000,2000,3000,4000"));
    assert!(
        table.contains("planned, if reads cost 1000,2000,3000,4000 ns") && table.contains("pages needed")
    );
    let value = workspace.run_for_json(&format!("{io} --format json --read-costs 1000,2000,3000,4000"));
    let planned = &value["segments"][0]["planned"][0];
    assert_eq!((&planned["term"], &planned["reads"]), (&"cat".into(), &1.into()), "{value}");
    assert!(planned["pages_needed"].as_u64().unwrap() >= 1, "{value}");
    assert_eq!(planned["pages_needed"], planned["pages_read"]);

    // As an earlier command has measured them; after other lines, and of another device.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let device = std::fs::metadata(workspace.path("i")).unwrap().dev();
    let kept = format!("garbage\n{} {now} 1,1,1,1\n{device} {now} 5000,6000,7000,8000\n", device + 1);
    workspace.file(".cache/tierdex/read-costs", kept);
    assert!(stats(batch).contains("reads cost 5000,6000,7000,8000 ns"));
    assert!(workspace.ok(io).contains("planned, if reads cost 5000,6000,7000,8000 ns"));
    assert!(stats(&format!("{batch} --read-costs 1,2,3,4")).contains("reads cost 1,2,3,4 ns"));
    let old = format!("{device} {} 5000,6000,7000,8000\n", now - 25 * 3600);
    for other in [old.into_bytes(), vec![0xff; 3000], vec![b'7'; 100_000]] {
        workspace.file(".cache/tierdex/read-costs", other);
        assert!(!stats(batch).contains("5000,6000,7000,8000"));
    }
    for wrong in ["1,2,3", "4,3,2,1", "x"] {
        workspace.fails(2, &format!("{batch} --read-costs {wrong}"), "four increasing numbers");
    }
    workspace.fails(2, "explain i cat --read-costs 1,2,3,4", "--io");
}

#[test]
fn matches_are_counted_on_request() {
    let workspace = Workspace::with_index("");
    assert!(workspace.ok("search i cat -k 1").contains("\nat least "));
    // The count is exact if all matches are hits.
    assert!(
        workspace.ok("search i cat").contains("\n2 documents")
            && workspace.ok("search i cat -k 1 --count").contains("\n2 documents")
    );
    for wrong in ["batch i --queries q --run r --threads 0", "batch i --queries q --run r --threads x"] {
        let output = workspace.run(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("1 to 1024"), "{wrong}");
    }
}

#[test]
fn subcommands_and_flags_in_the_documents_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let workspace = Workspace::new();
    let mut checked = 0;
    for name in ["README.md", "docs/promises.md"] {
        let text = std::fs::read_to_string(root.join(name)).unwrap();
        let fenced = text.split("```").skip(1).step_by(2).flat_map(str::lines).map(str::trim);
        let commands = fenced.filter_map(|line| {
            let line = Some(line).filter(|line| !line.starts_with("tierdex = "))?;
            line.strip_prefix("tierdex ").or(line.strip_prefix("cargo run --release -- "))
        });
        for command in commands {
            let words: Vec<&str> = command.split_whitespace().collect();
            // A dependency in TOML.
            if words[0] == "=" {
                continue;
            }
            let help = assert_succeeded(&workspace.run_with([words[0], "--help"]));
            for flag in words.iter().filter(|word| word.starts_with("--")) {
                assert!(help.contains(flag), "{name}: `{command}`: no {flag}");
            }
            checked += 1;
        }
    }
    assert!(checked >= 5, "only {checked} commands were found");
}

#[test]
fn completions_and_manual_pages_are_written() {
    let workspace = Workspace::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = workspace.ok(&format!("completions {shell}"));
        assert!(script.contains("tierdex") && script.contains("queries"), "{shell}");
    }
    workspace.ok("man pages/man1");
    let page = std::fs::read_to_string(workspace.path("pages/man1/tierdex-batch.1")).unwrap();
    assert!(page.contains("\\-\\-queries"), "{page}");
    workspace.file("file", "");
    workspace.fails(1, "man file", "cannot write pages to file: ");
}

#[test]
fn a_check_is_one_json_object() {
    let workspace = Workspace::with_index("");
    let check = |code: i32| {
        let output = workspace.run("check i --format json");
        assert_eq!(output.status.code(), Some(code));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    let sound = check(0);
    assert_eq!((&sound["sound"], &sound["documents"]), (&true.into(), &3.into()));
    let file = workspace.path("i/0000000000000001.ids");
    std::fs::write(file, "").unwrap();
    let damaged = check(1);
    assert_eq!(damaged["sound"], false);
    assert!(damaged["problems"][0].as_str().unwrap().contains("i/0000000000000001.ids"), "{damaged}");
}

/// Text that is wrapped by hand must not be wrapped again in a terminal of 80 columns.
#[test]
fn the_help_fits_into_80_columns() {
    let workspace = Workspace::new();
    let mut command = workspace.command(["explain", "--help"]);
    let help = assert_succeeded(&spawn_and_finish(command.env("COLUMNS", "80")));
    let after = help.split_once("The query is evaluated").unwrap().1;
    assert!(after.lines().all(|line| line.len() <= 80), "{after}");
    assert!(after.contains("\n  weight     inverse document frequency"), "{after}");
}

#[test]
fn merge_leaves_few_segments_or_one() {
    let workspace = Workspace::with_index("");
    for number in 0..5 {
        workspace.file("more.jsonl", format!("{{\"id\":\"m{number}\",\"text\":\"another cat\"}}\n"));
        workspace.ok("index more.jsonl --out i --append --merge none");
    }
    let cats = workspace.search_index("i", "cat").0;
    assert!(workspace.ok("info i").contains("in 6 segments"));
    let said = workspace.ok("merge i --memory 16M --threads 2");
    assert!(said.contains("i: 6 segments to 2 in"), "{said}");
    assert!(workspace.ok("merge i").contains("i: 2 segments to 2 in"), "nothing is left to merge");
    assert!(workspace.ok("merge i --to one").contains("i: 2 segments to 1 in"));
    assert_eq!(workspace.search_index("i", "cat").0, cats);
    assert!(workspace.ok("check i").starts_with("sound"));
    workspace.fails(1, "merge none", "no such directory");
    workspace.fails(2, "merge i --memory 1M", "too small");
}
