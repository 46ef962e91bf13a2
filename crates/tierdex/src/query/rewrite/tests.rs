//! A test for each row of the table in the module comment, and a property test that rewritten plans match the
//! same documents with the same scores (weights are whole numbers, so that sums are exact).

use super::*;
use crate::query::plan_node::{PrefixClause, show_plan};
use crate::rank::{Bm25, CollectionStats, LengthNorms, ScoreScale, TermScorer};
use crate::segment::read::TermInfo;
use proptest::prelude::*;
use std::sync::Arc;

/// Terms with their weights and the bitset of documents that contain them. Some are equal, some have weight
/// 0, one is in no document.
const TERMS: [(&str, f64, u8); 9] = [
    ("a", 2.0, 0b1011_0110),
    ("b", 3.0, 0b0110_1100),
    ("c", 5.0, 0b0101_0101),
    ("a", 7.0, 0b1011_0110),
    ("b", 0.0, 0b0110_1100),
    ("d", 0.0, 0b1111_0000),
    ("e", 11.0, 0b1111_1111),
    ("none", 13.0, 0),
    ("c", 0.0, 0b0101_0101),
];

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;
const A_AGAIN: usize = 3;
const B_WEIGHT_0: usize = 4;
const D_WEIGHT_0: usize = 5;
const E: usize = 6;
const NONE: usize = 7;

fn all_leaves() -> Vec<Leaf> {
    let lengths = LengthNorms::new(Bm25::default(), CollectionStats { documents: 8, average_length: 1.0 });
    let lengths = Arc::new(lengths);
    let leaf = |(number, (term, weight, bits)): (usize, (&str, f64, u8))| Leaf {
        number,
        field: 0,
        term: term.to_string(),
        infos: vec![(bits > 0).then(|| TermInfo {
            document_frequency: bits.count_ones(),
            occurrences: 8,
            skips: 0..0,
            blocks: None,
        })],
        scorer: TermScorer::new(lengths.clone(), weight, ScoreScale::of(1.0)),
        weight,
        is_scored: true,
    };
    TERMS.into_iter().enumerate().map(leaf).collect()
}

fn phrase(terms: &[usize]) -> PlanNode {
    let leaves = (0..).zip(terms.iter().copied()).collect();
    let weight = terms.iter().map(|term| TERMS[*term].1).sum();
    PlanNode::Phrase { field: 0, leaves, phrase: 0, slop: 0, weight }
}

fn group(must: &[PlanNode], filter: &[PlanNode], should: &[PlanNode], must_not: &[PlanNode]) -> PlanNode {
    at_least(0, must, filter, should, must_not)
}

fn at_least(
    minimum: usize,
    must: &[PlanNode],
    filter: &[PlanNode],
    should: &[PlanNode],
    must_not: &[PlanNode],
) -> PlanNode {
    let [must, filter, should, must_not] = [must, filter, should, must_not].map(<[PlanNode]>::to_vec);
    PlanNode::Group(Box::new(Clauses { must, filter, should, must_not, minimum }))
}

fn term(leaf: usize) -> PlanNode {
    PlanNode::Term { leaf, weight: TERMS[leaf].1 }
}

fn prefix(weight: f64) -> PlanNode {
    let (text, postings) = ("x".to_string(), vec![3]);
    let prefix = PrefixClause { field: 0, text, whole_clusters: false, terms: 1, postings, infos: None };
    PlanNode::Prefix { prefix: Arc::new(prefix), weight }
}

const ALL: PlanNode = PlanNode::All { weight: 0.0 };

/// A plan in the notation of [`show_plan`]. A term is written as its name and its index in [`TERMS`], with
/// its weight if that is not the one in [`TERMS`].
fn show_plan_node(node: &PlanNode) -> String {
    show_plan(node, &|leaf| format!("{}{leaf}", TERMS[leaf].0), &|leaves, weight| {
        let written: f64 = leaves.iter().map(|leaf| TERMS[*leaf].1).sum();
        if weight == written { String::new() } else { format!("^{weight}") }
    })
}

