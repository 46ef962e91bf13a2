//! The evaluation strategy of a query in a segment. [`choose_strategy`] is the only function that recognises the
//! shapes of queries: what opens lists, estimates memory, counts_matches or explains asks it.

use crate::eval::tuning::{
    DENSE_DIVISOR, IMPACT_ORDER_RATIO, MERGED_PER_WINDOW_MAX, MERGED_POSTINGS_MAX, WINDOW_DOCUMENTS,
};
use crate::eval::{SegmentView, Tuning};
use crate::query::plan_node::PlanNode;
use crate::query::{Clauses, QueryPlan};

/// What is requested of an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct EvaluationOptions {
    /// Number of hits; 0 only counts_matches.
    pub k: usize,
    /// Whether every match is counted, beside the hits.
    pub count: bool,
    /// Whether every match is scored, without pruning.
    pub exhaustive: bool,
    /// Sizes of long lists.
    pub tuning: Tuning,
}

/// How the matches of a segment are found.
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
    /// `MaxScore` over windows of documents, for the alternatives.
    MaxScore,
    /// The whole lists of the alternatives are merged.
    SmallMerge,
    /// Every window that may contain a hit is evaluated.
    Windows,
    /// Matches are counted with bitsets.
    CountBits,
    /// Matches of a conjunction are counted.
    CountConjunction,
    /// Matches of a conjunction are counted, and subtracted from a number that the dictionary has.
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
            StrategyKind::MaxScore => "MaxScore over windows",
            StrategyKind::SmallMerge => "small lists merged",
            StrategyKind::Windows => "every window",
            StrategyKind::CountBits => "counted with bitsets",
            StrategyKind::CountConjunction => "counted by a conjunction",
            StrategyKind::CountDifference => "counted by a difference",
        }
    }

    /// Whether matches are scored.
    pub(super) fn is_scored(self) -> bool {
        use StrategyKind::{Conjunction, ImpactOrdered, MaxScore, SmallMerge, Windows};
        matches!(self, ImpactOrdered | Conjunction | MaxScore | SmallMerge | Windows)
    }
}

/// A strategy with the clauses that it evaluates: those of the plan, or, opened, their nodes. A query of one
/// clause has one required clause, or one alternative if it is a set of documents or for windows.
pub struct Strategy<N> {
    /// The algorithm.
    pub kind: StrategyKind,
    /// What it evaluates.
    pub clauses: Clauses<N>,
    /// Number of matches that follows from the dictionary. For [`StrategyKind::CountDifference`] those of
    /// the clauses are to be subtracted.
    pub dictionary_count: Option<u64>,
    /// Whether the evaluation counts every match.
    pub(super) counts_matches: bool,
    /// Expected number of candidates until `k` of them pass filters and exclusions, for
    /// [`StrategyKind::ImpactOrdered`].
    pub(super) expected_candidates: f64,
    /// Whether every match scores more than 0, for [`StrategyKind::Windows`].
    pub(super) has_positive_scores: bool,
    /// Scored clauses are optional: documents that match none of them, and pass filters and exclusions, are
    /// offered with score 0 afterwards.
    pub(super) offers_zero_scores: bool,
}

impl<N> Default for Strategy<N> {
    fn default() -> Strategy<N> {
        Strategy {
            kind: StrategyKind::Nothing,
            clauses: Clauses::default(),
            dictionary_count: None,
            counts_matches: false,
            expected_candidates: 0.0,
            has_positive_scores: false,
            offers_zero_scores: false,
        }
    }
}

impl<N> Strategy<N> {
    /// Number of matches, if no hits are requested and no list need be opened.
    pub fn known_count(&self) -> Option<u64> {
        self.dictionary_count
            .filter(|_| matches!(self.kind, StrategyKind::Nothing | StrategyKind::Dictionary))
    }
}

