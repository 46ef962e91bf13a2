//! Several searches in one request, each with its own status. Few are evaluated at a time. The memory of
//! all answers, without the sources of hits, is reserved before the first search. If the answers do not fit,
//! the request is rejected as a whole.

use super::error::{EsErrorBody, argument_error};
use super::hits::EsSearchAnswer;
use super::indices::one_index;
use super::json::parse_json;
use super::members::{Members, add_warning, names_of};
use super::request::{EsRequest, with_warnings};
use super::search::{AnsweredSearch, PlannedSearch};
use super::search_body::EsSearch;
use crate::api_error::{ApiError, ApiErrorKind};
use crate::extract::check_busy;
use crate::record::AnswerMemory;
use crate::search::{DEADLINE_MS_MAX, answer_memory, answer_units};
use crate::state::ServerState;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};

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
#[derive(Default)]
struct PlannedSearches {
    searches: Vec<Result<PlannedSearch, ApiError>>,
    /// Bytes of the answers without sources, and of a reader of sources.
    answer_bytes: usize,
    reader_bytes: usize,
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
    let planned = plan_all(&state, &request)?;
    let PlannedSearches { searches, answer_bytes, reader_bytes, mut warnings } = planned;
    drop(request);
    let in_progress = state.catalog.threads().clamp(1, IN_PROGRESS_MAX);
    let mut memory = answer_memory(&state, answer_bytes + in_progress * reader_bytes).await?;
    let until = began + Duration::from_millis(DEADLINE_MS_MAX);
    let answers = stream::iter(searches).map(|planned| {
        let state = state.clone();
        async move {
            let mut planned = planned?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let message = format!("the searches before this one took {DEADLINE_MS_MAX} ms");
                return Err(ApiError::overloaded(message, Duration::from_secs(1)));
            }
            planned.end_within(left);
            planned.run(&state, true).await
        }
    });
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
            answered.warnings.into_iter().for_each(|warning| add_warning(warnings, warning));
            MultiSearchItem::Found { answer: answered.answer, status: 200 }
        }
    }
}

/// Plans the searches of a body, as long as their answers can fit into memory.
fn plan_all(state: &ServerState, request: &EsRequest) -> Result<PlannedSearches, ApiError> {
    let mut url = Members::of_url(&request.parameters, "msearch");
    let mut planned = PlannedSearches::default();
    let mut shared = Map::new();
    if let Some(value) = url.take("rest_total_hits_as_int") {
        shared.insert("rest_total_hits_as_int".to_string(), value.clone());
    }
    url.finish_ignoring(&PARAMETERS, &mut planned.warnings)?;
    let lines = request.body.trim_ascii_end().split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let lines: Vec<&[u8]> = lines.take(2 * SEARCHES_MAX + 1).collect();
    if lines.len() > 2 * SEARCHES_MAX {
        let message = format!("the body has more than {SEARCHES_MAX} searches");
        return Err(ApiError::new(ApiErrorKind::Limit, message));
    }
    if !lines.len().is_multiple_of(2) {
        return Err(argument_error("the body must have two lines for each search: a header, and the search"));
    }
    for pair in lines.chunks(2) {
        let search = plan_one(state, request.index(), pair, &shared);
        planned.answer_bytes += search.as_ref().map_or(FAILED_BYTES, PlannedSearch::answer_bytes);
        answer_units(state, planned.answer_bytes)?;
        planned.reader_bytes =
            planned.reader_bytes.max(search.as_ref().map_or(0, PlannedSearch::reader_bytes));
        planned.searches.push(search);
    }
    Ok(planned)
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
    members.finish_ignoring(&PARAMETERS, &mut ignored)?;
    let index = one_index(state, named.as_deref().or(index))?;
    let snapshot = index.snapshot();
    let mut search = EsSearch::parse(&parse_json(body)?, shared, snapshot.schema())?;
    ignored.into_iter().for_each(|warning| add_warning(&mut search.warnings, warning));
    PlannedSearch::new(index, snapshot, search)
}
