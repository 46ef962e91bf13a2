//! Queries in terms of the index: analysed words in numbered fields, in normal form.

use super::analyse::{Analyzers, is_field};
use super::syntax::{Problems, check_length, parse, parse_lenient};
use crate::error::{Error, Result};
use crate::schema::Schema;
use std::collections::HashMap;

/// Clauses that are compared with one another rather than looked up.
const FEW_CLAUSES: usize = 12;

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
    /// Documents that hold a term.
    Term {
        /// Number of the field.
        field: usize,
        /// The term as it stands in the index.
        term: String,
        /// How many times it counts.
        boost: f64,
    },
    /// Documents that hold terms at given distances.
    Phrase {
        /// Number of the field.
        field: usize,
        /// Terms with their distances from the first; distances rise.
        terms: Vec<(u32, String)>,
        /// By how many positions in all the terms may be out of place (`crate::eval::slop`).
        slop: u32,
        /// How many times it counts.
        boost: f64,
    },
    /// Documents that hold a term which begins so. Each scores `boost`.
    Prefix {
        /// Number of the field.
        field: usize,
        /// The beginning, not empty.
        prefix: String,
        /// Score.
        boost: f64,
    },
    /// Documents that hold one of the terms that are close to a word: at most `distance` insertions,
    /// deletions, replacements and swaps of two neighbouring characters away, and fewer than either of the
    /// two has characters. Of more than [`crate::limits::FUZZY_EXPANSIONS_MAX`] terms those count that are
    /// closest, then those with the highest document frequency, then the first by their bytes; in this order
    /// their scores are summed. Each scores as a term with the document frequency of the most frequent of
    /// them, and counts `1 - distance / length` times its boost, `length` being that of the
    /// shorter of it and the word.
    Fuzzy {
        /// Number of the field.
        field: usize,
        /// The word.
        word: String,
        /// Edits, 0 to 2.
        distance: u8,
        /// How many times it counts.
        boost: f64,
    },
    /// All documents. Each scores `boost`.
    All {
        /// Score.
        boost: f64,
    },
    /// Documents that match all of `must` and `filter`, none of `must_not`, and `minimum` of `should` or
    /// more; when `must` and `filter` are empty and `should` is not, at least one of `should`. When all
    /// three are empty, all documents but those of `must_not`, with score 0.
    Bool {
        /// Required clauses.
        must: Vec<Query>,
        /// Required clauses that add nothing to the score.
        filter: Vec<Query>,
        /// Alternatives, or additions to the score.
        should: Vec<Query>,
        /// Excluding clauses.
        must_not: Vec<Query>,
        /// How many of `should` must match.
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

    /// Parses a query in the query language; words without a field search the first field.
    ///
    /// # Errors
    /// [`Error::Query`] with the position of the syntax error.
    pub fn parse(text: &str, schema: &Schema) -> Result<Query> {
        let syntax = parse(text, &|name| is_field(schema, name))?;
        let query = Analyzers::new(schema, &mut Problems::strict()).query(&syntax, 1.0)?;
        Ok(query.map_or(Query::Nothing, Query::normal))
    }

    /// Parses any text: leaves out what [`Query::parse`] would reject, and returns the errors.
    pub fn parse_lenient(text: &str, schema: &Schema) -> (Query, Vec<Error>) {
        let mut problems = Problems::lenient();
        // Problems that are noted are no errors, so that there is always a query.
        let query = parse_lenient(text, &|name| is_field(schema, name), &mut problems)
            .and_then(|syntax| Analyzers::new(schema, &mut problems).query(&syntax, 1.0));
        let query = query.ok().flatten().map_or(Query::Nothing, Query::normal);
        (query, problems.into_warnings())
    }

    /// The terms of a plain text as alternatives: no character is an operator.
    ///
    /// # Errors
    /// [`Error::Query`] when the text is too long or has too many terms.
    pub fn any_term(text: &str, schema: &Schema) -> Result<Query> {
        check_length(text)?;
        let query = Analyzers::new(schema, &mut Problems::strict()).words(0, text, 1.0)?;
        Ok(query.map_or(Query::Nothing, Query::normal))
    }

    /// A query of clauses, with no filter and no minimum of alternatives.
    pub fn clauses(must: Vec<Query>, should: Vec<Query>, must_not: Vec<Query>) -> Query {
        Query::Bool { must, filter: Vec::new(), should, must_not, minimum: 0 }
    }

    /// The normal form: alternatives of alternatives are one list, requirements of requirements too;
    /// alternatives that must all match are requirements; a list of one clause is the clause; equal clauses
    /// of a list are one that counts as often. Alternatives of which more than one must match stay as they
    /// are.
    fn normal(self) -> Query {
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

    /// How many times a leaf counts.
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
            Query::Phrase { field, terms, slop, .. } => Some(LeafKey::Phrase(*field, terms, *slop)),
            Query::Prefix { field, prefix, .. } => Some(LeafKey::Prefix(*field, prefix)),
            Query::Fuzzy { field, word, distance, .. } => Some(LeafKey::Fuzzy(*field, word, *distance)),
            Query::All { .. } => Some(LeafKey::All),
            Query::Bool { .. } | Query::Nothing => None,
        }
    }
}

/// What makes two leaves equal: all but how many times they count.
#[derive(PartialEq, Eq, Hash)]
enum LeafKey<'a> {
    Term(usize, &'a str),
    Phrase(usize, &'a [(u32, String)], u32),
    Prefix(usize, &'a str),
    Fuzzy(usize, &'a str, u8),
    All,
}

/// Clauses in normal form, those of lists that `inner` opens in the place of the list.
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

/// Joins equal leaves at the place of the first.
fn merge_equal(mut clauses: Vec<Query>) -> Vec<Query> {
    let differ =
        |place: usize| clauses[..place].iter().all(|first| first.leaf_key() != clauses[place].leaf_key());
    if clauses.len() <= FEW_CLAUSES && (1..clauses.len()).all(differ) {
        return clauses;
    }
    let places = first_places(&clauses);
    for (place, first) in places.iter().enumerate().filter(|(place, first)| *first < place) {
        let added = clauses[place].boost().unwrap_or(0.0);
        if let Some(boost) = clauses[*first].boost_mut() {
            *boost += added;
        }
    }
    let mut place = 0;
    clauses.retain(|_| {
        place += 1;
        places[place - 1] == place - 1
    });
    clauses
}

/// The place of the first clause that is equal to each but for its boost.
fn first_places(clauses: &[Query]) -> Vec<usize> {
    let mut places = HashMap::new();
    let clauses = clauses.iter().enumerate();
    clauses
        .map(|(place, clause)| clause.leaf_key().map_or(place, |key| *places.entry(key).or_insert(place)))
        .collect()
}
