//! Several searches in one request, each with its own status. Few are evaluated at a time. The memory of
//! all answers, without the sources of hits, is reserved before the first search. If the answers do not fit,
//! the request is rejected as a whole.

use super::error::{EsErrorBody, argument_error};
use super::hits::EsSearchAnswer;
use super::indices::one_index;
use super::json::parse_json;
use super::members::{Members, names_of};
use super::request::{EsRequest, with_warnings};
use super::search::{AnsweredSearch, PlannedSearch};
use super::search_body::{COMMON_PARAMETERS, EsSearch};
use crate::api_error::{ApiError, ApiErrorKind};
use crate::extract::check_busy;
use crate::record::AnswerMemory;
use crate::search::answer_memory;
use crate::state::ServerState;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Instant;

/// Searches of a request, at most, those that are evaluated at a time, and bytes of the answer of one that
/// failed.
const SEARCHES_MAX: usize = 1000;
const IN_PROGRESS_MAX: usize = 4;
const FAILED_BYTES: usize = 4 << 10;

/// Parameters that change neither hits nor their form.
const PARAMETERS: [&str; 7] = [
    "typed_keys",
    "search_type",
    "max_concurrent_searches",
    "max_concurrent_shard_requests",
    "pre_filter_shard_size",
    "ccs_minimize_roundtrips",
    "request_cache",
];

/// The searches of a body, each of which may be an error, and the warnings of the request.
struct PlannedSearches {
    searches: Vec<Result<PlannedSearch, ApiError>>,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct MultiSearchAnswer {
    took: u64,
    responses: Vec<MultiSearchItem>,
}

/// The answer to one of the searches.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum MultiSearchItem {
    Found {
        #[serde(flatten)]
        answer: EsSearchAnswer,
        status: u16,
    },
    Failed(EsErrorBody),
}

/// `_msearch`
pub(super) async fn search_several(
    State(state): State<Arc<ServerState>>,
    request: EsRequest,
) -> Result<Response, ApiError> {
    check_busy(&state)?;
    let began = Instant::now();
    let PlannedSearches { searches: planned, mut warnings } = plan_all(&state, &request)?;
    let bytes =
        planned.iter().map(|search| search.as_ref().map_or(FAILED_BYTES, PlannedSearch::answer_bytes));
    let mut memory = answer_memory(&state, bytes.sum()).await?;
    let answers = stream::iter(planned).map(|planned| {
        let state = state.clone();
        async move { planned?.run(&state, true).await }
    });
    let in_progress = state.catalog.threads().clamp(1, IN_PROGRESS_MAX);
    let mut answers = Box::pin(answers.buffered(in_progress));
    let mut responses = Vec::new();
    while let Some(answered) = answers.next().await {
        if let Err(error) = &answered
            && error.is_no_memory()
        {
            // The sources of hits, whose size was not known, do not fit beside the answers until now.
            return Err(error.clone());
        }
        responses.push(item_of(answered, &mut memory, &mut warnings));
    }
    let answer = MultiSearchAnswer { took: began.elapsed().as_millis() as u64, responses };
    let mut response = with_warnings(Json(answer).into_response(), &warnings);
    response.extensions_mut().insert(memory);
    Ok(response)
}

fn item_of(
    answered: Result<AnsweredSearch, ApiError>,
    memory: &mut AnswerMemory,
    warnings: &mut Vec<String>,
) -> MultiSearchItem {
    match answered {
        Err(error) => MultiSearchItem::Failed(EsErrorBody::new(&error)),
        Ok(answered) => {
            answered.memory.into_iter().for_each(|more| memory.add(more));
            for warning in answered.warnings {
                if !warnings.contains(&warning) {
                    warnings.push(warning);
                }
            }
            MultiSearchItem::Found { answer: answered.answer, status: 200 }
        }
    }
}

/// Plans the searches of a body.
fn plan_all(state: &ServerState, request: &EsRequest) -> Result<PlannedSearches, ApiError> {
    let mut url = Members::of_url(&request.parameters, "msearch");
    let mut warnings = Vec::new();
    let mut shared = Map::new();
    if let Some(value) = url.take("rest_total_hits_as_int") {
        shared.insert("rest_total_hits_as_int".to_string(), value.clone());
    }
    url.ignore(&PARAMETERS, &mut warnings);
    url.ignore(&COMMON_PARAMETERS, &mut warnings);
    url.finish()?;
    let mut lines: Vec<&[u8]> = request.body.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).collect();
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    if lines.is_empty() || !lines.len().is_multiple_of(2) {
        return Err(argument_error("the body must have two lines for each search: a header, and the search"));
    }
    if lines.len() > 2 * SEARCHES_MAX {
        let message =
            format!("the body has {} searches; at most {SEARCHES_MAX} are allowed", lines.len() / 2);
        return Err(ApiError::new(ApiErrorKind::Limit, message));
    }
    let planned = lines.chunks(2).map(|pair| plan_one(state, request.index(), pair, &shared));
    Ok(PlannedSearches { searches: planned.collect(), warnings })
}

fn plan_one(
    state: &ServerState,
    index: Option<&str>,
    lines: &[&[u8]],
    shared: &Map<String, Value>,
) -> Result<PlannedSearch, ApiError> {
    let [header, body] = [0, 1].map(|at| lines.get(at).copied().unwrap_or_default());
    let header = if header.is_empty() { Value::Object(Map::new()) } else { parse_json(header)? };
    let mut members = Members::of(&header, "header")?;
    let mut ignored = Vec::new();
    let named = [members.take("index"), members.take("indices")].into_iter().flatten().next();
    let named = named.map(|names| names_of(names, "index")).transpose()?.map(|names| names.join(","));
    members.ignore(&PARAMETERS, &mut ignored);
    members.ignore(&COMMON_PARAMETERS, &mut ignored);
    members.finish()?;
    let index = one_index(state, named.as_deref().or(index))?;
    let snapshot = index.snapshot();
    let mut search = EsSearch::parse(&parse_json(body)?, shared, snapshot.schema())?;
    search.warnings.extend(ignored);
    PlannedSearch::new(index, snapshot, search)
}
