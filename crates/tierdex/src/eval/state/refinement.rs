//! Refinement: what a clause does to the candidates that other clauses have proposed.

/// What a clause does to candidates, by its role in the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refine {
    /// Keeps the candidates that match the clause, and adds its scores.
    Require,
    /// Keeps the candidates that match the clause.
    Filter,
    /// Drops the candidates that match the clause.
    Exclude,
    /// Keeps all candidates, and adds the scores of those that match the clause.
    Optional,
}

impl Refine {
    pub(crate) fn is_scored(self) -> bool {
        matches!(self, Refine::Require | Refine::Optional)
    }
}

/// How a clause refines a batch of candidates.
#[derive(Clone, Copy, Debug)]
pub struct Refinement {
    pub(crate) how: Refine,
    /// Upper bound of the scores of this clause. The scores of the candidates include it; it is replaced by
    /// the exact score.
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
