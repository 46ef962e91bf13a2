//! `tierdex advise`: table, JSON and plot, and its errors.

use crate::workspace::Workspace;

/// A workspace with an index of posting lists of several pages, and a log of queries.
fn workspace_with_log() -> Workspace {
    let workspace = Workspace::new();
    let word = |number: usize, of: &str, part: usize| match number.wrapping_mul(0x9e37_79b9) >> 8 & part {
        0 => of.to_string(),
        _ => String::new(),
    };
    let line = |n: usize| {
        let (cat, dog, bird) = (word(n, "cat", 1), word(n + 1, "dog", 2), word(n + 2, "bird", 4));
        format!("{{\"id\":\"{n}\",\"text\":\"all {cat} {dog} {bird}\"}}\n")
    };
    workspace.file("docs.jsonl", (0..80_000).map(line).collect::<String>());
    workspace.ok("index docs.jsonl --out i");
    let texts = ["cat", "+dog +bird", "bird", "cat dog", "dog", "+cat +all"];
    let line = |number: usize| format!("q{number}\t{}\n", texts[number % texts.len()]);
    workspace.file("log.tsv", (0..60).map(line).collect::<String>());
    workspace
}

#[test]
fn speed_is_forecast_for_each_size() {
    let workspace = workspace_with_log();
    let advise = "advise i --queries log.tsv --syntax query --threads 1 --no-ids --sizes 5,50,400%,64K";
    let files = || {
        let files = std::fs::read_dir(workspace.path("i")).unwrap().map(|file| file.unwrap());
        let mut files: Vec<_> =
            files.map(|file| (file.file_name(), std::fs::read(file.path()).unwrap())).collect();
        files.sort();
        files
    };
    let before = files();
    let found = workspace.run_for_json(&format!("{advise} --format json"));
    assert_eq!((found["queries"].as_u64(), found["sampled_share"].as_f64()), (Some(30), Some(1.0)));
    let sizes = found["sizes"].as_array().unwrap();
    let names: Vec<&str> = sizes.iter().map(|size| size["size"].as_str().unwrap()).collect();
    assert_eq!(names, ["5%", "50%", "400%", "64K"]);
    let of = |size: usize, name: &str| sizes[size][name].as_f64().unwrap();
    assert!(of(0, "misses_per_query") > of(1, "misses_per_query"), "{found}");
    assert_eq!((of(2, "misses_per_query"), of(3, "cache_bytes")), (0.0, 65536.0), "{found}");
    assert!(of(0, "queries_per_second") <= of(2, "queries_per_second"), "{found}");
    assert!((0..4).all(|size| of(size, "p99_us") > 0.0 && of(size, "share_of_memory") > 0.0), "{found}");

    // The misses do not depend on measurements, and the index is as before.
    let again = workspace.run_for_json(&format!("{advise} --format json"));
    for size in 0..4 {
        assert_eq!(again["sizes"][size]["misses_per_query"], sizes[size]["misses_per_query"]);
        assert_eq!(again["sizes"][size]["reads_per_query"], sizes[size]["reads_per_query"]);
    }
    assert_eq!(files(), before);

    let said = workspace.ok(&format!("{advise} --plot plot.svg"));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 6, "{said}");
    assert!(lines[0].contains("misses/query") && lines[0].ends_with("an index in memory"), "{said}");
    assert!(lines[4].trim_start().starts_with("64K") && lines[4].contains("0.00"), "{said}");
    assert!(lines[5].contains("30 queries counted") && lines[5].contains("of all pages"), "{said}");
    let plot = std::fs::read_to_string(workspace.path("plot.svg")).unwrap();
    assert!(plot.starts_with("<svg ") && plot.ends_with("</svg>\n"), "{plot}");
    let count = |what: &str| plot.matches(what).count();
    assert_eq!((count("<polyline "), count("<circle "), count(">400%<")), (2, 8, 1), "{plot}");
}

#[test]
fn errors_are_one_line() {
    let workspace = Workspace::with_index("");
    workspace.file("log.tsv", "q1\tcat\nq2\tdog\n");
    workspace.file("empty.tsv", "\n");
    workspace.file("bad.tsv", "q1\tcat AND\nq2\tcat AND\n");
    let advise = "advise i --queries log.tsv --syntax query";
    workspace.fails(1, "advise i --queries none.tsv", "none.tsv");
    workspace.fails(1, "advise i --queries empty.tsv", "empty.tsv: no queries; each line is an id, a tab");
    workspace.fails(1, "advise i --queries bad.tsv --syntax query", "bad.tsv, query q1: ");
    let output = workspace.run("advise i --queries bad.tsv --syntax query --on-error skip");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.lines().count() == 3 && said.contains("bad.tsv: no query was answered; 2 failed"), "{said}");
    workspace.file("garbage.tsv", [0u8, 159, 146, 150, 10].repeat(100));
    workspace.fails(1, "advise i --queries garbage.tsv", "garbage.tsv");
    workspace.fails(2, &format!("{advise} --dram 1M"), "memory is too little for this index: at least");
    workspace.fails(2, &format!("{advise} --read-costs 1,2"), "four increasing numbers");
    workspace.fails(2, "advise i --queries -", "--queries -: the log is read twice; give a file");
    workspace.fails(2, "advise i --queries .", "the log is read twice");
    for sizes in ["0", "5,x", "", "5,,10"] {
        workspace.fails(2, &format!("{advise} --sizes {sizes}"), "a size is a percentage");
    }
    let many = vec!["5"; 33].join(",");
    workspace.fails(2, &format!("{advise} --sizes {many}"), "33 sizes, and at most 32");
    workspace.fails(2, &format!("{advise} --plot log.tsv"), "--queries and --plot name the same file");
    workspace.fails(2, &format!("{advise} --plot i/plot.svg"), "in the directory of the index");
    workspace.fails(1, &format!("{advise} --plot nowhere/plot.svg"), "cannot write nowhere/plot.svg");
    workspace.fails(1, "advise nowhere --queries log.tsv", "nowhere: no such directory");
    workspace.fails(1, "advise . --queries log.tsv", ". holds no tierdex index");
}

#[test]
fn a_log_of_one_query_is_counted_without_a_warm_cache() {
    let workspace = Workspace::with_index("");
    workspace.file("log.tsv", "q1\tcat\n");
    let said = workspace.ok("advise i --queries log.tsv --threads 1 --sizes 50");
    assert!(said.contains("1 query counted"), "{said}");
}
