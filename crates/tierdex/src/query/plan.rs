//! The plan of a query over the segments of a commit.
//!
//! 1. `bind` looks up the terms in every segment and computes the weight of each clause by global
//!    statistics.
//! 2. `rewrite` simplifies the plan. Clauses that cannot match are gone after it.
//! 3. The scale of the scores is computed from the weights of the scored clauses that are left.

use super::bind::{Binder, BoundQuery};
use super::collection::{RankingInputs, SegmentLists};
use super::plan_node::{Leaf, PlanNode};
use super::{rewrite::PlanRewriter, tree::Query};
use crate::rank::{ScoreScale, TermScorer};
use crate::{Result, schema::Schema};

/// A query bound to segments, ready for evaluation. Immutable.
pub struct QueryPlan {
    /// Finds and scores the best documents; if no hits are requested, counts the matches.
    pub(crate) root: PlanNode,
    /// An unscored equivalent that is cheaper to count, if both hits and the number of matches are
    /// requested.
    pub(crate) counted: Option<PlanNode>,
    /// All terms that were looked up, also those of clauses that the rewrite removed.
    pub(crate) leaves: Vec<Leaf>,
    /// The scorers of the phrases.
    pub(crate) phrases: Vec<TermScorer>,
    /// Scale of the integer scores.
    pub(crate) scale: ScoreScale,
}

impl QueryPlan {
    /// Plans `query`. Hits are requested if `ranks`, else the number of matches; with `counts` both are.
    pub(crate) fn new(
        query: &Query,
        schema: &Schema,
        lists: SegmentLists<'_>,
        ranking: RankingInputs<'_>,
        ranks: bool,
        counts: bool,
    ) -> Result<QueryPlan> {
        let BoundQuery { root, mut leaves, mut phrases } =
            Binder::bind(query, schema, lists, ranking, ranks)?;
        let counted = |root| PlanRewriter::of_collection(&leaves, false).rewrite_root(root);
        let (root, counted) = match (ranks, counts) {
            (true, true) => (root.clone(), Some(counted(root))),
            (true, false) => (root, None),
            (false, _) => (counted(root), None),
        };
        let mut scale = ScoreScale::of(0.0);
        let root = if ranks { PlanRewriter::of_collection(&leaves, true).rewrite_root(root) } else { root };
        if ranks {
            scale = ScoreScale::of(root.sum_max_scores(&mut leaves, &phrases));
            root.rescale_scorers(&mut leaves, &mut phrases, scale);
        }
        Ok(QueryPlan { root, counted, leaves, phrases, scale })
    }

    /// Whether the plan is a single term.
    pub fn is_one_term(&self) -> bool {
        matches!(self.root, PlanNode::Term { .. })
    }
}

impl PlanNode {
    /// Sum of the highest possible scores of the scored clauses; marks their terms as scored.
    fn sum_max_scores(&self, leaves: &mut [Leaf], phrases: &[TermScorer]) -> f64 {
        match self {
            PlanNode::Term { leaf, weight } => {
                let leaf = &mut leaves[*leaf];
                (leaf.weight, leaf.is_scored) = (*weight, true);
                weight * f64::from(leaf.scorer.share_max())
            }
            PlanNode::Phrase { phrase, weight, .. } => weight * f64::from(phrases[*phrase].share_max()),
            PlanNode::Prefix { weight, .. } | PlanNode::All { weight } => *weight,
            PlanNode::Group(group) => {
                let scored = group.must.iter().chain(&group.should);
                scored.map(|node| node.sum_max_scores(leaves, phrases)).sum()
            }
            PlanNode::Nothing => 0.0,
        }
    }

    /// Scales the weights of the scorers of the scored clauses.
    fn rescale_scorers(&self, leaves: &mut [Leaf], phrases: &mut [TermScorer], scale: ScoreScale) {
        match self {
            PlanNode::Term { leaf, weight } => leaves[*leaf].scorer.rescale(*weight, scale),
            PlanNode::Phrase { phrase, weight, .. } => phrases[*phrase].rescale(*weight, scale),
            PlanNode::Group(group) => {
                let scored = group.must.iter().chain(&group.should);
                scored.for_each(|node| node.rescale_scorers(leaves, phrases, scale));
            }
            PlanNode::Prefix { .. } | PlanNode::All { .. } | PlanNode::Nothing => {}
        }
    }
}