/// The plan rewritten by the collection.
fn rewrite_plan(plan: &PlanNode, scored: bool) -> PlanNode {
    PlanRewriter::of_collection(&all_leaves(), scored).rewrite_root(plan.clone())
}

/// Checks what a plan is rewritten to by the collection, if hits are requested and if matches are counted.
#[track_caller]
fn check(plan: &PlanNode, scored: &str, counted: &str) {
    let of = |scored| show_plan_node(&rewrite_plan(plan, scored));
    assert_eq!((of(true).as_str(), of(false).as_str()), (scored, counted), "{}", show_plan_node(plan));
}

/// Checks what a plan is rewritten to by a segment of 8 documents, if hits are requested and if matches are
/// counted.
#[track_caller]
fn check_in_segment(plan: &PlanNode, scored: &str, counted: &str) {
    let leaves = all_leaves();
    let of =
        |scored| show_plan_node(&PlanRewriter::of_segment(&leaves, 0, 8, scored).rewrite_root(plan.clone()));
    assert_eq!((of(true).as_str(), of(false).as_str()), (scored, counted), "{}", show_plan_node(plan));
}

#[test]
fn a_required_clause_that_cannot_match_is_nothing() {
    check(&group(&[term(A), PlanNode::Nothing], &[], &[], &[]), "nothing", "nothing");
    check(&group(&[term(A)], &[PlanNode::Nothing], &[], &[]), "nothing", "nothing");
    check_in_segment(&group(&[phrase(&[A, NONE])], &[], &[term(B)], &[]), "nothing", "nothing");
    check_in_segment(&phrase(&[A, NONE]), "nothing", "nothing");
    check_in_segment(&term(NONE), "nothing", "nothing");
    check(
        &group(&[term(A), group(&[PlanNode::Nothing], &[], &[], &[])], &[], &[], &[]),
        "nothing",
        "nothing",
    );
    check(&at_least(2, &[], &[], &[term(A), PlanNode::Nothing], &[]), "nothing", "nothing");
    check(&group(&[], &[], &[PlanNode::Nothing], &[term(A)]), "nothing", "nothing");
    check(&group(&[term(A)], &[], &[], &[ALL]), "nothing", "nothing");
}

#[test]
fn an_alternative_or_exclusion_that_cannot_match_is_removed() {
    let alternatives = [term(A), PlanNode::Nothing, term(B)];
    check(&group(&[], &[], &alternatives, &[]), "(a0 b1)~1", "(a0 b1)~1");
    let alternatives = [term(A), term(NONE), term(B), phrase(&[B, NONE])];
    check_in_segment(&group(&[], &[], &alternatives, &[]), "(a0 b1)~1", "(a0 b1)~1");
    check(&group(&[term(A)], &[], &[PlanNode::Nothing], &[]), "a0", "a0");
    check(&group(&[term(A)], &[], &[], &[PlanNode::Nothing]), "a0", "a0");
    check_in_segment(&group(&[term(A)], &[], &[], &[term(NONE), phrase(&[NONE, A])]), "a0", "a0");
    check(&group(&[term(A)], &[], &[], &[PlanNode::Nothing, term(B)]), "(+a0 -b1)", "(#a0 -b1)");
}

#[test]
fn a_filter_that_all_documents_pass_is_removed() {
    check(&group(&[term(A)], &[ALL], &[], &[]), "a0", "a0");
    check(&group(&[], &[ALL, term(A), ALL], &[term(B)], &[]), "(#a0 b1)", "a0");
    check(&group(&[], &[ALL, ALL], &[term(B)], &[]), "(#*:*^0 b1)", "*:*^0");
    check(&group(&[], &[ALL], &[term(A), term(B)], &[]), "(#*:*^0 a0 b1)", "*:*^0");
    check(&at_least(1, &[], &[ALL], &[term(A), term(B)], &[]), "(a0 b1)~1", "(a0 b1)~1");
    check_in_segment(&group(&[term(A)], &[term(E)], &[], &[]), "a0", "a0");
    check_in_segment(&group(&[term(A)], &[], &[], &[term(E)]), "nothing", "nothing");
    // Duplicate filters are removed, also beside an equal required clause.
    check(&group(&[], &[term(A), term(A_AGAIN)], &[term(B)], &[]), "(#a0 b1)", "a0");
    check(&group(&[term(A)], &[term(A_AGAIN), term(B)], &[], &[]), "(+a0 #b1)", "(#a3 #b1)");
}

