//! Queries in terms of the index: analysed words in numbered fields, in normal form.

use super::syntax::{Occur, Syntax, check_length, parse};
use crate::error::{Error, Result};
use crate::limits::{PHRASE_TERMS_MAX, QUERY_TERMS_MAX};
use crate::schema::Schema;
use crate::text::Analyzer;
use std::collections::HashMap;

/// A query whose words are terms.
#[derive(Clone, Debug, PartialEq)]
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
        /// Terms with their distances from the first.
        terms: Vec<(u32, String)>,
        /// How many times it counts.
        boost: f64,
    },
    /// Documents that match all of `must`, none of `must_not` and, when `must` is empty, one of `should`. When
    /// both are empty, all documents but those of `must_not`, with score 0.
    Bool {
        /// Required clauses.
        must: Vec<Query>,
        /// Alternatives, or additions to the score.
        should: Vec<Query>,
        /// Excluding clauses.
        must_not: Vec<Query>,
    },
    /// No document.
    Nothing,
}

impl Query {
    /// Reads `text` by the query language ([`super::syntax`]); words without a field search the first field.
    pub fn parse(text: &str, schema: &Schema) -> Result<Query> {
        let syntax = parse(text, &|name| schema.field(name).is_some())?;
        let query = Analyzers::new(schema).query(&syntax)?;
        Ok(query.map_or(Query::Nothing, Query::normal))
    }

    /// Documents that hold any term of `text`, which is plain text: no operators.
    pub fn any_term(text: &str, schema: &Schema) -> Result<Query> {
        check_length(text)?;
        let query = Analyzers::new(schema).words(0, text)?;
        Ok(query.map_or(Query::Nothing, Query::normal))
    }

    /// All terms that the query looks for in a field, for marking them in a text.
    pub fn terms_of(&self, field: usize, terms: &mut Vec<String>) {
        match self {
            Query::Term { field: of, term, .. } if *of == field => terms.push(term.clone()),
            Query::Phrase { field: of, terms: words, .. } if *of == field => {
                terms.extend(words.iter().map(|(_, term)| term.clone()));
            }
            Query::Bool { must, should, .. } => {
                must.iter().chain(should).for_each(|clause| clause.terms_of(field, terms));
            }
            _ => {}
        }
    }

    /// The normal form: alternatives of alternatives are one list, requirements of requirements too; a list of
    /// one clause is the clause; equal clauses of a list are one that counts as often.
    fn normal(self) -> Query {
        let Query::Bool { must, should, must_not } = self else { return self };
        let flatten = |clauses: Vec<Query>, inner: fn(Query) -> std::result::Result<Vec<Query>, Query>| {
            let mut flat = Vec::new();
            for clause in clauses.into_iter().map(Query::normal) {
                match inner(clause) {
                    Ok(clauses) => flat.extend(clauses),
                    Err(clause) => flat.push(clause),
                }
            }
            merge_equal(flat)
        };
        let mut must = flatten(must, Query::into_requirements);
        let mut should = flatten(should, Query::into_alternatives);
        let must_not: Vec<_> = must_not.into_iter().map(Query::normal).collect();
        match (must.len(), should.len(), must_not.len()) {
            (1, 0, 0) => must.remove(0),
            (0, 1, 0) => should.remove(0),
            _ => Query::Bool { must, should, must_not },
        }
    }

    fn into_alternatives(self) -> std::result::Result<Vec<Query>, Query> {
        match self {
            Query::Bool { must, should, must_not }
                if must.is_empty() && must_not.is_empty() && !should.is_empty() =>
            {
                Ok(should)
            }
            other => Err(other),
        }
    }

    fn into_requirements(self) -> std::result::Result<Vec<Query>, Query> {
        match self {
            Query::Bool { must, should, must_not }
                if should.is_empty() && must_not.is_empty() && !must.is_empty() =>
            {
                Ok(must)
            }
            other => Err(other),
        }
    }

    fn boost_mut(&mut self) -> Option<&mut f64> {
        match self {
            Query::Term { boost, .. } | Query::Phrase { boost, .. } => Some(boost),
            _ => None,
        }
    }

    /// What makes two leaves equal: field, and terms with their distances.
    fn leaf_key(&self) -> Option<(usize, Vec<(u32, String)>)> {
        match self {
            Query::Term { field, term, .. } => Some((*field, vec![(0, term.clone())])),
            Query::Phrase { field, terms, .. } => Some((*field, terms.clone())),
            _ => None,
        }
    }
}

