//! The clauses of the naive engine, and the rules by which they are rewritten: inner groups become parts of
//! outer ones, and equal clauses of a group become one clause with the sum of their weights (docs/query.md).

use std::{collections::HashSet, mem::take};

/// Key of the clause that all documents match.
pub const ALL_DOCUMENTS_KEY: &str = "all";

/// A clause of a query, with its matching documents.
#[derive(Clone)]
pub enum Clause {
    Leaf(LeafClause),
    Group(GroupClause),
    Nothing,
}

/// A term, phrase, prefix, or all documents.
#[derive(Clone)]
pub struct LeafClause {
    /// The text of the clause without its boost: equal for clauses that differ only in their weights.
    pub key: String,
    pub weight: f64,
    /// Largest factor by which a score multiplies the weight.
    pub largest_share: f64,
    pub matches: LeafMatches,
}

/// The documents that match a leaf.
#[derive(Clone)]
pub enum LeafMatches {
    /// A field, and the documents in it with their frequencies, from which scores are computed.
    Frequencies(usize, Vec<(u32, f32)>),
    /// Documents whose score is the weight.
    Documents(HashSet<u32>),
}

/// Documents that match all of `must` and `filter`, `minimum` of `should`, and none of `must_not`.
#[derive(Clone, Default)]
pub struct GroupClause {
    pub must: Vec<Clause>,
    pub filter: Vec<Clause>,
    pub should: Vec<Clause>,
    pub must_not: Vec<Clause>,
    pub minimum: usize,
}

impl Clause {
    /// A clause of documents whose score is `weight`.
    pub fn set(key: String, weight: f64, documents: HashSet<u32>) -> Clause {
        Clause::Leaf(LeafClause {
            key,
            weight,
            largest_share: 1.0,
            matches: LeafMatches::Documents(documents),
        })
    }

    /// The sum of the highest possible scores of the leaves that are scored.
    pub fn weight(&self) -> f64 {
        match self {
            Clause::Leaf(leaf) => leaf.weight * leaf.largest_share,
            Clause::Group(group) => group.must.iter().chain(&group.should).map(Clause::weight).sum(),
            Clause::Nothing => 0.0,
        }
    }

    /// The clause with all rules applied, the inner groups first.
    pub fn rewritten(self, scored: bool) -> Clause {
        let Clause::Group(mut group) = self else { return self };
        for clause in group.must.iter_mut().chain(&mut group.should) {
            *clause = clause.clone().rewritten(scored);
        }
        for clause in group.filter.iter_mut().chain(&mut group.must_not) {
            *clause = clause.clone().rewritten(false);
        }
        group.rewritten(scored)
    }

    fn is_nothing(&self) -> bool {
        matches!(self, Clause::Nothing)
    }

    fn is_all(&self) -> bool {
        matches!(self, Clause::Leaf(leaf) if leaf.key == ALL_DOCUMENTS_KEY)
    }

    fn scores_nothing(&self) -> bool {
        match self {
            Clause::Leaf(leaf) => leaf.weight == 0.0,
            Clause::Group(group) => group.must.iter().chain(&group.should).all(Clause::scores_nothing),
            Clause::Nothing => true,
        }
    }
}

impl GroupClause {
    fn rewritten(mut self, scored: bool) -> Clause {
        self.should.retain(|clause| !clause.is_nothing());
        self.must_not.retain(|clause| !clause.is_nothing());
        if self.must.is_empty() && self.filter.is_empty() {
            self.minimum = self.minimum.max(1);
        }
        if self.must.iter().chain(&self.filter).any(Clause::is_nothing) || self.minimum > self.should.len() {
            return Clause::Nothing;
        }
        self.require_all();
        self.join_inner_groups();
        if self.must_not.iter().any(Clause::is_all) {
            return Clause::Nothing;
        }
        if self.minimum == 0 {
            self.should.retain(|clause| scored && !clause.scores_nothing());
        }
        if self.minimum < 2 {
            self.should = merge_equal_leaves(take(&mut self.should));
            self.require_all();
        }
        let (filter, must) =
            take(&mut self.must).into_iter().partition(|clause| !scored || clause.scores_nothing());
        (self.must, self.filter) = (merge_equal_leaves(must), [take(&mut self.filter), filter].concat());
        let required: Vec<String> = self.must.iter().filter_map(clause_key).collect();
        self.filter = merge_equal_leaves(take(&mut self.filter));
        self.filter.retain(|clause| clause_key(clause).is_none_or(|key| !required.contains(&key)));
        if !self.must.is_empty() || self.minimum > 0 || self.filter.iter().any(|clause| !clause.is_all()) {
            self.filter.retain(|clause| !clause.is_all());
        }
        match (self.must.len(), self.filter.len(), self.should.len(), self.must_not.len()) {
            (1, 0, 0, 0) => self.must.remove(0),
            (0, 1, 0, 0) if !scored => self.filter.remove(0),
            _ => Clause::Group(self),
        }
    }

    fn require_all(&mut self) {
        if self.minimum == self.should.len() {
            self.must.append(&mut self.should);
            self.minimum = 0;
        }
    }

    /// Moves the clauses of inner groups to this group, where that does not change the matches.
    fn join_inner_groups(&mut self) {
        for clause in take(&mut self.must) {
            match clause {
                Clause::Group(inner)
                    if inner.minimum == 0 && (self.minimum == 0 || inner.should.is_empty()) =>
                {
                    self.must.extend(inner.must);
                    self.filter.extend(inner.filter);
                    self.should.extend(inner.should);
                    self.must_not.extend(inner.must_not);
                }
                other => self.must.push(other),
            }
        }
        for clause in take(&mut self.filter) {
            match clause {
                Clause::Group(inner) if inner.minimum == 0 && inner.should.is_empty() => {
                    self.filter.extend(inner.must.into_iter().chain(inner.filter));
                    self.must_not.extend(inner.must_not);
                }
                other => self.filter.push(other),
            }
        }
        if self.minimum < 2 {
            self.should = join_alternatives(take(&mut self.should));
        }
        self.must_not = join_alternatives(take(&mut self.must_not));
    }
}

/// Replaces groups of alternatives by their clauses.
fn join_alternatives(clauses: Vec<Clause>) -> Vec<Clause> {
    let inner = |clause| match clause {
        Clause::Group(GroupClause { must, filter, should, must_not, minimum: 1 })
            if must.is_empty() && filter.is_empty() && must_not.is_empty() =>
        {
            should
        }
        other => vec![other],
    };
    clauses.into_iter().flat_map(inner).collect()
}

fn clause_key(clause: &Clause) -> Option<String> {
    match clause {
        Clause::Leaf(leaf) => Some(leaf.key.clone()),
        Clause::Group(_) | Clause::Nothing => None,
    }
}

/// Replaces equal leaves by one leaf, in place of the first, with the sum of their weights.
fn merge_equal_leaves(clauses: Vec<Clause>) -> Vec<Clause> {
    let mut merged: Vec<Clause> = Vec::new();
    for clause in clauses {
        let first = merged
            .iter_mut()
            .find(|other| clause_key(other).is_some() && clause_key(other) == clause_key(&clause));
        match (first, clause) {
            (Some(Clause::Leaf(first)), Clause::Leaf(leaf)) => first.weight += leaf.weight,
            (_, clause) => merged.push(clause),
        }
    }
    merged
}
