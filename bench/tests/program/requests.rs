//! Experiments that a driver requests of `tierdex-bench cell` as JSON, over a generated index.

use crate::workspace::{
    Workspace, assert_failed, assert_succeeded, send_signal, wait_for_output, wait_until,
};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::{fs, fs::File, path::Path, process::Output, thread};

const GENERATE_INDEX: &str = "generate --docs 2000 --postings 60000 --vocabulary 3000 --out i";

fn workspace_with_index() -> Workspace {
    let workspace = Workspace::new();
    workspace.ok(GENERATE_INDEX);
    workspace
}

fn run_request(workspace: &Workspace, request: &str) -> Output {
    let (child, mut input) = workspace.spawn_with_input("cell");
    input.write_all(request.as_bytes()).unwrap();
    drop(input);
    wait_for_output(child)
}

/// The answer to a request, which is one line.
fn answer(workspace: &Workspace, request: &Value) -> Value {
    let output = assert_succeeded(&run_request(workspace, &request.to_string()));
    assert_eq!(output.lines().count(), 1, "{output}");
    serde_json::from_str(&output).unwrap()
}

fn members(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn the_machine_is_described() {
    let machine = answer(&Workspace::new(), &json!({"experiment": "machine"}));
    assert_eq!(members(&machine), ["cpu", "threads", "memory_bytes", "kernels", "format", "version"]);
    assert_eq!(machine["kernels"][0], "scalar");
    assert_eq!(machine["version"], env!("CARGO_PKG_VERSION"));
    assert!(machine["threads"].as_u64() > Some(0) && machine["memory_bytes"].as_u64() > Some(0));
    assert_ne!(machine["cpu"], "");
}

#[test]
fn queries_are_drawn() {
    let workspace = workspace_with_index();
    for class in ["H", "M"] {
        for shape in ["SINGLE", "AND", "OR"] {
            for repeats in [0, 25] {
                let request = json!({"experiment": "draw", "index": "i", "class": class, "shape": shape,
                    "repeats": repeats, "count": 40, "seed": 7});
                let drawn = answer(&workspace, &request);
                assert_eq!(drawn, answer(&workspace, &request));
                let figures = ["queries", "class-terms", "lists", "list-bytes", "bytes-asked", "repeated"];
                assert_eq!(members(&drawn), figures);
                assert!(drawn["bytes-asked"].as_u64() >= drawn["list-bytes"].as_u64());
                let terms = if shape == "SINGLE" { 40 } else { 80 };
                assert!((1..=terms).contains(&drawn["lists"].as_u64().unwrap()), "{drawn}");
            }
        }
    }
}

#[test]
fn planned_cells_have_limits_and_equal_answers() {
    let workspace = workspace_with_index();
    let draw = json!({"experiment": "draw", "index": "i", "class": "H", "shape": "AND", "repeats": 25,
        "count": 10, "seed": 1});
    let queries = answer(&workspace, &draw)["queries"].take();
    let mut checksums = Vec::new();
    for mode in ["memory", "slow", "base", "base-prefetch", "hybrid", "hybrid-prefetch", "direct"] {
        let reads = match mode {
            "memory" => json!({"by": "searcher"}),
            "slow" => json!({"by": "searcher", "slow-tier": "10,50"}),
            "direct" => json!({"by": "engine", "dram": "50M", "size": "20%", "meta-tier": "dram"}),
            mode => {
                json!({"by": "lists", "mode": mode, "dram": "50M", "size": "20%", "meta-tier": "dram"})
            }
        };
        let cell = json!({"index": "i", "queries": queries, "k": 1024, "reads": reads});
        let planned = answer(&workspace, &json!({"experiment": "plan", "cell": cell, "slack": 30}));
        assert_eq!((&planned["huge_pages"], members(&planned).len()), (&json!(0), 2));
        assert_eq!(planned["cell"]["limit"].is_null(), ["memory", "slow"].contains(&mode), "{planned}");
        // The cell goes to its process as it is, with or without the name of the experiment.
        let mut cell = planned["cell"].clone();
        checksums.push(answer(&workspace, &cell)["checksum"].clone());
        cell["experiment"] = "queries".into();
        checksums.push(answer(&workspace, &cell)["checksum"].clone());
    }
    assert!(checksums[0].is_string() && checksums.iter().all(|sum| *sum == checksums[0]), "{checksums:?}");

    let reads = json!({"by": "searcher", "region": "hugetlb"});
    let cell = json!({"index": "i", "queries": queries, "reads": reads});
    let planned = answer(&workspace, &json!({"experiment": "plan", "cell": cell}));
    assert_eq!((&planned["huge_pages"], &planned["cell"]["limit"]), (&json!(1), &Value::Null));
}

#[test]
fn the_sizes_and_the_explored_postings_of_an_index_are_measured() {
    let workspace = workspace_with_index();
    let sizes = answer(&workspace, &json!({"experiment": "sizes", "index": "i"}));
    let row = &sizes["rows"][0];
    let number = |name: &str| row[name].as_f64().unwrap();
    assert_eq!((number("documents"), number("segments")), (2000.0, 1.0));
    assert_eq!(number("index_bytes"), number("docs_bytes") + number("freqs_bytes") + number("short_bytes"));
    assert!(number("skips_bytes") > 0.0 && number("terms_bytes") > 0.0 && number("docs_bits") > 0.0);
    let ids = answer(&workspace, &json!({"experiment": "sizes", "index": "i", "ids-only": true}));
    assert!(ids["rows"][0]["index_percent"].as_f64().unwrap() > number("index_percent"));

    let request = json!({"experiment": "explored", "index": "i", "class": "H", "shape": "SINGLE",
        "repeats": 25, "count": 40, "seed": 1});
    let explored = answer(&workspace, &request);
    let row = &explored["rows"][0];
    assert_eq!(members(row), ["postings", "total_percent", "unique_percent", "unique_share"]);
    let (total, unique) = (row["total_percent"].as_f64().unwrap(), row["unique_percent"].as_f64().unwrap());
    assert!(row["postings"] == 60_000 && unique > 0.0 && unique <= total, "{explored}");
}

#[test]
fn codecs_are_measured() {
    let workspace = workspace_with_index();
    for (one_byte, index) in [(json!(50), Value::Null), (Value::Null, json!("i"))] {
        let request = json!({"experiment": "codecs", "quick": true, "codec": "vbyte-delta", "kernel": "scalar",
            "one-byte": one_byte, "index": index});
        let answer = answer(&workspace, &request);
        let rows = answer["rows"].as_array().unwrap();
        let has = |dataset: &str| rows.iter().any(|row| row["dataset"] == dataset);
        assert_eq!((has("real"), has("uniform")), (index == "i", index == "i"), "{answer}");
        assert!(!rows.is_empty() && rows.iter().all(|row| row["k"].is_number() && row["kernel"] == "scalar"));
    }
    for (codec, sums) in [("memcpy", 3), ("vbyte", 1), ("vbyte-delta", 2)] {
        let request = json!({"experiment": "codecs", "quick": true, "sums": true, "kernel": "scalar",
            "codec": codec});
        let rows = answer(&workspace, &request)["rows"].take();
        assert_eq!(rows.as_array().unwrap().len(), sums, "{rows}");
        let is_sum = |row: &Value| row["k"].is_null() && row["codec"] == codec;
        assert!(rows.as_array().unwrap().iter().all(is_sum), "{rows}");
    }
}

#[test]
fn eviction_policies_are_compared() {
    let workspace = workspace_with_index();
    workspace.file("q.txt", "t0000001\n+t0000002 +t0000003\nt0000004\n");
    for workload in ["cyclic", "rp50"] {
        let request = json!({"experiment": "policies", "index": "i", "queries": "q.txt", "ratio": 2,
            "workload": workload});
        let answer = answer(&workspace, &request);
        let rows = answer["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 3);
        for row in rows {
            let rate = |name: &str| row[name].as_f64().unwrap();
            assert!(rate("hit_rate") <= rate("belady_hit_rate") && rate("belady_hit_rate") <= 1.0, "{row}");
        }
    }
}

#[test]
fn events_are_counted_during_the_measured_repetition() {
    let workspace = workspace_with_index();
    let pipes = ["control", "ack"].map(|name| {
        workspace.fifo(name);
        workspace.path(name)
    });
    let cell = json!({"index": "i", "queries": {"texts": ["t0000001"]}, "process": {"perf": pipes}});
    // As `perf stat` does, keeps both pipes open.
    let [mut control, mut ack] = pipes.map(|pipe| File::options().read(true).write(true).open(pipe).unwrap());
    let commands = thread::spawn(move || {
        let commands = ["enable\n", "disable\n"].map(|expected| {
            let mut command = vec![0; expected.len()];
            control.read_exact(&mut command).unwrap();
            ack.write_all(b"ack\n\0").unwrap();
            String::from_utf8(command).unwrap()
        });
        // Open until the program has ended: it may open the pipe only now.
        (commands, ack)
    });
    assert_eq!(answer(&workspace, &cell)["queries"], 1);
    assert_eq!(commands.join().unwrap().0, ["enable\n", "disable\n"]);
}

#[test]
fn intersections_of_generated_queries_are_measured() {
    let workspace = workspace_with_index();
    let sizes = json!({"experiment": "query-file", "docs": 2000, "postings": 60000, "vocabulary": 3000,
        "count": 50});
    let lines = answer(&workspace, &sizes)["lines"].take();
    let lines: Vec<&str> = lines.as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    assert!(lines.len() == 50 && lines.iter().all(|line| (2..=4).contains(&line.split(' ').count())));
    workspace.file("q.txt", lines.join("\n"));
    let request = json!({"experiment": "intersect", "quick": true, "sweep": "codec", "work": "w",
        "threads": 2, "index": "i", "queries": "q.txt", "limit": 10});
    let first = answer(&workspace, &request);
    let rows = first["rows"].as_array().unwrap();
    let of = |sweep: &str| rows.iter().filter(|row| row["sweep"] == sweep).count();
    assert!(of("codec") > 0 && of("real") > 0 && of("codec") + of("real") == rows.len(), "{first}");
    let expected = ["sweep", "x", "label", "algorithm", "threads", "queries", "seconds", "cpu_seconds"];
    assert!(rows.iter().all(|row| members(row)[..8] == expected), "{first}");
    // Two of the queries have several terms, all of which are in the index.
    let log = "1\tt0000001 t0000040\n2\tt0000002\n3\tt0000003 nothing\nt0000010 t0000003 t0000010 t0000500\n";
    workspace.file("log.tsv", log);
    let request = json!({"experiment": "intersect", "quick": true, "work": "w", "threads": 4, "index": "i",
        "queries": "log.tsv"});
    let rows = answer(&workspace, &request)["rows"].take();
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 3 * 5);
    assert!(rows.iter().all(|row| row["queries"] == 2 && row["found"].as_u64() > Some(0)), "{rows:?}");
    assert!(rows.iter().any(|row| row["label"] == "bp256-delta"));
    assert_eq!(workspace.names_in("w").len(), 0, "the lists are removed");
}

#[test]
fn sweeps_of_intersections_vary_a_parameter() {
    let workspace = Workspace::new();
    for sweep in ["threads", "ratio", "intersection", "lists", "codec", "memory"] {
        let request = json!({"experiment": "intersect", "quick": true, "work": "w", "threads": 4,
            "sweep": sweep});
        let answer = answer(&workspace, &request);
        let rows = answer["rows"].as_array().unwrap();
        assert!(rows.len() >= 3 * 5 && rows.iter().all(|row| row["sweep"] == sweep), "{answer}");
        let number = |x: f64, algorithm: &str, name: &str| {
            let found = rows.iter().find(|row| row["x"] == x && row["algorithm"] == algorithm);
            found.unwrap()[name].as_u64().unwrap()
        };
        match sweep {
            "threads" => {
                let pages = |algorithm| number(1.0, algorithm, "pages_read");
                let skipped = |algorithm| number(1.0, algorithm, "pages_skipped");
                assert!(pages("sl") < pages("bl") && skipped("bl") == 0 && skipped("sl") > 0);
                assert!(pages("zz") == pages("sl") && pages("bf") < pages("sl"));
            }
            "memory" => assert_eq!(number(100.0, "direct", "pages_read"), 0),
            _ => {}
        }
    }
}

#[test]
fn phases_of_indexing_are_measured_and_the_index_is_removed() {
    let workspace = Workspace::new();
    workspace.file("w/other", "");
    let request = |docs: u32| {
        json!({"experiment": "indexing", "dir": "w", "docs": docs, "postings": 30 * docs, "vocabulary": 3000,
            "codec": "pfor256-delta"})
    };
    let answer = answer(&workspace, &request(2000));
    let rows = answer["rows"].as_array().unwrap();
    let phases: Vec<_> = rows.iter().map(|row| row["phase"].as_str().unwrap()).collect();
    assert_eq!(phases, ["ingest", "sort", "transform", "flush"]);
    for row in rows {
        assert_eq!(members(row), ["phase", "seconds", "share", "indexed_postings"]);
        assert!(row["indexed_postings"].as_u64().unwrap() > 2000, "{row}");
    }
    assert_eq!(workspace.names_in("w"), ["other"]);

    for signal in ["-INT", "-TERM"] {
        let (mut child, mut input) = workspace.spawn_with_input("cell");
        input.write_all(request(10_000_000).to_string().as_bytes()).unwrap();
        drop(input);
        wait_until(&mut child, || workspace.names_in("w").len() == 2);
        send_signal(&child, signal);
        let output = wait_for_output(child);
        assert_failed(&output, 130, "interrupted");
        assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1);
        assert_eq!(workspace.names_in("w"), ["other"]);
    }
}

