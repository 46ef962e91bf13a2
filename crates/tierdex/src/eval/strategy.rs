//! The evaluation strategy of a query in a segment.
//!
//! [`choose_strategy`] is the only function that maps the clauses of a query to a strategy. Opening lists,
//! the memory estimate, counting and `explain` read the [`Strategy`] that it returned. Before any strategy
//! runs, [`sufficient_clauses`] answers another question about the whole plan: from which clauses a threshold
//! follows ([`initial_threshold`](crate::eval::initial_threshold())).

use crate::eval::tuning::{DENSE_DIVISOR, IMPACT_ORDER_RATIO, PRUNED_ALTERNATIVES_RATIO};
use crate::eval::{SegmentView, Tuning};
use crate::query::plan_node::PlanNode;
use crate::query::{Clauses, QueryPlan};
use std::mem::take;

/// What a caller requests of the evaluation of a query.
#[derive(Clone, Copy, Debug)]
pub struct EvaluationOptions {
    /// Number of hits; with 0 matches are only counted.
    pub k: usize,
    /// Whether every match is counted, beside the hits.
    pub count: bool,
    /// Whether every match is scored, without pruning.
    pub exhaustive: bool,
    /// Sizes from which on lists are evaluated as long ones.
    pub tuning: Tuning,
}

/// The algorithm that finds the matches of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StrategyKind {
    /// No document can match.
    #[default]
    Nothing,
    /// The number of matches is read from the dictionary; no hits are requested.
    Dictionary,
    /// Blocks of the required term in descending order of their max scores.
    ImpactOrdered,
    /// Candidates of the rarest required clause are looked up in the other clauses.
    Conjunction,
    /// Candidates are found in windows of documents, those of alternatives by `MaxScore`.
    Windows,
    /// Matches are counted with bitsets.
    CountBits,
    /// Matches are counted in the blocks of the lists that propose candidates.
    CountBlocks,
    /// Matches of a conjunction are counted, and subtracted from document frequencies of the dictionary.
    CountDifference,
}

impl StrategyKind {
    /// The name that explanations show.
    pub fn name(self) -> &'static str {
        match self {
            StrategyKind::Nothing => "nothing can match",
            StrategyKind::Dictionary => "counted by the dictionary",
            StrategyKind::ImpactOrdered => "impact order",
            StrategyKind::Conjunction => "conjunction",
            StrategyKind::Windows => "MaxScore over windows",
            StrategyKind::CountBits => "counted with bitsets",
            StrategyKind::CountBlocks => "counted by blocks",
            StrategyKind::CountDifference => "counted by a difference",
        }
    }

    /// Whether matches are scored.
    pub(super) fn is_scored(self) -> bool {
        use StrategyKind::{Conjunction, ImpactOrdered, Windows};
        matches!(self, ImpactOrdered | Conjunction | Windows)
    }
}

/// A strategy with the clauses that it evaluates. A query of one term or phrase has one required clause; one
/// of a prefix or of all documents has one alternative.
#[derive(Default)]
pub struct Strategy {
    /// The algorithm.
    pub kind: StrategyKind,
    /// The clauses, as they are left in the segment.
    pub clauses: Clauses<PlanNode>,
    /// Number of matches in the segment, if it follows from document frequencies. For
    /// [`StrategyKind::CountDifference`] the matches of the clauses are to be subtracted from it.
    pub dictionary_count: Option<u64>,
    /// Whether the algorithm has to visit every match to count it: nothing is pruned.
    pub(super) counts_matches: bool,
    /// Whether all matches are scored in windows, not found by blocks of lists.
    pub(super) sums_windows: bool,
    /// Expected number of candidates until `k` of them pass filters and exclusions. Only
    /// [`StrategyKind::ImpactOrdered`] uses it.
    pub(super) expected_candidates: f64,
    /// Whether all scored clauses are optional: documents that match none of them, and pass filters and
    /// exclusions, are offered to the collector with score 0 after the others.
    pub(super) offers_zero_scores: bool,
}

impl Strategy {
    /// Number of matches, if no hits are requested and no list need be opened.
    pub fn known_count(&self) -> Option<u64> {
        self.dictionary_count
            .filter(|_| matches!(self.kind, StrategyKind::Nothing | StrategyKind::Dictionary))
    }
}

