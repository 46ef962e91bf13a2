//! Refinement: the effect of a clause on the candidates of other clauses.

/// The effect of a clause on candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refine {
    /// Keeps those that match, and adds their scores.
    Require,
    /// Keeps those that match.
    Filter,
    /// Drops those that match.
    Exclude,
    /// Adds the scores of those that match.
    Optional,
}

impl Refine {
    pub(crate) fn is_scored(self) -> bool {
        matches!(self, Refine::Require | Refine::Optional)
    }
}

/// Parameters of a refinement.
#[derive(Clone, Copy, Debug)]
pub struct Refinement {
    pub(crate) how: Refine,
    /// Upper bound of this clause that the scores of the candidates include; it is replaced by the score.
    pub(crate) included_bound: u32,
    /// Candidates whose scores fall below this are dropped.
    pub(crate) min_score: u32,
}

impl Refinement {
    /// For candidates whose scores include no upper bound of this clause, without a score threshold.
    pub(crate) fn all(how: Refine) -> Refinement {
        Refinement { how, included_bound: 0, min_score: 0 }
    }
}
