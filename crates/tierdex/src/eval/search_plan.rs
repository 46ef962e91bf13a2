//! The plan of a search: the plan of its query, and one strategy for each segment. Strategies are chosen here
//! once; the memory estimate, the evaluation and `explain` use the same ones.

use super::segment_view::SegmentView;
use super::strategy::{EvaluationOptions, Strategy, choose_strategy};
use crate::query::{QueryList, QueryPlan};
use crate::{query::plan_node::PlanNode, segment::read::OpenSegment};

/// The plan of a query with the strategies by which its segments are evaluated. Immutable.
pub struct SearchPlan {
    /// The plan of the query.
    pub(crate) query: QueryPlan,
    pub(crate) options: EvaluationOptions,
    /// By the number of the segment in the commit.
    pub(super) strategies: Vec<Strategy>,
}

impl SearchPlan {
    /// Chooses the strategy of each segment.
    pub(crate) fn new(query: QueryPlan, segments: &[OpenSegment], options: EvaluationOptions) -> SearchPlan {
        let strategy =
            |(number, segment)| choose_strategy(SegmentView { plan: &query, number, segment }, &options);
        let strategies = segments.iter().enumerate().map(strategy).collect();
        SearchPlan { query, options, strategies }
    }

    /// The strategy of the segment with this number.
    pub(crate) fn strategy(&self, number: usize) -> &Strategy {
        &self.strategies[number]
    }

    /// The plan of the query together with the segment with this number.
    pub(crate) fn view<'a>(&'a self, number: usize, segment: &'a OpenSegment) -> SegmentView<'a> {
        SegmentView { plan: &self.query, number, segment }
    }

    /// [`QueryPlan::lists`].
    pub fn lists(&self, segments: &[OpenSegment]) -> Vec<QueryList> {
        self.query.lists(segments)
    }

    /// Whether the query is a single term.
    pub fn is_one_term(&self) -> bool {
        matches!(self.query.root, PlanNode::Term { .. })
    }
}
