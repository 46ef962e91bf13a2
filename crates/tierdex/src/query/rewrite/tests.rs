//! Tables of rewritten plans, with examples of each row of the table in the module comment, and a property
//! test that rewritten plans match the same documents with the same scores (weights are whole numbers, so
//! that sums are exact).

use super::*;
use crate::query::plan_node::{PrefixClause, TermPrefix, show_plan};
use crate::query::syntax::{Occur, Problems, SyntaxTree, parse};
use crate::rank::{ScoreScale, TermScorer};
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

/// Plans rewritten by the collection. A line has a plan as a query ([`plan_of`]), and what it is rewritten to
/// if hits are requested; then, if that differs, what it is rewritten to if matches are counted. Lines that
/// end in a colon are headings.
const REWRITTEN: &str = r#"
A required clause that cannot match is nothing:
+a0 +nothing => nothing
+a0 #nothing => nothing
+a0 +(+nothing +b1) => nothing
(a0 nothing)~2 => nothing
nothing -a0 => nothing
+a0 -*:*^0 => nothing
An alternative or exclusion that cannot match is removed:
a0 nothing b1 => (a0 b1)~1
+a0 nothing => a0
+a0 -nothing => a0
+a0 -nothing -b1 => (+a0 -b1) => (#a0 -b1)
A filter that all documents pass, or that is also required, is removed:
+a0 #*:*^0 => a0
#*:*^0 #a0 #*:*^0 b1 => (#a0 b1) => a0
#*:*^0 #*:*^0 b1 => (#*:*^0 b1) => *:*^0
#*:*^0 a0 b1 => (#*:*^0 a0 b1) => *:*^0
(#*:*^0 a0 b1)~1 => (a0 b1)~1
#a0 #a3 b1 => (#a0 b1) => a0
+a0 #a3 #b1 => (+a0 #b1) => (#a3 #b1)
As many alternatives as must match are required:
a0 nothing => a0
a0 -b1 => (+a0 -b1) => (#a0 -b1)
(+c2 a0 b1)~2 => (+c2 +a0 +b1) => (#c2 #a0 #b1)
(a0 nothing b1)~2 => (+a0 +b1) => (#a0 #b1)
(a0 b1 c2)~2 => (a0 b1 c2)~2
Only exclusions exclude from all documents:
-a0 => (#*:*^0 -a0)
 => (#*:*^0) => *:*^0
-nothing => (#*:*^0) => *:*^0
-*:*^0 => nothing
Nested required clauses are one list, with optional clauses if the outer group has no minimum:
+(+a0 #b1 -c2) +e6 => (+a0 +e6 #b1 -c2) => (#b1 #a0 #e6 -c2)
#(+a0 #b1 -c2) #e6 => (#b1 #a0 #e6 -c2)
+(+a0 b1) +c2 => (+a0 +c2 b1) => (#a0 #c2)
(+(+a0 b1) c2 e6)~1 => (+(+a0 b1) +(c2 e6)~1) => (#a0 #(c2 e6)~1)
+(a0 b1 c2)~2 +e6 => (+(a0 b1 c2)~2 +e6) => (#(a0 b1 c2)~2 #e6)
An exclusion of alternatives is one list:
+c2 -(a0 b1) -e6 => (+c2 -a0 -b1 -e6) => (#c2 -a0 -b1 -e6)
+c2 -(+a0 +b1) => (+c2 -(#a0 #b1)) => (#c2 -(#a0 #b1))
+c2 -(a0 b1 e6)~2 => (+c2 -(a0 b1 e6)~2) => (#c2 -(a0 b1 e6)~2)
A group of one clause is the clause, except for a filter, whose score does not count:
+(a0 nothing) nothing => a0
+*:*^3 nothing => *:*^3 => *:*^0
#a0 => (#a0) => a0
Clauses that score 0 are filters or removed, but alternatives are kept:
+a0 +d5 => (+a0 #d5) => (#a0 #d5)
+a0 d5 b1 => (+a0 b1) => a0
+a0 "b4 d5" *:*^0 => a0
+a0 +*:*^0 => a0
a0 d5 => (a0 (#d5))~1 => (a0 d5)~1
d5 => (#d5) => d5
Nested alternatives are one list, if one or none must match:
(a0 b1) c2 => (a0 b1 c2)~1
+c2 (a0 b1) e6 => (+c2 a0 b1 e6) => c2
((a0 b1) c2 e6)~2 => ((a0 b1)~1 c2 e6)~2
Equal clauses are one with the sum of their weights, unless each counts by itself:
a0 a3 => a0^9 => a0
+a0 +b1 +a3 => (+a0^9 +b1) => (#a0 #b1)
(a0 b1) a3 => (a0^9 b1)~1 => (a0 b1)~1
"a0 b1" "a0 b1" c2 => ("a0@0 b1@1"~0^10 c2)~1 => ("a0@0 b1@1"~0 c2)~1
+*:*^1 +*:*^2 => *:*^3 => *:*^0
(a0 a3 b1)~2 => (a0 a3 b1)~2
(a0 a3)~2 => a0^9 => a0
Of many clauses equal ones are found with a hash table:
a0 "a0 b1" a0 "a0 b1" a0 "a0 b1" a0 "a0 b1" a0 a0 a0 "a0 b1" => (a0^14 "a0@0 b1@1"~0^25)~1 => (a0 "a0@0 b1@1"~0)~1
"#;

/// As [`REWRITTEN`], rewritten by a segment of 8 documents.
const REWRITTEN_IN_SEGMENT: &str = r#"
What the segment lacks cannot match:
+"a0 none7" b1 => nothing
"a0 none7" => nothing
none7 => nothing
a0 none7 b1 "b1 none7" => (a0 b1)~1
+a0 -none7 -"none7 a0" => a0
A term may be in all documents:
+a0 #e6 => a0
+a0 -e6 => nothing
Equal clauses stay, since sums of rounded scores would differ between segments:
+(a0 none7) +a3 => (+a0 +a3) => (#a0 #a3)
"#;

fn all_leaves() -> Vec<Leaf> {
    let info = |bits: u8| TermInfo {
        deleted: 0,
        document_frequency: bits.count_ones(),
        occurrences: 8,
        skips: 0..0,
        blocks: None,
    };
    let leaf = |(number, (term, weight, bits)): (usize, (&str, f64, u8))| Leaf {
        number,
        field: 0,
        term: term.to_string(),
        infos: vec![(bits > 0).then(|| info(bits))],
        scorer: TermScorer::dot(1, weight, ScoreScale::of(1.0)),
        weight,
        is_scored: true,
    };
    TERMS.into_iter().enumerate().map(leaf).collect()
}

fn term(leaf: usize) -> PlanNode {
    PlanNode::Term { leaf, weight: TERMS[leaf].1 }
}

fn phrase(terms: &[usize]) -> PlanNode {
    let leaves = (0..).zip(terms.iter().copied()).collect();
    let weight = terms.iter().map(|term| TERMS[*term].1).sum();
    PlanNode::Phrase { field: 0, leaves, phrase: 0, slop: 0, weight }
}

fn prefix(weight: f64) -> PlanNode {
    let mut prefix = PrefixClause::new(0, TermPrefix { text: "x", whole_clusters: false }, 1);
    (prefix.terms, prefix.postings) = (1, vec![3]);
    PlanNode::Prefix { prefix: Arc::new(prefix), weight }
}

/// The plan of a query whose words are `nothing` or a name of [`TERMS`] and its index.
fn plan_of(query: &SyntaxTree) -> PlanNode {
    let leaf = |word: &str| usize::from(word.as_bytes()[word.len() - 1] - b'0');
    match query {
        SyntaxTree::Word(_, word) if word == "nothing" => PlanNode::Nothing,
        SyntaxTree::Word(_, word) => term(leaf(word)),
        SyntaxTree::Phrase(_, words, _) => phrase(&words.split(' ').map(leaf).collect::<Vec<_>>()),
        SyntaxTree::Boost(_, weight) => PlanNode::All { weight: *weight },
        SyntaxTree::List(clauses, minimum) => {
            let [must, filter, should, must_not] =
                [Occur::Must, Occur::Filter, Occur::Should, Occur::MustNot].map(|role| {
                    let of_role = clauses.iter().filter(|(occur, _)| *occur == role);
                    of_role.map(|(_, query)| plan_of(query)).collect()
                });
            let minimum = *minimum as usize;
            PlanNode::Group(Box::new(Clauses { must, filter, should, must_not, minimum }))
        }
        other => panic!("{other:?}"),
    }
}

/// A plan in the notation of [`show_plan`]. A term is written as its name and its index in [`TERMS`], with
/// its weight if that is not the one in [`TERMS`].
fn show_plan_node(node: &PlanNode) -> String {
    show_plan(node, &|leaf| format!("{}{leaf}", TERMS[leaf].0), &|leaves, weight| {
        let written: f64 = leaves.iter().map(|leaf| TERMS[*leaf].1).sum();
        if weight == written { String::new() } else { format!("^{weight}") }
    })
}

/// The plan rewritten by the collection, or by a segment of 8 documents.
fn rewrite_plan(plan: &PlanNode, in_segment: bool, scored: bool) -> PlanNode {
    let segment = in_segment.then_some(RewrittenSegment { number: 0, documents: 8 });
    PlanRewriter { leaves: &all_leaves(), segment, scored }.rewrite_root(plan.clone())
}

#[test]
fn plans_are_rewritten_as_documented() {
    let no_field = |_: &str| Err(String::new());
    for (table, in_segment) in [(REWRITTEN, false), (REWRITTEN_IN_SEGMENT, true)] {
        for line in table.lines().filter(|line| !line.is_empty() && !line.ends_with(':')) {
            let (query, expected) = line.split_once(" => ").expect("an arrow");
            let (scored, counted) = expected.split_once(" => ").unwrap_or((expected, expected));
            let plan = plan_of(&parse(query, &no_field, &mut Problems::strict()).unwrap());
            let of = |scored| show_plan_node(&rewrite_plan(&plan, in_segment, scored));
            assert_eq!((of(true).as_str(), of(false).as_str()), (scored, counted), "{line}");
        }
    }
}

/// The score of one of 8 documents by a plan as it is written; `None` if it does not match.
fn naive_score(node: &PlanNode, document: u8) -> Option<u32> {
    let holds = |leaf: usize| TERMS[leaf].2 >> document & 1 == 1;
    let matches = match node {
        PlanNode::Term { leaf, .. } => holds(*leaf),
        PlanNode::Phrase { leaves, .. } => leaves.iter().all(|(_, leaf)| holds(*leaf)),
        PlanNode::Prefix { .. } => document % 3 == 1,
        PlanNode::Column { .. } => unreachable!("the plans have no columns"),
        PlanNode::All { .. } => true,
        PlanNode::Nothing => false,
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
            return matches.then(|| must.iter().chain(&should).sum());
        }
    };
    matches.then(|| node.weight() as u32)
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
        for scored in [true, false] {
            let rewritten = rewrite_plan(&plan, false, scored);
            let in_segment = rewrite_plan(&rewritten, true, scored);
            for rewritten in [rewritten, in_segment] {
                prop_assert!(is_simple(&rewritten, true), "{:?} becomes {:?}", plan, rewritten);
                for document in 0..8 {
                    let [score, expected] = [&rewritten, &plan].map(|plan| naive_score(plan, document));
                    let is_same = if scored { score == expected } else { score.is_some() == expected.is_some() };
                    prop_assert!(is_same, "{:?} becomes {:?}: {:?}, {:?}", plan, rewritten, score, expected);
                }
            }
        }
    }
}
