//! One test per row of the table in the module comment, and a property test that simplified plans match and
//! score the same.

use super::*;
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
const NONE: usize = 7;

fn leaves() -> Vec<Leaf> {
    let lengths = LengthNorms::new(Bm25::default(), CollectionStats { documents: 8, average_length: 1.0 });
    let lengths = Arc::new(lengths);
    let leaf = |(number, (term, weight, bits)): (usize, (&str, f64, u8))| Leaf {
        number,
        field: 0,
        term: term.to_string(),
        infos: vec![(bits > 0).then(|| TermInfo {
            documents: bits.count_ones(),
            occurrences: 8,
            skips: 0..0,
            blocks: None,
        })],
        scorer: TermScorer::new(lengths.clone(), weight, ScoreScale::of(1.0)),
        weight,
        is_scored: true,
        selects_by_impacts: false,
    };
    TERMS.into_iter().enumerate().map(leaf).collect()
}

fn phrase(terms: &[usize]) -> PlanNode {
    let leaves = (0..).zip(terms.iter().copied()).collect();
    PlanNode::Phrase { field: 0, leaves, phrase: 0, slop: 0 }
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
    PlanNode::Group(Box::new(PlanGroup { must, filter, should, must_not, minimum }))
}

fn term(leaf: usize) -> PlanNode {
    PlanNode::Term(leaf)
}

const ALL: PlanNode = PlanNode::All { weight: 0.0 };

/// Formats a plan: terms by name and number, with the signs of the query language.
fn show(node: &PlanNode) -> String {
    let all = |sign: &str, nodes: &[PlanNode]| -> Vec<String> {
        nodes.iter().map(|node| format!("{sign}{}", show(node))).collect()
    };
    match node {
        PlanNode::Term(leaf) => format!("{}{leaf}", TERMS[*leaf].0),
        PlanNode::Phrase { leaves, .. } => {
            let words: Vec<_> = leaves.iter().map(|(_, leaf)| show(&PlanNode::Term(*leaf))).collect();
            format!("\"{}\"", words.join(" "))
        }
        PlanNode::Prefix { prefix, weight, .. } => format!("{prefix}*^{weight}"),
        PlanNode::All { weight } => format!("*:*^{weight}"),
        PlanNode::Nothing => "nothing".to_string(),
        PlanNode::Group(group) => {
            let PlanGroup { must, filter, should, must_not, minimum } = &**group;
            let clauses = [all("+", must), all("#", filter), all("", should), all("-", must_not)].concat();
            let minimum = if *minimum > 0 { format!("~{minimum}") } else { String::new() };
            format!("({}){minimum}", clauses.join(" "))
        }
    }
}

/// Checks the simplified plan with and without scoring.
#[track_caller]
fn check(plan: &PlanNode, scored: &str, counted: &str) {
    let leaves = leaves();
    let of = |scored| show(&plan.clone().simplified(scored, &leaves));
    assert_eq!((of(true).as_str(), of(false).as_str()), (scored, counted), "{}", show(plan));
}

#[test]
fn a_required_clause_that_cannot_match_is_nothing() {
    check(&group(&[term(A), PlanNode::Nothing], &[], &[], &[]), "nothing", "nothing");
    check(&group(&[term(A)], &[PlanNode::Nothing], &[], &[]), "nothing", "nothing");
    check(&group(&[phrase(&[A, NONE])], &[], &[term(B)], &[]), "nothing", "nothing");
    check(&phrase(&[A, NONE]), "nothing", "nothing");
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
    let alternatives = [term(A), PlanNode::Nothing, term(B), phrase(&[B, NONE])];
    check(&group(&[], &[], &alternatives, &[]), "(a0 b1)~1", "(a0 b1)~1");
    check(&group(&[term(A)], &[], &[PlanNode::Nothing], &[]), "a0", "a0");
    check(&group(&[term(A)], &[], &[], &[PlanNode::Nothing, phrase(&[NONE, A])]), "a0", "a0");
    check(&group(&[term(A)], &[], &[], &[PlanNode::Nothing, term(B)]), "(+a0 -b1)", "(#a0 -b1)");
}

