//! The memory budget, enforced from outside: the command runs in a memory control group of 1.2 times the
//! budget.

mod workspace;

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tierdex::io::Size;
use workspace::program;

/// A memory control group, version 1 or 2; removed on drop.
struct ControlGroup {
    folder: PathBuf,
    events: &'static str,
}

impl ControlGroup {
    /// `None` if the system does not permit it.
    fn new(name: &str, limit: u64) -> Option<ControlGroup> {
        let name = format!("tierdex-{name}-{}", std::process::id());
        let versions = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.oom_control"),
            ("/sys/fs/cgroup", "memory.max", "memory.events"),
        ];
        versions.into_iter().find_map(|(root, file, events)| {
            let folder = Path::new(root).join(&name);
            fs::create_dir(&folder).ok()?;
            let group = ControlGroup { folder, events };
            fs::write(group.folder.join(file), limit.to_string()).ok()?;
            Some(group)
        })
    }

    /// Runs the command in the group.
    fn run(&self, arguments: &[&str]) -> Output {
        let script = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.folder.display());
        let mut command = Command::new("sh");
        let program = program(arguments.iter().copied());
        command.args(["-c", &script, "sh"]).arg(program.get_program()).args(program.get_args());
        command.output().unwrap()
    }

    /// Number of processes that were killed for exceeding the limit.
    fn kills(&self) -> u64 {
        let text = fs::read_to_string(self.folder.join(self.events)).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        line.map_or(0, |number| number.trim().parse().unwrap())
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

fn tierdex(arguments: &[&str]) -> Output {
    program(arguments.iter().copied()).output().unwrap()
}

/// The words of a batch without the name of its run, which follows.
fn batch(index: &str, queries: &str) -> Vec<String> {
    let words =
        ["tierdex-bench", "batch", index, "--syntax", "query", "--queries", queries, "-k", "50", "--run"];
    words.map(str::to_string).to_vec()
}

fn assert_ok(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_batch_within_a_budget_has_the_same_run_and_is_not_killed() {
    const DRAM: u64 = 24 << 20;
    const CACHE: u64 = 4 << 20;
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (index, queries, free, bound) = (path("index"), path("queries"), path("free"), path("bound"));
    let size = ["--docs", "400000", "--postings", "40000000", "--vocabulary", "20000"];
    assert_ok(&tierdex(&[&["tierdex-bench", "generate"][..], &size, &["--out", &index]].concat()));
    let lines = (0..150).map(|i| {
        let term = |j: u32| format!("t{:07}", 1 + (i * 7 + j * 31) % (20 + 100 * j));
        let query = match i % 5 {
            0 => term(0),
            1 => format!("+{} +{}", term(0), term(1)),
            2 => format!("{} {} {}", term(1), term(2), term(3)),
            // Large queries, whose buffers must not stay allocated.
            3 => (0..24).map(term).collect::<Vec<_>>().join(" "),
            _ => format!("+({} {}) +({} {})", term(40), term(50), term(1), term(60)),
        };
        format!("{i}\t{query}\n")
    });
    fs::write(&queries, lines.collect::<String>()).unwrap();
    let ask = |run: &str| -> Vec<String> { [batch(&index, &queries), vec![run.to_string()]].concat() };
    let words = ask(&free);
    assert_ok(&tierdex(
        &[&words.iter().map(String::as_str).collect::<Vec<_>>()[..], &["--mode", "base"]].concat(),
    ));
    let (dram, cache) = (DRAM.to_string(), format!("dram:{CACHE}"));
    let shared = format!("file:/dev/shm/tierdex-budget-{}:{CACHE}", std::process::id());
    // With the cache outside the budget, inside it, and in another region together with norms and page
    // checksums.
    for (limit, tier, flags) in [
        (DRAM + DRAM / 5 + CACHE, "dram", &["--cache", &cache][..]),
        (DRAM + DRAM / 5, "disk", &["--threads", "2", "--count"][..]),
        (DRAM + DRAM / 5 + CACHE + (4 << 20), "disk", &["--cache", &shared][..]),
    ] {
        let Some(group) = ControlGroup::new("budget", limit) else {
            eprintln!("skipped: no permission to create a memory control group");
            break;
        };
        let words = ask(&bound);
        let words = words.iter().map(String::as_str).chain(flags.iter().copied());
        let words: Vec<&str> = words.chain(["--dram", &dram, "--meta-tier", tier, "--stats"]).collect();
        let report = assert_ok(&group.run(&words));
        assert!(report.contains(&format!("of {DRAM}")) && report.contains("hit rate"), "{report}");
        let tiers =
            if tier == "disk" { "dictionary and skip data on disk" } else { "skip data and norms on dram" };
        assert!(report.contains(tiers), "{report}");
        let row = |name: &str| report.lines().find(|line| line.contains(name)).unwrap_or_default();
        for name in ["  norms", "  page checksums"] {
            assert_eq!(row(name).contains("(in file:"), flags.contains(&shared.as_str()), "{report}");
        }
        assert_eq!(group.kills(), 0);
        assert!(fs::read(&bound).unwrap() == fs::read(&free).unwrap(), "the run differs: {report}");
    }
    // Mapped files: their pages are reclaimed, and the bits of verified pages are counted.
    if let Some(group) = ControlGroup::new("mapped", DRAM + DRAM / 5) {
        let words = ask(&bound);
        let flags = ["--mode", "base", "--dram", &dram, "--meta-tier", "disk", "--stats"];
        let words: Vec<&str> = words.iter().map(String::as_str).chain(flags).collect();
        let report = assert_ok(&group.run(&words));
        assert!(report.contains("  verified pages") && report.contains("mapped files"), "{report}");
        assert_eq!(group.kills(), 0);
        assert!(fs::read(&bound).unwrap() == fs::read(&free).unwrap(), "the run differs: {report}");
    }
    let rejected = tierdex(&["stats", &index, "--dram", "8M"]);
    let error = String::from_utf8_lossy(&rejected.stderr);
    assert_eq!(rejected.status.code(), Some(2), "{error}");
    assert!(error.lines().last().unwrap().starts_with("tierdex: a budget of 8M of DRAM is too small"));
    let rejected = tierdex(&["batch", &index, "--queries", &queries, "--run", &free, "--dram", "8M"]);
    let error = String::from_utf8_lossy(&rejected.stderr);
    assert!(rejected.status.code() == Some(2) && error.lines().count() == 1, "{error}");
    assert!(error.contains("; `tierdex stats"), "{error}");
}

#[test]
fn queries_of_many_terms_are_answered_or_rejected_within_a_budget() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (index, run) = (path("index"), path("run"));
    let size = ["--docs", "200000", "--postings", "20000000", "--vocabulary", "20000"];
    assert_ok(&tierdex(&[&["tierdex-bench", "generate"][..], &size, &["--out", &index]].concat()));
    // Enough queries for two threads, and the run without a budget.
    let queries = |name: &str, terms: usize, (prefix, operator): (&str, &str)| {
        let term = |query: usize, term: usize| format!("{operator}t{:07}", 1 + 10 * query + term);
        let line = |query| {
            let terms: Vec<String> = (0..terms).map(|number| term(query, number)).collect();
            format!("{query}\t{prefix}{}\n", terms.join(" "))
        };
        fs::write(path(name), (0..6).map(line).collect::<String>()).unwrap();
        let words = batch(&index, &path(name));
        let free = path(&format!("{name}-free"));
        let words_free = words.iter().chain([&free]).map(String::as_str).chain(["--mode", "base"]);
        assert_ok(&tierdex(&words_free.collect::<Vec<_>>()));
        (words, fs::read(free).unwrap())
    };
    let usual = [queries("usual-any", 32, ("", "")), queries("usual-all", 32, ("", "+"))];
    let many = [
        queries("any", 1020, ("", "")),
        queries("all", 1020, ("", "+")),
        queries("without", 1020, ("t0019000 ", "-")),
    ];
    let check = |(words, free): &(Vec<String>, Vec<u8>), limit: u64, flags: &[&str]| {
        let Some(group) = ControlGroup::new("many", limit) else {
            eprintln!("skipped: no permission to create a memory control group");
            return true;
        };
        let words = words.iter().map(String::as_str).chain([&*run, "--threads", "2"]);
        let output = group.run(&words.chain(flags.iter().copied()).collect::<Vec<_>>());
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(group.kills(), 0, "{flags:?} {error}");
        match output.status.code() {
            Some(0) => assert!(fs::read(&run).unwrap() == *free, "{flags:?}: the run differs"),
            code => {
                assert_eq!((code, error.lines().count()), (Some(1), 1), "{flags:?} {error}");
                assert!(error.contains(", query ") && error.contains("ask for fewer terms"), "{error}");
            }
        }
        output.status.success()
    };
    const CACHE: u64 = 4 << 20;
    for mode in ["base", "direct"] {
        for (tier, least) in [("disk", 16), ("dram", 24)] {
            for (budget, queries) in [(least, &usual[..]), (least, &many), (128, &many)] {
                let dram: u64 = budget << 20;
                let (text, cache) = (dram.to_string(), format!("dram:{CACHE}"));
                let mut flags = vec!["--mode", mode, "--meta-tier", tier, "--dram", &text];
                let mut limit = dram + dram / 5;
                if budget == 128 && mode == "direct" {
                    flags.extend(["--cache", &cache]);
                    limit += CACHE;
                }
                for query in queries {
                    let answered = check(query, limit, &flags);
                    assert!(answered || queries.len() > usual.len() && budget == least, "{flags:?}");
                }
            }
        }
    }
}

/// Printing hits keeps to the smallest accepted budget, with a giant document, long titles and ids, all
/// matches, as table, JSON and run.
#[test]
fn printing_hits_keeps_to_the_smallest_accepted_budget() {
    const GIANT: usize = 40 << 20;
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (index, input, queries, run) = (path("index"), path("docs.jsonl"), path("queries"), path("run"));
    let mut docs = BufWriter::new(fs::File::create(&input).unwrap());
    for number in 0..12_000 {
        let (filler, title) =
            ("i".repeat(if number % 3 == 0 { 4_000 } else { 10 }), "t\\u0001 ".repeat(number % 200));
        let text = format!("fox number{} and more words {}", number % 100, number * 7 % 1000);
        writeln!(docs, "{{\"id\":\"{filler}{number}\",\"title\":\"{title}\",\"text\":\"{text}\"}}").unwrap();
    }
    let (words, title) = ("quick brown fox ".repeat(GIANT / 16), "giant ".repeat(GIANT / 60));
    writeln!(docs, "{{\"id\":\"giant\",\"title\":\"{title}\",\"text\":\"{words}\"}}").unwrap();
    docs.into_inner().unwrap();
    assert_ok(&tierdex(&["index", &input, "--out", &index, "--memory", "256M"]));
    fs::write(&queries, "1\tfox\n2\tnumber7 words\n3\tgiant\n").unwrap();
    let search = |k: &'static str, format: &'static str| {
        vec!["search", &index, "fox", "-k", k, "--format", format, "--count"]
    };
    let batch = vec!["batch", &index, "--queries", &queries, "--run", &run, "-k", "5000"];
    let commands = [search("1", "json"), search("20000", "json"), search("20000", "table"), batch];
    for command in commands {
        let with = |dram: &str| -> Vec<String> {
            [&command[..], &["--dram", dram]].concat().iter().map(|word| word.to_string()).collect()
        };
        let words = with("2M");
        let rejected = tierdex(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let error = String::from_utf8_lossy(&rejected.stderr);
        let least = error.split_once("too small: ").and_then(|(_, rest)| rest.split(' ').next());
        let least: Size = least.unwrap_or_else(|| panic!("{error}")).parse().unwrap();
        let least = least.of(0);
        assert_eq!(error.lines().count(), 1, "{error}");
        // Buffers of the threads for 20,000 hits, but far less than the giant document.
        assert!(least < 18 << 20, "{least} bytes are needed for {command:?}");
        let Some(group) = ControlGroup::new("shown", least + least / 5) else {
            eprintln!("skipped: no permission to create a memory control group");
            return;
        };
        let words = with(&least.to_string());
        let output = group.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && group.kills() == 0, "{words:?}: {:?} {error}", output.status);
        if command.contains(&"json") {
            let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            let hits = answer["hits"].as_array().unwrap();
            assert_eq!(
                (answer["total"].as_u64(), hits.len()),
                (Some(12_001), if command[4] == "1" { 1 } else { 12_001 })
            );
            assert!(hits.iter().all(|hit| hit["snippet"].as_str().unwrap().contains("**fox**")));
        }
    }
}

/// A phrase in a document of millions of words takes memory for the positions of one document, not of a
/// block of such documents.
#[test]
fn a_phrase_in_a_giant_document_fits_a_budget() {
    const DRAM: u64 = 160 << 20;
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (index, input) = (path("index"), path("giant.txt"));
    fs::write(&input, "quick brown fox ".repeat(2_000_000)).unwrap();
    assert_ok(&tierdex(&["index", &input, "--out", &index, "--positions", "--store", "none"]));
    let Some(group) = ControlGroup::new("phrase", DRAM + DRAM / 5) else {
        eprintln!("skipped: no permission to create a memory control group");
        return;
    };
    let dram = DRAM.to_string();
    let output =
        group.run(&["search", &index, "\"quick brown\"", "--dram", &dram, "--format", "json", "--count"]);
    assert_ok(&output);
    assert_eq!(group.kills(), 0);
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"total\":1,"));
}

