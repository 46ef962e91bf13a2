//! Queries: trees of analyzed terms in numbered fields, and their normal form.

use std::collections::HashMap;

/// Up to this number, clauses are compared pairwise rather than through a hash table.
const PAIRWISE_CLAUSES_MAX: usize = 12;

/// A query: its words are terms of the index, its fields are numbers.
///
/// [`Query::parse`] reads the query language: `a b` (either), `+a -b` or `a AND NOT b`, `"a b"~2` (phrase
/// with slop), `title:a`, `pre*`, `fuzy~1`, `a^2` (boost), `#a` (filter), groups in parentheses. Queries may
/// also be built from their variants.
///
/// ```
/// use tierdex::{Query, Schema};
///
/// let query = Query::parse("disk", &Schema::default())?;
/// assert_eq!(query, Query::Term { field: 0, term: "disk".to_string(), boost: 1.0 });
/// let error = Query::parse("disk AND", &Schema::default()).unwrap_err();
/// assert!(error.to_string().starts_with("query, byte "));
/// # Ok::<(), tierdex::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Query {
    /// Documents that contain a term.
    Term {
        /// Number of the field.
        field: usize,
        /// The term after analysis.
        term: String,
        /// Factor of its score.
        boost: f64,
    },
    /// Documents that contain terms at given distances.
    Phrase {
        /// Number of the field.
        field: usize,
        /// Terms with their distances from the first, increasing.
        terms: Vec<(u32, String)>,
        /// Total number of positions by which the terms may be displaced (`crate::eval::slop`).
        slop: u32,
        /// Whether the last term is a grapheme cluster of text without blanks, which stands for all terms
        /// that begin with it.
        open_end: bool,
        /// Factor of its score.
        boost: f64,
    },
    /// Documents that contain a term with this prefix. Each scores `boost`.
    Prefix {
        /// Number of the field.
        field: usize,
        /// The prefix, not empty.
        prefix: String,
        /// Whether a term only counts if a grapheme cluster ends behind the prefix: the prefix is one
        /// character of text without blanks.
        whole_clusters: bool,
        /// Score.
        boost: f64,
    },
    /// Documents that contain a term close to a word. Matching terms are within `distance` edits (insertion,
    /// deletion, substitution, transposition of adjacent characters), and the edit distance is less than the
    /// length of either in characters. At most [`crate::limits::FUZZY_EXPANSIONS_MAX`] terms are used: the
    /// closest, then those with the highest document frequency, then the first in byte order. Scores of
    /// several terms are summed. Each term scores with the document frequency of the most frequent of them,
    /// and its boost is multiplied by `1 - distance / length`, where `length` is that of the shorter of term
    /// and word.
    Fuzzy {
        /// Number of the field.
        field: usize,
        /// The word.
        word: String,
        /// Maximum edit distance, 0 to 2.
        distance: u8,
        /// Factor of its score.
        boost: f64,
    },
    /// All documents. Each scores `boost`.
    All {
        /// Score.
        boost: f64,
    },
    /// Documents that match all of `must` and `filter`, at least `minimum` of `should`, and none of
    /// `must_not`. If `must` and `filter` are empty and `should` is not, at least one of `should` must
    /// match. If all three are empty, all documents match that `must_not` does not exclude, with score 0.
    Bool {
        /// Required clauses.
        must: Vec<Query>,
        /// Required clauses that do not contribute to the score.
        filter: Vec<Query>,
        /// Alternatives, or optional clauses that contribute to the score.
        should: Vec<Query>,
        /// Exclusions.
        must_not: Vec<Query>,
        /// Minimum number of `should` clauses that must match.
        minimum: u32,
    },
    /// No document.
    Nothing,
}

impl Query {
    /// Bytes of memory that it takes.
    #[doc(hidden)]
    pub fn memory(&self) -> usize {
        let text = match self {
            Query::Term { term, .. } => term.capacity(),
            Query::Prefix { prefix, .. } => prefix.capacity(),
            Query::Fuzzy { word, .. } => word.capacity(),
            Query::Phrase { terms, .. } => {
                let term = |(_, term): &(u32, String)| size_of::<(u32, String)>() + term.capacity();
                terms.iter().map(term).sum()
            }
            Query::Bool { must, filter, should, must_not, .. } => {
                [must, filter, should, must_not].into_iter().flatten().map(Query::memory).sum()
            }
            Query::All { .. } | Query::Nothing => 0,
        };
        size_of::<Query>() + text
    }

    /// A [`Query::Bool`] without filters and without a minimum.
    pub fn clauses(must: Vec<Query>, should: Vec<Query>, must_not: Vec<Query>) -> Query {
        Query::Bool { must, filter: Vec::new(), should, must_not, minimum: 0 }
    }