#[test]
fn a_disk_that_seeks_is_mounted_until_the_input_ends_or_a_signal_arrives() {
    let workspace = workspace_with_index();
    workspace.fails_in_one_line(1, "seek-disk none", "cannot read none");
    for signal in [None, Some("-TERM")] {
        let (mut child, input) = workspace.spawn_with_input("seek-disk i i");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        if line.is_empty() {
            // Not permitted in most containers.
            return assert_failed(&wait_for_output(child), 1, "cannot be emulated");
        }
        let mounted: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(members(&mounted), ["directories", "delay"]);
        let directories = mounted["directories"].as_array().unwrap();
        assert_eq!(directories.len(), 2);
        let mut cell = json!({"index": "i", "queries": {"texts": ["t0000001"]}, "seconds": 0});
        let expected = answer(&workspace, &cell)["checksum"].take();
        cell["index"] = directories[1].clone();
        cell["process"] = json!({"throttle": mounted["delay"]});
        assert_eq!(answer(&workspace, &cell)["checksum"], expected);
        let code = match signal {
            Some(signal) => {
                send_signal(&child, signal);
                130
            }
            None => {
                drop(input);
                0
            }
        };
        assert_eq!(wait_for_output(child).status.code(), Some(code));
        assert!(!Path::new(mounted["delay"].as_str().unwrap()).parent().unwrap().exists());
    }
}