/// Without --memory, indexing takes what the control group leaves.
#[test]
fn the_default_memory_of_indexing_follows_the_control_group() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (index, input) = (path("index"), path("docs.jsonl"));
    let mut docs = BufWriter::new(fs::File::create(&input).unwrap());
    for number in 0..450_000u32 {
        let word = |at: u32| {
            format!("w{} ", number.wrapping_mul(2_654_435_761).rotate_left(at) % (1000 << (at % 8)))
        };
        let text: String = (0..60).map(word).collect();
        writeln!(docs, "{{\"id\":\"{number}\",\"text\":\"{text}\"}}").unwrap();
    }
    docs.into_inner().unwrap();
    let Some(group) = ControlGroup::new("index", 90 << 20) else {
        eprintln!("skipped: no permission to create a memory control group");
        return;
    };
    let command = ["index", &input, "--out", &index, "--replace", "--positions"];
    assert_ok(&group.run(&command));
    assert_eq!(group.kills(), 0);
    // What the default was before is too much for this group, so that the test can fail.
    assert!(!group.run(&[&command[..], &["--memory", "1G"]].concat()).status.success());
    assert!(group.kills() > 0);
}

#[test]
fn stats_and_search_name_the_same_smallest_budget_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (index, input) = (path("index"), path("docs.jsonl"));
    fs::write(&input, "{\"text\":\"cat\"}\n").unwrap();
    assert_ok(&tierdex(&["index", &input, "--out", &index]));
    let least = |arguments: &[&str]| {
        let output = tierdex(&[arguments, &["--dram", "1M"]].concat());
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), error.lines().count()), (Some(2), 1), "{error}");
        let rest = error.strip_prefix("tierdex: a budget of 1M of DRAM is too small: ").unwrap();
        rest.split(' ').next().unwrap().to_string()
    };
    let (stats, search) = (least(&["stats", &index]), least(&["search", &index, "cat"]));
    assert_eq!(stats, search);
    assert_ok(&tierdex(&["search", &index, "cat", "--dram", &stats]));
    let output = tierdex(&["stats", &index, "--dram", &stats, "--format", "json"]);
    assert_ok(&output);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["dram"], stats.parse::<Size>().unwrap().of(0));
}
