//! Generated indexes, the server, and latencies: results, and messages about wrong flags.

use crate::workspace::{PROGRAM, Workspace, send_signal, spawn_and_finish, wait_for_output, wait_until};
use crate::{check_index, index, serve_lines};
use serde_json::Value;
use std::{fs, process::Command};
use tierdex::{Index, codec::Codec};

const GENERATE_INDEX: &str = "generate --docs 2000 --postings 60000 --vocabulary 3000";

#[test]
fn a_generated_index_is_valid_and_depends_on_the_seed_only() {
    let workspace = Workspace::new();
    let summary = workspace.ok(&format!("{GENERATE_INDEX} --out one"));
    assert!(summary.starts_with("2,000 documents, 3,000 terms, 60,000 postings, "), "{summary}");
    for file in ["terms", "skips", "postings", "norms", "ids"] {
        assert!(summary.contains(&format!("\n  {file} ")), "{summary}");
    }
    let single = workspace.ok("generate --docs 1 --postings 1 --vocabulary 1 --out single");
    assert!(single.contains("1 document, 1 term, 1 posting, "), "{single}");
    let checked = check_index(&workspace.path("one"));
    assert_eq!((checked.generation, checked.files), (1, 6));
    assert_eq!(serve_lines(&workspace, "serve one", b"COUNT\tt0000001\n"), ["READY", "1500"]);
    workspace.ok(&format!("{GENERATE_INDEX} --seed 1 --out same"));
    workspace.ok(&format!("{GENERATE_INDEX} --seed 2 --out other"));
    workspace.ok(&format!("{GENERATE_INDEX} --codec raw --freq-codec vbyte --out codecs"));
    let codecs = Index::open(workspace.path("codecs")).unwrap();
    let field = &codecs.schema().fields[0];
    assert_eq!((field.doc_codec, field.freq_codec), (Codec::Raw, Codec::VByte));
    let wrong = format!("{GENERATE_INDEX} --freq-codec vbyte-delta --out wrong");
    workspace.fails_in_one_line(2, &wrong, "give vbyte");
    let docs = |index| fs::read(workspace.path(index).join("0000000000000001.0.postings")).unwrap();
    assert!(docs("one") == docs("same") && docs("one") != docs("other"));
}

#[test]
fn generate_rejects_wrong_flags_and_directories_with_one_line() {
    let workspace = Workspace::new();
    let wrong = "generate --docs 10 --postings 36 --vocabulary 5 --out i";
    workspace.fails_in_one_line(2, wrong, "--postings 36: 10 documents and 5 terms have at most 35");
    assert_eq!(workspace.run(&wrong.replace("10", "x")).status.code(), Some(2));
    assert!(!workspace.path("i").exists());

    fs::create_dir(workspace.path("full")).unwrap();
    workspace.file("full/notes", "");
    let words = "is not empty (it holds `notes`)";
    workspace.fails_in_one_line(2, &format!("{GENERATE_INDEX} --out full"), words);
    workspace.file("file", "");
    workspace.fails_in_one_line(1, &format!("{GENERATE_INDEX} --out file"), "file");
    workspace.ok(&format!("{GENERATE_INDEX} --out i"));
    workspace.fails_in_one_line(2, &format!("{GENERATE_INDEX} --out i"), "i holds an index already");
    check_index(&workspace.path("i"));
}

#[test]
fn generate_leaves_no_index_when_interrupted_or_out_of_space() {
    let workspace = Workspace::new();
    let large = "generate --docs 1000000 --postings 100000000 --vocabulary 10000 --out i";
    let mut child = workspace.spawn(large);
    let lists = workspace.path("i/0000000000000001.0.postings");
    wait_until(&mut child, || fs::metadata(&lists).is_ok_and(|file| file.len() > 0));
    // The generator is suspended while the second one starts, so that it cannot finish before.
    send_signal(&child, "-STOP");
    workspace.fails_in_one_line(75, &format!("{GENERATE_INDEX} --out i"), "another writer");
    send_signal(&child, "-INT");
    send_signal(&child, "-CONT");
    let output = wait_for_output(child);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), error.lines().count()), (Some(130), 1), "{error}");
    assert!(!workspace.path("i").exists(), "nothing stays");

    // A limit on file sizes simulates a full device. SIGXFSZ is ignored, so writes fail.
    let script = format!("trap '' XFSZ; ulimit -f 32; exec \"$0\" {GENERATE_INDEX} --out small");
    let output = Command::new("bash").args(["-c", &script, PROGRAM]).current_dir(workspace.path("")).output();
    let output = output.unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{error}");
    assert!(error.contains("cannot write") && !workspace.path("small").exists(), "{error}");
    workspace.ok(&format!("{GENERATE_INDEX} --out small"));
}

