//! The body and the parameters of a search. What is neither supported nor without effect is an error.

use super::error::parsing_error;
use super::highlight::HighlightOptions;
use super::members::Members;
use super::query::{QueryScope, filtered, translate};
use super::source::SourceFilter;
use crate::api_error::{ApiError, ApiErrorKind, cut};
use crate::record::LOGGED_QUERY_BYTES;
use crate::search::{DEADLINE_MS, DEADLINE_MS_MAX, HITS_MAX};
use serde_json::{Map, Value, json};
use std::time::Duration;
use tierdex::{Query, Schema};

/// Parameters of searches that change neither hits nor their form.
const SEARCH_PARAMETERS: [&str; 9] = [
    "typed_keys",
    "request_cache",
    "batched_reduce_size",
    "ccs_minimize_roundtrips",
    "search_type",
    "max_concurrent_shard_requests",
    "pre_filter_shard_size",
    "allow_partial_search_results",
    "phase_took",
];

/// Members of bodies that have no effect.
const BODY_MEMBERS: [&str; 4] = ["version", "seq_no_primary_term", "track_scores", "stats"];

/// Whether matches are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TotalKind {
    /// All of them.
    Counted,
    /// As many as the search came across.
    AtLeast,
    /// The answer has no number.
    Hidden,
}

/// A search.
pub(super) struct EsSearch {
    pub(super) query: Query,
    pub(super) from: usize,
    pub(super) size: usize,
    pub(super) total: TotalKind,
    /// Whether the total is a number, not an object.
    pub(super) total_as_number: bool,
    pub(super) deadline: Duration,
    pub(super) min_score: Option<f64>,
    pub(super) source: SourceFilter,
    pub(super) highlight: Option<HighlightOptions>,
    /// Parts of the request without effect.
    pub(super) warnings: Vec<String>,
    /// The beginning of the query as it was given, for logs.
    pub(super) text: String,
}

impl EsSearch {
    pub(super) fn parse(
        body: &Value,
        parameters: &Map<String, Value>,
        schema: &Schema,
    ) -> Result<EsSearch, ApiError> {
        let mut scope = QueryScope::new(schema);
        let (mut members, mut url) = (Members::of(body, "search")?, Members::of_url(parameters, "search"));
        let query = take_query(&mut scope, &mut members, &mut url)?;
        let query = match members.take("post_filter") {
            // Without aggregations it is a filter.
            Some(filter) => filtered(query, translate(&mut scope, filter, 1.0)?),
            None => query,
        };
        let count = |url: Option<usize>, body: Option<usize>, default| url.or(body).unwrap_or(default);
        let size = count(url.count("size")?, members.count("size")?, 10);
        let from = count(url.count("from")?, members.count("from")?, 0);
        if from.saturating_add(size) > HITS_MAX {
            let message =
                format!("[from] + [size] is {}; at most {HITS_MAX} is allowed", from.saturating_add(size));
            return Err(ApiError::new(ApiErrorKind::Limit, message));
        }
        let total_as_number = url.flag("rest_total_hits_as_int")?.unwrap_or(false);
        let total = take_total(&mut members, &mut url, total_as_number)?;
        let min_score = members.number("min_score")?;
        if min_score.is_some() && (total == TotalKind::Counted || size == 0) {
            return Err(parsing_error(
                "[min_score] is supported without an exact total only: without [track_total_hits] true and \
                 [rest_total_hits_as_int], and with a [size]",
            ));
        }
        let timeout = members.take("timeout");
        let deadline = url.take("timeout").or(timeout).map(parse_timeout).transpose()?;
        let mut source = SourceFilter::take(members.take("_source"), &mut url)?;
        let highlight = members.take("highlight");
        let highlight =
            highlight.map(|value| HighlightOptions::parse(value, &query, schema, &mut scope.ignored));
        let highlight = highlight.transpose()?;
        for sort in [members.take("sort"), url.take("sort")].into_iter().flatten() {
            check_sort(sort)?;
        }
        let ids_only = finish_members(&mut scope, members, url)?;
        source.is_off |= ids_only;
        Ok(EsSearch {
            query,
            from,
            size,
            total,
            total_as_number,
            deadline: deadline.unwrap_or(Duration::from_millis(DEADLINE_MS)),
            min_score,
            source,
            highlight,
            warnings: scope.ignored,
            text: logged_query(body.get("query").or_else(|| parameters.get("q"))),
        })
    }
}

/// The query of a body or of the parameter `q`; all documents without either.
pub(super) fn take_query(
    scope: &mut QueryScope<'_>,
    members: &mut Members<'_>,
    url: &mut Members<'_>,
) -> Result<Query, ApiError> {
    let (text, body) = (url.text("q")?, members.take("query"));
    let mut string = Map::new();
    for (name, key) in [
        ("df", "default_field"),
        ("default_operator", "default_operator"),
        ("analyze_wildcard", "analyze_wildcard"),
    ] {
        if let Some(value) = url.take(name) {
            string.insert(key.to_string(), value.clone());
        }
    }
    match (text, body) {
        (Some(_), Some(_)) => Err(url.error("the request has a [query] and a parameter [q]".to_string())),
        (Some(text), None) => {
            string.insert("query".to_string(), text.into());
            translate(scope, &json!({ "query_string": string }), 1.0)
        }
        (None, Some(body)) => translate(scope, body, 1.0),
        (None, None) => Ok(Query::All { boost: 1.0 }),
    }
}