#[test]
fn as_many_alternatives_as_must_match_are_required() {
    check(&group(&[], &[], &[term(A)], &[]), "a0", "a0");
    check(&group(&[], &[], &[term(A)], &[term(B)]), "(+a0 -b1)", "(#a0 -b1)");
    check(&at_least(2, &[term(C)], &[], &[term(A), term(B)], &[]), "(+c2 +a0 +b1)", "(#c2 #a0 #b1)");
    let one_is_nothing = [term(A), PlanNode::Nothing, term(B)];
    check(&at_least(2, &[], &[], &one_is_nothing, &[]), "(+a0 +b1)", "(#a0 #b1)");
    check(&at_least(2, &[], &[], &[term(A), term(B), term(C)], &[]), "(a0 b1 c2)~2", "(a0 b1 c2)~2");
}

#[test]
fn only_exclusions_exclude_from_all_documents() {
    check(&group(&[], &[], &[], &[term(A)]), "(#*:*^0 -a0)", "(#*:*^0 -a0)");
    check(&group(&[], &[], &[], &[]), "(#*:*^0)", "*:*^0");
    check(&group(&[], &[], &[], &[PlanNode::Nothing]), "(#*:*^0)", "*:*^0");
    check(&group(&[], &[], &[], &[ALL]), "nothing", "nothing");
}

#[test]
fn nested_required_clauses_are_one_list() {
    let inner = group(&[term(A)], &[term(B)], &[], &[term(C)]);
    let requires = group(&[inner.clone(), term(6)], &[], &[], &[]);
    check(&requires, "(+a0 +e6 #b1 -c2)", "(#b1 #a0 #e6 -c2)");
    check(&group(&[], &[inner.clone(), term(6)], &[], &[]), "(#b1 #a0 #e6 -c2)", "(#b1 #a0 #e6 -c2)");
    // Optional clauses are inlined if the outer group has no minimum.
    let optional = group(&[term(A)], &[], &[term(B)], &[]);
    check(&group(&[optional.clone(), term(C)], &[], &[], &[]), "(+a0 +c2 b1)", "(#a0 #c2)");
    let plan = at_least(1, &[optional], &[], &[term(C), term(6)], &[]);
    check(&plan, "(+(+a0 b1) +(c2 e6)~1)", "(#a0 #(c2 e6)~1)");
    let enough = at_least(2, &[], &[], &[term(A), term(B), term(C)], &[]);
    check(&group(&[enough, term(6)], &[], &[], &[]), "(+(a0 b1 c2)~2 +e6)", "(#(a0 b1 c2)~2 #e6)");
}

#[test]
fn an_exclusion_of_alternatives_is_one_list() {
    let any = group(&[], &[], &[term(A), term(B)], &[]);
    check(&group(&[term(C)], &[], &[], &[any, term(6)]), "(+c2 -a0 -b1 -e6)", "(#c2 -a0 -b1 -e6)");
    let both = group(&[term(A), term(B)], &[], &[], &[]);
    check(&group(&[term(C)], &[], &[], &[both]), "(+c2 -(#a0 #b1))", "(#c2 -(#a0 #b1))");
    let enough = at_least(2, &[], &[], &[term(A), term(B), term(6)], &[]);
    check(&group(&[term(C)], &[], &[], &[enough]), "(+c2 -(a0 b1 e6)~2)", "(#c2 -(a0 b1 e6)~2)");
}

