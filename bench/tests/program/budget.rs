//! The memory budget of batches in all read modes, enforced from outside: the command runs in a memory
//! control group of 1.2 times the budget.

use crate::workspace::control_group::ControlGroup;
use crate::workspace::program;
use std::fs;
use std::process::Output;

fn bench(arguments: &[&str]) -> Output {
    program(arguments.iter().copied()).output().unwrap()
}

/// The words of a batch without the name of its run, which follows.
fn batch(index: &str, queries: &str) -> Vec<String> {
    let words = ["batch", index, "--syntax", "query", "--queries", queries, "-k", "50", "--run"];
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
    assert_ok(&bench(&[&["generate"][..], &size, &["--out", &index]].concat()));
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
    assert_ok(&bench(
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
    let rejected = bench(&["stats", &index, "--dram", "8M"]);
    let error = String::from_utf8_lossy(&rejected.stderr);
    assert_eq!(rejected.status.code(), Some(2), "{error}");
    assert!(error.lines().last().unwrap().starts_with("tierdex: a budget of 8M of DRAM is too small"));
    let rejected = bench(&["batch", &index, "--queries", &queries, "--run", &free, "--dram", "8M"]);
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
    assert_ok(&bench(&[&["generate"][..], &size, &["--out", &index]].concat()));
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
        assert_ok(&bench(&words_free.collect::<Vec<_>>()));
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