#[test]
fn the_examples_of_the_document_have_the_members_of_the_answers() {
    let workspace = workspace_with_index();
    let lines: Vec<String> = (1..40).map(|term| format!("t{term:07} t{:07}\n", term + 1)).collect();
    workspace.file("q.txt", lines.concat());
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/experiments/cell.md");
    let text = fs::read_to_string(page).unwrap();
    let examples = text.split("## Examples").nth(1).unwrap().split("```").nth(1).unwrap();
    let lines: Vec<Value> = examples.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let mut names = Vec::new();
    for example in lines.chunks(2) {
        names.push(example[0]["experiment"].as_str().unwrap());
        assert_has_members(&answer(&workspace, &example[0]), &example[1]);
    }
    let experiments = ["queries", "plan", "draw", "explored", "sizes", "codecs", "intersect", "indexing"];
    assert_eq!(names, [&experiments[..], &["policies", "query-file", "machine"]].concat());
}

/// Checks that a result has all members of an example, also those of the objects and rows in it.
fn assert_has_members(result: &Value, example: &Value) {
    match example {
        Value::Object(members) => {
            for (name, example) in members {
                assert_has_members(result.get(name).unwrap_or_else(|| panic!("{name}: {result}")), example);
            }
        }
        Value::Array(rows) if rows.first().is_some_and(Value::is_object) => {
            assert_has_members(&result[0], &rows[0]);
        }
        _ => {}
    }
}