#[test]
fn the_server_answers_each_line_with_one_line() {
    let workspace = Workspace::new();
    index(&workspace.path("i"), (0..600).map(|id| if id % 3 == 0 { "cat dog" } else { "cat cat" }));
    let lines = "COUNT\tcat\nTOP_10\tcat\nTOP_1000\tdog\nTOP_5_COUNT\t+cat +dog\nCOUNT\tcat dog\nDOCS_2\tdog\n\
                 NOPE\tcat\nCOUNT\ncat\nCOUNT\tx~3\nCOUNT\tfish\n";
    for arguments in [
        "serve i",
        "serve i --exhaustive",
        "serve i --keep-in dram --threads 1",
        "serve i --cache dram:1M --threads 1",
    ] {
        let answers = serve_lines(&workspace, arguments, lines.as_bytes());
        assert_eq!(answers[..6], ["READY", "600", "10", "200", "200", "600"]);
        let first: Vec<&str> = answers[6].split([' ', ':']).collect();
        assert_eq!((first[0], first[2], first[1] == first[3]), ("0", "3", true), "{}", answers[6]);
        assert_eq!(answers[7..10], ["UNSUPPORTED"; 3]);
        let fault = "a fuzzy word is 0 to 2 edits away, not `3`; write `\\~` for the character";
        assert_eq!(answers[10..], [format!("ERROR query, byte 2: {fault}"), "0".to_string()]);
        let long = [&[b'x'; 100_000][..], b"\nCOUNT\tcat\n"].concat();
        let answers = serve_lines(&workspace, arguments, &long);
        assert_eq!(answers, ["READY", "ERROR the line is longer than 81920 bytes", "600"]);
        let answers = serve_lines(&workspace, arguments, b"COUNT\t\xff\nCOUNT\tcat");
        assert_eq!(answers, ["READY", "ERROR the line is not UTF-8", "600"]);
    }
}

#[test]
fn the_server_rejects_wrong_flags() {
    let workspace = Workspace::new();
    index(&workspace.path("i"), ["the cat"]);
    for (flags, words) in [
        ("--keep-in dram --cache dram:1M", "cannot be used with"),
        ("--threads 2", "--threads needs an index on disk"),
        ("--depth 5000", "is not in 1..=4096"),
    ] {
        workspace.fails_in_one_line(2, &format!("serve i {flags}"), words);
    }
    for flags in ["--policy sieve --depth 4", "--meta-tier disk --io pread", "--keep-in dram --dram 50M"] {
        assert_eq!(serve_lines(&workspace, &format!("serve i {flags}"), b"COUNT\tcat\n"), ["READY", "1"]);
    }
}

#[test]
fn the_server_times_a_batch_of_lines() {
    let workspace = Workspace::new();
    index(&workspace.path("i"), (0..300).map(|id| format!("the word{id}")));
    workspace.file("lines", "COUNT\tthe\nTOP_7\tthe\nNOPE\tthe\nDOCS_2\tword5\n");
    let batches = "!BATCH\tlines\t2\tlatencies\n!BATCH\tlines\t0\t-\n!BATCH\tmissing\t1\t-\n";
    let answers = serve_lines(&workspace, "serve i", batches.as_bytes());
    let times: serde_json::Value = serde_json::from_str(&answers[1]).unwrap();
    assert_eq!((&times["n"], &times["sum"], &times["unsupported"]), (&4.into(), &308.into(), &1.into()));
    assert!(times["p50_ns"].as_u64() <= times["p99_ns"].as_u64() && times["wall_ns"].is_u64());
    let latencies = fs::read_to_string(workspace.path("latencies")).unwrap();
    assert_eq!(latencies.lines().filter(|line| line.parse::<u64>().is_ok()).count(), 4);
    assert!(answers[2].starts_with("ERROR `0` is no number of threads"), "{}", answers[2]);
    assert!(answers[3].starts_with("ERROR cannot read missing"), "{}", answers[3]);
}

#[test]
fn single_requests_are_timed_alone_and_beside_a_batch() {
    let workspace = Workspace::new();
    index(&workspace.path("i"), (0..3000).map(|id| format!("the word{} the", id % 7)));
    workspace.file("q.txt", "the\n+the +word3\n\n+the -word1\nnone\n");
    let table = workspace.ok("latency i --queries q.txt --dram 50M --rates 200,5000");
    let rows: Vec<Value> = table.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = rows.iter().map(|row| row["requests"].as_str().unwrap()).collect();
    assert_eq!(names, ["alone", "beside", "200/s", "5000/s"]);
    let is_timed = |row: &Value| ["p50_us", "p99_us"].iter().all(|name| row[name].as_f64().unwrap() > 0.0);
    assert!(rows.iter().all(is_timed) && rows[1]["batch_qps"].is_number(), "{table}");
    // More requests than the queue has memory for, faster than they are answered: some are rejected.
    workspace.file("many.txt", "the word1 word2\n".repeat(1000));
    let table = workspace.ok("latency i --queries many.txt --dram 50M --rates 1000000");
    let row: Value = serde_json::from_str(table.lines().last().unwrap()).unwrap();
    assert!(row["requests"] == "1000000/s" && row["rejected"].as_u64().unwrap() > 0, "{table}");
    let cold = workspace.ok("latency i --queries q.txt --dram 50M --rates 200,5000 --cold");
    assert_eq!(cold.lines().count(), 2, "{cold}");
    workspace.file("none.txt", "\n");
    for (code, command, why) in [
        (2, "latency i --queries none.txt", "none.txt has no query"),
        (1, "latency i --queries missing.txt", "cannot read missing.txt"),
        (2, "latency i --queries q.txt --dram 1M", "is too small"),
        (2, "latency i --queries q.txt --depth 0", "is not in 1..=4096"),
        (2, "latency i --queries q.txt --rates 100,0", "requests per second"),
        (2, "latency i --queries q.txt --rates 1e-30", "requests per second"),
    ] {
        workspace.fails_in_one_line(code, command, why);
    }
}

#[test]
fn commands_of_the_driver_say_what_to_install() {
    let workspace = Workspace::new();
    for (python, why) in
        [("false", "false has no package"), ("no-such-program", "cannot start no-such-program")]
    {
        let mut command = workspace.command(["paper", "--list"]);
        let output = spawn_and_finish(command.env("TIERDEX_PYTHON", python));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
        assert!(said.contains(why) && said.contains("pip install"), "{said}");
    }
}
