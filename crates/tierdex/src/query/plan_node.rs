//! The plan of a query as a tree of nodes, and the terms that they refer to.

use super::clauses::Clauses;
use crate::{rank::TermScorer, segment::read::TermInfo};
use std::sync::{Arc, OnceLock};

/// A clause of a plan. A term is an index into the leaves of the plan. A weight is the factor of the share of
/// a posting in the score, before scores are scaled to integers.
#[derive(Clone, Default)]
pub enum PlanNode {
    Term {
        leaf: usize,
        weight: f64,
    },
    Phrase {
        field: usize,
        /// Distances from the first term in positions, and terms.
        leaves: Arc<[(u32, usize)]>,
        /// Index of the scorer of the phrase in the plan.
        phrase: usize,
        /// Total number of positions by which the terms may be displaced.
        slop: u32,
        weight: f64,
    },
    Prefix {
        prefix: Arc<PrefixClause>,
        /// Score of each match.
        weight: f64,
    },
    All {
        /// Score of each match.
        weight: f64,
    },
    Group(Box<Clauses<PlanNode>>),
    #[default]
    Nothing,
}

/// A prefix, and the number of the terms and postings that it stands for.
pub struct PrefixClause {
    pub(crate) field: usize,
    pub(crate) text: String,
    /// Whether the prefix stands only for terms in which a grapheme cluster ends where the prefix ends.
    pub(crate) whole_clusters: bool,
    /// Number of terms with this prefix.
    pub(crate) terms: usize,
    /// For each segment, the sum of the document frequencies of the terms with this prefix.
    pub(crate) postings: Vec<u64>,
    /// For each segment, the dictionary entries of the terms; `None` if there are too many to keep.
    pub(crate) infos: Option<Vec<Vec<TermInfo>>>,
    /// For each segment, the bitset of the documents that contain one of the terms, once an evaluation has
    /// filled it; empty if the clause is not kept for later queries.
    pub(crate) sets: Vec<OnceLock<Vec<u8>>>,
}

/// The dictionary entry of a term in each segment that contains it, by the number of the segment.
pub(crate) type InfoBySegment = Vec<Option<TermInfo>>;

/// A term of a query that was looked up.
pub struct Leaf {
    /// Index of this leaf in the leaves of the plan.
    pub(crate) number: usize,
    pub(crate) field: usize,
    pub(crate) term: String,
    pub(crate) infos: InfoBySegment,
    pub(crate) scorer: TermScorer,
    /// Weight before scaling. With BM25 it is the inverse document frequency, times `k1 + 1`, times the
    /// boost, an upper bound of the scores; with an inner product it is the boost. For merged clauses it is
    /// the sum.
    pub(crate) weight: f64,
    /// Whether the postings of the term add to scores.
    pub(crate) is_scored: bool,
}

impl PrefixClause {
    /// The bitset of the segment with this number, if an evaluation has left it.
    pub(crate) fn kept_set(&self, number: usize) -> Option<&[u8]> {
        self.sets.get(number)?.get().map(Vec::as_slice)
    }

    /// Leaves a filled bitset to later queries.
    pub(crate) fn keep_set(&self, number: usize, bits: Vec<u8>) {
        if let Some(set) = self.sets.get(number) {
            set.get_or_init(|| bits);
        }
    }

    /// Bytes of the dictionary entries.
    pub(crate) fn memory(&self) -> usize {
        let infos = self.infos.iter().flatten();
        infos.map(|infos| size_of::<Vec<TermInfo>>() + infos.capacity() * size_of::<TermInfo>()).sum()
    }
}

impl Leaf {
    /// Number of postings in all segments.
    pub(crate) fn postings(&self) -> u64 {
        self.infos.iter().flatten().map(|info| u64::from(info.document_frequency)).sum()
    }
}

impl PlanNode {
    /// The weight of a clause that is not a group; 0 for a group.
    pub(super) fn weight(&self) -> f64 {
        match self {
            PlanNode::Term { weight, .. }
            | PlanNode::Phrase { weight, .. }
            | PlanNode::Prefix { weight, .. }
            | PlanNode::All { weight } => *weight,
            PlanNode::Group(_) | PlanNode::Nothing => 0.0,
        }
    }

    /// Adds to the weight of a clause that is not a group.
    pub(super) fn add_weight(&mut self, added: f64) {
        match self {
            PlanNode::Term { weight, .. }
            | PlanNode::Phrase { weight, .. }
            | PlanNode::Prefix { weight, .. }
            | PlanNode::All { weight } => *weight += added,
            PlanNode::Group(_) | PlanNode::Nothing => {}
        }
    }

    /// Whether every match scores 0: all scored clauses have weight 0.
    pub(super) fn has_weight_zero(&self) -> bool {
        match self {
            PlanNode::Group(group) => group.must.iter().chain(&group.should).all(PlanNode::has_weight_zero),
            leaf => leaf.weight() == 0.0,
        }
    }
}

/// A plan in the signs of the query language. `term` returns the text of a leaf, and `boost` the text after a
/// term or phrase of these leaves with this weight.
#[cfg(test)]
pub(crate) fn show_plan(
    node: &PlanNode,
    term: &dyn Fn(usize) -> String,
    boost: &dyn Fn(&[usize], f64) -> String,
) -> String {
    let all = |sign: &str, nodes: &[PlanNode]| -> Vec<String> {
        nodes.iter().map(|node| format!("{sign}{}", show_plan(node, term, boost))).collect()
    };
    match node {
        PlanNode::Term { leaf, weight } => format!("{}{}", term(*leaf), boost(&[*leaf], *weight)),
        PlanNode::Phrase { leaves, slop, weight, .. } => {
            let words: Vec<_> = leaves.iter().map(|(at, leaf)| format!("{}@{at}", term(*leaf))).collect();
            let leaves: Vec<usize> = leaves.iter().map(|(_, leaf)| *leaf).collect();
            format!("\"{}\"~{slop}{}", words.join(" "), boost(&leaves, *weight))
        }
        PlanNode::Prefix { prefix, weight } => format!("{}*^{weight}", prefix.text),
        PlanNode::All { weight } => format!("*:*^{weight}"),
        PlanNode::Nothing => "nothing".to_string(),
        PlanNode::Group(group) => {
            let Clauses { must, filter, should, must_not, minimum } = &**group;
            let clauses = [all("+", must), all("#", filter), all("", should), all("-", must_not)].concat();
            let minimum = if *minimum > 0 { format!("~{minimum}") } else { String::new() };
            format!("({}){minimum}", clauses.join(" "))
        }
    }
}
