//! The plan of a search: that of its query, and the strategy of each segment, which is chosen once for all
//! that ask it.

use super::segment_view::SegmentView;
use super::strategy::{EvaluationOptions, Strategy, choose_strategy};
use crate::query::{QueryList, QueryPlan};
use crate::{query::plan_node::PlanNode, segment::read::Segment};
use std::sync::Arc;

/// A planned search. Immutable.
pub struct SearchPlan {
    /// The plan of the query.
    pub(crate) query: QueryPlan,
    pub(crate) options: EvaluationOptions,
    /// Of each segment.
    pub(super) strategies: Vec<Strategy<PlanNode>>,
}

impl SearchPlan {
    /// Chooses the strategies of a query.
    pub(crate) fn new(query: QueryPlan, segments: &[Arc<Segment>], options: EvaluationOptions) -> SearchPlan {
        let strategy =
            |(number, segment)| choose_strategy(SegmentView { plan: &query, number, segment }, &options);
        let strategies = segments.iter().map(AsRef::as_ref).enumerate().map(strategy).collect();
        SearchPlan { query, options, strategies }
    }

    /// The strategy in a segment.
    pub(crate) fn strategy(&self, number: usize) -> &Strategy<PlanNode> {
        &self.strategies[number]
    }

    /// The plan in a segment.
    pub(crate) fn view<'a>(&'a self, number: usize, segment: &'a Segment) -> SegmentView<'a> {
        SegmentView { plan: &self.query, number, segment }
    }

    /// [`QueryPlan::lists`].
    pub fn lists(&self, segments: &[Arc<Segment>]) -> Vec<QueryList> {
        self.query.lists(segments)
    }

    /// [`QueryPlan::is_one_term`].
    pub fn is_one_term(&self) -> bool {
        self.query.is_one_term()
    }
}
