//! Queries in JSON to a [`Query`]: the names of queries, and those that combine others.

mod fields;
mod full_text;
mod fuzziness;
mod lucene_syntax;
mod minimum;
mod query_string;
mod simple_syntax;
mod term_level;
mod text_syntax;

pub(super) use fields::QueryScope;

use super::error::parsing_error;
use super::members::Members;
use crate::api_error::ApiError;
use fields::constant_score;
use full_text::{match_bool_prefix, match_phrase, match_words, multi_match};
use minimum::MinimumMatch;
use query_string::{query_string, simple_query_string};
use serde_json::{Value, json};
use std::slice;
use term_level::{fuzzy, prefix, term, terms, wildcard};
use tierdex::Query;

/// Queries that have others inside, or no words.
const WITHOUT_WORDS: [&str; 4] = ["bool", "constant_score", "match_all", "match_none"];

/// The query of a JSON object, whose scores are multiplied by `boost`. The depth of the object is bounded.
pub(super) fn translate(scope: &mut QueryScope<'_>, value: &Value, boost: f64) -> Result<Query, ApiError> {
    let (name, body) = Members::of(value, "query")?.one()?;
    scope.add_clauses(usize::from(WITHOUT_WORDS.contains(&name)))?;
    let clauses = scope.clauses;
    let query = query_of_name(scope, name, body, boost)?;
    // A text whose words analysis drops is a clause too.
    let is_counted = WITHOUT_WORDS.contains(&name) || scope.clauses > clauses;
    scope.add_clauses(usize::from(!is_counted))?;
    Ok(query)
}

fn query_of_name(
    scope: &mut QueryScope<'_>,
    name: &str,
    body: &Value,
    boost: f64,
) -> Result<Query, ApiError> {
    match name {
        "match" => match_words(scope, body, boost),
        "match_phrase" => match_phrase(scope, body, boost),
        "match_bool_prefix" => match_bool_prefix(scope, body, boost),
        "multi_match" => multi_match(scope, body, boost),
        "query_string" => query_string(scope, body, boost),
        "simple_query_string" => simple_query_string(scope, body, boost),
        "term" => term(scope, body, boost),
        "terms" => terms(scope, body, boost),
        "prefix" => prefix(scope, body, boost),
        "wildcard" => wildcard(scope, body, boost),
        "fuzzy" => fuzzy(scope, body, boost),
        "bool" => combine(scope, body, boost),
        "constant_score" => {
            let mut members = Members::of(body, name)?;
            let boost = boost * members.boost()?;
            let filter = members.take("filter");
            members.finish()?;
            let filter = filter.ok_or_else(|| parsing_error("[constant_score] needs [filter]"))?;
            Ok(constant_score(translate(scope, filter, 1.0)?, boost))
        }
        "match_all" => {
            let mut members = Members::of(body, name)?;
            let boost = boost * members.boost()?;
            members.finish().map(|()| Query::All { boost })
        }
        "match_none" => Members::of(body, name)?.finish().map(|()| Query::Nothing),
        "range" | "exists" | "ids" | "dis_max" | "boosting" | "match_phrase_prefix" => {
            Err(parsing_error(format!("the query [{name}] is not supported by this server")))
        }
        _ => Err(parsing_error(format!("unknown query [{}]", name.escape_debug()))),
    }
}

/// Combines queries.
fn combine(scope: &mut QueryScope<'_>, body: &Value, boost: f64) -> Result<Query, ApiError> {
    let mut members = Members::of(body, "bool")?;
    let boost = boost * members.boost()?;
    members.only("adjust_pure_negative", &json!(true))?;
    let minimum = members.take("minimum_should_match").map(MinimumMatch::parse).transpose()?;
    let mut clauses = |name: &str, boost: f64| -> Result<Vec<Query>, ApiError> {
        let found = match members.take(name) {
            None => return Ok(Vec::new()),
            Some(Value::Array(many)) => &many[..],
            Some(one) => slice::from_ref(one),
        };
        found.iter().map(|query| translate(scope, query, boost)).collect()
    };
    let (must, should) = (clauses("must", boost)?, clauses("should", boost)?);
    let (filter, must_not) = (clauses("filter", 1.0)?, clauses("must_not", 1.0)?);
    members.finish()?;
    let is_optional = !must.is_empty() || !filter.is_empty() || should.is_empty();
    let minimum = match minimum {
        Some(minimum) => minimum.of(should.len()),
        None => u32::from(!is_optional),
    };
    // Whatever the minimum is.
    if [&must, &should, &filter, &must_not].into_iter().all(Vec::is_empty) {
        return Ok(Query::All { boost });
    }
    Ok(Query::Bool { must, filter, should, must_not, minimum })
}

/// The documents of a query that also match a filter.
pub(super) fn filtered(query: Query, filter: Query) -> Query {
    Query::Bool {
        must: vec![query],
        filter: vec![filter],
        should: Vec::new(),
        must_not: Vec::new(),
        minimum: 0,
    }
}
