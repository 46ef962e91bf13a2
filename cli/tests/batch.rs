//! Runs of many queries: what is written, where to, and what is left when it ends early.

mod place;

use place::{DOCUMENTS, Place};
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn batches_write_trec_runs() {
    let place = Place::new();
    place.file("docs.jsonl", DOCUMENTS);
    place.ok("index docs.jsonl --out i");
    place.file("q.tsv", "q1\tcat - \"dog\nq2\tzebra\nq3\tbird\n");
    let said = place.ok("batch i --queries q.tsv --run out.trec -k 1 --syntax terms");
    assert!(said.contains("3 queries, 2 hits"), "{said}");
    let said = place.ok("batch i --queries q.tsv --run out.trec -k 2 --count --syntax terms");
    assert!(said.contains("3 queries, 3 matches"), "{said}");
    let run = std::fs::read_to_string(place.path("out.trec")).unwrap();
    let columns: Vec<Vec<&str>> = run.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!(columns.len(), 3);
    assert_eq!(columns[0][..4], ["q1", "Q0", "2", "1"]);
    assert_eq!(columns[2][..4], ["q3", "Q0", "3", "1"]);

    // Documents that fill blocks, so that there is something to fetch.
    let line = |number: usize| format!("{{\"id\":\"{number}\",\"text\":\"bird cat {}\"}}\n", number % 7);
    place.file("many.jsonl", (0..2000).map(line).collect::<String>());
    place.ok("index many.jsonl --out many");
    place.file("q.tsv", "q1\tcat dog\nq2\tzebra\nq3\tbird\n");
    place.ok("batch many --queries q.tsv --run plain.trec -k 50");
    let output = place.run("batch many --queries q.tsv --run near.trec -k 50 --cache dram:64K --stats");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("pages: "), "{said}");
    assert!(!said.contains(" 0 fetched"), "{said}");
    let [plain, near] = ["plain.trec", "near.trec"].map(|run| std::fs::read(place.path(run)).unwrap());
    assert_eq!(plain, near);
    place.fails(2, "batch i --queries q.tsv --run out2.trec --cache dram:4K", "smaller than 2 segments");
    place.fails(2, "tierdex-bench batch i --queries q.tsv --run out2.trec --segment 5K", "--segment");

    place.file("bad.tsv", "no tab here\n");
    place.fails(1, "batch i --queries bad.tsv --run out2.trec", "line 1");
    place.fails(1, "batch i --queries none.tsv --run out2.trec", "none.tsv");
    place.fails(1, "batch i --queries q.tsv --run nowhere/out.trec", "nowhere");
    assert!(!place.path("out2.trec").exists());
}

