//! `tierdex batch`: the run that is written, and the files that remain after an error or a signal.

use crate::workspace::{
    Workspace, assert_failed, assert_succeeded, send_signal, wait_for_output, wait_until,
};
use std::io::Write;

#[test]
fn batches_write_trec_runs() {
    let workspace = Workspace::with_index("");
    workspace.file("q.tsv", "q1\tcat dog\nq2\tzebra\nq3\tbird\n");
    let said = workspace.ok("batch i --queries q.tsv --run out.trec -k 1");
    assert!(said.contains("3 queries, 2 hits"), "{said}");
    let said = workspace.ok("batch i --queries q.tsv --run out.trec -k 2 --count");
    assert!(said.contains("3 queries, 3 matches"), "{said}");
    let run = std::fs::read_to_string(workspace.path("out.trec")).unwrap();
    let columns: Vec<Vec<&str>> = run.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!(columns.len(), 3);
    assert_eq!(columns[0][..4], ["q1", "Q0", "2", "1"]);
    assert_eq!(columns[2][..4], ["q3", "Q0", "3", "1"]);

    // Enough documents for whole blocks, so that the cache fetches pages.
    let line = |number: usize| format!("{{\"id\":\"{number}\",\"text\":\"bird cat {}\"}}\n", number % 7);
    workspace.file("many.jsonl", (0..2000).map(line).collect::<String>());
    workspace.ok("index many.jsonl --out many");
    workspace.ok("batch many --queries q.tsv --run plain.trec -k 50");
    let output = workspace.run("batch many --queries q.tsv --run cached.trec -k 50 --cache dram:64K --stats");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("pages: ") && said.contains("hit rate"), "{said}");
    assert!(said.starts_with("dictionary, skip data and norms on dram, cache dram:64K,"), "{said}");
    assert!(!said.contains(" 0 fetched"), "{said}");
    let [plain, cached] =
        ["plain.trec", "cached.trec"].map(|run| std::fs::read(workspace.path(run)).unwrap());
    assert_eq!(plain, cached);
    workspace.fails(2, "batch i --queries q.tsv --run out2.trec --cache dram:4K", "smaller than 2 cells");

    workspace.file("bad.tsv", "no tab here\n");
    workspace.fails(1, "batch i --queries bad.tsv --run out2.trec", "line 1");
    workspace.fails(1, "batch i --queries none.tsv --run out2.trec", "none.tsv");
    workspace.fails(1, "batch i --queries q.tsv --run nowhere/out.trec", "nowhere");
    assert!(!workspace.path("out2.trec").exists());
}