#[test]
fn a_group_of_one_clause_is_the_clause() {
    check(&group(&[group(&[], &[], &[term(A)], &[])], &[], &[], &[]), "a0", "a0");
    check(&group(&[PlanNode::All { weight: 3.0 }], &[], &[], &[]), "*:*^3", "*:*^0");
    // Except for a filter: its score does not count.
    check(&group(&[], &[term(A)], &[], &[]), "(#a0)", "a0");
}

#[test]
fn clauses_that_score_0_are_filters_or_removed() {
    check(&group(&[term(A), term(D_WEIGHT_0)], &[], &[], &[]), "(+a0 #d5)", "(#a0 #d5)");
    check(&group(&[term(A)], &[], &[term(D_WEIGHT_0), term(B)], &[]), "(+a0 b1)", "a0");
    check(&group(&[term(A)], &[], &[phrase(&[B_WEIGHT_0, D_WEIGHT_0]), ALL], &[]), "a0", "a0");
    check(&group(&[term(A), ALL], &[], &[], &[]), "a0", "a0");
    // Alternatives that are not optional are kept.
    let any = group(&[], &[], &[term(A), term(D_WEIGHT_0)], &[]);
    check(&any, "(a0 (#d5))~1", "(a0 d5)~1");
    check(&term(D_WEIGHT_0), "(#d5)", "d5");
}

#[test]
fn nested_alternatives_are_one_list() {
    let inner = group(&[], &[], &[term(A), term(B)], &[]);
    check(&group(&[], &[], &[inner.clone(), term(C)], &[]), "(a0 b1 c2)~1", "(a0 b1 c2)~1");
    check(&group(&[term(C)], &[], &[inner.clone(), term(E)], &[]), "(+c2 a0 b1 e6)", "c2");
    let plan = at_least(2, &[], &[], &[inner, term(C), term(E)], &[]);
    check(&plan, "((a0 b1)~1 c2 e6)~2", "((a0 b1)~1 c2 e6)~2");
}

#[test]
fn equal_clauses_are_one_with_the_sum_of_their_weights() {
    check(&group(&[], &[], &[term(A), term(A_AGAIN)], &[]), "a0^9", "a0");
    check(&group(&[term(A), term(B), term(A_AGAIN)], &[], &[], &[]), "(+a0^9 +b1)", "(#a0 #b1)");
    let inner = group(&[], &[], &[term(A), term(B)], &[]);
    check(&group(&[], &[], &[inner, term(A_AGAIN)], &[]), "(a0^9 b1)~1", "(a0 b1)~1");
    check(
        &group(&[], &[], &[phrase(&[A, B]), phrase(&[A, B]), term(C)], &[]),
        "(\"a0@0 b1@1\"~0^10 c2)~1",
        "(\"a0@0 b1@1\"~0 c2)~1",
    );
    check(
        &group(&[PlanNode::All { weight: 1.0 }, PlanNode::All { weight: 2.0 }], &[], &[], &[]),
        "*:*^3",
        "*:*^0",
    );
    // Each counts by itself.
    let plan = at_least(2, &[], &[], &[term(A), term(A_AGAIN), term(B)], &[]);
    check(&plan, "(a0 a3 b1)~2", "(a0 a3 b1)~2");
    check(&at_least(2, &[], &[], &[term(A), term(A_AGAIN)], &[]), "a0^9", "a0");
    // Sums of rounded scores would differ between segments.
    let plan = group(&[group(&[], &[], &[term(A), term(NONE)], &[]), term(A_AGAIN)], &[], &[], &[]);
    check_in_segment(&plan, "(+a0 +a3)", "(#a0 #a3)");
    // Many clauses, and terms with the same name in phrases.
    let many: Vec<PlanNode> = (0..7).flat_map(|_| [term(A), phrase(&[A, B])]).collect();
    check(&group(&[], &[], &many, &[]), "(a0^14 \"a0@0 b1@1\"~0^35)~1", "(a0 \"a0@0 b1@1\"~0)~1");
}

