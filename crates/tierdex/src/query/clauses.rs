//! The clauses of a boolean group, of a plan or of its evaluation in a segment.

/// Documents that match all of `must` and `filter`, `minimum` of `should`, and none of `must_not`.
#[derive(Clone, Debug, Default)]
pub struct Clauses<N> {
    /// Required clauses.
    pub(crate) must: Vec<N>,
    /// Required clauses that add nothing to the score.
    pub(crate) filter: Vec<N>,
    /// Alternatives, or optional clauses.
    pub(crate) should: Vec<N>,
    /// Exclusions.
    pub(crate) must_not: Vec<N>,
    /// Number of `should` clauses that must match. After a rewrite 0 only if there are required clauses.
    pub(crate) minimum: usize,
}

impl<N> Clauses<N> {
    /// Alternatives of which one must match.
    pub(crate) fn any(should: Vec<N>) -> Clauses<N> {
        Clauses { must: vec![], filter: vec![], should, must_not: vec![], minimum: 1 }
    }

    /// All clauses: required, filters, alternatives, exclusions.
    pub(crate) fn all(&self) -> impl Iterator<Item = &N> {
        self.must.iter().chain(&self.filter).chain(&self.should).chain(&self.must_not)
    }

    /// The required clause or alternative, if there is no other clause.
    pub(crate) fn only_clause(&self) -> Option<&N> {
        match (&self.must[..], &self.should[..]) {
            ([one], []) | ([], [one]) if self.all().count() == 1 && self.must.len() != self.minimum => {
                Some(one)
            }
            _ => None,
        }
    }

    /// Whether there are required clauses or filters.
    pub(crate) fn requires(&self) -> bool {
        !(self.must.is_empty() && self.filter.is_empty())
    }

    /// Whether the group is a disjunction: its matches are those of any alternative.
    pub(crate) fn are_alternatives(&self) -> bool {
        self.minimum == 1 && !self.requires() && self.must_not.is_empty()
    }

    /// Approximate upper bound of the number of matches, given that of each clause.
    pub(crate) fn cost(&self, of: impl Fn(&N) -> u64) -> u64 {
        let required = self.must.iter().chain(&self.filter).map(&of).min();
        required.unwrap_or_else(|| self.should.iter().map(&of).sum())
    }
}