#[test]
fn a_batch_reads_the_hot_pages_of_the_batch_before() {
    let workspace = Workspace::new();
    let line = |n: usize| format!("{{\"id\":\"{n}\",\"text\":\"all w{} v{}\"}}\n", n % 7, n * 31 % 1000);
    workspace.file("docs.jsonl", (0..80_000).map(line).collect::<String>());
    workspace.ok("index docs.jsonl --out i");
    let line = |n: usize| format!("q{n}\tall w{} v{}\n", n % 7, n % 1000);
    workspace.file("q.tsv", (0..500).map(line).collect::<String>());
    let batch = |run: &str, flags: &str| {
        let words = format!("batch i --queries q.tsv --run {run} -k 5 --count --dram 20M --stats{flags}");
        let output = workspace.run(&words);
        assert_succeeded(&output);
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(!batch("plain", "").contains("hot pages"));
    let hot_pages = |report: &str| -> u64 {
        let number = report.split("\nhot pages: ").nth(1).and_then(|rest| rest.split(' ').next());
        number.unwrap_or_else(|| panic!("{report}")).replace(',', "").parse().unwrap()
    };
    let first = batch("first", " --hot-pages hot");
    assert!(hot_pages(&first) == 0 && first.contains("  hot pages\n"), "{first}");
    assert!(workspace.path("hot").exists());
    // Pages are read beside the queries: in a batch that ends first there may be none.
    let read_pages = |_| hot_pages(&batch("second", " --hot-pages hot")) > 0;
    assert!((0..20).any(read_pages));
    let runs = ["plain", "first", "second"].map(|run| std::fs::read(workspace.path(run)).unwrap());
    assert!(runs[0] == runs[1] && runs[0] == runs[2]);
    let is_ignored = |_| {
        workspace.file("hot", "no pages");
        batch("third", " --hot-pages hot").starts_with("tierdex: hot: not used as hot pages: ")
    };
    assert!((0..20).any(is_ignored));

    for (file, code, message) in [
        ("none/hot", 1, "cannot write hot pages to none/hot: cannot open directory none: no such file"),
        ("i/hot", 2, "--hot-pages names a file in the directory of the index"),
        ("q.tsv", 2, "--hot-pages names the file of --queries or --run"),
        ("run", 2, "--hot-pages names the file of --queries or --run"),
        ("/dev/null", 1, "cannot write hot pages to /dev/null: cannot open null: it is not a plain file"),
    ] {
        let words = format!("batch i --queries q.tsv --run run --hot-pages {file}");
        workspace.fails_in_one_line(code, &words, message);
        assert!(!workspace.path("run").exists());
    }
}

#[test]
fn failed_queries_are_skipped_with_on_error_skip() {
    let workspace = Workspace::new();
    // Posting lists of several pages.
    let word = |number: usize, of: &str, part: usize| match number.wrapping_mul(0x9e37_79b9) >> 8 & part {
        0 => of.to_string(),
        _ => String::new(),
    };
    let line = |n: usize| {
        format!("{{\"id\":\"{n}\",\"text\":\"all {} {}\"}}\n", word(n, "cat", 1), word(n, "dog", 2))
    };
    workspace.file("docs.jsonl", (0..80_000).map(line).collect::<String>());
    workspace.ok("index docs.jsonl --out i");
    workspace.file("q.tsv", "q1\tcat\nq2\tdog\nno tab\nq3\tcat AND\nq4\tcat dog\n");
    let batch = "batch i --queries q.tsv --run out.trec -k 3 --syntax query";
    workspace.fails(1, batch, "line 3: no tab");
    let output = workspace.run(&format!("{batch} --on-error skip"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.lines().count() == 2, "{said}");
    assert!(said.contains("q.tsv: line 3: no tab") && said.contains("query q3: query, byte 8"), "{said}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("3 queries, 9 hits"), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("; 2 with an error and skipped"), "{output:?}");

    // A page of the first list is damaged: the two queries that read it have no answer, and the query between
    // them is answered. The exit code reports a failure.
    let docs = std::fs::read_dir(workspace.path("i")).unwrap().flatten().map(|entry| entry.path());
    let docs = docs.into_iter().find(|path| path.extension().is_some_and(|end| end == "postings")).unwrap();
    let mut bytes = std::fs::read(&docs).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&docs, bytes).unwrap();
    workspace.file("q.tsv", "q1\tcat\nq2\tdog\nq4\tcat dog\n");
    workspace.fails(1, batch, "query q1: ");
    for flags in ["", " --dram 64M"] {
        let output = workspace.run(&format!("{batch} --on-error skip{flags}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_failed(&output, 1, "q.tsv: 2 of 3 queries without an answer, as the index is damaged");
        assert!(
            said.contains("query q1: ") && said.contains("query q4: ") && said.contains("checksum"),
            "{flags}: {said}"
        );
        let run = std::fs::read_to_string(workspace.path("out.trec")).unwrap();
        assert_eq!(run.lines().map(|line| &line[..2]).collect::<Vec<_>>(), ["q2"; 3], "{flags}");
    }
    // A query fails too if its document ids cannot be read. If no query is answered, there is no run.
    let ids = docs.with_file_name(docs.file_name().unwrap().to_str().unwrap().replace(".0.postings", ".ids"));
    let mut bytes = std::fs::read(&ids).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&ids, bytes).unwrap();
    workspace.file("q.tsv", "q1\tall\nq2\tcat\n");
    std::fs::remove_file(workspace.path("out.trec")).unwrap();
    workspace.fails(1, &format!("{batch} --on-error skip"), "no query was answered; 2 failed");
    assert!(!workspace.path("out.trec").exists());
}

#[test]
fn queries_are_read_from_compressed_files_and_standard_input() {
    let workspace = Workspace::with_index("");
    let queries = "\u{feff}q1\tcat\r\nq2\tbird";
    workspace.file("plain", queries);
    workspace.file("zst", zstd::encode_all(queries.as_bytes(), 3).unwrap());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(queries.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    workspace.file("gz", &gzip);
    workspace.file("cut", &gzip[..gzip.len() - 4]);
    for name in ["plain", "zst", "gz", "-"] {
        let mut command = workspace.command(["batch", "i", "--queries", name, "--run", "r"]);
        let output = command.stdin(std::fs::File::open(workspace.path("gz")).unwrap()).output().unwrap();
        assert!(assert_succeeded(&output).starts_with("2 queries, 3 hits"), "{name}");
        let run = std::fs::read_to_string(workspace.path("r")).unwrap();
        let ids: Vec<&str> = run.lines().map(|line| line.split(' ').next().unwrap()).collect();
        assert_eq!(ids, ["q1", "q1", "q2"], "{name}");
        std::fs::remove_file(workspace.path("r")).unwrap();
    }
    workspace.fails(1, "batch i --queries cut --run r", "cut: cannot decompress: ");
    assert!(!workspace.path("r").exists());
}

#[test]
fn queries_with_operators_cause_one_warning_without_a_syntax_flag() {
    let workspace = Workspace::with_index("--positions");
    let said = |queries: &[&str], flags: &str| {
        let lines = queries.iter().enumerate().map(|(id, query)| format!("{id}\t{query}\n"));
        workspace.file("q", lines.collect::<String>());
        let output = workspace.run(&format!("batch i --queries q --run r{flags}"));
        assert_succeeded(&output);
        String::from_utf8(output.stderr).unwrap()
    };
    for query in ["+cat bird", "cat -dog", "\"the cat\"", "a AND b", "NOT a", "ca*", "cat~1", "cat^2", "#cat"]
    {
        let warning = format!(
            "tierdex: q: 1 query with operators, such as `{query}`, parsed as query language; give --syntax query, or \
             --syntax terms for bags of words\n"
        );
        assert_eq!(said(&[query], ""), warning);
    }
    let plain =
        ["state-of-the-art", "What is C++?", "5*3 (and more)", "http://x 12:30", "U.S.-China", "AT&T", ""];
    assert_eq!(said(&plain, ""), "");
    let queries = ["cat", "+dog +a", "-bird", "a -b", "+a"];
    assert!(said(&queries, "").contains("q: 3 queries with operators, such as `+dog +a`, parsed"));
    for syntax in ["query", "terms"] {
        assert_eq!(said(&["+cat -dog"], &format!(" --syntax {syntax}")), "");
    }
    workspace.file("q", "q1\tcat AND\n");
    workspace.fails(1, "batch i --queries q --run r", "; with --syntax terms queries are bags of words");
    workspace.ok("batch i --queries q --run r --syntax terms");
    workspace.file("q", "q1\tcat\nq2\tthe \"cat sat\" on\n");
    workspace.ok("index docs.jsonl --out j");
    let words = "query q2: phrases need positions";
    workspace.fails(1, "batch j --queries q --run r", words);
    workspace.fails(1, "batch j --queries q --run r", "; with --syntax terms queries are bags of words");
}

#[test]
fn an_empty_query_of_a_batch_has_no_hits() {
    let workspace = Workspace::with_index("");
    workspace.file("q", "q1\t\nq2\t \nq3\tcat\n");
    for syntax in ["terms", "query"] {
        let said = workspace.ok(&format!("batch i --queries q --run r --syntax {syntax}"));
        assert!(said.starts_with("3 queries, 2 hits"), "{said}");
    }
}

#[test]
fn ids_that_a_run_cannot_represent_are_encoded_and_never_coincide() {
    let workspace = Workspace::new();
    let documents = |ids: &[&str]| {
        let lines = ids.iter().map(|id| format!("{{\"id\":\"{id}\",\"text\":\"cat\"}}\n"));
        workspace.file("docs.jsonl", lines.collect::<String>());
        workspace.ok("index docs.jsonl --out i --replace");
        workspace.run("batch i --queries q --run r")
    };
    workspace.file("q", "q1\tcat\n");
    let output = documents(&["a b", "a_b", "a%b", "50%\u{2003}", "c"]);
    assert_succeeded(&output);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("tierdex: 2 lines of the run with an id that has white space"), "{said}");
    assert!(said.contains("first: `a b` as `a%20b`") && said.lines().count() == 1, "{said}");
    let run = std::fs::read_to_string(workspace.path("r")).unwrap();
    let ids: Vec<&str> = run.lines().map(|line| line.split(' ').nth(2).unwrap()).collect();
    assert_eq!(ids, ["a%20b", "a_b", "a%b", "50%25%E2%80%83", "c"]);
    let words = "the documents `a b` and `a%20b` would both be `a%20b` in the run";
    assert_failed(&documents(&["a b", "c", "a%20b"]), 1, words);
    assert_eq!(std::fs::read_to_string(workspace.path("r")).unwrap(), run);
}

#[test]
fn ids_of_queries_are_those_of_one_query() {
    let workspace = Workspace::with_index("");
    for (queries, words) in [
        ("q1\tcat\n\nq2\tdog\nq1\tbird\n", "q: line 4: line 1 has the query id q1 too"),
        ("\tcat\n", "q: line 1: the query id is empty"),
        ("q1\tcat\nq\u{1}\tcat\n", "q: line 2: the query id contains white space or control characters"),
        ("q 1\tcat\n", "q: line 1: the query id contains white space or control characters"),
    ] {
        workspace.file("q", queries);
        workspace.fails(1, "batch i --queries q --run r", words);
    }
}

#[test]
fn a_run_may_be_a_link_or_a_pipe() {
    let workspace = Workspace::with_documents();
    workspace.file("q", "q1\tcat\n");
    workspace.file("old", "old");
    workspace.ok("index docs.jsonl --out i");
    std::os::unix::fs::symlink(workspace.path("old"), workspace.path("link")).unwrap();
    workspace.ok("batch i --queries q --run link");
    let run = std::fs::read_to_string(workspace.path("old")).unwrap();
    assert!(run.starts_with("q1 Q0 ") && workspace.path("link").is_symlink());
    let said = workspace.ok("batch i --queries q --run /dev/stdout");
    assert!(said.starts_with(&run), "{said}");
    workspace.file("q", format!("q1\t{}", "cat ".repeat(100_000)));
    workspace.fails(1, "batch i --queries q --run r", "line 1: the line is longer than");
    assert!(!workspace.path("r").exists());
}

#[test]
fn an_interrupted_batch_leaves_no_run() {
    let workspace = Workspace::with_index("");
    workspace.fifo("q");
    for signal in ["-INT", "-TERM"] {
        let mut child = workspace.spawn("batch i --queries q --run out.trec");
        // The batch answers the first query and waits for more, as long as the pipe is open.
        let mut queries = workspace.open_fifo(&mut child, "q");
        queries.write_all(b"q1\tcat\n").unwrap();
        wait_until(&mut child, || workspace.names().iter().any(|name| name.starts_with(".tierdex-run")));
        send_signal(&child, signal);
        let output = wait_for_output(child);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), error.lines().count()), (Some(130), 1), "{error}");
        assert_eq!(workspace.names(), ["docs.jsonl", "i", "q"]);
    }
}