    /// The normal form: nested alternatives are one list, and so are nested required clauses; alternatives
    /// that must all match are required clauses; a list of one clause is the clause; equal clauses of a list
    /// are merged and their boosts summed. Alternatives with a minimum above 1 are only normalized
    /// themselves.
    pub(super) fn normal(self) -> Query {
        let Query::Bool { mut must, filter, mut should, must_not, mut minimum } = self else { return self };
        if minimum as usize > should.len() {
            return Query::Nothing;
        }
        if minimum as usize == should.len() {
            must.append(&mut should);
            minimum = 0;
        }
        let mut must = merge_equal(flatten(must, Query::into_requirements));
        let mut should = match minimum {
            0 | 1 => merge_equal(flatten(should, Query::into_alternatives)),
            _ => should.into_iter().map(Query::normal).collect(),
        };
        let filter: Vec<_> = filter.into_iter().map(Query::normal).collect();
        let must_not: Vec<_> = must_not.into_iter().map(Query::normal).collect();
        if must.is_empty() && filter.is_empty() && minimum == 1 {
            minimum = 0;
        }
        match (must.len(), should.len(), filter.len() + must_not.len()) {
            (1, 0, 0) => must.remove(0),
            (0, 1, 0) => should.remove(0),
            _ => Query::Bool { must, filter, should, must_not, minimum },
        }
    }

    fn into_alternatives(self) -> std::result::Result<Vec<Query>, Query> {
        match self {
            Query::Bool { must, filter, should, must_not, minimum: 0 }
                if must.is_empty() && filter.is_empty() && must_not.is_empty() && !should.is_empty() =>
            {
                Ok(should)
            }
            other => Err(other),
        }
    }

    fn into_requirements(self) -> std::result::Result<Vec<Query>, Query> {
        match self {
            Query::Bool { must, filter, should, must_not, minimum: 0 }
                if should.is_empty() && filter.is_empty() && must_not.is_empty() && !must.is_empty() =>
            {
                Ok(must)
            }
            other => Err(other),
        }
    }

    fn boost_mut(&mut self) -> Option<&mut f64> {
        match self {
            Query::Term { boost, .. }
            | Query::Phrase { boost, .. }
            | Query::Prefix { boost, .. }
            | Query::Fuzzy { boost, .. }
            | Query::All { boost } => Some(boost),
            Query::Bool { .. } | Query::Nothing => None,
        }
    }

    /// Boost of a leaf.
    pub(super) fn boost(&self) -> Option<f64> {
        match self {
            Query::Term { boost, .. }
            | Query::Phrase { boost, .. }
            | Query::Prefix { boost, .. }
            | Query::Fuzzy { boost, .. }
            | Query::All { boost } => Some(*boost),
            Query::Bool { .. } | Query::Nothing => None,
        }
    }

    fn leaf_key(&self) -> Option<LeafKey<'_>> {
        match self {
            Query::Term { field, term, .. } => Some(LeafKey::Term(*field, term)),
            Query::Phrase { field, terms, slop, open_end, .. } => {
                Some(LeafKey::Phrase(*field, terms, *slop, *open_end))
            }
            Query::Prefix { field, prefix, whole_clusters, .. } => {
                Some(LeafKey::Prefix(*field, prefix, *whole_clusters))
            }
            Query::Fuzzy { field, word, distance, .. } => Some(LeafKey::Fuzzy(*field, word, *distance)),
            Query::All { .. } => Some(LeafKey::All),
            Query::Bool { .. } | Query::Nothing => None,
        }
    }
}

/// Key under which leaves are equal: everything except the boost.
#[derive(PartialEq, Eq, Hash)]
enum LeafKey<'a> {
    Term(usize, &'a str),
    Phrase(usize, &'a [(u32, String)], u32, bool),
    Prefix(usize, &'a str, bool),
    Fuzzy(usize, &'a str, u8),
    All,
}

/// Clauses in normal form; each list that `inner` accepts is replaced by its clauses.
fn flatten(clauses: Vec<Query>, inner: fn(Query) -> std::result::Result<Vec<Query>, Query>) -> Vec<Query> {
    if !clauses.iter().any(|clause| matches!(clause, Query::Bool { .. })) {
        return clauses;
    }
    let mut flat = Vec::with_capacity(clauses.len());
    for clause in clauses.into_iter().map(Query::normal) {
        match inner(clause) {
            Ok(clauses) => flat.extend(clauses),
            Err(clause) => flat.push(clause),
        }
    }
    flat
}

/// Merges equal leaves at the position of the first.
fn merge_equal(mut clauses: Vec<Query>) -> Vec<Query> {
    let differ = |position: usize| {
        clauses[..position].iter().all(|first| first.leaf_key() != clauses[position].leaf_key())
    };
    if clauses.len() <= PAIRWISE_CLAUSES_MAX && (1..clauses.len()).all(differ) {
        return clauses;
    }
    let positions = first_positions(&clauses);
    for (position, first) in positions.iter().enumerate().filter(|(position, first)| *first < position) {
        let added = clauses[position].boost().unwrap_or(0.0);
        if let Some(boost) = clauses[*first].boost_mut() {
            *boost += added;
        }
    }
    let mut position = 0;
    clauses.retain(|_| {
        position += 1;
        positions[position - 1] == position - 1
    });
    clauses
}

/// For each clause, the position of the first clause with an equal key.
fn first_positions(clauses: &[Query]) -> Vec<usize> {
    let mut positions = HashMap::new();
    let clauses = clauses.iter().enumerate();
    clauses
        .map(|(position, clause)| {
            clause.leaf_key().map_or(position, |key| *positions.entry(key).or_insert(position))
        })
        .collect()
}
