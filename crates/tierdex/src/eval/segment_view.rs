//! A plan together with one segment, before a list is opened: the clauses that can match there, and upper
//! bounds of their numbers of matches.

use super::nodes::any_of::is_sparse;
use super::state::Refine;
use super::tuning::{DENSE_DIVISOR, MARKED_DIVISOR, MERGED_LISTS, PRUNED_ALTERNATIVES_RATIO};
use crate::query::plan_node::PlanNode;
use crate::query::{Clauses, PlanRewriter, QueryPlan};
use crate::segment::read::{OpenSegment, TermInfo};

/// A plan, and one of the segments over which it was planned.
#[derive(Clone, Copy)]
pub struct SegmentView<'a> {
    /// The plan.
    pub plan: &'a QueryPlan,
    /// Number of the segment in the commit.
    pub number: usize,
    /// The segment.
    pub segment: &'a OpenSegment,
}

impl<'a> SegmentView<'a> {
    /// Dictionary entry of a term of the plan, if the segment contains it.
    pub(super) fn term_info(self, leaf: usize) -> Option<&'a TermInfo> {
        self.plan.leaves[leaf].infos[self.number].as_ref()
    }

    /// Rewrites a root of the plan by what this segment contains; `None` if no document matches. A root that
    /// is a term or phrase becomes a required clause; one that is a set of documents (a prefix, all
    /// documents) becomes an alternative.
    pub(super) fn rewritten_clauses(self, root: &PlanNode, scored: bool) -> Option<Clauses<PlanNode>> {
        let (leaves, documents) = (&self.plan.leaves, self.segment.documents());
        let rewrite = PlanRewriter::of_segment(leaves, self.number, documents, scored);
        Some(match rewrite.rewrite_root(root.clone()) {
            PlanNode::Nothing => return None,
            PlanNode::Group(group) => *group,
            set @ (PlanNode::Prefix { .. } | PlanNode::Column { .. } | PlanNode::All { .. }) => {
                Clauses::any(vec![set])
            }
            list => Clauses { must: vec![list], ..Clauses::default() },
        })
    }

    /// The clauses of a conjunction in the order in which they refine candidates: required clauses and
    /// filters, the cheapest first, exclusions, optional clauses.
    pub(super) fn refining_clauses(self, group: &Clauses<PlanNode>) -> Vec<(&PlanNode, Refine)> {
        let mut clauses: Vec<_> = required_clauses(group).collect();
        clauses.sort_by_key(|(node, how)| self.candidates_cost(node, *how));
        clauses.extend(with_role(&group.must_not, Refine::Exclude));
        clauses.extend(with_role(&group.should, Refine::Optional));
        clauses
    }

    /// The clause that proposes the candidates of a conjunction, the first of
    /// [`SegmentView::refining_clauses`]; `None` for a disjunction.
    pub(super) fn lead(self, group: &Clauses<PlanNode>) -> Option<&PlanNode> {
        let cheapest = required_clauses(group).min_by_key(|(node, how)| self.candidates_cost(node, *how));
        cheapest.map(|(node, _)| node)
    }

    /// Whether all matches of a group are to be found by blocks of the lists that propose candidates, not by
    /// windows. `scores` says whether they are scored.
    pub(super) fn proposes_blocks(self, group: &Clauses<PlanNode>, scores: bool) -> bool {
        match self.lead(group) {
            Some(PlanNode::Group(lead)) => self.proposes_blocks(lead, scores),
            Some(lead) => self.is_led_by_list(lead),
            None => {
                // Bitsets take less for each posting of a term.
                let marks = !scores && group.should.iter().any(|node| matches!(node, PlanNode::Term { .. }));
                let divisor = if marks { MARKED_DIVISOR } else { DENSE_DIVISOR };
                let range_cost = divisor * group.should.len().div_ceil(MERGED_LISTS) as u64;
                group.should.iter().all(|node| self.is_led_by_list(node))
                    && group.cost(|node| self.cost(node)) * range_cost <= u64::from(self.segment.documents())
            }
        }
    }

    /// [`Node::is_led_by_list`](crate::eval::nodes::Node::is_led_by_list) of a clause.
    pub(super) fn is_led_by_list(self, node: &PlanNode) -> bool {
        match node {
            PlanNode::Term { .. } | PlanNode::Phrase { .. } => true,
            PlanNode::Prefix { .. } | PlanNode::Column { .. } | PlanNode::All { .. } | PlanNode::Nothing => {
                false
            }
            PlanNode::Group(group) => self.lead(group).is_some_and(|lead| self.is_led_by_list(lead)),
        }
    }

    /// Relative cost of the candidates that a clause of a conjunction proposes, by which the lead is chosen:
    /// of scored alternatives only some postings are read.
    pub(super) fn candidates_cost(self, node: &PlanNode, how: Refine) -> u64 {
        let is_pruned = matches!(node, PlanNode::Group(group) if group.minimum > 0 && how.is_scored());
        self.cost(node) / if is_pruned { PRUNED_ALTERNATIVES_RATIO } else { 1 }
    }

    /// Upper bound of the number of matches in the segment, from document frequencies; of a clause on a
    /// column the expected number. As `cost` of a Lucene iterator, it orders clauses.
    pub(super) fn cost(self, node: &PlanNode) -> u64 {
        let documents =
            |leaf: usize| self.term_info(leaf).map_or(0, |info| u64::from(info.document_frequency));
        match node {
            PlanNode::Term { leaf, .. } => documents(*leaf),
            PlanNode::Phrase { leaves, .. } => {
                leaves.iter().map(|(_, leaf)| documents(*leaf)).min().unwrap_or(0)
            }
            PlanNode::Prefix { prefix, .. } => {
                prefix.postings[self.number].min(u64::from(self.segment.documents()))
            }
            PlanNode::Column { clause, .. } => {
                let matches = clause.matches[self.number];
                // Sparse alternatives are merged in buffers of this number of candidates.
                match is_sparse(matches.documents_max, self.segment.documents()) {
                    true => matches.documents_max,
                    false => matches.documents,
                }
            }
            PlanNode::All { .. } => u64::from(self.segment.documents()),
            PlanNode::Group(group) => group.cost(|node| self.cost(node)),
            PlanNode::Nothing => 0,
        }
    }

    /// The number of documents that are not deleted and match a clause, if it is known before a list is
    /// opened: of a term and of all documents. The terms of deleted documents may be unknown.
    pub(super) fn known_matches(self, node: &PlanNode) -> Option<u64> {
        match node {
            PlanNode::Term { leaf, .. } if self.segment.are_frequencies_exact() => {
                Some(self.term_info(*leaf).map_or(0, |info| u64::from(info.live_documents())))
            }
            PlanNode::Column { clause, .. } if self.segment.deletes().is_none() => {
                let matches = clause.matches[self.number];
                matches.is_exact.then_some(matches.documents)
            }
            PlanNode::All { .. } => Some(u64::from(self.segment.live_documents())),
            _ => None,
        }
    }
}

fn required_clauses(group: &Clauses<PlanNode>) -> impl Iterator<Item = (&PlanNode, Refine)> {
    with_role(&group.must, Refine::Require).chain(with_role(&group.filter, Refine::Filter))
}

fn with_role(nodes: &[PlanNode], how: Refine) -> impl Iterator<Item = (&PlanNode, Refine)> {
    nodes.iter().map(move |node| (node, how))
}