/// Chooses the strategy of a plan in a segment, by its clauses and their document frequencies.
pub fn choose_strategy(view: SegmentView<'_>, options: &EvaluationOptions) -> Strategy {
    let chooser = StrategyChooser { view, options };
    let Some(clauses) = view.rewritten_clauses(&view.plan.root, options.k > 0) else {
        return Strategy { dictionary_count: Some(0), ..Strategy::default() };
    };
    if options.k == 0 {
        return chooser.choose_counting(clauses);
    }
    let counted = view.plan.counted.as_ref().filter(|_| options.count);
    let dictionary_count = counted.and_then(|counted| match view.rewritten_clauses(counted, false) {
        Some(clauses) => chooser.count_by_dictionary(&clauses),
        None => Some(0),
    });
    let counts_matches = options.count && dictionary_count.is_none();
    chooser.choose_ranking(Strategy { clauses, dictionary_count, counts_matches, ..Strategy::default() })
}

/// The clauses of a plan that suffice alone: each match of one of them is a match of the query, and scores at
/// least as much as the clause. The `k`-th best score of such a clause is a lower bound of that of the query.
pub(super) fn sufficient_clauses(plan: &QueryPlan) -> &[PlanNode] {
    let PlanNode::Group(group) = &plan.root else { return std::slice::from_ref(&plan.root) };
    match (&group.must[..], group.minimum) {
        _ if !(group.filter.is_empty() && group.must_not.is_empty()) => &[],
        ([], 1) => &group.should,
        (must @ [_], 0) => must,
        _ => &[],
    }
}

/// Rules by which the strategy of the plan in `view` is chosen.
struct StrategyChooser<'a> {
    view: SegmentView<'a>,
    options: &'a EvaluationOptions,
}

