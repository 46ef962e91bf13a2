//! `tierdex eval`: accepted and rejected runs and judgments.

mod workspace;

use workspace::{DOCUMENTS, Workspace};

const QRELS: &str = "q1 0 a 1\nq1 0 b 0\n";
const RUN: &str = "q1 Q0 a 1 2.5 t\nq1 Q0 b 2 1.5 t\n";
const PERFECT: &str = "1 query: nDCG@10 1.0000, AP@1000 1.0000, R@100 1.0000\n";

#[test]
fn byte_order_marks_are_ignored() {
    let workspace = Workspace::new();
    for (mark_of_run, mark_of_qrels) in [("", ""), ("\u{feff}", ""), ("", "\u{feff}")] {
        workspace.file("run", format!("{mark_of_run}{RUN}"));
        workspace.file("qrels", format!("{mark_of_qrels}{QRELS}"));
        assert_eq!(workspace.ok("eval run qrels"), PERFECT);
    }
}

#[test]
fn repeated_documents_of_a_query_are_rejected() {
    let workspace = Workspace::new();
    workspace.file("run", format!("{RUN}q2 Q0 a 1 1 t\n\nq1 Q0 a 3 0.5 t\n"));
    workspace.file("qrels", QRELS);
    workspace.fails(1, "eval run qrels", "run: line 5: document a appears twice for query q1");
    workspace.file("run", RUN);
    workspace.file("qrels", format!("{QRELS}q1 0 b 1\n"));
    workspace.fails(1, "eval run qrels", "qrels: line 3: document b appears twice for query q1");
}

#[test]
fn relevance_and_scores_that_are_not_finite_are_rejected() {
    let workspace = Workspace::new();
    for wrong in ["nan", "inf", "-Infinity", "1e999", "x"] {
        workspace.file("run", RUN);
        workspace.file("qrels", format!("q1 0 c {wrong}\n{QRELS}"));
        workspace.fails(
            1,
            "eval run qrels",
            &format!("qrels: line 1: relevance `{wrong}` is not a finite number"),
        );
        workspace.file("run", format!("{RUN}q1 Q0 c 3 {wrong} t\n"));
        workspace.file("qrels", QRELS);
        workspace.fails(1, "eval run qrels", &format!("run: line 3: score `{wrong}` is not a finite number"));
    }
}

/// Ids need not be unique: documents that were appended twice are in a run twice.
#[test]
fn a_run_over_documents_that_were_appended_twice_is_rejected() {
    let workspace = Workspace::new();
    workspace.file("docs.jsonl", DOCUMENTS);
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
    workspace.file("docs.jsonl", workspace::DOCUMENTS);
    workspace.file("r", "1 Q0 a 1 0.5 x\n");
    workspace.file("qrels", "1 0 a 1\n");
    workspace.fails(1, "eval /dev/zero qrels", "line 1: the line is longer than 1048576 bytes");
    workspace.fails(1, "eval r /dev/zero", "line 1: the line is longer than 1048576 bytes");
    workspace.fails(
        2,
        "index docs.jsonl --stop-words /dev/zero --out i",
        "the file is longer than 25500000 bytes",
    );
}
