//! The fields that a query names, and what its translation shares.

use crate::api_error::{ApiError, ApiErrorKind};
use crate::es::error::parsing_error;
use crate::es::members::matches_pattern;
use tierdex::limits::{BOOST_MAX, QUERY_BYTES_MAX, QUERY_CLAUSES_MAX};
use tierdex::{Query, Schema};

/// What the translation of a query shares: the schema, and what was found in the query so far.
pub(in crate::es) struct QueryScope<'s> {
    pub(super) schema: &'s Schema,
    /// Members without effect.
    pub(in crate::es) ignored: Vec<String>,
    /// Clauses so far.
    pub(super) clauses: usize,
}

/// A field with the boost of its clauses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BoostedField {
    pub(super) number: usize,
    pub(super) boost: f64,
}

impl<'s> QueryScope<'s> {
    pub(in crate::es) fn new(schema: &'s Schema) -> QueryScope<'s> {
        QueryScope { schema, ignored: Vec::new(), clauses: 0 }
    }

    /// Counts clauses against the limit.
    pub(super) fn add_clauses(&mut self, count: usize) -> Result<(), ApiError> {
        self.clauses += count;
        if self.clauses > QUERY_CLAUSES_MAX {
            let message = format!("the query has more than {QUERY_CLAUSES_MAX} clauses");
            return Err(ApiError::new(ApiErrorKind::Limit, message));
        }
        Ok(())
    }

    /// The number of a field; `None` if the index has none of this name, so that nothing matches.
    pub(super) fn field(&self, name: &str) -> Result<Option<usize>, ApiError> {
        if name.starts_with('_') {
            return Err(parsing_error(format!("queries of [{}] are not supported", name.escape_debug())));
        }
        Ok(self.schema.field(name))
    }

    /// The fields that names and patterns stand for, each with the boost behind `^`. Names that no field has
    /// are left out; a field that is named twice has the product of its boosts.
    pub(super) fn fields(&self, names: &[String]) -> Result<Vec<BoostedField>, ApiError> {
        let mut found: Vec<BoostedField> = Vec::new();
        for name in names {
            let (pattern, boost) = match name.split_once('^') {
                Some((pattern, boost)) => (pattern, boost.parse().ok()),
                None => (name.as_str(), Some(1.0)),
            };
            let is_valid = |boost: &f64| (0.0..=BOOST_MAX).contains(boost);
            let wrong = || parsing_error(format!("the field [{}] has no valid boost", name.escape_debug()));
            let boost = boost.filter(is_valid).ok_or_else(wrong)?;
            self.field(pattern)?;
            let fields = self.schema.fields.iter().enumerate();
            for (number, _) in fields.filter(|(_, field)| matches_pattern(pattern, &field.name)) {
                match found.iter_mut().find(|field| field.number == number) {
                    Some(field) => field.boost *= boost,
                    None => found.push(BoostedField { number, boost }),
                }
            }
        }
        Ok(found)
    }

    /// All fields.
    pub(super) fn all_fields(&self) -> Vec<BoostedField> {
        (0..self.schema.fields.len()).map(|number| BoostedField { number, boost: 1.0 }).collect()
    }
}

/// Rejects a text that is longer than a query may be, before anything is made of it.
pub(super) fn check_text(text: &str, what: &str) -> Result<(), ApiError> {
    if text.len() > QUERY_BYTES_MAX {
        let message =
            format!("the text of [{what}] has {} bytes; at most {QUERY_BYTES_MAX} are allowed", text.len());
        return Err(ApiError::new(ApiErrorKind::Limit, message));
    }
    Ok(())
}

/// Documents that match any of these; the scores are added.
pub(super) fn sum_of(mut should: Vec<Query>) -> Query {
    match should.len() {
        0 => Query::Nothing,
        1 => should.remove(0),
        _ => Query::clauses(Vec::new(), should, Vec::new()),
    }
}

/// Documents that match a query, with the same score.
pub(super) fn constant_score(filter: Query, boost: f64) -> Query {
    let must = vec![Query::All { boost }];
    Query::Bool { must, filter: vec![filter], should: Vec::new(), must_not: Vec::new(), minimum: 0 }
}