#[test]
fn wrong_requests_and_missing_indexes_give_one_line() {
    let workspace = workspace_with_index();
    // Members that an experiment needs, and those that are wrong.
    let needed = |experiment: &str| match experiment {
        "queries" => r#", "index": "i", "queries": {"texts": ["a"]}"#,
        "draw" => r#", "index": "i", "class": "H", "shape": "AND", "seed": 1"#,
        "policies" => r#", "index": "i", "queries": "none", "workload": "scan""#,
        "query-file" | "indexing" => r#", "postings": 1, "vocabulary": 1"#,
        _ => "",
    };
    let engine = r#""cell": {"index": "i", "queries": {"texts": ["a"]}, "reads": {"by": "engine"}}"#;
    let unknown = r#""cell": {"index": "i", "queries": {"texts": ["a"]}, "x": 1}"#;
    for (code, experiment, members, words) in [
        (2, "frob", r#""x": 1"#, "there is no `experiment` \"frob\"; there are queries, plan, "),
        (2, "machine", r#""a\nb": 1"#, "the experiment `machine`: unknown field `a b`"),
        (2, "queries", r#""hits": 1"#, "the experiment `queries`: unknown field `hits`"),
        (2, "queries", r#""threads": 0"#, "`threads` must be 1 or more"),
        (2, "draw", r#""count": 3"#, "missing field `repeats`"),
        (2, "draw", r#""count": 3, "repeats": 100"#, "`repeats` must be 0 to 99"),
        (2, "draw", r#""count": 3, "repeats": "x""#, "`repeats`: invalid type"),
        (2, "draw", r#""count": 0, "repeats": 0"#, "`count` must be 1 to"),
        (2, "explored", r#""class": "X""#, "`class`: unknown variant `X`"),
        (2, "plan", r#""slack": -1"#, "`slack`: invalid value"),
        (2, "plan", engine, "`reads` has no `dram`"),
        (2, "plan", unknown, "`cell`: unknown field `x`"),
        (2, "sizes", r#""index": 3"#, "`index`: invalid type"),
        (1, "sizes", r#""index": "none""#, "none"),
        (2, "codecs", r#""one-byte": 101"#, "`one-byte` must be 0 to 100"),
        (2, "codecs", r#""codec": "zip""#, "unknown codec `zip`"),
        (2, "codecs", r#""kernel": "mmx""#, "no kernel is called `mmx`"),
        (1, "codecs", r#""quick": true, "index": "none""#, "none"),
        (2, "policies", r#""ratio": 0"#, "`ratio` is 0"),
        (1, "policies", r#""ratio": 2"#, "cannot read none"),
        (2, "intersect", r#""sweep": "frob""#, "`sweep`: unknown variant `frob`"),
        (2, "intersect", r#""index": "i""#, "`index` and `queries`"),
        (2, "intersect", r#""short": 0"#, "`short` is 0"),
        (2, "intersect", r#""quick": true, "long": 99"#, "`long` is 99"),
        (2, "intersect", r#""threads": 0"#, "`threads` is 0"),
        (2, "intersect", r#""limit": 0"#, "`limit` is 0"),
        (2, "query-file", r#""docs": 0, "count": 1"#, "--docs 0: an index has 1 to"),
        (2, "indexing", r#""dir": "w", "docs": 1, "codec": "x""#, "`codec`: no codec is called x"),
    ] {
        let needed = needed(experiment);
        let request = format!(r#"{{"experiment": "{experiment}"{needed}, {members}}}"#);
        assert_fails_in_one_line(&workspace, code, &request, words);
    }
    for (code, request, words) in [
        (2, "{", "the cell is no valid JSON"),
        (2, "[]", "the cell is no valid JSON"),
        (2, r#"{"experiment": 3}"#, "there is no `experiment` 3"),
        (2, r#"{"index": "i"}"#, "the experiment `queries`: missing field `queries`"),
        (1, r#"{"index": "none", "queries": {"texts": ["a"]}}"#, "none"),
    ] {
        assert_fails_in_one_line(&workspace, code, request, words);
    }
}

fn assert_fails_in_one_line(workspace: &Workspace, code: i32, request: &str, words: &str) {
    let output = run_request(workspace, request);
    assert_failed(&output, code, words);
    assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1, "{request}");
    assert!(output.stdout.is_empty(), "{request}");
}
