//! The plan of a query over the segments of a commit.
//!
//! 1. `bind` looks up the terms in every segment and weights each clause by global statistics.
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
    /// The clauses that score documents; if no hits are requested, clauses that only match.
    pub(crate) root: PlanNode,
    /// Clauses that match the same documents without scoring them, if hits and the number of matches are
    /// requested: the number may follow from document frequencies ([`Strategy`](crate::eval::Strategy)).
    pub(crate) counted: Option<PlanNode>,
    /// All terms that were looked up, also those of clauses that the rewrite removed.
    pub(crate) leaves: Vec<Leaf>,
    /// The scorer of each phrase.
    pub(crate) phrases: Vec<TermScorer>,
    /// Factor between weights and integer scores.
    pub(crate) scale: ScoreScale,
}

impl QueryPlan {
    /// Plans `query`. `ranks`: hits are requested; `counts`, or not `ranks`: their number is.
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
        let rewrite = |root, scored| PlanRewriter::of_collection(&leaves, scored).rewrite_root(root);
        let counted = (ranks && counts).then(|| rewrite(root.clone(), false));
        let root = rewrite(root, ranks);
        let scale = if ranks { root.set_weights(&mut leaves, &mut phrases) } else { ScoreScale::of(0.0) };
        Ok(QueryPlan { root, counted, leaves, phrases, scale })
    }
}

impl PlanNode {
    /// Calls `body` with each scored clause that is not a group.
    fn for_each_scored(&self, body: &mut dyn FnMut(&PlanNode)) {
        match self {
            PlanNode::Group(group) => {
                group.must.iter().chain(&group.should).for_each(|node| node.for_each_scored(body));
            }
            clause => body(clause),
        }
    }

    /// Sets the weights of the scored terms and phrases of this root, and the scale of all scores.
    fn set_weights(&self, leaves: &mut [Leaf], phrases: &mut [TermScorer]) -> ScoreScale {
        let mut max_score = 0.0;
        self.for_each_scored(&mut |clause| {
            let share_max = match clause {
                PlanNode::Term { leaf, weight } => {
                    let leaf = &mut leaves[*leaf];
                    (leaf.weight, leaf.is_scored) = (*weight, true);
                    leaf.scorer.share_max()
                }
                PlanNode::Phrase { phrase, .. } => phrases[*phrase].share_max(),
                _ => 1.0,
            };
            max_score += clause.weight() * f64::from(share_max);
        });
        let scale = ScoreScale::of(max_score);
        self.for_each_scored(&mut |clause| match clause {
            PlanNode::Term { leaf, weight } => leaves[*leaf].scorer.set_weight(*weight, scale),
            PlanNode::Phrase { phrase, weight, .. } => phrases[*phrase].set_weight(*weight, scale),
            _ => {}
        });
        scale
    }
}