/// Chooses the strategy of a plan in a segment.
pub fn choose_strategy(view: SegmentView<'_>, options: &EvaluationOptions) -> Strategy<PlanNode> {
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

/// The clauses of a plan each of whose matches is a match of the query, with at least its score.
pub(super) fn sufficient_clauses(plan: &QueryPlan) -> &[PlanNode] {
    let PlanNode::Group(group) = &plan.root else { return std::slice::from_ref(&plan.root) };
    match (&group.must[..], group.minimum) {
        _ if !(group.filter.is_empty() && group.must_not.is_empty()) => &[],
        ([], 1) => &group.should,
        (must @ [_], 0) => must,
        _ => &[],
    }
}

struct StrategyChooser<'a> {
    view: SegmentView<'a>,
    options: &'a EvaluationOptions,
}

impl StrategyChooser<'_> {
    /// The strategy that finds the best documents.
    fn choose_ranking(&self, mut strategy: Strategy<PlanNode>) -> Strategy<PlanNode> {
        if strategy.clauses.minimum == 0 {
            return self.choose_conjunctive(strategy);
        }
        let Clauses { should, minimum, .. } = &strategy.clauses;
        let are_alternatives = *minimum == 1 && !strategy.clauses.requires() && should.len() > 1;
        strategy.has_positive_scores = clauses_have_positive_scores(&strategy.clauses);
        strategy.kind = if are_alternatives && strategy.has_positive_scores {
            let are_terms = should.iter().all(|node| matches!(node, PlanNode::Term { .. }));
            let is_small =
                are_terms && is_merge_cheaper(self.costs(should).sum(), self.view.segment.documents());
            if is_small { StrategyKind::SmallMerge } else { StrategyKind::MaxScore }
        } else {
            StrategyKind::Windows
        };
        strategy
    }

    /// The same for a query with required clauses or filters, whose other clauses are optional.
    fn choose_conjunctive(&self, mut strategy: Strategy<PlanNode>) -> Strategy<PlanNode> {
        let prunes = !strategy.counts_matches && !self.options.exhaustive;
        let clauses = &mut strategy.clauses;
        strategy.kind = StrategyKind::Conjunction;
        if !prunes {
            return strategy;
        }
        if clauses.must.is_empty() && matches!(clauses.should[..], [PlanNode::Term { .. }]) {
            // Documents that match the optional term precede those that do not, which score 0.
            clauses.must.append(&mut clauses.should);
            strategy.offers_zero_scores = true;
        }
        if let ([term @ PlanNode::Term { .. }], []) = (&clauses.must[..], &clauses.should[..]) {
            let postings = self.view.cost(term);
            strategy.expected_candidates = self.expected_candidates(clauses);
            if self.is_impact_order_cheaper(clauses, postings, strategy.expected_candidates) {
                strategy.kind = StrategyKind::ImpactOrdered;
                if clauses.filter.is_empty() && clauses.must_not.is_empty() {
                    strategy.dictionary_count = Some(postings);
                }
            }
        } else if clauses.must.is_empty() && !clauses.should.is_empty() {
            let filtered = self.costs(&clauses.filter).min().unwrap_or(u64::MAX);
            let alternatives: u64 = self.costs(&clauses.should).sum();
            if clauses.should.iter().all(has_positive_scores) && filtered > alternatives / 4 {
                strategy.kind = StrategyKind::MaxScore;
                strategy.offers_zero_scores = true;
            }
        }
        strategy
    }

    /// Whether impact order is cheaper than a conjunction: the expected number of candidates, times
    /// [`IMPACT_ORDER_RATIO`], is less than the length of the rarest list. Always true without filters.
    fn is_impact_order_cheaper(&self, clauses: &Clauses<PlanNode>, postings: u64, candidates: f64) -> bool {
        let Some(rarest) = self.costs(&clauses.filter).min() else { return true };
        candidates * IMPACT_ORDER_RATIO < rarest.min(postings) as f64
    }

    /// Expected number of candidates until `k` of them pass filters and exclusions, if clauses match
    /// independently of each other.
    fn expected_candidates(&self, clauses: &Clauses<PlanNode>) -> f64 {
        let documents = f64::from(self.view.segment.documents());
        let selectivity = |cost: u64| cost as f64 / documents;
        let pass: f64 = self.costs(&clauses.filter).map(selectivity).product();
        let pass = pass
            * self.costs(&clauses.must_not).map(|cost| 1.0 - selectivity(cost).min(0.99)).product::<f64>();
        self.options.k as f64 / pass.clamp(1e-9, 1.0)
    }

    /// The strategy that counts_matches the matches of unscored clauses.
    fn choose_counting(&self, clauses: Clauses<PlanNode>) -> Strategy<PlanNode> {
        if let Some(dictionary_count) = self.count_by_dictionary(&clauses) {
            return Strategy {
                kind: StrategyKind::Dictionary,
                dictionary_count: Some(dictionary_count),
                ..Strategy::default()
            };
        }
        let dense = u64::from(self.view.segment.documents()) / DENSE_DIVISOR;
        let is_dense = |node: &PlanNode| self.view.cost(node) > dense;
        let (mut dictionary_count, mut clauses) = (None, clauses);
        let kind = match (&clauses.filter[..], &clauses.should[..], &clauses.must_not[..]) {
            ([], [one @ PlanNode::Term { .. }, other @ PlanNode::Term { .. }], [])
                if clauses.are_alternatives() && !(is_dense(one) && is_dense(other)) =>
            {
                // |A or B| = |A| + |B| - |A and B|; the intersection is cheaper to count than the union.
                dictionary_count = Some(self.costs(&clauses.should).sum());
                clauses = Clauses { filter: clauses.should, ..Clauses::default() };
                StrategyKind::CountDifference
            }
            _ if clauses.minimum > 0 => StrategyKind::CountBits,
            _ if clauses.must.is_empty() && clauses.all().all(is_dense) => StrategyKind::CountBits,
            ([one @ PlanNode::Term { .. }], [], [PlanNode::Term { .. }]) => {
                // |A and not B| = |A| - |A and B|.
                dictionary_count = Some(self.view.cost(one));
                clauses.filter.append(&mut clauses.must_not);
                StrategyKind::CountDifference
            }
            _ => StrategyKind::CountConjunction,
        };
        Strategy { kind, clauses, dictionary_count, counts_matches: true, ..Strategy::default() }
    }

    /// Number of matches of unscored clauses, if the dictionary has it: of one term or all documents, and of
    /// all documents but those of a term.
    fn count_by_dictionary(&self, clauses: &Clauses<PlanNode>) -> Option<u64> {
        let mut all = clauses.all();
        match (all.next(), all.next(), all.next()) {
            (Some(one @ (PlanNode::Term { .. } | PlanNode::All { .. })), None, None) => {
                Some(self.view.cost(one))
            }
            (Some(all @ PlanNode::All { .. }), Some(excluded @ PlanNode::Term { .. }), None)
                if clauses.must_not.len() == 1 =>
            {
                Some(self.view.cost(all) - self.view.cost(excluded))
            }
            _ => None,
        }
    }

    fn costs(&self, nodes: &[PlanNode]) -> impl Iterator<Item = u64> {
        nodes.iter().map(|node| self.view.cost(node))
    }
}

/// Whether merging whole lists pays for this total number of postings.
fn is_merge_cheaper(postings: u64, documents: u32) -> bool {
    let windows = u64::from(documents).div_ceil(WINDOW_DOCUMENTS as u64);
    postings <= (windows * MERGED_PER_WINDOW_MAX).min(MERGED_POSTINGS_MAX)
}

/// Whether every match scores more than 0. Terms and phrases of weight 0 are filters.
pub(super) fn has_positive_scores(node: &PlanNode) -> bool {
    match node {
        PlanNode::Term { .. } | PlanNode::Phrase { .. } | PlanNode::Nothing => true,
        PlanNode::Prefix { weight, .. } | PlanNode::All { weight } => *weight > 0.0,
        PlanNode::Group(group) => clauses_have_positive_scores(group),
    }
}

fn clauses_have_positive_scores(clauses: &Clauses<PlanNode>) -> bool {
    let alternatives = clauses.minimum > 0 && clauses.should.iter().all(has_positive_scores);
    alternatives || clauses.must.iter().any(has_positive_scores)
}
