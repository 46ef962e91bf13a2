//! `tierdex eval`: accepted and rejected runs and judgments.

use crate::workspace::{DOCUMENTS, Workspace, assert_succeeded};

const QRELS_LINES: &str = "q1 0 a 1\nq1 0 b 0\n";
const RUN_LINES: &str = "q1 Q0 a 1 2.5 t\nq1 Q0 b 2 1.5 t\n";
const PERFECT_MEASURES: &str = "1 query: nDCG@10 1.0000, AP@1000 1.0000, R@100 1.0000\n";

#[test]
fn byte_order_marks_are_ignored() {
    let workspace = Workspace::new();
    for (mark_of_run, mark_of_qrels) in [("", ""), ("\u{feff}", ""), ("", "\u{feff}")] {
        workspace.file("run", format!("{mark_of_run}{RUN_LINES}"));
        workspace.file("qrels", format!("{mark_of_qrels}{QRELS_LINES}"));
        assert_eq!(workspace.ok("eval run qrels"), PERFECT_MEASURES);
    }
}

#[test]
fn repeated_documents_of_a_query_are_rejected() {
    let workspace = Workspace::new();
    workspace.file("run", format!("{RUN_LINES}q2 Q0 a 1 1 t\n\nq1 Q0 a 3 0.5 t\n"));
    workspace.file("qrels", QRELS_LINES);
    workspace.fails(1, "eval run qrels", "run: line 5: document a appears twice for query q1");
    workspace.file("run", RUN_LINES);
    workspace.file("qrels", format!("{QRELS_LINES}q1 0 b 1\n"));
    workspace.fails(1, "eval run qrels", "qrels: line 3: document b appears twice for query q1");
}

#[test]
fn relevance_and_scores_that_are_not_finite_are_rejected() {
    let workspace = Workspace::new();
    for wrong in ["nan", "inf", "-Infinity", "1e999", "x"] {
        workspace.file("run", RUN_LINES);
        workspace.file("qrels", format!("q1 0 c {wrong}\n{QRELS_LINES}"));
        let words = format!("qrels: line 1: relevance `{wrong}` is not a finite number");
        workspace.fails(1, "eval run qrels", &words);
        workspace.file("run", format!("{RUN_LINES}q1 Q0 c 3 {wrong} t\n"));
        workspace.file("qrels", QRELS_LINES);
        workspace.fails(1, "eval run qrels", &format!("run: line 3: score `{wrong}` is not a finite number"));
    }
}

/// Ids need not be unique: documents that were appended twice are in a run twice.
#[test]
fn a_run_over_documents_that_were_appended_twice_is_rejected() {
    let workspace = Workspace::with_documents();
    workspace.file("queries.tsv", "q1\tcat\n");
    workspace.file("qrels", "q1 0 1 1\n");
    workspace.ok("index docs.jsonl --out i");
    workspace.ok("index docs.jsonl --out i --append");
    workspace.ok("batch i --queries queries.tsv --run run");
    workspace.fails(1, "eval run qrels", "appears twice for query q1");
}

#[test]
fn endless_lines_are_rejected() {
    let workspace = Workspace::new();
    workspace.file("docs.jsonl", DOCUMENTS);
    workspace.file("r", "1 Q0 a 1 0.5 x\n");
    workspace.file("qrels", "1 0 a 1\n");
    workspace.fails(1, "eval /dev/zero qrels", "line 1: the line is longer than 1048576 bytes");
    workspace.fails(1, "eval r /dev/zero", "line 1: the line is longer than 1048576 bytes");
    let words = "the file is longer than 25500000 bytes";
    workspace.fails(2, "index docs.jsonl --stop-words /dev/zero --out i", words);
}

#[test]
fn judgments_are_read_as_by_trec_eval() {
    let workspace = Workspace::new();
    workspace.file("run", "q Q0 b 1 3 t\nq Q0 a 2 2 t\n");
    workspace.file("qrels", "# query 0 document relevance\nq 0 a 1\nq 0 b 0.4\n#q 0 c 1\n");
    let output = workspace.run("eval run qrels");
    assert_eq!(assert_succeeded(&output), "1 query: nDCG@10 0.6309, AP@1000 0.5000, R@100 1.0000\n");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "tierdex: qrels: 1 relevance has a fraction, which is cut off, as by trec_eval\n");
}

#[test]
fn runs_and_judgments_without_a_common_query_are_rejected() {
    let workspace = Workspace::new();
    workspace.file("run", RUN_LINES);
    workspace.file("none", "\n");
    workspace.file("qrels", QRELS_LINES);
    workspace.file("others", "x 0 a 1\n");
    workspace.fails(1, "eval run others", "run: none of its 1 query is judged in others");
    workspace.fails(1, "eval none qrels", "none: the run is empty");
    workspace.fails(1, "eval run none", "none: no judgments");
}

#[test]
fn judged_queries_without_results_count_unless_they_are_left_out() {
    let workspace = Workspace::new();
    workspace.file("run", format!("{RUN_LINES}q9 Q0 a 1 1 t\n"));
    workspace.file("qrels", format!("{QRELS_LINES}q2 0 a 1\nq3 0 a 1\nq4 0 a 0\n"));
    for (flags, value, words) in [
        ("", "4 queries: nDCG@10 0.2500, ", "run: no results for 3 of 4 judged queries, counted as 0"),
        (" --common", "1 query: nDCG@10 1.0000, ", "run: no results for 3 of 4 judged queries, not counted"),
    ] {
        let output = workspace.run(&format!("eval run qrels{flags}"));
        assert!(assert_succeeded(&output).starts_with(value), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(words), "{output:?}");
    }
}

#[test]
fn measures_queries_and_runs_are_chosen() {
    let workspace = Workspace::new();
    workspace.file("a", "q1 Q0 a 1 2 t\nq1 Q0 b 2 1 t\nq2 Q0 c 1 1 t\n");
    workspace.file("b", "q1 Q0 b 1 2 t\nq1 Q0 a 2 1 t\nq2 Q0 c 1 1 t\n");
    workspace.file("qrels", "q1 0 a 2\nq2 0 c 1\n");
    let table = "query\tRR@10\tP(rel=2)@1\nq1\t1.00\t1.00\nq2\t1.00\t0.00\n\
                 2 queries: RR@10 1.00, P(rel=2)@1 0.50\n";
    let flags = "qrels --measures RR@10,P(rel=2)@1 --digits 2";
    assert_eq!(workspace.ok(&format!("eval a {flags} --per-query")), table);
    let said = workspace.ok(&format!("eval a b {flags}"));
    let line = "RR@10 1.00 0.75, difference -0.25, 0 better, 1 worse, 1 equal, p 0.5000 (paired t-test)";
    assert!(said.starts_with("2 queries: a beside b\n") && said.contains(line), "{said}");
    let value = workspace.run_for_json(&format!("eval a b {flags} --per-query --format json"));
    assert_eq!((&value["queries"], &value["runs"][1]["measures"]["RR@10"]), (&2.into(), &0.75.into()));
    assert_eq!(value["runs"][1]["per_query"]["q1"]["RR@10"], 0.5);
    assert_eq!(value["comparison"]["RR@10"]["losses"], 1);
    workspace.fails(2, "eval a qrels --measures P@10,MAP", "`MAP` is not a measure; there are nDCG, AP, ");
    workspace.fails(2, "eval a b a qrels", "see `tierdex eval --help`");
}