/// Joins equal leaves at the place of the first.
fn merge_equal(clauses: Vec<Query>) -> Vec<Query> {
    let mut merged: Vec<Query> = Vec::with_capacity(clauses.len());
    let mut places = HashMap::new();
    for mut clause in clauses {
        let place = clause.leaf_key().map(|key| *places.entry(key).or_insert(merged.len()));
        let first = place.and_then(|place| merged.get_mut(place));
        match (first.and_then(Query::boost_mut), clause.boost_mut()) {
            (Some(total), Some(own)) => *total += *own,
            _ => merged.push(clause),
        }
    }
    merged
}

/// The chains of all fields, made when first used.
struct Analyzers<'a> {
    schema: &'a Schema,
    chains: Vec<Option<Analyzer>>,
    /// Terms that the query has so far.
    terms: usize,
}

impl<'a> Analyzers<'a> {
    fn new(schema: &'a Schema) -> Analyzers<'a> {
        Analyzers { schema, chains: schema.fields.iter().map(|_| None).collect(), terms: 0 }
    }

    /// `None` when analysis leaves nothing of what the query asks for.
    fn query(&mut self, syntax: &Syntax) -> Result<Option<Query>> {
        match syntax {
            Syntax::Word(field, word) => {
                let field = self.number(field.as_deref());
                self.words(field, word)
            }
            Syntax::Phrase(field, words) => {
                let field = self.number(field.as_deref());
                self.phrase(field, words)
            }
            Syntax::List(clauses) => self.list(clauses),
        }
    }

    fn list(&mut self, clauses: &[(Occur, Syntax)]) -> Result<Option<Query>> {
        let (mut must, mut should, mut must_not) = (Vec::new(), Vec::new(), Vec::new());
        for (occur, syntax) in clauses {
            let clause = self.query(syntax)?;
            match occur {
                Occur::Must => must.extend(clause),
                Occur::Should => should.extend(clause),
                Occur::MustNot => must_not.extend(clause),
            }
        }
        let asked = clauses.iter().any(|(occur, _)| *occur != Occur::MustNot);
        let nothing_left = must.is_empty() && should.is_empty() && (asked || must_not.is_empty());
        Ok((!nothing_left).then_some(Query::Bool { must, should, must_not }))
    }

    fn words(&mut self, field: usize, words: &str) -> Result<Option<Query>> {
        let terms = self.chain(field).terms(words);
        self.count(terms.len())?;
        let should: Vec<_> = terms.into_iter().map(|term| Query::Term { field, term, boost: 1.0 }).collect();
        Ok((!should.is_empty()).then_some(Query::Bool { must: Vec::new(), should, must_not: Vec::new() }))
    }

    fn phrase(&mut self, field: usize, words: &str) -> Result<Option<Query>> {
        let mut terms = Vec::new();
        self.chain(field).analyze(words, 0, |token| terms.push((token.position, token.term.to_string())));
        self.count(terms.len())?;
        if terms.len() > PHRASE_TERMS_MAX {
            return Err(Error::Limit(format!(
                "a phrase of {} terms; at most {PHRASE_TERMS_MAX} can be one",
                terms.len()
            )));
        }
        let first = terms.first().map_or(0, |(position, _)| *position);
        for (position, _) in &mut terms {
            *position -= first;
        }
        Ok(match terms.len() {
            0 => None,
            1 => Some(Query::Term { field, term: terms.remove(0).1, boost: 1.0 }),
            _ => Some(Query::Phrase { field, terms, boost: 1.0 }),
        })
    }

    /// Adds to the number of terms, which has a bound: each costs memory and time.
    fn count(&mut self, terms: usize) -> Result<()> {
        self.terms += terms;
        match self.terms {
            0..=QUERY_TERMS_MAX => Ok(()),
            terms => Err(Error::Limit(format!(
                "a query of {terms} terms or more; at most {QUERY_TERMS_MAX} are answered"
            ))),
        }
    }

    fn number(&self, field: Option<&str>) -> usize {
        field.and_then(|name| self.schema.field(name)).unwrap_or(0)
    }

    fn chain(&mut self, field: usize) -> &mut Analyzer {
        self.chains[field].get_or_insert_with(|| Analyzer::new(&self.schema.fields[field].analysis))
    }
}
