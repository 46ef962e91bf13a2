//! Chooses the evaluation strategy of a query in a segment.

use super::conjunction::{conjunction, required};
use super::count::count;
use super::group::GroupNode;
use super::impact_ordered::{impact_ordered, is_worth};
use super::maxscore::maxscore;
use super::node::Node;
use super::refine::Refiners;
use super::search::Search;
use super::small_merge::{is_small, small_merge};
use super::windows::{offer_zero_scores, windows};
use crate::error::Result;

/// The evaluation strategy of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// No document can match.
    #[default]
    Nothing,
    /// The number of matches is read from the dictionary; no hits are requested.
    Dictionary,
    /// Blocks of one term in descending order of their max scores.
    ImpactOrdered,
    /// Candidates of the rarest clause are looked up in the other clauses.
    Conjunction,
    /// `MaxScore` over windows of documents.
    MaxScore,
    /// Whole lists are merged.
    SmallMerge,
    /// Every window that may contain a hit is evaluated.
    Windows,
    /// Matches are counted only.
    Count,
}

impl Strategy {
    /// The name that explanations show.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Nothing => "nothing can match",
            Strategy::Dictionary => "counted by the dictionary",
            Strategy::ImpactOrdered => "impact order",
            Strategy::Conjunction => "conjunction",
            Strategy::MaxScore => "MaxScore over windows",
            Strategy::SmallMerge => "small lists merged",
            Strategy::Windows => "every window",
            Strategy::Count => "counted",
        }
    }
}

/// Offers the documents of a segment that may be hits. Returns the number of matches if they are counted,
/// else the number of documents evaluated; and the strategy.
pub fn evaluate(root: &mut Node<'_>, search: &mut Search<'_>) -> Result<(u64, Strategy)> {
    if search.top.k() == 0 {
        let strategy = if let Node::Term(_) = root { Strategy::Dictionary } else { Strategy::Count };
        search.count = true;
        return Ok((count(root, search)?, strategy));
    }
    match root {
        Node::Term(term) if !search.exhaustive => {
            let postings = search.count_once(term.postings());
            impact_ordered(term, &mut Refiners::none(), search)?;
            Ok((postings, Strategy::ImpactOrdered))
        }
        Node::Term(_) | Node::Phrase(_) => {
            let mut required = required(std::slice::from_mut(root), &mut []);
            let found = conjunction(&mut required, &mut Refiners::none(), search)?;
            Ok((found, Strategy::Conjunction))
        }
        Node::Group(group) if group.minimum == 0 => with_required(root, search),
        Node::Group(group) if group.minimum == 1 && group.must.is_empty() && group.filter.is_empty() => {
            alternatives(root, search)
        }
        _ => Ok((windows(root, search)?, Strategy::Windows)),
    }
}

/// A group with required clauses; `should` clauses are optional.
fn with_required(root: &mut Node<'_>, search: &mut Search<'_>) -> Result<(u64, Strategy)> {
    let Node::Group(group) = root else { return Ok((0, Strategy::Nothing)) };
    let alone = group.must.is_empty() && matches!(&group.should[..], [Node::Term(_)]);
    if alone && !search.count && !search.exhaustive {
        // Documents that match the optional term precede those that do not, which score 0.
        std::mem::swap(&mut group.must, &mut group.should);
        let found = with_required(root, search)?;
        let Node::Group(group) = root else { return Ok(found) };
        std::mem::swap(&mut group.must, &mut group.should);
        if search.may_enter(0, 0) {
            offer_zero_scores(root, search)?;
        }
        return Ok(found);
    }
    let GroupNode { must, filter, should, must_not, .. } = &mut **group;
    if let ([Node::Term(term)], [], false, false) =
        (&mut must[..], &should[..], search.count, search.exhaustive)
    {
        let mut refiners = Refiners::new(filter, must_not, &mut []);
        if is_worth(term, &refiners, search.top.k(), search.documents) {
            return Ok((impact_ordered(term, &mut refiners, search)?, Strategy::ImpactOrdered));
        }
    }
    let filtered = filter.iter().map(Node::cost).min().unwrap_or(u64::MAX);
    let alternatives: u64 = should.iter().map(Node::cost).sum();
    let scored = !should.is_empty() && should.iter().all(Node::always_scores);
    if must.is_empty() && scored && !search.count && !search.exhaustive && filtered > alternatives / 4 {
        let found = maxscore(should, &mut Refiners::new(filter, must_not, &mut []), search)?;
        if search.may_enter(0, 0) {
            offer_zero_scores(root, search)?;
        }
        return Ok((found, Strategy::MaxScore));
    }
    let mut required = required(must, filter);
    let found = conjunction(&mut required, &mut Refiners::new(&mut [], must_not, should), search)?;
    Ok((found, Strategy::Conjunction))
}

/// A group in which one of the alternatives must match, without required clauses.
fn alternatives(root: &mut Node<'_>, search: &mut Search<'_>) -> Result<(u64, Strategy)> {
    let Node::Group(group) = root else { return Ok((0, Strategy::Nothing)) };
    if let [Node::Term(_)] = &group.should[..] {
        (group.must, group.minimum) = (std::mem::take(&mut group.should), 0);
        return with_required(root, search);
    }
    let GroupNode { should, must_not, .. } = &mut **group;
    if !should.iter().all(Node::always_scores) {
        return Ok((windows(root, search)?, Strategy::Windows));
    }
    let terms = should.iter().all(|node| matches!(node, Node::Term(_)));
    let postings = should.iter().map(Node::cost).sum();
    let mut refiners = Refiners::new(&mut [], must_not, &mut []);
    if terms && is_small(postings, search.documents) {
        return Ok((small_merge(should, &mut refiners, search)?, Strategy::SmallMerge));
    }
    Ok((maxscore(should, &mut refiners, search)?, Strategy::MaxScore))
}