#[test]
fn a_query_that_fails_is_left_out_if_so_asked() {
    let place = Place::new();
    // Lists of some pages each.
    let word = |number: usize, of: &str, part: usize| match number.wrapping_mul(0x9e37_79b9) >> 8 & part {
        0 => of.to_string(),
        _ => String::new(),
    };
    let line = |n: usize| {
        format!("{{\"id\":\"{n}\",\"text\":\"all {} {}\"}}\n", word(n, "cat", 1), word(n, "dog", 2))
    };
    place.file("docs.jsonl", (0..80_000).map(line).collect::<String>());
    place.ok("index docs.jsonl --out i");
    place.file("q.tsv", "q1\tcat\nq2\tdog\nno tab\nq3\tcat AND\nq4\tcat dog\n");
    let batch = "batch i --queries q.tsv --run out.trec -k 3 --syntax query";
    place.fails(1, batch, "line 3: no tab");
    let output = place.run(&format!("{batch} --on-error skip"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.lines().count() == 2, "{said}");
    assert!(said.contains("q.tsv: line 3: no tab") && said.contains("query q3: query, byte 8"), "{said}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("3 queries, 9 hits"), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("2 failed and left out"), "{output:?}");

    // A page of the first list is broken: the queries that need it say so, and the one between them is answered.
    let docs = std::fs::read_dir(place.path("i")).unwrap().flatten().map(|entry| entry.path());
    let docs = docs.into_iter().find(|path| path.extension().is_some_and(|end| end == "docs")).unwrap();
    let mut bytes = std::fs::read(&docs).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&docs, bytes).unwrap();
    place.file("q.tsv", "q1\tcat\nq2\tdog\nq4\tcat dog\n");
    place.fails(1, batch, "query q1: ");
    for mode in ["base", "hybrid-prefetch", "direct"] {
        let output = place.run(&format!("tierdex-bench {batch} --on-error skip --mode {mode}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{mode}: {said}");
        assert!(
            said.contains("query q1: ") && said.contains("query q4: ") && said.contains("checksum"),
            "{mode}: {said}"
        );
        let run = std::fs::read_to_string(place.path("out.trec")).unwrap();
        assert_eq!(run.lines().map(|line| &line[..2]).collect::<Vec<_>>(), ["q2"; 3], "{mode}");
    }
    // So does one whose ids cannot be read; and if none is answered there is no run.
    let ids = docs.with_file_name(docs.file_name().unwrap().to_str().unwrap().replace(".0.docs", ".ids"));
    let mut bytes = std::fs::read(&ids).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&ids, bytes).unwrap();
    place.file("q.tsv", "q1\tall\nq2\tcat\n");
    std::fs::remove_file(place.path("out.trec")).unwrap();
    place.fails(1, &format!("{batch} --on-error skip"), "no query was answered; 2 failed");
    assert!(!place.path("out.trec").exists());
}

#[test]
fn queries_are_read_from_packed_files_and_standard_input() {
    let place = Place::new();
    place.file("docs.jsonl", DOCUMENTS);
    place.ok("index docs.jsonl --out i");
    let queries = "\u{feff}q1\tcat\r\nq2\tbird";
    place.file("plain", queries);
    place.file("zst", zstd::encode_all(queries.as_bytes(), 3).unwrap());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(queries.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    place.file("gz", &gzip);
    place.file("cut", &gzip[..gzip.len() - 4]);
    for name in ["plain", "zst", "gz", "-"] {
        let mut command = place.command(["batch", "i", "--queries", name, "--run", "r"]);
        let output = command.stdin(std::fs::File::open(place.path("gz")).unwrap()).output().unwrap();
        assert!(place::succeeded(&output).starts_with("2 queries, 3 hits"), "{name}");
        let run = std::fs::read_to_string(place.path("r")).unwrap();
        let ids: Vec<&str> = run.lines().map(|line| line.split(' ').next().unwrap()).collect();
        assert_eq!(ids, ["q1", "q1", "q2"], "{name}");
        std::fs::remove_file(place.path("r")).unwrap();
    }
    place.fails(1, "batch i --queries cut --run r", "cut: cannot unpack: ");
    assert!(!place.path("r").exists());
}

#[test]
fn operators_that_are_read_as_words_are_told_once() {
    let place = Place::new();
    place.file("docs.jsonl", DOCUMENTS);
    place.ok("index docs.jsonl --out i --positions");
    let said = |queries: &[&str], flags: &str| {
        let lines = queries.iter().enumerate().map(|(id, query)| format!("{id}\t{query}\n"));
        place.file("q", lines.collect::<String>());
        let output = place.run(&format!("batch i --queries q --run r{flags}"));
        place::succeeded(&output);
        String::from_utf8(output.stderr).unwrap()
    };
    for query in ["+cat bird", "cat -dog", "\"the cat\"", "a AND b", "NOT a", "ca*", "cat~1", "cat^2", "#cat"]
    {
        let warning = format!(
            "tierdex: q: 1 query with operators, such as `{query}`, parsed in the query language; --syntax terms \
             takes them as plain words, --syntax query as they are, without this warning\n"
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
    place.file("q", "q1\tcat AND\n");
    place.fails(1, "batch i --queries q --run r", "; --syntax terms takes queries as plain words");
    place.ok("batch i --queries q --run r --syntax terms");
}

#[test]
fn an_empty_query_of_a_batch_has_no_hits() {
    let place = Place::new();
    place.file("docs.jsonl", DOCUMENTS);
    place.ok("index docs.jsonl --out i");
    place.file("q", "q1\t\nq2\t \nq3\tcat\n");
    for syntax in ["terms", "query"] {
        let said = place.ok(&format!("batch i --queries q --run r --syntax {syntax}"));
        assert!(said.starts_with("3 queries, 2 hits"), "{said}");
    }
}

#[test]
fn flags_that_would_do_nothing_are_refused() {
    let place = Place::new();
    place.file("docs.jsonl", DOCUMENTS);
    place.file("q", "q1\tcat\n");
    place.ok("index docs.jsonl --out i");
    for (flags, words) in [
        ("--mode base --segment 4K", "omit --segment"),
        ("--mode base-prefetch --depth 4", "omit --depth"),
        ("--mode base --cache dram:1M", "omit --cache"),
        ("--mode hybrid --lookahead 4", "omit --lookahead,"),
        ("--mode base --lookahead-log l", "omit --lookahead-log"),
        ("--mode base-prefetch --io uring", "through the page cache only"),
        ("--mode direct --io mmap", "--mode hybrid-prefetch"),
    ] {
        place.fails(2, &format!("tierdex-bench batch i --queries q --run r {flags}"), words);
    }
    for flags in [
        "--mode direct --policy sieve --segment 4K --depth 4 --lookahead 4",
        "--mode base-prefetch --lookahead 4",
    ] {
        place.ok(&format!("tierdex-bench batch i --queries q --run r {flags}"));
    }
}

#[test]
fn a_run_may_be_a_link_or_a_pipe() {
    let place = Place::new();
    place.file("docs.jsonl", DOCUMENTS);
    place.file("q", "q1\tcat\n");
    place.file("old", "old");
    place.ok("index docs.jsonl --out i");
    std::os::unix::fs::symlink(place.path("old"), place.path("link")).unwrap();
    place.ok("batch i --queries q --run link");
    let run = std::fs::read_to_string(place.path("old")).unwrap();
    assert!(run.starts_with("q1 Q0 ") && place.path("link").is_symlink());
    let said = place.ok("batch i --queries q --run /dev/stdout");
    assert!(said.starts_with(&run), "{said}");
    place.file("q", format!("q1\t{}", "cat ".repeat(100_000)));
    place.fails(1, "batch i --queries q --run r", "line 1: longer than");
    assert!(!place.path("r").exists());
}

#[test]
fn a_batch_that_is_stopped_leaves_nothing_of_its_run() {
    let place = Place::new();
    place.file("docs.jsonl", DOCUMENTS);
    place.ok("index docs.jsonl --out i");
    assert!(Command::new("mkfifo").arg(place.path("q")).status().unwrap().success());
    for signal in ["-INT", "-TERM"] {
        let mut command = place.command("batch i --queries q --run out.trec".split(' '));
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        // It answers what there is and then waits for more, as long as this is open.
        let mut queries = std::fs::OpenOptions::new().write(true).open(place.path("q")).unwrap();
        queries.write_all(b"q1\tcat\n").unwrap();
        while place.names().iter().all(|name| !name.starts_with(".tierdex-run")) {
            assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
            std::thread::yield_now();
        }
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), error.lines().count()), (Some(130), 1), "{error}");
        assert_eq!(place.names(), ["docs.jsonl", "i", "q"]);
    }
}