impl StrategyChooser<'_> {
    /// Completes a strategy that finds the best documents: its kind and what depends on it.
    fn choose_ranking(&self, mut strategy: Strategy) -> Strategy {
        let prunes = !strategy.counts_matches && !self.options.exhaustive;
        let clauses = &mut strategy.clauses;
        if prunes && clauses.must.is_empty() && clauses.minimum == 0 && self.are_hits_of_optional(clauses) {
            // Documents that match an optional clause score more than those that only pass the filters.
            match take(&mut clauses.should) {
                one if one.len() == 1 => clauses.must = one,
                several => clauses.must.push(PlanNode::Group(Box::new(Clauses::any(several)))),
            }
            strategy.offers_zero_scores = true;
        }
        strategy.kind = match (&clauses.must[..], &clauses.should[..]) {
            ([term @ PlanNode::Term { .. }], []) if prunes => {
                let postings = self.view.cost(term);
                strategy.expected_candidates = self.expected_candidates(clauses);
                if self.is_impact_order_cheaper(clauses, postings, strategy.expected_candidates) {
                    if clauses.filter.is_empty() && clauses.must_not.is_empty() {
                        strategy.dictionary_count = self.view.known_matches(term);
                    }
                    StrategyKind::ImpactOrdered
                } else {
                    self.choose_by_lead(clauses)
                }
            }
            _ => self.choose_by_lead(clauses),
        };
        strategy.sums_windows = !prunes && !self.view.proposes_blocks(clauses, true);
        strategy
    }

    /// Whether the hits are expected to match an optional clause, if nothing scored is required, and finding
    /// those is cheaper than visiting all documents that pass the filters.
    fn are_hits_of_optional(&self, clauses: &Clauses<PlanNode>) -> bool {
        let filtered = self.costs(&clauses.filter).min().unwrap_or(u64::MAX);
        match &clauses.should[..] {
            [] => false,
            [PlanNode::Term { .. }] => true,
            optional => {
                let postings: u64 = self.costs(optional).sum();
                optional.iter().all(has_positive_scores) && filtered > postings / PRUNED_ALTERNATIVES_RATIO
            }
        }
    }

    /// The strategy of a conjunction or disjunction, by the clause that proposes candidates.
    fn choose_by_lead(&self, clauses: &Clauses<PlanNode>) -> StrategyKind {
        match self.view.lead(clauses) {
            Some(PlanNode::Term { .. } | PlanNode::Phrase { .. }) => StrategyKind::Conjunction,
            _ => StrategyKind::Windows,
        }
    }

    /// Whether impact order is cheaper than a conjunction: the expected number of candidates, times
    /// [`IMPACT_ORDER_RATIO`], is less than the length of the rarest list. Always true without filters.
    fn is_impact_order_cheaper(&self, clauses: &Clauses<PlanNode>, postings: u64, candidates: f64) -> bool {
        let Some(rarest) = self.costs(&clauses.filter).min() else { return true };
        candidates * IMPACT_ORDER_RATIO < rarest.min(postings) as f64
    }

    /// Expected number of candidates until `k` of them pass filters and exclusions and are not deleted, if
    /// clauses match independently of each other.
    fn expected_candidates(&self, clauses: &Clauses<PlanNode>) -> f64 {
        let documents = f64::from(self.view.segment.documents());
        let selectivity = |cost: u64| cost as f64 / documents;
        let pass: f64 = self.costs(&clauses.filter).map(selectivity).product();
        let pass = pass * f64::from(self.view.segment.live_documents()) / documents;
        let pass = pass
            * self.costs(&clauses.must_not).map(|cost| 1.0 - selectivity(cost).min(0.99)).product::<f64>();
        self.options.k as f64 / pass.clamp(1e-9, 1.0)
    }

    /// The strategy that counts the matches of unscored clauses.
    fn choose_counting(&self, clauses: Clauses<PlanNode>) -> Strategy {
        let dictionary_count = self.count_by_dictionary(&clauses);
        if dictionary_count.is_some() {
            return Strategy { kind: StrategyKind::Dictionary, dictionary_count, ..Strategy::default() };
        }
        let dense = u64::from(self.view.segment.documents()) / DENSE_DIVISOR;
        let is_dense = |node: &PlanNode| self.view.cost(node) > dense;
        let (mut dictionary_count, mut clauses) = (None, clauses);
        let kind = match (&clauses.filter[..], &clauses.should[..], &clauses.must_not[..]) {
            ([], [one @ PlanNode::Term { .. }, other @ PlanNode::Term { .. }], [])
                if clauses.are_alternatives()
                    && !(is_dense(one) && is_dense(other))
                    && self.view.segment.are_frequencies_exact() =>
            {
                // |A or B| = |A| + |B| - |A and B|; the intersection is cheaper to count than the union.
                dictionary_count = clauses.should.iter().map(|node| self.view.known_matches(node)).sum();
                clauses = Clauses { filter: clauses.should, ..Clauses::default() };
                StrategyKind::CountDifference
            }
            _ if clauses.must.is_empty() && clauses.all().all(is_dense) => StrategyKind::CountBits,
            ([one @ PlanNode::Term { .. }], [], [PlanNode::Term { .. }])
                if self.view.segment.are_frequencies_exact() =>
            {
                // |A and not B| = |A| - |A and B|.
                dictionary_count = self.view.known_matches(one);
                clauses.filter.append(&mut clauses.must_not);
                StrategyKind::CountDifference
            }
            _ if self.view.proposes_blocks(&clauses, false) => StrategyKind::CountBlocks,
            _ => StrategyKind::CountBits,
        };
        Strategy { kind, clauses, dictionary_count, counts_matches: true, ..Strategy::default() }
    }

    /// Number of matches of unscored clauses, if it follows from document frequencies: of one term, of all
    /// documents, and of all documents except those of a term.
    fn count_by_dictionary(&self, clauses: &Clauses<PlanNode>) -> Option<u64> {
        let mut all = clauses.all();
        match (all.next(), all.next(), all.next()) {
            (
                Some(one @ (PlanNode::Term { .. } | PlanNode::Column { .. } | PlanNode::All { .. })),
                None,
                None,
            ) => self.view.known_matches(one),
            (Some(all @ PlanNode::All { .. }), Some(excluded @ PlanNode::Term { .. }), None)
                if clauses.must_not.len() == 1 =>
            {
                Some(self.view.known_matches(all)?.saturating_sub(self.view.known_matches(excluded)?))
            }
            _ => None,
        }
    }

    /// Upper bound of the number of matches of each node.
    fn costs(&self, nodes: &[PlanNode]) -> impl Iterator<Item = u64> {
        nodes.iter().map(|node| self.view.cost(node))
    }
}

/// Whether every match of a node scores more than 0. Terms and phrases of weight 0 do not occur: the rewrite
/// makes them filters.
pub(super) fn has_positive_scores(node: &PlanNode) -> bool {
    match node {
        PlanNode::Term { .. } | PlanNode::Phrase { .. } | PlanNode::Nothing => true,
        PlanNode::Prefix { weight, .. } | PlanNode::Column { weight, .. } | PlanNode::All { weight } => {
            *weight > 0.0
        }
        PlanNode::Group(group) if group.minimum > 0 => group.should.iter().all(has_positive_scores),
        PlanNode::Group(group) => group.must.iter().any(has_positive_scores),
    }
}
