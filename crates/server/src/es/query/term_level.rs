//! Queries of terms as they are in the index: their texts are not analysed.

use super::fields::{QueryScope, constant_score, sum_of};
use super::full_text::FieldText;
use super::fuzziness::Fuzziness;
use crate::api_error::ApiError;
use crate::es::error::parsing_error;
use crate::es::members::{Members, text_of};
use serde_json::{Value, json};
use tierdex::Query;

/// A text in a field, with its boost. The other members have been checked.
struct BoostedTerm {
    /// `None` if the index has no such field.
    field: Option<usize>,
    text: String,
    boost: f64,
    fuzziness: Fuzziness,
}

impl BoostedTerm {
    fn of(
        scope: &mut QueryScope<'_>,
        body: &Value,
        what: &'static str,
        boost: f64,
    ) -> Result<BoostedTerm, ApiError> {
        let FieldText { field, text, members } = FieldText::of(body, what, "value")?;
        let (mut boost, mut fuzziness) = (boost, Fuzziness::DEFAULT);
        if let Some(mut members) = members {
            boost *= members.boost()?;
            members.only("case_insensitive", &json!(false))?;
            if what == "fuzzy" {
                fuzziness = Fuzziness::take(&mut members)?.unwrap_or(fuzziness);
                members.only("transpositions", &json!(true))?;
            }
            members.finish()?;
        }
        scope.add_clauses(1)?;
        Ok(BoostedTerm { field: scope.field(field)?, text, boost, fuzziness })
    }

    fn prefix(self, prefix: String) -> Query {
        let BoostedTerm { field, boost, .. } = self;
        let query = |field| Query::Prefix { field, prefix, whole_clusters: false, boost };
        field.map_or(Query::Nothing, query)
    }
}

/// `term`
pub(super) fn term(scope: &mut QueryScope<'_>, body: &Value, boost: f64) -> Result<Query, ApiError> {
    let BoostedTerm { field, text: term, boost, .. } = BoostedTerm::of(scope, body, "term", boost)?;
    Ok(field.map_or(Query::Nothing, |field| Query::Term { field, term, boost }))
}

/// `terms`: each document with any of them has the same score.
pub(super) fn terms(scope: &mut QueryScope<'_>, body: &Value, boost: f64) -> Result<Query, ApiError> {
    let mut members = Members::of(body, "terms")?;
    let boost = boost * members.boost()?;
    let (name, list) = members.one()?;
    let list = list.as_array().ok_or_else(|| parsing_error("[terms] supports a list of terms only"))?;
    scope.add_clauses(list.len())?;
    let Some(field) = scope.field(name)? else { return Ok(Query::Nothing) };
    let term = |value| {
        let term = text_of(value).ok_or_else(|| parsing_error("a term of [terms] must be a text"))?;
        Ok(Query::Term { field, term, boost: 1.0 })
    };
    let should = list.iter().map(term).collect::<Result<Vec<_>, ApiError>>()?;
    Ok(constant_score(sum_of(should), boost))
}

/// `prefix`
pub(super) fn prefix(scope: &mut QueryScope<'_>, body: &Value, boost: f64) -> Result<Query, ApiError> {
    let found = BoostedTerm::of(scope, body, "prefix", boost)?;
    let prefix = found.text.clone();
    Ok(found.prefix(prefix))
}

/// `wildcard`, of a prefix.
pub(super) fn wildcard(scope: &mut QueryScope<'_>, body: &Value, boost: f64) -> Result<Query, ApiError> {
    let found = BoostedTerm::of(scope, body, "wildcard", boost)?;
    let prefix = found.text.strip_suffix('*').filter(|prefix| !prefix.is_empty());
    let prefix = prefix.filter(|prefix| !prefix.contains(['*', '?', '\\'])).map(str::to_string);
    let other = || parsing_error("[wildcard] supports a prefix followed by `*` only");
    Ok(found.prefix(prefix.ok_or_else(other)?))
}

/// `fuzzy`
pub(super) fn fuzzy(scope: &mut QueryScope<'_>, body: &Value, boost: f64) -> Result<Query, ApiError> {
    let BoostedTerm { field, text, boost, fuzziness } = BoostedTerm::of(scope, body, "fuzzy", boost)?;
    let distance = fuzziness.of_word(&text);
    Ok(match field {
        None => Query::Nothing,
        Some(field) if distance == 0 => Query::Term { field, term: text, boost },
        Some(field) => Query::Fuzzy { field, word: text, distance, boost },
    })
}