/// Takes what has no effect, and rejects the rest. Returns whether hits have no source.
fn finish_members(
    scope: &mut QueryScope<'_>,
    mut members: Members<'_>,
    mut url: Members<'_>,
) -> Result<bool, ApiError> {
    let mut ids_only = false;
    for stored in [members.take("stored_fields"), url.take("stored_fields")].into_iter().flatten() {
        let is_none =
            stored == "_none_" || stored.as_array().is_some_and(|list| list.iter().all(|x| x == "_none_"));
        if !is_none {
            return Err(parsing_error("[stored_fields] supports [\"_none_\"] only; use [_source]"));
        }
        ids_only = true;
    }
    for (name, empty) in [
        ("docvalue_fields", json!([])),
        ("fields", json!([])),
        ("script_fields", json!({})),
        ("aggs", json!({})),
    ] {
        if members.take(name).is_some_and(|value| *value != empty) {
            return Err(parsing_error(format!("[{name}] is not supported by this server")));
        }
    }
    for name in ["explain", "profile"] {
        members.only(name, &json!(false))?;
    }
    url.only("explain", &json!(false))?;
    members.only("terminate_after", &json!(0))?;
    url.only("terminate_after", &json!(0))?;
    members.ignore(&BODY_MEMBERS, &mut scope.ignored);
    url.ignore(&BODY_MEMBERS, &mut scope.ignored);
    url.finish_ignoring(&SEARCH_PARAMETERS, &mut scope.ignored)?;
    members.finish()?;
    Ok(ids_only)
}

/// The beginning of a query, for logs.
pub(super) fn logged_query(query: Option<&Value>) -> String {
    let mut text = query.map(Value::to_string).unwrap_or_default();
    text.truncate(cut(&text, LOGGED_QUERY_BYTES).len());
    text.shrink_to_fit();
    text
}

/// Takes whether matches are counted. A total that is a number must be exact.
fn take_total(
    members: &mut Members<'_>,
    url: &mut Members<'_>,
    is_number: bool,
) -> Result<TotalKind, ApiError> {
    let in_url = url.take("track_total_hits").map(total_kind).transpose()?;
    let in_body = members.take("track_total_hits").map(total_kind).transpose()?;
    match (in_url.or(in_body), is_number) {
        (None, true) => Ok(TotalKind::Counted),
        (Some(TotalKind::AtLeast), true) => Err(parsing_error(
            "[rest_total_hits_as_int] needs an exact total: [track_total_hits] must be true or false",
        )),
        (asked, _) => Ok(asked.unwrap_or(TotalKind::AtLeast)),
    }
}

/// What `track_total_hits` asks for. A number of hits that are counted at least is not known before.
fn total_kind(value: &Value) -> Result<TotalKind, ApiError> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_string);
    match (&*text, text.parse::<i64>()) {
        ("true" | "", _) => Ok(TotalKind::Counted),
        ("false", _) | (_, Ok(-1)) => Ok(TotalKind::Hidden),
        (_, Ok(0..)) => Ok(TotalKind::AtLeast),
        _ => Err(parsing_error(format!("[track_total_hits] must be a boolean or a number, not {value}"))),
    }
}

/// A time such as `500ms` or `2s`.
fn parse_timeout(value: &Value) -> Result<Duration, ApiError> {
    let text = value.as_str().unwrap_or_default();
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let millis = match unit {
        "ms" => Some(1),
        "s" => Some(1000),
        "m" => Some(60_000),
        _ => None,
    };
    let millis = millis.and_then(|millis: u64| number.parse::<u64>().ok()?.checked_mul(millis));
    match millis.filter(|millis| *millis > 0) {
        None => Err(parsing_error(format!("[timeout] must be a time such as 500ms or 2s, not {value}"))),
        Some(millis) if millis > DEADLINE_MS_MAX => {
            let message = format!("[timeout] is {text}; at most {DEADLINE_MS_MAX}ms is allowed");
            Err(ApiError::new(ApiErrorKind::Limit, message))
        }
        Some(millis) => Ok(Duration::from_millis(millis)),
    }
}

/// Allows the order by score only.
fn check_sort(sort: &Value) -> Result<(), ApiError> {
    let items = sort.as_array().map_or(std::slice::from_ref(sort), Vec::as_slice);
    let is_score = |item: &Value| {
        ["_score", "_score:desc"].iter().any(|name| item == name)
            || *item == json!({ "_score": "desc" })
            || *item == json!({ "_score": { "order": "desc" } })
            || *item == json!({ "_score": {} })
    };
    match items.len() <= 1 && items.iter().all(is_score) {
        true => Ok(()),
        false => Err(parsing_error("[sort] supports the order of [_score], descending, only")),
    }
}