#[test]
fn a_filter_that_all_documents_pass_is_removed() {
    check(&group(&[term(A)], &[ALL], &[], &[]), "a0", "a0");
    check(&group(&[], &[ALL, term(A), ALL], &[term(B)], &[]), "(#a0 b1)", "a0");
    check(&group(&[], &[ALL, ALL], &[term(B)], &[]), "(#*:*^0 b1)", "*:*^0");
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
    check(&plan, "(+(+a0 b1) c2 e6)~1", "(#a0 c2 e6)~1");
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
    check(&group(&[PlanNode::All { weight: 3.0 }], &[], &[], &[]), "*:*^3", "*:*^3");
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
    let leaves = leaves();
    let alone = term(D_WEIGHT_0).simplified(true, &leaves).unscored(&leaves);
    assert_eq!(show(&alone), "(#d5)");
}

/// The score of a document, if it matches.
fn score(node: &PlanNode, document: u8) -> Option<u32> {
    let holds = |leaf: usize| TERMS[leaf].2 >> document & 1 == 1;
    match node {
        PlanNode::Term(leaf) => holds(*leaf).then_some(TERMS[*leaf].1 as u32),
        PlanNode::Phrase { leaves, .. } => {
            let weights = leaves.iter().map(|(_, leaf)| TERMS[*leaf].1 as u32);
            leaves.iter().all(|(_, leaf)| holds(*leaf)).then(|| weights.sum())
        }
        PlanNode::Prefix { weight, .. } => (document % 3 == 1).then_some(*weight as u32),
        PlanNode::All { weight } => Some(*weight as u32),
        PlanNode::Nothing => None,
        PlanNode::Group(group) => {
            let of = |nodes: &[PlanNode]| -> Vec<u32> {
                nodes.iter().filter_map(|node| score(node, document)).collect()
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

/// Whether the minimum of each group is in the range that strategies rely on, and `Nothing` occurs at most
/// as the root.
fn is_simple(node: &PlanNode, is_root: bool) -> bool {
    match node {
        PlanNode::Group(group) => {
            let free = group.must.is_empty() && group.filter.is_empty();
            let minimum = if free { 1..group.should.len().max(2) } else { 0..group.should.len().max(1) };
            minimum.contains(&group.minimum) && group.nodes().all(|node| is_simple(node, false))
        }
        PlanNode::Nothing => is_root,
        _ => true,
    }
}

impl std::fmt::Debug for PlanNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&show(self))
    }
}

fn plans() -> impl Strategy<Value = PlanNode> {
    let leaf = prop_oneof![
        8 => (0..TERMS.len()).prop_map(PlanNode::Term),
        2 => prop::collection::vec(0..TERMS.len(), 2..4).prop_map(|terms| phrase(&terms)),
        1 => (0u32..2).prop_map(|weight| PlanNode::All { weight: f64::from(17 * weight) }),
        1 => (0u32..2).prop_map(|weight| PlanNode::Prefix { field: 0, prefix: "x".into(), whole_clusters: false, weight: f64::from(19 * weight), terms: 1 }),
        1 => Just(PlanNode::Nothing),
    ];
    leaf.prop_recursive(3, 40, 4, |inner| {
        let some = |most: usize| prop::collection::vec(inner.clone(), 0..=most);
        let clauses = (some(2), some(2), some(4), some(2), 0usize..5);
        clauses.prop_map(|(must, filter, should, must_not, minimum)| {
            PlanNode::Group(Box::new(PlanGroup { must, filter, should, must_not, minimum }))
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn simplified_plans_match_and_score_the_same(plan in plans()) {
        let leaves = leaves();
        let ranked = plan.clone().simplified(true, &leaves).unscored(&leaves);
        let counted = plan.clone().simplified(false, &leaves);
        prop_assert!(is_simple(&ranked, true), "{} becomes {}", show(&plan), show(&ranked));
        prop_assert!(is_simple(&counted, true), "{} becomes {}", show(&plan), show(&counted));
        for document in 0..8 {
            let expected = score(&plan, document);
            prop_assert_eq!(score(&ranked, document), expected, "{} becomes {}", show(&plan), show(&ranked));
            prop_assert_eq!(
                score(&counted, document).is_some(),
                expected.is_some(),
                "{} becomes {}",
                show(&plan),
                show(&counted)
            );
        }
    }
}
