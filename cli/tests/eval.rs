//! `tierdex eval`: what it takes, and what it rejects.

mod place;

use place::{DOCUMENTS, Place};

const QRELS: &str = "q1 0 a 1\nq1 0 b 0\n";
const RUN: &str = "q1 Q0 a 1 2.5 t\nq1 Q0 b 2 1.5 t\n";
const PERFECT: &str = "1 query: nDCG@10 1.0000, AP@1000 1.0000, R@100 1.0000\n";

#[test]
fn byte_order_marks_are_not_part_of_the_first_query() {
    let place = Place::new();
    for (mark_of_run, mark_of_qrels) in [("", ""), ("\u{feff}", ""), ("", "\u{feff}")] {
        place.file("run", format!("{mark_of_run}{RUN}"));
        place.file("qrels", format!("{mark_of_qrels}{QRELS}"));
        assert_eq!(place.ok("eval run qrels"), PERFECT);
    }
}

#[test]
fn a_document_may_appear_once_for_a_query() {
    let place = Place::new();
    place.file("run", format!("{RUN}q2 Q0 a 1 1 t\n\nq1 Q0 a 3 0.5 t\n"));
    place.file("qrels", QRELS);
    place.fails(1, "eval run qrels", "run: line 5: document a appears twice for query q1");
    place.file("run", RUN);
    place.file("qrels", format!("{QRELS}q1 0 b 1\n"));
    place.fails(1, "eval run qrels", "qrels: line 3: document b appears twice for query q1");
}

#[test]
fn relevance_and_scores_are_finite() {
    let place = Place::new();
    for wrong in ["nan", "inf", "-Infinity", "1e999", "x"] {
        place.file("run", RUN);
        place.file("qrels", format!("q1 0 c {wrong}\n{QRELS}"));
        place.fails(
            1,
            "eval run qrels",
            &format!("qrels: line 1: relevance `{wrong}` is not a finite number"),
        );
        place.file("run", format!("{RUN}q1 Q0 c 3 {wrong} t\n"));
        place.file("qrels", QRELS);
        place.fails(1, "eval run qrels", &format!("run: line 3: score `{wrong}` is not a finite number"));
    }
}

/// Ids need not be unique: documents that were appended twice stand twice in a run.
#[test]
fn a_run_over_documents_that_were_appended_twice_is_rejected() {
    let place = Place::new();
    place.file("docs.jsonl", DOCUMENTS);
    place.file("queries.tsv", "q1\tcat\n");
    place.file("qrels", "q1 0 1 1\n");
    place.ok("index docs.jsonl --out i");
    place.ok("index docs.jsonl --out i --append");
    place.ok("batch i --queries queries.tsv --run run");
    place.fails(1, "eval run qrels", "appears twice for query q1");
}

#[test]
fn lines_without_end_are_not_held() {
    let place = Place::new();
    place.file("docs.jsonl", place::DOCUMENTS);
    place.file("r", "1 Q0 a 1 0.5 x\n");
    place.file("qrels", "1 0 a 1\n");
    place.fails(1, "eval /dev/zero qrels", "line 1: longer than 1048576 bytes");
    place.fails(1, "eval r /dev/zero", "line 1: longer than 1048576 bytes");
    place.fails(2, "index docs.jsonl --stop-words /dev/zero --out i", "longer than 25500000 bytes");
}
