//! The memory budget of cells in the read modes, enforced from outside: the process of a cell runs in a
//! memory control group of 1.2 times the budget.

use crate::workspace::{Workspace, assert_succeeded, control_group::ControlGroup, program_command};
use serde_json::{Value, json};
use std::{fs, fs::File, path::PathBuf, process::Command, process::Output};

const CACHE_BYTES: u64 = 4 << 20;

/// Queries of a file, over an index.
struct Queries {
    index: PathBuf,
    file: PathBuf,
}

impl Queries {
    fn new(workspace: &Workspace, name: &str, lines: impl Iterator<Item = String>) -> Queries {
        let file = workspace.file(name, lines.map(|line| line + "\n").collect::<String>());
        Queries { index: workspace.path("index"), file }
    }

    /// Measures a cell by `command`.
    fn measure(&self, mut command: Command, reads: &Value, threads: usize) -> Output {
        let cell = json!({
            "index": self.index,
            "queries": { "file": self.file },
            "reads": reads,
            "k": 50,
            "count": true,
            "threads": threads,
        });
        let input = self.file.with_added_extension("cell");
        fs::write(&input, cell.to_string()).unwrap();
        command.stdin(File::open(&input).unwrap()).output().unwrap()
    }

    /// The checksum of the hits, without a budget.
    fn checksum(&self) -> Value {
        let output = self.measure(program_command(["cell"]), &json!({ "by": "searcher" }), 1);
        parse_measurement(&output)["checksum"].clone()
    }
}

fn parse_measurement(output: &Output) -> Value {
    serde_json::from_str(&assert_succeeded(output)).unwrap()
}

#[test]
fn a_cell_within_a_budget_has_the_same_hits_and_is_not_killed() {
    const DRAM_BYTES: u64 = 24 << 20;
    let workspace = Workspace::new();
    workspace.ok("generate --docs 400000 --postings 40000000 --vocabulary 20000 --out index");
    let query = |i: u32| {
        let term = |j: u32| format!("t{:07}", 1 + (i * 7 + j * 31) % (20 + 100 * j));
        match i % 5 {
            0 => term(0),
            1 => format!("+{} +{}", term(0), term(1)),
            2 => format!("{} {} {}", term(1), term(2), term(3)),
            // Large queries, whose buffers must not stay allocated.
            3 => (0..24).map(term).collect::<Vec<_>>().join(" "),
            _ => format!("+({} {}) +({} {})", term(40), term(50), term(1), term(60)),
        }
    };
    let queries = Queries::new(&workspace, "queries", (0..150).map(query));
    let expected = queries.checksum();
    let (dram, cache) = (DRAM_BYTES.to_string(), CACHE_BYTES.to_string());
    let shared = format!("file:/dev/shm/tierdex-budget-{}", std::process::id());
    let engine = |tier: &str| json!({ "by": "engine", "dram": dram, "meta-tier": tier });
    let lists =
        |mode: &str, tier: &str| json!({ "by": "lists", "mode": mode, "dram": dram, "meta-tier": tier });
    // A cache of a given size, and its region.
    let cached = |mut reads: Value, region: &str| {
        (reads["size"], reads["region"]) = (cache.clone().into(), region.into());
        reads
    };
    let with_cache = DRAM_BYTES + CACHE_BYTES;
    // An engine with its cache outside the budget, inside it, and in another region together with norms and
    // page checksums; mapped files, whose pages are reclaimed; and a cache of lists.
    for (limit, threads, reads) in [
        (with_cache, 1, cached(engine("dram"), "dram")),
        (DRAM_BYTES, 2, engine("disk")),
        (with_cache + (4 << 20), 1, cached(engine("disk"), &shared)),
        (DRAM_BYTES, 1, cached(lists("base", "disk"), "dram")),
        (with_cache, 1, cached(lists("hybrid-prefetch", "dram"), "dram")),
        (with_cache + (4 << 20), 2, cached(lists("hybrid-prefetch", "disk"), &shared)),
    ] {
        let Some(group) = ControlGroup::new("budget", limit + DRAM_BYTES / 5) else { return };
        let output = queries.measure(group.command(&["cell"]), &reads, threads);
        assert_eq!(group.kills(), 0, "{reads}");
        let measured = parse_measurement(&output);
        assert_eq!(measured["checksum"], expected, "{reads}");
        assert!(measured["planned_bytes"].as_u64().unwrap() <= DRAM_BYTES, "{reads}: {measured}");
        let engine = measured["engine"].as_str().unwrap();
        assert_eq!(engine == "mapped files", reads["mode"] == "base", "{engine}");
    }
}

#[test]
fn queries_of_many_terms_are_answered_or_rejected_within_a_budget() {
    let workspace = Workspace::new();
    workspace.ok("generate --docs 200000 --postings 20000000 --vocabulary 20000 --out index");
    // Enough queries for two threads, and their hits without a budget.
    let queries = |name: &str, terms: usize, prefix: &str, operator: &str| {
        let term = |query: usize, term: usize| format!("{operator}t{:07}", 1 + 10 * query + term);
        let line = |query: usize| {
            let terms: Vec<String> = (0..terms).map(|number| term(query, number)).collect();
            format!("{prefix}{}", terms.join(" "))
        };
        let queries = Queries::new(&workspace, name, (0..6).map(line));
        let expected = queries.checksum();
        (queries, expected)
    };
    let usual = [queries("usual-any", 32, "", ""), queries("usual-all", 32, "", "+")];
    let many = [
        queries("any", 1020, "", ""),
        queries("all", 1020, "", "+"),
        queries("without", 1020, "t0019000 ", "-"),
    ];
    let check = |(queries, expected): &(Queries, Value), limit: u64, reads: &Value| {
        let Some(group) = ControlGroup::new("many", limit) else { return true };
        let output = queries.measure(group.command(&["cell"]), reads, 2);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(group.kills(), 0, "{reads} {error}");
        match output.status.code() {
            Some(0) => assert_eq!(parse_measurement(&output)["checksum"], *expected, "{reads}"),
            code => {
                assert_eq!((code, error.lines().count()), (Some(1), 1), "{reads} {error}");
                assert!(error.contains("ask for fewer terms"), "{error}");
            }
        }
        output.status.success()
    };
    for mode in ["base", "direct"] {
        for (tier, least) in [("disk", 16), ("dram", 24)] {
            for (budget, queries) in [(least, &usual[..]), (least, &many), (128, &many)] {
                let dram: u64 = budget << 20;
                let mut reads = match mode {
                    "direct" => json!({ "by": "engine" }),
                    mode => json!({ "by": "lists", "mode": mode }),
                };
                (reads["meta-tier"], reads["dram"]) = (tier.into(), dram.to_string().into());
                let mut limit = dram + dram / 5;
                if budget == 128 && mode == "direct" {
                    reads["size"] = CACHE_BYTES.to_string().into();
                    limit += CACHE_BYTES;
                }
                for query in queries {
                    let answered = check(query, limit, &reads);
                    assert!(answered || queries.len() > usual.len() && budget == least, "{reads}");
                }
            }
        }
    }
}