/// The score of one of 8 documents by a plan as it is written; `None` if it does not match.
fn naive_score(node: &PlanNode, document: u8) -> Option<u32> {
    let holds = |leaf: usize| TERMS[leaf].2 >> document & 1 == 1;
    match node {
        PlanNode::Term { leaf, weight } => holds(*leaf).then_some(*weight as u32),
        PlanNode::Phrase { leaves, weight, .. } => {
            leaves.iter().all(|(_, leaf)| holds(*leaf)).then_some(*weight as u32)
        }
        PlanNode::Prefix { weight, .. } => (document % 3 == 1).then_some(*weight as u32),
        PlanNode::All { weight } => Some(*weight as u32),
        PlanNode::Nothing => None,
        PlanNode::Group(group) => {
            let of = |nodes: &[PlanNode]| -> Vec<u32> {
                nodes.iter().filter_map(|node| naive_score(node, document)).collect()
            };
            let (must, should) = (of(&group.must), of(&group.should));
            let free = group.must.is_empty() && group.filter.is_empty() && !group.should.is_empty();
            let matches = must.len() == group.must.len()
                && of(&group.filter).len() == group.filter.len()
                && should.len() >= group.minimum.max(usize::from(free))
                && of(&group.must_not).is_empty();
            matches.then(|| must.iter().chain(&should).sum())
        }
    }
}

/// Whether a plan is as strategies require it: the minimum of each group is between 1 (0 if a clause is
/// required) and the number of alternatives, exclusive; and `Nothing` is at most the root.
fn is_simple(node: &PlanNode, is_root: bool) -> bool {
    match node {
        PlanNode::Group(group) => {
            let free = group.must.is_empty() && group.filter.is_empty();
            let minimum = if free { 1..group.should.len().max(2) } else { 0..group.should.len().max(1) };
            minimum.contains(&group.minimum) && group.all().all(|node| is_simple(node, false))
        }
        PlanNode::Nothing => is_root,
        _ => true,
    }
}

impl std::fmt::Debug for PlanNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&show_plan_node(self))
    }
}

fn any_plan() -> impl Strategy<Value = PlanNode> {
    let leaf = prop_oneof![
        8 => (0..TERMS.len()).prop_map(term),
        2 => prop::collection::vec(0..TERMS.len(), 2..4).prop_map(|terms| phrase(&terms)),
        1 => (0u32..2).prop_map(|weight| PlanNode::All { weight: f64::from(17 * weight) }),
        1 => (0u32..2).prop_map(|weight| prefix(f64::from(19 * weight))),
        1 => Just(PlanNode::Nothing),
    ];
    leaf.prop_recursive(3, 40, 4, |inner| {
        let some = |most: usize| prop::collection::vec(inner.clone(), 0..=most);
        let clauses = (some(2), some(2), some(4), some(2), 0usize..5);
        clauses.prop_map(|(must, filter, should, must_not, minimum)| {
            PlanNode::Group(Box::new(Clauses { must, filter, should, must_not, minimum }))
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rewritten_plans_match_and_score_the_same(plan in any_plan()) {
        let ranked = rewrite_plan(&plan, true);
        let counted = rewrite_plan(&plan, false);
        let leaves = all_leaves();
        let in_segment = |plan: &PlanNode, scored| PlanRewriter::of_segment(&leaves, 0, 8, scored).rewrite_root(plan.clone());
        let again = [in_segment(&ranked, true), in_segment(&counted, false)];
        for rewritten in [&ranked, &counted, &again[0], &again[1]] {
            prop_assert!(is_simple(rewritten, true), "{} becomes {}", show_plan_node(&plan), show_plan_node(rewritten));
        }
        for document in 0..8 {
            let expected = naive_score(&plan, document);
            for rewritten in [&ranked, &again[0]] {
                prop_assert_eq!(naive_score(rewritten, document), expected, "{} becomes {}", show_plan_node(&plan), show_plan_node(rewritten));
            }
            for rewritten in [&counted, &again[1]] {
                let matches = naive_score(rewritten, document).is_some();
                prop_assert_eq!(matches, expected.is_some(), "{} becomes {}", show_plan_node(&plan), show_plan_node(rewritten));
            }
        }
    }
}
