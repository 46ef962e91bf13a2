//! Several indexes that are searched as one.

use crate::workspace::{Workspace, assert_succeeded};

/// Documents of two years, an index of each year, and an index of both.
fn two_years() -> Workspace {
    let workspace = Workspace::new();
    let document = |number: usize| {
        let words = ["disk", "tape", "drum", "card"][..1 + number % 4].join(" ");
        format!("{{\"id\":\"{number}\",\"text\":\"{words} unit{number}\"}}\n")
    };
    let lines = |numbers: std::ops::Range<usize>| numbers.map(document).collect::<String>();
    workspace.file("2024.jsonl", lines(0..7));
    workspace.file("2025.jsonl", lines(7..50));
    workspace.ok("index 2024.jsonl --out 2024");
    workspace.ok("index 2025.jsonl --out 2025");
    workspace.ok("index 2024.jsonl 2025.jsonl --out both");
    workspace
}

#[test]
fn several_indexes_answer_as_one() {
    let workspace = two_years();
    for query in ["disk tape", "+card -unit3", "unit1*", "tpae~2"] {
        let run = |dirs: &[&str]| {
            let words = [&["search"], dirs, &["--query", query, "-k", "60", "--count", "--format", "json"]];
            let output = workspace.run_with(words.concat());
            let answer: serde_json::Value = serde_json::from_str(&assert_succeeded(&output)).unwrap();
            let hits = answer["hits"].as_array().unwrap().clone();
            let shown: Vec<_> = hits
                .iter()
                .map(|hit| (hit["id"].clone(), hit["score"].clone(), hit["snippet"].clone()))
                .collect();
            (answer["total"].clone(), shown, hits)
        };
        let (one, both) = (run(&["both"]), run(&["2024", "2025"]));
        assert_eq!((&both.0, &both.1), (&one.0, &one.1), "{query}");
        assert!(!both.2.is_empty(), "{query}");
        for hit in &both.2 {
            let number: usize = hit["id"].as_str().unwrap().parse().unwrap();
            assert_eq!(hit["index"], if number < 7 { "2024" } else { "2025" }, "{hit}");
        }
        assert!(one.2.iter().all(|hit| hit.get("index").is_none()));
    }
    let table = workspace.ok("search 2024 2025 --query unit3");
    assert!(table.contains("in 2024\n") && table.contains("1 document in"), "{table}");
    let explained = workspace.ok("explain 2024 2025 --query disk");
    assert_eq!(explained.matches("segment 1: ").count(), 2, "{explained}");

    workspace.file("q.tsv", "1\tdisk tape\n2\tcard unit40\n");
    workspace.ok("batch both --queries q.tsv --run one.trec");
    workspace.ok("batch 2024 2025 --queries q.tsv --run both.trec --dram 30M --threads 2");
    let run = |name: &str| std::fs::read_to_string(workspace.path(name)).unwrap();
    assert_eq!(run("both.trec"), run("one.trec"));
}

#[test]
fn indexes_that_do_not_fit_together_are_rejected() {
    let workspace = two_years();
    workspace.ok("index 2024.jsonl --out stemmed --stem english");
    let why =
        "the indexes in 2024 and stemmed cannot be searched as one: field text: stemmer: none, here english";
    workspace.fails(1, "search 2024 stemmed --query disk", why);
    workspace.fails(1, "search 2024 nowhere --query disk", "nowhere: no such directory");
    workspace.fails(2, "search 2024", "<QUERY>");
    workspace.fails(2, "batch --queries q.tsv --run out.trec", "<DIRS>");
    workspace.fails(
        2,
        "batch 2024 2025 --queries q.tsv --run 2025/out.trec",
        "--run names a file in the directory",
    );
    // A damaged file names the directories among which it is.
    let name = workspace.names_in("2025").into_iter().find(|name| name.ends_with(".postings")).unwrap();
    let path = workspace.path("2025").join(name);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.truncate(bytes.len() / 2);
    std::fs::write(&path, bytes).unwrap();
    workspace.fails(1, "search 2024 2025 --query disk", "{2024,2025}/");
}
